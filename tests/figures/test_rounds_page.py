"""The page of rounds is one file that fetches nothing, trusts no text, and plays in a real browser."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.heatmap.export.maps import HOSTILE
from tests.heatmap.export.test_page import browse, embedded, read

from sfumato.errors import InvalidParameter
from sfumato.figures import PageRound, RoundsPage, rounds_page

pytestmark = pytest.mark.unit

PLACES = np.array([(0.5, 0.5), (1.5, 0.5), (0.5, 1.5), (1.5, 1.5)])


def page(**changed: Any) -> RoundsPage:
    given: dict[str, Any] = {
        "title": "yard",
        "statement": "rho 1",
        "facts": [("rounds", "2")],
        "cells": PLACES,
        "cell_size": (1.0, 1.0),
        "sensors": PLACES[:2],
        "sensor_names": ("door", "desk"),
        **changed,
    }
    return RoundsPage(**given)


def shown(name: str = "09:00", **changed: Any) -> PageRound:
    given: dict[str, Any] = {
        "name": name,
        "masses": np.array([0.0, 0.0, 0.0, 0.8]),
        "bands": [(np.array([1.5, 1.5]), 0.4, 0.91)],
        "readings": np.array([0.5, np.nan]),
        "total": 0.8,
        "answered": True,
        "words": "mass 0.8 there",
        **changed,
    }
    return PageRound(**given)


NOTHING: dict[str, Any] = {"masses": None, "bands": [], "total": 0.0, "answered": False}


def test_nothing_is_fetched_and_only_this_script_runs() -> None:
    data = rounds_page(page(), [shown(), shown("10:00", **NOTHING)])
    found = read(data)
    policy = next(
        a["content"] for tag, a in found.tags if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert policy.startswith("default-src 'none'; img-src data:;")
    script, style = found.inside["script"][1], found.inside["style"][0]
    for name, text in (("script-src", script), ("style-src", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}'" in policy
    assert not [
        a for _, a in found.tags if {"src", "href", "style", "onload", "onclick"} & a.keys()
    ]
    assert not re.search(r"https?:|fetch\(|XMLHttp|import\(|eval\(", data.decode())


def test_hostile_words_stay_words() -> None:
    hostile = page(title=HOSTILE, statement=HOSTILE, facts=[(HOSTILE, HOSTILE)],
                   sensor_names=(HOSTILE, HOSTILE))  # fmt: skip
    data = rounds_page(hostile, [shown(HOSTILE, words=HOSTILE)])
    kinds = {"script", "img", "style"}
    plain = read(rounds_page(page(), [shown()]))
    assert [tag for tag, _ in read(data).tags if tag in kinds] == [
        tag for tag, _ in plain.tags if tag in kinds
    ]
    assert embedded(data)["rounds"][0]["words"] == HOSTILE


def test_what_a_round_says_is_in_the_page() -> None:
    held = embedded(rounds_page(page(), [shown(), shown("10:00", **NOTHING)]))
    first, second = held["rounds"]
    assert (first["cells"], first["masses"]) == ([3], [0.8])
    assert first["bands"] == [[1.5, 1.5, 0.4, 0.91]]
    assert first["readings"] == [0.5, None]
    assert (second["cells"], second["told"]) == ([], False)
    assert held["top"] == 0.8
    assert held["box"][0] < 0 < 2 < held["box"][2]
    with pytest.raises(InvalidParameter, match="at least one round"):
        rounds_page(page(), [])


def test_a_day_of_minutes_is_a_few_megabytes(rng: np.random.Generator) -> None:
    cells = np.column_stack([np.linspace(0, 1, 100), np.zeros(100)])
    many = page(cells=cells, cell_size=(0.0, 0.0), sensors=cells[::2], kind="line",
                sensor_names=[f"s{i}" for i in range(50)])  # fmt: skip
    rounds = [
        shown(f"{i}", masses=rng.exponential(1, 100), readings=rng.normal(0, 1, 50), bands=[])
        for i in range(144)
    ]
    assert 10 * len(rounds_page(many, rounds)) < 4_000_000


@pytest.mark.browser
@pytest.mark.parametrize("kind", ["plane", "line", "graph"])
def test_a_browser_draws_the_asked_round(kind: str, tmp_path: Path) -> None:
    """The mass is blue where it is, up is up, and its words are there."""
    flat = np.column_stack([PLACES[:, 0] + 2 * PLACES[:, 1], np.zeros(4)])
    changed: dict[str, Any] = {"kind": kind}
    if kind == "line":
        changed |= {"cells": flat, "sensors": flat[:2], "cell_size": (0.0, 0.0)}
    if kind == "graph":
        changed |= {"cell_size": (0.0, 0.0), "edges": np.array([[0, 1], [1, 2], [2, 3]])}
    bands = (
        [] if kind == "line" else [(np.array([3.0] if kind == "graph" else [1.5, 1.5]), 0.4, 0.91)]
    )
    data = rounds_page(page(**changed), [shown("08:00", **NOTHING), shown(bands=bands)])
    dom = browse(tmp_path, data, "--dump-dom", fragment="#frame=1")
    assert 'data-loaded="yes"' in dom
    assert ">09:00</h2>" in dom
    browse(tmp_path, data, f"--screenshot={tmp_path / 'seen.png'}", fragment="#frame=1")
    pixels = np.asarray(Image.open(tmp_path / "seen.png").convert("RGB")).astype(int)[150:600]
    rows, columns = np.nonzero((pixels[..., 2] > pixels[..., 0] + 60) & (pixels[..., 1] < 110))
    assert rows.size > 40
    assert columns.mean() > 500  # the last cell is the one most to the right
    if kind != "line":
        assert rows.mean() < 300

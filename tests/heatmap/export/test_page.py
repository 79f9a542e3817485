"""The page is one file that fetches nothing, trusts no text, and draws the map in a real browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.heatmap.export.maps import CITY, HOSTILE, PACIFIC, SCENE, heatmap, tile_at, town

from sfumato.heatmap.export import page
from sfumato.heatmap.export.page import html
from sfumato.heatmap.tiles import Tiles
from sfumato.spaces import area_in_degrees

pytestmark = pytest.mark.unit


class Reader(HTMLParser):
    """Collects elements with their attributes and what scripts, styles and text hold."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[str, list[str]] = {"script": [], "style": [], "": []}
        self.now = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.now = tag if tag in self.inside else ""

    def handle_endtag(self, tag: str) -> None:
        self.now = "" if tag == self.now else self.now

    def handle_data(self, data: str) -> None:
        self.inside[self.now].append(data)


def read(data: bytes) -> Reader:
    reader = Reader()
    reader.feed(data.decode())
    return reader


def embedded(data: bytes) -> Any:
    return json.loads(read(data).inside["script"][0])


def test_nothing_is_fetched_and_only_this_script_runs() -> None:
    found = read(html(town()))
    policy = next(
        a["content"] for tag, a in found.tags if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert "unsafe" not in policy
    script, style = found.inside["script"][1], found.inside["style"][0]
    for name, text in (("script-src", script), ("style-src", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}'" in policy
    assert not [
        a for _, a in found.tags if {"src", "href", "style", "onload", "onclick"} & a.keys()
    ]
    assert not re.search(r"https?:|fetch\(|XMLHttp|import\(|eval\(", html(town()).decode())


def test_hostile_words_stay_words() -> None:
    release = town(group=HOSTILE, unit=HOSTILE, method=HOSTILE, parameters={HOSTILE: HOSTILE})
    data = html(release)
    plain = read(html(town()))
    found = read(data)
    assert [tag for tag, _ in found.tags if tag in {"script", "img", "style"}] == [
        tag for tag, _ in plain.tags if tag in {"script", "img", "style"}
    ]
    assert not [a for _, a in found.tags if "onerror" in a]
    assert HOSTILE in "".join(found.inside[""])
    assert embedded(data)["units"] == f"{HOSTILE}s"


def test_the_page_holds_the_tiles_and_the_promise() -> None:
    release = town()
    data = html(release)
    held = embedded(data)["tiles"]
    levels = np.frombuffer(base64.b64decode(held["levels"]), np.uint8).astype(np.int64)
    codes = np.frombuffer(base64.b64decode(held["codes"]), "<u4").astype(np.int64)
    shares = np.frombuffer(base64.b64decode(held["shares"]), "<f4").astype(np.float64)
    assert np.allclose(
        Tiles(CITY.grid, levels, codes, shares).image(8), release.image(8), atol=1e-7
    )
    words = "".join(read(data).inside[""])
    assert f"{release.statement}." in words
    assert release.receipt.ledger in words
    assert release.receipt.entry.hash in words
    assert "REHEARSAL" not in words
    assert "REHEARSAL" in "".join(read(html(town(rehearsal=True))).inside[""])


def test_the_page_never_says_user_where_less_of_a_user_is_protected() -> None:
    facts = dict(page.facts(town(unit="observer-image")))
    assert facts["neighbors"] == "one observer-image added or removed"
    assert dict(page.facts(town(unit="observer")))["neighbors"] == "one user added or removed"


def test_a_page_never_grows_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MOST_TILES", 100)
    grid = CITY.grid
    every = [(4, code, 1.0) for code in range(256)]
    held = embedded(html(heatmap(CITY, every)))["tiles"]
    assert len(base64.b64decode(held["levels"])) == 64
    assert grid.levels == 8


def test_pages_of_nobody_and_many_have_the_same_keys() -> None:
    one, other = embedded(html(heatmap(CITY, []))), embedded(html(town()))
    assert one.keys() == other.keys()
    assert {k: v for k, v in one.items() if k in {"window", "extent", "level", "unit"}} == {
        k: v for k, v in other.items() if k in {"window", "extent", "level", "unit"}
    }


# in a browser


def chromium() -> str:
    found = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if found is None:
        pytest.fail("the page needs a browser; run: make system")
    return found


def browse(folder: Path, data: bytes, *more: str, fragment: str = "") -> str:
    """Open a page headless; --screenshot or --dump-dom among `more`. What the browser prints comes back."""
    (folder / "map.html").write_bytes(data)
    done = subprocess.run(
        [chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
         "--window-size=1000,900", "--virtual-time-budget=4000",
         "--enable-logging=stderr", f"--user-data-dir={folder}/profile", *more,
         f"{(folder / 'map.html').as_uri()}{fragment}"],
        capture_output=True, text=True, timeout=600, check=True,
    )  # fmt: skip
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert complaints == []
    return done.stdout


def played(page: bytes, play: str) -> bytes:
    """A page with a script of the test in it, which its own policy would refuse: let in by its hash."""
    digest = base64.b64encode(hashlib.sha256(play.encode()).digest()).decode()
    text = page.decode().replace("script-src '", f"script-src 'sha256-{digest}' '", 1)
    return text.replace("</body>", f"<script>{play}</script></body>").encode()


def shape(folder: Path) -> tuple[int, int]:
    """Width and height of what is drawn in a strong color above the legend."""
    image = np.asarray(Image.open(folder / "seen.png").convert("RGB")).astype(int)[:740]
    rows, columns = np.nonzero(
        image[..., 2] > image[..., 1] + 60
    )  # violet, as the densest place is
    assert rows.size > 1000
    return int(np.ptp(columns)) + 1, int(np.ptp(rows)) + 1


DEMO = (11.20, 43.74, 11.32, 43.81)


@pytest.mark.browser
@pytest.mark.parametrize(
    ("area", "size"),
    [
        (CITY, "1000,900"),
        (area_in_degrees(DEMO, 8), "1500,900"),
        (area_in_degrees(DEMO, 8, square=False), "1000,900"),
        (SCENE, "700,1000"),
    ],
    ids=["city", "demo", "stretched", "image"],
)
def test_a_browser_draws_cells_as_they_are_on_the_ground(
    area: Any, size: str, tmp_path: Path
) -> None:
    aspect = area.cell_size[0] / area.cell_size[1]
    low_x, low_y, high_x, high_y = area.bounds
    middle = tile_at(
        area, (low_x + high_x) / 2 + 1e-9, (low_y + high_y) / 2 + 1e-9, level=2, users=1e6
    )
    seen = (f"--screenshot={tmp_path}/seen.png", f"--window-size={size}")
    browse(tmp_path, html(heatmap(area, [middle])), *seen, fragment="#layer=cells")
    wide, high = shape(tmp_path)
    assert min(wide, high) > 60
    # A border may lie between two pixels, at either end of either side.
    assert abs(wide - aspect * high) <= 2 + 2 * aspect


@pytest.mark.browser
def test_a_page_that_grows_shows_no_ellipses_before_it_is_drawn_anew(tmp_path: Path) -> None:
    """A window that grows by 11 %, a printer, a picture of the whole page: the old drawing keeps its form."""
    middle = tile_at(CITY, -73.95, 40.7, level=2, users=1e6)
    play = """
      const waiting = setInterval(() => {
        if (!document.querySelector("#marks li")) return;  // the map is not drawn yet
        clearInterval(waiting);
        setTimeout(() => {  // on the browser's virtual clock
          window.requestAnimationFrame = () => 0;  // nothing is drawn any more
          const map = document.getElementById("map");
          map.style.height = `${1.11 * map.clientHeight}px`;
          document.body.dataset.grown = "yes";
        }, 500);
      }, 50);
    """
    page = played(html(heatmap(CITY, [middle])), play)
    assert 'data-grown="yes"' in browse(tmp_path, page, "--dump-dom", fragment="#layer=cells")
    browse(tmp_path, page, f"--screenshot={tmp_path}/seen.png", fragment="#layer=cells")
    wide, high = shape(tmp_path)
    assert min(wide, high) > 60
    assert abs(wide - high * CITY.cell_size[0] / CITY.cell_size[1]) <= 4


@pytest.mark.browser
@pytest.mark.parametrize(
    ("area", "place", "fragment"),
    [
        (CITY, (-73.9, 40.8), ""),
        (PACIFIC, (188.0, -3.0), "#layer=cells"),
        (SCENE, (20, 15), "#layer=cells"),
    ],
    ids=["smooth", "cells", "pixels"],
)
def test_a_browser_draws_a_tile_at_its_place(
    area: Any, place: tuple[float, float], fragment: str, tmp_path: Path
) -> None:
    release = heatmap(area, [tile_at(area, *place, level=5, users=1e6)])
    browse(tmp_path, html(release), f"--screenshot={tmp_path}/seen.png", fragment=fragment)
    image = np.asarray(Image.open(tmp_path / "seen.png").convert("RGB")).astype(int)[90:690]
    strong = image.max(axis=2) - image.min(axis=2) > 60
    strong |= (image.sum(axis=2) < 140) & (image[..., 2] > image[..., 1] + 8)
    rows, columns = np.nonzero(strong)
    assert rows.size > 20
    low_x, low_y, high_x, high_y = area.bounds
    left_of_center = place[0] < (low_x + high_x) / 2
    assert (columns.mean() < 500) == left_of_center
    upper = (
        place[1] < (low_y + high_y) / 2
        if area.kind == "pixels"
        else place[1] > (low_y + high_y) / 2
    )
    assert (rows.mean() < 330) == upper


@pytest.mark.browser
def test_a_browser_reads_the_map_out(tmp_path: Path) -> None:
    """Keys and pointers move the map and read off shares; a script of the test plays the user."""
    release = heatmap(
        CITY,
        [tile_at(CITY, -73.9, 40.75, level=4, users=750), tile_at(CITY, -74.0, 40.6, users=250)],
    )
    play = """
      const waiting = setInterval(() => {
        if (!document.querySelector("#marks li")) return;  // the map is not drawn yet
        clearInterval(waiting);
        const view = document.getElementById("view"), said = [];
        const box = view.getBoundingClientRect();
        const read = () => said.push(document.getElementById("readout").textContent);
        const mouse = (type, x, y) => view.dispatchEvent(
          new PointerEvent(type, {pointerId: 1, clientX: box.left + x, clientY: box.top + y}));
        const scale = () => said.push(document.getElementById("scale").textContent);
        scale();
        mouse("pointermove", box.width / 2 + 9, box.height / 2 - 9); read();
        for (const key of ["+", "+", "+", "+", "c", "ArrowRight", "ArrowUp"])
          view.dispatchEvent(new KeyboardEvent("keydown", {key}));
        read(); scale();
        document.body.dataset.said = JSON.stringify(said);
      }, 50);
    """
    dom = browse(tmp_path, played(html(release), play), "--dump-dom")
    found = re.search(r'data-said="([^"]*)"', dom)
    assert found is not None
    before, here, zoomed, after = json.loads(found[1].replace("&quot;", '"'))
    assert here.startswith("40.7")
    assert "about 750 users (75%) in this cell of 2180 m × 2430 m" in here
    assert "75%" in zoomed
    assert before != after
    assert before.endswith("km")

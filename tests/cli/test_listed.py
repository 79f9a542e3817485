"""The help of a command lists what there is, also what others have added since."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from sfumato.cli.listed import LISTS
from sfumato.cli.main import app
from sfumato.heatmap.export import MapFormat, registered_formats
from sfumato.heatmap.methods import registered_methods
from sfumato.records.engines import engine_names
from sfumato.sensing.model.operators import operator_kinds
from sfumato.sensing.recovery.estimators import estimator_names

pytestmark = pytest.mark.unit

RELEASE, RECOVER, SITE = ("heatmap", "release"), ("sense", "recover"), ("sense", "site")


def said(*words: str) -> str:
    shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "400", "TERM": "dumb"})
    assert shown.exit_code == 0
    return " ".join(shown.stdout.replace("│", " ").split())


def test_all_names_of_the_package_are_listed() -> None:
    release = said(*RELEASE)
    assert f"[{'|'.join(registered_methods())}]" in release
    assert f"[{'|'.join(engine_names())}]" in release
    assert f"By suffix: {' '.join(registered_formats())}" in release
    assert f"[{'|'.join(estimator_names())}]" in said(*RECOVER)
    assert f"[{'|'.join(operator_kinds())}]" in said(*SITE)
    for text in (release, said(*RECOVER), said(*SITE), said("heatmap", "plan")):
        assert not any(mark in text for mark in LISTS)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package with one of each; of all but the format the name is enough, and nothing is loaded."""
    true = importlib.metadata.entry_points

    def never() -> Any:
        raise AssertionError("the help loaded it")

    def points(**asked: Any) -> Any:
        group = asked.get("group", "")
        if group == "sfumato.map_formats":
            made = MapFormat(".theirs", lambda *_: b"")
            return [SimpleNamespace(name="theirs", value="p:f", load=lambda: made)]
        if group.startswith("sfumato."):
            return [SimpleNamespace(name="theirs", value="p:x", load=never)]
        return true(**asked)

    monkeypatch.setattr(importlib.metadata, "entry_points", points)
    yield
    from sfumato.heatmap.export.formats import FORMATS

    FORMATS._loaded.pop("theirs", None)


@pytest.mark.usefixtures("installed")
def test_names_of_others_are_listed() -> None:
    release = said(*RELEASE)
    assert "|gaussian|theirs]" in release
    assert "|spark|theirs]" in release
    assert ".json .theirs" in release
    assert "|mixture|theirs]" in said(*RECOVER)
    assert "|matrix|theirs|weighted]" in said(*SITE)

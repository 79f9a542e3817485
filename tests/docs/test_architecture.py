"""The page on architecture has the doors that are held, and calls planned only what is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.test_imports import DOORS, HOUSE

pytestmark = pytest.mark.docs

PAGE = (Path(__file__).parents[2] / "docs/explain/architecture.md").read_text(encoding="utf-8")
ROOMS = {folder.name for folder in HOUSE.iterdir() if (folder / "__init__.py").is_file()}


def test_every_door_leads_to_a_room_that_is_there() -> None:
    beside = {"errors", "_types", "_validate", "_registry", "_compiled", "_process", "_random"}
    assert set(DOORS) - beside == ROOMS
    assert "not there yet" not in PAGE


def test_every_room_has_its_doors() -> None:
    (table,) = re.findall(r"\| room \| may import \|\n(.*?)\n\n", PAGE, re.DOTALL)
    told = {
        room: {word for word in re.split(r"[ ,]+", imports) if word in DOORS}
        for rooms, imports in re.findall(r"^\| ([a-z, ]+) \| ([^|]+) \|$", table, re.MULTILINE)
        for room in rooms.split(", ")
    }
    assert set(told) == ROOMS
    for room in ROOMS - {
        "report",
        "cli",
        "web",
    }:  # told in words: all capabilities, everything public
        assert told[room] == DOORS[room]

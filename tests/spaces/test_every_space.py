"""Every space keeps the promises of `Space`, so that nobody needs to ask which one it is."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sfumato.spaces import Graph, Grid, Line, Points, Space, register_space, space_from_json

pytestmark = pytest.mark.unit

SPACES = [
    Line(1),
    Line(5),
    Line(4, length=3),
    Line.at([-2.0, 0.0, 0.5]),
    Grid(2),
    Grid(1, (0, 0, 8, 2)),
    Points([(0, 0), (3, 0), (3, 4)]),
    Points([(0, 0), (3, 0), (3, 4)], "l1"),
    Graph([(0, 1), (1, 2), (2, 0)], [1, 1, 5]),
    Graph([(0, 1)], nodes=2),
]


@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.describe())
def test_distances_by_cell_and_by_place_agree(space: Space) -> None:
    cells = np.arange(space.size)
    places = space.places(cells)
    assert len(places) == space.size
    between = space.distances_between(places, places)
    for i in cells.tolist():
        single = [space.distance(i, j) for j in cells.tolist()]
        assert space.distances_from(i) == pytest.approx(single, abs=1e-15)
        assert between[i] == pytest.approx(single, abs=1e-15)
    assert space.nearest_cells(places).tolist() == cells.tolist()


@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.describe())
def test_a_space_reads_as_it_was_written(space: Space) -> None:
    written = json.loads(json.dumps(space.to_json()))
    assert written["kind"] == space.kind
    assert space_from_json(written) == space


def test_places_off_the_cells_have_a_nearest_one() -> None:
    assert Line(4).nearest_cells(np.array([[-9.0], [0.37], [0.39], [9.0]])).tolist() == [0, 0, 1, 3]
    grid = Grid(1, (0, 0, 8, 2))
    assert grid.nearest_cells(np.array([[-1.0, 5.0], [7.0, 0.1]])).tolist() == [2, 1]
    corners = Points([(0, 0), (3, 0), (3, 4)])
    assert corners.nearest_cells(np.array([[2.9, 3.0]])).tolist() == [2]


def test_kinds_are_known_by_name_and_others_can_be_added(monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.spaces import codec

    with pytest.raises(ValueError, match="no space 'circle'"):
        space_from_json({"kind": "circle"})
    monkeypatch.setattr(codec, "_KINDS", dict(codec._KINDS))
    register_space("circle", lambda data: Line(data["cells"]))
    assert space_from_json({"kind": "circle", "cells": 3}) == Line(3)

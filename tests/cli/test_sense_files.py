"""Tables of sensors, readings, edges and sources: read as they are, refused by row, never quoted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.sense_runs import alone, table

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import column_of as column
from sfumato.files import numbers_of as numbers
from sfumato.files import read_rows
from sfumato.privacy import MovedMass
from sfumato.sensing import Sensors, Site, graph_diffusion, heat_line
from sfumato.sensing.reading_tables import read_snapshots
from sfumato.sensing.tables import read_graph, read_sensors, read_sources
from sfumato.spaces import Graph

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def site() -> Site:
    operator = heat_line(sources=5, sensors=Sensors([0.1, 0.9], ["a", "b"]), diffusion_time=0.1)
    return Site("hall", operator, MovedMass(1, "line"))


def test_rows_come_from_csv_tsv_and_json() -> None:
    wanted = [{"sensor": "a", "value": "1"}, {"sensor": "b, c", "value": "2"}]
    Path("t.csv").write_bytes(
        b'\xef\xbb\xbfsensor,value\r\na,1\r\n"b, c",2\r\n'
    )  # as Excel saves it
    Path("t.tsv").write_text("sensor\tvalue\na\t1\nb, c\t2\n")
    Path("t.json").write_text(json.dumps(wanted))
    for name in ("t.csv", "t.tsv", "t.json"):
        assert read_rows(Path(name)) == wanted


def test_columns_are_complete() -> None:
    path = Path("t.csv")
    assert column([{"x": 0}, {"x": "b"}], "x", path) == [0, "b"]
    assert numbers([{"x": 0}, {"x": " 1e3 "}, {"x": "-0.5"}], "x", path) == [0, 1000, -0.5]
    wrong: list[tuple[list[dict[str, Any]], str]] = [
        ([{"y": 1}], "there is no column 'x' among the 1 of t.csv"),
        ([{"x": 1}, {"y": 1}], "t.csv has no 'x' in row 2"),
        ([{"x": 1}, {"x": ""}], "t.csv has no 'x' in row 2"),
        ([{"x": None}], "t.csv has no 'x' in row 1"),
    ]
    for rows, sentence in wrong:
        with pytest.raises(InvalidInput, match=f"^{sentence}; nothing was charged$"):
            column(rows, "x", path)


@given(
    st.one_of(
        st.text(), st.integers(), st.floats(), st.booleans(), st.lists(st.integers()), st.none()
    )
)
def test_a_number_is_finite_or_refused_without_being_quoted(value: object) -> None:
    try:
        (found,) = numbers([{"x": value}], "x", Path("t.json"))
    except InvalidInput as refusal:
        sentence = str(refusal)
    else:
        assert np.isfinite(found)
        assert found == float(value)  # type: ignore[arg-type]
        return
    assert sentence in (
        "the x in row 1 of t.json is not a finite number; nothing was charged",
        "t.json has no 'x' in row 1; nothing was charged",
    )


def test_sensors_have_one_or_two_coordinates() -> None:
    table("line.csv", ["x", "sensor", "room"], [(0.5, "a", "hall"), (0.25, "b", "bath")])
    assert read_sensors(Path("line.csv")) == Sensors([0.5, 0.25], ["a", "b"])
    table("plane.csv", ["sensor", "x", "y"], [("a", 1, 2), ("b", 3, 4)])
    assert read_sensors(Path("plane.csv")) == Sensors([[1, 2], [3, 4]], ["a", "b"])
    table("none.csv", ["sensor", "lon"], [("a", 1)])
    with pytest.raises(
        InvalidInput, match="in columns x, or x and y, or in lat and lon; nothing was built"
    ):
        read_sensors(Path("none.csv"))


def test_graphs_keep_names_lengths_and_weights_together() -> None:
    table(
        "e.csv",
        ["u", "v", "length", "weight"],
        [("b", "a", 3, 5), ("a", "c", 4, 6), ("a", "b", 3, 5)],
    )
    graph, names, weights = read_graph(Path("e.csv"), largest_part=False)
    assert names == ("b", "a", "c")
    assert graph == Graph([(0, 1), (1, 2)], [3, 4])
    assert weights is not None
    assert weights.tolist() == [5, 6]
    table("plain.csv", ["u", "v"], [(10, 9), (9, 2), (2, 2)])  # a loop is no edge
    graph, names, weights = read_graph(Path("plain.csv"), largest_part=False)
    assert (names, weights) == (("2", "9", "10"), None)
    assert graph == Graph([(0, 1), (1, 2)])


@given(st.data())
def test_the_largest_part_is_a_graph_of_the_same_edges(data: st.DataObject) -> None:
    pairs = st.tuples(st.integers(0, 12), st.integers(0, 12)).filter(
        lambda pair: pair[0] != pair[1]
    )
    edges = sorted(data.draw(st.sets(pairs.map(lambda pair: (min(pair), max(pair))), min_size=1)))
    rows = [(u, v, 1 + 20 * u + v, 2 + 20 * u + v) for u, v in edges]
    path = Path("drawn.csv")
    table(str(path), ["u", "v", "length", "weight"], rows)
    graph, names, weights = read_graph(path, largest_part=True)
    assert not graph.components().any()
    assert weights is not None
    whole, _, _ = read_graph(path, largest_part=False)
    assert graph.size == np.bincount(whole.components()).max()
    kept = {
        (int(names[u]), int(names[v])): (length, weight)
        for (u, v), length, weight in zip(graph.edges.tolist(), graph.lengths, weights, strict=True)
    }
    # Every edge of the part, with its own length and weight.
    inside = set(map(int, names))
    assert kept == {(u, v): (length, weight) for u, v, length, weight in rows if u in inside}


def test_snapshots_are_grouped_by_time(site: Site) -> None:
    path = Path("r.csv")
    table("r.csv", ["time", "sensor", "value"], [("2", "a", 1), ("1", "b", 2), ("2", "b", 3)])
    assert read_snapshots(path, site) == [("2", {"a": 1.0, "b": 3.0}), ("1", {"b": 2.0})]
    table("r.csv", ["sensor", "value"], [("b", 2)])
    assert read_snapshots(path, site) == [("", {"b": 2.0})]
    table("r.csv", ["sensor", "value"], [("b", 2), ("c", 2)])
    with pytest.raises(
        InvalidInput, match=r"^row 2 of r\.csv is of no sensor that site 'hall' has; nothing was"
    ):
        read_snapshots(path, site)
    table("r.csv", ["sensor", "value"], [("b", 2), ("b", 2)])
    with pytest.raises(
        InvalidInput,
        match=r"^row 2 of r\.csv reads sensor 'b' again at its time: there is no column 'time'; `time` says",
    ):
        read_snapshots(path, site)


def test_sources_are_named_by_cell_or_node(site: Site) -> None:
    table("s.csv", ["cell", "mass"], [(4, 2), (0, 0.5), (4, 1)])
    assert read_sources(Path("s.csv"), site).tolist() == [0.5, 0, 0, 0, 3]
    graph = graph_diffusion(Graph([(0, 1), (1, 2)]), 0.1)
    named = Site("net", graph, MovedMass(1, "graph"), cells=("ann", "bob", "3"))
    Path("s.json").write_text('[{"cell": "bob", "mass": 1}, {"cell": 3, "mass": 2}]')
    assert read_sources(Path("s.json"), named).tolist() == [0, 1, 2]
    with pytest.raises(
        InvalidInput, match=r"^s.csv: site 'net' has no cell '4'; nothing was recovered$"
    ):
        read_sources(Path("s.csv"), named)


def test_lengths_and_weights_are_positive() -> None:
    table("e.csv", ["u", "v", "length"], [("a", "b", -1)])
    with pytest.raises(InvalidParameter, match="length"):
        read_graph(Path("e.csv"), largest_part=False)
    table("e.csv", ["u", "v", "weight"], [("a", "b", 0)])
    graph, _, weights = read_graph(Path("e.csv"), largest_part=False)
    with pytest.raises(InvalidParameter, match="weights must be one number between"):
        graph_diffusion(graph, 1.0, weights=weights)

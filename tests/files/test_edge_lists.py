"""Edge lists, tables, boxes of GeoJSON and JSON files are read one way, and refused in one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from sfumato.errors import InvalidInput
from sfumato.files import decoding, read_edge_list, read_json, read_rows, write_json
from sfumato.files.edge_lists import read_nodes

pytestmark = pytest.mark.unit

EDGES = [("ann", "bob"), ("bob", "cy"), ("cy", "bob"), ("cy", "cy"), ("ann", "bob")]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def table(path: str, rows: Iterable[Iterable[Any]], header: str = "u,v") -> None:
    lines = [",".join(map(str, row)) for row in rows]
    Path(path).write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")


def test_an_edge_list_may_be_any_of_the_usual_files() -> None:
    table("a.csv", EDGES)
    table("b.csv", EDGES, header="source,target")
    Path("c.tsv").write_text("from\tto\n" + "\n".join("\t".join(e) for e in EDGES))
    Path("d.txt").write_text("# people\n% more\n\n" + "\n".join(" ".join(e) for e in EDGES))
    Path("e.json").write_text(json.dumps([{"u": u, "v": v} for u, v in EDGES]))
    Path("h.json").write_text(json.dumps(EDGES))
    columns = {"u": [u for u, _ in EDGES], "v": [v for _, v in EDGES]}
    parquet.write_table(pa.table(columns), "f.parquet")
    for path in sorted(Path().iterdir()):
        found = read_edge_list(path)
        assert found.names == ("ann", "bob", "cy"), path
        assert found.edges.tolist() == [[0, 1], [1, 2]], path
        assert (found.loops, found.repeats) == (1, 2), path
        assert found.values == {}, path
    table("g.csv", EDGES, header="x,y")
    assert read_edge_list("g.csv", ends=("x", "y")).names == ("ann", "bob", "cy")
    with pytest.raises(InvalidInput, match=r"no columns u,v or .* in its first line"):
        read_edge_list("g.csv")


def test_further_columns_are_those_of_the_first_row_of_an_edge() -> None:
    rows = [("10", "9", 2.5), ("9", "10", 7), ("9", "9", 1), ("9", "11", 4)]
    table("a.csv", rows, header="u,v,length")
    parquet.write_table(
        pa.table({"u": [10, 9, 9, 9], "v": [9, 10, 9, 11], "length": [2.5, 7, 1, 4]}), "b.parquet"
    )
    for path in ("a.csv", "b.parquet"):
        found = read_edge_list(path, values=("length", "weight"))
        assert found.names == ("9", "10", "11")
        assert found.edges.tolist() == [[0, 1], [0, 2]]
        assert {name: one.tolist() for name, one in found.values.items()} == {"length": [2.5, 4.0]}
    table("a.csv", [("1", "2", "far")], header="u,v,length")
    with pytest.raises(InvalidInput, match=r"the length in row 1 of a.csv is not a finite number"):
        read_edge_list("a.csv", values=("length",))


def test_nodes_are_those_of_the_list_alone() -> None:
    table("edges.csv", [("b", "a")])
    table("nodes.csv", [("a",), ("b",), ("c",)], header="node")
    found = read_edge_list("edges.csv", nodes="nodes.csv")
    assert (found.names, found.edges.tolist()) == (("a", "b", "c"), [[0, 1]])
    assert read_edge_list("edges.csv", nodes=["a", "b", "c"]).names == ("a", "b", "c")
    parquet.write_table(pa.table({"node": [3, 1]}), "nodes.parquet")
    assert read_nodes("nodes.parquet") == ["3", "1"]
    table("empty.csv", [])
    assert read_edge_list("empty.csv", nodes="nodes.csv").edges.shape == (0, 2)
    table("nodes.csv", [("a",)], header="node")
    with pytest.raises(
        InvalidInput, match=r"edge 1 of edges.csv has a node that nodes.csv has not"
    ):
        read_edge_list("edges.csv", nodes="nodes.csv")
    with pytest.raises(InvalidInput, match=r"^edges.csv has an edge to a node that nodes.csv has"):
        read_edge_list("edges.csv", nodes="nodes.csv", private=True)
    table("nodes.csv", [("a",), ("b",), ("a",)], header="node")
    with pytest.raises(InvalidInput, match="names a node twice"):
        read_edge_list("edges.csv", nodes="nodes.csv")


def test_what_is_wrong_with_a_private_list_is_not_located() -> None:
    Path("a.txt").write_text("x y\nz\n")
    with pytest.raises(InvalidInput, match=r"edge 2 of a.txt must be two names"):
        read_edge_list("a.txt")
    with pytest.raises(InvalidInput, match=r"a.txt has a row that is no pair of nodes"):
        read_edge_list("a.txt", private=True)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("none.csv", None, "cannot read none.csv: No such file"),
        ("a.csv", b"\xff\xfe", "a.csv is not text in UTF-8"),
        ("a.csv", b"u,v\n", "a.csv has no rows"),
        ("a.json", b"{}", "a.json is not a JSON list of objects"),
        ("a.json", b"[" * 100_000, "a.json is not a JSON list of objects"),
    ],
)
def test_a_table_that_is_none_is_refused(name: str, text: bytes | None, words: str) -> None:
    if text is not None:
        Path(name).write_bytes(text)
    with pytest.raises(InvalidInput, match=words):
        read_rows(name)


def test_json_files_are_refused_in_one_shape() -> None:
    write_json("a.json", {"x": [1, 2.5, None]})
    assert read_json("a.json", "a thing") == {"x": [1, 2.5, None]}
    with pytest.raises(InvalidInput, match=r"a\.json"):
        write_json("a.json", 1)
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json("b.json", float("nan"))
    for name, data, words in [
        ("none.json", None, "cannot read none.json: No such file or directory; nothing was run"),
        ("t.json", b"\xff", "t.json is not a whole thing: it is no text; nothing was run"),
        ("j.json", b"{", "j.json is not a whole thing: it is no JSON; nothing was run"),
        ("d.json", b"[" * 100_000, "d.json is not a whole thing: it is no JSON; nothing was run"),
        (
            "n.json",
            b"[NaN]",
            "n.json is not a whole thing: NaN is no number in JSON; nothing was run",
        ),
        (
            "i.json",
            b"-Infinity",
            "i.json is not a whole thing: -Infinity is no number in JSON; nothing was run",
        ),
        (
            "t.json",
            b'[{"a": 1, "a": 2}]',
            "t.json is not a whole thing: it has 'a' twice; nothing was run",
        ),
    ]:
        if data is not None:
            Path(name).write_bytes(data)
        with pytest.raises(InvalidInput) as raised:
            read_json(name, "a whole thing", undone="nothing was run")
        assert str(raised.value) == words
    empty: dict[str, int] = {}
    wrongs: list[tuple[Callable[[], object], str]] = [
        (lambda: empty["x"], "p is not a whole thing: it has no 'x'"),
        (lambda: int("x"), "p is not a whole thing: invalid literal for int() with base 10: 'x'"),
        (lambda: 1 / 0, "p is not a whole thing: division by zero"),
    ]
    for wrong, words in wrongs:
        with pytest.raises(InvalidInput) as raised, decoding("a whole thing", path="p"):
            wrong()
        assert str(raised.value) == words

"""`sfumato graph X --json`, the Python call and the saved file say the same of the same network."""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import networkx
import numpy as np
import pandas as pd
import pytest
from tests.cli.sense_runs import alone
from tests.seeded import seed_system
from typer.main import get_command
from typer.testing import CliRunner

from sfumato.cli.main import app
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.figures import sheet
from sfumato.graphon import (
    BlockGraphon,
    Blocks,
    BlocksResult,
    NetworkComparison,
    NetworkFiles,
    NetworkLimits,
    compare_networks,
    find_blocks,
    network_limits,
    read_blocks,
    release_blocks,
    sample_graph,
    simulate_network,
    write_network,
)
from sfumato.graphon.sources import named_network
from sfumato.privacy import FlippedEdge, Ledger, PureDP

pytestmark = pytest.mark.unit

_command = functools.cache(get_command)
NODES = 90
TWO = BlockGraphon([[0.5, 0.05], [0.05, 0.5]])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    alone(tmp_path, monkeypatch)
    monkeypatch.setattr(sheet, "DPI", 50)
    drawn = sample_graph(TWO, NODES, rng).network
    rows = "\n".join(f"{u},{v}" for u, v in drawn.edges.tolist())
    Path("edges.csv").write_text(f"u,v\n{rows}\n", encoding="utf-8")
    Path("nodes.txt").write_text("\n".join(map(str, range(NODES))), encoding="utf-8")


def answer(*words: str) -> Any:
    with mock.patch("typer.testing._get_command", _command):
        result = CliRunner().invoke(app, ["graph", *words, "--json"])
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return json.loads(result.stdout)


def exact(data: Any) -> Any:
    """What JSON makes of it: lists for tuples, and no digit lost."""
    return json.loads(json.dumps(data))


def saved(path: str) -> Any:
    return json.loads(Path(path).read_text(encoding="utf-8"))


def test_public_blocks() -> None:
    printed = answer("blocks", "edges.csv", "--nodes", "nodes.txt", "--out", "b.json")
    called = find_blocks("edges.csv", nodes="nodes.txt")
    assert exact(called.to_json()) == printed
    assert saved("b.json") == {"format": "sfumato-blocks/1", **printed}
    assert read_blocks("b.json").to_json() == printed
    assert BlocksResult.from_json(printed).to_json() == printed
    called.write("again.json")
    assert Path("again.json").read_bytes() == Path("b.json").read_bytes()
    fitted = Blocks().fit("edges.csv", nodes="nodes.txt")
    assert fitted.matrix_.tolist() == printed["matrix"]
    assert dict(zip(fitted.nodes_, fitted.labels_.tolist(), strict=True)) == printed["labels"]


def test_private_blocks(monkeypatch: pytest.MonkeyPatch, key: bytes) -> None:
    for name in ("a.ledger", "b.ledger"):
        Ledger.create(Path(name), PureDP(12), unit="edge", source="calls", neighbors=FlippedEdge())
    words = ("--epsilon", "8", "--nodes", "nodes.txt", "--out", "b.json")
    seed_system(monkeypatch, key)
    printed = answer("blocks", "edges.csv", "--ledger", "a.ledger", *words)
    seed_system(monkeypatch, key)
    called = release_blocks(
        "edges.csv", epsilon=8, ledger="b.ledger", nodes=[str(node) for node in range(NODES)]
    )
    assert exact(called.to_json()) == printed
    assert saved("b.json") == {"format": "sfumato-blocks/1", **printed}
    assert read_blocks("b.json").to_json() == printed
    assert called.private
    assert printed["losses"] == ["epsilon 7.6", "epsilon 0.4"]
    assert Ledger(Path("b.ledger")).statement().spent.epsilon == 8
    assert "paid epsilon 7.6 and epsilon 0.4" in called._repr_html_()


def test_a_rehearsal_of_private_blocks_says_that_it_protects_nobody() -> None:
    ledger = Ledger.rehearsal(PureDP(12), unit="edge", neighbors=FlippedEdge())
    called = release_blocks("edges.csv", epsilon=8, ledger=ledger, nodes=NODES)
    called.write("b.json")
    for found in (called, read_blocks("b.json")):
        assert (found.rehearsal, found.private, len(found.entries)) == (True, False, 2)
        assert found.to_json()["rehearsal"] is True
        words = found._repr_html_()
        for said in (*found.guarantee, words[words.index("REHEARSAL") :]):
            assert said.startswith("REHEARSAL on public data, protects nobody: ")
    assert saved("b.json")["rehearsal"] is True
    assert called.picture() != replace(called, rehearsal=False).picture()
    fitted = Blocks(
        1, epsilon=8, ledger=Ledger.rehearsal(PureDP(12), unit="edge", neighbors=FlippedEdge())
    )
    stamped = fitted.fit("edges.csv", nodes=NODES).plot()
    fitted.releases_ = ()
    assert fitted.plot() != stamped
    for real in (find_blocks("edges.csv"), BlocksResult.from_json(no_mark(called))):
        assert not real.rehearsal
    with pytest.raises(InvalidInput, match="rehearsal is neither true nor false"):
        BlocksResult.from_json({**called.to_json(), "rehearsal": "no"})


def no_mark(result: BlocksResult) -> dict[str, Any]:
    """The JSON of before rehearsals were marked."""
    return {name: value for name, value in result.to_json().items() if name != "rehearsal"}


def test_distances() -> None:
    ring = "\n".join(f"{i},{(i + 1) % NODES}" for i in range(NODES))
    Path("ring.csv").write_text(f"u,v\n{ring}\n", encoding="utf-8")
    found = find_blocks("edges.csv")
    found.write("b.json")
    printed = answer("distance", "edges.csv", "ring.csv")
    assert exact(compare_networks("edges.csv", "ring.csv").to_json()) == printed
    assert answer("distance", "b.json", "ring.csv") == printed
    for blocks in (found, found.graphon, Blocks().fit("edges.csv")):
        assert exact(compare_networks(blocks, "ring.csv").to_json()) == printed
    again = NetworkComparison.from_json(printed)
    assert again.to_json() == printed
    assert "distance " in again._repr_html_()


def test_limits() -> None:
    find_blocks("edges.csv").write("b.json")
    printed = answer("limits", "edges.csv", "--plot", "p.png")
    called = network_limits("edges.csv")
    assert exact(called.to_json()) == printed
    assert exact(network_limits("b.json").to_json()) == answer("limits", "b.json") == printed
    assert NetworkLimits.from_json(printed) == called
    assert Path("p.png").read_bytes() == called.picture()
    assert called.detectability.regime in called._repr_html_()
    case = ("--n", "1000", "--k", "4", "--rho", "0.2", "--between", "1e-1")
    asked = network_limits(n=1000, k=4, rho=0.2, between=0.1)
    assert exact(asked.to_json()) == answer("limits", *case)
    assert asked.measured is None
    # Where blocks are joined as chance has it, no degree is enough for a search: none in JSON.
    even = network_limits(n=50, k=2, rho=0.5, between=1 - 1e-16)
    assert NetworkLimits.from_json(exact(even.to_json())) == even


def test_simulated_networks() -> None:
    words = ("--n", "80", "--k", "2", "--rho", "0.4", "--seed", "5")
    printed = answer("simulate", "town", *words)
    drawn = simulate_network(80, 2, rho=0.4, rng=np.random.default_rng(5))
    files = write_network(drawn, "again")
    assert printed == {"edges": "town/edges.csv", "blocks": "town/blocks.csv"}
    assert NetworkFiles.from_json(files.to_json()) == files
    for name in ("edges.csv", "blocks.csv"):
        assert Path("town", name).read_bytes() == Path("again", name).read_bytes()
    assert find_blocks("town/edges.csv", nodes="town/blocks.csv").nodes == 80


def test_a_network_is_taken_in_any_form() -> None:
    """Files, tables and matrices of one network have one answer; so have graphs, by their own names."""
    table = pd.read_csv("edges.csv")
    expected = find_blocks("edges.csv", nodes=NODES).to_json()
    matrix = np.zeros((NODES, NODES), dtype=int)
    matrix[table.u, table.v] = matrix[table.v, table.u] = 1
    graph = networkx.Graph()
    graph.add_nodes_from(range(NODES))
    graph.add_edges_from(table.itertuples(index=False, name=None))
    pairs = table.to_numpy()
    for given in (table, table.rename(columns={"u": "source", "v": "target"}), pairs):
        assert find_blocks(given, nodes=NODES).to_json() == expected
    for given in (matrix, pd.DataFrame(matrix), graph, Path("edges.csv")):
        nodes = NODES if isinstance(given, Path) else None
        assert find_blocks(given, nodes=nodes).to_json() == expected
    odd = table.rename(columns={"u": "x", "v": "y"})
    assert find_blocks(odd, nodes=NODES, columns=("x", "y")).to_json() == expected
    with pytest.raises(ValueError, match="a table must have columns u,v or"):
        find_blocks(odd)
    with pytest.raises(ValueError, match="the table has a row that is no pair of nodes"):
        find_blocks(pd.DataFrame({"u": [0, 1, None], "v": [1, 2, 3]}))
    gap = pd.DataFrame({"u": [0.0, 1.0], "v": ["a", "b"]})
    assert set(find_blocks(gap, 1).labels) == {"0", "a", "1", "b"}


@pytest.mark.parametrize("given", ["edges.csv", "table", "pairs"])
def test_private_edges_do_not_say_who_is_there(given: str) -> None:
    ledger = Ledger.rehearsal(PureDP(12), unit="edge", neighbors=FlippedEdge())
    table = pd.read_csv("edges.csv")
    graph = {"table": table, "pairs": table.to_numpy()}.get(given, given)
    with pytest.raises(InvalidParameter, match="nodes"):
        release_blocks(graph, epsilon=8, ledger=ledger)
    assert not ledger.statement().entries


def test_a_network_does_not_print_its_edges() -> None:
    for given in ("edges.csv", pd.read_csv("edges.csv").to_numpy()):
        words = repr(named_network(given, nodes=NODES, private=True))
        assert "names=" in words
        assert "edges" not in words
        assert "array" not in words


def test_files_of_the_first_version_open() -> None:
    """What `graph blocks --out` wrote before results were typed: without losses and neighbors."""
    old = {
        "format": "sfumato-blocks/1", "nodes": 4, "k": 2, "detectable": True, "hopeless": False,
        "reason": "2 blocks foretell held-out edges better than one", "shares": [0.5, 0.5],
        "matrix": [[0.5, 0.1], [0.1, 0.5]], "density": 0.3, "signals": [1.5], "rate": 0.1,
        "labels": {"a": 0, "b": 0, "c": 1, "d": 1}, "guarantee": [], "entries": [],
    }  # fmt: skip
    Path("old.json").write_text(json.dumps(old), encoding="utf-8")
    found = read_blocks("old.json")
    assert (found.k, found.labels["c"], found.losses) == (2, 1, ())
    assert answer("distance", "old.json", "old.json")["upper"] == 0
    assert answer("limits", "old.json")["n"] == 4
    del old["matrix"]
    Path("old.json").write_text(json.dumps(old), encoding="utf-8")
    with pytest.raises(ValueError, match=r"old.json is not blocks .* it has no 'matrix'"):
        read_blocks("old.json")

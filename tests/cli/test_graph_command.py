"""`sfumato graph`: blocks, distances and limits in words, files and exit codes."""

from __future__ import annotations

import csv
import functools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from tests.cli.sense_runs import alone
from typer.main import get_command
from typer.testing import CliRunner, Result

from sfumato.cli.main import app
from sfumato.figures import sheet
from sfumato.graphon import BlockGraphon, Network, sample_graph
from sfumato.privacy import FlippedEdge, Ledger, PureDP

pytestmark = pytest.mark.unit

_command = functools.cache(get_command)
NODES = 120
TWO = BlockGraphon([[0.5, 0.05], [0.05, 0.5]])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(tmp_path, monkeypatch)
    monkeypatch.setattr(sheet, "DPI", 50)


@pytest.fixture
def network(rng: np.random.Generator) -> Network:
    """Two clear blocks, in edges.csv, and its nodes in nodes.txt."""
    drawn = sample_graph(TWO, NODES, rng).network
    table("edges.csv", drawn.edges.tolist())
    Path("nodes.txt").write_text(
        "# all of them\n" + "\n".join(map(str, range(NODES))), encoding="utf-8"
    )
    return drawn


def table(path: str, rows: Iterable[Iterable[Any]], header: str = "u,v") -> None:
    lines = [",".join(map(str, row)) for row in rows]
    Path(path).write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")


def run(*words: str) -> Result:
    with mock.patch("typer.testing._get_command", _command):
        result = CliRunner().invoke(app, ["graph", *words])
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result


def ended(code: int, *words: str) -> str:
    result = run(*words)
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.stderr


def answer(*words: str) -> Any:
    result = run(*words, "--json")
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return json.loads(result.stdout)


# blocks


def test_blocks_are_found_shown_and_kept(network: Network) -> None:
    found = run("blocks", "edges.csv", "--labels", "l.csv", "--out", "b.json", "--plot", "p.png")
    assert found.exit_code == 0, found.output
    assert (
        f"2 blocks of {NODES} nodes: 2 blocks foretell held-out edges better than one"
        in found.stdout
    )
    assert f"{NODES} nodes, {len(network.edges):,} edges" in found.stderr
    assert "written: b.json, l.csv, p.png" in found.stderr
    assert Path("p.png").read_bytes().startswith(b"\x89PNG")
    kept = json.loads(Path("b.json").read_text(encoding="utf-8"))
    rows = list(csv.DictReader(Path("l.csv").read_text(encoding="utf-8").splitlines()))
    assert {row["node"]: int(row["block"]) for row in rows} == kept["labels"]
    assert kept == {"format": "sfumato-blocks/1", **answer("blocks", "edges.csv")}
    assert np.allclose(np.diag(kept["matrix"]), 0.5, atol=0.1)


def test_one_block_where_there_is_nothing_to_find(rng: np.random.Generator) -> None:
    table("edges.csv", sample_graph(BlockGraphon([[0.1]]), NODES, rng).network.edges.tolist())
    found = answer("blocks", "edges.csv")
    assert (found["k"], found["detectable"], found["signals"]) == (1, False, [])
    assert "no better than one" in found["reason"]


def test_private_blocks_are_paid_for(network: Network) -> None:
    Ledger.create(
        Path("e.ledger"), PureDP(12), unit="edge", source="calls", neighbors=FlippedEdge()
    )
    words = (
        "blocks",
        "edges.csv",
        "--k",
        "2",
        "--epsilon",
        "8",
        "--ledger",
        "e.ledger",
        "--nodes",
        "nodes.txt",
    )
    found = run(*words)
    assert found.exit_code == 0, found.output
    assert (
        "paid epsilon 7.6 and epsilon 0.4: one edge added or removed, the nodes public"
        in found.stdout
    )
    assert f"{len(network.edges):,} edges" not in found.output
    assert Ledger(Path("e.ledger")).statement().spent.epsilon == 8
    said = ended(3, *words)
    assert (
        "asked epsilon 7.6 and epsilon 0.4, epsilon 4 left in e.ledger; nothing was released"
        in said
    )


def test_private_blocks_need_public_nodes(network: Network) -> None:
    said = ended(2, "blocks", "edges.csv", "--epsilon", "1", "--ledger", "none.ledger")
    assert "say which nodes there are by --nodes" in said
    words = (
        "blocks",
        "edges.csv",
        "--epsilon",
        "1",
        "--nodes",
        "nodes.txt",
        "--ledger",
        "none.ledger",
    )
    made = "sfumato ledger create none.ledger --epsilon 3 --unit edge --neighbors flipped-edge --source NAME"
    assert f"there is no ledger none.ledger; make one with: {made}; nothing was read" in ended(
        4, *words
    )
    Ledger.create(Path("none.ledger"), PureDP(1), unit="user", source="calls")
    said = ended(4, *words)
    assert f"per user, and edges need one made like: {made}" in said


@pytest.mark.parametrize("row", ["3,", "3,somebody", ",4"])
def test_what_is_wrong_with_private_edges_is_not_said(row: str, network: Network) -> None:
    Ledger.create(
        Path("e.ledger"), PureDP(12), unit="edge", source="calls", neighbors=FlippedEdge()
    )
    with Path("edges.csv").open("a", encoding="utf-8") as file:
        file.write(f"{row}\n")
    said = ended(
        4, "blocks", "edges.csv", "--epsilon", "8", "--ledger", "e.ledger", "--nodes", "nodes.txt"
    )
    assert "edges.csv has a" in said
    assert not any(one in said for one in ("row 1", "edge 1", "3", "somebody"))
    assert not Ledger(Path("e.ledger")).statement().entries


def test_a_ledger_of_the_local_model_pays_for_no_blocks() -> None:
    Ledger.create(
        Path("own.ledger"),
        PureDP(12),
        unit="edge",
        source="calls",
        neighbors=FlippedEdge(),
        model="local",
    )
    Path("edges.csv").write_text("u,v\n0,1\n2,3\n4,5\n")
    Path("nodes.txt").write_text("\n".join(map(str, range(6))) + "\n")
    said = ended(
        4, "blocks", "edges.csv", "--epsilon", "8", "--ledger", "own.ledger", "--nodes", "nodes.txt"
    )
    assert "own.ledger is of the local model" in said
    assert not Ledger(Path("own.ledger")).statement().entries


def test_a_list_without_a_ledger_is_said() -> None:
    table("edges.csv", [(0, 1)])
    table("nodes.txt", [(0,), (1,)], header="# all")
    said = ended(2, "blocks", "edges.csv", "--epsilon", "1", "--nodes", "nodes.txt")
    assert "got no ledger" in said


@pytest.mark.parametrize("name", ["none.csv", "none.txt", "none.json"])
def test_no_edge_at_all_looks_like_one(name: str, network: Network) -> None:
    """They are neighbors: an error for an empty list would tell them apart."""
    Ledger.create(
        Path("e.ledger"), PureDP(12), unit="edge", source="calls", neighbors=FlippedEdge()
    )
    texts = {"none.csv": "u,v\n", "none.txt": "# none\n", "none.json": "[]"}
    Path(name).write_text(texts[name], encoding="utf-8")
    found = run(
        "blocks", name, "--k", "2", "--epsilon", "8", "--ledger", "e.ledger", "--nodes", "nodes.txt"
    )
    assert found.exit_code == 0, found.output
    assert f" of {NODES} nodes" in found.stdout


def test_loops_and_repeats_are_not_told_of_private_edges(network: Network) -> None:
    Ledger.create(
        Path("e.ledger"), PureDP(12), unit="edge", source="calls", neighbors=FlippedEdge()
    )
    table("edges.csv", [*network.edges.tolist(), (0, 0), network.edges[0].tolist()])
    assert "1 loop left out, 1 repeated edge left out" in run("blocks", "edges.csv").stderr
    found = run(
        "blocks", "edges.csv", "--epsilon", "8", "--ledger", "e.ledger", "--nodes", "nodes.txt"
    )
    assert found.exit_code == 0
    assert "left out" not in found.output


# distances


def test_a_network_is_at_no_distance_from_itself_renamed(
    network: Network, rng: np.random.Generator
) -> None:
    names = rng.permutation(NODES)
    table("again.csv", names[network.edges].tolist())
    run("blocks", "edges.csv", "--out", "b.json")
    found = answer("distance", "b.json", "again.csv")
    # The guard keeps other edges back, so that single nodes may lie elsewhere.
    assert found["upper"] < 0.05
    assert found["blocks"] == [2, 2]
    table("ring.csv", [(i, (i + 1) % NODES) for i in range(NODES)])
    assert answer("distance", "b.json", "ring.csv")["lower"] > 0.1
    assert "distance " in ended(0, "distance", "b.json", "b.json")
    assert answer("distance", "b.json", "b.json")["upper"] == 0


# limits


def test_limits_are_said_before_anyone_collects(network: Network) -> None:
    said = ended(
        0,
        "limits",
        "--n",
        "1000",
        "--k",
        "4",
        "--rho",
        "0.2",
        "--between",
        "0.1",
        "--plot",
        "p.png",
    )
    assert (
        "recoverable exactly: separation 3.38 is above 1: every node's block can be found" in said
    )
    assert Path("p.png").read_bytes().startswith(b"\x89PNG")
    found = answer("limits", "--n", "1000", "--k", "4", "--rho", "0.01", "--between", "0.6")
    assert found["regime"] == "impossible"
    assert found["floor"] <= found["attained"]
    run("blocks", "edges.csv", "--out", "b.json")
    mine = answer("limits", "edges.csv")
    assert mine == answer("limits", "b.json")
    assert (mine["n"], mine["k"]) == (NODES, 2)
    assert mine["within"] == pytest.approx(0.5, abs=0.05)
    assert mine["between"] == pytest.approx(0.05, abs=0.05)


def test_limits_say_what_is_clear_and_what_is_not(rng: np.random.Generator) -> None:
    """Two clear blocks and a third that is almost like the second: something is told, not everything."""
    truth = BlockGraphon([[0.6, 0.05, 0.05], [0.05, 0.6, 0.5], [0.05, 0.5, 0.6]])
    table("edges.csv", sample_graph(truth, 2 * NODES, rng).network.edges.tolist())
    run("blocks", "edges.csv", "--k", "3", "--out", "b.json")
    said = ended(0, "limits", "b.json").splitlines()
    assert said[1].startswith("signals ")
    assert "of 2 directions above 1, which fast methods need in large networks" in said[1]
    assert said[2] == "the faintest of these directions, as even blocks:"
    assert said[3].startswith("240 nodes in 3 even blocks, chances ")


def test_limits_keep_the_sign_of_a_network(rng: np.random.Generator) -> None:
    """Nodes that are joined to others only: chances that the network has, not their mirror image."""
    table(
        "edges.csv",
        sample_graph(BlockGraphon([[0, 0.4], [0.4, 0]]), NODES, rng).network.edges.tolist(),
    )
    mine = answer("limits", "edges.csv")
    assert mine["within"] == pytest.approx(0, abs=0.02)
    assert mine["between"] == pytest.approx(0.4, abs=0.05)
    assert "2 even blocks, chances 0" in ended(0, "limits", "edges.csv", "--plot", "p.png")
    assert Path("p.png").exists()


# made-up networks


def test_a_made_up_network_is_one_that_can_be_asked_about() -> None:
    words = (
        "simulate",
        "town",
        "--n",
        "300",
        "--k",
        "3",
        "--rho",
        "0.4",
        "--between",
        "0.1",
        "--seed",
        "1",
    )
    assert ended(0, *words).splitlines() == ["town/edges.csv", "town/blocks.csv"]
    found = answer("blocks", "town/edges.csv", "--nodes", "town/blocks.csv")
    assert found["k"] == 3
    kept = csv.DictReader(Path("town/blocks.csv").read_text(encoding="utf-8").splitlines())
    true = {row["node"]: row["block"] for row in kept}
    pairs = {(true[node], block) for node, block in found["labels"].items()}
    assert len(pairs) == 3  # the same blocks, by other numbers
    assert "town exists already and is kept" in ended(8, *words)
    assert ended(0, "simulate", "again", *words[2:]) == "again/edges.csv\nagain/blocks.csv\n"
    assert Path("town/edges.csv").read_bytes() == Path("again/edges.csv").read_bytes()


# mistakes


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("blocks", "none.csv"), 4, "cannot read none.csv"),
        (
            ("blocks", "edges.csv", "--k", "some"),
            2,
            "--k must be auto or a whole number from 1, got 'some'",
        ),
        (("blocks", "edges.csv", "--k", "500"), 2, "k must be"),
        (("blocks", "edges.csv", "--columns", "u"), 2, "--columns must be two names with a comma"),
        (("blocks", "edges.csv", "--plot", "p.gif"), 2, "this is written as .png"),
        (("blocks", "edges.csv", "--out", "edges.csv"), 2, "this is written as .json"),
        (("blocks", "odd.txt"), 4, "edge 1 of odd.txt must be two names on a line"),
        (("blocks", "empty.txt"), 4, "empty.txt has no edges"),
        (("distance", "edges.csv", "none.json"), 4, "cannot read none.json"),
        (("limits",), 2, "give --n, --k and --rho, or an edge list"),
        (
            ("limits", "--n", "10", "--k", "2", "--rho", "2"),
            2,
            "--rho must be above 0 and at most 1, got 2",
        ),
        (
            ("limits", "--n", "10", "--k", "2", "--rho", "1", "--between", "1"),
            2,
            "leaves nothing to tell",
        ),
        (("limits", "ring.csv"), 2, "to ask about some that it might have, give --k and --rho"),
        (
            ("limits", "edges.csv", "--k", "8"),
            2,
            "2 blocks by itself: to ask about 8, give --rho as well",
        ),
        (
            ("limits", "edges.csv", "--between", "0.5"),
            2,
            "--between is a share of --rho: give both",
        ),
        (("limits", "ring.csv", "--rho", "0.5"), 2, "give --k, how many blocks to ask about"),
    ],
)
def test_a_mistake_ends_in_one_sentence(
    words: tuple[str, ...], code: int, sentence: str, network: Network
) -> None:
    Path("odd.txt").write_text("a\n", encoding="utf-8")
    Path("empty.txt").write_text("# nothing\n", encoding="utf-8")
    table("ring.csv", [(i, (i + 1) % 30) for i in range(30)])
    said = ended(code, *words)
    assert sentence in said.splitlines()[-1]
    assert said.splitlines()[-1].startswith("sfumato: ")

"""Networks of blocks: drawn and fitted beside networkx and graspologic in one run, one thread, CPU time.

graspologic needs NumPy below 2, so it runs in an environment of its own, by a subprocess of this
run:

    python3.11 -m venv /tmp/grasp && /tmp/grasp/bin/pip install "graspologic==3.4.4" "numpy<2"

or where SFUMATO_GRASPOLOGIC says its Python is. Without it its rows say so.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from sfumato.graphon import BlockGraphon, Blocks, Network, sample_graph
from sfumato.graphon.estimation import estimation_error, from_labels, least_squares

PYTHON = os.environ.get("SFUMATO_GRASPOLOGIC", "/tmp/grasp/bin/python")  # noqa: S108 - a place to look
LIMIT = 600.0

PEER = """
import json, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
import graspologic
from graspologic.models import SBMEstimator
from graspologic.simulations import sbm
folder, sizes, matrix = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
np.random.seed(7)
start = time.process_time()
drawn = sbm(sizes, matrix)
sampling = time.process_time() - start
graph, truth = np.load(folder + "/graph.npy"), np.load(folder + "/truth.npy")
fits = []
for known in (False, True):
    least, most = (4, 4) if known else (1, 10)
    model = SBMEstimator(directed=False, loops=False, min_comm=least, max_comm=most)
    start = time.process_time()
    model.fit(graph)
    spent = time.process_time() - start
    apart = model.p_mat_ - truth
    np.fill_diagonal(apart, 0)  # it has no chance of a loop there, and needs none
    error = float(np.sqrt(np.mean(apart ** 2)))
    fits.append([spent, error, int(len(model.block_p_))])
found = {"version": graspologic.__version__, "numpy": np.__version__, "sampling": sampling, "fits": fits}
print(json.dumps(found))
"""


def seconds(work: Callable[..., object], *given: object, least: float = 0.3) -> float:
    """CPU time of one call, repeated until the clock can tell."""
    work(*given)
    spent, count = 0.0, 0
    while spent < least:
        start = time.process_time()
        work(*given)
        spent += time.process_time() - start
        count += 1
    return spent / count


def once(work: Callable[..., object], *given: object) -> float:
    """CPU time of a single call: for peers that take long."""
    start = time.process_time()
    work(*given)
    return time.process_time() - start


def by_graspologic(
    network: Network, chances: np.ndarray, *, sizes: list[int], matrix: np.ndarray
) -> Any:
    """Its times and errors on the same model and the same network, or why there are none."""
    if not Path(PYTHON).exists():
        return f"not run: {PYTHON} is missing"
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/graph.npy", network.adjacency.toarray())
        np.save(f"{folder}/truth.npy", chances)
        given = [PYTHON, "-c", PEER, folder, json.dumps(sizes), json.dumps(matrix.tolist())]
        done = subprocess.run(given, capture_output=True, text=True, timeout=LIMIT, check=False)  # noqa: S603
    if done.returncode:
        return f"not run: {done.stderr.strip().splitlines()[-1]}"
    return json.loads(done.stdout.strip().splitlines()[-1])


def dense(network: Network) -> np.ndarray:
    """What graspologic gives: every pair of nodes."""
    return network.adjacency.toarray()


def as_dicts(network: Network) -> nx.Graph:
    """What networkx gives: dictionaries of dictionaries."""
    graph = nx.Graph()
    graph.add_nodes_from(range(network.size))
    graph.add_edges_from(network.edges.tolist())
    return graph


def verdict(ratio: float, wanted: float) -> str:
    """A ratio beside the one that was asked for."""
    return f"{ratio:.0f}x | {wanted:g}x: {'met' if ratio >= wanted else 'MISSED'}"


def sampling(rng: np.random.Generator, peer: Any, *, sizes: list[int], matrix: np.ndarray) -> None:
    """Four blocks, 6000 nodes, average degree 30."""
    labels = np.repeat(np.arange(4), sizes)
    graphon, n = BlockGraphon(matrix), sum(sizes)
    drawn = sample_graph(graphon, n, rng, labels=labels)
    ours = seconds(lambda: sample_graph(graphon, n, rng, labels=labels))
    in_dense, in_dicts = seconds(dense, drawn.network), seconds(as_dicts, drawn.network)
    seed = int(rng.integers(2**31))
    theirs = once(lambda: nx.stochastic_block_model(sizes, matrix.tolist(), seed=seed))
    title = f"draw 4 blocks, n = {n}, {len(drawn.network.edges)} edges"
    print(f"| {title} | ms | times ours | asked for | in its format |")
    print("|---|---|---|---|---|")
    print(f"| sfumato, pairs of nodes | {1e3 * ours:.1f} | 1 | | |")
    same = theirs / (ours + in_dicts)
    print(
        f"| networkx, dictionaries | {1e3 * theirs:.0f} | {verdict(theirs / ours, 100)} | {same:.0f}x |"
    )
    if isinstance(peer, str):
        print(f"| graspologic | {peer} | | | |")
    else:
        spent = peer["sampling"]
        same = spent / (ours + in_dense)
        print(
            f"| graspologic, n x n array | {1e3 * spent:.0f} | {verdict(spent / ours, 100)} | {same:.0f}x |"
        )
    print(
        "\nIn its format: ours with the time to write edges as the peer does, so that drawing is left."
    )


def fitting(network: Network, truth: BlockGraphon, peer: Any, *, labels: np.ndarray) -> None:
    """Four blocks, 1200 nodes: the same network for both."""

    def shown(name: str, spent: float, error: float, *, k: int, first: float) -> None:
        asked = "k = 4" in name and spent != first
        against = verdict(spent / first, 5) if asked else f"{spent / first:.1f}x |"
        print(f"| {name} | {1e3 * spent:.0f} | {error:.5f} | {k} | {against} |")

    print("| fit 4 blocks, n = 1200 | ms | error | blocks | times ours | asked for |")
    print("|---|---|---|---|---|---|")
    fitted, chosen = least_squares(network, 4), Blocks().fit(network)
    given = seconds(least_squares, network, 4)
    auto = seconds(lambda: Blocks().fit(network))
    error = estimation_error(fitted, truth, labels)
    shown("sfumato, least squares, k = 4", given, error, k=fitted.graphon.k, first=given)
    if isinstance(peer, str):
        print(f"| graspologic | {peer} | | | | |")
    else:
        spent, error, k = peer["fits"][1]
        shown("graspologic, k = 4", spent, error, k=k, first=given)
    found = from_labels(network, chosen.labels_)
    error = estimation_error(found, truth, labels)
    shown("sfumato, number of blocks chosen, guarded", auto, error, k=chosen.k_, first=auto)
    if not isinstance(peer, str):
        spent, error, k = peer["fits"][0]
        shown("graspologic, number chosen of 1 to 10", spent, error, k=k, first=auto)


def large(rng: np.random.Generator) -> None:
    """A million nodes alone."""
    n = 10**6
    graphon = BlockGraphon(10 / n * (0.4 * np.ones((4, 4)) + 2.4 * np.eye(4)))
    print("| draw 4 blocks, average degree 10 | s |")
    print("|---|---|")
    print(f"| n = 1e6 | {once(lambda: sample_graph(graphon, n, rng)):.2f} |")


def main() -> None:
    """All tables; networks come from a seed nobody chose: the bytes of the name of this file."""
    rng = np.random.default_rng(list(b"benchmarks/graphon.py"))
    sizes = [1500] * 4
    matrix = 0.005 * (0.4 * np.ones((4, 4)) + 2.4 * np.eye(4))
    truth = BlockGraphon(np.full((4, 4), 0.02) + 0.18 * np.eye(4))
    drawn = sample_graph(truth, 1200, rng)
    chances = truth.matrix[np.ix_(drawn.labels, drawn.labels)]
    peer = by_graspologic(drawn.network, chances, sizes=sizes, matrix=matrix)
    packages = f"networkx {version('networkx')}, numpy {version('numpy')}"
    if not isinstance(peer, str):
        packages += f"; graspologic {peer['version']} with numpy {peer['numpy']}"
    print("\n## Graphons\n")
    print(f"`benchmarks/graphon.py`, one run, one thread, CPU time; {packages}.\n")
    sampling(rng, peer, sizes=sizes, matrix=matrix)
    print()
    fitting(drawn.network, truth, peer, labels=drawn.labels)
    print()
    large(rng)
    print()


if __name__ == "__main__":
    main()

"""Which community a source is in, when communities are only estimated: joins graphons and sensing."""

from __future__ import annotations

import numpy as np
from experiments.graphon.protocol import FloatArray, generator
from experiments.sensors.points import Part, Point, share

from sfumato.graphon import Blocks
from sfumato.privacy import MovedMass, gaussian_sigma
from sfumato.sensing import graph_diffusion, sensitivity
from sfumato.sensing.planning import block_graph

NODES, INSIDE, ACROSS, RATE, DELTA = 500, 0.05, 0.001, 2.0, 0.1
DRAWS = 100  # of source and noise, on each graph


def run(*, quick: bool) -> Part:
    """How often the block with the largest mean reading is the source's, by three ways to know blocks."""
    graphs = 1 if quick else 8
    nodes = 200 if quick else NODES
    hits: dict[tuple[str, float], int] = {}
    for number in range(graphs):
        rng = generator("sources", nodes, number)
        graph, labels = block_graph(
            [nodes // 2] * 2, inside=INSIDE * NODES / nodes, across=ACROSS, rng=rng
        )
        operator = graph_diffusion(graph, RATE)
        moved = sensitivity(operator, MovedMass(1, "graph")).l2
        columns = operator.columns(np.arange(nodes))
        guessed = np.asarray(Blocks(k=2).fit(graph).labels_)
        for epsilon in (1.0, 4.0):
            sigma = gaussian_sigma(epsilon, DELTA, sensitivity=moved)
            at = rng.integers(nodes, size=DRAWS)
            readings = columns[:, at].T + sigma * rng.standard_normal((DRAWS, nodes))
            answers = {
                "true blocks": _by_blocks(readings, labels, labels),
                "estimated blocks": _by_blocks(readings, guessed, labels),
                "largest reading": labels[readings.argmax(axis=1)],
            }
            right = {name: answer == labels[at] for name, answer in answers.items()}
            right["estimated as true"] = answers["estimated blocks"] == answers["true blocks"]
            for name, some in right.items():
                hits[name, epsilon] = hits.get((name, epsilon), 0) + int(some.sum())
    total = graphs * DRAWS
    points = tuple(
        Point("sources", name, "value", "epsilon", epsilon, *share(right, total), total)
        for (name, epsilon), right in hits.items()
    )
    rows = [["epsilon", "blocks known by", "right"]]
    rows += [[f"{p.x:g}", p.series, f"{p.middle:.3f} [{p.low:.3f}, {p.high:.3f}]"] for p in points]
    text = (
        f"The set-up of figure 3 of the full version: {nodes} nodes, {graphs} graphs with {DRAWS} sources "
        f"each, tau = {RATE:g}, delta = {DELTA:g}. The answer is the block with the largest mean reading. "
        "'As true': how often estimated and true blocks answer the same."
    )
    return Part("sources", "Communities that are only estimated", text, points, (("", rows),))


def _by_blocks(
    readings: FloatArray, blocks: np.typing.NDArray[np.int64], labels: np.typing.NDArray[np.int64]
) -> np.typing.NDArray[np.int64]:
    """The community that most nodes of the strongest block belong to."""
    count = int(blocks.max()) + 1
    means = np.stack([readings[:, blocks == one].mean(axis=1) for one in range(count)])
    homes = np.array([np.bincount(labels[blocks == one]).argmax() for one in range(count)])
    return np.asarray(homes[means.argmax(axis=0)])

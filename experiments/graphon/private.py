"""Private blocks: how often pure chance shows a direction, and how much of epsilon labels should have."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from experiments.graphon.protocol import generator, mean_point
from experiments.sensors.points import Part, Point, Table, share

from sfumato.graphon import (
    TRACY_WIDOM,
    BlockGraphon,
    blocks_in,
    noise_edge,
    private_blocks,
    sample_graph,
    square,
)
from sfumato.graphon.estimation import estimation_error
from sfumato.privacy import FlippedEdge, KeyedNoise, Ledger, PureDP

FOUR = BlockGraphon(np.full((4, 4), 0.02) + 0.18 * np.eye(4))
SHARES = (Fraction(4, 5), Fraction(19, 20), Fraction(49, 50))


def run(*, quick: bool) -> Part:
    """The noise edge on networks without blocks, and the error of all chances by how epsilon is split."""
    n, trials = (100, 20) if quick else (400, 300)
    found = [point for degree in (2, 4, 8, n // 10) for point in _chance(n, degree, trials)]
    nodes, graphs = (300, 2) if quick else (800, 8)
    found += [point for epsilon in (1.5, 2.0) for point in _split(nodes, epsilon, graphs)]
    text = (
        f"Of {trials} networks of {n} nodes without blocks, the share in which something rises above the "
        "edge; 'semicircle' is its edge with the quantile of Tracy and Widom alone. And the error of all "
        f"chances of {nodes} nodes in 4 blocks, chances 0.2 and 0.02, when so much of epsilon flips the "
        f"dyads: the mean of {graphs} networks."
    )
    rows = [("Chance", _rows(found, "noise")), ("The split", _rows(found, "split"))]
    return Part("private", "Private blocks", text, tuple(found), tuple(rows))


def _chance(n: int, degree: float, trials: int) -> list[Point]:
    above = {"ours": 0, "semicircle": 0}
    for number in range(trials):
        rng = generator("noise", n, degree, number)
        dyads = (rng.random(n * (n - 1) // 2) < degree / n).astype(np.int64)
        edge, mean = noise_edge(square(dyads, n)), float(dyads.mean())
        largest = edge * blocks_in(dyads, n, 2).strengths[0]
        above["ours"] += largest > edge
        plain = math.sqrt(n * mean * (1 - mean)) * (2 + TRACY_WIDOM * n ** (-2 / 3))
        above["semicircle"] += largest > plain
    return [
        Point("noise", name, "value", "degree", degree, *share(hits, trials), trials)
        for name, hits in above.items()
    ]


def _split(n: int, epsilon: float, graphs: int) -> list[Point]:
    errors: dict[Fraction, list[float]] = {part: [] for part in SHARES}
    for number in range(graphs):
        drawn = sample_graph(FOUR, n, generator("split", n, number))
        for part in SHARES:
            ledger = Ledger.rehearsal(PureDP(4), unit="edge", neighbors=FlippedEdge())
            key = generator("split", n, number, epsilon, part).bytes(32)
            out = private_blocks(
                drawn.network,
                4,
                epsilon=str(epsilon),
                ledger=ledger,
                noise=KeyedNoise(key),
                labels_share=part,
            )
            errors[part].append(estimation_error(out.estimate, FOUR, drawn.labels))
    return [
        mean_point("split", f"{float(part):g} to labels", "epsilon", epsilon, some)
        for part, some in errors.items()
    ]


def _rows(found: list[Point], figure: str) -> Table:
    here = [point for point in found if point.figure == figure]
    return [
        [here[0].axis, "series", "value"],
        *([f"{p.x:g}", p.series, f"{p.middle:.4f} [{p.low:.4f}, {p.high:.4f}]"] for p in here),
    ]

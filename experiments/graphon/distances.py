"""The three distances of chapter 4: an example where all differ, pairs where they agree, planted pairs."""

from __future__ import annotations

import math

import numpy as np
from experiments.graphon.protocol import definite, generator, symmetric
from experiments.sensors.points import Part, Point, Table, exact_point, share

from sfumato.graphon import BlockGraphon, distance, permuted_distance, twice_permuted_distance


def run(*, quick: bool) -> Part:
    """All three distances, as points and a table."""
    found: list[Point] = []
    a, b = BlockGraphon(1 - np.eye(3)), BlockGraphon(np.eye(3))
    middle = distance(a, b)
    ends = (twice_permuted_distance(a, b).upper, middle.upper, permuted_distance(a, b).upper)
    for name, value, hand in zip(
        ("rows and columns apart", "delta_2", "together"),
        ends,
        (1 / math.sqrt(3), math.sqrt(5) / 3, 1.0),
        strict=True,
    ):
        found.append(exact_point("strict", name, "k", 3, value))
        found.append(exact_point("strict", f"{name}, off by", "k", 3, abs(value - hand)))
    found.append(exact_point("strict", "width", "k", 3, middle.upper - middle.lower))
    rows: Table = [["k", "kind", "apart", "delta_2 from", "to", "together"]]
    rows.append(["3", "J - I, I", *(f"{one:.4f}" for one in (ends[0], middle.lower, *ends[1:]))])
    for k in (3, 5) if quick else (3, 5, 7):
        worst = 0.0
        for number in range(2 if quick else 6):
            rng = generator("definite", k, number)
            one, other = definite(k, rng), definite(k, rng)
            low, high = twice_permuted_distance(one, other), permuted_distance(one, other)
            between = distance(one, other)
            worst = max(worst, high.upper - low.lower, between.upper - between.lower)
        rows.append(
            [
                str(k),
                "definite (one of them)",
                *(f"{v:.4f}" for v in (low.upper, between.lower, between.upper, high.upper)),
            ]
        )
        found.append(exact_point("definite", "widest", "k", k, worst))
    found += [_planted(k, pairs=3 if quick else 8) for k in ((6, 12) if quick else (6, 12, 30))]
    text = (
        "delta-double-hat (rows and columns permuted apart) is at most delta_2, which is at most delta-hat "
        "(permuted together). All three are the same where the centered matrices are definite alike. "
        "Planted: a permuted matrix with noise of deviation 0.05 / sqrt(2), found or not."
    )
    return Part("distances", "Three distances", text, tuple(found), (("", rows),))


def _planted(k: int, pairs: int) -> Point:
    hits = 0
    for number in range(pairs):
        rng = generator("planted", k, number)
        matrix, order = symmetric(rng.random((k, k))), rng.permutation(k)
        noise = rng.normal(0, 0.05, (k, k))
        moved = matrix[np.ix_(order, order)]
        other = np.clip(moved + (noise + noise.T) / 2, 0, 1)
        planted = float(np.linalg.norm(moved - other)) / k
        hits += distance(BlockGraphon(matrix), BlockGraphon(other)).upper <= planted * (1 + 1e-9)
    middle, _, _ = share(hits, pairs)
    return exact_point("planted", "found", "k", k, middle)

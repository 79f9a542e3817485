"""What is printed in chapter 5 and does not follow, as numbers; and the phase diagram."""

from __future__ import annotations

import math

import numpy as np
from experiments.sensors.points import Part, Picture, Point, exact_point

from sfumato.figures import phase_picture
from sfumato.graphon import error_floor
from sfumato.graphon.limits import REGIMES, divergence_bound, packing, phases, signal

NODES = 1000
CONTRAST = 0.8


def run(*, quick: bool) -> Part:
    """(5.10), (5.7), table 5.1 and theorem 5.4's constant."""
    found: list[Point] = []
    n, k, c = 400, 8, 0.05
    for density in (1.0, 0.1, 0.01, 0.001):
        kl = divergence_bound(n, density, contrast=c * min(1.0, k / (n * math.sqrt(density))))
        limit = 32 * c**2 * k**2
        found.append(exact_point("eq-5.10", "over printed", "rho", density, kl / (limit * density)))
        found.append(exact_point("eq-5.10", "over corrected", "rho", density, kl / limit))
    for blocks in (60, 300, 400):
        pairs = math.comb(blocks, 2)
        chance = 2 * math.lgamma(blocks + 1) - 2 * (blocks**2 / 6 - pairs / 2) ** 2 / pairs
        found.append(exact_point("eq-5.7", "log of printed chance", "k", blocks, chance))
        found.append(
            exact_point("eq-5.7", "log of matrices", "k", blocks, packing(blocks).log_count)
        )
    for nodes in (10**3, 10**4, 10**5):
        p, q, many = 3 / nodes, 1 / nodes, 5
        printed = nodes**2 * (p - q) ** 2 * (many - 1) / (p + (many + 1) * q)
        ours = (many - 1) * signal(nodes, many, within=p, between=q)
        found.append(exact_point("table-5.1", "printed", "n", nodes, printed))
        found.append(exact_point("table-5.1", "corrected", "n", nodes, ours))
    for blocks in (60, 200, 1000):
        for density in (1e-5, 1e-3, 0.1):
            value = error_floor(20_000, blocks, density).value
            order = min(density, math.sqrt(density) * blocks / 20_000)
            found.append(
                exact_point("thm-5.4", f"constant, k = {blocks}", "rho", density, value / order)
            )
    text = (
        "(5.10): the divergence of two members of the packing family over its bound. (5.7): the chance that "
        "two random matrices are close must be below 1. Table 5.1: a = 3, b = 1, five blocks, where n must "
        "not matter. Theorem 5.4: our lower bound, which has no hidden constant, over its order."
    )
    return Part("places", "Chapter 5, corrected", text, tuple(found), (), (_phase(quick=quick),))


def _phase(*, quick: bool) -> Picture:
    densities = np.geomspace(1e-4, 1, 40 if quick else 200)
    blocks = np.unique(np.geomspace(2, 200, 20 if quick else 80).astype(int))
    drawn = phase_picture(
        densities, blocks, phases(NODES, contrast=CONTRAST, densities=densities, blocks=blocks),
        names=REGIMES, trivial=(blocks / NODES) ** 2, point=(0.05, 4),
        caption=f"{NODES:,} nodes in even blocks; between blocks a fifth of the chance within them.",
    )  # fmt: skip
    return Picture("phase", drawn, "What a network of 1,000 nodes can tell")

"""Whether independent populations of draws tell the same, so that their answer is the posterior's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.sensing.model.operators.protocol import Operator

RHAT = 1.1  # halves worth 30 independent draws each are above it for one of ten statistics in 10 runs of 100
LAW_GAP = 0.25
PARTS = 8


@dataclass(frozen=True, slots=True)
class Mixing:
    """How well two halves of the draws, made independently, agree.

    `rhat` is the largest of sqrt(1 + B / W) over the shares of mass in 8 parts of the space, the
    count and the total: B is the variance between the halves' means, W that within them [gelman92].
    `law_gap` is how far they differ in the probability that all masses are known.
    """

    rhat: float
    law_gap: float
    particles: int
    stages: int

    @property
    def mixed(self) -> bool:
        """Whether the answer may be believed."""
        return self.rhat <= RHAT and self.law_gap <= LAW_GAP

    @property
    def message(self) -> str:
        """One sentence."""
        found = f"R-hat {self.rhat:.3f} over two halves of {self.particles} draws"
        if self.mixed:
            return f"the draws mixed: {found}"
        return f"the draws did NOT mix ({found}, law gap {self.law_gap:.2f}): do not rely on the answer"


def judge(
    operator: Operator,
    cells: IntArray,
    masses: FloatArray,
    *,
    halves: FloatArray,
    half: IntArray,
    law_gap: float,
    particles: int,
    stages: int,
) -> Mixing:
    """What two halves of draws disagree by; `halves` are weights that total 1 in each `half`."""
    space = operator.space
    part = _parts(operator)
    total = masses.sum(axis=1)
    held = cells >= 0
    group = np.where(held, part[cells], PARTS)
    shares = np.stack([(masses * (group == i)).sum(axis=1) / total for i in range(PARTS)], axis=1)
    if space.size == 1:
        shares = shares[:, :0]
    statistics = np.column_stack([shares, held.sum(axis=1), total])
    means, spreads = [], []
    for h in (0, 1):
        weights = halves[half == h]
        here = statistics[half == h]
        mean = weights @ here
        means.append(mean)
        spreads.append(weights @ (here - mean) ** 2)
    between = (means[0] - means[1]) ** 2 / 2
    within = np.maximum((spreads[0] + spreads[1]) / 2, 1e-12 * np.maximum(means[0] ** 2, 1))
    rhat = float(np.sqrt(1 + (between / within).max(initial=0.0)))
    return Mixing(rhat, law_gap, particles, stages)


def _parts(operator: Operator) -> IntArray:
    """Which of 8 parts of the space each cell is in: the nearest of 8 cells that are far apart."""
    from sfumato.sensing.recovery.solver.operator_cache import cached

    return cached(operator, "parts", lambda: _find_parts(operator))


def _find_parts(operator: Operator) -> IntArray:
    space = operator.space
    places = space.places(np.arange(space.size))
    label = np.zeros(space.size, dtype=np.int64)
    nearest = space.distances_between(places[:1], places)[0]
    for i in range(1, min(PARTS, space.size)):
        chosen = int(np.argmax(nearest))
        apart = space.distances_between(places[[chosen]], places)[0]
        label[apart < nearest] = i
        nearest = np.minimum(nearest, apart)
    return label

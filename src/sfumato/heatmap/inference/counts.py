"""Noisy counts of cells with the scale of their noise: all that a posterior is made of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato._types import BoolArray, FloatArray, IntArray
from sfumato.errors import InvalidInput
from sfumato.heatmap.inference.count_noise import LAPLACE, CountNoise, count_noise
from sfumato.privacy.accounting import exact


@dataclass(frozen=True, slots=True, eq=False)
class NoisyCounts:
    """Counts of a map, in users, each with noise of its own scale; a cell may be counted twice.

    Of several `groups`, codes are group * 4**level + code. Where `ceiling` is set the count itself
    was kept back, and is only known to be at most `values`. All noise has one `law` but for its scale.
    """

    levels: IntArray
    codes: IntArray
    values: FloatArray
    scales: FloatArray
    ceiling: BoolArray
    groups: int = 1
    law: CountNoise = LAPLACE

    def __post_init__(self) -> None:
        shapes = {
            one.shape for one in (self.levels, self.codes, self.values, self.scales, self.ceiling)
        }
        if len(shapes) != 1 or self.levels.ndim != 1:
            raise InvalidInput("counts need one level, code, value and scale each; no map was made")
        if not (
            np.isfinite(self.values).all()
            and np.isfinite(self.scales).all()
            and (self.scales > 0).all()
        ):
            raise InvalidInput("counts need finite values, and scales above 0; no map was made")
        if np.any((self.levels < 0) | (self.levels > 30)):
            raise InvalidInput("counts are of cells of levels 0..30; no map was made")
        if np.any((self.codes < 0) | (self.codes >> 2 * self.levels >= self.groups)):
            raise InvalidInput(
                "counts have codes of cells that their level does not have; no map was made"
            )

    @property
    def finest(self) -> int:
        """The finest level that was counted."""
        return int(self.levels.max(initial=0))

    @property
    def last(self) -> BoolArray:
        """Which counts are of cells in which no finer cell was counted."""
        last = np.ones(self.levels.size, dtype=np.bool_)
        for level in range(self.finest):
            here, finer = self.levels == level, self.levels > level
            above = self.codes[finer] >> 2 * (self.levels[finer] - level)
            last[here] = ~np.isin(self.codes[here], above)
        return last

    @property
    def usual_scale(self) -> float:
        """The median scale of the last counts, in users: half of them have at least that noise.

        Where it is no Laplace noise, the scale of Laplace noise of the same variance.
        """
        return float(np.median(self.scales[self.last])) * self.widening

    @property
    def widening(self) -> float:
        """How many times the deviation of Laplace noise of its scale the noise has."""
        return math.sqrt(self.law.variance / 2)

    def only(self, kept: BoolArray) -> NoisyCounts:
        """Some of the counts."""
        return NoisyCounts(
            self.levels[kept],
            self.codes[kept],
            self.values[kept],
            self.scales[kept],
            self.ceiling[kept],
            self.groups,
            self.law,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain lists."""
        return {
            "levels": self.levels.tolist(),
            "codes": self.codes.tolist(),
            "values": self.values.tolist(),
            "scales": self.scales.tolist(),
            "ceiling": self.ceiling.astype(int).tolist(),
            **({} if self.law == LAPLACE else {"shape": str(self.law.shape)}),
        }

    @classmethod
    def from_json(cls, data: Any) -> NoisyCounts:
        """What `to_json` wrote; InvalidInput or ValueError for anything else."""
        levels, codes = (
            np.array(data[name], dtype=np.int64).reshape(-1) for name in ("levels", "codes")
        )
        values, scales = (
            np.array(data[name], dtype=np.float64).reshape(-1) for name in ("values", "scales")
        )
        ceiling = np.array(data["ceiling"]).reshape(-1) == 1
        shape = exact(str(data.get("shape", "1")), name="shape")
        if not 1 <= shape <= 1024:
            raise ValueError("the shape of its noise is below 1, or no party's")
        return cls(levels, codes, values, scales, ceiling, law=count_noise(shape))

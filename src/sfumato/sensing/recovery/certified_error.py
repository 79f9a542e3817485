"""What bounds how wrong an answer can be at worst: a band of the distribution function, with its proofs.

All sources that agree with the readings contain the true ones with a stated chance. The smallest and the
largest share of mass that they can have to the left of a place form a band of the distribution function, for
all places at once, and the band bounds the earth mover's distance of any answer. Nothing here searches:
`error_bound` finds the proofs, `verify_error` checks them. Proof: docs/proofs/certified-error.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from sfumato._types import FloatArray
from sfumato._validate import read_only
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.model.operators.weighted import gains_of

SAMPLE = 512  # cells that stand for all others, to find the directions they move readings in
WEAK = 1 / 3  # of sigma: what one source cannot move by as much is not looked at


@dataclass(frozen=True, slots=True, eq=False)
class ErrorCertificate:
    """The answer's earth mover's distance to the truth is at most `bound`, with chance `level`.

    It holds whatever the sources are, if the operator and the noise are right and no cell holds more than
    the largest mass. `low` and `high` bound the share of all mass to the left of each of `cuts`.

    Attributes:
        level: The chance, over the noise.
        bound: In the unit of the line, both scaled to mass 1.
        least: The bound of an answer half way between `low` and `high`: none is certified a smaller one.
        anywhere: Whether sources may stand anywhere in their cells; if not, at the cells' positions only.
        offset: Whether it holds for any offset that all readings have in common.
        cuts: Places along the line.
        low: The smallest share to the left of each.
        high: The largest.
        directions: Orthonormal combinations of readings that were looked at: sensors by directions.
        duals: What proves `high` of every cut, then `low`: a row of as many numbers for each.
    """

    level: float
    bound: float
    least: float
    anywhere: bool
    offset: bool
    cuts: FloatArray
    low: FloatArray
    high: FloatArray
    directions: FloatArray
    duals: FloatArray

    def __post_init__(self) -> None:
        for name in ("cuts", "low", "high", "directions", "duals"):
            object.__setattr__(self, name, read_only(np.array(getattr(self, name), dtype=float)))
        count, cuts = self.duals.shape[0], self.cuts.shape
        if not (self.low.shape == self.high.shape == cuts and count == 2 * self.cuts.size):
            raise InvalidParameter(
                "a certificate has two shares and two proofs for each cut; nothing was certified"
            )

    def to_json(self) -> dict[str, Any]:
        """As it is saved and printed."""
        return {
            "level": self.level,
            "bound": self.bound,
            "least": self.least,
            "anywhere": self.anywhere,
            "offset": self.offset,
            "cuts": self.cuts.tolist(),
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "directions": self.directions.tolist(),
            "duals": self.duals.tolist(),
        }

    def summary(self) -> dict[str, Any]:
        """The same without the proofs."""
        return {n: v for n, v in self.to_json().items() if n not in ("directions", "duals")}

    @staticmethod
    def from_json(data: Any) -> ErrorCertificate:
        """What a JSON object states."""
        numbers = {name: float(data[name]) for name in ("level", "bound", "least")}
        return ErrorCertificate(**{**data, **numbers})


def strong_directions(
    operator: Operator,
    *,
    sigma: float,
    max_mass: float,
    offset: bool,
    most: int | None = None,
) -> FloatArray:
    """Orthonormal combinations of readings that one source moves by more than a third of sigma.

    They depend on what is public alone. What is left out of them is not used, which costs width and
    nothing else. With `most` it is at most so many of those that all sources together move most, up to where
    the next is weakest beside the last, so that rounding does not choose between equals.
    """
    m, n = operator.shape
    cells = np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.int64))
    columns = operator.columns(cells)
    level = gains_of(operator) / np.linalg.norm(
        gains_of(operator)
    )  # the way an offset moves readings
    if offset:
        columns = columns - np.outer(level, level @ columns)
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    reach = max_mass * np.abs(left.T @ columns).max(axis=1)
    seen = np.flatnonzero(reach > WEAK * sigma)
    if most is not None and seen.size > most:
        drops = sizes[seen[most // 2 : most + 1]]
        seen = seen[: most // 2 + 1 + int((drops[:-1] / drops[1:]).argmax())]
    strong = left[:, seen]
    if offset and strong.size:  # rounding leaves a little of the offset in them
        strong = np.linalg.qr(strong - np.outer(level, level @ strong))[0]
    found: FloatArray = strong
    return found[:, : m - 1] if offset else found


def noise_quantile(count: int, level: float) -> float:
    """How many sigma none of so many independent Gaussian numbers exceeds, with chance `level`."""
    return float(ndtri((1 + level ** (1 / count)) / 2))

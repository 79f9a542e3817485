"""What a recovery comes with: the estimate, and a dual vector with which anyone can check it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sfumato._types import FloatArray, IntArray
from sfumato.sensing.model.operators.protocol import Operator

Status = Literal["optimal", "infeasible", "zero"]


@dataclass(frozen=True, slots=True, eq=False)
class Recovery:
    """Sources recovered from noisy readings y: argmin |f|_1 with |M f - y|_2 <= radius, 0 <= f <= max_mass.

    `optimal`: `estimate` is feasible, up to an overstep of the radius by rounding: at most 1e-10 of
    it as `recover` makes it, and 1e-9 as `check` accepts it. No feasible vector has a total below
    `objective - gap`; `dual` is a vector z that proves it, since y'z - radius |z| - max_mass sum (M'z
    - 1)_+ is a lower bound for every z. `zero`: the readings are within the radius of nothing at
    all, so the answer is no sources. `infeasible`: no sources in the box explain the readings
    within the radius; `dual` is a ray z with y'z - radius |z| - max_mass sum (M'z)_+ > 0, which proves
    it. The estimate is then zero everywhere and objective and gap are inf.
    """

    operator: Operator
    readings: FloatArray
    radius: float
    max_mass: float
    status: Status
    estimate: FloatArray
    objective: float
    gap: float
    dual: FloatArray

    @property
    def support(self) -> IntArray:
        """The cells with a source, in increasing order."""
        support: IntArray = self.estimate.nonzero()[0]
        return support

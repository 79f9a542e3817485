"""R where R has no answer: the score of an estimator needs one for every draw."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import SolverFailed
from sfumato.sensing.diagnostics.misfit import least_square
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.recovery.certificate import Recovery
from sfumato.sensing.recovery.estimators.least_mass import recover
from sfumato.sensing.recovery.solver.compress import range_of

CLOSE = 1e-6
"""The share of the radius' square within which the smallest square is looked for."""
WIDER = (1e-4, 1e-3, 1e-2, 0.1, 1.0)
"""Shares by which a radius is above the smallest: so close to it, an answer may not prove itself."""


def recover_min_radius(
    operator: Operator,
    y: FloatArray,
    *,
    sigma: float,
    radius: float | Literal["papers"] | None = None,
    max_mass: float = 1.0,
) -> Recovery:
    """The least mass; where nothing is within the radius, at the smallest radius with an answer.

    Args:
        operator: Maps masses of cells to readings of sensors.
        y: One noisy reading for each sensor.
        sigma: Standard deviation of the noise of one reading.
        radius: "papers" for sigma sqrt(m); None for the default.
        max_mass: The largest mass of one source.

    Returns:
        A recovery that is optimal or zero.

    Raises:
        SolverFailed: If no answer could be proved.
    """
    found = recover(operator, y, sigma=sigma, radius=radius, max_mass=max_mass)
    if found.status != "infeasible":
        return found
    outer = range_of(operator)
    inner = outer.into(y[:, np.newaxis])[0]
    rest = 0.0 if outer.basis is None else float(np.sum((y - outer.basis @ inner) ** 2))
    close = CLOSE * found.radius**2
    least = math.sqrt(rest + least_square(operator, outer, inner, max_mass=max_mass, close=close))
    for wider in WIDER:
        try:
            found = recover(operator, y, radius=least * (1 + wider), max_mass=max_mass)
        except SolverFailed:
            continue
        if found.status != "infeasible":
            return found
    raise SolverFailed("no radius near the smallest has a proven answer; no estimate was made")

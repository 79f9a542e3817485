"""Will it work? One answer before all numbers: do sensors see a source through noise, and what would."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sfumato.errors import InvalidInput
from sfumato.privacy import ZCDP, ApproxDP, MovedMass, PureDP, as_approx, gaussian_sigma
from sfumato.privacy.accounting import gaussian_delta

if TYPE_CHECKING:
    from sfumato.sensing.planning.design import Design
    from sfumato.sensing.planning.forecast import RecoveryForecast
    from sfumato.sensing.release.noise_plan import NoisePlan, SensorLoss

WELL = 0.5
"""Of the error without any reading: a forecast below it is an answer worth having."""
SAMPLE = 256
HALVINGS = 40
MAX_COST = 1e6
"""An epsilon, or rho, above which nobody would call it private: no advice is given."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """Whether a plan will work, and what would.

    Attributes:
        kind: "yes", "hardly" or "no": by simulated errors where there are some, else by `seen`.
        signal: The most that one sensor reads of one source.
        sigma: The noise that each sensor adds; where each has its own, that of the one that sees best.
        seen: How many deviations of their noise all sensors together see one source with, in one
            reading and at a middling place: |M_x| / sigma.
        needed: How many it takes to tell the place from others: sqrt(2 log cells) is what noise
            alone makes of the best of so many, and one more.
        cost: The epsilon (or rho) of all readings together with which it would be seen so; None
            where it is, or where none up to `MAX_COST` does. Where it is seen so and `kind` is not
            "yes" all the same, one source is seen and so many are not told apart: nothing is advised.
        readings: So many readings, at the cost that was asked, would see it so; None where even one
            does not, or where only one was asked for.
        radius: The radius within which nobody would tell, about, at which it would be seen so.
        averaged: Whether the mean of all readings sees so well a source that stays.
    """

    kind: Literal["yes", "hardly", "no"]
    signal: float
    sigma: float
    seen: float
    needed: float
    cost: float | None = None
    readings: int | None = None
    radius: float | None = None
    averaged: bool = False

    def to_json(self) -> dict[str, Any]:
        """All of it in numbers."""
        return asdict(self)

    @staticmethod
    def from_json(data: Any) -> Outlook:
        """The outlook that a JSON object states; what else is in it, as its words, is left alone."""
        if data["kind"] not in ("yes", "hardly", "no"):
            raise InvalidInput(f"no outlook {data['kind']!r}")
        return Outlook(**{part.name: data[part.name] for part in fields(Outlook)})


def outlook_of(
    design: Design,
    noise: NoisePlan,
    *,
    total: SensorLoss,
    readings: int | None,
    signal: float,
    forecast: RecoveryForecast | None,
) -> Outlook:
    """Whether sensors see one source of mass 1 through their noise, and what it would take."""
    operator = design.site.operator
    size = operator.space.size
    cells = np.unique(np.linspace(0, size - 1, SAMPLE).astype(np.int64))
    columns = operator.columns(cells)
    norm = float(np.median(np.linalg.norm(columns, axis=0)))
    sigma = noise.sigma
    if noise.gains:  # the sensor that sees it best, in its own unit
        gain = noise.gains[int(columns.max(axis=1).argmax())]
        signal, sigma = float(columns.max()) / gain, sigma / gain
    seen, needed = norm / noise.sigma, math.sqrt(2 * math.log(max(size, 2))) + 1
    kind = _simulated(forecast) if forecast is not None else _seen(seen, needed)
    if kind == "yes" or not 0 < seen < needed or needed / seen > MAX_COST:
        return Outlook(kind, signal, sigma, seen, needed)
    times = (needed / seen) ** 2  # of rho: sigma falls as its root
    count = readings or 1
    # Of epsilon alone sigma falls with the share, of rho with its root.
    fewer = math.floor(count / (math.sqrt(times) if noise.pure else times)) if count > 1 else 0
    neighbors = design.site.neighbors
    return Outlook(
        kind,
        signal,
        sigma,
        seen,
        needed,
        _cost(noise, total, count, times),
        fewer or None,
        float(neighbors.radius) / math.sqrt(times) if isinstance(neighbors, MovedMass) else None,
        count > 1 and seen * math.sqrt(count) >= needed,
    )


def _seen(seen: float, needed: float) -> Literal["yes", "hardly", "no"]:
    return "yes" if seen >= needed else "hardly" if seen >= needed / 2 else "no"


def _simulated(forecast: RecoveryForecast) -> Literal["yes", "hardly", "no"]:
    if forecast.useless:
        return "no"
    return "yes" if forecast.best.mean <= WELL * forecast.even else "hardly"


def _cost(noise: NoisePlan, total: SensorLoss, readings: int, times: float) -> float | None:
    """The epsilon, or rho, of all readings together whose noise is the root of `times` smaller.

    None where that is above `MAX_COST`.
    """
    if isinstance(noise.cost, PureDP):
        epsilon = float(noise.cost.epsilon) * readings * math.sqrt(times)
        return epsilon if epsilon <= MAX_COST else None
    if isinstance(noise.cost, ZCDP):
        rho = noise.cost.rho * readings * Fraction(times)
        if not isinstance(total, ApproxDP):
            return float(rho) if rho <= MAX_COST else None
        if rho > MAX_COST:  # and so is the epsilon
            return None
        epsilon = float(as_approx(ZCDP(rho), total.delta).epsilon)
        return epsilon if epsilon <= MAX_COST else None
    delta = noise.cost.delta
    low = high = float(noise.cost.epsilon)
    unit = gaussian_sigma(low, delta) / math.sqrt(times)
    while gaussian_delta(high, sigma=unit) > delta:
        high *= 2
        if high > 2 * MAX_COST:
            return None
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(middle, sigma=unit) > delta else (low, middle)
    return high if high <= MAX_COST else None

"""How much noise each sensor adds, and what one reading of all of them costs: public, before any is read."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, get_args

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.privacy import ZCDP, ApproxDP, Bound, DiscreteGaussian, RoundedGaussian, gaussian_sigma
from sfumato.privacy.accounting import Number, double_above, nonnegative, sqrt_above
from sfumato.privacy.noise import LARGEST_ROUNDED
from sfumato.sensing.model.sensitivity import Sensitivity, per_sensor_loss
from sfumato.sensing.model.sensors import Sensors

Calibration = Literal["analytic", "papers"]

LARGEST_DISCRETE = 2**16  # two small tables draw it, which a device can hold

LARGEST_READING = 2**48  # lattice units; further readings are clipped, which moves them closer
SLIP = (
    2.0**-4
)  # a double of that size is off by up to 2**-6 units, a quotient once more, two of them by 2**-4


@dataclass(frozen=True, slots=True)
class NoisePlan:
    """The noise of a named set of sensors: a lattice, a Gaussian on it, and the bound that it pays for.

    Readings become whole multiples of 2**exponent; noise of `mechanism` is added to each. Two
    source vectors that are neighbors move all readings together by at most `moved` lattice units in
    l2: the sensitivity of the operator, the sensor's own step and the rounding included. `site` is
    the digest of the site it is for.
    """

    sensors: Sensors
    sensitivity: Sensitivity
    step: Fraction
    exponent: int
    mechanism: RoundedGaussian | DiscreteGaussian
    site: str = ""

    @property
    def sigma(self) -> float:
        """The deviation of the noise on each reading, in the readings' own unit."""
        return math.ldexp(float(self.mechanism.sigma), self.exponent)

    @property
    def cost(self) -> ZCDP | ApproxDP:
        """What one reading of all the sensors together costs."""
        return self.mechanism.cost(self.bound())

    @property
    def moved(self) -> Fraction:
        """How far neighbors move all readings, in lattice units of l2."""
        return _moved(self.sensitivity, self.step, self.exponent, len(self.sensors))

    @property
    def per_sensor_moved(self) -> FloatArray:
        """How far neighbors move each reading, in its own unit: its own change, step and rounding."""
        alone = (
            self.sensitivity.per_sensor
            + float(double_above(self.step))
            + 2.0**self.exponent * (1 + SLIP)
        )
        # Three roundings in doubles are below two steps up.
        return np.nextafter(np.nextafter(alone, np.inf), np.inf)

    def per_sensor_loss(self, delta: Number) -> FloatArray:
        """The epsilon of each sensor alone, the papers' local loss: its own change, step and rounding.

        Computed for continuous noise of the same deviation, rounded, which on these lattices is the
        same to many digits for the discrete kind.
        """
        return per_sensor_loss(
            replace(self.sensitivity, per_sensor=self.per_sensor_moved), self.sigma, delta
        )

    def bound(self, readings: int | None = None, *, window: str = "") -> Bound:
        """The bound of this many of the readings; some of them move no further than all together.

        Sensors add their noise themselves, before they send: the model is local.
        """
        return Bound(
            self.sensitivity.neighbors,
            len(self.sensors) if readings is None else readings,
            l2_squared=self.moved**2,
            unit=unit_of(self.sensors, window=window),
            model="local",
        )


def unit_of(sensors: Sensors, *, window: str = "") -> str:
    """What a ledger of these sensors protects: it names the set by its hash, and the window of time if any.

    >>> unit_of(Sensors([0.25, 0.75]))
    'source, read jointly by 2 sensors (set 4619b57131249545)'
    """
    during = f" {window}" if window else ""
    return f"source{during}, read jointly by {len(sensors)} sensors (set {sensors.digest[:16]})"


def plan_noise(
    sensors: Sensors,
    sensitivity: Sensitivity,
    loss: ZCDP | ApproxDP,
    *,
    step: Number = 0,
    calibration: Calibration = "analytic",
) -> NoisePlan:
    """The least noise at which one reading of all sensors costs at most this loss.

    `step` is the sensor's own resolution, e.g. 1/16 of a degree: a reading is rounded to it before
    anybody sees it, so neighbors may differ by one step more in every reading. The lattice is the
    finest on which the noise can be drawn: rounding to it, and to a double before, costs 17/16 of a
    unit more in each reading. In l2, with m readings: (sensitivity + step sqrt(m)) / 2**exponent +
    17/16 sqrt(m).

    `papers` is that of [gilbert18, lem. 4], too noisy where it holds and refused where it does not.
    """
    if len(sensors) != sensitivity.per_sensor.size:
        raise InvalidParameter(
            f"the sensitivity is of {sensitivity.per_sensor.size} sensors, got {len(sensors)}; "
            "nothing was planned"
        )
    if not isinstance(loss, ZCDP | ApproxDP):
        raise InvalidParameter(
            f"sensors add Gaussian noise, which costs rho, or epsilon and delta; got {loss}; "
            "nothing was planned"
        )
    if calibration not in get_args(Calibration):
        raise InvalidParameter(f"calibration is 'analytic' or 'papers', got {calibration!r}")
    if calibration == "papers" and not isinstance(loss, ApproxDP):
        raise InvalidParameter(f"the papers' calibration is of epsilon and delta, got {loss}")
    own = nonnegative(step, "step")
    if sensitivity.l2 == 0 and own == 0:
        raise InvalidParameter(
            "no reading moves with the sources, so there is nothing to protect by noise"
        )
    largest = LARGEST_ROUNDED if isinstance(loss, ApproxDP) else LARGEST_DISCRETE
    # From far too fine to the finest lattice on which the noise can be drawn.
    scale = max(sensitivity.l2, float(own) * math.sqrt(len(sensors)))
    exponent = math.frexp(scale)[1] - 32
    while True:
        moved = _moved(sensitivity, own, exponent, len(sensors))
        needed = _sigma(loss, moved, calibration)
        if needed <= largest:
            return NoisePlan(sensors, sensitivity, own, exponent, _mechanism(loss, needed))
        if moved < 2 * sqrt_above(Fraction(len(sensors))):
            # A coarser lattice only shortens the part of the sensitivity that is not rounding.
            raise InvalidParameter(
                f"{loss} over {len(sensors)} sensors needs noise of {float(needed):.4g} lattice steps, above "
                f"{largest}; allow a larger loss, give rho instead of epsilon and delta, or read fewer"
            )
        exponent += max(1, math.frexp(float(needed) / largest)[1] - 1)


def _mechanism(loss: ZCDP | ApproxDP, sigma: Fraction) -> RoundedGaussian | DiscreteGaussian:
    # Exact (epsilon, delta) is known for the continuous Gaussian, rounded; rho is the same for the
    # discrete one, which can be drawn on finer lattices.
    return RoundedGaussian(sigma, loss) if isinstance(loss, ApproxDP) else DiscreteGaussian(sigma)


def _moved(sensitivity: Sensitivity, step: Fraction, exponent: int, readings: int) -> Fraction:
    root = sqrt_above(Fraction(readings))
    rounding = root * (1 + Fraction(SLIP))
    return (Fraction(sensitivity.l2) + step * root) / Fraction(2) ** exponent + rounding


def _sigma(loss: ZCDP | ApproxDP, moved: Fraction, calibration: Calibration) -> Fraction:
    match loss:
        case ApproxDP(epsilon, delta):
            return Fraction(gaussian_sigma(epsilon, delta, sensitivity=moved, method=calibration))
        case ZCDP(rho):
            if rho == 0:
                raise InvalidParameter("noise cannot cost nothing; give a rho above 0")
            return sqrt_above(moved**2 / (2 * rho))

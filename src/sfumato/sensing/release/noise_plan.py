"""How much noise each sensor adds, and what one reading of all of them costs: public, before any is read.

Long because the bound, the law that it takes and what a file states of both are one promise, read as a whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from sfumato._types import FloatArray
from sfumato._validate import read_only, whole
from sfumato.errors import InvalidParameter
from sfumato.files import decoding, read_json, write_json
from sfumato.privacy import (
    ZCDP,
    ApproxDP,
    Bound,
    DiscreteGaussian,
    DiscreteLaplace,
    MovedMass,
    PureDP,
    RoundedGaussian,
    SwappedCells,
    gaussian_sigma,
    laplace_scale,
)
from sfumato.privacy.accounting import (
    Number,
    decode_loss,
    decode_neighbors,
    double_above,
    encode,
    nonnegative,
    sqrt_above,
)
from sfumato.privacy.noise import LARGEST_ROUNDED
from sfumato.sensing.model.operators.registry import OWN
from sfumato.sensing.model.operators.weighted import gains_counted
from sfumato.sensing.model.sensitivity import Sensitivity, per_sensor_loss
from sfumato.sensing.model.sensors import Sensors

if TYPE_CHECKING:
    from sfumato.sensing.model.site import Site

FORMAT = "sfumato-noise-plan/1"

Calibration = Literal["analytic", "papers"]

LARGEST_DISCRETE = 2**16  # two small tables draw it, which a device can hold

LARGEST_LAPLACE = 2**24  # its digits need small tables at any width

SensorLoss = ZCDP | ApproxDP | PureDP
"""What a reading of sensors can cost: rho, epsilon and delta, or epsilon alone."""

LARGEST_READING = 2**48  # lattice units; further readings are clipped, which moves them closer
SLIP = (
    2.0**-4
)  # a double of that size is off by up to 2**-6 units, a quotient once more, two of them by 2**-4


@dataclass(frozen=True, slots=True)
class NoisePlan:
    """The noise of a named set of sensors: a lattice, its law on it, and the bound that it pays for.

    Readings become whole multiples of 2**exponent; noise of `mechanism` is added to each. Two
    source vectors that are neighbors move all readings together by at most `moved` lattice units in
    l2, in l1 where the noise is Laplace: the sensitivity of the operator, the sensor's own step and
    the rounding included. `site` is
    the digest of the site it is for. `every_place` says that the sensitivity counts every place where
    a source may be; files from before operators had to say so do not. With `gains` each reading is
    multiplied by its own first, so that sensor k has noise of sigma / gain_k on a lattice of 2**exponent /
    gain_k; one of gain 0 sends nothing.
    """

    sensors: Sensors
    sensitivity: Sensitivity
    step: Fraction
    exponent: int
    mechanism: RoundedGaussian | DiscreteGaussian | DiscreteLaplace
    site: str = ""
    every_place: bool = True
    gains: tuple[float, ...] = ()

    @property
    def sigma(self) -> float:
        """The deviation of the noise on each reading, in the readings' own unit; with gains, of gain 1."""
        mechanism = self.mechanism
        wide = (
            mechanism.law.deviation
            if isinstance(mechanism, DiscreteLaplace)
            else float(mechanism.sigma)
        )
        return math.ldexp(wide, self.exponent)

    @property
    def width(self) -> Fraction:
        """The parameter of the noise's law, in lattice units: its sigma, of Laplace its scale."""
        mechanism = self.mechanism
        return mechanism.scale if isinstance(mechanism, DiscreteLaplace) else mechanism.sigma

    @property
    def pure(self) -> bool:
        """Whether the noise is Laplace, and its cost an epsilon without a delta."""
        return isinstance(self.mechanism, DiscreteLaplace)

    @property
    def sigmas(self) -> FloatArray:
        """The deviation of the noise of each sensor, in the unit of the operator; infinite if it is off."""
        gains = np.array(self.gains or (1.0,) * len(self.sensors))
        return np.asarray(
            np.divide(self.sigma, gains, out=np.full(gains.size, np.inf), where=gains > 0)
        )

    @property
    def cost(self) -> SensorLoss:
        """What one reading of all the sensors together costs."""
        return self.mechanism.cost(self.bound())

    @property
    def moved(self) -> Fraction:
        """How far neighbors move all readings, in lattice units: of l2, or of l1 where the noise is Laplace."""
        if self.pure:
            return _moved_l1(self.sensitivity, self.step, self.exponent, len(self.sensors))
        return self.moved_together

    @property
    def moved_together(self) -> Fraction:
        """How far neighbors move all readings in l2, in lattice units, also where the noise is Laplace."""
        return _moved(self.sensitivity, self.step, self.exponent, len(self.sensors), self.gains)

    @property
    def per_sensor_moved(self) -> FloatArray:
        """How far neighbors move each reading, in its own unit: its own change, step and rounding."""
        gains = np.array(self.gains or (1.0,) * len(self.sensors))
        alone = (
            self.sensitivity.per_sensor
            + np.nextafter(float(double_above(self.step)) * gains, np.inf)
            + 2.0**self.exponent * (1 + SLIP)
        )
        # Three roundings in doubles are below two steps up; who is off sends nothing.
        above = np.nextafter(np.nextafter(alone, np.inf), np.inf)
        return np.where(gains > 0, above, 0.0)

    def per_sensor_loss(self, delta: Number) -> FloatArray:
        """The epsilon of each sensor alone, the papers' local loss: its own change, step and rounding.

        Computed for continuous noise of the same deviation, rounded, which on these lattices is the
        same to many digits for the discrete kind. Of Laplace noise it is pure, and holds at any delta.
        """
        if self.pure:
            wide = float(self.width) * 2.0**self.exponent
            return np.nextafter(self.per_sensor_moved / wide, np.inf) * (1 + 2.0**-50)
        return per_sensor_loss(
            replace(self.sensitivity, per_sensor=self.per_sensor_moved), self.sigma, delta
        )

    def to_json(self) -> dict[str, Any]:
        """Everything, with exact numbers as text: what a device needs that cannot plan itself."""
        moved = self.sensitivity
        mechanism = self.mechanism
        promise = mechanism.promise if isinstance(mechanism, RoundedGaussian) else None
        return {
            "format": FORMAT,
            "site": self.site,
            "every_place": self.every_place,
            "sensors": {
                "names": list(self.sensors.names),
                "positions": self.sensors.positions.tolist(),
            },
            "sensitivity": {
                "l2": moved.l2,
                "per_sensor": moved.per_sensor.tolist(),
                "exact": moved.exact,
                "worst": None if moved.worst is None else list(moved.worst),
                "place": None if moved.place is None else list(moved.place),
                **({} if moved.l1 is None else {"l1": moved.l1}),
                "neighbors": encode(moved.neighbors),
            },
            "step": str(self.step),
            "exponent": self.exponent,
            "mechanism": {
                "name": mechanism.name,
                "scale" if self.pure else "sigma": str(self.width),
                "promise": None if promise is None else encode(promise),
            },
            **({"gains": list(self.gains)} if self.gains else {}),
        }

    @staticmethod
    def from_json(data: Any) -> NoisePlan:
        """The plan that a JSON object states; it is trusted as a site is, for noise follows from it."""
        with decoding("a whole noise plan"):
            if data.get("format") != FORMAT:
                raise ValueError(f"its format is not {FORMAT}")
            sensors = Sensors(data["sensors"]["positions"], data["sensors"]["names"])
            moved = data["sensitivity"]
            neighbors = decode_neighbors(moved["neighbors"])
            if not isinstance(neighbors, MovedMass | SwappedCells):
                raise ValueError(f"its relation is not of sources: {neighbors}")
            worst, place = moved["worst"], moved["place"]
            found = Sensitivity(
                float(moved["l2"]),
                read_only(np.array(moved["per_sensor"], dtype=np.float64)),
                bool(moved["exact"]),
                None if worst is None else (int(worst[0]), int(worst[1])),
                neighbors,
                None if place is None else tuple(map(float, place)),
                None if moved.get("l1") is None else float(moved["l1"]),
            )
            if found.per_sensor.shape != (len(sensors),):
                raise ValueError("its sensitivity is of other sensors")
            made = NoisePlan(
                sensors,
                found,
                nonnegative(data["step"], "step"),
                whole("exponent", data["exponent"], low=-4096, high=4096),
                _mechanism_from(data["mechanism"]),
                str(data["site"]),
                bool(data.get("every_place", False)),
                tuple(map(float, data.get("gains", ()))),
            )
            sizes = np.array([found.l2, found.l1 or 0.0, *found.per_sensor, *made.gains])
            if not (np.isfinite(sizes) & (sizes >= 0)).all():
                raise ValueError("its sensitivity and its gains must be finite and not negative")
            if found.l1 is not None and found.l1 < found.l2:
                raise ValueError("its sensitivity in l1 is below that in l2, which none is")
            if made.gains and len(made.gains) != len(sensors):
                raise ValueError("its gains are of other sensors")
            if made.pure and (found.l1 is None or made.gains):
                raise ValueError("Laplace noise needs a sensitivity in l1, and has one scale")
            made.cost  # noqa: B018  # noise that does not keep its promise is refused
            return made

    def write(self, path: str | Path) -> None:
        """Save in a new .json file; a plan is never written over another."""
        write_json(path, self.to_json())

    def is_of(self, site: Site) -> bool:
        """Whether it was made for this site, and counts its sensors, gains, relation and step."""
        return self.site == site.digest and self._counts == _counted(site)

    @property
    def _counts(self) -> tuple[object, ...]:
        return self.sensors, self.gains, self.sensitivity.neighbors, self.step

    def bound(self, readings: int | None = None, *, window: str = "") -> Bound:
        """The bound of this many of the readings; some of them move no further than all together.

        Sensors add their noise themselves, before they send: the model is local.
        """
        return Bound(
            self.sensitivity.neighbors,
            len(self.sensors) if readings is None else readings,
            l1=self.moved if self.pure else None,
            l2_squared=None if self.pure else self.moved**2,
            unit=unit_of(self.sensors, window=window),
            model="local",
        )


def check_noise_plan(noise_plan: NoisePlan, site: Site) -> None:
    """Refuse a plan that was made for another site, or whose noise may be too little for this one.

    Args:
        noise_plan: The noise.
        site: The site whose readings it is for.

    Raises:
        InvalidParameter: It is of another site or counts another step than it has, or was saved for an
            operator that is none of ours before such operators had to say where their sources stand; nothing
            was charged.
    """
    if noise_plan.site != site.digest:
        raise InvalidParameter("the plan was made for another site; nothing was charged")
    if noise_plan.gains != gains_counted(site.operator):
        raise InvalidParameter(
            "the plan counts other gains of the sensors than the site has; nothing was charged"
        )
    if not noise_plan.is_of(site):
        raise InvalidParameter(
            "the plan counts other sensors, another relation or another step than the site has; nothing was "
            "charged"
        )
    if not noise_plan.every_place and site.operator.kind not in OWN:
        raise InvalidParameter(
            f"the plan was saved before an operator like {site.operator.kind!r} had to say where its sources "
            "stand, so it may count too few places and add too little noise; plan it again; nothing was "
            "charged"
        )


def _counted(site: Site) -> tuple[object, ...]:
    """What a plan of a site counts of it; its digest covers this, and a file that was edited may not."""
    return site.sensors, gains_counted(site.operator), site.neighbors, site.step_in_sources


def read_noise_plan(path: str | Path) -> NoisePlan:
    """A noise plan from its file.

    Args:
        path: A .json file that `NoisePlan.write` made.

    Returns:
        The plan.

    Raises:
        InvalidInput: The file is not a whole plan, or its noise does not keep its promise.
    """
    return NoisePlan.from_json(read_json(path, "a whole noise plan"))


def _mechanism_from(
    data: dict[str, Any],
) -> RoundedGaussian | DiscreteGaussian | DiscreteLaplace:
    match data["name"]:
        case RoundedGaussian.name:
            promise = None if data["promise"] is None else decode_loss(data["promise"])
            if promise is not None and not isinstance(promise, ApproxDP):
                raise ValueError(f"its promise is not epsilon and delta: {promise}")
            return RoundedGaussian(data["sigma"], promise)
        case DiscreteGaussian.name:
            return DiscreteGaussian(data["sigma"])
        case DiscreteLaplace.name:
            return DiscreteLaplace(data["scale"])
        case name:
            raise ValueError(f"its noise is neither Gaussian nor Laplace: {name}")


def unit_of(sensors: Sensors, *, window: str = "") -> str:
    """What a ledger of these sensors protects: it names the set by its hash, and the window of time if any.

    Args:
        sensors: The sensors that read jointly.
        window: The window of time, as `describe_window` puts it; "" means all time.

    Returns:
        The unit for a ledger.

    >>> unit_of(Sensors([0.25, 0.75]))
    'source, read jointly by 2 sensors (set 4619b57131249545)'
    """
    during = f" {window}" if window else ""
    return f"source{during}, read jointly by {len(sensors)} sensors (set {sensors.digest[:16]})"


def window_in(unit: str) -> str:
    """The window of time that a unit of `unit_of` names; "" if it is for all time.

    >>> window_in("source within 1d from 2026-11-16T00:00Z, read jointly by 2 sensors (set 46)")
    'within 1d from 2026-11-16T00:00Z'
    """
    return unit.partition(", read jointly")[0].removeprefix("source").strip()


def plan_noise(
    sensors: Sensors,
    sensitivity: Sensitivity,
    loss: SensorLoss,
    *,
    step: Number = 0,
    calibration: Calibration = "analytic",
    gains: tuple[float, ...] = (),
) -> NoisePlan:
    """The least noise at which one reading of all sensors costs at most this loss.

    The lattice is the finest on which the noise can be drawn: rounding to it, and to a double before, costs
    17/16 of a unit more in each reading. In l2, with m readings: (sensitivity + step sqrt(m)) / 2**exponent +
    17/16 sqrt(m). Epsilon alone takes Laplace noise of one scale: in l1, (sensitivity + step m) / 2**exponent +
    17/16 m.

    Args:
        sensors: The sensors.
        sensitivity: How far neighbors move their readings.
        loss: What one reading of all of them may cost: rho, epsilon and delta above 0, or epsilon alone, for
            which the sensitivity must have its l1.
        step: The sensor's own resolution, e.g. 1/16 of a degree: a reading is rounded to it before anybody
            sees it, so neighbors may differ by one step more in every reading. 0 if it is negligible.
        calibration: "analytic", the least noise; "papers" is that of [gilbert18, lem. 4], too noisy where it
            holds and refused where it does not.
        gains: What each reading is multiplied by, as the sensitivity counts it already; none means 1 each.

    Returns:
        The plan.

    Raises:
        InvalidParameter: No reading moves, or the noise would be too wide to draw; nothing was planned.
    """
    if len(sensors) != sensitivity.per_sensor.size or len(gains) not in (0, len(sensors)):
        raise InvalidParameter(
            f"the sensitivity is of {sensitivity.per_sensor.size} sensors, got {len(sensors)}; "
            "nothing was planned"
        )
    if not isinstance(loss, SensorLoss):
        raise InvalidParameter(
            f"noise of sensors costs rho, epsilon and delta, or epsilon alone; got {loss}; "
            "nothing was planned"
        )
    if isinstance(loss, PureDP) and (gains or sensitivity.l1 is None):
        raise InvalidParameter(
            "epsilon without a delta takes Laplace noise of one scale, and a sensitivity in l1: sensors with a "
            "noise of their own need a delta above 0 or rho; nothing was planned"
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
    largest = _largest(loss)
    # From far too fine to the finest lattice on which the noise can be drawn.
    scale = max(sensitivity.l2, float(own) * math.sqrt(_step_root(len(sensors), gains)))
    exponent = math.frexp(scale)[1] - 32
    while True:
        moved = (
            _moved_l1(sensitivity, own, exponent, len(sensors))
            if isinstance(loss, PureDP)
            else _moved(sensitivity, own, exponent, len(sensors), gains)
        )
        needed = _width(loss, moved, calibration)
        if needed <= largest:
            return NoisePlan(
                sensors, sensitivity, own, exponent, _mechanism(loss, needed), gains=gains
            )
        rounding = len(sensors) if isinstance(loss, PureDP) else sqrt_above(Fraction(len(sensors)))
        if moved < 2 * rounding:
            # A coarser lattice only shortens the part of the sensitivity that is not rounding.
            raise InvalidParameter(
                f"{loss} over {len(sensors)} sensors needs noise of {float(needed):.4g} lattice steps, above "
                f"{largest}; allow a larger loss, give rho instead of epsilon and delta, or read fewer"
            )
        exponent += max(1, math.frexp(float(needed) / largest)[1] - 1)


def _largest(loss: SensorLoss) -> int:
    match loss:
        case ApproxDP():
            return LARGEST_ROUNDED
        case ZCDP():
            return LARGEST_DISCRETE
        case PureDP():
            return LARGEST_LAPLACE


def _mechanism(
    loss: SensorLoss, width: Fraction
) -> RoundedGaussian | DiscreteGaussian | DiscreteLaplace:
    # Exact (epsilon, delta) is known for the continuous Gaussian, rounded; rho is the same for the
    # discrete one, which can be drawn on finer lattices.
    match loss:
        case ApproxDP():
            return RoundedGaussian(width, loss)
        case ZCDP():
            return DiscreteGaussian(width)
        case PureDP():
            return DiscreteLaplace(width)


def _moved(
    sensitivity: Sensitivity,
    step: Fraction,
    exponent: int,
    readings: int,
    gains: tuple[float, ...] = (),
) -> Fraction:
    rounding = sqrt_above(Fraction(readings)) * (1 + Fraction(SLIP))
    steps = step * sqrt_above(_step_root(readings, gains))
    return (Fraction(sensitivity.l2) + steps) / Fraction(2) ** exponent + rounding


def _moved_l1(sensitivity: Sensitivity, step: Fraction, exponent: int, readings: int) -> Fraction:
    """As `_moved`, in l1: every reading's step and rounding count in full."""
    if sensitivity.l1 is None:
        raise InvalidParameter("Laplace noise needs a sensitivity in l1; nothing was planned")
    rounding = readings * (1 + Fraction(SLIP))
    return (Fraction(sensitivity.l1) + step * readings) / Fraction(2) ** exponent + rounding


def _step_root(readings: int, gains: tuple[float, ...]) -> Fraction:
    """The square of what a step of 1 in every reading moves all of them, times their gains."""
    if not gains:
        return Fraction(readings)
    return sum((Fraction(gain) ** 2 for gain in gains), Fraction(0))


def _width(loss: SensorLoss, moved: Fraction, calibration: Calibration) -> Fraction:
    match loss:
        case PureDP(epsilon):
            return Fraction(laplace_scale(epsilon, sensitivity=moved))
        case ApproxDP(epsilon, delta):
            return Fraction(gaussian_sigma(epsilon, delta, sensitivity=moved, method=calibration))
        case ZCDP(rho):
            if rho == 0:
                raise InvalidParameter("noise cannot cost nothing; give a rho above 0")
            return sqrt_above(moved**2 / (2 * rho))

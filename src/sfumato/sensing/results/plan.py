"""What a plan of sensors says: the noise, what to expect, and what would do better.

Long because a plan states every part of itself in JSON, and reads it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sfumato.files import decoding
from sfumato.privacy import ZCDP, ApproxDP, PureDP, as_approx
from sfumato.privacy.accounting import decode_loss, encode
from sfumato.sensing.planning.certificate_forecast import CertificateForecast
from sfumato.sensing.planning.computed import STATED, computed_numbers, delta_of
from sfumato.sensing.planning.noise_choice import NoiseChoice
from sfumato.sensing.planning.noise_weights import NoiseEach
from sfumato.sensing.planning.outlook import Outlook, outlook_of
from sfumato.sensing.planning.placement import Placement, PlacementGain
from sfumato.sensing.planning.ratio import Ratio
from sfumato.sensing.release.noise_plan import SensorLoss
from sfumato.sensing.render.plan import axis_name, best_time, outlook_line
from sfumato.sensing.render.words import plain
from sfumato.sensing.results.plan_codec import (
    design_json,
    read_curve,
    read_design,
    read_forecast,
    read_options,
    read_requirement,
)

if TYPE_CHECKING:
    from sfumato.sensing.diagnostics.conditioning import Conditioning
    from sfumato.sensing.diagnostics.resolution import Resolution
    from sfumato.sensing.model.site import Site
    from sfumato.sensing.planning.design import Curve, Design
    from sfumato.sensing.planning.forecast import RecoveryForecast
    from sfumato.sensing.planning.limits import RecoveryBound
    from sfumato.sensing.planning.papers_bounds import PapersBounds
    from sfumato.sensing.planning.requirement import Requirement
    from sfumato.sensing.planning.synthetic import SyntheticOptions
    from sfumato.sensing.release.noise_plan import NoisePlan
    from sfumato.sensing.release.rounds import RoundsCost


@dataclass(frozen=True, slots=True)
class SharedCost:
    """What readings that share a cost may cost: in all, each, and as a release states all of them."""

    readings: int
    total: SensorLoss
    each: ZCDP | PureDP
    together: ZCDP | PureDP
    stated: ApproxDP | None

    def to_json(self) -> dict[str, Any]:
        """The losses, exactly."""
        return {
            "readings": self.readings,
            "total": encode(self.total),
            "each": encode(self.each),
            "together": encode(self.together),
            "stated": None if self.stated is None else encode(self.stated),
        }


@dataclass(frozen=True, slots=True, eq=False)
class SensorPlan:
    """A plan of sensors; nothing was read or charged for it.

    `from_json` makes a plan again from the design that `to_json` states, and reads what was simulated. What
    a device needs of it is `noise`, which is saved and read by itself (`NoisePlan.write`, `read_noise_plan`).

    Attributes:
        design: The site, what one reading may cost, and the sources to expect.
        noise: The noise that each reading gets.
        physics: What the operator hides without any noise.
        total: What all readings together may cost.
        readings: How many readings share it; None for a single one.
        guess: How often the best guess between two neighbors is right.
        one_sensor: The epsilon that one sensor alone would tell.
        peak: The most that a sensor reads of one unit.
        costs: What many readings cost.
        papers: What the papers prove of this design.
        resolution: How far apart two sources must be to be seen as two, in one reading; None where there are
            too many cells to look at, and `no_resolution` says so.
        resolution_of_all: The same in the mean of all readings.
        forecast: Simulated errors, None where none were simulated.
        certificate: How wide certified errors will be, about; None where none were simulated.
        seconds: How long that took.
        required: What a target error takes.
        curves: How errors move with each number of the design.
        options: What a made-up site was asked to be; None for a site of one's own.
        simulates: Whether recoveries could have been simulated.
        choice: Which noise it takes, and why; the site of the design has the gains of noise for each. None
            in a plan from before there was a choice.
    """

    design: Design
    noise: NoisePlan
    physics: Conditioning
    total: SensorLoss
    readings: int | None
    guess: float
    one_sensor: float
    peak: float
    costs: tuple[RoundsCost, ...]
    papers: PapersBounds
    resolution: Resolution | None = None
    resolution_of_all: Resolution | None = None
    no_resolution: str = ""
    forecast: RecoveryForecast | None = None
    certificate: CertificateForecast | None = None
    seconds: float = 0.0
    required: tuple[Requirement, ...] = ()
    curves: tuple[Curve, ...] = ()
    options: SyntheticOptions | None = None
    simulates: bool = True
    choice: NoiseChoice | None = None

    @property
    def each(self) -> NoiseEach | None:
        """What noise for each sensor gains, where it was looked at."""
        return None if self.choice is None else self.choice.each

    @property
    def delta(self) -> Fraction:
        """The delta of all readings together, or that at which a rho is stated."""
        return delta_of(self.total)

    @property
    def shared(self) -> SharedCost | None:
        """What each of the readings that share a cost may cost, and how all of them are stated."""
        each = self.noise.cost
        if self.readings is None or isinstance(each, ApproxDP):  # a share never is
            return None
        if isinstance(each, PureDP):
            whole = PureDP(each.epsilon * self.readings)
            return SharedCost(self.readings, self.total, each, whole, None)
        # The noise is rounded up, so that a reading costs, and is charged, a little less than its
        # share.
        together = ZCDP(each.rho * self.readings)
        return SharedCost(self.readings, self.total, each, together, as_approx(together, STATED))

    @property
    def outlook(self) -> Outlook:
        """Whether it will work, and what would: said before all else."""
        return outlook_of(
            self.design,
            self.noise,
            total=self.total,
            readings=self.readings,
            signal=self.peak,
            forecast=self.forecast,
        )

    def to_json(self) -> dict[str, Any]:
        """The plan in numbers; what is not finite is None."""
        site, noise = self.design.site, self.noise
        told: dict[str, Any] = {
            "outlook": self.outlook.to_json() | {"said": outlook_line(self)},
            "design": design_json(self.design, self.total, self.readings, self.options)
            | {"simulates": self.simulates},
            "site": site.name,
            "sensors": len(site.sensors),
            "cells": site.operator.space.size,
            "diffusion_time": site.operator.time,
            "set": site.sensors.digest,
            "neighbors": encode(site.neighbors),
            "sensitivity": noise.sensitivity.l2,
            "sensitivity_exact": noise.sensitivity.exact,
            **({} if noise.sensitivity.l1 is None else {"sensitivity_l1": noise.sensitivity.l1}),
            "cost": encode(noise.cost),
            "sigma": noise.sigma,
            "lattice": 2.0**noise.exponent,
            "epsilon_of_one_sensor": {
                "largest": self.one_sensor,
                "delta": float(self.delta),
                "readings": self.readings or 1,
            },
            "best_guess": self.guess,
            "largest_reading_of_one_source": self.peak,
            "physics": list(self.physics.sentences),
            "resolution": _resolution(self.resolution),
        }
        if self.resolution_of_all is not None:
            told["resolution_of_all"] = _resolution(self.resolution_of_all)
        told["after_readings"] = [
            {
                "readings": row.readings,
                "epsilon": row.epsilon,
                "by_rho": row.by_rho,
                "delta": float(self.delta),
                "charged": None if row.charged is None else encode(row.charged),
            }
            for row in self.costs
        ]
        if self.shared is not None:
            told["shared"] = self.shared.to_json()
        told["papers"] = _papers(self.papers)
        if self.choice is not None:
            told["noise_choice"] = self.choice.to_json()
        if self.each is not None:
            told["noise_each"] = self.each.to_json() | {"sigmas": noise.sigmas.tolist()}
        if self.forecast is not None:
            told |= forecast_json(self.design, self.forecast)
        if self.certificate is not None:
            told["certificate"] = self.certificate.to_json()
        if self.required:
            told |= required_json(self.design, self.required)
        if self.curves:
            told |= curves_json(self.design, self.curves)
        converted: dict[str, Any] = plain(told)
        return converted

    @staticmethod
    def from_json(data: Any) -> SensorPlan:
        """The plan that a JSON object states: computed anew from its design, with what was simulated.

        How long simulating took is not said there, and is 0.
        """
        with decoding("a whole plan of sensors"):
            made, stated = read_design(data["design"]), data["design"]
            total, readings = decode_loss(stated["total"]), stated["readings"]
            if not isinstance(total, SensorLoss):
                raise ValueError(f"its cost is neither rho nor epsilon: {total}")
            return SensorPlan(
                made,
                total=total,
                readings=readings,
                forecast=read_forecast(data["forecast"]) if "forecast" in data else None,
                certificate=CertificateForecast.from_json(data["certificate"])
                if "certificate" in data
                else None,
                required=tuple(map(read_requirement, data.get("needed", {}).values())),
                curves=tuple(map(read_curve, data.get("curves", {}).values())),
                options=read_options(stated["options"]),
                simulates=stated["simulates"],
                choice=_choice(data, made.site),
                **computed_numbers(made, total, readings),
            )

    def _repr_html_(self) -> str:
        from html import escape

        from sfumato.sensing.render.plan import plan_text

        return f"<pre>{escape(plan_text(self))}</pre>"


@dataclass(frozen=True, slots=True)
class PlacementResult:
    """The sensors chosen from candidates, beside as many that are simply spread out.

    Attributes:
        candidates: How many places could have had a sensor.
        chosen: The chosen ones by name.
        sigma: The noise that each adds.
        error: About how far off the place of one source is.
        uniform: As many that are spread out evenly; with their noise and error.
        message: The gain in a sentence.
        gain: What choosing gains in simulated recoveries.
        placement: All of it, for drawing; not part of the JSON.
        ground: The site of the candidates.
    """

    candidates: int
    chosen: tuple[str, ...]
    sigma: float
    error: float
    uniform: tuple[str, ...]
    uniform_sigma: float
    uniform_error: float
    message: str
    gain: PlacementGain | None = None
    placement: Placement | None = field(default=None, compare=False, repr=False)
    ground: Site | None = field(default=None, compare=False, repr=False)

    @staticmethod
    def of(placement: Placement, ground: Site, gain: PlacementGain | None) -> PlacementResult:
        """The result of a placement."""
        names = placement.candidates.sensors.names
        return PlacementResult(
            len(names),
            placement.names,
            placement.sigma,
            placement.error,
            tuple(names[row] for row in placement.uniform.tolist()),
            placement.uniform_sigma,
            placement.uniform_error,
            placement.message,
            gain,
            placement,
            ground,
        )

    def to_json(self) -> dict[str, Any]:
        """The choice in names and numbers; what is not finite is None."""
        told = {
            "candidates": self.candidates,
            "chosen": list(self.chosen),
            "sigma": self.sigma,
            "error": self.error,
            "uniform": list(self.uniform),
            "uniform_sigma": self.uniform_sigma,
            "uniform_error": self.uniform_error,
            "said": self.message,
            **({} if self.gain is None else {"gain": asdict(self.gain)}),
        }
        converted: dict[str, Any] = plain(told)
        return converted

    @staticmethod
    def from_json(data: Any) -> PlacementResult:
        """The choice that a JSON object states."""
        gain = data.get("gain")
        if gain is not None:
            ratio = gain["ratio"]
            ends = {} if ratio is None or ratio["high"] is not None else {"high": float("inf")}
            gain = PlacementGain(
                **gain | {"ratio": None if ratio is None else Ratio(**ratio | ends)}
            )
        return PlacementResult(
            data["candidates"],
            tuple(data["chosen"]),
            data["sigma"],
            data["error"],
            tuple(data["uniform"]),
            data["uniform_sigma"],
            data["uniform_error"],
            data["said"],
            gain,
        )


def forecast_json(design: Design, foreseen: RecoveryForecast) -> dict[str, Any]:
    """Simulated errors, with their intervals."""
    some = foreseen.every
    ratio = foreseen.ratio
    return {
        "forecast": {
            "sources": design.sources,
            "masses": design.masses,
            "estimators": {one.estimator: {**asdict(one), "width": one.width} for one in some},
            "best": foreseen.best.estimator,
            "even": foreseen.even,
            "close_to_guessing": foreseen.useless,
            "why_no_bayes_median": foreseen.why_not,
            "ratio": None if ratio is None else asdict(ratio) | {"sure": ratio.sure},
            **({"left_out": dict(foreseen.left_out)} if foreseen.left_out else {}),
        }
    }


def required_json(design: Design, needs: Sequence[Requirement]) -> dict[str, Any]:
    """What a target error takes on each axis."""
    told = {}
    for one in needs:
        data = asdict(one) | {"means": [{"value": x, **asdict(y)} for x, y in one.means.items()]}
        data["want"] = data.pop("target")
        data["least"] = data.pop("best_error")
        data["within_a_tenth"] = data.pop("enough")  # of the least error: not of the target
        told[axis_name(design, one.axis)] = data
    return {"needed": told}


def curves_json(design: Design, curves: Sequence[Curve]) -> dict[str, Any]:
    """All that a page draws, and the best time to read."""
    told: dict[str, Any] = {"curves": {}}
    for curve in curves:
        told["curves"][axis_name(design, curve.axis)] = {
            "axis": curve.axis,
            "values": list(curve.values),
            "errors": {name: found.tolist() for name, found in curve.errors.items()},
            "errors_without_reading": curve.nothing.tolist(),
            "best_by": curve.best_by,
            "estimators": {
                name: [asdict(one) for one in forecasts]
                for name, forecasts in curve.forecasts.items()
            },
            "papers_upper_up_to_a_constant": list(curve.upper),
            "papers_lower": list(curve.lower),
        }
        if curve.axis == "diffusion time":
            told["best_time"] = {
                "estimator": curve.best_by,
                "time": curve.best,
                "low": curve.as_good[0],
                "high": curve.as_good[-1],
                "as_good": list(curve.as_good),
                "better_than_no_reading": curve.helps,
                "said": best_time(design, curve),
            }
    return told


def _choice(data: dict[str, Any], site: Site) -> NoiseChoice | None:
    """Which noise a plan states that it takes; older ones say so only where each was asked for."""
    each = NoiseEach.from_json(data["noise_each"], site) if "noise_each" in data else None
    if each is None and "noise_choice" not in data:
        return None
    return NoiseChoice.from_json(data.get("noise_choice"), each)


def _resolution(found: Resolution | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "separation": found.separation,
        "best": found.best,
        "worst": found.worst,
        "confidence": found.confidence,
        "said": found.message,
    }


def _papers(found: PapersBounds) -> dict[str, Any] | None:
    if found.noisy is None:
        return None
    return {
        "noisy": _bound(found.noisy),
        "private": None if found.private is None else _bound(found.private),
        "lower": found.lower,
        "length": found.length,
    }


def _bound(found: RecoveryBound) -> dict[str, Any]:
    return {
        "bracket": found.bracket,
        "printed": found.printed,
        "hypotheses": dict(found.hypotheses),
        "applies": found.applies,
    }

"""What `sense recover` answers beside R: estimators by their names, and the field where it is fitted."""

from __future__ import annotations

import hashlib
import math
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, assert_never

from sfumato.cli.chance import chance
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    from sfumato._types import FloatArray, IntArray
    from sfumato.cli.sense_noisy import Noisy
    from sfumato.sensing import Answer, Field, Misfit, OffGrid, Operator, Recovery, SourcePosterior

WIDER, TIMES = 8.0, 13  # diffusion times that are tried: so many, down to and up to this factor
LEVEL = 0.9
TESTED = (
    1 << 17
)  # cells up to which the physics is tested: 1.7 s there with 500 sensors, R up to 7 s
WIDE = 0.25  # of a line or of a side of a plane: an error of a place above it tells nothing
HELD = 1e-6  # share of the largest mass within which a fitted one is held by it
FEW, HEAP = (
    3,
    0.95,
)  # so many sources or more, with so much of their mass within half of the heat's width
RARE = 1e-4  # counts less likely than this are not told


PAPERS = "papers"


class Estimator(StrEnum):
    """Who answers."""

    bayes_median = "bayes-median"
    least = "least"
    off_grid = "off-grid"
    mixture = "mixture"


class Unknown(StrEnum):
    """What is not known of the field, and is to be estimated together with the sources."""

    offset = "offset"
    time = "time"
    sensors = "sensors"


@dataclass(frozen=True)
class Asked:
    """How to answer."""

    estimator: Estimator
    upper: float = 1.0
    most: int | None = None
    count: int | None = None
    seed: int | None = None
    fit: tuple[Unknown, ...] = ()
    radius: str = ""

    def __post_init__(self) -> None:
        counted = self.estimator in (Estimator.mixture, Estimator.off_grid)
        if self.count is not None and not counted and not self.fit:
            raise InvalidParameter(
                "--count goes with --estimator mixture or off-grid, or --fit; nothing was recovered"
            )
        if self.count is not None and self.most is not None:
            raise InvalidParameter(
                "--count says how many there are, --most how many at most: give one; nothing was recovered"
            )
        if self.most is not None and self.estimator is Estimator.least:
            raise InvalidParameter(
                "--most goes with an estimator that counts sources, not with least; nothing was recovered"
            )


@dataclass(frozen=True)
class Given:
    """An answer, R of what it was made from, what it expects sensors to read, and what must be said of it."""

    answer: Answer | None
    found: Recovery
    reads: FloatArray | None = None
    remarks: tuple[str, ...] = ()
    field: Field | None = None
    misfit: Misfit | None = None


def give(found: Recovery, read: Noisy, asked: Asked, *, labels: IntArray | None) -> Given:
    """The answer of an estimator to the readings of R, of the site as stated or of a field that is fitted.

    Where R says that nothing can be told there is no answer. Where R is infeasible there is one
    only if a test finds that the physics fits, so that it was the noise: the default radius leaves
    that 1 draw of 10.
    """
    from sfumato.sensing import misfit, recover

    field, sigma = None, read.sigma
    remarks: tuple[str, ...] = ()
    if asked.fit:
        field = _fitted(found, read, asked)
        sigma = field.sigma
        found = recover(
            field.operator, field.readings, upper=asked.upper, **limit(asked.radius, sigma)
        )
        remarks = ("the answer takes the fitted field for known, so it is surer than it should be",)
    doubts = None
    if sigma and (field or found.operator.space.size <= TESTED):
        doubts = field.misfit if field else misfit(
            found.operator, found.readings, sigma=sigma, upper=asked.upper, least_sigma=read.least_sigma
        )  # fmt: skip
    estimator = asked.estimator
    why = _unable(found.operator, sigma) if estimator is Estimator.bayes_median else ""
    if why:
        estimator = Estimator.least
        remarks = (*remarks, f"bayes-median {why}: the answer is the least mass")
    by_noise = found.status == "infeasible" and doubts is not None and not doubts.said
    if found.status != "optimal" and (not by_noise or estimator is Estimator.least):
        return Given(None, found, None, _no_answer(found, field), field, doubts)
    if by_noise:
        remarks = (
            *remarks,
            "a test finds that the physics fits, so it was the noise: here is an answer",
        )
    answer, reads = _answer(estimator, found, sigma, asked, labels)
    return Given(_with_field(answer, field), found, reads, remarks, field, doubts)


def limit(radius: str, sigma: float | None) -> dict[str, Any]:
    """How far the answer may be from the readings: as asked, or as the noise says."""
    if radius and radius != PAPERS:
        try:
            return {"radius": float(radius)}
        except ValueError:
            raise InvalidParameter(f"--radius is a number or 'papers', got {radius!r}") from None
    if sigma is None:
        raise InvalidParameter(
            "readings in a .csv need --sigma, or a --radius; nothing was recovered"
        )
    return {"sigma": sigma, "radius": radius or None}


def _no_answer(found: Recovery, field: Field | None) -> tuple[str, ...]:
    if field is None:
        return ()
    told = "nothing can be told" if found.status == "zero" else "no sources explain the readings"
    return (f"with the fitted field {told}",)


def _unable(operator: Operator, sigma: float | None) -> str:
    """Why there can be no posterior here, or nothing."""
    from sfumato.sensing.recovery.estimators import MOST_CELLS, runs_needed

    if not sigma:
        return "needs the sigma of the noise"
    if runs_needed(operator) > MOST_CELLS:
        return f"takes at most {MOST_CELLS} cells, here are {operator.space.size}"
    return ""


def noise_of(sigma: float | None, who: str) -> float:
    """The deviation of the noise, which must be known."""
    if not sigma:
        raise InvalidParameter(f"{who} needs the sigma of the noise; nothing was recovered")
    return sigma


def _answer(
    estimator: Estimator,
    found: Recovery,
    sigma: float | None,
    asked: Asked,
    labels: IntArray | None,
) -> tuple[Answer, FloatArray]:
    operator, readings = found.operator, found.readings
    if estimator is Estimator.least:
        return _least(found)
    noise = noise_of(sigma, f"--estimator {estimator}")
    match estimator:
        case Estimator.bayes_median:
            return _bayes(operator, readings, noise, asked, labels)
        case Estimator.off_grid:
            return _off_grid(operator, readings, noise, asked)
        case Estimator.mixture:
            return _mixture(operator, readings, noise, asked)
        case _:
            assert_never(estimator)


def _bayes(
    operator: Operator, readings: FloatArray, sigma: float, asked: Asked, labels: IntArray | None
) -> tuple[Answer, FloatArray]:

    from sfumato.sensing import Answer, bands, bayes_median, community_beliefs, posterior

    rng = chance(seed_of(readings) if asked.seed is None else asked.seed)
    beliefs = posterior(
        operator, readings, sigma=sigma, rng=rng, upper=asked.upper, most=asked.most
    )
    counts = {str(k): float(p) for k, p in enumerate(beliefs.counts) if p >= RARE}
    told: dict[str, Any] = {
        "level": LEVEL,
        "counts": counts,
        "total": list(beliefs.total(LEVEL)),
        "known": beliefs.known,
        "most": beliefs.most,
        "doubt": beliefs.said or _one_heap(beliefs),
        "mixing": {
            "said": beliefs.mixing.said,
            "rhat": beliefs.mixing.rhat,
            "mixed": beliefs.mixing.mixed,
        },
    }
    if labels is not None:
        told["communities"] = community_beliefs(beliefs, labels).tolist()
    answer = Answer("bayes-median", bayes_median(beliefs), bands(beliefs, level=LEVEL), told)
    return answer, operator.readings(beliefs.expected)


def _one_heap(beliefs: SourcePosterior) -> str:
    """That several sources are all at one place, as where one is larger than it may be; or nothing."""
    import numpy as np

    from sfumato.sensing import HeatLine, HeatPlane
    from sfumato.sensing.recovery import distances_between, places_of

    operator, count = beliefs.operator, int(beliefs.counts.argmax())
    if count < FEW or not isinstance(operator, HeatLine | HeatPlane):
        return ""
    cells = np.flatnonzero(beliefs.shares)
    places = places_of(operator.space, cells)
    near = (
        distances_between(operator.space, places, places)
        <= math.sqrt(2 * operator.diffusion_time) / 2
    )
    if (near @ beliefs.shares[cells]).max() < HEAP:
        return ""
    return (
        f"{count} sources of {beliefs.upper:g} or less are all at one place: a single larger one may be "
        "there, so look at the unit, or give a larger --upper"
    )


def seed_of(readings: FloatArray) -> bytes:
    """Chance for an answer that is the same whenever the readings are: SHA-256 of their bytes."""
    import numpy as np

    return hashlib.sha256(np.asarray(readings, dtype="<f8").tobytes()).digest()


def _least(found: Recovery) -> tuple[Answer, FloatArray]:
    from sfumato.sensing import Answer, Estimate
    from sfumato.sensing.recovery import places_of

    places = places_of(found.operator.space, found.support)
    answer = Answer("least", Estimate(found.operator, places, found.estimate[found.support]))
    return answer, found.operator.readings(found.estimate)


def _off_grid(
    operator: Operator, readings: FloatArray, sigma: float, asked: Asked
) -> tuple[Answer, FloatArray]:
    from sfumato.sensing import Answer, HeatLine, HeatPlane, off_grid
    from sfumato.sensing.recovery.estimators import scene_of

    heat: HeatLine | HeatPlane = operator  # type: ignore[assignment]  # another is refused, in words
    most = {} if asked.most is None else {"most": asked.most}
    found = off_grid(heat, readings, sigma=sigma, count=asked.count, upper=asked.upper, **most)
    scene = scene_of(heat, readings, sigma=sigma, upper=asked.upper)
    told = {
        "scores": {str(k): float(score) for k, score in found.scores.items()},
        "criterion": "chi-square + log(readings) for each coordinate and mass",
        "place_errors": None if found.place_errors is None else found.place_errors.tolist(),
        "mass_errors": None if found.mass_errors is None else found.mass_errors.tolist(),
        "tells": _tells(found, asked.upper, scene.high - scene.low),
        "converged": found.converged,
        "at_upper": _at_upper(found.estimate.masses, asked.upper),
    }
    unit = scene.heat(found.estimate.places[None])[1][0]
    return Answer("off-grid", found.estimate, None, told), unit @ found.estimate.masses


def _mixture(
    operator: Operator, readings: FloatArray, sigma: float, asked: Asked
) -> tuple[Answer, FloatArray]:
    from sfumato.sensing import Answer, HeatLine, HeatPlane, mixture
    from sfumato.sensing.recovery.estimators import scene_of

    heat: HeatLine | HeatPlane = operator  # type: ignore[assignment]  # another is refused, in words
    most = {} if asked.most is None else {"most": asked.most}
    found = mixture(heat, readings, sigma=sigma, count=asked.count, upper=asked.upper, **most)
    told = {
        "scores": {str(k): float(score) for k, score in found.scores.items()},
        "criterion": "chi-square + log(readings) for each coordinate and mass",
        "converged": found.converged,
        "at_upper": _at_upper(found.estimate.masses, asked.upper),
    }
    scene = scene_of(heat, readings, sigma=sigma, upper=asked.upper)
    unit = scene.heat(found.estimate.places[None])[1][0]
    return Answer("mixture", found.estimate, None, told), unit @ found.estimate.masses


def _tells(found: OffGrid, upper: float, extent: FloatArray) -> bool:
    """Whether errors are narrower than what masses and places can be; where there are none they are not."""
    if found.place_errors is None or found.mass_errors is None:
        return not found.estimate.masses.size
    wide = (found.mass_errors > upper).any() or (found.place_errors > WIDE * extent).any()
    return not wide


def _at_upper(masses: FloatArray, upper: float) -> int:
    """How many masses a fit would have made larger had it been let."""
    return int((masses >= (1 - HELD) * upper).sum())


def _fitted(found: Recovery, read: Noisy, asked: Asked) -> Field:
    import numpy as np

    from sfumato.sensing import fit_field
    from sfumato.sensing.model.operators import time_of

    noise_of(read.sigma, "--fit")
    operator, times = found.operator, None
    if Unknown.time in asked.fit:
        stated = time_of(operator)
        if stated is None:
            raise InvalidParameter("a matrix has no diffusion time to --fit; nothing was recovered")
        times = np.geomspace(stated / WIDER, stated * WIDER, TIMES).tolist()
    offset = math.inf if Unknown.offset in asked.fit else 0.0
    return fit_field(
        operator, read.rounds, sigma=read.noises, upper=asked.upper, offset=offset, times=times,
        sources=asked.count, least_sigma=read.least_sigma,
    )  # fmt: skip


def _with_field(answer: Answer, field: Field | None) -> Answer:
    return (
        answer
        if field is None
        else replace(answer, told={**answer.told, "field": field_told(field)})
    )


def field_told(field: Field) -> dict[str, Any]:
    """A fitted field, as JSON has it."""
    return {
        "said": list(field.said),
        "offset": field.offset,
        "offset_error": field.offset_error if math.isfinite(field.offset_error) else None,
        "time": field.time,
        "time_is_below": field.at_most,
        "interval": None if field.interval is None else list(field.interval),
        "suspects": [asdict(one) for one in field.suspects],
    }

"""Heat that is known anywhere: readings in units of the noise, and what estimators between cells share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato._validate import read_only, real_array
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.recovery.answer import Answer, Estimate, SourceFit
from sfumato.sensing.recovery.estimators.registry import RecoveryProblem
from sfumato.spaces import Grid

TINY = float(np.finfo(float).tiny)
HELD = 1e-6
"""The share of the largest mass within which a fitted one is held by it."""
CRITERION = "chi-square + log(readings) for each coordinate and mass"


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """Readings and masses in units of the noise, and the box in which sources are looked for."""

    operator: Operator
    readings: FloatArray
    low: FloatArray
    high: FloatArray
    max_mass: float
    sigma: float

    @property
    def axes(self) -> int:
        """How many coordinates a place has."""
        return self.low.size

    @property
    def time(self) -> float:
        """The diffusion time."""
        return self.operator.time or 0.0

    @property
    def width(self) -> float:
        """The standard deviation of a unit's heat along an axis: sqrt(2T)."""
        return math.sqrt(2 * self.time)

    def heat(self, places: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Steps from places to sensors, and what a unit reads: batch by sensors by places (by axes)."""
        time = self.time
        steps = self.operator.sensors.positions[:, np.newaxis, :] - places[:, np.newaxis, :, :]
        height = (4 * math.pi * time) ** (-self.axes / 2)
        squares = sum(steps[..., axis] ** 2 for axis in range(self.axes))
        return steps, np.exp(squares * (-1 / (4 * time))) * height

    def chi_square(self, places: FloatArray, masses: FloatArray) -> FloatArray:
        """How far readings are from what each of a batch of configurations reads, in units of the noise."""
        rest = (self.heat(places)[1] @ masses[..., np.newaxis])[..., 0] - self.readings
        return np.asarray((rest * rest).sum(axis=1))

    def score(self, chi_square: float, count: int) -> float:
        """The criterion that chooses a count: chi-square + log(m) for each coordinate and mass [schwarz78].

        A number costs at least 2, since log(m) means nothing for a handful of readings.
        """
        return chi_square + max(2.0, math.log(self.readings.size)) * (self.axes + 1) * count

    def estimate(self, places: FloatArray, masses: FloatArray) -> Estimate:
        """An answer in the caller's units, in the order of the first coordinate."""
        order = np.lexsort(places.T[::-1])
        return Estimate(self.operator, places[order], masses[order] * self.sigma)

    def read(self, estimate: Estimate) -> FloatArray:
        """What the sensors read of an answer without noise, in the caller's units."""
        return np.asarray(self.heat(estimate.places[np.newaxis])[1][0] @ estimate.masses)


def scene_of(operator: Operator, y: npt.ArrayLike, *, sigma: float, max_mass: float) -> Scene:
    """What a fit between cells starts from, checked, with the noise as the unit."""
    if operator.kernel_width is None or operator.time is None:
        raise InvalidParameter(
            f"places between cells need heat on a line or in a plane, got {type(operator).__name__}; "
            "nothing was recovered"
        )
    for name, value in (("sigma", sigma), ("`max_mass`", max_mass)):
        if not 0 < value < math.inf:
            raise InvalidParameter(
                f"{name} must be positive and finite, got {value}; nothing was recovered"
            )
    readings, m = real_array("readings", y), operator.shape[0]
    if readings.shape != (m,) or not np.isfinite(readings).all():
        raise InvalidParameter(
            f"readings must be one finite number for each of {m} sensors, got "
            f"{'one that is not finite' if readings.shape == (m,) else f'shape {readings.shape}'}; "
            "nothing was recovered"
        )
    low, high = _span(operator)
    return Scene(operator, read_only(readings / sigma), low, high, max_mass / sigma, sigma)


def _span(operator: Operator) -> tuple[FloatArray, FloatArray]:
    space = operator.space
    if isinstance(space, Grid):
        west, south, east, north = space.bounds
        return np.array([west, south]), np.array([east, north])
    places = space.places(np.arange(space.size))
    return places.min(axis=0), places.max(axis=0)


class SceneFit(Protocol):
    """What a fit between cells returns."""

    @property
    def estimate(self) -> Estimate:
        """The sources."""

    @property
    def scores(self) -> dict[int, float]:
        """The score of each number of sources that was tried."""

    @property
    def converged(self) -> bool:
        """Whether the fit came to rest."""


Fitted = TypeVar("Fitted", bound=SceneFit)


def no_errors(found: SceneFit, max_mass: float, extent: FloatArray) -> dict[str, Any]:  # noqa: ARG001
    """For a fit that knows no errors of its numbers."""
    return {}


@dataclass(frozen=True, slots=True)
class SceneEstimator(Generic[Fitted]):
    """An estimator of sources between cells, on a line or in a plane.

    `solve` fits them. `errors` gives the fields of `SourceFit` that say how sure its numbers are, from
    the fit, the largest mass and the sides of the box.
    """

    name: str
    solve: Callable[..., Fitted]
    errors: Callable[[Fitted, float, FloatArray], dict[str, Any]] = no_errors
    options: ClassVar[frozenset[str]] = frozenset({"count", "max_sources"})
    needs_certificate: ClassVar[bool] = False

    def unsuitable(self, operator: Operator, noise: float | None) -> str:  # noqa: ARG002
        """What it cannot do it refuses itself: nobody asks for it by default."""
        return ""

    def estimate(self, problem: RecoveryProblem) -> Answer:
        """The sources of the fit, with its scores and errors."""
        noise, max_mass = problem.known_noise(f"`estimator` {self.name}"), problem.max_mass
        scene = scene_of(problem.operator, problem.readings, sigma=noise, max_mass=max_mass)
        limit = {} if problem.max_sources is None else {"max_sources": problem.max_sources}
        found = self.solve(
            problem.operator,
            problem.readings,
            sigma=noise,
            count=problem.count,
            max_mass=max_mass,
            **limit,
        )
        held = int((found.estimate.masses >= (1 - HELD) * max_mass).sum())
        fit = SourceFit(
            {count: float(score) for count, score in found.scores.items()},
            CRITERION,
            found.converged,
            held,
            **self.errors(found, max_mass, scene.high - scene.low),
        )
        return Answer(self.name, found.estimate, fit=fit, expected=scene.read(found.estimate))


def equal_parts(places: FloatArray, weights: FloatArray, count: int) -> FloatArray:
    """Means of `count` cells that hold equal parts of some weight, by halving along the longer side."""
    if not weights.any():
        weights = np.ones(len(places))
    if count == 1 or len(places) == 1:
        return np.tile(weights @ places / weights.sum(), (count, 1))
    axis = int(np.argmax(np.ptp(places, axis=0)))
    order = np.argsort(places[:, axis], kind="stable")
    reached = np.cumsum(weights[order])
    left = count // 2
    edge = reached[-1] * left / count
    last = int(np.searchsorted(reached, edge))
    # The place on the edge belongs to both sides, in part.
    near, far = weights[order[: last + 1]], weights[order[last:]]
    far[0] = reached[last] - edge
    near[-1] -= far[0]
    return np.concatenate(
        [
            equal_parts(places[order[: last + 1]], near, left),
            equal_parts(places[order[last:]], far, count - left),
        ]
    )

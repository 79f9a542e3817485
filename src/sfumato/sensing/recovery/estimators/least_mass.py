"""Recover sparse sources from noisy readings, with a certificate anyone can check."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato._validate import read_only, real_array
from sfumato.errors import InvalidParameter, SolverFailed
from sfumato.sensing.model.operators.matrix import linear
from sfumato.sensing.model.operators.protocol import Operator, is_operator
from sfumato.sensing.recovery.answer import Answer, Estimate
from sfumato.sensing.recovery.certificate import Recovery
from sfumato.sensing.recovery.estimators.registry import RecoveryProblem
from sfumato.sensing.recovery.radius import default_radius, papers_radius
from sfumato.sensing.recovery.solver.certify import FEASIBLE, Certified, certify, ray_margin
from sfumato.sensing.recovery.solver.exchange import Problem, exchange, fits
from sfumato.sensing.recovery.solver.norms import length
from sfumato.sensing.recovery.solver.operator_cache import afresh
from sfumato.sensing.recovery.verify import gap_unit, tolerance
from sfumato.spaces import Graph, Grid, Line, Points


def recover(
    operator: Operator | npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    space: Line | Grid | Graph | Points | None = None,
    sigma: float | None = None,
    radius: float | Literal["papers"] | None = None,
    max_mass: float = 1.0,
) -> Recovery:
    """The least total of sources that explains noisy readings, with the proof that none is smaller.

    argmin |f|_1 subject to |M f - y|_2 <= radius and 0 <= f <= max_mass [gilbert17, algorithm 1].
    Only readings that are all 0 can be explained within a radius, or noise, of 0.

    Args:
        operator: Maps masses to readings; or its matrix, one row for each sensor.
        y: One noisy reading for each sensor.
        space: Where the cells of a matrix are; None means on a line.
        sigma: Standard deviation of the noise of one reading, for a radius that comes from it.
        radius: How far the answer may be from the readings: a number above 0 instead of `sigma`; or
            with it "papers" for sigma sqrt(m), and None for `default_radius`.
        max_mass: The largest mass of one cell.

    Returns:
        The sources with their certificate; `check` checks it.

    Raises:
        InvalidParameter: If a parameter is out of range or readings are not finite.
        SolverFailed: If no answer could be proved.

    >>> from sfumato.sensing import heat_line
    >>> line = heat_line(sources=100, sensors=50, diffusion_time=0.05)
    >>> truth = np.zeros(100)
    >>> truth[30] = 1
    >>> found = recover(line, line.readings(truth), radius=0.1)
    >>> found.status, found.support
    ('optimal', array([30, 31]))
    >>> recover(np.eye(3), [0, 1, 0], radius=0.5).estimate.round(6)
    array([0. , 0.5, 0. ])
    """
    operator = _operator(operator, space)
    readings = readings_of(operator, y)
    ceiling = _number("`max_mass`", max_mass, "positive", zero=False)
    afresh(operator)
    within = _radius(operator, readings, sigma, radius, max_mass=ceiling)
    problem = Problem(operator, readings, within, ceiling)
    if length(readings) <= within:
        return _nothing(problem, "zero", 0.0, np.zeros_like(readings))
    failure = "the exchange of cells did not settle"
    for everywhere in (False, True):
        if everywhere and not fits(operator):
            break
        vertex = exchange(problem, everywhere=everywhere)
        match vertex.kind:
            case "found":
                answer = certify(problem, vertex)
                failure = _flaw(problem, answer)
                if not failure:
                    return _optimal(problem, answer)
            case "ray":
                if ray_margin(problem, vertex.dual) > 0:
                    return _nothing(problem, "infeasible", math.inf, vertex.dual)
                failure = "the readings seem out of reach, without a proof"
            case "lost":
                failure = "the exchange of cells did not settle"
    raise SolverFailed(f"an answer must prove itself, but {failure}; no estimate was made")


def _operator(
    given: Operator | npt.ArrayLike, space: Line | Grid | Graph | Points | None
) -> Operator:
    if is_operator(given):
        if space is not None and space != given.space:
            raise InvalidParameter(
                "an operator has its own space, a space goes with an array; nothing was recovered"
            )
        return given
    shape = np.shape(given)
    if space is None and (len(shape) != 2 or 0 in shape):
        raise InvalidParameter(
            f"a matrix must have a row for each sensor and a column for each cell, got shape {shape}; "
            "nothing was recovered"
        )
    return linear(given, Line(shape[1]) if space is None else space)


def _flaw(problem: Problem, answer: Certified) -> str:
    """Why an answer may not be given, or nothing."""
    if not answer.miss <= problem.radius * (1 + FEASIBLE):
        return f"the estimate is {answer.miss:.17g} from the readings, outside the radius {problem.radius:.17g}"
    allowed = tolerance(problem.operator.space.size)
    unit = gap_unit(problem.operator, problem.readings, answer.objective, answer.bound)
    gap = (answer.objective - answer.bound) / unit
    return "" if abs(gap) <= allowed else f"its relative gap is {gap:.1e}, above {allowed:g}"


def _optimal(problem: Problem, answer: Certified) -> Recovery:
    f = np.zeros(problem.operator.space.size)
    f[answer.cells] = answer.values
    return Recovery(
        problem.operator,
        problem.readings,
        problem.radius,
        problem.max_mass,
        "optimal",
        read_only(f),
        answer.objective,
        answer.gap,
        read_only(answer.dual),
    )


def _nothing(
    problem: Problem, status: Literal["infeasible", "zero"], value: float, dual: FloatArray
) -> Recovery:
    estimate = read_only(np.zeros(problem.operator.space.size))
    return Recovery(
        problem.operator,
        problem.readings,
        problem.radius,
        problem.max_mass,
        status,
        estimate,
        value,
        value,
        read_only(dual),
    )


def _radius(
    operator: Operator,
    y: FloatArray,
    sigma: float | None,
    radius: float | Literal["papers"] | None,
    *,
    max_mass: float,
) -> float:
    if radius is not None and radius != "papers":
        if sigma is not None:
            raise InvalidParameter(
                f"give sigma or a radius, not both, got sigma {sigma} and radius {radius}; "
                "nothing was recovered"
            )
        return _number("radius", radius, "positive, or 'papers',", zero=not y.any())
    if sigma is None:
        raise InvalidParameter(
            "a recovery needs the noise sigma of a reading or a radius, got neither; nothing was recovered"
        )
    noise = _number("sigma", sigma, "positive", zero=not y.any())
    if radius == "papers":
        return papers_radius(operator, noise)
    return default_radius(operator, y, noise, max_mass=max_mass)


def readings_of(operator: Operator, y: npt.ArrayLike) -> FloatArray:
    """One finite number for each sensor, or an error that names the sensor."""
    readings = real_array("readings", y)
    m = operator.shape[0]
    if readings.shape != (m,):
        raise InvalidParameter(
            f"readings must be one number for each of {m} sensors, got shape {readings.shape}; "
            "nothing was recovered"
        )
    wrong = np.flatnonzero(~np.isfinite(readings))
    if wrong.size:
        raise InvalidParameter(
            f"readings must be finite, got {readings[wrong[0]]} from sensor "
            f"{operator.sensors.names[wrong[0]]!r}; nothing was recovered"
        )
    return read_only(readings)


def positive(name: str, value: float) -> float:
    """A positive finite number, or an error that names it."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 < number < math.inf:
        raise InvalidParameter(
            f"{name} must be positive and finite, got {value}; nothing was recovered"
        )
    return number


def _number(name: str, value: float, rule: str, *, zero: bool) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if number == 0 and not zero and name != "`max_mass`":
        raise InvalidParameter(
            f"{name} may be 0 only where all readings are 0: nothing explains others to the last digit; "
            "nothing was recovered"
        )
    if not (0 < number < math.inf or (zero and number == 0)):
        raise InvalidParameter(
            f"{name} must be {rule} and finite, got {value}; nothing was recovered"
        )
    return number


@dataclass(frozen=True, slots=True)
class LeastMass:
    """R itself: the papers' estimator, the only one with a proof."""

    name: ClassVar[str] = "least"
    options: ClassVar[frozenset[str]] = frozenset()
    needs_certificate: ClassVar[bool] = True

    def unsuitable(self, operator: Operator, noise: float | None) -> str:  # noqa: ARG002
        """It answers wherever R does."""
        return ""

    def estimate(self, problem: RecoveryProblem) -> Answer:
        """The sources of the certificate."""
        found = problem.certificate
        places = found.operator.space.places(found.support)
        estimate = Estimate(found.operator, places, found.estimate[found.support])
        return Answer(self.name, estimate, expected=found.operator.readings(found.estimate))


ESTIMATOR = LeastMass()

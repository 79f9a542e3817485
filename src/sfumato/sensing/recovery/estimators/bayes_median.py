"""The answer whose expected earth mover's distance from the truth is least: a median of all possible ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import linprog

from sfumato._types import FloatArray, IntArray
from sfumato.errors import SolverFailed
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.model.operators.weighted import gains_of
from sfumato.sensing.recovery.answer import Answer, Estimate, SourceBeliefs
from sfumato.sensing.recovery.estimators import posterior_cells
from sfumato.sensing.recovery.estimators.credible import bands, community_beliefs
from sfumato.sensing.recovery.estimators.posterior import posterior
from sfumato.sensing.recovery.estimators.registry import RecoveryProblem
from sfumato.sensing.recovery.estimators.source_posterior import SourcePosterior
from sfumato.spaces import Line

LEVELS = 200  # of mass: a line's answer is so many atoms of the same mass, fewer where they meet
DRAWS, PLACES = 32, 80  # elsewhere: a linear program of so many draws and places
LEAST_SHARE = 1e-6  # of all mass: less is rounding of the program
LEVEL = 0.9  # probability of credible regions and of the interval of the total
RARE = 1e-4  # counts less likely than this are left out
MANY = 3  # so many sources or more, with
ONE_PLACE = 0.95  # so much of their mass within half of the heat's width, may be one larger source


def bayes_median(beliefs: SourcePosterior) -> Estimate:
    """The sources whose mean earth mover's distance from the draws of a posterior is least.

    On a line it is exact: the pointwise median of the draws' quantile functions, since the distance
    is the area between these [villani03, thm. 2.18]. Elsewhere it is the Wasserstein median of 32
    draws on at most 80 places, those that hold most of the expected mass, by a linear program; more
    draws would move it by less than the draws differ from each other. The total is the median of
    the draws' totals.

    Args:
        beliefs: Draws, from `posterior`.

    Returns:
        Places and masses.

    Raises:
        SolverFailed: If the linear program has no solution.

    Limits. It is as good as the posterior's beliefs, see there; it is not sparse, because where the
    readings leave a place open mass is spread over it; its masses say how much is where, not what
    single sources give.
    """
    totals = beliefs.masses.sum(axis=1)
    total = _median(totals[:, np.newaxis], beliefs.weights)[0]
    if isinstance(beliefs.operator.space, Line):
        places, shares = _line_median(beliefs, beliefs.operator.space)
    else:
        places, shares = _median_of_draws(beliefs)
    return Estimate(beliefs.operator, places, shares * total)


def _line_median(beliefs: SourcePosterior, line: Line) -> tuple[FloatArray, FloatArray]:
    cells = np.where(beliefs.cells >= 0, beliefs.cells, line.size)
    # Cells that no draw has come last, and are not looked at.
    most = int((beliefs.cells >= 0).sum(axis=1).max(initial=1))
    order = np.argsort(cells, axis=1, kind="stable")[:, :most]
    cells = np.take_along_axis(cells, order, axis=1)
    masses = np.take_along_axis(beliefs.masses, order, axis=1)
    reached = np.cumsum(masses, axis=1)
    reached /= reached[:, -1:]
    levels = (np.arange(LEVELS) + 0.5) / LEVELS
    # The first source at which so much of the mass is reached; a draw has few of them.
    at = np.zeros((len(reached), LEVELS), dtype=np.int64)
    for mass in reached.T:
        at += mass[:, np.newaxis] < levels
    quantiles = np.take_along_axis(cells, np.minimum(at, cells.shape[1] - 1), axis=1)
    # Places are in the order of their cells; whole numbers of two bytes are sorted by counting.
    kind = np.int16 if line.size <= np.iinfo(np.int16).max else np.int64
    median = _median(np.minimum(quantiles, line.size - 1).astype(kind), beliefs.weights)
    found, counts = np.unique(median, return_counts=True)
    return line.positions[found][:, np.newaxis], counts / LEVELS


def _median(values: npt.NDArray[Any], weights: FloatArray) -> npt.NDArray[Any]:
    """The weighted median of each column."""
    order = np.argsort(values, axis=0, kind="stable")
    below = np.cumsum(weights[order], axis=0)
    middle = (below >= 0.5 * below[-1]).argmax(axis=0)
    return np.asarray(
        np.take_along_axis(values, np.take_along_axis(order, middle[np.newaxis], 0), 0)[0]
    )


def _median_of_draws(beliefs: SourcePosterior) -> tuple[FloatArray, FloatArray]:
    """The Wasserstein median of some draws: f >= 0 and plans x_s from it to each draw, at the least cost."""
    space = beliefs.operator.space
    chosen = _spread_out(beliefs.weights)
    busiest = np.argsort(-beliefs.shares, kind="stable")[:PLACES]
    busiest = np.sort(busiest[beliefs.shares[busiest] > 0])
    held = np.unique(beliefs.cells[chosen][beliefs.cells[chosen] >= 0])
    apart = space.distances_between(space.places(busiest), space.places(held))
    draws = [
        (apart[:, np.searchsorted(held, beliefs.cells[s][there])], beliefs.masses[s][there])
        for s in chosen
        for there in (beliefs.cells[s] >= 0,)
    ]
    shares = median_shares([(costs, mass / mass.sum()) for costs, mass in draws])
    some = shares > LEAST_SHARE
    return space.places(busiest[some]), shares[some] / shares[some].sum()


def median_shares(draws: list[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """The shares on some places whose mean distance to draws is least.

    A draw is the costs from all places to its own (a table) and its shares there, which total 1.
    With plans x_s: minimise sum_s costs_s . x_s subject to x_s 1 = f, 1' x_s = shares_s, all at
    least 0.

    >>> near, far = np.array([[0.0], [2.0]]), np.array([[2.0], [0.0]])
    >>> median_shares([(near, np.ones(1)), (near, np.ones(1)), (far, np.ones(1))])
    array([1., 0.])
    """
    places = len(draws[0][0])
    costs, sums = [np.zeros(places)], list[FloatArray]()
    rows, columns, values = list[IntArray](), list[IntArray](), list[FloatArray]()
    row, column = 0, places
    for distances, shares in draws:
        atoms = shares.size
        costs.append(distances.ravel())
        sums += [np.zeros(places), shares]
        # x_s leaves each place as f has it (a row each), and arrives at each atom as shares have it.
        place, atom = np.divmod(np.arange(places * atoms), atoms)
        plan = column + np.arange(places * atoms)
        rows += [row + np.arange(places), row + place, row + places + atom]
        columns += [np.arange(places), plan, plan]
        values += [np.full(places, -1.0), np.ones(plan.size), np.ones(plan.size)]
        row, column = row + places + atoms, column + plan.size
    entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
    plans: Any = sparse.coo_array(entries, shape=(row, column))
    solved = linprog(
        np.concatenate(costs), A_eq=plans.tocsr(), b_eq=np.concatenate(sums), method="highs-ipm"
    )
    if solved.x is None:
        raise SolverFailed(
            f"the median of draws was not found: {solved.message}; no estimate was made"
        )
    found = np.maximum(solved.x[:places], 0)
    return np.asarray(found / found.sum())


def _spread_out(weights: FloatArray) -> IntArray:
    """So many draws, evenly spaced in cumulated weight: each as often as its weight says, without chance."""
    below = np.cumsum(weights)
    levels = (np.arange(DRAWS) + 0.5) / DRAWS * below[-1]
    return np.asarray(np.minimum(np.searchsorted(below, levels), weights.size - 1), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class BayesMedian:
    """The Bayes rule for earth mover's distance, with credible regions from the same posterior."""

    name: ClassVar[str] = "bayes-median"
    options: ClassVar[frozenset[str]] = frozenset({"max_sources"})
    needs_certificate: ClassVar[bool] = False

    def unsuitable(self, operator: Operator, noise: float | None) -> str:
        """A posterior needs the noise, and cells that are few or stand for others."""
        if not noise:
            return "needs the sigma of the noise"
        if posterior_cells.required_runs(operator) > posterior_cells.MAX_CELLS:
            return (
                f"takes at most {posterior_cells.MAX_CELLS} cells, here are {operator.space.size}"
            )
        return ""

    def estimate(self, problem: RecoveryProblem) -> Answer:
        """The median of a posterior, its credible regions, and what it says of all sources."""
        beliefs = posterior(
            problem.operator,
            problem.readings,
            sigma=problem.known_noise(f"`estimator` {self.name}"),
            rng=problem.rng,
            max_mass=problem.max_mass,
            max_sources=problem.max_sources,
            anywhere=True,
            offset=problem.offset,
        )
        shared = beliefs.offset(LEVEL) if problem.offset else None
        expected = problem.operator.readings(beliefs.expected)
        told = SourceBeliefs(
            LEVEL,
            {count: float(p) for count, p in enumerate(beliefs.counts) if p >= RARE},
            beliefs.total_beside_offset(LEVEL) if problem.offset else beliefs.total(LEVEL),
            beliefs.known,
            beliefs.max_sources,
            beliefs.message or _one_place(beliefs),
            beliefs.mixing.mixed,
            beliefs.mixing.rhat,
            beliefs.mixing.message,
            None
            if problem.labels is None
            else tuple(community_beliefs(beliefs, problem.labels).tolist()),
            beliefs.fits,
        )
        return Answer(
            self.name,
            bayes_median(beliefs),
            bands(beliefs, level=LEVEL),
            beliefs=told,
            expected=expected
            if shared is None
            else expected + shared.value * gains_of(problem.operator),
            offset=shared,
        )


def _one_place(beliefs: SourcePosterior) -> str:
    """That several sources are all at one place, as where one is larger than it may be; or ""."""
    operator, count = beliefs.operator, int(beliefs.counts.argmax())
    width = operator.kernel_width
    if count < MANY or width is None:
        return ""
    cells = np.flatnonzero(beliefs.shares)
    places = operator.space.places(cells)
    near = operator.space.distances_between(places, places) <= width / 2
    if (near @ beliefs.shares[cells]).max() < ONE_PLACE:
        return ""
    return (
        f"{count} sources of {beliefs.max_mass:g} or less are all at one place: a single larger one may be "
        "there, so look at the unit, or give a larger `max_mass`"
    )


ESTIMATOR = BayesMedian()

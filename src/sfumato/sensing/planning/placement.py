"""Where to put sensors: of all places that could have one, those from which sources are recovered best.

Noise is calibrated to how far all readings together move, so a sensor that says much also makes
every other one noisier. What counts is information at the noise that the chosen set itself needs.
Nothing here looks at readings: a placement is public, and costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial import distance

from sfumato._types import FloatArray, IntArray
from sfumato._validate import read_only, whole
from sfumato.errors import InvalidParameter, SolverFailed
from sfumato.privacy import ZCDP, ApproxDP, MovedMass, SwappedCells, gaussian_sigma
from sfumato.sensing.model.changes import pairs
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.model.sensitivity import sensitivity
from sfumato.sensing.model.site import Site, part_of_site
from sfumato.sensing.planning.forecast import Scene, draw_trials, error_of
from sfumato.sensing.planning.placement_kernel import errors_with
from sfumato.sensing.planning.ratio import Ratio, ratio_of_means
from sfumato.spaces import Line

MAX_ENTRIES = 1 << 26  # candidates times steps: half a GB
MAX_TRUTHS, MAX_GUESSES = 32, 256
BETTER = 1e-9  # a swap must help by so much of the error, so that rounding cannot keep them going


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """The sensors chosen from candidates, beside as many that are simply spread out.

    `chosen` and `uniform` are numbers of candidates, in increasing order. `error` is the criterion:
    about how far off the place of one source is, averaged over places, at the noise `sigma` that
    the set needs; a distance of the sources' space. `sigma` is for planning: `plan_noise` has what
    is added, lattice included.
    """

    candidates: Operator
    neighbors: MovedMass | SwappedCells
    loss: ZCDP | ApproxDP
    chosen: IntArray
    error: float
    sigma: float
    uniform: IntArray
    uniform_error: float
    uniform_sigma: float

    @property
    def names(self) -> tuple[str, ...]:
        """The chosen candidates by name."""
        return tuple(self.candidates.sensors.names[row] for row in self.chosen.tolist())

    @property
    def operator(self) -> Operator:
        """How sources spread to the chosen sensors."""
        return _part(self.candidates, self.neighbors, self.chosen)

    @property
    def uniform_operator(self) -> Operator:
        """How sources spread to the sensors that are simply spread out."""
        return _part(self.candidates, self.neighbors, self.uniform)

    @property
    def message(self) -> str:
        """The gain in a sentence."""
        gain = 1 - self.error / self.uniform_error if self.uniform_error > 0 else 0.0
        beside = f"{self.error:.3g} against {self.uniform_error:.3g} for sensors spread out evenly"
        found = "the place of one source, by the best use of its readings, is off by about"
        if gain < 0.01:
            return f"choosing gains nothing here: {found} {beside}"
        return f"{found} {beside}, {100 * gain:.0f} % less"


@dataclass(frozen=True, slots=True)
class PlacementGain:
    """Mean errors of recoveries from chosen and from evenly spread sensors, in earth mover's distance.

    `ratio` is chosen over uniform, below 1 if choosing helps, from the same sources under both;
    None where evenly spread sensors were never wrong. `trials` are those with an answer from both
    sets; `failed` more had none from one of them and are left out.
    """

    trials: int
    sources: int
    chosen: float
    uniform: float
    ratio: Ratio | None
    failed: int = 0


def place_sensors(
    candidates: Operator,
    count: int,
    *,
    loss: ZCDP | ApproxDP,
    neighbors: MovedMass | SwappedCells,
    mass: float = 1.0,
    progress: Callable[[str], None] | None = None,
) -> Placement:
    """The best so many of the candidates for private recovery: `candidates` has a sensor at every one.

    A source of this mass at cell i reads u_i = mass M_i. If its mass is not known but has a
    Gaussian prior, readings without noise give cell j the weight, with c = |u_j|**2 + sigma**2 and
    where j may be anywhere,

        exp(-(|u_i|**2 - (u_i . u_j)**2 / c) / 2 sigma**2) / sqrt(c),

    and the criterion is the mean distance from i under it, averaged over places i: how far off the
    place of one source is. Sigma is what the set itself must add: in proportion to its own largest
    change between neighbors (at some places while sets are searched, anywhere when they are told).
    Where much is told this follows the bound of Cramer and Rao with the mass as nuisance, down to
    the width of a cell; where little is, it still sees which far places look alike.

    Where no set tells anything (a network of hubs under strong noise) neither choice nor criterion
    matters. What choosing gains in truth, `simulated_gain` measures, and `sense place --trials`
    prints: most for one source, less for several.

    Sensors are added one by one, each the best at its turn, then swapped one against one until no
    swap helps; and the same from the uniform set, so the choice is never worse than that. It is not
    proved to be the best; in small cases it mostly was the best of all sets, else within a few %.

    The criterion is of one source at a time, over at most 32 places against 256, evenly spaced. It
    takes a second for a hundred candidates, minutes for thousands. It serves for several sources as
    well: Fisher's information of all places and masses, with priors, was tried and not better.

    >>> from sfumato.sensing.model.operators.heat_line import heat_line
    >>> shelf = heat_line(sources=40, sensors=[0.1, 0.11, 0.12, 0.13, 0.4, 0.6, 0.9], diffusion_time=0.02)
    >>> found = place_sensors(shelf, 4, loss=ApproxDP(4, 0.1), neighbors=SwappedCells(1))
    >>> found.names
    ('0', '4', '5', '6')
    """
    total = len(candidates.sensors)
    wanted = whole("count", count, low=1, high=total)
    if not 0 < mass < math.inf:
        raise InvalidParameter(f"mass must be positive and finite, got {mass}; nothing was placed")
    even, unit = uniform_choice(candidates, wanted), _unit_sigma(loss)
    uniform_sigma = unit * _moved(candidates, neighbors, even)
    goal = _Goal.of(candidates, neighbors, unit=unit, mass=mass)
    tell = progress or (lambda _: None)
    found = [_swapped(goal, start, tell) for start in (_greedy(goal, wanted, tell), even)]
    noise = [unit * _moved(candidates, neighbors, rows) for rows in found] + [uniform_sigma]
    told = [goal.error_at(rows, sigma) for rows, sigma in zip([*found, even], noise, strict=True)]
    best = int(np.argmin(told))
    return Placement(
        candidates,
        neighbors,
        loss,
        read_only([*found, even][best]),
        told[best],
        noise[best],
        read_only(even.copy()),
        told[-1],
        uniform_sigma,
    )


def uniform_choice(candidates: Operator, count: int) -> IntArray:
    """So many of the candidates, spread out evenly: what one would do without thinking of noise.

    On a line the candidates nearest to equally spaced places, each once; elsewhere the first
    candidate, and then always the one farthest from all so far.
    """
    places = candidates.sensors.positions
    wanted = whole("count", count, low=1, high=len(places))
    if isinstance(candidates.space, Line) and places.shape[1] == 1:
        return _nearest_to_even(places[:, 0], wanted)
    chosen, far = [0], _distances(candidates, 0)
    far[0] = -1.0
    while len(chosen) < wanted:
        row = int(far.argmax())
        chosen.append(row)
        far = np.minimum(far, _distances(candidates, row))
        far[chosen] = -1.0
    return np.sort(np.array(chosen, dtype=np.int64))


def simulated_gain(
    placement: Placement, *, trials: int, sources: int, rng: np.random.Generator
) -> PlacementGain:
    """What choosing gains in truth: errors of `recover` from both sets, for the same made-up unit sources.

    An infeasible draw is recovered at the smallest feasible radius, and an estimate without mass
    counts as mass spread over all cells.

    Over trials (at least 2) that were proved for both sets; with at most one source in each cell.
    """
    count = whole("trials", trials, low=2)
    # Noise for every candidate: a sensor of both sets has the same.
    drawn = draw_trials(Scene(placement.candidates, placement.sigma, sources), count, rng=rng)
    sets = (
        (Scene(placement.operator, placement.sigma, sources), placement.chosen),
        (Scene(placement.uniform_operator, placement.uniform_sigma, sources), placement.uniform),
    )
    errors = np.array(
        [
            [
                error_of(scene, replace(trial, noise=trial.noise[sensors]), "least mass")
                for trial in drawn
            ]
            for scene, sensors in sets
        ]
    )
    errors = errors[:, np.isfinite(errors).all(axis=0)]
    proven = errors.shape[1]
    if not proven:
        raise SolverFailed(
            f"none of {count} trials had an answer from both sets; no gain was measured"
        )
    chosen, uniform = errors.mean(axis=1)
    ratio = ratio_of_means(*errors)
    return PlacementGain(proven, sources, float(chosen), float(uniform), ratio, count - proven)


@dataclass(frozen=True, slots=True, eq=False)
class _Goal:
    """The criterion of any set, from numbers of single sensors that add up over it."""

    truths: FloatArray  # u_i: candidates by places
    guesses: FloatArray  # u_j: candidates by places
    far: FloatArray  # from i to j
    changes: FloatArray  # squares of changes between neighbors: candidates by steps
    unit: float

    @staticmethod
    def of(
        candidates: Operator, neighbors: MovedMass | SwappedCells, *, unit: float, mass: float
    ) -> _Goal:
        space, sensors = candidates.space, len(candidates.sensors)
        if space.size < 2:
            raise InvalidParameter(
                "sources must have at least two cells, got one; nothing was placed"
            )
        steps = list(pairs(space, 1))
        if sensors * max(space.size, sum(end.size for _, end, _ in steps)) > MAX_ENTRIES:
            raise InvalidParameter(
                f"candidates times steps between cells must be at most {MAX_ENTRIES}, got {sensors} "
                f"candidates and {space.size} cells; nothing was placed"
            )
        matrix = candidates.columns(np.arange(space.size))
        over_distance = isinstance(neighbors, MovedMass)
        changes = candidates.sampled_changes(over_distance=over_distance)
        if changes is None:
            begin = np.concatenate([np.broadcast_to(first, end.shape) for first, end, _ in steps])
            changes = np.abs(
                matrix[:, np.concatenate([end for _, end, _ in steps])] - matrix[:, begin]
            )
            if over_distance:
                changes /= np.concatenate([far for _, _, far in steps])
        changes *= float(neighbors.radius if isinstance(neighbors, MovedMass) else neighbors.upper)
        guesses = _even(np.arange(space.size), MAX_GUESSES)
        truths = _even(guesses, MAX_TRUTHS)
        far = space.distances_between(space.places(truths), space.places(guesses))
        readings = np.ascontiguousarray(mass * matrix)
        # Rows one after the other in each: the criterion is compiled for one layout, not for seven.
        return _Goal(
            np.ascontiguousarray(readings[:, truths]),
            np.ascontiguousarray(readings[:, guesses]),
            np.ascontiguousarray(far),
            np.square(changes, order="C"),
            unit,
        )

    def error(self, rows: IntArray) -> float:
        """The criterion of one set."""
        return float(self.errors(rows[1:], rows[:1])[0])

    def error_at(self, rows: IntArray, sigma: float) -> float:
        """The criterion of one set under this noise."""
        still = np.zeros((len(self.truths), 1))
        moved = np.array([(sigma / self.unit) ** 2])
        return float(replace(self, changes=still)._errors(rows[1:], rows[:1], moved)[0])

    def errors(self, rows: IntArray, more: IntArray) -> FloatArray:
        """The criterion of a set with each of some further candidates."""
        return self._errors(rows, more, self.changes[rows].sum(axis=0))

    def _errors(self, rows: IntArray, more: IntArray, moved: FloatArray) -> FloatArray:
        truths, guesses = self.truths[rows], self.guesses[rows]
        return np.asarray(
            errors_with(
                self.truths,
                self.guesses,
                self.far,
                self.changes,
                np.array(more),
                truths.T @ guesses,
                (truths**2).sum(axis=0),
                (guesses**2).sum(axis=0),
                moved,
                self.unit,
            )
        )


def _greedy(goal: _Goal, count: int, tell: Callable[[str], None]) -> IntArray:
    """Sensors added one by one, each the best at its turn; of equals the first."""
    chosen = np.empty(0, dtype=np.int64)
    left = np.arange(len(goal.changes))
    while chosen.size < count:
        at = int(goal.errors(chosen, left).argmin())
        chosen, left = np.append(chosen, left[at]), np.delete(left, at)
        tell(f"{chosen.size} of {count} sensors placed")
    return np.sort(chosen)


def _swapped(goal: _Goal, start: IntArray, tell: Callable[[str], None]) -> IntArray:
    """A set that no swap of one of its sensors against another candidate makes better."""
    chosen, error = start.copy(), goal.error(start)
    kept = 0  # sensors in a row that no candidate beats
    while kept < chosen.size:
        others = chosen[1:]
        left = np.setdiff1d(np.arange(len(goal.changes)), chosen)
        errors = goal.errors(others, left) if left.size else np.array([math.inf])
        at = int(errors.argmin())
        if errors[at] < error * (1 - BETTER):
            chosen, error, kept = np.append(others, left[at]), float(errors[at]), 0
            tell(f"a swap brings the error to {error:.4g}")
        else:
            chosen, kept = np.roll(chosen, -1), kept + 1
    return np.sort(chosen)


def _nearest_to_even(places: FloatArray, count: int) -> IntArray:
    free = np.ones(places.size, dtype=bool)
    for place in (
        np.linspace(places.min(), places.max(), count) if count > 1 else [np.median(places)]
    ):
        free[np.where(free, np.abs(places - place), np.inf).argmin()] = False
    return np.flatnonzero(~free)


def _distances(candidates: Operator, row: int) -> FloatArray:
    """How far every candidate is from one of them, by the metric of the sources where it has one there."""
    places = candidates.sensors.positions
    if not candidates.in_space:
        return np.asarray(distance.cdist(places[[row]], places)[0])
    return np.array(candidates.space.distances_between(places[[row]], places)[0])


def _even(cells: IntArray, most: int) -> IntArray:
    """So many of the cells at most, evenly spaced."""
    return cells[
        np.unique(np.linspace(0, cells.size - 1, min(most, cells.size)).round().astype(np.int64))
    ]


def _part(candidates: Operator, neighbors: MovedMass | SwappedCells, rows: IntArray) -> Operator:
    names = tuple(candidates.sensors.names[row] for row in rows.tolist())
    return part_of_site(Site("candidates", candidates, neighbors), names)


def _unit_sigma(loss: ZCDP | ApproxDP) -> float:
    """The noise for readings that move by 1."""
    match loss:
        case ApproxDP(epsilon, delta):
            return gaussian_sigma(epsilon, delta)
        case ZCDP(rho):
            if rho == 0:
                raise InvalidParameter(
                    "noise cannot cost nothing; give a rho above 0; nothing was placed"
                )
            return 1 / math.sqrt(2 * rho)
        case _:
            raise InvalidParameter(
                f"sensors add Gaussian noise, which costs rho, or epsilon and delta; got {loss}; "
                "nothing was placed"
            )


def _moved(candidates: Operator, neighbors: MovedMass | SwappedCells, rows: IntArray) -> float:
    return sensitivity(_part(candidates, neighbors, rows), neighbors).l2

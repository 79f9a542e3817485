"""Paths against enumeration, calibrated under their law, better than round by round, and what they cost."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from tests.chance import assert_share

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter
from sfumato.privacy import ZCDP, ApproxDP, compose
from sfumato.sensing.model.operators.graph_diffusion import graph_diffusion
from sfumato.sensing.model.operators.heat_line import heat_line
from sfumato.sensing.model.operators.heat_plane import heat_plane
from sfumato.sensing.model.operators.matrix import linear
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.recovery.distance import emd_of
from sfumato.sensing.recovery.estimators.least_mass import recover
from sfumato.sensing.release.rounds import cost_after
from sfumato.sensing.tracking.average import combine
from sfumato.sensing.tracking.chain import (
    JUMP,
    Steps,
    Walks,
    _cut,
    split_rhat,
    steps_of,
    without_one,
)
from sfumato.sensing.tracking.kernel import draw_swaps
from sfumato.sensing.tracking.rounds import Track, _several, track
from sfumato.spaces import Graph, Grid, Line, Points

SMALL: dict[str, Operator] = {
    "line": heat_line(sources=4, sensors=3, diffusion_time=0.02),
    "grid": heat_plane(
        sources=Grid(1), sensors=[(0.2, 0.3), (0.6, 0.9), (0.8, 0.1)], diffusion_time=0.05
    ),
    "points": heat_plane(
        sources=Points([(0, 0), (0.5, 0.1), (0.2, 0.9)]),
        sensors=[(0.1, 0.2), (0.6, 0.9)],
        diffusion_time=0.05,
    ),
    "graph": graph_diffusion(Graph([(0, 1), (1, 2), (2, 3)]), 0.5, sensors=[0, 3]),
    "matrix": linear([[1, 0.5, 0.1], [0.2, 0.7, 1]], Line(3)),
}


def steps_by_hand(operator: Operator, speed: float) -> FloatArray:
    places = operator.space.places(np.arange(operator.shape[1]))
    law = np.exp(-0.5 * (operator.space.distances_between(places, places) / speed) ** 2)
    return np.asarray((1 - JUMP) * law / law.sum(axis=1, keepdims=True) + JUMP / len(law))


def walked(step: FloatArray, rounds: int, rng: np.random.Generator) -> IntArray:
    path = [int(rng.integers(len(step)))]
    while len(path) < rounds:
        path.append(int(rng.choice(len(step), p=step[path[-1]])))
    return np.array(path)


def enumerated(
    operator: Operator, rounds: FloatArray, sigma: float, speed: float, count: int
) -> FloatArray:
    """How many sources each round has in each cell, expected: every path and a grid of masses, summed."""
    n, t = operator.shape[1], len(rounds)
    columns, step = operator.columns(np.arange(n)), steps_by_hand(operator, speed)
    masses = (np.arange(60) + 0.5) / 60
    paths = np.array(list(itertools.product(range(n), repeat=t)))
    moves = np.log(step[paths[:, :-1], paths[:, 1:]]).sum(axis=1)
    total, out = 0.0, np.zeros((t, n))
    for chosen in itertools.product(range(len(paths)), repeat=count):
        units = np.stack([columns[:, paths[one]].T.ravel() for one in chosen], axis=1)
        grid = np.array(list(itertools.product(masses, repeat=count)))
        off = rounds.ravel() - grid @ units.T
        weight = math.exp(moves[list(chosen)].sum()) * float(
            np.exp(-0.5 * (off**2).sum(axis=1) / sigma**2).sum()
        )
        total += weight
        for one in chosen:
            out[np.arange(t), paths[one]] += weight
    return out / total


@pytest.mark.reference
@pytest.mark.parametrize("name", SMALL)
def test_one_source_is_exact(name: str, rng: np.random.Generator) -> None:
    """Both sides replace the integral over masses by a sum.

    The noise is as large as what a unit reads, so the integrand varies slowly: h**2 / 24 times its
    second derivative, h = 1/24, is below 1e-3.
    """
    operator = SMALL[name]
    speed = 0.4 if name != "graph" else 1.0
    unit = operator.columns([1]).T
    sigma = float(np.linalg.norm(unit))
    rounds = rng.normal(size=(3, operator.shape[0])) * sigma + unit
    found = track(operator, rounds, sigma=sigma, speed=speed)
    exact = enumerated(operator, rounds, sigma, speed, 1)
    assert found.chances[:, 0] == pytest.approx(exact, abs=2e-3)
    assert found.rhat is None
    assert found.mixed
    slow = enumerated(operator, rounds, sigma, speed / 4, 1)
    assert np.abs(slow - exact).max() > 0.02  # the rival: another speed is another answer


@pytest.mark.reference
@pytest.mark.parametrize("near", [2, 9])
def test_several_sources_are_sampled_from_their_posterior(
    near: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both paths at once over all three cells, or over two near each: the middle one is near to more.

    4 chains of 800 draws; if one in ten is independent, an expected count has a deviation of at most 0.04.

    That is 0.7 / sqrt(320): how many of two sources are in a cell varies by 2 p (1 - p), at most
    0.7 squared. 0.16 is four of them; the rival, one source fewer, is farther away.
    """
    monkeypatch.setattr("sfumato.sensing.tracking.chain.NEAR", near)
    operator = SMALL["matrix"]
    rounds = operator.columns([0, 1]).T * 0.9 + operator.columns([2, 2]).T * 0.5
    rounds = rounds + 0.25 * rng.normal(size=rounds.shape)
    found = track(operator, rounds, sigma=0.25, speed=0.4, count=2, rng=rng, draws=800)
    exact = enumerated(operator, rounds, 0.25, 0.4, 2)
    assert found.chances.sum(axis=1) == pytest.approx(exact, abs=0.16)
    assert np.abs(2 * enumerated(operator, rounds, 0.25, 0.4, 1) - exact).max() > 0.16
    assert found.rhat is not None
    assert found.mixed
    assert found.estimate(1).places.shape == (2, 1)


def evidence(
    operator: Operator, rounds: FloatArray, sigma: float, speed: float, count: int
) -> float:
    """The chance of the readings, up to a factor that no count changes: every path and a grid of masses."""
    n, t = operator.shape[1], len(rounds)
    columns, step = operator.columns(np.arange(n)), steps_by_hand(operator, speed)
    paths = np.array(list(itertools.product(range(n), repeat=t)))
    moves = np.log(step[paths[:, :-1], paths[:, 1:]]).sum(axis=1) - math.log(n)
    grid = np.array(list(itertools.product((np.arange(60) + 0.5) / 60, repeat=count)))
    total = 0.0
    for chosen in itertools.product(range(len(paths)), repeat=count):
        units = np.stack([columns[:, paths[one]].T.ravel() for one in chosen], axis=1)
        off = rounds.ravel() - grid @ units.T
        fit = float(np.exp(-0.5 * (off**2).sum(axis=1) / sigma**2).mean())
        total += math.exp(moves[list(chosen)].sum()) * fit
    return total


@pytest.mark.reference
@pytest.mark.parametrize("second", [0.0, 0.5])
def test_one_source_fewer_is_weighed_by_its_evidence(
    second: float, rng: np.random.Generator
) -> None:
    """Densities of 3,200 draws averaged: over 20 seeds deviations were 1 and 5 %; five of the larger."""
    operator = SMALL["matrix"]
    rounds = operator.columns([0, 1]).T * 0.9 + second * operator.columns([2, 2]).T
    rounds = rounds + 0.25 * rng.normal(size=rounds.shape)
    found = track(operator, rounds, sigma=0.25, speed=0.4, count=2, rng=rng, draws=800)
    one, two = (evidence(operator, rounds, 0.25, 0.4, count) for count in (1, 2))
    assert found.fewer == pytest.approx(one / two, rel=0.27)
    nobody = math.exp(-0.5 * float((rounds**2).sum()) / 0.25**2)
    # Both integrate masses by a sum, of 24 and of 60.
    alone = track(operator, rounds, sigma=0.25, speed=0.4)
    assert alone.fewer == pytest.approx(nobody / one, rel=0.02)


@pytest.mark.unit
@pytest.mark.parametrize("max_mass", [1e-12, 1.0, 1e12])
def test_readings_that_tell_nothing_doubt_as_much_in_any_unit_of_mass(max_mass: float) -> None:
    """A mass is at 0 with density 1 / upper, and given its sum s with the other with density 1 / s."""
    columns = np.eye(3)
    scene = Walks(
        columns,
        np.zeros((2, 3)),
        np.full((2, 3), 1e9 * max_mass),
        1 - columns,
        np.ones(1),
        max_mass,
    )
    paths, masses = np.array([[[0, 1], [1, 2]]] * 2), max_mass * np.array([[0.3, 0.4], [0.6, 0.2]])
    known = np.mean([(1 + 1 / 0.7) / 2, (1 + 1 / 0.8) / 2])
    assert without_one(scene, paths, masses) == pytest.approx(known, rel=1e-6)


@pytest.mark.unit
def test_tracks_and_posteriors_mix_up_to_one_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    found = track(SMALL["line"], np.ones((2, 3)), sigma=1.0)
    assert replace(found, rhat=1.05).mixed
    monkeypatch.setattr("sfumato.sensing.diagnostics.mixing.RHAT", 1.01)
    assert not replace(found, rhat=1.05).mixed


APART = np.stack([np.arange(8, 16), np.arange(40, 32, -1)], axis=1)
"""Cells of two sources of a line of 50 that never come nearer to each other than 18 cells."""


@pytest.mark.statistical
@pytest.mark.parametrize("speed", [None, 0.03])
@pytest.mark.parametrize("masses", [(1.0, 1.0), (0.6, 0.6), (0.9, 0.5)])
def test_two_far_apart_are_not_confused(
    speed: float | None, masses: tuple[float, float], rng: np.random.Generator
) -> None:
    """Noise of 0.05 places each within a cell in every round, if nobody is taken for the other.

    Without draws of who was where, chains stay where two paths have changed places from a round on.
    """
    line = heat_line(sources=50, sensors=25, diffusion_time=0.01)
    clean = sum(mass * line.columns(path).T for mass, path in zip(masses, APART.T, strict=True))
    found = track(
        line,
        clean + 0.05 * rng.normal(size=(8, 25)),
        sigma=0.05,
        speed=speed,
        count=2,
        rng=rng,
        draws=200,
    )
    order = [0, 1] if found.cells[0, 0] < 25 else [1, 0]
    assert np.abs(found.cells[:, order] - APART).max() <= 1
    assert found.radii.max() <= 3 / 50
    assert found.masses[order] == pytest.approx(masses, abs=0.03)
    assert found.speed < 0.06  # it is 0.02 or 0.04 a round; a swap would be 0.36 at least
    assert found.mixed


@pytest.mark.unit
def test_chains_with_other_steps_disagree_and_keep_their_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three chains with the truth, by any names, and one in which paths change places and fit better."""
    line = heat_line(sources=50, sensors=25, diffusion_time=0.01)
    swapped = np.concatenate([APART[:4], APART[4:, ::-1]])
    noise = np.random.default_rng(1)
    chains = []
    for path, moves in ((APART[:, ::-1], -20.0), (swapped, -60.0), (APART, -20.0), (APART, -20.0)):
        fits, moved = noise.normal(size=10) - 100 + (moves < -30), moves + noise.normal(size=10)
        masses = np.tile([0.4, 0.9] if path[0, 0] == 40 else [0.9, 0.4], (10, 1))
        chains.append((fits, moved, np.tile(path, (10, 1, 1)), masses, np.full(10, 0.03)))
    read, sigma = np.zeros((8, 25)), np.ones((8, 25))
    places = line.space.places(np.arange(50))
    apart = line.space.distances_between(places, places)
    scene = Walks(line.columns(np.arange(50)), read, sigma, apart, np.array([0.03]), 1.0)
    given = itertools.cycle(chains)
    monkeypatch.setattr(
        sys.modules["sfumato.sensing.tracking.rounds"], "sampled", lambda *_, **__: next(given)
    )
    found = _several(line, scene, 2, 10, noise)
    assert found.rhat is not None
    assert (
        found.rhat > 10
    )  # by the steps: total mass and spread are the same, and the fit is nearly so
    assert found.cells.tolist() in (
        APART.tolist(),
        APART[:, ::-1].tolist(),
    )  # names of the likeliest draw


@pytest.mark.unit
def test_chains_that_disagree_are_made_again_with_more_draws(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Four chains of which one is elsewhere, then four that are not: the answer is of these."""
    scene = Walks(np.eye(3), np.zeros((2, 3)), np.ones((2, 3)), 1 - np.eye(3), np.ones(1), 1.0)
    noise, asked = np.random.default_rng(1), list[int]()

    def made(
        _scene: Walks, _steps: Steps, _count: int, draws: int, _rng: object, **_: object
    ) -> object:
        asked.append(draws)
        paths = np.tile([[0, 1], [0, 1]], (draws, 1, 1))
        fits = noise.normal(size=draws) - 50 * (len(asked) == 3)
        return fits, noise.normal(size=draws), paths, np.full((draws, 2), 0.5), np.ones(draws)

    monkeypatch.setattr(sys.modules["sfumato.sensing.tracking.rounds"], "sampled", made)
    found = _several(linear(np.eye(3), Line(3)), scene, 2, 20, noise)
    assert asked == [20] * 4 + [40] * 4
    assert found.mixed


@pytest.mark.reference
def test_a_speed_is_drawn_by_all_steps(rng: np.random.Generator) -> None:
    """20,000 draws against their chances from the matrices of steps: five deviations of a count, and two."""
    line = heat_line(sources=8, sensors=2, diffusion_time=0.01)
    places = line.space.places(np.arange(8))
    apart = line.space.distances_between(places, places)
    speeds = np.array([0.1, 0.2, 0.4])
    none = np.zeros((0, 2))
    steps = Steps.of(Walks(line.columns(np.arange(8)), none, none, apart, speeds, 1.0))
    path = np.array([[0, 7], [1, 5], [3, 5]])
    likely = np.array(
        [np.log(steps_of(apart, speed)[path[:-1], path[1:]]).sum() for speed in speeds]
    )
    chances = np.exp(likely - likely.max())
    drawn = np.bincount([steps.draw_speed(path, 0, rng) for _ in range(20_000)], minlength=3)
    for count, chance in zip(drawn.tolist(), chances / chances.sum(), strict=True):
        assert abs(count - 20_000 * chance) <= 5 * math.sqrt(20_000 * chance) + 2
    assert 0.1 < np.sort(chances)[-2] < 0.9  # there is something to tell apart


@pytest.mark.reference
def test_who_was_where_is_drawn_from_its_posterior(rng: np.random.Generator) -> None:
    """All 16 ways of trading places in 4 rounds, by their weights and by 40,000 draws."""
    gain, keep, swap = rng.normal(size=4), rng.normal(size=3), rng.normal(size=3)
    ways = np.array(list(itertools.product([0, 1], repeat=4)))
    turned = ways[:, 1:] != ways[:, :-1]
    weights = np.exp(ways @ gain + np.where(turned, swap, keep).sum(axis=1))
    drawn = np.array([draw_swaps(gain, keep, swap, rng.random(4)) for _ in range(40_000)])
    counts = np.bincount(drawn @ [8, 4, 2, 1], minlength=16)
    for count, weight in zip(counts.tolist(), weights / weights.sum(), strict=True):
        # Five deviations of a count, and two more draws where few are expected.
        assert abs(count - 40_000 * weight) <= 5 * math.sqrt(40_000 * weight) + 2
    far = draw_swaps(
        np.array([0.0, -2e3, 1e5]), np.array([-1e4, -3.0]), np.array([0.0, -2e4]), np.ones(3) / 2
    )
    assert far.tolist() == [
        False,
        True,
        True,
    ]  # no weight underflows: 1e5 for the last, then its neighbors


@pytest.mark.unit
@pytest.mark.parametrize(
    ("mean", "deviation", "end"),
    [
        (-0.2, 0.003, 0.0),
        (1.2, 0.003, 1.0),
        (1e6, 0.01, 1.0),
        (-50.0, 1e-3, 0.0),
        (1e200, 1e-3, 1.0),
    ],
)
def test_a_mass_far_outside_is_at_the_nearest_end(
    mean: float, deviation: float, end: float, rng: np.random.Generator
) -> None:
    """Beyond 38 deviations both tails are 0 in doubles; the law is at the end nearest to the mean."""
    own = np.array([1 / deviation])
    drawn = [_cut(own, own * mean, 0.0, 1.0, rng) for _ in range(20)]
    assert drawn == pytest.approx([end] * 20, abs=20 * deviation**2 / abs(mean - end))


@pytest.mark.reference
@pytest.mark.parametrize("mean", [-0.6, 0.3, 1.1])
def test_a_mass_has_its_cut_law(mean: float, rng: np.random.Generator) -> None:
    """Against scipy's truncated Gaussian, by Kolmogorov's distance: 2e-6 at 2.7 / sqrt(4000)."""
    own = np.array([5.0])
    drawn = [_cut(own, own * mean, 0.0, 1.0, rng) for _ in range(4000)]
    law = stats.truncnorm(-5 * mean, 5 * (1 - mean), loc=mean, scale=0.2)
    assert stats.kstest(drawn, law.cdf).statistic < 2.7 / math.sqrt(4000)
    assert stats.kstest(drawn, stats.uniform().cdf).statistic > 2.7 / math.sqrt(4000)


@pytest.mark.unit
def test_readings_far_too_large_or_small_have_masses_at_the_ends(rng: np.random.Generator) -> None:
    line = SMALL["line"]
    for value, mass in ((1e6, 1.0), (-50.0, 0.0)):
        found = track(line, np.full((3, 3), value), sigma=0.01, count=2, rng=rng, draws=20)
        assert found.masses == pytest.approx([mass, mass], abs=1e-3)


@pytest.mark.statistical
def test_mass_goes_from_one_source_to_another(rng: np.random.Generator) -> None:
    """Two neighbors whose readings are nearly alike: one at a time, masses go along their sum very slowly.

    R-hat in 20 runs: 1.00 to 1.01 with trades of mass, 1.3 to 5.7 without.
    """
    operator = linear([[1, 0.98, 0], [0.98, 1, 0], [0, 0, 1]], Line(3))
    rounds = np.tile(operator.columns([0, 1]) @ [0.5, 0.5], (4, 1)) + 0.005 * rng.normal(
        size=(4, 3)
    )
    found = track(operator, rounds, sigma=0.005, speed=0, count=2, rng=rng, draws=200)
    assert found.mixed


@pytest.mark.statistical
def test_radii_hold_what_they_say(rng: np.random.Generator) -> None:
    """Sources that move by the law: within the radius as often as the chances in it add up to."""
    operator = heat_line(sources=40, sensors=20, diffusion_time=0.05)
    step, trials = steps_by_hand(operator, 0.1), 250
    held, said, doubted = 0, 0.0, 0
    for _ in range(trials):
        path, mass = walked(step, 6, rng), rng.random()
        rounds = mass * operator.columns(path).T + 0.3 * rng.normal(size=(6, 20))
        found = track(operator, rounds, sigma=0.3, speed=0.1)
        far = np.abs(operator.space.positions - operator.space.positions[found.cells[2, 0]])
        inside = far <= found.radii[2, 0] + 1e-12
        said += float(found.chances[2, 0, inside].sum()) / trials
        held += inside[path[2]]
        # A saboteur who takes the noise for a third of what it is.
        sure = track(operator, rounds, sigma=0.1, speed=0.1)
        far = np.abs(operator.space.positions - operator.space.positions[sure.cells[2, 0]])
        doubted += far[path[2]] <= sure.radii[2, 0] + 1e-12
    assert said >= 0.9
    assert_share(held, trials, said, rivals=[said - 0.25])
    with pytest.raises(AssertionError):
        assert_share(doubted, trials, said, rivals=[0.01])


@pytest.mark.statistical
@pytest.mark.parametrize("sigma", [0.3, 0.1])
def test_radii_hold_people_who_walk_anywhere(sigma: float, rng: np.random.Generator) -> None:
    """On cells of 1/50 each: nine in ten at least, one round of each walk. Middles alone are rejected."""
    line = heat_line(sources=50, sensors=25, diffusion_time=0.01)
    finer = heat_line(sources=5000, sensors=25, diffusion_time=0.01)
    held, middles, trials = 0, 0, 120
    for _ in range(trials):
        path = rng.uniform(0.2, 0.8) + np.cumsum(rng.normal(0, 0.02, 4))
        clean = finer.columns(np.searchsorted(finer.space.positions, path)).T
        rounds = clean + sigma * rng.normal(size=(4, 25))
        for anywhere in (True, False):
            found = track(line, rounds, sigma=sigma, anywhere=anywhere)
            near = abs(line.space.positions[found.cells[2, 0]] - path[2]) <= found.radii[2, 0]
            held, middles = held + (near and anywhere), middles + (near and not anywhere)
            assert found.radii.min() >= 0.01 * anywhere - 1e-12  # half a cell
    assert stats.binomtest(held, trials, 0.9, alternative="less").pvalue >= 1e-6
    assert stats.binomtest(middles, trials, 0.9, alternative="less").pvalue < 1e-6


@pytest.mark.statistical
def test_a_track_beats_each_round_alone_and_all_averaged(rng: np.random.Generator) -> None:
    """Measured over 40 walks: 0.0076 for the track, 0.0162 for R, 0.0324 for R of the average."""
    line, sigma = heat_line(sources=100, sensors=50, diffusion_time=0.05), 0.14757
    errors = np.zeros(3)
    for _ in range(6):
        path = walked(steps_by_hand(line, 0.02), 24, rng)
        rounds = line.columns(path).T + sigma * rng.normal(size=(24, 50))
        mean, less = combine(rounds, sigma)
        found, still = track(line, rounds, sigma=sigma), recover(line, mean, sigma=less)
        for at in range(0, 24, 4):
            truth = np.zeros(100)
            truth[path[at]] = 1.0
            alone = recover(line, rounds[at], sigma=sigma)
            if alone.status == still.status == "optimal":
                errors += [
                    emd_of(found.estimate(at), truth),
                    emd_of(alone, truth),
                    emd_of(still, truth),
                ]
    assert errors[0] > 0
    assert errors[0] < errors[1]
    assert errors[0] < 0.7 * errors[2]


@pytest.mark.statistical
def test_the_speed_is_learned(rng: np.random.Generator) -> None:
    """Of six speeds a factor 2.2 apart, the mean is within two of them of the truth, and in order."""
    line = heat_line(sources=100, sensors=50, diffusion_time=0.05)
    found = []
    for speed in (0.01, 0.1):
        path = walked(steps_by_hand(line, speed), 30, rng)
        rounds = 0.8 * line.columns(path).T + 0.06598 * rng.normal(size=(30, 50))
        seen = track(line, rounds, sigma=0.06598)
        assert speed / 4.8 < seen.speed < 4.8 * speed
        assert seen.masses[0] == pytest.approx(0.8, abs=0.02)  # deviation 0.06598 / sqrt(30 * 40)
        found.append(seen.speed)
    assert found[1] > 2 * found[0]


@pytest.mark.unit
def test_a_source_at_rest_is_in_one_cell(rng: np.random.Generator) -> None:
    line = heat_line(sources=30, sensors=20, diffusion_time=0.02)
    rounds = line.columns([11] * 5).T + 0.2 * rng.normal(size=(5, 20))
    rest = track(line, rounds, sigma=0.2, speed=0)
    assert np.ptp(rest.chances, axis=0).max() < 1e-3  # but for jumps of 1e-6
    again = track(line, combine(rounds, 0.2)[0][np.newaxis], sigma=combine(rounds, 0.2)[1], speed=0)
    assert rest.chances[0] == pytest.approx(again.chances[0], abs=1e-2)
    assert rest.cells[0] == again.cells[0]


@pytest.mark.reference
def test_the_combined_reading_is_sufficient(rng: np.random.Generator) -> None:
    """Two candidate signals are told apart as well by it as by all rounds; a plain mean is not that good."""
    rounds, sigmas = rng.normal(size=(5, 7)), rng.uniform(0.1, 2, 5)
    one, other = rng.normal(size=(2, 7))

    def gain(read: FloatArray, noise: FloatArray) -> float:
        return float((((read - one) ** 2 - (read - other) ** 2).sum(axis=1) / noise**2).sum())

    y, sigma = combine(rounds, sigmas)
    assert gain(y[np.newaxis], np.array([sigma])) == pytest.approx(gain(rounds, sigmas), rel=1e-10)
    plain = rounds.mean(axis=0)[np.newaxis]
    assert gain(plain, np.array([sigma])) != pytest.approx(gain(rounds, sigmas), rel=1e-3)


@pytest.mark.unit
def test_a_track_says_what_its_rounds_cost() -> None:
    found = track(SMALL["line"], np.ones((24, 3)), sigma=1.0)
    rounds = found.cost(ZCDP("1/50"), delta="1e-6")
    assert rounds.readings == 24
    assert rounds.charged == compose([ZCDP("1/50")] * 24)
    assert rounds == cost_after(ZCDP("1/50"), [24], delta="1e-6")[0]
    # 24 times a delta of 0.1 says nothing, so a ledger that adds it up has nothing to say either.
    assert found.cost(ApproxDP(1, "1/10")).charged is None


@pytest.mark.unit
def test_chains_that_disagree_say_so() -> None:
    apart = np.array([[0.0, 1, 0, 1], [5, 6, 5, 6]])
    # Four halves with means 1/2, 1/2, 11/2, 11/2 of variance 25/3, each of variance 1/2.
    assert split_rhat(apart) == pytest.approx(math.sqrt(0.5 + (25 / 3) / 0.5))
    assert split_rhat(np.zeros((4, 10))) == 1.0
    assert split_rhat(np.repeat([[0.0], [1.0]], 10, axis=1)) == math.inf
    drift = np.array([[0.0, 0.1, 5.0, 5.1], [0.0, 0.1, 5.0, 5.1]])  # alike, but still on their way
    assert split_rhat(drift) > 1.1
    empty = np.zeros((1, 1))
    assert not Track(SMALL["line"], empty.astype(int), empty, empty, empty[0], 0.0, 1.2).mixed


@pytest.mark.unit
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: track(heat_line(sources=2001, sensors=2, diffusion_time=1), [[0, 0]], sigma=1),
            "2000 cells",
        ),
        (lambda: track(SMALL["line"], [[0.0, 1]], sigma=1), "each of 3 sensors"),
        (lambda: track(SMALL["line"], [0.0, 1, 2], sigma=1), "one or more rows"),
        (lambda: track(SMALL["line"], [[0.0, 1, math.inf]], sigma=1), "finite"),
        (lambda: track(SMALL["line"], [[0.0, 1, 2]], sigma=0), "sigma must be above 0"),
        (lambda: track(SMALL["line"], [[0.0, 1, 2]], sigma=[1, 2]), "sigma must be above 0"),
        (lambda: track(SMALL["line"], [[0.0, 1, 2]], sigma=1, speed=-1), "speed at least 0"),
        (
            lambda: track(SMALL["line"], [[0.0, 1, 2]], sigma=1, max_mass=0),
            "`max_mass` must be above 0",
        ),
        (lambda: track(SMALL["line"], [[0.0, 1, 2]], sigma=1, count=0), "count must be"),
        (lambda: track(SMALL["line"], [[0.0, 1, 2]], sigma=1, count=2), "give rng"),
        (lambda: combine([], 1), "one or more rows"),
    ],
)
def test_a_bad_question_gets_one_sentence(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        call()

"""The posterior against one computed cell by cell, its compiled parts against quadrature, and its limits."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter, SolverFailed
from sfumato.sensing import graph_diffusion, heat_line, heat_plane, linear
from sfumato.sensing.diagnostics.mixing import judge
from sfumato.sensing.recovery.answer import Estimate
from sfumato.sensing.recovery.distance import emd_of
from sfumato.sensing.recovery.estimators.bayes_median import bayes_median, median_shares
from sfumato.sensing.recovery.estimators.least_mass import recover
from sfumato.sensing.recovery.estimators.posterior import MOVES, posterior
from sfumato.sensing.recovery.estimators.posterior_kernel import anneal, draw_mass, log_mean
from sfumato.sensing.recovery.estimators.source_posterior import SourcePosterior
from sfumato.spaces import Graph, Grid, Line

RUNS, PARTICLES = 40, 200
LINE = heat_line(sources=4, sensors=5, diffusion_time=0.03)
ALL_PAIRS = (np.arange(5) * 3, np.array([j for i in range(4) for j in range(4) if j != i]))


def exact(readings: FloatArray, sigma: float, *, free: bool) -> tuple[FloatArray, float]:
    """P(one source), expected share of mass in each of 4 cells, and the evidence; at most two sources.

    The prior of masses integrated over their floor: -log(1 - w) for one, m / (1 - m) for two, m the
    smaller.
    """
    columns = LINE.columns(np.arange(4))

    def likelihood(fitted: FloatArray) -> FloatArray:
        apart = ((fitted - readings) ** 2).sum(axis=-1) - readings @ readings
        return np.asarray(np.exp(-apart / (2 * sigma**2)))

    if not free:
        masses, one = np.ones(1), np.ones(1)
        two = np.ones((1, 1))
    else:
        # Midpoints in u = sqrt(1 - w), in which both priors are smooth: dw = 2 u du.
        u = (np.arange(400) + 0.5) / 400
        masses = 1 - u**2
        one = -np.log(u**2) * 2 * u / 400
        least = np.minimum(masses[:, None], masses)
        two = least / (1 - least) * (2 * u[:, None] / 400) * (2 * u / 400)
    single = (
        np.array([(likelihood(masses[:, None] * columns[:, j]) * one).sum() for j in range(4)]) / 4
    )
    share = single.copy()
    both = 0.0
    for i, j in itertools.product(range(4), repeat=2):
        fitted = masses[:, None, None] * columns[:, i] + masses[None, :, None] * columns[:, j]
        weight = likelihood(fitted) * two / 16
        both += weight.sum()
        split = masses[:, None] / (masses[:, None] + masses)
        share[i] += (weight * split).sum()
        share[j] += (weight * (1 - split)).sum()
    evidence = (single.sum() + both) / 2
    return np.append(share / 2, single.sum() / 2) / evidence, float(np.log(evidence))


@pytest.mark.reference
@pytest.mark.parametrize("free", [False, True], ids=["known", "free"])
@pytest.mark.parametrize("sigma", [0.5, 0.15], ids=["noisy", "clear"])
def test_particles_have_the_exact_posterior(
    rng: np.random.Generator, free: bool, sigma: float
) -> None:
    """Means over independent runs, in units of their own standard error; a rival is 4 errors further off."""
    truth = np.array([0.0, 1.0, 0.0, 0.6 if free else 1.0])
    readings = LINE.readings(truth) + sigma * rng.standard_normal(5)
    columns = LINE.columns(np.arange(4))
    wanted, evidence = exact(readings, sigma, free=free)
    seen, evidences = [], []
    for chance in rng.spawn(RUNS):
        cells, masses, counts, found, _ = anneal(
            columns.T @ columns / sigma**2, columns.T @ readings / sigma**2,
            np.array([-np.inf, -math.log(2), -math.log(2)]), free, 1.0, PARTICLES, MOVES, 30, *ALL_PAIRS,
            chance,
        )  # fmt: skip
        held = np.arange(2) < counts[:, None]
        share = np.where(held, masses, 0) / np.where(held, masses, 0).sum(axis=1, keepdims=True)
        mean = [share[held & (cells == j)].sum() / PARTICLES for j in range(4)]
        seen.append([*mean, (counts == 1).mean()])
        evidences.append(found)
    off = np.mean(seen, axis=0) - wanted
    error = np.std(seen, axis=0, ddof=1) / math.sqrt(RUNS)
    # Particles of one run see each other: a bias of about 1 / PARTICLES comes on top.
    assert (np.abs(off) <= 6 * error + 1 / PARTICLES).all(), (off, error)
    assert (error < 0.02).all()
    # The evidence itself is unbiased, not its logarithm: Jensen's share is half the variance.
    bias = np.var(evidences, ddof=1) / 2
    assert (
        abs(np.mean(evidences) + bias - evidence) <= 6 * np.std(evidences) / math.sqrt(RUNS) + 0.02
    )


@pytest.mark.property
@settings(max_examples=80, deadline=None)
@given(
    b=st.floats(-400, 400), root=st.floats(0, 30), width=st.floats(1e-3, 5)
)  # h = root**2, up to 900: e**(h w**2) beyond doubles
def test_log_mean_is_the_integral(b: float, root: float, width: float) -> None:
    h = root**2
    best = min(max(b / h if h > 0 else (width if b > 0 else 0.0), 0.0), width)
    top = b * best - h * best**2 / 2

    def scaled(w: float) -> float:
        return math.exp(b * w - h * w**2 / 2 - top)

    # Around the top, where the mass is: 1e-10 of it is elsewhere.
    reach = 12 / math.sqrt(h) if h > 0 else width
    falls = 30 / max(abs(b - h * best), 1e-9)
    points = sorted(
        {min(max(best + s * min(reach, falls), 0.0), width) for s in (-1, -0.1, 0, 0.1, 1)}
    )
    area = sum(
        integrate.quad(scaled, low, high, epsabs=0, epsrel=1e-9)[0]
        for low, high in itertools.pairwise([0.0, *points, width])
        if high > low
    )
    # The series of a far tail is right to 105 / 8**8, and its difference over at least 1e-2 of it.
    assert log_mean(b, h, width) == pytest.approx(top + math.log(area / width), abs=1e-3)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("b", "h"),
    [
        (3.0, 9.0),
        (-5.0, 2.0),
        (40.0, 4.0),
        (0.3, 0.2),
        (0.0, 0.0),
        (30.0, 28.0),
        (-0.5, 100.0),
        (905.0, 900.0),
    ],
)
def test_masses_have_their_density(rng: np.random.Generator, b: float, h: float) -> None:
    width = 1.0
    drawn = np.array([draw_mass(b, h, width, rng) for _ in range(4000)])
    grid = np.linspace(0, width, 4001)
    density = np.exp(b * grid - h * grid**2 / 2 - np.max(b * grid - h * grid**2 / 2))
    below = integrate.cumulative_trapezoid(density, grid, initial=0)
    law = lambda x: np.interp(x, grid, below / below[-1])  # noqa: E731
    assert stats.kstest(drawn, law).pvalue > 1e-6
    other = density * np.exp(-1.5 * grid / min(width, max(drawn.std() * 4, 1e-3)))
    wrong = integrate.cumulative_trapezoid(other, grid, initial=0)
    assert stats.kstest(drawn, lambda x: np.interp(x, grid, wrong / wrong[-1])).pvalue < 1e-6


def scene(
    rng: np.random.Generator, count: int = 2, sigma: float = 0.066
) -> tuple[SourcePosterior, FloatArray]:
    line = heat_line(sources=100, sensors=50, diffusion_time=0.05)
    truth = np.zeros(100)
    truth[rng.choice(100, count, replace=False)] = 1.0
    readings = line.readings(truth) + sigma * rng.standard_normal(50)
    return posterior(line, readings, sigma=sigma, rng=rng), truth


@pytest.mark.reference
def test_the_line_median_is_least_of_all(rng: np.random.Generator) -> None:
    """No draw, not R and not the linear program on the same draws is nearer to the draws on average."""
    beliefs, _ = scene(rng)
    line = beliefs.operator.space
    assert isinstance(line, Line)
    some = rng.choice(len(beliefs.weights), 60, replace=False, p=beliefs.weights)
    few = with_draws(beliefs, some)
    answer = bayes_median(few)
    least = mean_distance(few, answer)
    for other in few.cells[:10], few.cells[-10:]:
        for row, mass in zip(other, few.masses, strict=False):
            held = row >= 0
            rival = Estimate(
                few.operator, line.places(row[held]), np.ones(held.sum()) + 0 * mass[held]
            )
            assert least <= mean_distance(few, rival) + 1e-9
    found = recover(few.operator, few.readings, sigma=few.sigma)
    rival = Estimate(few.operator, line.places(found.support), found.estimate[found.support])
    assert least <= mean_distance(few, rival)
    held = np.unique(few.cells[few.cells >= 0])
    apart = line.distances_between(line.places(held), line.places(held))
    draws = [
        (apart[:, np.searchsorted(held, row[row >= 0])], mass[row >= 0] / mass.sum())
        for row, mass in zip(few.cells, few.masses, strict=True)
    ]
    program = Estimate(few.operator, line.places(held), median_shares(draws) + 1e-15)
    # The line's answer has 200 levels of mass: each may be off by its half at both of its ends.
    assert mean_distance(few, program) <= least + 1e-6
    assert least <= mean_distance(few, program) + 1 / 200


def with_draws(beliefs: SourcePosterior, some: IntArray) -> SourcePosterior:
    from dataclasses import replace

    return replace(
        beliefs, cells=beliefs.cells[some], masses=beliefs.masses[some],
        weights=np.full(some.size, 1 / some.size),
    )  # fmt: skip


def mean_distance(beliefs: SourcePosterior, answer: Estimate) -> float:
    total = 0.0
    for row, mass in zip(beliefs.cells, beliefs.masses, strict=True):
        truth = np.bincount(
            row[row >= 0], weights=mass[row >= 0], minlength=beliefs.operator.space.size
        )
        total += emd_of(answer, truth)
    return total / len(beliefs.weights)


@pytest.mark.unit
def test_units_do_not_matter(rng: np.random.Generator) -> None:
    """Readings in another unit, with noise and largest mass in it too, tell the same."""
    line = heat_line(sources=60, sensors=20, diffusion_time=0.02)
    truth = np.zeros(60)
    truth[[10, 40]] = 1
    seed = int(rng.integers(2**32))
    readings = line.readings(truth) + 0.1 * rng.standard_normal(20)
    one = posterior(line, readings, sigma=0.1, rng=np.random.default_rng(seed))
    other = posterior(line, 8 * readings, sigma=0.8, max_mass=8, rng=np.random.default_rng(seed))
    assert np.array_equal(one.cells, other.cells)
    np.testing.assert_allclose(other.masses, 8 * one.masses, rtol=1e-9)
    again = posterior(line, readings, sigma=0.1, rng=np.random.default_rng(seed))
    assert np.array_equal(one.masses, again.masses)


@pytest.mark.unit
def test_one_clear_source_is_found_everywhere(rng: np.random.Generator) -> None:
    """On a plane, a graph and any matrix: one source of three times the noise, its place and its mass."""
    middle = (np.arange(6) + 0.5) / 6
    places = np.stack(np.meshgrid(middle, middle), axis=-1).reshape(-1, 2)
    ring = Graph([(i, (i + 1) % 30) for i in range(30)])
    some = linear(
        heat_line(sources=40, sensors=20, diffusion_time=0.02).columns(np.arange(40)), Line(40)
    )
    for operator in (
        heat_plane(sources=Grid(4), sensors=places, diffusion_time=0.01),
        graph_diffusion(ring, 0.5),
        some,
    ):
        truth = np.zeros(operator.space.size)
        cell = int(rng.integers(truth.size))
        truth[cell] = 1
        read = operator.readings(truth)
        sigma = float(np.linalg.norm(read)) / 30
        beliefs = posterior(
            operator,
            read + sigma * rng.standard_normal(read.size),
            sigma=sigma,
            rng=rng,
            max_sources=4,
        )
        assert beliefs.mixing.mixed
        assert beliefs.counts[1] > 0.5
        assert beliefs.known > 0.5
        low, high = beliefs.total(0.999)
        assert low - 0.2 <= 1 <= high + 0.2
        place = operator.space.places(np.array([cell]))
        spacing = np.sort(
            operator.space.distances_between(place, operator.space.places(np.arange(truth.size)))
        )
        assert beliefs.near(place[0], float(spacing[0, 8])) > 0.9
        assert emd_of(bayes_median(beliefs), truth) <= spacing[0, 8]


@pytest.mark.unit
def test_masses_that_are_not_known_are_learned(rng: np.random.Generator) -> None:
    line = heat_line(sources=100, sensors=50, diffusion_time=0.05)
    truth = np.zeros(100)
    truth[[20, 70]] = 0.45
    readings = line.readings(truth) + 0.066 * rng.standard_normal(50)
    learned = posterior(line, readings, sigma=0.066, rng=rng)
    assert learned.known < 0.05
    told = posterior(line, readings, sigma=0.066, rng=rng, masses="known")
    assert math.isnan(told.known)
    assert emd_of(bayes_median(learned), truth) < emd_of(bayes_median(told), truth)


@pytest.mark.unit
def test_halves_that_disagree_are_told(rng: np.random.Generator) -> None:
    """Draws of two different scenes, one for each half: no mixing; of one scene: mixing."""
    line = heat_line(sources=20, sensors=9, diffusion_time=0.05)
    here = rng.integers(0, 6, (200, 1))
    there = rng.integers(14, 20, (200, 1))
    half = np.repeat([0, 1], 200)
    common: dict[str, Any] = {
        "halves": np.full(400, 1 / 200),
        "half": half,
        "law_gap": 0.0,
        "particles": 200,
        "stages": 5,
    }
    same = judge(line, np.vstack([here, rng.integers(0, 6, (200, 1))]), np.ones((400, 1)), **common)
    other = judge(line, np.vstack([here, there]), np.ones((400, 1)), **common)
    assert same.mixed
    assert "did NOT mix" not in same.message
    assert not other.mixed
    assert "did NOT mix" in other.message


@pytest.mark.unit
def test_how_well_the_best_draw_fits_is_what_it_leaves(rng: np.random.Generator) -> None:
    y = LINE.readings(np.eye(4)[2]) + 0.1 * rng.standard_normal(5)
    found = posterior(LINE, y, sigma=0.1, rng=rng)
    left = []
    for row, mass in zip(found.cells, found.masses, strict=True):
        held = row >= 0
        left.append(np.sum((y - LINE.columns(row[held]) @ mass[held]) ** 2) / 0.01)
    assert found.fits == pytest.approx(stats.chi2.sf(min(left), 5), rel=1e-9)


@pytest.mark.unit
def test_more_sources_than_believed_are_believed_in(rng: np.random.Generator) -> None:
    """Twenty units where twelve are believed: the rival may think of no more, and says that it is wrong."""
    line = heat_line(sources=100, sensors=50, diffusion_time=0.05)
    truth = np.zeros(100)
    truth[rng.choice(100, 20, replace=False)] = 1
    y = line.readings(truth) + 0.066 * rng.standard_normal(50)
    found = posterior(line, y, sigma=0.066, rng=rng)
    assert (found.max_sources, found.message) == (24, "")
    assert found.counts[18:].sum() > 0.9
    rival = posterior(line, y, sigma=0.066, rng=rng, max_sources=12)
    assert "no 12 sources of mass 1 or less explain the readings" in rival.message
    least = emd_of(recover(line, y, sigma=0.066), truth)
    assert emd_of(bayes_median(found), truth) < least < emd_of(bayes_median(rival), truth)


@pytest.mark.unit
def test_readings_beyond_doubles_are_refused_and_not_waited_for(rng: np.random.Generator) -> None:
    with pytest.raises(SolverFailed, match="larger than their noise, 1e-100"):
        posterior(LINE, np.ones(5), sigma=1e-100, rng=rng)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"sigma": 0.0}, "sigma must be positive"),
        ({"max_mass": -1.0}, "`max_mass` must be positive"),
        ({"max_sources": 0}, "`max_sources` must be"),
        ({"masses": "other"}, "masses are 'learned'"),
    ],
    ids=["sigma", "max_mass", "max_sources", "masses"],
)
def test_mistakes_are_told(rng: np.random.Generator, wrong: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        posterior(LINE, np.zeros(5), **{"sigma": 1.0, "rng": rng, **wrong})  # type: ignore[arg-type]

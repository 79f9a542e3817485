"""The decoder of local maps against brute force, against the uniform map, and its bands against chance."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import InvalidInput
from sfumato.heatmap.analysis import emd_share
from sfumato.heatmap.local import (
    Evidence,
    KaryResponse,
    Question,
    SubsetSelection,
    decode,
    design,
    evidence_of,
    first_question,
    next_question,
    odds_below,
    simulate_local_map,
    simulate_reports,
)
from sfumato.heatmap.local.decoder import _without_sum
from sfumato.heatmap.local.rounds import family_of, leaf_of_cells
from sfumato.spaces import Grid

pytestmark = pytest.mark.unit

UNIT = (0.0, 0.0, 1.0, 1.0)
LEVEL_1 = tuple((1, code) for code in range(4))


def clusters(users: int, rng: np.random.Generator) -> np.ndarray:
    """Codes of level 8: three clusters of people and some anywhere."""
    centers, weights = rng.random((3, 2)), rng.dirichlet([2, 2, 2, 1])
    which = rng.choice(4, users, p=weights)
    places = np.where(
        (which < 3)[:, None],
        centers[np.minimum(which, 2)] + 0.04 * rng.standard_normal((users, 2)),
        rng.random((users, 2)),
    )
    inside = np.clip(places, 0, 1 - 1e-9)
    return np.asarray(Grid(8).cells_of(inside[:, 0], inside[:, 1]))


def shares(codes: np.ndarray, level: int) -> np.ndarray:
    counts = np.bincount(codes >> 2 * (8 - level), minlength=4**level)
    return Grid(level).image(counts / codes.size)


def test_shares_without_prior_are_those_of_brute_force() -> None:
    """On 4 cells, the peak of the exact likelihood by a walk over the whole simplex."""
    rng = np.random.default_rng(4)
    channel = SubsetSelection(4, 1, Fraction(5))
    reports = simulate_reports(channel, rng.choice(4, 4000, p=[0.5, 0.3, 0.15, 0.05]), rng=rng)
    question = Question(
        "c", 1, 4000, Fraction(2), UNIT, LEVEL_1, (Fraction(0), Fraction(1)), channel
    )
    evidence = evidence_of(question, reports)
    steps = 100
    best, at = -np.inf, None
    for a, b, c in itertools.product(range(0, steps + 1, 2), repeat=3):
        if a + b + c <= steps:
            masses = np.array([a, b, c, steps - a - b - c]) / steps
            likelihood = float(evidence.counts @ np.log(1 + 4 * (evidence.likely @ masses)))
            if likelihood > best:
                best, at = likelihood, masses
    found, _ = evidence.expanded(evidence.rough_shares())
    _, covariance = evidence.expanded(found)
    assert found.sum() == pytest.approx(1)
    assert at is not None
    assert np.abs(found - at).max() < 0.02 + 1e-9  # half a step of the walk, and a cell more
    # k-ary response over 4 cells has a covariance in closed form.
    p = 5 / 8
    q = 1 / 8
    told = found * p + (1 - found) * q
    expected = told * (1 - told) / (4000 * (p - q) ** 2)
    assert np.diag(covariance) == pytest.approx(expected, rel=0.01)


def test_a_crowd_in_one_place_is_found_there() -> None:
    """Reports of everybody in one cell: no prior can move the map far from it."""
    rng = np.random.default_rng(5)
    found = simulate_local_map(np.full(3000, 12345), 3, rng=rng)
    image = Grid(4).image(found.means(4))
    truth = np.zeros(256)
    truth[12345 >> 8] = 1.0
    assert emd_share(Grid(4).image(truth), image, Grid(4)) < 0.05


def test_more_users_and_more_epsilon_make_better_maps_and_none_is_worse_than_even() -> None:
    rng = np.random.default_rng(6)
    codes = clusters(20_000, rng)
    truth, even = shares(codes, 6), np.full((64, 64), 1 / 4096)
    errors = []
    for users, epsilon in ((1000, 1), (20_000, 1), (20_000, 4)):
        found = simulate_local_map(codes[:users], epsilon, rng=rng)
        errors.append(emd_share(truth, Grid(6).image(found.means(6)), Grid(6)))
    assert errors[2] < errors[1] < errors[0] < emd_share(truth, even, Grid(6))
    assert errors[2] < 0.03


def test_all_users_are_somewhere_and_no_mass_is_negative() -> None:
    found = simulate_local_map(
        clusters(500, np.random.default_rng(7)), "0.3", rng=np.random.default_rng(8)
    )
    masses = found.means(5)
    assert masses.sum() == pytest.approx(500, rel=0.01)
    assert masses.min() >= 0


@pytest.mark.parametrize(
    ("users", "epsilon"), [(40_000, "0.3"), (10_000, "1"), (2000, "3")], ids=lambda one: str(one)
)
def test_bands_hold_what_they_say(users: int, epsilon: str) -> None:
    """Nine in ten of the quarters and sixteenths lie within the middle nine tenths of drawn maps."""
    inside: dict[int, list[bool]] = {1: [], 2: []}
    for seed in range(5):
        rng = np.random.default_rng([seed, 9])
        codes = clusters(users, rng)
        found = simulate_local_map(codes, epsilon, rng=rng)
        for level, held in inside.items():
            drawn = found.maps(64, level).reshape(64, -1) / users
            low, high = np.quantile(drawn, [0.05, 0.95], axis=0)
            truth = shares(codes, level).ravel()
            held.extend((truth >= low - 1e-3) & (truth <= high + 1e-3))
    assert np.mean(inside[1]) > 0.75
    assert np.mean(inside[2]) > 0.8


def test_a_sum_that_is_known_narrows_no_band_twice() -> None:
    """Equal cells: independent noise whose sum is known has the covariance that was given."""
    even = 0.04 * (np.eye(16) - 1 / 16)
    assert _without_sum(even) == pytest.approx(0.04 * np.eye(16), abs=1e-6)


def test_two_rounds_go_by_questions_alone() -> None:
    rng = np.random.default_rng(10)
    codes, plan = clusters(5000, rng), design(5000, 2)
    first = first_question(plan, bounds=UNIT, campaign="two rounds")
    assert Question.from_json(first.to_json()) == first
    early = leaf_of_cells(first.cells, 8)[codes[:1000]]
    evidence = evidence_of(first, simulate_reports(first.channel, early, rng=rng))
    second = next_question(plan, first, decode([evidence], 5000))
    assert Question.from_json(second.to_json()) == second
    assert second.part == (first.part[1], Fraction(1))
    assert len(second.cells) == plan.cells
    with pytest.raises(InvalidInput, match="digest"):
        Question.from_json({**second.to_json(), "users": 6})


def test_k_ary_reports_are_expected_to_be_of_one_cell() -> None:
    """A family of larger sets would have information that such reports have not."""
    channel = KaryResponse(16, Fraction(3))
    assert family_of(channel).sum(axis=1).tolist() == [1] * 16


def test_evidence_that_is_not_whole_is_refused() -> None:
    levels, codes = np.ones(3, dtype=np.int64), np.arange(3)
    rows = np.ones((1, 3), dtype=np.bool_)
    with pytest.raises(InvalidInput, match="cover"):
        Evidence(levels, codes, rows, np.ones(1), 2.0, rows)
    with pytest.raises(InvalidInput, match="at least 1 report"):
        decode([], 0)


@pytest.mark.parametrize("epsilon", ["0.05", "0.1"])
def test_a_busy_cell_is_found_at_low_epsilon_and_its_band_says_how_well(epsilon: str) -> None:
    """Ten users in sixteen in one of 16 cells, so many users that reports tell it by all means."""
    odds, busy = odds_below(epsilon), np.full(16, 0.4 / 16)
    busy[7] += 0.6
    channel = SubsetSelection(16, 8, odds)
    users = round(2000 / (float(odds) - 1) ** 2 * 4)
    rows = family_of(channel).astype(float)
    # What is expected of all subsets that stand for all: no chance is in it.
    chance = 1 + (float(odds) - 1) * (rows @ busy)
    levels, codes = np.full(16, 2, dtype=np.int64), np.arange(16)
    counts = users * chance / chance.sum()
    told = Evidence(levels, codes, rows > 0, counts, float(odds), rows > 0)
    found, covariance = told.expanded(np.full(16, 1 / 16))
    assert found == pytest.approx(busy, abs=0.05)
    # Each of 15 directions has n (E - 1)**2 a (1 - a) k / (k - 1) / P**2, a half of all k cells.
    each = 2000 * 16 / 15 / (1 + (float(odds) - 1) / 2) ** 2
    assert np.trace(covariance) == pytest.approx(15 / each, rel=0.05)
    drawn = decode([told], users).maps(64, 2).reshape(64, -1) / users
    at = Grid(2).image(codes).ravel().tolist().index(7)
    low, high = np.quantile(drawn[:, at], [0.05, 0.95])
    assert low < busy[7] < high


def test_a_channel_that_tells_nothing_leaves_the_map_to_the_prior() -> None:
    channel = SubsetSelection(4, 2, Fraction(1))
    question = Question(
        "c", 1, 100, Fraction(1), UNIT, LEVEL_1, (Fraction(0), Fraction(1)), channel
    )
    told = evidence_of(question, {(0, 1): 90, (2, 3): 10})
    shares_found, covariance = told.expanded(np.full(4, 0.25))
    assert shares_found == pytest.approx(np.full(4, 0.25))
    assert np.diag(covariance).min() > 10

"""Specimens are what they are said to be: their laws by quadrature, and the epsilon of those."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy import integrate, stats
from tests.chance import LEVEL, p_value

from sfumato.audit.boxes.pairs import Queries
from sfumato.audit.catalogue import specimens
from sfumato.audit.catalogue.entries import (
    RAPPOR,
    RAPPOR_ONCE,
    Specimen,
    all_specimens,
    broken,
    half_noise,
    laplace,
    private,
)

Array = npt.NDArray[np.float64]

POINTS, RHO = np.linspace(-60, 60, 24_001), 0.005


def first_above(data: Array, *, epsilon: float, variant: int, threshold: float = 1.0) -> Array:
    """Chances that the first answer above is the first, second, ...; and last that none is."""
    first = epsilon / 4 if variant == 4 else epsilon / 2
    second = epsilon - first
    scale = {1: 2 / second, 2: 2 / first, 4: 1 / second}[variant]
    density = stats.laplace.pdf(POINTS, scale=1 / first)
    below = stats.laplace.cdf(threshold + POINTS[:, None] - data, scale=scale)
    still = np.cumprod(np.column_stack([np.ones(POINTS.size), below]), axis=1)
    chances = np.column_stack([still[:, :-1] * (1 - below), still[:, -1]])
    return np.asarray(integrate.trapezoid(density[:, None] * chances, POINTS, axis=0))


def largest(data: Array, *, epsilon: float, noise: str) -> Array:
    """Chances that each entry is the largest after noise."""
    law = stats.laplace(scale=2 / epsilon) if noise == "laplace" else stats.expon(scale=2 / epsilon)
    grid = np.linspace(-40 / epsilon, 60 / epsilon, 40_001)
    below = law.cdf(grid[:, None] - data)
    found = []
    for place in range(data.size):
        others = np.delete(below, place, axis=1).prod(axis=1)
        found.append(integrate.trapezoid(law.pdf(grid - data[place]) * others, grid))
    return np.array(found)


def epsilon_of(first: Array, second: Array) -> float:
    return float(np.max(np.abs(np.log(first / second))))


def named(name: str, epsilon: float, rng: np.random.Generator) -> Specimen:
    return next(one for one in all_specimens(epsilon, rng) if one.name == name)


def follows(outputs: npt.ArrayLike, law: Array) -> float:
    """The p-value of outputs 0, 1, ... under their chances."""
    sums = np.concatenate([[0.0], np.cumsum(law)])
    sums[-1] = 1.0
    return p_value(np.asarray(outputs, dtype=np.int64), lambda z: sums[np.clip(z + 1, 0, law.size)])


@pytest.mark.unit
def test_names_are_unique_and_claims_are_as_filed(rng: np.random.Generator) -> None:
    for epsilon in (1.0, 0.1):
        everything = all_specimens(epsilon, rng)
        assert len({one.name for one in everything}) == len(everything)
        assert all(one.private for one in private(epsilon, rng))
        assert not any(one.private for one in broken(epsilon, rng))


@pytest.mark.unit
@pytest.mark.parametrize("epsilon", [1.0, 0.1])
def test_the_true_epsilon_of_what_has_a_law(epsilon: float, rng: np.random.Generator) -> None:
    for one in all_specimens(epsilon, rng):
        if one.law is not None:
            assert epsilon_of(one.law(one.pair.first), one.law(one.pair.second)) == pytest.approx(
                one.true
            )
            assert one.law(one.pair.first).sum() == pytest.approx(1)


@pytest.mark.unit
@pytest.mark.parametrize(("flipped", "again"), [(RAPPOR_ONCE, None), (RAPPOR, (0.45, 0.55))])
def test_the_epsilon_of_reported_bits(flipped: float, again: tuple[float, float] | None) -> None:
    """All 256 outcomes of the eight bits that differ, one by one."""
    low, high = flipped / 2, 1 - flipped / 2
    if again:
        low, high = (again[1] * chance + again[0] * (1 - chance) for chance in (low, high))
    worst = 0.0
    for bits in itertools.product((0, 1), repeat=8):
        one = math.prod((high if bit else 1 - high) for bit in bits[:4])
        one *= math.prod((low if bit else 1 - low) for bit in bits[4:])
        other = math.prod((low if bit else 1 - low) for bit in bits[:4])
        other *= math.prod((high if bit else 1 - high) for bit in bits[4:])
        worst = max(worst, math.log(one / other))
    assert specimens.report_bits_epsilon(flipped=flipped, again=again) == pytest.approx(worst)


@pytest.mark.unit
def test_sparse_vectors_one_and_two_are_private_and_four_is_not() -> None:
    """By quadrature, on every standard pair; 0.005 apart, so good to 1e-6."""
    for variant in (1, 2):
        for pair in Queries(10).patterns():
            laws = [
                first_above(data, epsilon=1, variant=variant) for data in (pair.first, pair.second)
            ]
            assert epsilon_of(*laws) <= 1 + 1e-5
    apart = np.repeat([2.0, 0.0], 5)
    laws = [first_above(data, epsilon=1, variant=4) for data in (np.ones(10), apart)]
    assert 1.02 < epsilon_of(*laws) <= 1.75 + 1e-5


@pytest.mark.unit
def test_the_largest_is_chosen_privately() -> None:
    for noise in ("laplace", "exponential"):
        for pair in Queries(5).patterns():
            laws = [largest(data, epsilon=1, noise=noise) for data in (pair.first, pair.second)]
            assert epsilon_of(*laws) <= 1 + 1e-3


@pytest.mark.statistical
@pytest.mark.parametrize("variant", [1, 2, 4])
def test_sparse_vectors_stop_where_their_law_says(variant: int, rng: np.random.Generator) -> None:
    data, runs = np.repeat([0.0, 1.0], 5), 60_000
    drawn = specimens.sparse_vector(data, runs, epsilon=1, variant=variant, rng=rng)
    place = np.where((drawn == 1).any(axis=1), (drawn == 1).argmax(axis=1), 10)
    assert (np.cumsum(drawn == 1, axis=1)[drawn == specimens.STOPPED] == 1).all()
    assert follows(place, first_above(data, epsilon=1, variant=variant)) >= LEVEL
    for rival in {1, 2, 4} - {variant} if variant == 4 else {4}:
        assert follows(place, first_above(data, epsilon=1, variant=rival)) < LEVEL


@pytest.mark.statistical
def test_the_largest_follows_its_law(rng: np.random.Generator) -> None:
    data = np.array([0.0, 2.0, 1.0, 1.0, 2.0])
    for name, noise, rival in (
        ("RNM1", "laplace", "exponential"),
        ("RNM2", "exponential", "laplace"),
    ):
        drawn = named(name, 1.0, rng).box.run(data, 60_000)
        assert follows(drawn, largest(data, epsilon=1, noise=noise)) >= LEVEL
        assert follows(drawn, largest(data, epsilon=0.8, noise=noise)) < LEVEL
        assert follows(drawn, largest(data, epsilon=1, noise=rival)) < LEVEL


@pytest.mark.statistical
def test_what_has_a_law_follows_it(rng: np.random.Generator) -> None:
    for one in all_specimens(1.0, rng):
        if one.law is not None:
            for data, other in (
                (one.pair.first, one.pair.second),
                (one.pair.second, one.pair.first),
            ):
                drawn = one.box.run(data, 20_000)
                assert follows(drawn, one.law(data)) >= LEVEL
                assert follows(drawn, one.law(other)) < LEVEL


@pytest.mark.unit
def test_only_floats_leave_the_grid(rng: np.random.Generator) -> None:
    for one in all_specimens(1.0, rng):
        drawn = np.asarray(one.box.run(one.pair.first, 200), dtype=np.float64)
        assert ((drawn * 2**20 == np.rint(drawn * 2**20)).all()) == (
            not one.name.startswith("Float")
        ), one.name


@pytest.mark.statistical
def test_a_rare_output_has_its_chance_and_one_input_alone_gives_it(
    rng: np.random.Generator,
) -> None:
    one = named("Rare", 1.0, rng)
    assert not (np.asarray(one.box.run(0.0, 100_000)) == 1e6).any()
    hits = int((np.asarray(one.box.run(1.0, 100_000)) == 1e6).sum())
    assert 50 < hits < 160  # 100 expected; Poisson tails below 1e-7


@pytest.mark.statistical
def test_half_the_noise_spreads_half_as_far() -> None:
    wide, narrow = (np.abs(drawn(0.0, 20_000)).mean() for drawn in (laplace, half_noise))
    # Means of 20,000 exponentials are true to 5 * 0.7 % but for a chance of 1e-6.
    assert wide == pytest.approx(2**20, rel=0.05)
    assert narrow == pytest.approx(2**19, rel=0.05)

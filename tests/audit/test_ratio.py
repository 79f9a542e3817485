"""The ratio test keeps its level on every small sample there is, and needs fewer runs than the box."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.chance import assert_share

from sfumato.audit.fixed.ratio import (
    epsilon_lower,
    epsilon_lower_box,
    lower_limit,
    p_value,
    upper_limit,
)
from sfumato.errors import InvalidParameter

Bound = Callable[..., float]


def worst_error(bound: Bound, n1: int, n2: int, delta: float, level: float) -> float:
    """The largest chance, exactly, that the bound exceeds the true epsilon, over a grid of truths."""
    table = np.array(
        [
            [bound(k1, n1, k2, n2, delta=delta, level=level) for k2 in range(n2 + 1)]
            for k1 in range(n1 + 1)
        ]
    )
    worst = 0.0
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0, 3.5):
        top = (1 - delta) * math.exp(-epsilon)
        for p2 in np.linspace(0, 1, 161)[1:] ** 2 * top:
            p1 = min(1.0, math.exp(epsilon) * p2 + delta)
            chance = stats.binom.pmf(np.arange(n1 + 1), n1, p1)[:, None] * stats.binom.pmf(
                np.arange(n2 + 1), n2, p2
            )
            # The truth itself is no error; a bound that equals it is rounded, hence the last digit.
            worst = max(worst, float(chance[table > epsilon + 1e-12].sum()))
    return worst


@pytest.mark.reference
@pytest.mark.parametrize(
    ("n1", "n2", "delta", "level"), [(13, 13, 0.0, 0.05), (9, 17, 0.1, 0.1), (16, 7, 0.02, 0.3)]
)
def test_the_level_holds_exactly_on_every_outcome_of_small_samples(
    n1: int, n2: int, delta: float, level: float
) -> None:
    assert worst_error(epsilon_lower, n1, n2, delta, level) <= level
    # A bound at a tenfold level is not caught by luck alone: it does exceed.
    assert worst_error(epsilon_lower, n1, n2, delta, min(0.9, 10 * level)) > level


@pytest.mark.reference
def test_the_box_keeps_its_level_and_wastes_it() -> None:
    assert worst_error(epsilon_lower_box, 13, 13, 0.0, 0.05) <= 0.05 / 2
    assert worst_error(epsilon_lower, 13, 13, 0.0, 0.05) > 0.05 / 2


@pytest.mark.statistical
@pytest.mark.parametrize(("p2", "delta"), [(0.02, 0.0), (0.2, 0.02)])
def test_the_level_holds_and_is_used_on_larger_samples(
    rng: np.random.Generator, p2: float, delta: float
) -> None:
    epsilon, runs, trials, level = 0.7, 1000, 1200, 0.2
    k1 = rng.binomial(runs, math.exp(epsilon) * p2 + delta, trials)
    k2 = rng.binomial(runs, p2, trials)
    errors = sum(
        p_value(int(a), runs, int(b), runs, epsilon=epsilon, delta=delta, level=level) <= level
        for a, b in zip(k1, k2, strict=True)
    )
    # The true share is below the level by what the interval of the nuisance costs, a twentieth, and
    # a little; no few trials tell that from the level. 1,200 of them let a share of 0.08 pass with
    # chance 2e-8 and one of 0.3 with chance 5e-7.
    assert_share(errors, trials, 0.9 * level, rivals=[0.4 * level, 1.5 * level])


@pytest.mark.unit
@pytest.mark.parametrize(
    ("counts", "share"),
    [
        ((55_000, 110_000, 49_700, 110_000), 0.66),
        ((200, 50_000, 40, 50_000), 0.66),
        ((30_000, 110_000, 11_000, 110_000), 0.66),
        ((2000, 50_000, 0, 50_000), 0.9),
    ],
)
def test_the_ratio_test_leaves_less_open_than_the_box(
    counts: tuple[int, int, int, int], share: float
) -> None:
    k1, n1, k2, n2 = counts
    point = math.log(k1 / n1 * n2 / max(k2, 0.5))
    ours = point - epsilon_lower(*counts, delta=0, level=0.05)
    assert 0 < ours <= share * (point - epsilon_lower_box(*counts, delta=0, level=0.05))


@pytest.mark.unit
def test_an_output_that_only_one_input_reaches_is_worth_a_bound_after_five_runs() -> None:
    # (1/2)**5 is below 1/20: five of ten runs that agree cannot be a fair coin, and epsilon 0 is
    # out.
    assert epsilon_lower(5, 5000, 0, 5000, delta=0, level=0.05) > 0.5
    assert epsilon_lower_box(5, 5000, 0, 5000, delta=0, level=0.05) == 0


counts = st.integers(1, 60).flatmap(
    lambda n1: st.integers(1, 60).flatmap(
        lambda n2: st.tuples(st.integers(0, n1), st.just(n1), st.integers(0, n2), st.just(n2))
    )
)


@pytest.mark.property
@given(
    counts=counts, delta=st.sampled_from([0.0, 1e-3, 0.1]), level=st.sampled_from([0.2, 0.05, 1e-3])
)
@settings(max_examples=150)
def test_the_ratio_test_is_never_the_worse_one(
    counts: tuple[int, int, int, int], delta: float, level: float
) -> None:
    ours = epsilon_lower(*counts, delta=delta, level=level)
    assert ours >= epsilon_lower_box(*counts, delta=delta, level=level) - 0.02


@pytest.mark.property
@given(counts=counts, epsilon=st.floats(0, 4), more=st.floats(0, 2), delta=st.floats(0, 0.5))
@settings(max_examples=60)
def test_a_weaker_claim_has_the_larger_p_value_and_the_bound_is_its_inverse(
    counts: tuple[int, int, int, int], epsilon: float, more: float, delta: float
) -> None:
    found = p_value(*counts, epsilon=epsilon, delta=delta, level=0.1)
    # The bounds of cells are loose by at most 3 %.
    assert found <= 1.05 * p_value(*counts, epsilon=epsilon + more, delta=delta, level=0.1)
    bound = epsilon_lower(*counts, delta=delta, level=0.1)
    if bound > 0:
        assert p_value(*counts, epsilon=bound, delta=delta, level=0.1) <= 0.1


@pytest.mark.unit
def test_limits_are_those_of_clopper_and_pearson() -> None:
    low, high = stats.binomtest(7, 40).proportion_ci(0.9, method="exact")
    assert lower_limit(7, 40, level=0.05) == pytest.approx(low, rel=1e-9)
    assert upper_limit(7, 40, level=0.05) == pytest.approx(high, rel=1e-9)
    assert (lower_limit(0, 9, level=0.1), upper_limit(9, 9, level=0.1)) == (0.0, 1.0)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"k1": 11}, "hits must be between 0 and runs, got 11 of 10"),
        ({"k2": -1}, "hits must be between 0 and runs"),
        ({"n2": 0, "k2": 0}, "hits must be between 0 and runs"),
        ({"delta": 1.5}, "delta must be between 0 and 1, got 1.5; nothing was tested"),
        ({"level": 0}, "level must be between 0 and 1, got 0"),
        ({"epsilon": -1}, "epsilon must be at least 0, got -1"),
        ({"epsilon": math.nan}, "epsilon must be at least 0, got nan"),
    ],
)
def test_what_is_no_test_is_refused(change: dict[str, float], rule: str) -> None:
    given: dict[str, float] = {
        "k1": 5,
        "n1": 10,
        "k2": 2,
        "n2": 10,
        "epsilon": 0,
        "delta": 0,
        "level": 0.1,
    }
    with pytest.raises(InvalidParameter, match=rule):
        p_value(**(given | change))  # type: ignore[arg-type]

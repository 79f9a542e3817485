"""The chooser keeps its bound on everything, needs no tuning, and can be stopped and taken up again."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.chance import assert_share

from sfumato.errors import InvalidParameter, SolverFailed
from sfumato.figures import sheet
from sfumato.online import chooser as module
from sfumato.online.chooser import Chooser, State
from sfumato.online.perturbations import NAMES
from sfumato.online.regrets import best_loss, hedge_rate, regret
from sfumato.online.sequences import fair_coins, leader_killer, one_good
from sfumato.online.simplex import hedge, leader, play

FloatArray = npt.NDArray[np.float64]
# Sums of a few thousand doubles and plays known to 1e-12: far below this, relative to what was
# lost.
ROUNDING = 1e-9


def learnt(losses: npt.ArrayLike, noise: str = "gumbel", **given: Any) -> Chooser[int]:
    table = np.asarray(losses, dtype=np.float64)
    made = Chooser(range(table.shape[1]), noise, **given)
    for row in table:
        made.observe(row)
    return made


def killer(rounds: int, count: int) -> FloatArray:
    """Whoever leads loses next, and follow-the-leader with it; nothing in it is drawn."""
    return leader_killer(rounds, count, rng=np.random.default_rng(0))


def formula_hedge(losses: FloatArray) -> float:
    """Regret of Hedge at the rate sqrt(2 ln N / L*) that knows the end of the game."""
    rate = hedge_rate(best_loss(losses), count=losses.shape[1])
    return regret(losses, play(losses, lambda rows: hedge(rows, rate)))


@pytest.mark.unit
def test_what_has_names_is_read_by_them() -> None:
    by_dict, by_series, by_order = (Chooser(["north", "south"]) for _ in range(3))
    by_dict.observe({"south": 0, "north": 5})
    by_series.observe(pd.Series({"south": 0, "north": 5}))
    by_order.observe([5, 0])
    assert by_series.state == by_dict.state == by_order.state
    for losses, words in (
        (pd.Series([0, 5]), "got unknown 0"),
        (pd.Series({"south": 0, "east": 5}), "got unknown 'east'"),
        (pd.Series({"south": 0}), "got none for 'north'"),
        (pd.Series([0, 5, 7], ["south", "north", "north"]), "got two of one name"),
        (pd.DataFrame({"south": [0], "north": [5]}), "losses must be one number for each"),
    ):
        with pytest.raises(InvalidParameter, match=f"{words}.*nothing was learnt"):
            by_series.observe(losses)
    assert by_series.state == by_dict.state


@pytest.mark.unit
def test_two_rounds_by_hand() -> None:
    made = Chooser(["a", "b"])
    assert made.probabilities == {"a": 0.5, "b": 0.5}
    assert math.isinf(made.rate)
    made.observe({"b": 7.0, "a": 8.0})
    # Half of 1 was paid above the least, looking ahead would have saved it all.
    assert (made.regret, made.bound, made.rounds) == (0.5, 0.5, 1)
    assert made.rate == pytest.approx(2 * math.log(2), rel=1e-15)
    # Hedge with the loss 1 at rate 2 ln 2: weights 1/4 and 1.
    assert made.probabilities == pytest.approx({"a": 0.2, "b": 0.8}, rel=1e-14)
    made.observe([0, 1])
    # 0.8 was paid; ahead it would have been 1/2, as both have lost 1. The best of them lost 1.
    assert made.regret == pytest.approx(0.5 + 0.8 - 1, rel=1e-14)
    assert made.bound == pytest.approx(0.5 + (0.5 + 0.3), rel=1e-14)
    # A = (1 + 2 ln 2) S, S = 1, best loss 1: its root is 8.3; by squares, 2 sqrt(2 (1 + 2 ln 2)).
    assert made.worst_case == pytest.approx(2 * math.sqrt(2 * (1 + 2 * math.log(2))), rel=1e-14)


@pytest.mark.reference
def test_it_plays_what_fifty_digits_play(rng: np.random.Generator) -> None:
    """The rule of the module's docstring with mpmath, from its first line."""
    losses = rng.normal(size=(60, 4)).round(3)
    with mpmath.workdps(50):
        total, saved, before, paid = (
            [mpmath.mpf(0)] * 4,
            mpmath.mpf(0),
            mpmath.mpf(0),
            mpmath.mpf(0),
        )

        def chances(rate: Any) -> list[Any]:
            if rate is None:
                return [mpmath.mpf(t == min(total)) / total.count(min(total)) for t in total]
            weights = [mpmath.exp(-rate * (t - min(total))) for t in total]
            return [weight / sum(weights) for weight in weights]

        for row in losses.tolist():
            rate = mpmath.log(4) / saved if saved else None
            now = chances(rate)
            total = [t + mpmath.mpf(loss) for t, loss in zip(total, row, strict=True)]
            ahead = chances(rate)
            before = saved
            paid += sum(p * mpmath.mpf(loss) for p, loss in zip(now, row, strict=True))
            saved += sum(
                (p - q) * mpmath.mpf(loss) for p, q, loss in zip(now, ahead, row, strict=True)
            )
        wanted = [float(x) for x in chances(mpmath.log(4) / saved)]
        regret, bound = float(paid - min(total)), float(saved + before)
    made = learnt(losses)
    assert list(made.probabilities.values()) == pytest.approx(wanted, rel=1e-11)
    assert (made.regret, made.bound) == pytest.approx((regret, bound), rel=1e-11)


@pytest.mark.property
@given(
    st.sampled_from(NAMES),
    st.integers(2, 5).flatmap(
        lambda count: st.lists(
            st.lists(st.floats(-1, 1), min_size=count, max_size=count), min_size=1, max_size=15
        )
    ),
    st.sampled_from([1e-6, 1.0, 1e6]),
)
@settings(max_examples=60)
def test_regret_is_at_most_the_bound_whatever_comes(
    noise: str, rows: list[list[float]], unit: float
) -> None:
    made: Chooser[int] = Chooser(range(len(rows[0])), noise)
    # What is refused has no regret; differences of 1e-319 are.
    assume(all(np.ptp(row) == 0 or unit * np.ptp(row) >= 2 * module.MIN_RANGE for row in rows))
    for row in rows:
        rate, now = made.rate, np.array(list(made.probabilities.values()))
        made.observe(unit * np.array(row))
        slack = ROUNDING * unit * made.rounds
        assert made.regret <= made.bound + slack
        assert made.bound <= made.worst_case * (1 + ROUNDING) + slack
        # What the proof of the worst case takes from one-step privacy; 1e-9 is what plays are known
        # to.
        if math.isfinite(rate):
            ahead = made._play(np.array(made.state.losses), rate)
            assert (ahead >= np.exp(-rate * unit * np.ptp(row)) * now - 1e-9).all()


@pytest.mark.unit
@pytest.mark.parametrize("noise", NAMES)
@pytest.mark.parametrize("times", [0.5, 2.0, 1e3])
def test_regret_is_at_most_the_bound_when_losses_grow_or_shrink(noise: str, times: float) -> None:
    """Gaps of 1e60 noises and more, where Pareto noise still has a chance, and far beyond any chance."""
    made: Chooser[int] = Chooser(range(3), noise)
    made.observe([1, 0, 0])
    sizes = [times**power for power in range(60)] + 5 * [1e30] + [1e80, 1e80, 1e200, 1e200]
    for size in sizes:
        for losses in ([size, 0, 0], [0, size / 3, 0]):
            made.observe(losses)
            # The best candidate loses nothing: no digits are lost in what was paid.
            assert made.regret <= made.bound * (1 + ROUNDING)
            assert made.bound <= made.worst_case * (1 + ROUNDING)


@pytest.mark.unit
@pytest.mark.parametrize("noise", ["pareto", "frechet"])
def test_a_chance_far_behind_is_that_of_its_tail(noise: str) -> None:
    made: Chooser[int] = Chooser(range(2), noise)
    made._begin(State([1e30, 0.0], saved=made._excess, saved_before=0.0), [])
    # At a rate of 1: P(Z - Z' > d) is the tail at d + Z', Z' some times the scale, which d drowns.
    assert made.probabilities[0] == pytest.approx(float(made._unit.sf(1e30)), rel=ROUNDING)
    made._begin(State([1e80, 0.0], saved=made._excess, saved_before=0.0), [])
    assert made.probabilities[0] == 0


@pytest.mark.unit
@pytest.mark.parametrize("noise", NAMES)
def test_the_leader_is_killed_and_the_chooser_is_not(noise: str) -> None:
    losses = killer(300, 4)
    best = losses.sum(axis=0).min()
    followed = float((play(losses, leader) * losses).sum() - best)
    made = learnt(losses, noise)
    assert made.regret <= made.bound <= made.worst_case
    # The bound says something: who follows the leader loses more than it allows.
    assert made.worst_case < followed


@pytest.mark.statistical
def test_no_tuning_costs_at_most_a_tenth(rng: np.random.Generator) -> None:
    """On iid losses 1.1 hedge - ours lies 1.3 deviations above 0 for one draw (of 40), for twenty 5.8."""
    streams: dict[str, Callable[[], FloatArray]] = {
        "killer": lambda: killer(500, 16),
        "iid": lambda: fair_coins(500, 16, rng=rng),
        "one good": lambda: one_good(500, 16, rng=rng),
    }
    for name, draw in streams.items():
        tables = [draw() for _ in range(1 if name == "killer" else 20)]
        ours, tuned = (
            np.mean([of(table) for table in tables])
            for of in (lambda table: learnt(table).regret, formula_hedge)
        )
        assert ours <= 1.1 * tuned, name
    # An untuned rate does cost more: river's default, 1/2.
    table = killer(1000, 16)
    half = play(table, lambda rows: hedge(rows, 0.5))
    assert float((half * table).sum() - table.sum(axis=0).min()) > 1.1 * formula_hedge(table)


@pytest.mark.unit
def test_units_and_offsets_do_not_matter(rng: np.random.Generator) -> None:
    losses = rng.integers(-8, 9, (200, 5)).astype(np.float64)
    usual = learnt(losses)
    for times in (2.0**-30, 2.0**20, 2.0**900):  # exact in floating point, so equal to the last bit
        made = learnt(times * losses)
        assert made.probabilities == usual.probabilities
        assert made.regret == times * usual.regret
        assert made.worst_case == pytest.approx(times * usual.worst_case, rel=ROUNDING)
        assert Chooser.from_dict(made.to_dict()).regret == made.regret
    assert learnt(losses + 2.0**40).probabilities == usual.probabilities
    million = learnt(1e6 * losses)
    assert list(million.probabilities.values()) == pytest.approx(
        list(usual.probabilities.values()), rel=ROUNDING
    )
    assert min(million.probabilities.values()) > 0


@pytest.mark.statistical
@pytest.mark.parametrize(("noise", "printed"), [("gumbel", 0.4169), ("exponential", 0.6375)])
def test_choices_have_their_probabilities(
    noise: str, printed: float, rng: np.random.Generator
) -> None:
    """Rivals: the share off by 0.05, and that of argmin(L + Z), the sign of the thesis (200,000 draws)."""
    made = Chooser(range(10), noise, rng=rng)
    made.observe([0.0] + 9 * [1.0])
    made.observe([0.5] + 9 * [0.0])
    trials, share = 8_000, made.probabilities[0]
    hits = sum(made.choose() == 0 for _ in range(trials))
    assert_share(hits, trials, share, rivals=[share - 0.05, share + 0.05, printed])


@pytest.mark.statistical
@pytest.mark.parametrize("unit", [1.0, 1e100])
def test_choices_have_their_probabilities_when_all_lost_much(
    unit: float, rng: np.random.Generator
) -> None:
    """All have lost 50 at a rate of 1e16: noise that is taken off 5e17 is lost in its last digit."""
    made = Chooser("abc", rng=rng)
    for power in range(-17, 3):
        made.observe([0, 0, unit * 10.0**power])
    made.observe([unit * 50, unit * 50, 0])
    assert min(made.state.losses) * made.rate > 1e16
    assert made.probabilities == pytest.approx({"a": 0.5, "b": 0.5, "c": 0.0})
    trials = 3000
    hits = sum(made.choose() == "a" for _ in range(trials))
    assert_share(hits, trials, 0.5, rivals=[0.4, 0.6])


@pytest.mark.statistical
def test_before_anything_is_lost_leaders_are_alike() -> None:
    made = Chooser(["a", "b", "c"])
    made.observe([0, 0, 0])
    assert made.probabilities == {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}
    trials = 3000
    hits = sum(made.choose() == "a" for _ in range(trials))
    assert_share(hits, trials, 1 / 3, rivals=[0.22, 0.45])
    sure = Chooser(["a", "b"])
    sure._begin(State([1.0, 0.0]), [])
    assert {sure.choose() for _ in range(50)} == {"b"}
    assert Chooser(["only"]).choose() == "only"


@pytest.mark.system
@pytest.mark.statistical
def test_noise_is_fresh_and_from_the_system() -> None:
    """200 fair choices: all the same in one of 2**199 runs, and two runs of them alike in one of 2**200."""
    runs = [tuple(Chooser([0, 1]).choose() for _ in range(200)) for _ in range(2)]
    assert set(runs[0]) == {0, 1}
    assert runs[0] != runs[1]


@pytest.mark.unit
@pytest.mark.parametrize("unit", [1e-290, 1e286])
def test_the_bounds_hold_at_both_ends_of_the_range(unit: float) -> None:
    made = learnt(unit * killer(1000, 2)[1:])
    assert 0 < made.regret <= made.bound <= made.worst_case < math.inf
    assert made.worst_case / unit == pytest.approx(
        learnt(killer(1000, 2)[1:]).worst_case, rel=ROUNDING
    )


@pytest.mark.unit
def test_a_play_that_fails_teaches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made = learnt([[0, 1, 2]], "laplace")
    before, chances, usual = made.state, made.probabilities, made._play
    plays = iter([usual, None])

    def fails_at_last(losses: FloatArray, rate: float) -> FloatArray:
        if (known := next(plays)) is None:
            raise SolverFailed("not today")
        return known(losses, rate)

    monkeypatch.setattr(made, "_play", fails_at_last)
    with pytest.raises(SolverFailed):
        made.observe([5, 0, 0])
    assert made.state is before
    assert made.probabilities == chances


@pytest.mark.unit
def test_it_says_where_it_stands() -> None:
    made = Chooser(["a", "b"])
    made.observe([1, 0])
    said = "after 1 round 'b' with chance 0.80, regret 0.5 of at most 0.5"
    assert repr(made) == f"Chooser(2 candidates, noise='gumbel': {said})"
    assert repr(Chooser(["a"])).startswith(
        "Chooser(1 candidate, noise='gumbel': after 0 rounds 'a'"
    )


@pytest.mark.unit
def test_the_picture_is_of_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sheet, "DPI", 50)
    monkeypatch.setattr(module, "POINTS", 16)
    with pytest.raises(InvalidParameter, match="before the first round"):
        Chooser(["a"]).plot()
    made = learnt(killer(101, 3))
    path = made.to_dict()["path"]
    rounds = [at for at, _, _ in path]
    assert rounds == list(range(rounds[0], 101, rounds[0]))
    assert len(rounds) < 16
    whole = learnt(killer(rounds[-1], 3))
    assert path[-1] == [whole.rounds, whole.regret, whole.bound]
    assert made.plot().startswith(b"\x89PNG")
    assert made.plot() != whole.plot() != whole.plot(caption="other")

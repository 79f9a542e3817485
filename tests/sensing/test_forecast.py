"""Forecasts of recovery: what they are of, that their intervals hold, and that mistakes would show."""

from __future__ import annotations

import math
from unittest import mock

import numpy as np
import pytest
from scipy import stats
from tests.chance import assert_share

from sfumato.errors import InvalidParameter, SolverFailed
from sfumato.sensing import heat_line, heat_plane, recover
from sfumato.sensing.planning import forecast as module
from sfumato.sensing.planning import synthetic_sources
from sfumato.sensing.planning.forecast import (
    Scene,
    draw_trials,
    error_of,
    forecast_recovery,
    mean_error,
    sources_of,
)
from sfumato.sensing.planning.ratio import error_ratio
from sfumato.sensing.recovery.distance import error_of_nothing
from sfumato.spaces import Grid, Points
from sfumato.transport import emd

LINE = heat_line(sources=20, sensors=8, diffusion_time=0.05)


@pytest.mark.unit
def test_a_lot_is_the_same_chance_in_every_scene(rng: np.random.Generator) -> None:
    (lot,) = draw_trials(Scene(LINE, 0.1, 3, "free"), 1, rng=rng, sources=5, sensors=12)
    assert (lot.cells.size, lot.masses.size, lot.noise.size) == (5, 5, 12)
    one, three = Scene(LINE, 0.1), Scene(LINE, 0.1, 3)
    assert np.flatnonzero(sources_of(one, lot)).tolist() == [lot.cells[0]]
    assert sorted(lot.cells[:3]) == np.flatnonzero(sources_of(three, lot)).tolist()
    free = sources_of(Scene(LINE, 0.1, 3, "free"), lot)
    assert free[lot.cells[:3]] == pytest.approx(lot.masses[:3])
    assert ((lot.masses >= 0.3) & (lot.masses <= 1)).all()
    assert sources_of(three, lot).sum() == 3
    # The chance of the posterior too: asked twice, it says the same.
    assert error_of(one, lot, "bayes median") == error_of(one, lot, "bayes median")


@pytest.mark.unit
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"sigma": 0.0}, "sigma must be positive and finite, got 0.0; nothing was simulated"),
        ({"sigma": math.inf}, "sigma must be positive and finite, got inf; nothing was simulated"),
        ({"sources": 21}, "sources must be"),
        (
            {"masses": "heavy"},
            "made-up masses are 'known' or 'free', got 'heavy'; nothing was simulated",
        ),
    ],
)
def test_no_scene(given: dict[str, object], sentence: str) -> None:
    with pytest.raises(InvalidParameter, match=sentence):
        Scene(LINE, **({"sigma": 0.1} | given))  # type: ignore[arg-type]


@pytest.mark.unit
def test_the_least_mass_is_scored_as_the_issue_says(rng: np.random.Generator) -> None:
    """Optimal as it is, nothing found as spread evenly, infeasible at the smallest radius with an answer."""
    for sigma, wanted in ((0.05, "optimal"), (50.0, "zero")):
        scene = Scene(LINE, sigma)
        (lot,) = draw_trials(scene, 1, rng=rng)
        truth = sources_of(scene, lot)
        found = recover(LINE, LINE.readings(truth) + sigma * lot.noise, sigma=sigma)
        assert found.status == wanted
        other = found.estimate if wanted == "optimal" else np.ones(20)
        assert (
            error_of(scene, lot, "least mass")
            == emd(other, truth, LINE.space, normalize=True).value
        )
    # Less noise is claimed than there is: nothing fits, and the best fit has a distance all the
    # same.
    scene = Scene(LINE, 1e-6)
    lot = module.Trial(np.array([4]), np.ones(1), 1e5 * rng.standard_normal(8), rng)
    y = LINE.readings(sources_of(scene, lot)) + 0.1 * lot.noise / 1e5
    assert recover(LINE, y, sigma=1e-6).status == "infeasible"
    assert 0 <= error_of(scene, lot, "least mass") < error_of_nothing(LINE, sources_of(scene, lot))


@pytest.mark.unit
def test_what_can_be_said_without_a_reading(rng: np.random.Generator) -> None:
    flat = heat_plane(sources=Grid(2), sensors=[(0.2, 0.4)], diffusion_time=0.01)
    some = (
        heat_plane(
            sources=Points(flat.space.centers(np.arange(16)), "l1"),
            sensors=[(0.2, 0.4)],
            diffusion_time=0.01,
        )
        if isinstance(flat.space, Grid)
        else flat
    )
    (lot,) = draw_trials(Scene(flat, 1.0, 2), 1, rng=rng)
    # The same places as a grid and as points.
    assert error_of_nothing(flat, sources_of(Scene(flat, 1.0, 2), lot)) == pytest.approx(
        error_of_nothing(some, sources_of(Scene(some, 1.0, 2), lot))
    )
    middle = module.Trial(np.array([9]), np.ones(1), np.zeros(8), rng)
    off = np.abs(LINE.space.positions - LINE.space.positions[9]).mean()
    assert error_of_nothing(LINE, sources_of(Scene(LINE, 1.0), middle)) == pytest.approx(off)


@pytest.mark.unit
def test_a_mean_without_enough_answers_is_refused() -> None:
    with pytest.raises(SolverFailed, match="a mean needs two answers, 2 of 3 trials had none"):
        mean_error("least mass", [1.0, math.nan, math.nan])
    found = mean_error("least mass", [1.0, 3.0, math.nan])
    assert (found.mean, found.trials, found.failed, found.answers) == (2.0, 3, 1, 2)


@pytest.mark.unit
def test_an_interval_by_hand() -> None:
    """Student's interval on a log scale, of a mean of 400 later trials beside the mean itself."""
    errors = [1.0, 2.0, 3.0, 4.0, 5.0]
    found = mean_error("least mass", errors, later=10)
    far = stats.t.ppf(0.975, 4) * math.sqrt(2.5 / 5 + 2.5 / 10) / 3
    assert (found.low, found.high) == pytest.approx((3 * math.exp(-far), 3 * math.exp(far)))
    assert found.deviation == pytest.approx(math.sqrt(2.5))
    assert mean_error("least mass", errors, later=math.inf).width < found.width


@pytest.mark.unit
def test_a_control_that_says_all_leaves_only_its_own_chance(rng: np.random.Generator) -> None:
    many = rng.exponential(size=4000)
    found = mean_error(
        "bayes median", (2 * many[:60]).tolist(), beside=many.tolist(), later=math.inf
    )
    # With correlation 1 the mean is that of all 4000, and so is its interval.
    assert found.mean == pytest.approx(2 * many.mean())
    alone = mean_error("bayes median", (2 * many[:60]).tolist(), later=math.inf)
    assert found.width < alone.width / 4


@pytest.mark.statistical
def test_intervals_hold_what_is_measured_later(rng: np.random.Generator) -> None:
    """Exponential errors, as skewed as those of a recovery: 95 % of later means lie inside; not 85, not 99.5.

    An interval that leaves the later measurement out holds about 0.76 of them (the rival of the
    code).
    """
    held = {"ours": 0, "without later": 0}
    for _ in range(1200):
        drawn = rng.exponential(size=200).tolist()
        measured = rng.exponential(size=module.LATER).mean()
        for name, later in (("ours", float(module.LATER)), ("without later", math.inf)):
            found = mean_error("least mass", drawn, later=later)
            held[name] += found.low <= measured <= found.high
    assert_share(held["ours"], 1200, 0.95, rivals=[0.85])
    assert held["without later"] < held["ours"] - 30


@pytest.mark.unit
def test_a_forecast_ends_when_it_is_narrow(rng: np.random.Generator) -> None:
    """With errors of a known law in place of recoveries."""
    calls = {"least mass": 0, "bayes median": 0}

    def drawn(scene: Scene, lot: module.Trial, estimator: module.Estimator) -> float:
        calls[estimator] += 1
        return (
            float(0.1 + 0.05 * lot.masses[0])
            if estimator == "least mass"
            else float(lot.noise[0] ** 4)
        )

    with mock.patch.object(module, "error_of", drawn):
        found = forecast_recovery(Scene(LINE, 0.1), rng=rng)
    assert found.bayes is not None
    # The first hardly varies, so it ends with its fewest; the second varies too much to end.
    assert found.bayes.trials == calls["bayes median"] == module.MAX_TRIALS
    assert found.least_mass.trials == module.FEWEST[0]
    assert found.least_mass.width <= module.NARROW
    assert found.best.estimator == "least mass"
    assert found.ratio is not None
    assert found.ratio.trials == module.MAX_TRIALS  # the quick one ran as often
    assert (found.ratio.better, found.ratio.sure) == ("least mass", True)
    assert found.even == pytest.approx(0.33, abs=0.1)


@pytest.mark.unit
def test_where_the_bayes_median_does_not_work_it_says_why(rng: np.random.Generator) -> None:
    with mock.patch.object(
        module, "posterior", side_effect=InvalidParameter("too many cells; take fewer")
    ):
        found = forecast_recovery(Scene(LINE, 0.1), rng=rng, max_trials=4)
    assert (found.bayes, found.why_not, found.best) == (None, "too many cells", found.least_mass)
    alone = forecast_recovery(Scene(LINE, 0.1), rng=rng, max_trials=4, estimators=("least mass",))
    assert (alone.bayes, alone.why_not) == (None, "it was not asked for")


@pytest.mark.unit
def test_noise_makes_a_forecast_useless(rng: np.random.Generator) -> None:
    clear = forecast_recovery(Scene(LINE, 0.01), rng=rng, max_trials=4)
    drowned = forecast_recovery(Scene(LINE, 20.0), rng=rng, max_trials=4)
    assert not clear.useless
    assert drowned.useless
    assert clear.best.mean < drowned.best.mean / 5


@pytest.mark.unit
def test_which_is_better_is_told_from_pairs(rng: np.random.Generator) -> None:
    """Errors that vary much more than the two estimators differ: intervals overlap, the pairs do not."""
    hard = rng.exponential(size=150)
    bayes = 0.8 * hard + 0.05 * rng.random(150)
    some = {"least mass": [*hard, 5.0, 7.0], "bayes median": bayes.tolist()}
    found = error_ratio(some)
    assert found is not None
    assert found.better == "bayes median"
    assert found.sure
    assert found.trials == 150  # the two that one alone ran do not count
    assert found.value == pytest.approx(bayes.mean() / hard.mean())
    spread = (bayes - found.value * hard).std(ddof=1) / hard.mean() / math.sqrt(150)
    far = float(stats.t.ppf(0.975, 149) * spread)
    assert (found.low, found.high) == pytest.approx((found.value - far, found.value + far))
    least, other = (
        mean_error("least mass", hard.tolist()),
        mean_error("bayes median", bayes.tolist()),
    )
    assert other.high > least.low  # what overlapping intervals would have hidden
    turned = error_ratio({"least mass": bayes.tolist(), "bayes median": hard.tolist()})
    assert turned is not None
    assert (turned.better, turned.value) == ("least mass", found.value)


@pytest.mark.unit
def test_where_neither_is_better_it_is_not_sure(rng: np.random.Generator) -> None:
    same = rng.exponential(size=(2, 40))
    found = error_ratio({"least mass": same[0].tolist(), "bayes median": same[1].tolist()})
    assert found is not None
    assert not found.sure
    assert found.value <= 1 < found.high
    assert error_ratio({"least mass": [0.0] * 9, "bayes median": [0.0] * 9}) is None
    exact = error_ratio({"least mass": [1.0, 1.5] * 20, "bayes median": [0.0] * 40})
    assert exact is not None
    assert (exact.better, exact.value, exact.low, exact.sure) == ("bayes median", 0.0, 0.0, True)
    assert exact.high > 0
    # One trial that was wrong says nothing of which is better, however many were not.
    rare = error_ratio({"least mass": [0.0] * 149 + [1.0], "bayes median": [0.0] * 149 + [0.9]})
    assert rare is not None
    assert (rare.low, rare.high, rare.sure) == (0.0, math.inf, False)
    # A trial without an answer is no pair.
    left = error_ratio({"least mass": [1.0, math.nan, 2.0], "bayes median": [1.0, 1.0, 2.0]})
    assert left is not None
    assert (left.trials, left.value, left.sure) == (2, 1.0, False)


@pytest.mark.unit
def test_a_mean_moved_below_nothing_is_not_moved() -> None:
    """Few errors beside others that were rare there and common since: a line through them goes below 0."""
    beside = [1.0] * 59 + [5.0] + [0.5] * 340
    found = mean_error("bayes median", [0.0] * 59 + [4.0], beside=beside)
    assert found.mean == pytest.approx(4 / 60)
    assert math.isfinite(found.high)


@pytest.mark.reference
def test_a_forecast_is_of_what_recoveries_do(rng: np.random.Generator) -> None:
    """Against a loop written anew: means of 200 trials each, apart by at most five standard errors."""
    sigma, off = 0.05, []
    for _ in range(200):
        truth = synthetic_sources(LINE.space, 2, rng=rng)
        found = recover(LINE, LINE.readings(truth) + sigma * rng.standard_normal(8), sigma=sigma)
        if found.status == "optimal":
            off.append(emd(found.estimate, truth, LINE.space, normalize=True).value)
    with mock.patch.object(module, "NARROW", 0.0):
        ours = forecast_recovery(
            Scene(LINE, sigma, 2), rng=rng, max_trials=200, estimators=("least mass",)
        )
    assert len(off) > 150
    apart = abs(float(np.mean(off)) - ours.least_mass.mean)
    # Infeasible draws, left out there and worse than others here, are at most one of ten.
    assert apart <= 5 * ours.least_mass.deviation / math.sqrt(len(off) / 2)


@pytest.mark.unit
def test_answers_that_were_all_exact_have_no_interval() -> None:
    found = mean_error("least mass", [0.0] * 50)
    assert (found.mean, found.low, found.high, found.width) == (0.0, 0.0, math.inf, math.inf)

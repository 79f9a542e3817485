"""The self-test knows the truth about its specimens, counts errors rightly, and fails a bad auditor."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from tests.chance import Cdf, assert_law

from sfumato._types import FloatArray
from sfumato.audit.catalogue import specimens
from sfumato.audit.catalogue.entries import RAPPOR_ONCE
from sfumato.audit.catalogue.self_test import (
    CAUGHT,
    RUNS,
    TESTS,
    Catch,
    Known,
    Level,
    SelfTest,
    errors,
    exponential_noise,
    laplace_delta,
    laplace_noise,
    largest_law,
    laws_of,
    private_specimens,
    selftest,
)
from sfumato.audit.render.words import selftest_lines
from sfumato.audit.verdict import DeltaBand, LowerBound, Verdict
from sfumato.errors import InvalidParameter
from sfumato.privacy.accounting import hockey_stick

# The module itself: the room's door hands out a function of the same name.
room: Any = import_module("sfumato.audit.catalogue.self_test")

LAWFUL = ("TruncGeom", "Response", "RNM1", "RNM2", "RapporOnce")


def known(name: str, rng: np.random.Generator) -> Known:
    (found,) = [one for one in private_specimens(rng) if one.name == name]
    return found


# --- the truth


@pytest.mark.unit
def test_which_entry_is_largest_by_hand() -> None:
    """Of two entries d scales apart the lower one wins with exp(-d) / 2, or exp(-d) (2 + d) / 4."""
    data = np.array([0.0, 3.0])
    d = 3 / 2
    assert largest_law(data, exponential_noise)[0] == pytest.approx(math.exp(-d) / 2, abs=1e-13)
    assert largest_law(data, laplace_noise)[0] == pytest.approx(
        math.exp(-d) * (2 + d) / 4, abs=1e-13
    )
    assert largest_law(np.ones(5), laplace_noise) == pytest.approx(np.full(5, 0.2), abs=1e-12)


@pytest.mark.reference
def test_the_profile_of_laplace_noise_is_that_of_its_cells() -> None:
    """Cells of 1/1000 between -40 and 41: the sum differs from the integral by less than a thousandth."""
    edges = np.linspace(-40, 41, 81_001)
    p, q = (np.diff(laplace_noise(edges - shift)[1]) for shift in (0.0, 1.0))
    for epsilon in (0.0, 0.3, 0.9, 1.0, 2.0):
        cells = float(hockey_stick(p / p.sum(), q / q.sum(), epsilon=epsilon))
        assert laplace_delta(epsilon) == pytest.approx(cells, abs=1e-3)


@pytest.mark.unit
def test_epsilons_of_the_pairs(rng: np.random.Generator) -> None:
    """Exact but for the slack of a millionth; that of RNM1 is below its claim, as its noise is symmetric."""
    found = {one.name: one for one in private_specimens(rng)}
    assert len(found) == 8
    assert set(LAWFUL) < set(found)
    bits = specimens.report_bits_epsilon(flipped=RAPPOR_ONCE, again=None)
    for name, epsilon in (("Laplace", 1.0), ("TruncGeom", 1.0), ("Response", 1.0), ("RNM2", 1.0),
                          ("RapporOnce", bits)):  # fmt: skip
        assert epsilon <= found[name].epsilon * (1 + 1e-7) <= epsilon * (1 + 2e-6), name
    assert 0.9 < found["RNM1"].epsilon < 1
    for one in found.values():
        assert one.specimen.private
        assert one.epsilon <= one.specimen.true * (1 + 2e-6)
        curve = [one.delta(share * one.epsilon) for share in room.SHARES]
        assert sorted(curve, reverse=True) == curve
        assert curve[-1] == pytest.approx(0, abs=1e-9)
    with pytest.raises(
        InvalidParameter, match="laws of Laplace are not known; nothing was compared"
    ):
        laws_of(found["Laplace"].specimen)


def cumulative(law: FloatArray) -> Cdf:
    sums = np.concatenate([[0.0], np.cumsum(law)])
    return lambda z: sums[np.clip(np.asarray(z) + 1, 0, law.size)]


@pytest.mark.statistical
@pytest.mark.parametrize("name", LAWFUL)
def test_specimens_have_the_laws_by_which_the_auditor_is_judged(
    name: str, rng: np.random.Generator
) -> None:
    specimen = known(name, rng).specimen
    first, second = laws_of(specimen)
    rows = np.asarray(specimen.box.run(specimen.pair.first, 40_000))
    if name == "RapporOnce":
        # The bits of the value 0 are 1, 5, 9, 13, those of 1 are the next ones: how many of each
        # are set.
        rows = 5 * rows[:, 2:18:4].sum(axis=1) + rows[:, 1:17:4].sum(axis=1)
    assert_law(rows.astype(np.int64), cumulative(first), rivals=[cumulative(second)])


# --- counting


@pytest.mark.unit
def test_limits_of_error_rates_by_hand() -> None:
    none, all_ = Level("fixed", "a", 100, 0), Level("fixed", "a", 100, 100)
    assert none.max_rate == pytest.approx(1 - 0.05 ** (1 / 100))
    assert none.shown
    assert not none.above(0.5)
    assert all_.max_rate == 1
    assert all_.above(1e-9)
    # 6 of 6 have the chance 0.05**6 = 1.6e-8.
    assert Level("band", "a", 6, 6).above(1.6e-8)
    assert not Level("band", "a", 6, 6).above(1.5e-8)


@pytest.mark.unit
def test_one_bad_row_or_one_miss_is_enough_to_fail() -> None:
    good = Level("fixed", "a", 2000, 90)
    catch = Catch("b", True, 10)
    assert SelfTest((good, good), (catch,)).passed
    assert not SelfTest((good, good), (catch, Catch("c", False, 20_000))).passed
    # 100 are expected at most; 170 lie seven deviations above.
    bad = replace(good, errors=170)
    found = SelfTest((good, bad), (catch,))
    assert not found.passed
    assert found.exceeded == (bad,)
    assert [row[-1] for row in found.table()] == ["at most nominal", "not shown", "no"]
    assert [row[-1] for row in SelfTest((replace(good, errors=80),), ()).table()][1:] == ["yes"]


@pytest.mark.unit
def test_what_would_have_been_noticed() -> None:
    """One row: 2000 audits reject from 151 errors on, and 9 % of them are 180; 3 audits reject never."""
    assert SelfTest((Level("fixed", "a", 2000, 0),), ()).noticed == pytest.approx(0.09)
    assert SelfTest((Level("fixed", "a", 3, 0),), ()).noticed == 1
    assert 0.2 < SelfTest((Level("fixed", "a", 100, 0),) * 24, ()).noticed < 0.4


@pytest.mark.unit
def test_lines_say_all_of_it() -> None:
    found = SelfTest(
        (Level("fixed", "Laplace", 200, 3),), (Catch("b", True, 1234), Catch("c", False, 9))
    )
    lines = selftest_lines(found)
    assert lines[0].split() == [
        "mechanism", "test", "audits", "errors", "95%", "upper", "limit", "nominal", "at", "most", "nominal",
    ]  # fmt: skip
    assert lines[1].split() == ["Laplace", "fixed", "200", "3", "3.83%", "5%", "yes"]
    assert lines[2:4] == ["b, broken: caught after 1,234 runs", "c, broken: NOT caught in 9 runs"]
    assert lines[-1] == "FAILED: do not rely on this auditor"
    assert selftest_lines(SelfTest(found.levels, found.catches[:1]))[-1] == "passed"


# --- bad auditors


@pytest.mark.unit
@pytest.mark.parametrize("too_much", [1.0, 1.01])
def test_a_lower_bound_above_the_truth_is_an_error(
    too_much: float, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = known("TruncGeom", rng)

    def bold(*_: Any, **__: Any) -> LowerBound:
        return LowerBound(too_much * true.epsilon, 0.0, 0.95, None, 600)  # type: ignore[arg-type]

    monkeypatch.setattr(room, "lower_bound", bold)
    assert errors(true, "fixed", 7, rng) == (0 if too_much == 1 else 7)


@pytest.mark.unit
def test_a_refutation_of_the_truth_is_an_error(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def suspicious(box: Any, claim: Any, **rest: Any) -> Verdict:
        asked.append(
            (float(claim.loss.epsilon), rest["pairs"], rest["budget"].runs, rest["confidence"])
        )
        return Verdict("REFUTED" if len(asked) % 2 else "NOT_REFUTED", claim, 0.95, 300, 0.1)

    monkeypatch.setattr(room, "refute", suspicious)
    true = known("RNM1", rng)
    assert errors(true, "sequential", 4, rng) == 2
    assert asked == [(true.epsilon, [true.specimen.pair], RUNS["sequential"], 0.95)] * 4


@pytest.mark.unit
@pytest.mark.parametrize(("below", "over", "wrong"), [(1.0, 1.0, 0), (1.1, 2.0, 3), (0.0, 0.9, 3)])
def test_a_band_that_misses_the_profile_is_an_error(
    below: float, over: float, wrong: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = known("Response", rng)

    def drawn(*_: Any, epsilons: list[float], **__: Any) -> DeltaBand:
        curve = [true.delta(epsilon) for epsilon in epsilons]
        ends = [tuple(factor * one for one in curve) for factor in (below, over)]
        return DeltaBand(tuple(epsilons), ends[0], ends[1], 0.95, 400, ())

    monkeypatch.setattr(room, "profile", drawn)
    assert errors(true, "band", 3, rng) == wrong


@pytest.mark.statistical
def test_this_auditor_passes(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six errors of six audits have a chance of 2e-8; of 35 catches none took a fifth of the budget."""
    for test in TESTS:
        monkeypatch.setitem(RUNS, test, 120)  # it is the way through all of it that is tested
    told: list[tuple[str, int]] = []
    found = selftest(audits=6, rng=rng, watch=lambda name, done: told.append((name, done)))
    assert found.passed, str(found)
    assert told[0] == ("Laplace", 6)
    assert told[-1] == ("RapporOnce", 24 * 6)
    assert {one.test for one in found.levels} == set(TESTS)
    assert {one.mechanism for one in found.catches} == set(CAUGHT)
    assert not replace(found, levels=(replace(found.levels[0], errors=6), *found.levels[1:])).passed


@pytest.mark.unit
def test_an_auditor_that_never_refutes_fails(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        room,
        "refute",
        lambda box, claim, **rest: Verdict("NOT_REFUTED", claim, 0.95, rest["budget"].runs, 1.0),
    )
    caught = tuple(room.catch_all(rng))
    assert len(caught) == len(CAUGHT)
    assert not SelfTest((), caught).passed


@pytest.mark.unit
def test_no_audits_are_refused(rng: np.random.Generator) -> None:
    with pytest.raises(InvalidParameter, match="audits must be at least 1, got 0; nothing was run"):
        selftest(audits=0, rng=rng)

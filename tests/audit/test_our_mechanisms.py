"""We audit ourselves: every mechanism keeps exactly what it charges, and its broken twins are refuted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.audit.ours import ALONE, FAST, MOVED, OURS, Broken, Ours, breach
from tests.audit.twins import FloatNoise, OneKeyEach
from tests.docs.test_proofs import NAMES

from sfumato.audit.assertion import FLAKE, assert_claim
from sfumato.audit.boxes.box import Pair
from sfumato.audit.sequential.budget import Budget
from sfumato.audit.sequential.refutation import refute
from sfumato.audit.verdict import Verdict
from sfumato.privacy import ZCDP, Claim, KeyedNoise, Noise, PureDP, SystemNoise

pytestmark = pytest.mark.statistical

BY_NAME = {one.name: one for one in OURS}
PAIRS = [
    pytest.param(one, pair, id=f"{one.name}: {pair.name}") for one in OURS for pair in one.pairs
]
TWINS = [
    pytest.param(one, twin, id=f"{one.name}: {twin.name}") for one in OURS for twin in one.broken
]
ON_VECTORS = ("discrete-laplace", "discrete-gaussian", "rounded-gaussian", "permute-and-flip")


def audited(ours: Ours, pair: Pair, noise: Noise) -> Verdict:
    """The mechanism at exactly its own cost; an audit that could have shown nothing is not accepted.

    Whatever breaks epsilon twice over shows, on an event of mass 1/2 in all of them, of mass 1/10
    in the fast ones. Of rho the epsilons at all deltas are tried; that of mass 1/10 shows at none
    of them so early.
    """
    verdict = assert_claim(ours.box(noise), ours.claim, pairs=[pair], flake=FLAKE, runs=ours.runs)
    assert verdict.kind == "NOT_REFUTED"
    assert breach(verdict) <= 2
    if ours.runs == FAST and not isinstance(ours.claim.loss, ZCDP):
        assert verdict.excluded is not None
        assert verdict.excluded <= 2 * ours.claim.loss.epsilon  # type: ignore[union-attr]
    return verdict


def test_no_mechanism_is_left_out() -> None:
    assert {f"{one.name.partition(',')[0]}/1" for one in OURS} == set(NAMES)
    assert {one.mechanism.name for one in OURS} == set(NAMES)
    assert all(one.pairs and one.broken for one in OURS)


@pytest.mark.parametrize(("ours", "pair"), PAIRS)
def test_a_mechanism_keeps_its_cost(ours: Ours, pair: Pair, key: bytes) -> None:
    audited(ours, pair, KeyedNoise(key))


@pytest.mark.system
@pytest.mark.parametrize("name", ON_VECTORS)
def test_noise_of_the_system_keeps_the_cost_as_well(name: str) -> None:
    audited(BY_NAME[name], BY_NAME[name].pairs[0], SystemNoise())


@pytest.mark.parametrize("name", ["discrete-laplace", "rounded-gaussian"])
def test_a_key_for_every_draw_keeps_the_cost_as_well(name: str) -> None:
    audited(BY_NAME[name], ALONE, OneKeyEach())


@pytest.mark.parametrize(("ours", "twin"), TWINS)
def test_a_broken_twin_is_refuted_by_the_same_audit(ours: Ours, twin: Broken, key: bytes) -> None:
    box = ours.box(KeyedNoise(key), twin.mechanism)
    with pytest.raises(AssertionError, match="does not keep"):
        assert_claim(box, ours.claim, pairs=[twin.pair], flake=FLAKE, runs=ours.runs)


def test_noise_of_doubles_is_refuted_by_its_low_bits(rng: np.random.Generator, key: bytes) -> None:
    """Its law is right to many digits; what it may give, on 0 and on 1, is not."""
    ours = BY_NAME["rounded-gaussian"]
    right: Any = ours.mechanism
    twin = FloatNoise(float(right.sigma), rng)
    verdict = refute(
        ours.box(KeyedNoise(key), twin),
        ours.claim,
        pairs=[ALONE],
        confidence=1 - FLAKE,
        budget=Budget(ours.runs, None),
    )
    assert verdict.kind == "REFUTED"


def test_swapping_the_inputs_changes_nothing(key: bytes) -> None:
    ours = BY_NAME["discrete-laplace, replaced"]
    audited(ours, Pair(MOVED.second, MOVED.first, "backwards"), KeyedNoise(key))
    twin = ours.broken[0]
    backwards = Pair(twin.pair.second, twin.pair.first, "backwards")
    with pytest.raises(AssertionError, match="does not keep"):
        assert_claim(
            ours.box(KeyedNoise(key), twin.mechanism), ours.claim, pairs=[backwards], runs=ours.runs
        )


def test_a_claim_of_less_than_the_cost_is_refuted(key: bytes) -> None:
    """Cost is not only kept but used up: at 0.45 of it the same runs refute Laplace noise."""
    ours = BY_NAME["discrete-laplace"]
    assert ours.claim.loss == PureDP(1)
    with pytest.raises(AssertionError, match=r"does not keep epsilon 0\.45"):
        assert_claim(
            ours.box(KeyedNoise(key)),
            Claim(PureDP("0.45"), ours.claim.neighbors),
            pairs=[ALONE],
            runs=FAST,
        )

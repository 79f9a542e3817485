"""Each mechanism costs what it says, by its exact law; samples follow that law."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import exp
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.chance import assert_law, assert_share

from sfumato.errors import InvalidParameter
from sfumato.privacy import (
    REHEARSAL,
    ZCDP,
    AddRemoveUser,
    ApproxDP,
    Bound,
    DiscreteGaussian,
    DiscreteLaplace,
    KeyedNoise,
    Ledger,
    Mechanism,
    PermuteAndFlip,
    PureDP,
    RandomisedResponse,
    ReplaceUser,
    RoundedGaussian,
    SystemNoise,
    guard,
)
from sfumato.privacy.accounting import max_divergence, renyi_divergence
from sfumato.privacy.ledger.guarded import LARGEST
from sfumato.privacy.mechanisms.permute_and_flip import _accepts
from sfumato.privacy.noise.system import refine
from sfumato.privacy.noise.tables import erf_at, sampler

pytestmark = pytest.mark.system

ALL: list[Mechanism[Any, Any]] = [
    DiscreteLaplace(3),
    DiscreteGaussian(3),
    RoundedGaussian(3),
    RandomisedResponse(1, 4),
    PermuteAndFlip(3),
]


@pytest.mark.unit
def test_costs_by_hand() -> None:
    bound = Bound(AddRemoveUser(), 10, l1=6, l2_squared=12, linf=3)
    assert DiscreteLaplace(4).cost(bound) == PureDP("3/2")
    assert DiscreteGaussian(4).cost(bound) == ZCDP("3/8")
    assert RoundedGaussian(4).cost(bound) == ZCDP("3/8")
    assert PermuteAndFlip(4).cost(bound) == PureDP("3/2")
    assert RandomisedResponse("1/3", 5).cost(Bound(ReplaceUser(), 10, linf=4, entries=2)) == PureDP(
        "2/3"
    )


@pytest.mark.unit
def test_what_a_mechanism_cannot_bound_it_refuses() -> None:
    only_l2 = Bound(AddRemoveUser(), 10, l2_squared=4)
    with pytest.raises(InvalidParameter, match="discrete Laplace noise needs a bound on l1"):
        DiscreteLaplace(1).cost(only_l2)
    with pytest.raises(InvalidParameter, match="permute-and-flip needs a bound on linf"):
        PermuteAndFlip(1).cost(only_l2)
    with pytest.raises(InvalidParameter, match="needs a bound on l2_squared"):
        DiscreteGaussian(1).cost(Bound(AddRemoveUser(), 10, linf=4))
    with pytest.raises(InvalidParameter, match="its neighbors are ReplaceUser"):
        RandomisedResponse(1).cost(Bound(AddRemoveUser(), 10, l1=1))


@pytest.mark.unit
def test_bad_parameters_are_refused_where_they_are_born() -> None:
    with pytest.raises(InvalidParameter, match="scale must lie in"):
        DiscreteLaplace(0)
    with pytest.raises(InvalidParameter, match="scale must lie in"):
        DiscreteLaplace(2**41)
    with pytest.raises(InvalidParameter, match=r"sigma must lie in .* coarser"):
        RoundedGaussian(5000)
    with pytest.raises(InvalidParameter, match="categories, got 1"):
        RandomisedResponse(1, 1)
    with pytest.raises(InvalidParameter, match=r"must lie in \(0, 128\]"):
        RandomisedResponse(0)
    with pytest.raises(InvalidParameter, match="finite"):
        DiscreteGaussian(float("nan"))


@pytest.mark.unit
def test_a_parameter_that_is_no_double_is_rounded_towards_more_noise() -> None:
    assert DiscreteLaplace("1/3").scale > Fraction(1, 3)
    assert DiscreteLaplace("1/3").cost(Bound(AddRemoveUser(), 1, l1=1)).epsilon < 3


SUPPORT = np.arange(-3000, 3001)


@pytest.mark.reference
@pytest.mark.parametrize("scale", ["1/2", 1, 3, 10])
@pytest.mark.parametrize("shift", [1, 2, 5])
def test_laplace_cost_is_its_max_divergence(scale: int | str, shift: int) -> None:
    mechanism = DiscreteLaplace(scale)
    inside = np.abs(SUPPORT) <= 600 * float(mechanism.scale)
    p, q = mechanism.law.pmf(SUPPORT)[inside], mechanism.law.pmf(SUPPORT - shift)[inside]
    loss = float(np.abs(np.log(p / q)).max())
    assert loss == pytest.approx(
        float(mechanism.cost(Bound(AddRemoveUser(), 1, l1=shift)).epsilon), rel=1e-9
    )


@pytest.mark.reference
@pytest.mark.parametrize("sigma", [0.6, 1, 4, 30])
@pytest.mark.parametrize("shift", [1, 3])
def test_gaussian_cost_bounds_every_renyi_divergence(sigma: float, shift: int) -> None:
    rho = float(DiscreteGaussian(sigma).cost(Bound(AddRemoveUser(), 1, l1=shift)).rho)
    assert RoundedGaussian(sigma).cost(Bound(AddRemoveUser(), 1, l1=shift)) == ZCDP(
        Fraction(shift**2) / (2 * Fraction(sigma) ** 2)
    )
    for law in (DiscreteGaussian(sigma).law, RoundedGaussian(sigma).law):
        # Where both are doubles: beyond 30 deviations nothing is left of either.
        z = SUPPORT[np.abs(SUPPORT) <= 30 * sigma + shift]
        p, q = law.pmf(z), law.pmf(z - shift)
        keep = (p > 1e-290) & (q > 1e-290)
        p, q = p[keep] / p[keep].sum(), q[keep] / q[keep].sum()
        for order in (1.5, 2, 4, 8):
            assert float(renyi_divergence(p, q, order=order)) <= rho * order * (1 + 1e-9)
    whole = DiscreteGaussian(sigma).law
    p, q = whole.pmf(SUPPORT), whole.pmf(SUPPORT - shift)
    keep = (p > 1e-290) & (q > 1e-290)
    # At whole orders the discrete Gaussian meets its bound: a shifted sum over the same lattice.
    divergence = float(
        renyi_divergence(p[keep] / p[keep].sum(), q[keep] / q[keep].sum(), order=2.0)
    )
    assert divergence == pytest.approx(2 * rho, rel=1e-6)


@pytest.mark.reference
@pytest.mark.parametrize("shifts", [(1, 1), (2, 1), (1, 1, 1)])
def test_vector_costs_cover_vectors(shifts: tuple[int, ...]) -> None:
    """Product laws on small boxes: l1 for Laplace, l2 for the Gaussians, against the joint divergences."""
    bound = Bound(AddRemoveUser(), 3, l1=sum(shifts), l2_squared=sum(s * s for s in shifts))
    z = np.arange(-25, 26)

    def joint(law: object, moved: tuple[int, ...]) -> np.ndarray:
        out = np.ones(1)
        for shift in moved:
            out = np.outer(out, law.pmf(z - shift)).ravel()  # type: ignore[attr-defined]
        shares: np.ndarray = out / out.sum()
        return shares

    none = (0,) * len(shifts)
    laplace, gaussian = DiscreteLaplace(2), DiscreteGaussian(2)
    worst = float(max_divergence(joint(laplace.law, none), joint(laplace.law, shifts)))
    # The box cuts tails: both sums are renormalised by the same factor up to 1e-4.
    assert worst <= float(laplace.cost(bound).epsilon) + 1e-3
    for order in (2.0, 3.0):
        found = float(
            renyi_divergence(joint(gaussian.law, none), joint(gaussian.law, shifts), order=order)
        )
        assert found <= order * float(gaussian.cost(bound).rho) + 1e-6


@pytest.mark.property
@given(st.fractions(min_value=Fraction(1, 10**30), max_value=128), st.integers(2, 1000))
def test_response_ratio_is_at_most_e_to_the_epsilon(epsilon: Fraction, categories: int) -> None:
    truth, other = RandomisedResponse(epsilon, categories).law
    assert truth + (categories - 1) * other == 1
    with mpmath.workprec(400):
        ratio = mpmath.mpf((truth / other).numerator) / (truth / other).denominator
        ideal = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
        assert 1 <= ratio <= ideal
        assert ratio >= ideal * (1 - mpmath.mpf(2) ** -60)


@pytest.mark.statistical
def test_response_has_its_law() -> None:
    mechanism, size = RandomisedResponse(1, 4), 60_000
    answers = mechanism.sample(np.full(size, 2), SystemNoise())
    truth, other = (float(p) for p in mechanism.law)
    for category, share in [(0, other), (1, other), (2, truth), (3, other)]:
        hits = int((answers == category).sum())
        assert_share(hits, size, share, rivals=[0.9 * share, 1.1 * share])


@pytest.mark.unit
def test_answers_outside_the_categories_are_treated_as_the_first() -> None:
    strange = np.array([-(2**62), -1, 4, 2**62])
    answers = RandomisedResponse(128, 4).sample(strange, SystemNoise())
    assert answers.tolist() == [0, 0, 0, 0]


@pytest.mark.reference
def test_proportions_are_unbiased_with_the_stated_variance() -> None:
    """All answer sheets of 4 people drawn from a known population, each with its exact probability."""
    mechanism, n = RandomisedResponse("3/2", 3), 4
    population = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    truth, other = mechanism.law
    answer = [other + share * (truth - other) for share in population]
    mean, square, variance = np.zeros(3), np.zeros(3), np.zeros(3)
    for sheet in itertools.product(range(3), repeat=n):
        chance = float(np.prod([float(answer[a]) for a in sheet]))
        found, spread = mechanism.proportions(np.array(sheet))
        mean, square, variance = (
            mean + chance * found,
            square + chance * found**2,
            variance + chance * spread,
        )
    assert mean == pytest.approx([float(share) for share in population], abs=1e-12)
    assert variance == pytest.approx(square - mean**2, rel=1e-9)
    with pytest.raises(InvalidParameter, match="at least 2 answers"):
        mechanism.proportions(np.array([1]))


def walk_by_hand(scores: list[int], scale: float) -> np.ndarray:
    """The walk itself, over all orders: the definition that `law` integrates."""
    take = np.exp(-(max(scores) - np.array(scores)) / scale)
    out = np.zeros(len(scores))
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        left = 1.0
        for i in order:
            out[i] += left * take[i] / len(orders)
            left *= 1 - take[i]
    return out


@pytest.mark.reference
@pytest.mark.parametrize("scores", [[0, 0], [3, 1], [5, 5, 2, 0], [9, 8, 8, 1, 0]])
def test_the_law_of_a_choice_is_the_walk(scores: list[int]) -> None:
    law = PermuteAndFlip(2.5).law(scores)
    assert law == pytest.approx(walk_by_hand(scores, 2.5), abs=1e-13)
    assert law.sum() == pytest.approx(1)


@pytest.mark.property
@given(st.lists(st.integers(0, 12), min_size=2, max_size=6), st.data())
def test_a_choice_is_private(scores: list[int], data: st.DataObject) -> None:
    """No neighbor, every score up or down by at most 1, changes any probability by more than e**(2/scale)."""
    mechanism = PermuteAndFlip(2)
    moves = data.draw(st.lists(st.integers(-1, 1), min_size=len(scores), max_size=len(scores)))
    a, b = mechanism.law(scores), mechanism.law(np.array(scores) + moves)
    epsilon = float(mechanism.cost(Bound(AddRemoveUser(), len(scores), linf=1)).epsilon)
    assert np.abs(np.log(a / b)).max() <= epsilon + 1e-9


@pytest.mark.unit
def test_the_epsilon_of_a_choice_is_needed() -> None:
    mechanism = PermuteAndFlip(2)
    a, b = mechanism.law([0, 0, 0, 0, 40]), mechanism.law([1, -1, -1, -1, 39])
    assert float(np.log(b[0] / a[0])) == pytest.approx(1, rel=1e-3)


@pytest.mark.property
@given(st.lists(st.integers(0, 30), min_size=2, max_size=8), st.floats(0.5, 20))
def test_a_choice_is_never_worse_than_the_exponential_mechanism(
    scores: list[int], scale: float
) -> None:
    values = np.array(scores)
    weights = np.exp((values - values.max()) / scale)
    exponential = weights / weights.sum()
    chosen = PermuteAndFlip(scale).law(values)
    for level in np.unique(values):
        assert chosen[values < level].sum() <= exponential[values < level].sum() + 1e-12


@pytest.mark.property
@given(st.lists(st.integers(0, 60), min_size=2, max_size=8), st.floats(0.01, 0.9))
def test_the_shortfall_is_lemma_2_10(scores: list[int], failure: float) -> None:
    mechanism = PermuteAndFlip(3)
    values, law = np.array(scores), mechanism.law(scores)
    bad = values <= values.max() - mechanism.shortfall(len(scores), failure)
    assert law[bad].sum() <= failure + 1e-12


@pytest.mark.statistical
def test_selection_has_its_law(key: bytes) -> None:
    scores, mechanism, size = np.array([10, 9, 7, 7, 2, 0]), PermuteAndFlip(3), 30_000
    weights = np.exp((scores - scores.max()) / 3)
    exponential = weights / weights.sum()
    sharper = PermuteAndFlip(1.5).law(scores)
    law = mechanism.law(scores)
    for noise in (SystemNoise(), KeyedNoise(key)):
        chosen = np.array([mechanism.sample(scores, noise)[0] for _ in range(size)])

        def cdf(shares: np.ndarray) -> object:
            sums = np.concatenate([[0.0], np.cumsum(shares)])
            return lambda z: sums[np.clip(np.asarray(z) + 1, 0, 6)]

        assert_law(chosen, cdf(law), rivals=[cdf(exponential), cdf(sharper)])  # type: ignore[arg-type, list-item]


@pytest.mark.statistical
def test_coins_of_probability_e_to_minus_x() -> None:
    # A share of e**-5/2 = 0.082 is told from one 15 % off with 60,000 coins: 11 deviations apart.
    noise, size = SystemNoise(), 60_000
    for power in (Fraction(1, 3), Fraction(1), Fraction(5, 2)):
        hits = sum(_accepts(power, noise) for _ in range(size))
        share = exp(-power)
        assert_share(hits, size, share, rivals=[0.85 * share, min(1.15 * share, 0.99)])
    assert all(_accepts(Fraction(0), noise) for _ in range(100))


@pytest.mark.unit
@pytest.mark.parametrize("mechanism", ALL, ids=lambda m: m.name)
def test_samples_are_integers_and_never_wrap(mechanism: Mechanism[Any, Any]) -> None:
    ends = np.array([-LARGEST, -LARGEST + 1, 0, LARGEST - 1, LARGEST])
    out = mechanism.sample(ends, SystemNoise())
    assert out.dtype == np.int64
    assert np.abs(out).max() <= LARGEST
    if out.size == ends.size and mechanism.name != "randomised-response/1":
        assert out[0] < -(2**60)
        assert out[-1] > 2**60


class Flood:
    """Noise at the ends of what an int64 holds: no sampler draws it, a saturated one may return it."""

    distance = None
    known = False

    def laplace(self, _: object, size: int) -> np.ndarray:
        return np.resize(np.array([2**63 - 1, -(2**63), 2**62 + 5, -(2**62) - 5, 7]), size)


@pytest.mark.unit
def test_clipping_depends_on_the_sum_alone() -> None:
    """Whatever the noise, the release is a function of x + z: at the ends nothing of x shows."""
    noise = Flood().laplace(1, 5)
    for x in (-LARGEST, -3, 0, 1, LARGEST):
        exact = np.full(5, x)
        want = [max(-LARGEST, min(LARGEST, x + int(z))) for z in noise]
        assert DiscreteLaplace(1).sample(exact, Flood()).tolist() == want  # type: ignore[arg-type]


@pytest.mark.property
@given(
    st.fractions(min_value=Fraction(1, 50), max_value=20), st.integers(1, 1000), st.integers(1, 30)
)
def test_within_spends_what_was_asked_and_hardly_less(amount: Fraction, l1: int, linf: int) -> None:
    bound = Bound(AddRemoveUser(), 50, l1=l1, linf=min(l1, linf))
    close = 1 - Fraction(1, 2**50)
    for pure in (
        DiscreteLaplace.within(PureDP(amount), bound),
        PermuteAndFlip.within(PureDP(amount), bound),
    ):
        assert amount * close <= pure.cost(bound).epsilon <= amount
    assert (
        amount * close**2 <= DiscreteGaussian.within(ZCDP(amount), bound).cost(bound).rho <= amount
    )


@pytest.mark.property
@given(st.fractions(min_value=Fraction(1, 10), max_value=10), st.integers(1, 300))
@settings(max_examples=30)
def test_a_promise_within_a_loss_is_kept_and_is_the_cost(epsilon: Fraction, square: int) -> None:
    bound = Bound(AddRemoveUser(), 50, l2_squared=square)
    promise = ApproxDP(epsilon, "1e-6")
    mechanism = RoundedGaussian.within(promise, bound)
    assert mechanism.cost(bound) == promise
    with pytest.raises(InvalidParameter, match="does not keep"):
        mechanism.cost(Bound(AddRemoveUser(), 50, l2_squared=square * (1 + Fraction(1, 10**9))))
    assert isinstance(RoundedGaussian.within(ZCDP(epsilon), bound).cost(bound), ZCDP)


@pytest.mark.unit
def test_one_gaussian_release_may_use_up_an_approximate_budget() -> None:
    ledger = Ledger.rehearsal(ApproxDP(1, "1e-6"))
    data = guard([5, 7], Bound(AddRemoveUser(), 2, l2_squared=2), source=REHEARSAL)
    release = ledger.release(RoundedGaussian.within(ApproxDP(1, "1e-6"), data.bound), data)
    assert release.guarantee.loss == ApproxDP(1, "1e-6")
    assert release.entry.parameters["promise"] == {
        "kind": "ApproxDP",
        "epsilon": "1",
        "delta": "1/1000000",
    }
    assert ledger.statement().left == ApproxDP(0, 0)


@pytest.mark.reference
@pytest.mark.parametrize(
    "mechanism", [DiscreteLaplace(7), DiscreteGaussian(7.5)], ids=lambda m: m.name
)
def test_opendp_agrees_on_the_cost(mechanism: DiscreteLaplace | DiscreteGaussian) -> None:
    """OpenDP's own privacy map of the measurement we draw from."""
    from sfumato.privacy.noise import system

    match mechanism:
        case DiscreteLaplace(scale):
            theirs = system._opendp_laplace(float(scale)).map(3)
            ours = mechanism.cost(Bound(AddRemoveUser(), 5, l1=3)).epsilon
        case DiscreteGaussian(sigma):
            theirs = system._opendp_gaussian(float(sigma)).map(3.0)
            ours = mechanism.cost(Bound(AddRemoveUser(), 5, l2_squared=9)).rho
    assert float(ours) == pytest.approx(theirs, rel=1e-12)
    assert ours <= Fraction(theirs)


@pytest.mark.statistical
def test_undecided_bits_are_refined_exactly() -> None:
    """Where 127 bits end on a threshold, the rest decides with the right chance, here cut to 8 bits."""
    sigma, size = Fraction(3), 20_000
    for k in (0, 2, 5):
        threshold = erf_at(k, sigma, 8)
        fine = erf_at(k, sigma, 72)
        share = (fine - (threshold << 64)) / 2**64  # of [threshold, threshold + 1) that lies below
        hits = sum(refine(threshold, 8, k, sigma) == k for _ in range(size))
        assert_share(hits, size, share, rivals=[min(0.99, share + 0.1), max(0.01, share - 0.1)])


@pytest.mark.unit
def test_a_tie_in_the_table_is_refined(monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.privacy.noise import system

    law = RoundedGaussian(3).law
    tied = sampler(law).tables[0].thresholds[4]
    seen: list[tuple[object, ...]] = []

    def remember(*arguments: object) -> int:
        seen.append(arguments)
        return 77

    monkeypatch.setattr("os.urandom", lambda n: (tied | 1 << 127).to_bytes(16, "big") * (n // 16))
    monkeypatch.setattr(system, "refine", remember)
    assert SystemNoise().rounded_gaussian(3, 3).tolist() == [-77, -77, -77]
    assert seen == [(tied, 127, 4, Fraction(3))] * 3


@pytest.mark.unit
def test_a_tie_with_several_thresholds_starts_at_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the far tail many thresholds share their 127 bits; the draw may be any of them."""
    from sfumato.privacy.noise import system

    thresholds = sampler(RoundedGaussian(256).law).tables[0].thresholds
    tied = next(a for a, b in itertools.pairwise(thresholds) if a == b)
    first = thresholds.index(tied)
    monkeypatch.setattr("os.urandom", lambda n: tied.to_bytes(16, "big") * (n // 16))
    monkeypatch.setattr(system, "refine", lambda u, bits, k, sigma: k)
    assert SystemNoise().rounded_gaussian(256, 1).tolist() == [first]

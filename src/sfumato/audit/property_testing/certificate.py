"""Certify a claim for stated pairs, or for random data, up to a proximity, by the thesis' testers.

A certificate is about distance: had the claim been further off than the proximity, this audit would
have rejected it with the stated confidence. A refutation is about the claim itself: had it been
true, this audit would have accepted it with the stated confidence. Where runs are compared with
stated laws and do not fit them, that is about the laws, and the verdict is inconclusive.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, assert_never

import numpy as np

from sfumato._types import FloatArray
from sfumato.audit.boxes.box import Box, Pair, SampleBox
from sfumato.audit.boxes.runs import as_box
from sfumato.audit.boxes.tallies import Table, Tallies, too_often
from sfumato.audit.claims import EpsilonDelta, above
from sfumato.audit.property_testing.limits import require_countable, require_verifiable
from sfumato.audit.property_testing.testers import (
    Decision,
    Repetition,
    amplified,
    approx_samples,
    approx_test,
    laws_are_private,
    random_plan,
    specified_approx_samples,
    specified_approx_test,
    specified_pure_samples,
    specified_pure_test,
)
from sfumato.audit.results import Certified, Kind, Verdict
from sfumato.errors import InvalidParameter, NotComparable, Unverifiable
from sfumato.privacy import ZCDP, ApproxDP, Claim, GaussianDP, PureDP, RandomApproxDP, RandomPureDP
from sfumato.privacy.accounting import exact

CONFIDENCE = 0.99
"""That of a certificate, if nothing else is asked for: one false claim of a hundred is certified, at most."""
Specification = Callable[[Any], Sequence[float] | FloatArray]
OTHER_LAWS = (
    "the stated laws are not those of the box, by what was seen; that says nothing of the claim: certify it "
    "with the right laws, or try to refute it without any"
)
STATED_BREAK = "the stated laws themselves break the claim, on more of the random pairs than may be"


class PairSource(Protocol):
    """Draws two random neighboring inputs."""

    def __call__(self, rng: np.random.Generator, /) -> Pair:
        """One pair, with the randomness given."""


def certify(
    box: Box,
    claim: Claim,
    *,
    proximity: float,
    outputs: int | Sequence[Any],
    gamma: float = 0.0,
    weight: float = 1.0,
    pairs: Sequence[Pair] = (),
    data: PairSource | None = None,
    specification: Specification | None = None,
    rng: np.random.Generator | None = None,
    confidence: float = CONFIDENCE,
    budget: int | None = None,
) -> Verdict:
    """Whether a claim holds up to a proximity: in delta of approximate claims, in epsilon of pure ones.

    Either for all of `pairs`, or for `data`, a function that draws a random neighboring pair: then
    the claim may fail on a share of gamma (of a random claim: its own), and is certified to fail on
    no more than gamma + proximity / weight. `outputs` are all possible outputs, or how many there
    are. With a `specification`, the masses of these outputs for an input, fewer runs do, and pure
    claims can be certified; without, they raise `Unverifiable`. `budget` is the most runs allowed;
    where it is too small nothing is run, and the verdict says how many are needed. What a
    certificate is of is never the claim itself but what is that far from it: `Verdict.certified`.
    """
    begin, box = time.monotonic(), as_box(box)
    tester = _tester(claim, outputs, proximity, specification)
    if not 1 / 2 < confidence < 1:
        raise InvalidParameter(
            f"confidence must be above 1/2 and below 1, got {confidence}; nothing was run"
        )
    if (data is None) == (not pairs):
        raise InvalidParameter("certify takes either pairs or data; nothing was run")
    if isinstance(box, SampleBox) and budget is None:
        budget = 2 * min(len(box.first) - box.taken[0], len(box.second) - box.taken[1])
    if data is None:
        if gamma or isinstance(claim.loss, RandomPureDP | RandomApproxDP):
            raise InvalidParameter(
                f"a share of random data needs data, not pairs; got {claim}; nothing was run"
            )
        kept = really_certified(claim, proximity)
        found = _every(tester.tallies(box), tester, tuple(pairs), 1 - confidence, budget)
    else:
        if rng is None:
            raise InvalidParameter("random data needs rng, got None; nothing was run")
        share = _share(claim, gamma)
        kept = really_certified(claim, proximity, share=share, slack=proximity / weight)
        drawn = _Drawn(partial(data, rng), share, proximity / weight)
        found = replace(
            _random(tester.tallies(box), tester, drawn, 1 - confidence, budget), gamma=share
        )
    certified = kept if found.kind == "CERTIFIED" else None
    return replace(
        found, confidence=confidence, seconds=time.monotonic() - begin, certified=certified
    )


def really_certified(
    claim: Claim, proximity: float, *, share: float | None = None, slack: float = 0.0
) -> Certified:
    """What a certificate up to a proximity is of: the claim with the proximity in it, of random data too.

    Whatever is further off would have been rejected, so that this, and nothing less, is certified.

    >>> from sfumato.privacy import AddRemoveUser
    >>> print(really_certified(Claim(RandomApproxDP(1, "0.01", "0.05"), AddRemoveUser()), 0.1, slack=0.1))
    epsilon 1, delta 0.11 except with probability 0.15 over the data
    """
    off, more = exact(proximity), exact(slack)
    try:
        match claim.loss:
            case PureDP(epsilon):
                kept = PureDP(epsilon + off)
                return kept if share is None else RandomPureDP(kept.epsilon, exact(share) + more)
            case ApproxDP(epsilon, delta):
                kept_too = ApproxDP(epsilon, delta + off)
                return (
                    kept_too
                    if share is None
                    else RandomApproxDP(epsilon, delta + off, exact(share) + more)
                )
            case RandomPureDP(epsilon, gamma):
                return RandomPureDP(epsilon + off, gamma + more)
            case RandomApproxDP(epsilon, delta, gamma):
                return RandomApproxDP(epsilon, delta + off, gamma + more)
            case ZCDP() | GaussianDP():
                raise NotComparable(
                    f"{claim.loss} is certified by none of the testers; nothing was run"
                )
            case _:
                assert_never(claim.loss)
    except InvalidParameter as problem:
        raise InvalidParameter(
            f"a certificate up to {proximity:g} of {claim.loss} would say nothing: {problem}; nothing was run"
        ) from None


@dataclass(frozen=True, slots=True)
class _Tester:
    """The test of one pair that suits a claim: Algorithm 4 without a specification, else 6 if it is pure.

    An approximate claim with one is given to algorithm 5, or to 4, which looks at the stated laws
    only to see that they keep the claim: whichever takes fewer runs.
    """

    claim: Claim
    statement: EpsilonDelta
    proximity: float
    outputs: int | Sequence[Any]
    specification: Specification | None

    @property
    def size(self) -> int:
        return self.outputs if isinstance(self.outputs, int) else len(self.outputs)

    @property
    def pure(self) -> bool:
        return isinstance(self.claim.loss, PureDP | RandomPureDP)

    @property
    def name(self) -> str:
        if self.specification is None:
            return "algorithm 4 in both orders, without information"
        return f"algorithm {'6' if self.pure else '5, or 4 if cheaper'}, with stated laws"

    def tallies(self, box: Box) -> Tallies:
        """Counts runs of a box for this test."""
        return Tallies(box, self.outputs, stated=self.specification is not None)

    def laws(self, pair: Pair) -> tuple[FloatArray, FloatArray]:
        """What is stated of a pair."""
        if self.specification is None:
            raise InvalidParameter("nothing is stated of this box; nothing was run")
        first, second = (
            np.asarray(self.specification(data), dtype=np.float64)
            for data in (pair.first, pair.second)
        )
        if first.shape != (self.size,) or second.shape != (self.size,):
            raise InvalidParameter(
                f"a specification gives a mass for each of {self.size} outputs, got shapes {first.shape} and "
                f"{second.shape}; nothing was run"
            )
        if self.pure and not min(first.min(), second.min()) > 0:
            raise Unverifiable(
                "a pure claim is verified only where every output has a stated mass above 0 "
                f"[mcmillan18, thm. 10.12], got 0 for pair {pair.name!r}; nothing was run"
            )
        return first, second

    def stated_private(self, pair: Pair) -> bool:
        """Whether what is stated of a pair keeps the claim; true where nothing is."""
        if self.specification is None:
            return True
        return laws_are_private(
            self.laws(pair), epsilon=self.statement.epsilon, delta=self.statement.delta
        )

    def samples(self, error: float, pairs: int, pair: Pair | None) -> int:
        """Runs of each input for one test; without a pair, for laws that are even."""
        epsilon = self.statement.epsilon
        rates = {"proximity": self.proximity, "error": error}
        if self.pure:
            least = 1 / self.size if pair is None else float(np.min(self.laws(pair)))
            return specified_pure_samples(self.size, least, **rates, pairs=pairs)
        blind = approx_samples(self.size, epsilon, **rates, pairs=pairs)
        if self.specification is None:
            return blind
        return min(blind, specified_approx_samples(self.size, epsilon, **rates, pairs=pairs))

    def uses_laws(self, error: float, pairs: int) -> bool:
        """Whether a test compares runs with the stated laws: then it may reject these, not the claim."""
        if self.specification is None or self.pure:
            return self.specification is not None
        rates = {"proximity": self.proximity, "error": error}
        size, epsilon = self.size, self.statement.epsilon
        blind = approx_samples(size, epsilon, **rates, pairs=pairs)
        return blind > specified_approx_samples(size, epsilon, **rates, pairs=pairs)

    def decide(self, pair: Pair, table: Table, error: float, pairs: int) -> Decision:
        """What the test says of the counts of a pair."""
        epsilon, delta = self.statement.epsilon, self.statement.delta
        first, second = table.counts
        if table.strange:
            return Decision(False, math.inf, 0.0, 0.0)
        if self.pure:
            laws = self.laws(pair)
            return specified_pure_test(
                first, second, laws=laws, epsilon=epsilon, proximity=self.proximity
            )
        if not self.uses_laws(error, pairs):
            return approx_test(
                first,
                second,
                outputs=self.size,
                epsilon=epsilon,
                delta=delta,
                error=error,
                pairs=pairs,
            )
        return specified_approx_test(
            first,
            second,
            laws=self.laws(pair),
            epsilon=epsilon,
            delta=delta,
            error=error,
            pairs=pairs,
        )

    def verdict(self, kind: Kind, runs: int, *notes: str) -> Verdict:
        """A verdict whose confidence and time are filled in at the end."""
        return Verdict(
            kind, self.claim, 0.0, runs, 0.0, proximity=self.proximity, notes=(self.name, *notes)
        )


def _tester(
    claim: Claim,
    outputs: int | Sequence[Any],
    proximity: float,
    specification: Specification | None,
) -> _Tester:
    require_countable(claim.loss)
    if specification is None:
        require_verifiable(claim.loss)
    elif isinstance(outputs, int):
        raise InvalidParameter(
            "a specification needs a list of outputs, not their number; nothing was run"
        )
    match claim.loss:
        case ApproxDP(epsilon, delta) | RandomApproxDP(epsilon, delta):
            statement = EpsilonDelta(above(epsilon), above(delta))
        case PureDP(epsilon) | RandomPureDP(epsilon):
            statement = EpsilonDelta(above(epsilon), 0.0)
        case ZCDP() | GaussianDP():
            raise NotComparable(
                f"{claim.loss} is certified by none of the testers; nothing was run"
            )
        case _:
            assert_never(claim.loss)
    tester = _Tester(claim, statement, proximity, outputs, specification)
    if tester.size < 1 or not 0 < proximity < math.inf:
        raise InvalidParameter(
            f"outputs must be at least 1 and proximity above 0, got {tester.size} and {proximity}; "
            "nothing was run"
        )
    return tester


def _share(claim: Claim, gamma: float) -> float:
    """The share of random data on which a claim may fail."""
    if isinstance(claim.loss, RandomPureDP | RandomApproxDP):
        if gamma:
            raise InvalidParameter(
                f"a random claim has its own gamma, got {gamma} too; nothing was run"
            )
        return above(claim.loss.gamma)
    return gamma


def _every(
    tallies: Tallies, tester: _Tester, pairs: tuple[Pair, ...], error: float, budget: int | None
) -> Verdict:
    """All pairs at once, repeated for a majority where that is cheaper than larger samples."""
    for pair in pairs:
        if not tester.stated_private(pair):
            note = f"the stated laws themselves break the claim, for pair {pair.name!r}; nothing was run"
            return replace(tester.verdict("INCONCLUSIVE", 0, note), pairs=(pair,))
    plan = amplified(
        lambda one: max(tester.samples(one, len(pairs), pair) for pair in pairs), error
    )
    needed = 2 * plan.total * len(pairs)
    if budget is not None and needed > budget:
        return _too_few(tester, needed, budget)
    runs = accepted = 0
    rejected: list[tuple[Pair, Table, Decision]] = []
    while max(accepted, len(rejected)) <= plan.repeats // 2:
        for pair in pairs:
            table = tallies.count(pair, plan.samples)
            runs += 2 * plan.samples
            decision = tester.decide(pair, table, plan.error, len(pairs))
            if not decision.accepted:
                rejected.append((pair, table, decision))
                break
        else:
            accepted += 1
    if accepted > plan.repeats // 2:
        return replace(tester.verdict("CERTIFIED", runs, _said(plan)), pairs=pairs)
    pair, table, decision = rejected[0]
    if tester.uses_laws(plan.error, len(pairs)) or any(one.strange for _, one, _ in rejected):
        return replace(tester.verdict("INCONCLUSIVE", runs, _said(plan), OTHER_LAWS), pairs=(pair,))
    found = replace(tester.verdict("REFUTED", runs, _said(plan)), pairs=(pair,))
    if plan.repeats == 1:  # the chance of a majority is a level, of this procedure, and no p-value
        found = replace(found, evidence=("p-value", min(1.0, len(pairs) * decision.p_value)))
    return replace(found, witness=too_often(pair, table, tester.statement))


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Random pairs; the claim may fail on a share gamma of them, and is certified up to slack more."""

    draw: Callable[[], Pair]
    gamma: float
    slack: float


def _random(
    tallies: Tallies, tester: _Tester, drawn: _Drawn, error: float, budget: int | None
) -> Verdict:
    """Algorithm 3: test random pairs, and count those that are rejected."""
    plan = random_plan(
        lambda one: tester.samples(one, 1, None), gamma=drawn.gamma, slack=drawn.slack, error=error
    )
    pairs = [drawn.draw() for _ in range(plan.pairs)]
    inner = plan.inner
    sizes = [replace(inner, samples=tester.samples(inner.error, 1, pair)) for pair in pairs]
    needed = 2 * sum(size.total for size in sizes)
    if budget is not None and needed > budget:
        return _too_few(tester, needed, budget)
    runs = rejections = 0
    refuted: list[Pair] = []
    for left, pair, size in zip(range(plan.pairs - 1, -1, -1), pairs, sizes, strict=True):
        votes = 0 if tester.stated_private(pair) else size.repeats
        for _ in range(size.repeats if votes == 0 else 0):
            table = tallies.count(pair, size.samples)
            runs += 2 * size.samples
            votes += not tester.decide(pair, table, size.error, 1).accepted
        if votes > size.repeats // 2:
            rejections += 1
            refuted.append(pair)
        if rejections > plan.allowed or rejections + left <= plan.allowed:
            break
    said = (
        f"{plan.pairs} random pairs, of which {plan.allowed} may be rejected; certified up to a share of "
        f"{drawn.gamma + drawn.slack:g} of them"
    )
    if rejections <= plan.allowed:
        return tester.verdict("CERTIFIED", runs, said, _said(inner))
    if tester.specification is None:
        return replace(tester.verdict("REFUTED", runs, said, _said(inner)), pairs=tuple(refuted))
    broken = sum(not tester.stated_private(pair) for pair in refuted)
    note = STATED_BREAK if broken > plan.allowed else OTHER_LAWS
    return replace(tester.verdict("INCONCLUSIVE", runs, said, note), pairs=tuple(refuted))


def _too_few(tester: _Tester, needed: int, budget: int) -> Verdict:
    note = f"it takes {needed} runs, {budget} are allowed; nothing was run"
    return replace(tester.verdict("INCONCLUSIVE", 0, note), needed=needed)


def _said(plan: Repetition) -> str:
    often = f"the majority of {plan.repeats} tests of " if plan.repeats > 1 else ""
    return f"{often}{plan.samples} runs of each input"

"""Certify a claim for stated pairs, or for random data, up to a proximity, by the thesis' testers.

A certificate is about distance: had the claim been further off than the proximity, this audit would
have rejected it with the stated confidence. A refutation is about the claim itself: had it been
true, this audit would have accepted it with the stated confidence. Where runs are compared with
stated laws and do not fit them, that is about the laws, and the verdict is inconclusive.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from sfumato.audit.boxes.box import Box, Pair, SampleBox
from sfumato.audit.boxes.runs import as_box
from sfumato.audit.boxes.tallies import Table, Tallies, too_often
from sfumato.audit.claims import above, certified_loss, is_random, traits_of
from sfumato.audit.confidence import check_confidence
from sfumato.audit.property_testing.pair_tester import PairTester, Specification, tester_for
from sfumato.audit.property_testing.repetition import Repetition, amplified, random_plan
from sfumato.audit.property_testing.testers import Decision
from sfumato.audit.verdict import CONFIDENCE, Verdict
from sfumato.errors import InvalidParameter
from sfumato.privacy import Claim

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
    where it is too small nothing is run, and the verdict says how many are required. What a
    certificate is of is never the claim itself but what is that far from it: `Verdict.certified`.

    Args:
        box: A box, or a function of the data: one output, or so many with a parameter `runs`.
        claim: Pure or approximate, also about random data.
        proximity: In delta, or in epsilon if the claim is pure; above 0.
        outputs: All possible outputs, or how many there are.
        gamma: The share of random data on which the claim may fail; of a random claim its own.
        weight: How much of a proximity in gamma counts as one in delta.
        pairs: Of neighbors; either these or data.
        data: Draws a random pair with rng.
        specification: Gives the masses of all outputs on an input.
        rng: Draws random pairs.
        confidence: Above 1/2 and below 1.
        budget: Runs allowed; None for as many as it takes.

    Returns:
        The verdict: CERTIFIED, REFUTED or INCONCLUSIVE.

    Raises:
        Unverifiable: If no number of runs decides the claim.
        InvalidParameter: If a parameter is out of range; nothing was run.
    """
    begin, box = time.monotonic(), as_box(box)
    tester = tester_for(claim, outputs, proximity, specification)
    check_confidence(confidence, above=0.5)
    if (data is None) == (not pairs):
        raise InvalidParameter("certify takes either pairs or data; nothing was run")
    if isinstance(box, SampleBox) and budget is None:
        budget = 2 * min(len(box.first) - box.taken[0], len(box.second) - box.taken[1])
    if data is None:
        if gamma or is_random(claim):
            raise InvalidParameter(
                f"a share of random data needs data, not pairs; got {claim}; nothing was run"
            )
        kept = certified_loss(claim, proximity)
        found = _every(tester.tallies(box), tester, tuple(pairs), 1 - confidence, budget)
    else:
        if rng is None:
            raise InvalidParameter("random data needs rng, got None; nothing was run")
        share = _share(claim, gamma)
        kept = certified_loss(claim, proximity, gamma=share, slack=proximity / weight)
        drawn = _Drawn(partial(data, rng), share, proximity / weight)
        found = replace(
            _random(tester.tallies(box), tester, drawn, 1 - confidence, budget), gamma=share
        )
    certified = kept if found.kind == "CERTIFIED" else None
    return replace(
        found, confidence=confidence, seconds=time.monotonic() - begin, certified=certified
    )


def _share(claim: Claim, gamma: float) -> float:
    """The share of random data on which a claim may fail."""
    own = traits_of(claim.loss).gamma
    if own is None:
        return gamma
    if gamma:
        raise InvalidParameter(
            f"a random claim has its own gamma, got {gamma} too; nothing was run"
        )
    return above(own)


def _every(
    tallies: Tallies, tester: PairTester, pairs: tuple[Pair, ...], error: float, budget: int | None
) -> Verdict:
    """All pairs at once, repeated for a majority where that is cheaper than larger samples."""
    for pair in pairs:
        if not tester.stated_private(pair):
            note = f"the stated laws themselves break the claim, for pair {pair.name!r}; nothing was run"
            return replace(tester.verdict("INCONCLUSIVE", 0, note), pairs=(pair,))
    plan = amplified(
        lambda one: max(tester.samples(one, len(pairs), pair) for pair in pairs), error
    )
    required = 2 * plan.total * len(pairs)
    if budget is not None and required > budget:
        return _too_few(tester, required, budget)
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
        return replace(tester.verdict("CERTIFIED", runs, _repeated(plan)), pairs=pairs)
    pair, table, decision = rejected[0]
    if tester.uses_laws(plan.error, len(pairs)) or any(one.strange for _, one, _ in rejected):
        return replace(
            tester.verdict("INCONCLUSIVE", runs, _repeated(plan), OTHER_LAWS), pairs=(pair,)
        )
    found = replace(tester.verdict("REFUTED", runs, _repeated(plan)), pairs=(pair,))
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
    tallies: Tallies, tester: PairTester, drawn: _Drawn, error: float, budget: int | None
) -> Verdict:
    """Algorithm 3: test random pairs, and count those that are rejected."""
    plan = random_plan(
        lambda one: tester.samples(one, 1, None), gamma=drawn.gamma, slack=drawn.slack, error=error
    )
    pairs = [drawn.draw() for _ in range(plan.pairs)]
    inner = plan.inner
    sizes = [replace(inner, samples=tester.samples(inner.error, 1, pair)) for pair in pairs]
    required = 2 * sum(size.total for size in sizes)
    if budget is not None and required > budget:
        return _too_few(tester, required, budget)
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
        return tester.verdict("CERTIFIED", runs, said, _repeated(inner))
    if tester.specification is None:
        return replace(
            tester.verdict("REFUTED", runs, said, _repeated(inner)), pairs=tuple(refuted)
        )
    broken = sum(not tester.stated_private(pair) for pair in refuted)
    note = STATED_BREAK if broken > plan.allowed else OTHER_LAWS
    return replace(tester.verdict("INCONCLUSIVE", runs, said, note), pairs=tuple(refuted))


def _too_few(tester: PairTester, required: int, budget: int) -> Verdict:
    note = f"it takes {required} runs, {budget} are allowed; nothing was run"
    return replace(tester.verdict("INCONCLUSIVE", 0, note), required_runs=required)


def _repeated(plan: Repetition) -> str:
    often = f"the majority of {plan.repeats} tests of " if plan.repeats > 1 else ""
    return f"{often}{plan.samples} runs of each input"

"""Whole audits as a user means them: audit a claim, replay a verdict, plan a certificate.

Every face (command line, notebook, tests) calls these functions and nothing deeper. What they return is
final: nobody revises a verdict afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.audit.boxes.box import Box, Pair, SampleBox
from sfumato.audit.boxes.given import FILES, as_inputs
from sfumato.audit.boxes.pairs import Inputs, require_relation
from sfumato.audit.boxes.targets import (
    Mechanism,
    as_mechanism,
    careful,
    load_function,
    prepared,
    runs_made,
)
from sfumato.audit.claims import MAX_EPSILON, as_claim, is_random, traits_of
from sfumato.audit.codec import read_verdict
from sfumato.audit.confidence import check_confidence
from sfumato.audit.estimates import (
    Pace,
    Watch,
    speed,
    tell,
    with_band,
    with_bound,
    worst_pair,
)
from sfumato.audit.replay import enough_runs, replay
from sfumato.audit.results import AuditPlan, AuditResult, ReplayResult
from sfumato.audit.sequential.budget import MAX_RUNS, Budget
from sfumato.audit.sequential.refutation import refute
from sfumato.audit.verdict import CONFIDENCE, Verdict
from sfumato.errors import InvalidInput, InvalidParameter, NotComparable, Unverifiable
from sfumato.privacy import ApproxDP, Claim

CUT_SHORT = "interrupted after the bet: what follows it was not run to its end"
PLAN_DELTA, PLAN_EPSILON = 0.01, 0.1
"""Proximities of a plan that is asked for none: in delta, and of pure claims with stated laws in epsilon."""


@dataclass(frozen=True, slots=True)
class CertificateOptions:
    """What to certify.

    Attributes:
        proximity: How far off the claim may be: in delta, or in epsilon if it is pure, and in gamma if
            it has one. Above 0.
        outputs: All possible outputs, or how many there are.
        specification: A function, or `module:function`, that gives the masses of all outputs on an
            input; with it fewer runs do, and pure claims can be certified.
        data: A function, or `module:function`, that draws a random pair of neighbors with a NumPy
            generator: for claims about random data, in place of inputs.
        weight: How much of a proximity in gamma counts as one in delta.
    """

    proximity: float
    outputs: int | Sequence[Any]
    specification: Callable[..., Any] | str | None = None
    data: Callable[..., Any] | str | None = None
    weight: float = 1.0


def audit_claim(
    mechanism: Mechanism,
    claim: Claim | str,
    *,
    inputs: Inputs | Sequence[Pair | tuple[Any, Any]] | str | Path | None = None,
    confidence: float = CONFIDENCE,
    budget: Budget | str | int = Budget(),  # noqa: B008  (frozen)
    bound: bool = False,
    band: bool = False,
    certify: CertificateOptions | None = None,
    round_bits: int | None = None,
    rng: np.random.Generator | None = None,
    watch: Watch | None = None,
) -> AuditResult:
    """Audit a privacy claim by running the mechanism as a black box: try to refute it, or certify it.

    It bets against the claim, run by run, stops as soon as the claim is caught, and confirms that on
    fresh runs. A claim that is true is refuted with a chance of at most 1 - confidence, over all pairs,
    directions and looks; one that is not refuted need not be true. Nothing inside the mechanism is
    looked at, and only the inputs given are used.

    Args:
        mechanism: A function of the data, which gives one output, or so many with a parameter `runs`
            (or `n`, `size`); the name of one, `module:function`; a shell command with {data} in it; two
            samples of outputs, as arrays, lists or files; or anything with `name` and `run(data, runs)`.
        claim: As `Claim(PureDP(1), AddRemoveUser())`, or in words, `epsilon=1,delta=1e-6`.
        inputs: On which neighbors to run it: a form of data such as `"numbers"`, `"queries:10"`,
            `"histogram:5"` or `"list:20"`; pairs `[(first, second), ...]`; or a .json file of pairs. Two
            samples have none, nor has a certificate of random data.
        confidence: Between 0 and 1; of a certificate above 1/2.
        budget: Runs and time of the bet, as a `Budget`, in words, `"60s,200000"`, or a number of
            runs; fresh runs that confirm it take no more again, nor do the bound and the band
            together.
        bound: Also a lower bound of epsilon, on the worst pair.
        band: Also delta at several epsilons, on the worst pair.
        certify: Certify the claim up to a proximity instead of refuting it.
        round_bits: Round outputs to multiples of 2**-round_bits first, to look past leaks of low bits.
        rng: Draws random pairs; needed for `certify.data` only.
        watch: Is told what begins, and how the bet stands.

    Returns:
        The result; its verdict is final.

    Raises:
        InvalidParameter: If what is asked for cannot be audited; nothing was run.
        InvalidInput: If the mechanism fails, or its runs are seen not to be independent.
        Unverifiable: If no number of runs can certify the claim.

    >>> from sfumato.audit.catalogue import half_noise
    >>> audit_claim(half_noise, "epsilon=1", inputs="numbers", budget="20000").kind
    'REFUTED'
    """
    claim = as_claim(claim)
    limit = budget if isinstance(budget, Budget) else Budget.parse(str(budget))
    if certify is None and is_random(claim):
        raise InvalidParameter(
            "a claim with gamma is about random data: no pair refutes it; give certify and data; "
            "nothing was run"
        )
    box = prepared(as_mechanism(mechanism), round_bits)
    pairs = _pairs(box, inputs, certify)
    require_relation(pairs, claim)
    if certify is not None:
        tell(watch, f"testing {box.name}")
        verdict = _certified(box, claim, pairs, limit, certify, confidence, rng)
        return AuditResult(verdict, box.name, total_runs=max(runs_made(box), verdict.runs))
    tell(watch, f"betting against the claim about {box.name}")
    limit_of_bet = limit
    if isinstance(box, SampleBox):
        held = 2 * min(len(box.first), len(box.second))
        limit_of_bet = replace(limit, runs=min(limit.runs, held))
    verdict = refute(
        box, claim, pairs=pairs, confidence=confidence, budget=limit_of_bet, watch=watch
    )
    result = AuditResult(verdict, box.name)
    try:
        if verdict.kind != "INCONCLUSIVE":
            pace = Pace(box, limit, time.monotonic())
            pair = worst_pair(verdict, pairs)
            if bound:
                result = with_bound(result, pace, pair, parts=1 + band, watch=watch)
            if band:
                result = with_band(result, pace, pair, watch=watch)
    except KeyboardInterrupt:  # the bet is over, and its verdict is worth having
        notes = (*verdict.notes, CUT_SHORT)
        result = replace(result, verdict=replace(verdict, notes=notes))
    return replace(result, total_runs=max(runs_made(box), verdict.runs))


def replay_verdict(
    verdict: AuditResult | str | Path,
    mechanism: Mechanism,
    *,
    runs: int | None = None,
    confidence: float = CONFIDENCE,
    round_bits: int | None = None,
    watch: Watch | None = None,
) -> ReplayResult:
    """Run the witness of a verdict again: same inputs, same event, fresh runs, one exact test.

    Nothing that a file names is run: the mechanism is given again.

    Args:
        verdict: A result of `audit_claim`, or a file of one.
        mechanism: As in `audit_claim`.
        runs: Of either input, at most 10,000,000; if None, as many as show the witness again at this
            confidence, all but once in a thousand times.
        confidence: Between 0 and 1.
        round_bits: As in `audit_claim`.
        watch: Is told what begins.

    Returns:
        Counts and the exact test.

    Raises:
        InvalidInput: If the verdict has no witness, or one in words only, or if the samples given are
            those of the verdict.
        InvalidParameter: If runs or confidence are out of range.

    >>> from sfumato.audit.catalogue import half_noise
    >>> found = audit_claim(half_noise, "epsilon=1", inputs="numbers", budget="20000")
    >>> replay_verdict(found, half_noise).refuted
    True
    """
    name = "the verdict" if isinstance(verdict, AuditResult) else str(verdict)
    saved = verdict if isinstance(verdict, AuditResult) else read_verdict(verdict)
    witness = saved.witness
    if witness is None:
        raise InvalidInput(f"{name} is {saved.kind} and has no witness; nothing was run")
    if not saved.can_replay:
        raise InvalidInput(
            f"the event of {name} was saved in words only and cannot be tested again; nothing was run"
        )
    check_confidence(confidence)
    box = prepared(as_mechanism(mechanism), round_bits)
    if isinstance(box, SampleBox) and box.name == saved.target:
        raise InvalidInput(
            f"fresh runs are needed, got {box.name}, the files that the verdict is of; nothing was tested"
        )
    if box.name != saved.target:
        tell(watch, f"the verdict is of {saved.target}, this runs {box.name}")
    if runs is None:
        seen = saved.verdict.confirmed if witness is saved.verdict.witness else None
        runs = enough_runs(witness, seen, level=1 - confidence)
        runs = min(runs, len(box.first), len(box.second)) if isinstance(box, SampleBox) else runs
    tell(watch, f"running {box.name} {runs:,} times on either input")
    again = replay(witness, box, runs=runs, level=1 - confidence)
    return ReplayResult(
        again, replace(witness, hits=again.hits, runs=(runs, runs)), box.name, saved.target
    )


def plan_audit(
    claim: Claim | str,
    *,
    outputs: int = 2,
    proximity: float | None = None,
    min_mass: float | None = None,
    weight: float = 1.0,
    confidence: float = CONFIDENCE,
) -> AuditPlan:
    """How many runs verify a claim, whatever the test, and how many do with ours; or why none do.

    Args:
        claim: As in `audit_claim`.
        outputs: How many outputs the mechanism has, at least 2.
        proximity: How far off the claim may be and still be accepted: in delta, 0.01 if None; in
            epsilon of a pure claim with stated laws, 0.1 if None.
        min_mass: The least mass that stated laws give an output; None if no laws are stated.
        weight: How much of a proximity in gamma counts as one in delta.
        confidence: Above 1/2 and below 1.

    Returns:
        The plan; nothing is run.

    Raises:
        InvalidParameter: If a number is out of range.

    >>> plan_audit("epsilon=1,delta=0.01", outputs=16, proximity=0.05).total_runs
    173300
    """
    from sfumato.audit.property_testing import limits

    claim = as_claim(claim)
    check_confidence(confidence, above=0.5)
    traits = traits_of(claim.loss)
    if proximity is None:
        stated = traits.pure and min_mass is not None
        proximity = PLAN_EPSILON if stated else PLAN_DELTA
    plan = AuditPlan(claim, outputs, proximity, confidence, weight, min_mass)
    asked: dict[str, Any] = {"outputs": outputs, "weight": weight, "error": 1 - confidence}
    try:
        if min_mass is None:
            required = limits.queries_without_information(claim.loss, proximity=proximity, **asked)
        else:
            required = limits.queries_with_specification(
                claim.loss, proximity=proximity, min_mass=min_mass, **asked
            )
    except (Unverifiable, NotComparable) as problem:
        why = str(problem).removesuffix("; nothing was run")
        return replace(plan, unverifiable=why, instead_runs=_instead_runs(claim, asked))
    blind = _distinguishing_runs(claim, proximity, 1 - confidence)
    return replace(
        plan,
        min_runs=max(required.min_runs, blind),
        enough_runs=required.enough_runs,
        pairs=required.pairs,
        reasons=required.reasons,
    )


def _pairs(box: Box, inputs: object, certify: CertificateOptions | None) -> Sequence[Pair] | Inputs:
    if isinstance(box, SampleBox):
        if inputs is not None:
            raise InvalidParameter(
                "samples are of one pair already, without other inputs; nothing was run"
            )
        return [Pair(0, 1, FILES)]
    if certify is not None and certify.data is not None:
        return []
    return as_inputs(inputs)


def _certified(
    box: Box,
    claim: Claim,
    inputs: Sequence[Pair] | Inputs,
    budget: Budget,
    options: CertificateOptions,
    confidence: float,
    rng: np.random.Generator | None,
) -> Verdict:
    """What the testers say, unless the time is too short to begin."""
    from sfumato.audit.property_testing.certificate import certify

    data = None if options.data is None else _source(options.data)
    if data is not None and rng is None:
        raise InvalidParameter("random data needs rng, got None; nothing was run")
    pairs = inputs if isinstance(inputs, Sequence) else inputs.patterns()

    def asked(runs: int | None) -> Verdict:
        return certify(
            box,
            claim,
            proximity=options.proximity,
            outputs=options.outputs,
            pairs=() if data is not None else pairs,
            data=data,
            specification=_function(options.specification),
            rng=rng,
            confidence=confidence,
            weight=options.weight,
            budget=runs,
        )

    runs = None if budget.runs == MAX_RUNS else budget.runs
    if budget.seconds is None or isinstance(box, SampleBox):
        return asked(runs)
    planned = asked(0)
    if planned.required_runs is None or (runs is not None and planned.required_runs > runs):
        return planned if planned.required_runs is None else asked(runs)
    first = pairs[0] if data is None or rng is None else data(rng)
    timely = int(budget.seconds * speed(box, first.first, planned.required_runs))
    if planned.required_runs <= timely:
        return asked(runs)
    note = f"at the speed of a few runs, {budget.seconds:g} s are enough for {timely:,}"
    return replace(
        planned, notes=(f"it takes {planned.required_runs:,} runs; {note}; it was not begun",)
    )


def _function(given: Callable[..., Any] | str | None) -> Callable[..., Any] | None:
    return careful(load_function(given), given) if isinstance(given, str) else given


def _source(given: Callable[..., Any] | str) -> Callable[[Any], Pair]:
    """A function that draws pairs, whether it returns pairs or tuples."""
    name = given if isinstance(given, str) else getattr(given, "__qualname__", repr(given))
    draw = _function(given)

    def drawn(rng: Any, /) -> Pair:
        found = draw(rng) if draw is not None else None
        if isinstance(found, Pair):
            return found
        if isinstance(found, tuple) and len(found) == 2:
            return Pair(*found, "drawn")
        raise InvalidInput(
            f"{name} must return two inputs, got {type(found).__name__}; nothing was run"
        )

    return drawn


def _distinguishing_runs(claim: Claim, proximity: float, error: float) -> int:
    """Verifying is as hard as distinguishing: with fewer runs nobody breaks what is that far off."""
    from sfumato.audit.property_testing.limits import distinguishing_bound

    traits = traits_of(claim.loss)
    if traits.pure or traits.tested is None or not 0 < traits.tested.delta + proximity < 1:
        return 1
    stated = traits.tested
    return distinguishing_bound(stated.epsilon, stated.delta, proximity=proximity, error=error)


def _instead_runs(claim: Claim, asked: dict[str, Any]) -> int | None:
    """Runs that certify the epsilon of a pure claim with a small delta."""
    from sfumato.audit.property_testing.limits import queries_without_information

    traits = traits_of(claim.loss)
    if not traits.pure or traits.gamma is not None or traits.tested is None:
        return None
    if traits.tested.epsilon > MAX_EPSILON:
        return None
    weaker = ApproxDP(traits.tested.epsilon, 0)
    return queries_without_information(weaker, proximity=PLAN_DELTA, **asked).total

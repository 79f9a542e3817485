"""A privacy claim as an assertion in anybody's tests, with the rate of false alarms as a parameter."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Sequence
from typing import Any

from sfumato.audit.boxes.box import Box, Pair
from sfumato.audit.boxes.pairs import Inputs
from sfumato.audit.boxes.runs import as_box
from sfumato.audit.sequential.budget import Budget
from sfumato.audit.sequential.refutation import refute
from sfumato.audit.verdict import Verdict, Witness
from sfumato.errors import InvalidParameter, SfumatoError
from sfumato.privacy import ZCDP, AddRemoveUser, ApproxDP, Claim, GaussianDP, Neighbors, PureDP
from sfumato.privacy.accounting import Number

FLAKE = 1e-6
RUNS = 20_000

Given = Sequence[Pair | tuple[Any, Any]] | Inputs


def assert_private(
    function: Callable[..., Any] | Box,
    *,
    epsilon: Number | None = None,
    delta: Number = 0,
    rho: Number | None = None,
    mu: Number | None = None,
    pairs: Given,
    flake: float = FLAKE,
    runs: int = RUNS,
    seconds: float | None = None,
    neighbors: Neighbors | None = None,
) -> Verdict:
    """Fail where a function is seen not to be (epsilon, delta)-private, a private one at most at rate flake.

    Or not rho-zCDP, or not mu-Gaussian private: exactly one of epsilon, rho and mu is given.
    `function(data)` gives one output, `function(data, runs)` many. It is run on both inputs of
    every pair given, or of the pairs of a form (`Queries(10)`, `Histograms(5)`, ...), `runs` times
    in all, and less where it is caught; what is caught is confirmed on fresh runs, at most as many
    again (`refute`). Passing does not prove it private: the verdict says what would have been
    caught. A test with so few runs that nothing could be, or of outputs that are all the same, is
    itself a failure.

    Args:
        function: A box, or a function of the data: one output, or so many with a parameter `runs`.
        epsilon: What is claimed; exactly one of epsilon, rho and mu is given.
        delta: Goes with epsilon; from 0 to below 1.
        rho: Of zCDP.
        mu: Of Gaussian DP.
        pairs: Pairs of neighbors `[(first, second), ...]`, or a form such as `Queries(10)`.
        flake: How often the test may fail although the function is private; above 0.
        runs: Of both inputs, over all pairs.
        seconds: At most; None for as long as it takes.
        neighbors: Between which data sets; if None, one user added or removed.

    Returns:
        The verdict, which is NOT_REFUTED.

    Raises:
        AssertionError: If the claim is refuted, or nothing was tested.
        InvalidParameter: If a parameter is out of range; nothing was run.

    >>> from sfumato.audit.catalogue import laplace
    >>> assert_private(laplace, epsilon=1, pairs=[(0, 1)], runs=4000).kind
    'NOT_REFUTED'
    """
    __tracebackhide__ = True
    claim = Claim(
        _loss(epsilon, delta, rho, mu), AddRemoveUser() if neighbors is None else neighbors
    )
    return assert_claim(function, claim, pairs=pairs, flake=flake, runs=runs, seconds=seconds)


def assert_claim(
    function: Callable[..., Any] | Box,
    claim: Claim,
    *,
    pairs: Given,
    flake: float = FLAKE,
    runs: int = RUNS,
    seconds: float | None = None,
) -> Verdict:
    """`assert_private` for a claim of any kind: zCDP, Gaussian DP, or what a release states of itself.

    Args:
        function: A box, or a function of the data: one output, or so many with a parameter `runs`.
        claim: Of any kind but about random data.
        pairs: Pairs of neighbors `[(first, second), ...]`, or a form such as `Queries(10)`.
        flake: How often the test may fail although the claim is true; above 0.
        runs: Of both inputs, over all pairs.
        seconds: At most; None for as long as it takes.

    Returns:
        The verdict, which is NOT_REFUTED.

    Raises:
        AssertionError: If the claim is refuted, or nothing was tested.
        InvalidParameter: If a parameter is out of range; nothing was run.
    """
    __tracebackhide__ = True
    if not 0 < flake < 1:
        raise InvalidParameter(f"flake must be between 0 and 1, got {flake}; nothing was run")
    if 1 - flake == 1:
        raise InvalidParameter(
            f"flake must be at least 1.2e-16, as 1 - flake is 1, got {flake}; nothing was run"
        )
    box = as_box(function)
    try:
        verdict = refute(
            box, claim, pairs=pairs, confidence=1 - flake, budget=Budget(runs, seconds)
        )
    except SfumatoError as problem:
        # Of a test that fails its own line is to be seen, and what the function raised; not how it
        # was run.
        raise problem.with_traceback(None) from None
    match verdict.kind:
        case "REFUTED":
            raise AssertionError(_refuted(box, verdict, flake))
        case "INCONCLUSIVE":
            raise AssertionError(_inconclusive(box, verdict, flake))
        case _:
            return verdict


def _loss(
    epsilon: Number | None, delta: Number, rho: Number | None, mu: Number | None
) -> PureDP | ApproxDP | ZCDP | GaussianDP:
    given = {"epsilon": epsilon, "rho": rho, "mu": mu}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise InvalidParameter(
            f"exactly one of epsilon, rho and mu must be given, got {' and '.join(named) or 'none'}; "
            "nothing was run"
        )
    if epsilon is not None:
        return ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
    if delta:
        raise InvalidParameter(
            f"delta goes with epsilon only, got {delta} with {named[0]}; nothing was run"
        )
    return GaussianDP(mu) if mu is not None else ZCDP(rho or 0)


def _refuted(box: Box, verdict: Verdict, flake: float) -> str:
    seen = "" if verdict.witness is None else f"{_seen(verdict.witness)} "
    value = (
        "" if verdict.evidence is None else f" ({verdict.evidence[0]} {verdict.evidence[1]:.3g})"
    )
    return (
        f"{box.name} does not keep {verdict.claim.loss} ({verdict.claim.neighbors}). {seen}"
        f"It took {verdict.runs} runs{value}; what keeps its claim fails so at a rate of at most {flake:g}."
        f"{''.join(f' Note: {note}.' for note in verdict.notes)}"
    )


def _seen(witness: Witness) -> str:
    """What was counted and what the claim allows, as sentences."""
    pair, stated = witness.pair, witness.statement
    more, less = (
        hits / max(1, runs) for hits, runs in zip(witness.hits, witness.runs, strict=True)
    )
    allowed = min(1.0, math.exp(min(stated.epsilon, 600.0)) * less + stated.delta)
    plus = f" + {stated.delta:g}" if stated.delta else ""
    return (
        f"On the pair {pair.name!r}, {reprlib.repr(pair.first)} and {reprlib.repr(pair.second)}, the event "
        f"{{{witness.event.words}}} came in {witness.hits[0]} of {witness.runs[0]} runs of the first and in "
        f"{witness.hits[1]} of {witness.runs[1]} of the second: {more:.3g} where "
        f"e**{stated.epsilon:.4g} * {less:.3g}{plus} = {allowed:.3g} is allowed."
    )


def _inconclusive(box: Box, verdict: Verdict, flake: float) -> str:
    if verdict.required_runs is None or verdict.witness is not None:
        more = (
            ""
            if verdict.required_runs is None
            else f"; allow at least {verdict.required_runs} runs"
        )
        return (
            f"{box.name} was not tested: {'; '.join(verdict.notes)} ({verdict.claim.loss}){more}."
        )
    return (
        f"{verdict.runs} runs of {box.name} are too few: with a flake rate of {flake:g} they could have "
        "missed even an output that one input always gives and the other never does, which "
        f"{verdict.claim.loss} forbids; allow at least {verdict.required_runs} more runs, or a larger flake "
        "rate."
    )

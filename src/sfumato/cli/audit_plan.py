"""`sfumato audit plan`: how many runs it takes to verify a claim, or that none do, before anyone starts."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.audit_options import ClaimOption, Relation, WeightOption, claim_of
from sfumato.cli.audit_words import LIMITS
from sfumato.cli.console import Json, no_verdict_by_accident, sentences, show
from sfumato.errors import InvalidParameter, NotComparable, Unverifiable

if TYPE_CHECKING:
    from sfumato.audit.property_testing import RunsNeeded
    from sfumato.privacy import Claim

IN_DELTA, IN_EPSILON = 0.01, 0.1
# More runs than a machine makes in a year, a hundred thousand each second.
NOBODY_RUNS = 10**12
INPUTS = "--inputs FORM"


@no_verdict_by_accident
@sentences
def plan(
    claim: ClaimOption,
    outputs: Annotated[int, typer.Option(help="How many outputs the mechanism has.", min=2)] = 2,
    proximity: Annotated[
        float | None,
        typer.Option(
            help="How far off a claim may be and still be accepted: in delta, 0.01 if not given; in epsilon "
            "if it is pure, 0.1.",
            show_default=False,
        ),
    ] = None,
    specification: Annotated[
        float | None,
        typer.Option(
            help="The laws of all outputs are stated, truly or not; the least stated mass of one of them.",
            show_default=False,
        ),
    ] = None,
    weight: WeightOption = 1.0,
    confidence: Annotated[float, typer.Option(help="With what confidence, above 1/2.")] = 0.99,
    json: Json = False,
) -> None:
    """How many runs decide a claim, whatever the test, and how many do with ours; or why none do.

    Nothing is run.
    """
    from sfumato.audit import Budget

    claimed = claim_of(claim, Relation.added)
    if not 1 / 2 < confidence < 1:
        raise InvalidParameter(
            f"confidence must be above 1/2 and below 1, got {confidence}; nothing was run"
        )
    asked: dict[str, Any] = {"outputs": outputs, "weight": weight, "error": 1 - confidence}
    if specification is not None:
        asked["least_mass"] = specification
    near = _near(claimed, specification) if proximity is None else proximity
    result: dict[str, Any] = {"claim": str(claimed.loss), "outputs": outputs, "proximity": near}
    try:
        found = _queries(claimed, near, asked)
    except (Unverifiable, NotComparable) as problem:
        why = str(problem).removesuffix("; nothing was run")
        lines = [
            f"cannot be verified: {why}",
            *_instead(claimed, asked),
            *_refuting(claimed, claim),
        ]
        show(
            {**result, "verifiable": False, "why": why, "said": lines}, "\n".join(lines), json=json
        )
        return
    blind = _distinguishing(claimed, near, 1 - confidence)
    least = max(found.least, blind)
    certifying = _certifying(outputs, near, confidence, weight, stated=specification is not None)
    if found.total > Budget().runs:  # what `audit run` allows if none is given
        certifying += f" --budget {found.total}"
    lines = [
        f"{claimed.loss}, decided up to {near:g} with confidence {confidence:.3g}, {outputs:,} outputs:",
        f"  no test does with fewer than {_many(least)} runs of each input",
        f"  enough are {_many(found.enough)} runs of each input of a pair"
        + (f", on {found.pairs:,} random pairs" if found.pairs > 1 else "")
        + f": {_many(found.total)} runs in all",
        *(f"  ({reason})" for reason in found.reasons),
        LIMITS,
        f"to do it: sfumato audit run MODULE:FUNCTION --claim {shlex.quote(claim)} {certifying} "
        f"{_data(claimed)}"
        if found.total <= NOBODY_RUNS
        else "nobody makes so many runs: it cannot be verified in practice",
        *_refuting(claimed, claim),
    ]
    numbers = {"least": least, "enough": found.enough, "pairs": found.pairs, "total": found.total}
    show(
        {**result, "verifiable": True, **numbers, "reasons": list(found.reasons), "said": lines},
        "\n".join(lines),
        json=json,
    )


def _near(claim: Claim, specification: float | None) -> float:
    from sfumato.privacy import PureDP, RandomPureDP

    pure = isinstance(claim.loss, PureDP | RandomPureDP)
    return IN_EPSILON if pure and specification is not None else IN_DELTA


def _queries(claim: Claim, proximity: float, asked: dict[str, Any]) -> RunsNeeded:
    from sfumato.audit.property_testing import (
        queries_with_specification,
        queries_without_information,
    )

    count = queries_with_specification if "least_mass" in asked else queries_without_information
    return count(claim.loss, proximity=proximity, **asked)


def _distinguishing(claim: Claim, proximity: float, error: float) -> int:
    """Verifying is as hard as distinguishing: runs with fewer of which nobody breaks what is that far off."""
    from sfumato.audit import above
    from sfumato.audit.property_testing import distinguishing_bound
    from sfumato.privacy import ApproxDP, RandomApproxDP

    match claim.loss:
        case ApproxDP(epsilon, delta) | RandomApproxDP(epsilon, delta) if 0 < delta + proximity < 1:
            return distinguishing_bound(
                above(epsilon), above(delta), proximity=proximity, error=error
            )
        case _:
            return 1


def _instead(claim: Claim, asked: dict[str, Any]) -> list[str]:
    """What can be verified in place of a pure claim."""
    from sfumato.audit.property_testing import queries_without_information
    from sfumato.audit.sequential import MOST_EPSILON
    from sfumato.privacy import ApproxDP, PureDP

    if not isinstance(claim.loss, PureDP) or claim.loss.epsilon > MOST_EPSILON:
        return []
    rest = {name: value for name, value in asked.items() if name != "least_mass"}
    weaker = queries_without_information(
        ApproxDP(claim.loss.epsilon, 0), proximity=IN_DELTA, **rest
    )
    return [
        f"what can be certified is less: {claim.loss}, delta 0 up to a delta of {IN_DELTA:g}, with "
        f"{weaker.total:,} runs"
    ]


def _certifying(
    outputs: int, near: float, confidence: float, weight: float, *, stated: bool
) -> str:
    """The options that ask for what was planned; words in capitals are to be filled in."""
    from sfumato.audit.property_testing import CONFIDENCE

    words = f"--certify --proximity {near:g} --outputs " + (
        "'[ALL, OF, THEM]' --specification MODULE:FUNCTION" if stated else f"{outputs}"
    )
    if confidence != CONFIDENCE:
        words += f" --confidence {confidence:g}"
    return words if weight == 1 else f"{words} --weight {weight:g}"


def _many(runs: int) -> str:
    """A number of runs, whole while somebody could make them."""
    return f"{runs:,}" if runs <= NOBODY_RUNS else f"about {runs:.0e}"


def _refuting(claim: Claim, text: str) -> list[str]:
    """The command that tries to refute a claim; no runs refute one about random data."""
    from sfumato.audit.sequential import MOST_EPSILON

    if _data(claim) != INPUTS or getattr(claim.loss, "epsilon", 0) > MOST_EPSILON:
        return []
    return [
        f"to try to refute it: sfumato audit run MODULE:FUNCTION --claim {shlex.quote(text)} {INPUTS}",
        "(FORM is numbers, queries:10, histogram:5 or list:20; --pair '[A, B]' gives inputs of your own)",
    ]


def _data(claim: Claim) -> str:
    from sfumato.privacy import RandomApproxDP, RandomPureDP

    return (
        "--data MODULE:FUNCTION"
        if isinstance(claim.loss, RandomPureDP | RandomApproxDP)
        else INPUTS
    )

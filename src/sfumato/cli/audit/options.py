"""Options of `sfumato audit`, and the typed values that they state."""

from __future__ import annotations

import json
import shlex
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    from sfumato.audit import AuditPlan, Box, CertificateOptions, Inputs, Pair
    from sfumato.privacy import Claim

Samples = tuple[Path, Path]


class Relation(StrEnum):
    """Between which data sets a claim is made."""

    added = "added"
    replaced = "replaced"


ClaimOption = Annotated[
    str,
    typer.Option(
        help="What is claimed: epsilon=1 or epsilon=1,delta=1e-6; rho=0.5 (zCDP); mu=1 (Gaussian DP); with "
        "gamma=0.05, except on so large a share of random data.",
        show_default=False,
    ),
]
RelationOption = Annotated[
    Relation,
    typer.Option(help="Neighbors: one user added or removed, or one user's data replaced."),
]
TargetArgument = Annotated[
    str,
    typer.Argument(
        help="module:function; the current folder is looked in. Given `runs` (or `n`, `size`), the function "
        "returns so many outputs.",
        show_default=False,
    ),
]
CommandOption = Annotated[
    str,
    typer.Option(
        help="Instead: a program that prints one output, e.g. 'prog {data}'.", show_default=False
    ),
]
SamplesOption = Annotated[
    tuple[Path, Path] | None,
    typer.Option(
        help="Instead: outputs on two neighbors, two files with one output a line.",
        show_default=False,
    ),
]
WeightOption = Annotated[
    float, typer.Option(help="With gamma: how much of a proximity in gamma counts as one in delta.")
]
RoundOption = Annotated[
    int | None,
    typer.Option(
        "--round",
        help="Round outputs to multiples of 2**-BITS first, to look past leaks of low bits.",
        metavar="BITS",
        min=-60,
        max=60,
        show_default=False,
    ),
]
OutputsOption = Annotated[
    str,
    typer.Option(help="How many outputs there are; or all of them, as JSON.", show_default=False),
]
InputsOption = Annotated[
    str,
    typer.Option(
        help="Form of the data, whose usual neighbors are tried and varied: numbers, queries:10, "
        "histogram:5, list:20; the last two also as histogram-replace, list-replace.",
        show_default=False,
    ),
]
PairOption = Annotated[
    list[str] | None,
    typer.Option(help="Two neighbors, as a JSON list: '[0, 1]'.", show_default=False),
]
PairsOption = Annotated[
    Path | None, typer.Option(help="A .json file with a list of pairs.", show_default=False)
]
BudgetOption = Annotated[
    str,
    typer.Option(
        help="How long the bet takes at most: 60s, 200000 (runs), or both; fresh runs that confirm it "
        "take no longer again, nor does what follows."
    ),
]
BandOption = Annotated[
    bool | None,
    typer.Option(
        "--band/--no-band",
        help="Also delta at every epsilon; in a report anyway, except of a --command.",
    ),
]
ProximityOption = Annotated[
    float | None,
    typer.Option(
        help="How far off a claim may be: in delta, or epsilon if it is pure, and in gamma if it has one."
    ),
]
SpecificationOption = Annotated[
    str,
    typer.Option(
        help="module:function that states the masses of --outputs on an input.",
        show_default=False,
    ),
]
DataOption = Annotated[
    str,
    typer.Option(
        help="module:function that draws a random pair of neighbors with a NumPy generator.",
        show_default=False,
    ),
]
PlanProximityOption = Annotated[
    float | None,
    typer.Option(
        help="How far off a claim may be and still be accepted: in delta, 0.01 if not given; in epsilon "
        "if it is pure, 0.1.",
        show_default=False,
    ),
]
MinMassOption = Annotated[
    float | None,
    typer.Option(
        "--specification",
        help="The laws of all outputs are stated, truly or not; the least stated mass of one of them.",
        show_default=False,
    ),
]
RunsOption = Annotated[
    int | None,
    typer.Option(
        help="Runs of either input; if not given, as many as show the witness again at this confidence, "
        "all but once in a thousand times.",
        min=1,
        max=10_000_000,
    ),
]


def claim_of(text: str, relation: Relation = Relation.added) -> Claim:
    """The claim that a text states."""
    from sfumato.audit import parse_claim
    from sfumato.privacy import AddRemoveUser, ReplaceUser

    return parse_claim(text, AddRemoveUser() if relation is Relation.added else ReplaceUser())


def mechanism_of(target: str, command: str, samples: Samples | None) -> Box:
    """What is to be run."""
    from sfumato.audit.boxes import command_box, sample_box, target_box

    if sum(map(bool, (target, command, samples))) != 1:
        raise InvalidParameter(
            "an audit is of a module:function, of a --command or of --samples, and of one of them; "
            "nothing was run"
        )
    if samples is not None:
        return sample_box(*samples)
    return command_box(command) if command else target_box(target)


def inputs_of(
    inputs: str, pair: list[str], pairs: Path | None, *, samples: bool, data: bool
) -> Inputs | list[Pair] | None:
    """The inputs that are given, in exactly one way; none with samples or with random data."""
    from sfumato.audit.boxes import inputs_of as form_of
    from sfumato.audit.boxes import parse_pair, read_pairs

    if samples and (inputs or pair or pairs):
        raise InvalidParameter("--samples are of one pair already, without others; nothing was run")
    if samples or data:
        return None
    if sum(map(bool, (inputs, pair, pairs))) != 1:
        raise InvalidParameter(
            "say on which neighbors to run it: --inputs numbers, queries:10, histogram:5 or list:20 for a "
            "form of data, --pair '[A, B]', or --pairs FILE, and one of them; inputs that are no neighbors "
            "would refute a true claim, so none are guessed; nothing was run"
        )
    if pairs is not None:
        return read_pairs(pairs)
    if inputs:
        return form_of(inputs)
    return [parse_pair(text, number) for number, text in enumerate(pair, 1)]


def certificate_of(
    claim: Claim,
    *,
    certify: bool,
    proximity: float | None,
    outputs: str,
    specification: str,
    data: str,
    weight: float,
) -> CertificateOptions | None:
    """What is to be certified, if anything; options that do not go together are refused."""
    from sfumato.audit import CertificateOptions, is_random

    if not certify and is_random(claim):
        raise InvalidParameter(
            "a claim with gamma is about random data: no pair refutes it; give --certify and --data; "
            "nothing was run"
        )
    if certify and (proximity is None or not outputs):
        raise InvalidParameter(
            "--certify needs --proximity, how far off the claim may be, and --outputs, how many there "
            "are; nothing was run"
        )
    if not certify and (proximity is not None or outputs or specification or data):
        raise InvalidParameter(
            "--proximity, --outputs, --specification and --data go with --certify; nothing was run"
        )
    if weight != 1 and not data:
        raise InvalidParameter(
            f"--weight is of a gamma, and goes with --data, got {weight:g}; nothing was run"
        )
    if proximity is None:
        return None
    return CertificateOptions(
        proximity, _outputs(outputs), specification or None, data or None, weight
    )


def plan_commands(plan: AuditPlan, claim: str) -> list[str]:
    """The commands that do what was planned, or try to refute the claim; capitals are to be filled in."""
    from sfumato.audit import CONFIDENCE, Budget, is_random
    from sfumato.audit.render import MANY_RUNS

    begin, lines = f"sfumato audit run MODULE:FUNCTION --claim {shlex.quote(claim)}", []
    if plan.verifiable and plan.total_runs <= MANY_RUNS:
        stated = "'[ALL, OF, THEM]' --specification MODULE:FUNCTION"
        words = f"--certify --proximity {plan.proximity:g} --outputs "
        words += str(plan.outputs) if plan.min_mass is None else stated
        if plan.confidence != CONFIDENCE:
            words += f" --confidence {plan.confidence:g}"
        if plan.weight != 1:
            words += f" --weight {plan.weight:g}"
        if plan.total_runs > Budget().runs:  # what `audit run` allows if none is given
            words += f" --budget {plan.total_runs}"
        given = "--data MODULE:FUNCTION" if is_random(plan.claim) else "--inputs FORM"
        lines.append(f"to do it: {begin} {words} {given}")
    if not plan.refutable:
        return lines
    return [
        *lines,
        f"to try to refute it: {begin} --inputs FORM",
        "(FORM is numbers, queries:10, histogram:5 or list:20; --pair '[A, B]' gives inputs of your own)",
    ]


def _outputs(text: str) -> int | list[Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if isinstance(found, list) or type(found) is int:
        return found
    raise InvalidParameter(
        f"--outputs is a number, or a list as JSON, got {text!r}; nothing was run"
    )

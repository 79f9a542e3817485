"""`sfumato audit`: try to refute a privacy claim by running the mechanism; nothing inside is looked at."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from sfumato._random import generator
from sfumato.cli.audit import replay_release as audit_door
from sfumato.cli.audit.live import aside, live, watching
from sfumato.cli.audit.options import (
    BandOption,
    BudgetOption,
    ClaimOption,
    CommandOption,
    DataOption,
    InputsOption,
    MinMassOption,
    OutputsOption,
    PairOption,
    PairsOption,
    PlanProximityOption,
    ProximityOption,
    Relation,
    RelationOption,
    RoundOption,
    RunsOption,
    Samples,
    SamplesOption,
    SpecificationOption,
    TargetArgument,
    WeightOption,
    certificate_of,
    claim_of,
    inputs_of,
    mechanism_of,
    plan_commands,
)
from sfumato.cli.console import (
    Json,
    Quiet,
    fail,
    in_flags,
    no_verdict_by_accident,
    say,
    sentences,
    show,
    working,
)
from sfumato.cli.endings import DONE, FAILED, INCONCLUSIVE
from sfumato.cli.missing import ToldTogether, check_given, tell_with_files
from sfumato.errors import Mistakes, Unverifiable
from sfumato.files import check_outputs, check_writable

EXITS = {"REFUTED": FAILED, "NOT_REFUTED": DONE, "CERTIFIED": DONE, "INCONCLUSIVE": INCONCLUSIVE}

app = typer.Typer(
    help="Audit a privacy claim: run the mechanism as a black box and try to refute what is claimed. Inputs "
    "are made up or chosen by whoever audits, so nothing here is private and no ledger is needed.",
    epilog="Exit codes: 0 not refuted or certified, 1 refuted, 2 a wrong call, 4 any failure, "
    "5 inconclusive, 130 interrupted.",
    no_args_is_help=True,
)


@app.command()
@no_verdict_by_accident
@sentences
def plan(
    claim: ClaimOption,
    outputs: Annotated[int, typer.Option(help="How many outputs the mechanism has.", min=2)] = 2,
    proximity: PlanProximityOption = None,
    specification: MinMassOption = None,
    weight: WeightOption = 1.0,
    confidence: Annotated[float, typer.Option(help="With what confidence, above 1/2.")] = 0.99,
    json: Json = False,
) -> None:
    """How many runs decide a claim, whatever the test, and how many do with ours; or why none do.

    Nothing is run.
    """
    from sfumato.audit import plan_audit
    from sfumato.audit.render import plan_lines

    found = plan_audit(
        claim_of(claim),
        outputs=outputs,
        proximity=proximity,
        min_mass=specification,
        weight=weight,
        confidence=confidence,
    )
    lines = plan_lines(found) + plan_commands(found, claim)
    show({**found.to_json(), "said": lines}, "\n".join(lines), json=json)


app.command("replay-release")(audit_door.replay_release)


@app.command(cls=ToldTogether)
@no_verdict_by_accident
@sentences
def run(
    claim: ClaimOption,
    target: TargetArgument = "",
    command: CommandOption = "",
    samples: SamplesOption = None,
    inputs: InputsOption = "",
    pair: PairOption = None,
    pairs: PairsOption = None,
    relation: RelationOption = Relation.added,
    budget: BudgetOption = "60s,1000000",
    confidence: Annotated[
        float, typer.Option(help="With what confidence, over all pairs, directions and looks.")
    ] = 0.99,
    bound: Annotated[
        bool, typer.Option("--bound", help="Also a lower bound of epsilon, on the worst pair.")
    ] = False,
    band: BandOption = None,
    certify: Annotated[
        bool, typer.Option("--certify", help="Certify up to --proximity instead, with --outputs.")
    ] = False,
    proximity: ProximityOption = None,
    outputs: OutputsOption = "",
    specification: SpecificationOption = "",
    data: DataOption = "",
    weight: WeightOption = 1.0,
    report: Annotated[
        Path | None, typer.Option(help="A report: .html.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Save the verdict: .json, for `audit replay`.", show_default=False),
    ] = None,
    bits: RoundOption = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files of --out and --report.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Try to refute a claim about a mechanism; with --certify, to certify it.

    It bets against the claim, run by run, stops as soon as it is caught, and finds inputs and event
    itself. A claim that is true is refuted with a chance of at most 1 - confidence; one that is not
    refuted need not be true. A certificate says what is certified: the claim with the proximity in
    it. Exit 0 not refuted or certified, 1 refuted, 4 any failure, 5 inconclusive. Only the inputs
    that you name or that are made up are used, so nothing is charged.
    """
    from sfumato.audit import Budget, check_confidence

    reads = [pairs, *(samples or ())]
    mistakes, claimed, limit = Mistakes(), None, None
    with mistakes.noted():
        check_given()
    for path, suffix in ((report, ".html"), (out, ".json")):
        with mistakes.noted():
            check_outputs([path] if path else [], {suffix}, reads=reads, overwrite=overwrite)
    with mistakes.noted():
        claimed = claim_of(claim, relation) if claim else None
    with mistakes.noted():
        limit = Budget.parse(budget)
    with mistakes.noted():
        check_confidence(confidence)
    tell_with_files(mistakes, *reads)
    if claimed is None:  # none was given, which was told
        return
    certificate = certificate_of(
        claimed,
        certify=certify,
        proximity=proximity,
        outputs=outputs,
        specification=specification,
        data=data,
        weight=weight,
    )
    for path in filter(None, (report, out)):
        check_writable(path, overwrite=overwrite, lost="nothing was run")

    from sfumato.audit import audit_claim
    from sfumato.audit.render import result_lines

    given = {"samples": samples is not None, "data": bool(data)}
    try:
        with aside(), watching(quiet=quiet or json, json=json) as watch:
            result = audit_claim(
                mechanism_of(target, command, samples),
                claimed,
                inputs=inputs_of(inputs, pair or [], pairs, **given),
                confidence=confidence,
                budget=limit,
                bound=bound,
                band=(report is not None and not command) if band is None else band,
                certify=certificate,
                round_bits=bits,
                rng=generator() if data else None,
                watch=watch,
            )
    except Unverifiable as problem:  # nobody's mistake: neither yes nor no
        fail(str(problem), code=INCONCLUSIVE, json=json)
    for message in result.diagnostics:
        say(message, quiet=quiet or json)
    lines = [in_flags(line) for line in result_lines(result)]
    if out is not None and result.verdict.witness is not None and result.can_replay:
        rest = "" if bits is None else f" --round {bits}"
        words = f"{shlex.quote(str(out))} {_spelled(target, command, samples)}{rest}"
        lines.append(f"again, on fresh runs: sfumato audit replay {words}")
    # Shown first: a verdict is not lost with a file that cannot be written.
    show({**result.summary(), "said": lines}, "\n".join(lines), json=json)
    sys.stdout.flush()
    if out is not None:
        result.write(out, overwrite=overwrite)
    if report is not None:
        from sfumato.report import write_audit_report

        with working("drawing the report", quiet=quiet or json):
            write_audit_report(
                report,
                result,
                command=["sfumato", *sys.argv[1:]],
                budget=budget,
                overwrite=overwrite,
            )
    raise typer.Exit(EXITS[result.kind])


@app.command()
@no_verdict_by_accident
@sentences
def replay(
    file: Annotated[
        Path, typer.Argument(help="A verdict saved by `audit run --out`.", show_default=False)
    ],
    target: TargetArgument = "",
    command: CommandOption = "",
    samples: SamplesOption = None,
    runs: RunsOption = None,
    confidence: Annotated[float, typer.Option(help="With what confidence.")] = 0.99,
    bits: RoundOption = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run the witness of a saved verdict again: same inputs, same event, fresh runs, one exact test.

    Nothing that the file names is run: say again what to run. Exit 1 refuted again, 5 if these runs
    do not.
    """
    from sfumato.audit import replay_verdict
    from sfumato.audit.render import replay_lines

    with aside(), watching(quiet=quiet or json, json=json) as watch:
        result = replay_verdict(
            file,
            mechanism_of(target, command, samples),
            runs=runs,
            confidence=confidence,
            round_bits=bits,
            watch=watch,
        )
    lines = replay_lines(result)
    show({**result.to_json(), "said": lines}, "\n".join(lines), json=json)
    raise typer.Exit(FAILED if result.refuted else INCONCLUSIVE)


@app.command()
@no_verdict_by_accident
@sentences
def selftest(
    audits: Annotated[int, typer.Option(help="Audits of each private mechanism.", min=1)] = 40,
    seed: Annotated[
        int | None, typer.Option(help="The same audits again; otherwise others each time.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check the auditor itself: how often it refutes what is true, and whether it catches what is not.

    On mechanisms of the catalogue. Exit 0 if it keeps its level and catches them, else 1.
    """
    from sfumato.audit import selftest as check_auditor
    from sfumato.audit.render import selftest_lines

    with live(f"auditing the catalogue, {audits} times each", quiet=quiet or json) as tell:
        watch = None if tell is None else lambda name, done: tell(f"{name}: {done:,} audits")
        found = check_auditor(audits=audits, rng=generator(seed), watch=watch)
    lines = [in_flags(line) for line in selftest_lines(found)]
    show({**found.to_json(), "said": lines}, "\n".join(lines), json=json)
    raise typer.Exit(DONE if found.passed else FAILED)


def _spelled(target: str, command: str, samples: Samples | None) -> str:
    if samples is not None:
        return "--samples OTHER FILES"
    return target or f"--command {shlex.quote(command)}"

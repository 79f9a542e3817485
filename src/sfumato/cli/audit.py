"""`sfumato audit`: try to refute a privacy claim by running the mechanism; nothing inside is looked at."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli import audit_door, audit_plan
from sfumato.cli.audit_further import Certificate, Further, further
from sfumato.cli.audit_live import betting, live
from sfumato.cli.audit_options import (
    ClaimOption,
    CommandOption,
    Relation,
    RelationOption,
    RoundOption,
    SamplesOption,
    TargetArgument,
    WeightOption,
    box_of,
    budget_of,
    claim_of,
    pairs_of,
)
from sfumato.cli.audit_outputs import result_of, write_audit_report
from sfumato.cli.audit_words import replay_lines, told
from sfumato.cli.chance import chance
from sfumato.cli.console import (
    DONE,
    FAILED,
    INCONCLUSIVE,
    Json,
    Quiet,
    fail,
    no_verdict_by_accident,
    say,
    sentences,
    show,
    working,
)
from sfumato.cli.sense_outputs import check_outputs
from sfumato.errors import InvalidInput, InvalidParameter, Unverifiable
from sfumato.files import check_writable

if TYPE_CHECKING:
    from sfumato.audit import Verdict
    from sfumato.audit.boxes import Box, Inputs, Pair
    from sfumato.audit.sequential import Budget
    from sfumato.privacy import Claim

EXITS = {"REFUTED": FAILED, "NOT_REFUTED": DONE, "CERTIFIED": DONE, "INCONCLUSIVE": INCONCLUSIVE}

CUT_SHORT = "interrupted after the bet: what follows it was not run to its end"
FEW_AUDITS = 60
"""Fewer audits of each mechanism without any error are too few to show its level."""

app = typer.Typer(
    help="Audit a privacy claim: run the mechanism as a black box and try to refute what is claimed. Inputs "
    "are made up or chosen by whoever audits, so nothing here is private and no ledger is needed.",
    epilog="Exit codes: 0 not refuted or certified, 1 refuted, 2 a wrong call, 4 any failure, "
    "5 inconclusive, 130 interrupted.",
    no_args_is_help=True,
)
app.command("plan")(audit_plan.plan)
app.command("replay-release")(audit_door.replay_release)


@app.command()
@no_verdict_by_accident
@sentences
def run(
    claim: ClaimOption,
    target: TargetArgument = "",
    command: CommandOption = "",
    samples: SamplesOption = None,
    inputs: Annotated[
        str,
        typer.Option(
            help="Form of the data, whose usual neighbors are tried and varied: numbers, queries:10, "
            "histogram:5, list:20; the last two also as histogram-replace, list-replace.",
            show_default=False,
        ),
    ] = "",
    pair: Annotated[
        list[str] | None,
        typer.Option(help="Two neighbors, as a JSON list: '[0, 1]'.", show_default=False),
    ] = None,
    pairs: Annotated[
        Path | None, typer.Option(help="A .json file with a list of pairs.", show_default=False)
    ] = None,
    relation: RelationOption = Relation.added,
    budget: Annotated[
        str,
        typer.Option(
            help="How long the bet takes at most: 60s, 200000 (runs), or both; fresh runs that confirm it "
            "take no longer again, nor does what follows."
        ),
    ] = "60s,1000000",
    confidence: Annotated[
        float, typer.Option(help="With what confidence, over all pairs, directions and looks.")
    ] = 0.99,
    bound: Annotated[
        bool, typer.Option("--bound", help="Also a lower bound of epsilon, on the worst pair.")
    ] = False,
    band: Annotated[
        bool | None,
        typer.Option(
            "--band/--no-band",
            help="Also delta at every epsilon; in a report anyway, except of a --command.",
        ),
    ] = None,
    certify: Annotated[
        bool, typer.Option("--certify", help="Certify up to --proximity instead, with --outputs.")
    ] = False,
    proximity: Annotated[
        float | None,
        typer.Option(
            help="How far off a claim may be: in delta, or epsilon if it is pure, and in gamma if it has one."
        ),
    ] = None,
    outputs: Annotated[
        str,
        typer.Option(
            help="How many outputs there are; or all of them, as JSON.", show_default=False
        ),
    ] = "",
    specification: Annotated[
        str,
        typer.Option(
            help="module:function that states the masses of --outputs on an input.",
            show_default=False,
        ),
    ] = "",
    data: Annotated[
        str,
        typer.Option(
            help="module:function that draws a random pair of neighbors with a NumPy generator.",
            show_default=False,
        ),
    ] = "",
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
    from sfumato.audit import SavedVerdict, can_replay
    from sfumato.audit.boxes import require_relation
    from sfumato.cli.audit_boxes import aside, prepared, total_runs

    hush = quiet or json
    reads = [pairs, *(samples or ())]
    check_outputs([report] if report else [], {".html"}, reads=reads, overwrite=overwrite)
    check_outputs([out] if out else [], {".json"}, reads=reads, overwrite=overwrite)
    claimed, limit = claim_of(claim, relation), budget_of(budget)
    asked = Certificate(proximity, outputs, specification, data, confidence, weight)
    asked.check(certify, claimed)
    for path in filter(None, (report, out)):
        check_writable(path, overwrite=overwrite, lost="nothing was run")
    with aside():
        box = prepared(box_of(target, command, samples), bits)
        tried = [] if data else pairs_of(box, inputs, pair or [], pairs)
        require_relation(tried, claimed)
        if certify:
            try:
                with working(f"testing {box.name}", quiet=hush):
                    saved = SavedVerdict(asked.verdict(box, claimed, tried, limit), box.name)
            except Unverifiable as problem:  # nobody's mistake: neither yes nor no
                fail(str(problem), code=INCONCLUSIVE, json=json)
        else:
            found = _refuted(box, claimed, tried, limit, confidence, hush=hush, json=json)
            saved = SavedVerdict(found, box.name)
            with_band = (report is not None and not command) if band is None else band
            after = Further(box, limit, time.monotonic())
            try:
                saved = further(saved, after, tried, bound=bound, band=with_band, hush=hush)
            except KeyboardInterrupt:  # the bet is over, and its verdict is worth having
                notes = (*saved.verdict.notes, CUT_SHORT)
                saved = replace(saved, verdict=replace(saved.verdict, notes=notes))
    found = saved.verdict
    lines = told(saved)
    if total_runs(box) > found.runs:
        lines.append(
            f"{total_runs(box):,} runs in all, with those that followed and those to see how fast"
        )
    if out is not None and found.witness is not None and can_replay(found.witness.event):
        rest = "" if bits is None else f" --round {bits}"
        words = f"{shlex.quote(str(out))} {_spelled(target, command, samples)}{rest}"
        lines.append(f"again, on fresh runs: sfumato audit replay {words}")
    # Said first: a verdict is not lost with a file that cannot be written.
    show(result_of(saved, lines), "\n".join(lines), json=json)
    sys.stdout.flush()
    if out is not None:
        saved.write(out, overwrite=overwrite)
    if report is not None:
        with working("drawing the report", quiet=hush):
            command_line = ["sfumato", *sys.argv[1:]]
            write_audit_report(
                report, saved, command=command_line, budget=budget, overwrite=overwrite
            )
    raise typer.Exit(EXITS[found.kind])


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
    runs: Annotated[
        int | None,
        typer.Option(
            help="Runs of either input; if not given, as many as show the witness again at this confidence, "
            "all but once in a thousand times.",
            min=1,
            max=10_000_000,
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(help="With what confidence.")] = 0.99,
    bits: RoundOption = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run the witness of a saved verdict again: same inputs, same event, fresh runs, one exact test.

    Nothing that the file names is run: say again what to run. Exit 1 refuted again, 5 if these runs
    do not.
    """
    from sfumato.audit import can_replay, enough_runs, read_verdict
    from sfumato.audit import replay as run_again
    from sfumato.audit.boxes import SampleBox
    from sfumato.cli.audit_boxes import aside, prepared

    saved = read_verdict(file)
    witness = saved.verdict.witness or (saved.bound.witness if saved.bound else None)
    if witness is None:
        raise InvalidInput(f"{file} is {saved.verdict.kind} and has no witness; nothing was run")
    if not can_replay(witness.event):
        raise InvalidInput(
            f"the event of {file} was saved in words only and cannot be tested again; nothing was run"
        )
    if not 0 < confidence < 1:
        raise InvalidParameter(
            f"confidence must be between 0 and 1, got {confidence}; nothing was run"
        )
    with aside():
        box = prepared(box_of(target, command, samples), bits)
    if isinstance(box, SampleBox) and box.name == saved.target:
        raise InvalidInput(
            f"fresh runs are needed, got {box.name}, the files that the verdict is of; nothing was tested"
        )
    if box.name != saved.target:
        say(f"the verdict is of {saved.target}, this runs {box.name}", quiet=quiet or json)
    if runs is None:
        seen = saved.verdict.confirmed if witness is saved.verdict.witness else None
        runs = enough_runs(witness, seen, level=1 - confidence)
        runs = min(runs, len(box.first), len(box.second)) if isinstance(box, SampleBox) else runs
    with (
        aside(),
        working(f"running {box.name} {runs:,} times on either input", quiet=quiet or json),
    ):
        found = run_again(witness, box, runs=runs, level=1 - confidence)
    lines = replay_lines(found, replace(witness, hits=found.hits, runs=(runs, runs)))
    result = {
        "refuted": found.refuted,
        "p_value": found.p_value,
        "level": found.level,
        "hits": list(found.hits),
        "runs": found.runs,
        "epsilon": found.statement.epsilon,
        "delta": found.statement.delta,
        "said": lines,
    }
    show(result, "\n".join(lines), json=json)
    raise typer.Exit(FAILED if found.refuted else INCONCLUSIVE)


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
    from sfumato.audit.catalogue import selftest as check_itself

    with live(f"auditing the catalogue, {audits} times each", hush=quiet or json) as tell:
        watch = None if tell is None else lambda name, done: tell(f"{name}: {done:,} audits")
        found = check_itself(audits=audits, rng=chance(seed), watch=watch)
    lines = list(found.lines())
    if found.passed and audits < FEW_AUDITS:
        lines[-1] += (
            f": nothing speaks against it, but {audits} audits are too few to say; give --audits 100"
        )
    rows = {
        "levels": [asdict(one) for one in found.levels],
        "catches": [asdict(one) for one in found.catches],
    }
    show({"passed": found.passed, **rows, "said": lines}, "\n".join(lines), json=json)
    raise typer.Exit(DONE if found.passed else FAILED)


def _refuted(
    box: Box,
    claim: Claim,
    tried: Sequence[Pair] | Inputs,
    limit: Budget,
    confidence: float,
    *,
    hush: bool,
    json: bool,
) -> Verdict:
    from sfumato.audit.boxes import SampleBox
    from sfumato.audit.sequential import refute

    if isinstance(box, SampleBox):
        limit = replace(limit, runs=min(limit.runs, 2 * min(len(box.first), len(box.second))))
    with betting(box, hush=hush, json=json) as watch:
        return refute(box, claim, pairs=tried, confidence=confidence, budget=limit, watch=watch)


def _spelled(target: str, command: str, samples: tuple[Path, Path] | None) -> str:
    if samples is not None:
        return "--samples OTHER FILES"
    return target or f"--command {shlex.quote(command)}"

"""`sfumato audit`: try to refute a privacy claim by running the mechanism; nothing inside is looked at."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli import audit_plan
from sfumato.cli.audit_further import Certificate, further_runs, own_delta, worst_pair
from sfumato.cli.audit_options import (
    ClaimOption,
    CommandOption,
    Relation,
    RelationOption,
    SamplesOption,
    TargetArgument,
    box_of,
    budget_of,
    claim_of,
    pairs_of,
)
from sfumato.cli.audit_outputs import band_epsilons, result_of, write_audit_report
from sfumato.cli.audit_words import look_line, replay_lines, told
from sfumato.cli.chance import chance
from sfumato.cli.console import DONE, FAILED, INCONCLUSIVE, Json, Quiet, fail, say, sentences, show, working
from sfumato.cli.sense_outputs import check_outputs
from sfumato.errors import InvalidInput, InvalidParameter, Unverifiable

if TYPE_CHECKING:
    from sfumato.audit.boxes import Box, Pair
    from sfumato.audit.pairs import Inputs
    from sfumato.audit.refute import Budget, Look
    from sfumato.audit.saved import SavedVerdict
    from sfumato.audit.verdict import Verdict
    from sfumato.privacy import Claim

EXITS = {"REFUTED": FAILED, "NOT_REFUTED": DONE, "CERTIFIED": DONE, "INCONCLUSIVE": INCONCLUSIVE}
BOUND, BAND = 400_000, 200_000
"""Further runs of a lower bound and of a band, at most."""

app = typer.Typer(
    help="Audit a privacy claim: run the mechanism as a black box and try to refute what is claimed. Inputs "
    "are made up or chosen by whoever audits, so nothing here is private and no ledger is needed.",
    epilog="Exit codes: 0 not refuted or certified, 1 refuted, 5 inconclusive.",
    no_args_is_help=True,
)
app.command("plan")(audit_plan.plan)


@app.command()
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
        str, typer.Option(help="How long at most: 60s, 200000 (runs), or both.")
    ] = "60s,1000000",
    confidence: Annotated[
        float | None,
        typer.Option(
            help="With what confidence, over all pairs, directions and looks: .99 if not given, with "
            "--certify 2/3.",
            show_default=False,
        ),
    ] = None,
    bound: Annotated[
        bool, typer.Option("--bound", help="Also a lower bound of epsilon, on the worst pair.")
    ] = False,
    band: Annotated[
        bool | None,
        typer.Option(
            "--band/--no-band", help="Also delta at every epsilon; in a report anyway, except of a --command."
        ),
    ] = None,
    certify: Annotated[
        bool, typer.Option("--certify", help="Certify up to --proximity instead, with --outputs.")
    ] = False,
    proximity: Annotated[
        float | None, typer.Option(help="How far off a claim may be: in delta, or epsilon if it is pure.")
    ] = None,
    outputs: Annotated[
        str, typer.Option(help="How many outputs there are; or all of them, as JSON.", show_default=False)
    ] = "",
    specification: Annotated[
        str,
        typer.Option(
            help="module:function that states the masses of --outputs on an input.", show_default=False
        ),
    ] = "",
    data: Annotated[
        str,
        typer.Option(
            help="module:function that draws a random pair of neighbors with a NumPy generator.",
            show_default=False,
        ),
    ] = "",
    report: Annotated[Path | None, typer.Option(help="A report: .html.", show_default=False)] = None,
    out: Annotated[
        Path | None, typer.Option(help="Save the verdict: .json, for `audit replay`.", show_default=False)
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files of --out and --report.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Try to refute a claim about a mechanism; with --certify, to certify it.

    It bets against the claim, run by run, stops as soon as it is caught, and finds inputs and event itself.
    A claim that is true is refuted with a chance of at most 1 - confidence; one that is not refuted need not
    be true. Exit 0 not refuted or certified, 1 refuted, 5 inconclusive. Only the inputs that you name or that
    are made up are used, so nothing is charged.
    """
    from sfumato.audit.saved import SavedVerdict, can_replay

    hush = quiet or json
    reads = [pairs, *(samples or ())]
    check_outputs([report] if report else [], {".html"}, reads=reads, overwrite=overwrite)
    check_outputs([out] if out else [], {".json"}, reads=reads, overwrite=overwrite)
    claimed, limit = claim_of(claim, relation), budget_of(budget)
    asked = Certificate(proximity, outputs, specification, data, 2 / 3 if confidence is None else confidence)
    asked.check(certify, claimed)
    box = box_of(target, command, samples)
    tried = [] if data else pairs_of(box, inputs, pair or [], pairs)
    if certify:
        try:
            with working(f"testing {box.name}", quiet=hush):
                found = asked.verdict(box, claimed, tried, limit)
        except Unverifiable as problem:  # nobody's mistake: neither yes nor no
            fail(str(problem), code=INCONCLUSIVE, json=json)
        saved = SavedVerdict(found, box.name)
    else:
        found = _refuted(box, claimed, tried, limit, 0.99 if confidence is None else confidence, hush=hush)
        with_band = (report is not None and not command) if band is None else band
        saved = _further(
            _confirmed(SavedVerdict(found, box.name), box, limit, hush=hush),
            box,
            tried,
            limit,
            bound,
            with_band,
            hush=hush,
        )
    if out is not None:
        saved.write(out, overwrite=overwrite)
    lines = told(saved)
    if out is not None and found.witness is not None and can_replay(found.witness.event):
        lines.append(f"again, on fresh runs: sfumato audit replay {out} {_spelled(target, command, samples)}")
    if report is not None:
        with working("drawing the report", quiet=hush):
            write_audit_report(report, saved, command=["sfumato", *sys.argv[1:]], budget=budget)
    show(result_of(saved, lines), "\n".join(lines), json=json)
    raise typer.Exit(EXITS[found.kind])


@app.command()
@sentences
def replay(
    file: Annotated[Path, typer.Argument(help="A verdict saved by `audit run --out`.", show_default=False)],
    target: TargetArgument = "",
    command: CommandOption = "",
    samples: SamplesOption = None,
    runs: Annotated[
        int | None,
        typer.Option(help="Runs of either input; four times as many as the verdict's if not given.", min=1),
    ] = None,
    confidence: Annotated[float, typer.Option(help="With what confidence.")] = 0.99,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run the witness of a saved verdict again: same inputs, same event, fresh runs, one exact test.

    Nothing that the file names is run: say again what to run. Exit 1 refuted again, 5 if these runs do not.
    """
    from sfumato.audit.boxes import SampleBox
    from sfumato.audit.replay import enough_runs
    from sfumato.audit.replay import replay as run_again
    from sfumato.audit.saved import read_verdict

    saved = read_verdict(file)
    witness = saved.verdict.witness or (saved.bound.witness if saved.bound else None)
    if witness is None:
        raise InvalidInput(f"{file} is {saved.verdict.kind} and has no witness; nothing was run")
    if not 0 < confidence < 1:
        raise InvalidParameter(f"confidence must be between 0 and 1, got {confidence}; nothing was run")
    box = box_of(target, command, samples)
    if box.name != saved.target:
        say(f"the verdict is of {saved.target}, this runs {box.name}", quiet=quiet or json)
    if runs is None:
        held = min(len(box.first), len(box.second)) if isinstance(box, SampleBox) else enough_runs(witness)
        runs = min(held, enough_runs(witness))
    with working(f"running {box.name} {runs:,} times on either input", quiet=quiet or json):
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
@sentences
def selftest(
    audits: Annotated[int, typer.Option(help="Audits of each private mechanism.", min=1)] = 100,
    seed: Annotated[
        int | None, typer.Option(help="The same audits again; otherwise others each time.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check the auditor itself: how often it refutes what is true, and whether it catches what is not.

    On mechanisms of the catalogue. Exit 0 if it keeps its level and catches them, else 1.
    """
    from sfumato.audit.selftest import selftest as check_itself

    with _line(f"auditing the catalogue, {audits} times each", hush=quiet or json) as tell:
        watch = None if tell is None else lambda name, done: tell(f"{name}: {done:,} audits")
        found = check_itself(audits=audits, rng=chance(seed), watch=watch)
    lines = list(found.lines())
    rows = {
        "levels": [asdict(one) for one in found.levels],
        "catches": [asdict(one) for one in found.catches],
    }
    show({"passed": found.passed, **rows, "said": lines}, "\n".join(lines), json=json)
    raise typer.Exit(DONE if found.passed else FAILED)


def _refuted(
    box: Box, claim: Claim, tried: Sequence[Pair] | Inputs, limit: Budget, confidence: float, *, hush: bool
) -> Verdict:
    from sfumato.audit.boxes import SampleBox
    from sfumato.audit.refute import refute

    if isinstance(box, SampleBox):
        limit = replace(limit, runs=min(limit.runs, 2 * min(len(box.first), len(box.second))))
    with betting(box, hush=hush) as watch:
        return refute(box, claim, pairs=tried, confidence=confidence, budget=limit, watch=watch)


@contextmanager
def betting(box: Box, *, hush: bool) -> Iterator[Callable[[Look], None] | None]:
    """Somebody to watch the bet: on a terminal a line that lives, otherwise nobody."""
    with _line(f"betting against the claim about {box.name}", hush=hush) as tell:
        yield None if tell is None else lambda look: tell(look_line(look))


@contextmanager
def _line(message: str, *, hush: bool) -> Iterator[Callable[[str], None] | None]:
    """A line on a terminal that can be told something new; elsewhere it is said once."""
    if hush or not sys.stderr.isatty():
        say(message, quiet=hush)
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        line = progress.add_task(message, total=None)
        yield lambda words: progress.update(line, description=words)


def _confirmed(saved: SavedVerdict, box: Box, limit: Budget, *, hush: bool) -> SavedVerdict:
    """The verdict with its witness tried on fresh runs: who stops when something is caught saw it briefly."""
    from sfumato.audit.boxes import SampleBox
    from sfumato.audit.replay import enough_runs, replay

    witness = saved.verdict.witness
    if witness is None or isinstance(box, SampleBox):
        return saved
    runs = further_runs(box, witness.pair, limit, 2 * enough_runs(witness)) // 2
    with working(f"the witness again, on {runs:,} fresh runs of either input", quiet=hush):
        again = replay(witness, box, runs=max(1, runs), level=1 - saved.verdict.confidence)
    return replace(saved, confirmed=again)


def _further(
    saved: SavedVerdict,
    box: Box,
    tried: Sequence[Pair] | Inputs,
    limit: Budget,
    bound: bool,
    band: bool,
    *,
    hush: bool,
) -> SavedVerdict:
    """The verdict with a lower bound and a band, where they are wanted, each in no more time than it took."""
    from sfumato.audit.bound import LEAST_RUNS, lower_bound
    from sfumato.audit.boxes import SampleBox
    from sfumato.audit.profile import profile

    verdict = saved.verdict
    if not (bound or band) or verdict.kind == "INCONCLUSIVE":
        return saved
    pair = worst_pair(verdict, tried)
    for wanted, most in ((bound, BOUND), (band, BAND)):
        if not wanted:
            continue
        # Samples are used once more: there is one pair, chosen by nobody, so what they say is valid again.
        fresh = replace(box, taken=[0, 0]) if isinstance(box, SampleBox) else box
        runs = further_runs(fresh, pair, limit, most)
        if runs < LEAST_RUNS:
            continue
        if most == BOUND:
            with working(f"a lower bound from {runs:,} runs", quiet=hush):
                low = lower_bound(
                    fresh, pair, delta=own_delta(verdict), runs=runs, confidence=verdict.confidence
                )
                saved = replace(saved, bound=low)
        else:
            with working(f"a band from {runs:,} runs", quiet=hush):
                grid = band_epsilons(verdict.claim)
                curves = profile(fresh, pair, epsilons=grid, runs=runs, confidence=verdict.confidence)
                saved = replace(saved, band=curves)
    return saved


def _spelled(target: str, command: str, samples: tuple[Path, Path] | None) -> str:
    if samples is not None:
        return "--samples OTHER FILES"
    return target or f"--command {shlex.quote(command)}"

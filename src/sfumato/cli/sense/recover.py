"""`sfumato sense recover|check`: where sources are, from noisy readings, with a proof that can be checked."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sfumato.cli.console import Json, Quiet, fail, sentences, show, watching
from sfumato.cli.endings import FAILED, UNRELIABLE
from sfumato.cli.missing import tell_with_files
from sfumato.cli.option_groups import grouped
from sfumato.cli.sense.options import FloorPlanOptions, Overwrite
from sfumato.errors import InvalidParameter, Mistakes
from sfumato.files import check_outputs, write_file

if TYPE_CHECKING:
    from sfumato.files import FloorPlan
    from sfumato.sensing.results import RecoveredRounds


class Unknown(StrEnum):
    """What is not known of the field, and is to be estimated together with the sources."""

    offset = "offset"
    time = "time"
    sensors = "sensors"


@grouped
@sentences
def recover(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Noisy readings: .json as `sense release` wrote it, of one or several devices; "
            "or one .csv with --site and --sigma.",
            show_default=False,
        ),
    ],
    out: Annotated[
        list[Path] | None,
        typer.Option(
            help="File(s): .json with answer and proof, .csv with the answer's sources; with --each also "
            ".html, a page with a slider.",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw it: a .png file.", show_default=False)
    ] = None,
    estimator: Annotated[
        str,
        typer.Option(
            help="Who answers: by the Bayes rule for earth mover's distance (bayes-median), the least mass "
            "(least), least squares between cells (off-grid), a mixture of known width (mixture); others "
            "are those of packages.",
            metavar="[{estimators}]",
        ),
    ] = "bayes-median",
    count: Annotated[
        int | None,
        typer.Option(help="How many sources there are: for a mixture, off-grid, or --fit.", min=1),
    ] = None,
    most: Annotated[
        int | None,
        typer.Option(
            help="The most sources that are thought of: 12, or up to 64 if readings ask for more; between "
            "cells 8.",
            min=1,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Chance of the draws; otherwise that of the readings themselves."),
    ] = None,
    fit: Annotated[
        list[Unknown] | None,
        typer.Option(
            help="Estimate too what is not known: an offset of all readings, the diffusion time; each looks "
            "for broken sensors first, 'sensors' for these only.",
            show_default=False,
        ),
    ] = None,
    site: Annotated[Path | None, typer.Option(help="The site, for .csv readings.")] = None,
    sigma: Annotated[
        float | None, typer.Option(help="Deviation of the noise, for .csv readings.")
    ] = None,
    time: Annotated[
        str,
        typer.Option(
            help="Which of several times: as written, or 12:00, a date, a number; with --each or "
            "--average also a range, 12:00..13:00.",
            show_default=False,
        ),
    ] = "",
    each: Annotated[
        bool,
        typer.Option("--each", help="Recover each time by itself, in one go."),
    ] = False,
    average: Annotated[
        bool,
        typer.Option("--average", help="Average all times: of sources that stay, with less noise."),
    ] = False,
    radius: Annotated[
        str,
        typer.Option(
            help="How far R may be from the readings: a number, or 'papers' for sigma sqrt(m); otherwise "
            "what noise that sources could make exceeds in 1 of 10 draws, and all that no source can make.",
            show_default=False,
        ),
    ] = "",
    upper: Annotated[
        float,
        typer.Option(help="Largest mass of one source. Too large costs little, too small much."),
    ] = 1.0,
    sources: Annotated[
        Path | None, typer.Option(help="True sources of a simulation: table of cell, mass.")
    ] = None,
    layout: Annotated[
        Path | None, typer.Option(help="Where to draw the nodes of a graph: table of node, x, y.")
    ] = None,
    communities: Annotated[
        int,
        typer.Option(help="On a graph: say which of so many communities the source is in.", min=1),
    ] = 2,
    certify: Annotated[
        bool,
        typer.Option(
            help="Bound how far the answer is from the truth at worst, whatever the sources: "
            "of one answer and not of each round."
        ),
    ] = True,
    *,
    floor: FloorPlanOptions,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Recover roughly where sources are, how many, and how sure that is.

    Costs nothing: readings with noise may be worked on as one likes. R, the least mass that
    explains the readings within their noise, is always computed with a proof, which `sense check`
    checks again; the answer of another --estimator stands beside it, and has no proof. Exit 9 where
    the readings contradict what was found: the verdict, said first, is not to rely on it; with --each
    where that is so of any round.
    """
    silent = quiet or json
    inputs = [*files, site, sources, layout, floor.over, floor.outline]
    kinds = {".json", ".csv", ".html"} if each else {".json", ".csv"}
    mistakes, within = Mistakes(), None
    for path, suffixes in [*((one, kinds) for one in out or ()), (plot, {".png"})]:
        with mistakes.noted():
            check_outputs([path] if path else [], suffixes, reads=inputs, overwrite=overwrite)
    with mistakes.noted():
        within = _radius(radius)
    if each:
        for flag, given in (("--average", average), ("--plot", plot), ("--sources", sources)):
            with mistakes.noted():
                _of_one_answer(flag, given=bool(given))
    tell_with_files(mistakes, *inputs)
    plan = floor.read()

    from sfumato.sensing.pipeline import recover_rounds, recover_sources, true_sources
    from sfumato.sensing.render import recovery_lines

    asked: dict[str, Any] = {
        "site": site,
        "noise": sigma,
        "estimator": estimator,
        "max_mass": upper,
        "max_sources": most,
        "count": count,
        "seed": seed,
        "fit": [one.value for one in fit or ()],
        "time": time,
        "radius": within,
        "communities": communities,
    }
    if each:
        with watching(quiet=silent) as watch:
            rounds = recover_rounds(files, watch=watch, **asked)
        _show_rounds(rounds, out or [], plan, layout, overwrite=overwrite, json=json)
        return
    with watching(quiet=silent) as watch:
        result = recover_sources(
            files, average=average, sources=sources, certify=certify, watch=watch, **asked
        )
    for path in out or []:
        result.write(path, overwrite=overwrite)
    if plot is not None:
        from sfumato.sensing.render import draw_recovery

        truth = None if sources is None else true_sources(sources, result.site)
        picture = draw_recovery(result, sources=truth, layout=layout, plan=plan)
        write_file(plot, picture, overwrite=overwrite)
    show(result.summary(), recovery_lines(result), json=json)
    if not result.verdict.reliable:
        raise typer.Exit(UNRELIABLE)


def _of_one_answer(flag: str, *, given: bool) -> None:
    """Refuse what is of one answer where there are many."""
    if given:
        raise InvalidParameter(
            f"{flag} is of one answer, --each of many: a page of all is --out rounds.html; "
            "nothing was recovered"
        )


def _show_rounds(
    rounds: RecoveredRounds,
    out: list[Path],
    plan: FloorPlan,
    layout: Path | None,
    *,
    overwrite: bool,
    json: bool,
) -> None:
    """Write recovered rounds to files, and print them."""
    from sfumato.sensing.render import draw_rounds, rounds_lines

    for path in out:
        if path.suffix == ".html":
            write_file(path, draw_rounds(rounds, plan=plan, layout=layout), overwrite=overwrite)
        else:
            rounds.write(path, overwrite=overwrite)
    show(rounds.summary(), rounds_lines(rounds), json=json)
    if rounds.misfits:
        raise typer.Exit(UNRELIABLE)


def _radius(text: str) -> float | Literal["papers"] | None:
    """A number, 'papers', or nothing."""
    if text in ("", "papers"):
        return "papers" if text else None
    try:
        return float(text)
    except ValueError:
        raise InvalidParameter(f"--radius is a number or 'papers', got {text!r}") from None


@sentences
def check(
    file: Annotated[
        Path,
        typer.Argument(
            help="A recovery (.json), of one time or of each (--each).", show_default=False
        ),
    ],
    ledger: Annotated[
        list[Path] | None,
        typer.Option(help="Also check that --readings were paid for, in these ledgers."),
    ] = None,
    readings: Annotated[
        list[Path] | None,
        typer.Option(
            help="The noisy readings it was made from (.json), of one or several devices."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Check a recovery again, independently: its proof, and who paid for its readings; exit 1 if not."""
    from sfumato.sensing.pipeline import check_recovery

    if bool(ledger) != bool(readings):
        raise InvalidParameter("--ledger and --readings go together; nothing was checked")
    result = check_recovery(file, readings=readings or None, ledgers=ledger or ())
    if not result.holds:
        fail(result.message, code=FAILED, json=json)
    show(result.to_json(), result.message, json=json)

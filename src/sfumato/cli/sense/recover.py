"""`sfumato sense recover|check`: where sources are, from noisy readings, with a proof that can be checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec, TypeVar

import typer

from sfumato.cli.console import Json, Quiet, fail, sentences, show, working
from sfumato.cli.endings import FAILED
from sfumato.errors import InvalidParameter, SfumatoError
from sfumato.files import check_outputs, write_file

P = ParamSpec("P")
R = TypeVar("R")

FLAGS = {
    "max_mass": "--upper",
    "max_sources": "--most",
    "noise": "--sigma",
    "leave_out_faulty": "--without-suspects",
}
"""Parameters of pipelines whose options are called otherwise; others have the parameter's own name."""
OPTIONS = re.compile(
    r"`(max_mass|max_sources|noise|site|time|average|count|fit|radius|estimator|ledger|readings|share|rate"
    r"|strength|leave_out_faulty|largest_part)`"
)


class Unknown(StrEnum):
    """What is not known of the field, and is to be estimated together with the sources."""

    offset = "offset"
    time = "time"
    sensors = "sensors"


def in_flags(text: str) -> str:
    """A message of the library with options of the command line for its parameters.

    >>> in_flags("give a larger `max_mass`, or choose with `time`")
    'give a larger --upper, or choose with --time'
    """
    return OPTIONS.sub(lambda found: FLAGS.get(found[1], f"--{found[1].replace('_', '-')}"), text)


def options_named(command: Callable[P, R]) -> Callable[P, R]:
    """A command whose errors name options, not parameters."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except SfumatoError as error:
            raise type(error)(in_flags(str(error))) from error

    return run


@contextmanager
def watching(*, quiet: bool) -> Iterator[Callable[[str], None]]:
    """What a pipeline calls when its work begins: the sentence is shown, with a clock on a terminal."""
    with ExitStack() as stack:

        def watch(message: str) -> None:
            stack.enter_context(working(message, quiet=quiet))

        yield watch


def shown(lines: list[Any]) -> Any:
    """Lines and tables of a renderer, for the console."""
    from rich.console import Group
    from rich.markup import escape

    return Group(*(escape(in_flags(one)) if isinstance(one, str) else one for one in lines))


@sentences
@options_named
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
            help="File(s): .json with answer and proof, .csv with the answer's sources.",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw it: a .png file.", show_default=False)
    ] = None,
    estimator: Annotated[
        str,
        typer.Option(
            help="Who answers: bayes-median (the Bayes rule for earth mover's distance), least (the least "
            "mass), off-grid (least squares between cells), mixture (of known width), or one that a "
            "package of yours has registered.",
            metavar="NAME",
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
    time: Annotated[str, typer.Option(help="Which of several times.", show_default=False)] = "",
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
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files of --out and --plot.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Recover roughly where sources are, how many, and how sure that is.

    Costs nothing: readings with noise may be worked on as one likes. R, the least mass that
    explains the readings within their noise, is always computed with a proof, which `sense check`
    checks again; the answer of another --estimator stands beside it, and has no proof.
    """
    from sfumato.sensing.pipeline import recover_sources, true_sources
    from sfumato.sensing.render import draw_recovery, recovery_lines

    silent = quiet or json
    inputs = [*files, site, sources, layout]
    check_outputs(out or [], {".json", ".csv"}, reads=inputs, overwrite=overwrite)
    check_outputs([plot] if plot else [], {".png"}, reads=inputs, overwrite=overwrite)
    with watching(quiet=silent) as watch:
        result = recover_sources(
            files,
            site=site,
            noise=sigma,
            estimator=estimator,
            max_mass=upper,
            max_sources=most,
            count=count,
            seed=seed,
            fit=[one.value for one in fit or ()],
            time=time,
            average=average,
            radius=_radius(radius),
            sources=sources,
            communities=communities,
            watch=watch,
        )
    for path in out or []:
        result.write(path, overwrite=overwrite)
    if plot is not None:
        truth = None if sources is None else true_sources(sources, result.site)
        picture = draw_recovery(result, sources=truth, layout=layout)
        write_file(plot, picture, overwrite=overwrite)
    show(result.summary(), shown(recovery_lines(result)), json=json)


def _radius(text: str) -> float | Literal["papers"] | None:
    """A number, 'papers', or nothing."""
    if text in ("", "papers"):
        return "papers" if text else None
    try:
        return float(text)
    except ValueError:
        raise InvalidParameter(f"--radius is a number or 'papers', got {text!r}") from None


@sentences
@options_named
def check(
    file: Annotated[Path, typer.Argument(help="A recovery (.json).", show_default=False)],
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

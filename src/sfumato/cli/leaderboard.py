"""`sfumato leaderboard`: all methods on the same samples of made-up or public places, and yours with them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.audit.live import aside
from sfumato.cli.console import Json, Quiet, say, sentences, show, watching
from sfumato.cli.heatmap.options import Overwrite, Public, X, Y, four_numbers, keep_apart
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    from sfumato.heatmap.benchmark import UserMethod

EPSILONS, QUICK_EPSILONS = "0.1,0.5,1,2,5,10", "0.5,1,5"
RUNS, QUICK_RUNS = 60, 6


@sentences
def leaderboard(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="Tables of PUBLIC rows, each a place of its own beside the made-up cities.",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help=f"Epsilon {QUICK_EPSILONS} and {QUICK_RUNS} runs: seconds."),
    ] = False,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="Your own, as module:function; the current folder is looked in; again for more. It is given "
            "counts (a square of floats, in users, each of whom has mass 1), epsilon and a NumPy generator, "
            "and gives back a square of the same shape, none below 0.",
            show_default=False,
        ),
    ] = None,
    methods: Annotated[
        str, typer.Option(help="Which of ours, with commas; else all.", show_default=False)
    ] = "",
    epsilon: Annotated[str, typer.Option(help="Values of epsilon, with commas.")] = EPSILONS,
    users: Annotated[
        int, typer.Option(help="How many people of a place are sampled.", min=1)
    ] = 200,
    runs: Annotated[
        int, typer.Option(help="Samples at each epsilon, over all cities or of a file.", min=2)
    ] = RUNS,
    cities: Annotated[bool, typer.Option(help="Whether made-up cities are run too.")] = True,
    public: Public = False,
    user: Annotated[
        str,
        typer.Option(
            help="Column that says whose row it is.", rich_help_panel="Rows", show_envvar=False
        ),
    ] = "user",
    x: X = "lon",
    y: Y = "lat",
    bounds: Annotated[
        str,
        typer.Option(
            help="Box of the files, stretched to the map: west,south,east,north; else that of the rows.",
            show_default=False,
            rich_help_panel="Rows",
            show_envvar=False,
        ),
    ] = "",
    out: Annotated[Path, typer.Option(help="The page to write, .html.")] = Path("leaderboard.html"),
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare methods: four metrics, means with 95 % intervals, paired differences, times, and pictures.

    All methods run on the same samples of users, with noise that comes again: the same command
    gives the same numbers, times excepted. The first method, or yours, is held against every other.
    It is a simulation: never run it on private data, for the errors it shows are exact numbers
    about the rows.
    """
    from sfumato.heatmap.benchmark import run_leaderboard
    from sfumato.records import Columns
    from sfumato.report import check_leaderboard_path, write_leaderboard

    silent = quiet or json
    if quick:
        epsilon = QUICK_EPSILONS if epsilon == EPSILONS else epsilon
        runs = QUICK_RUNS if runs == RUNS else runs
    epsilons = _numbers(epsilon)
    check_leaderboard_path(out, overwrite=overwrite)
    for file in files or []:
        keep_apart([out], [], file)
    # What somebody's own function prints goes to stderr; ours print nothing.
    with _aside(method), watching(quiet=silent) as watch:
        result = run_leaderboard(
            files or [],
            methods=[name.strip() for name in methods.split(",")] if methods else None,
            user_methods=_user_methods(method or []),
            epsilons=epsilons,
            users=users,
            runs=runs,
            cities=cities,
            public=public,
            columns=Columns(user or None, x, y),
            bounds=four_numbers(bounds) if bounds else None,
            watch=watch,
        )
    write_leaderboard(result, out, overwrite=overwrite)
    say(f"wrote {out}", quiet=silent)
    show(result.to_json() | {"written": str(out)}, str(result), json=json)


def _aside(own: Sequence[str] | None) -> AbstractContextManager[None]:
    return aside() if own else nullcontext()


def _user_methods(targets: Sequence[str]) -> list[UserMethod]:
    """What each module:function names."""
    from sfumato.audit.boxes import load_function
    from sfumato.heatmap.benchmark import UserMethod

    return [UserMethod(target, load_function(target)) for target in targets]


def _numbers(text: str) -> list[float]:
    """Values of epsilon."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if not values or not all(0 < value < float("inf") for value in values):
        raise InvalidParameter(
            f"epsilon is numbers above 0, with commas, got {text!r}; nothing was run"
        )
    return values

"""How every command speaks: results on stdout, the rest on stderr, one exit code per kind of end."""

from __future__ import annotations

import json as json_
import re
import sys
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, NoReturn, ParamSpec, TypeVar

import typer

from sfumato.cli.endings import EXISTS, INVALID, REFUSED, USAGE, code_of
from sfumato.errors import (
    BudgetExceeded,
    ExistsAlready,
    InvalidParameter,
    MissingPackage,
    NotComparable,
    SfumatoError,
)

P = ParamSpec("P")
R = TypeVar("R")

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, with exact numbers.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print results only: no progress, no remarks.")
]


def exit_code(error: SfumatoError) -> int:
    """2 usage, 3 budget refused, 4 input invalid, 8 exists already; the others belong to results."""
    match error:
        case BudgetExceeded() | NotComparable():
            return REFUSED
        case InvalidParameter() | MissingPackage():
            return USAGE
        case ExistsAlready():
            return EXISTS
        case _:
            return INVALID


def fail(message: str, *, code: int, json: bool) -> NoReturn:
    """Say one sentence on stderr and end with a code; as a JSON object when JSON was asked for."""
    error = {"error": {"message": message, "exit": code}}
    print(json_.dumps(error) if json else f"sfumato: {message}", file=sys.stderr)  # noqa: T201
    raise typer.Exit(code)


def in_flags(message: str, options: Collection[str]) -> str:
    """A message of the library, in which a parameter that is an option of the command is its flag.

    >>> in_flags("must be public, said aloud by `public`; see `help`", {"public"})
    'must be public, said aloud by --public; see `help`'
    """
    return re.sub(
        r"`(\w+)`",
        lambda found: f"--{found[1].replace('_', '-')}" if found[1] in options else found[0],
        message,
    )


def sentences(command: Callable[P, R]) -> Callable[P, R]:
    """A command whose mistakes and interrupts end in one sentence and an exit code, not in a traceback."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except SfumatoError as error:
            message = in_flags(str(error), kwargs)
            fail(message, code=exit_code(error), json=bool(kwargs.get("json", False)))
        except BrokenPipeError:  # whoever reads our results has seen enough
            raise
        except OSError as error:
            what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            fail(_noted(what, error), code=INVALID, json=bool(kwargs.get("json", False)))
        except KeyboardInterrupt as end:
            said = _noted("interrupted", end)
            fail(said, code=code_of(end), json=bool(kwargs.get("json", False)))

    return run


def _noted(said: str, problem: BaseException) -> str:
    """What is said, and what a pipeline has noted: where something was paid for, that it was."""
    return "; ".join([said, *getattr(problem, "__notes__", ())])


def no_verdict_by_accident(command: Callable[P, R]) -> Callable[P, R]:
    """A command whose exit code 1 is an answer: whatever fails unforeseen ends in one sentence and 4.

    Else a traceback, or a mechanism that ends the program, would say "refuted".
    """

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except (typer.Exit, typer.Abort):
            raise
        except BrokenPipeError:
            raise  # which `run_to_end` gives a code of its own
        except (Exception, SystemExit) as problem:
            frames = traceback.extract_tb(problem.__traceback__)
            where = (
                f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
            )
            what = f"{type(problem).__name__}{where}: {problem}".replace("\n", " ")
            fail(
                f"{what}; nothing was concluded", code=INVALID, json=bool(kwargs.get("json", False))
            )

    return run


def say(message: str, *, quiet: bool) -> None:
    """A remark or a step of progress, on stderr."""
    if not quiet:
        print(message, file=sys.stderr)  # noqa: T201


@contextmanager
def working(message: str, *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Say what is being done; on a terminal a clock runs beside it until it is.

    What it yields takes how far it is ("4 of 9"), and shows that too, on a terminal alone:
    elsewhere each would be a line of its own.
    """
    if quiet or not sys.stderr.isatty():
        say(message, quiet=quiet)
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(message, total=None)
        yield lambda told: progress.update(task, description=f"{message}: {told}")


def show(result: dict[str, Any], text: Any, *, json: bool) -> None:
    """The result on stdout: the JSON object, or the text or rich table that says the same."""
    if json:
        print(json_.dumps(result, indent=1))  # noqa: T201
        return
    from rich.console import Console
    from rich.markup import escape

    # Into a pipe or a file a long line stays one line; a terminal wraps it.
    console = Console(
        width=None if sys.stdout.isatty() else 200,
        soft_wrap=not sys.stdout.isatty(),
        highlight=False,
        emoji=False,
    )
    console.print(escape(text) if isinstance(text, str) else text)

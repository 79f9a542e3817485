"""How every command speaks: results on stdout, the rest on stderr, one exit code per kind of end."""

from __future__ import annotations

import json as json_
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, NoReturn, ParamSpec, TypeVar

import typer

from sfumato.cli.endings import EXISTS, INVALID, REFUSED, STOPPED, USAGE, code_of
from sfumato.errors import (
    BudgetExceeded,
    ExistsAlready,
    InvalidParameter,
    MissingPackage,
    NotComparable,
    SessionStopped,
    SfumatoError,
)

SPELLED = {
    "budget": "--budget-epsilon",
    "flow": "--plot",
    "groups": "--values",
    "leave_out_faulty": "--without-suspects",
    "loss": "--epsilon with --delta, or --rho",
    "max_mass": "--upper",
    "max_sources": "--most",
    "noise": "--sigma",
    "operator_options": "--operator-option",
    "outputs": "--out",
    "passphrase": "--passphrase-file",
    "recover_rounds": "--each",
    "round_bits": "--round BITS",
    "square=False": "--cells stretched",
    "target": "--want",
}
"""Parameters of the library whose options are called otherwise; others have the parameter's own name."""
running: ContextVar[frozenset[str]] = ContextVar("running", default=frozenset())
"""The flags of the command that runs."""
MADE = re.compile(r"with `Ledger\.create\((['\"])(.*?)\1, 1, unit='user', source='NAME'\)`")
"""How the library says to make a ledger; a command says its own line."""

P = ParamSpec("P")
R = TypeVar("R")

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, with exact numbers.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print results only: no progress, no remarks.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")]


def exit_code(error: SfumatoError) -> int:
    """2 usage, 3 refused, 4 input invalid, 8 exists already, 10 party stopped; others belong to results."""
    match error:
        case BudgetExceeded() | NotComparable():
            return REFUSED
        case InvalidParameter() | MissingPackage():
            return USAGE
        case ExistsAlready():
            return EXISTS
        case SessionStopped():
            return STOPPED
        case _:
            return INVALID


def fail(message: str, *, code: int, json: bool) -> NoReturn:
    """Say one sentence on stderr and end with a code; as a JSON object when JSON was asked for."""
    message = in_flags(message)
    error = {"error": {"message": message, "exit": code}}
    print(json_.dumps(error) if json else f"sfumato: {message}", file=sys.stderr)  # noqa: T201
    raise typer.Exit(code)


def in_flags(text: str, flags: Collection[str] | None = None) -> str:
    """A text of the library, in which a parameter that is an option of the command is its flag.

    The library writes parameters between backticks, with their value where it matters. This is the
    one place that knows how a command spells them; `flags` are those of the command that runs.

    >>> in_flags("said aloud by `public=True`; see `help`", {"--public"})
    'said aloud by --public; see `help`'
    >>> in_flags("`outer` goes with `bounds='private'`; give `max_mass`", {"--bounds", "--upper"})
    '`outer` goes with --bounds private; give --upper'
    """
    known = running.get() if flags is None else flags

    def spelled(found: re.Match[str]) -> str:
        name, value = found["name"], (found["value"] or "").strip("'\"")
        own = f"--{name.replace('_', '-')}"
        other = SPELLED.get(found[0].strip("`"), SPELLED.get(name, own))
        flag = own if own in known else other
        if flag.split()[0] not in known:
            return found[0]
        return flag if value in ("", "True", "False") else f"{flag} {value}"

    text = MADE.sub(
        r"with: sfumato ledger create \2 --epsilon 1 --unit user --source NAME, "
        "for sensors with: sfumato sense ledger",
        text,
    )
    return re.sub(r"`(?P<name>[a-z]\w*)(?:=(?P<value>[^`]*))?`", spelled, text)


def sentences(command: Callable[P, R]) -> Callable[P, R]:
    """A command whose mistakes and interrupts end in one sentence and an exit code, not in a traceback."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with _plain_warnings():
                return command(*args, **kwargs)
        except SfumatoError as error:
            fail(str(error), code=exit_code(error), json=bool(kwargs.get("json", False)))
        except BrokenPipeError:  # whoever reads our results has seen enough
            raise
        except OSError as error:
            what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            fail(_noted(what, error), code=INVALID, json=bool(kwargs.get("json", False)))
        except KeyboardInterrupt as end:
            said = _noted("interrupted", end)
            fail(said, code=code_of(end), json=bool(kwargs.get("json", False)))

    return run


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Warnings of ours on stderr as the sentences they are; those of others as Python says them."""
    usual = warnings.showwarning

    def shown(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if category is UserWarning:
            say(str(message), quiet=False)
        else:
            usual(message, category, *where, **more)

    with warnings.catch_warnings():
        warnings.showwarning = shown
        yield


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
        print(in_flags(message), file=sys.stderr)  # noqa: T201


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


@contextmanager
def watching(*, quiet: bool) -> Iterator[Callable[[str], None]]:
    """For pipelines that say what they are doing: each step is `working` until the next begins.

    A message "step: 4 of 9" after the message "step" is progress within it.
    """
    step, further = "", None
    with ExitStack() as stack:

        def watch(message: str) -> None:
            nonlocal step, further
            if further is not None and message.startswith(f"{step}: "):
                further(message.removeprefix(f"{step}: "))
                return
            stack.close()
            step, further = message, stack.enter_context(working(message, quiet=quiet))

        yield watch


def show(result: dict[str, Any], text: Any, *, json: bool) -> None:
    """The result on stdout: the JSON object, or the text, rich table or list of both that says the same."""
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
    for one in text if isinstance(text, list) else [text]:
        console.print(escape(in_flags(one)) if isinstance(one, str) else one)

"""Words that count on the command line only: consent, budgets and costs, and what replaces a file.

A default that somebody wrote down once, in a file or a variable that nobody looks at, is no
consent. The rule goes by the name of an option, so that a command of tomorrow has it too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from typer.core import TyperGroup

from sfumato.cli.console import running
from sfumato.cli.listed import list_names
from sfumato.errors import InvalidInput

ALOUD = {
    # declares something about the data that nobody can check
    "public",
    "one_row_one_user",
    "prior",
    "per_source",
    "largest",
    "beside",
    "baseline",
    "reference",
    # sets a budget, or what is charged to one
    "epsilon",
    "delta",
    "rho",
    "budget_epsilon",
    "budget_delta",
    "most_epsilon",
    "most_delta",
    "window",
    "since",
    "until",
    "share",
    "bounds_share",
    "mass_per_period",
    "mass_per_value",
    "team",
    "other_table",
    "anew",
    "method_option",
    # replaces what is there
    "overwrite",
}
# Options that have such a name and mean something else: whose budget pays, chances of an edge, the
# coverage of a set.
OTHERS = {
    ("heatmap", "release", "team"),
    ("joint", "release", "team"),
    ("shuffle", "collect", "team"),
    ("ledger", "show", "team"),
    ("graph", "limits", "rho"),
    ("graph", "simulate", "rho"),
    ("sense", "whisper", "locate", "share"),
}


FIRST = ("heatmap", "ledger", "sense", "audit", "graph", "emd", "leaderboard", "demo", "serve")
"""The commands that the help of the root lists first; others follow as they were added."""
PATH = "sfumato.cli.path"
"""Where a context keeps the words of the command that will run."""


class SpokenGroup(TyperGroup):
    """The root command, below which no option that must be said aloud is read from a variable."""

    def __init__(self, **rest: Any) -> None:
        super().__init__(**rest)
        for _, parameter in spoken(self):
            parameter.allow_from_autoenv = False
            parameter.show_envvar = False
        for parameter in _named_lists(self):
            # Columns and values may have blanks in them, at which lists in variables are split.
            parameter.split_envvar_value = str.splitlines

    def list_commands(self, ctx: Any) -> list[str]:
        """What most people look for stands first in the help."""
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Keep the words of the command that will run: the root itself is told the first one only."""
        ctx.meta[PATH] = words_of(self, args)
        command: Any = self
        for word in ctx.meta[PATH]:
            command = command.commands[word]
        running.set(flags_of(command))
        if not {"-h", "--help"}.isdisjoint(args):
            list_names(command)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; what it says names its own flags, and what is said after it none."""
        token = running.set(frozenset())
        try:
            return super().invoke(ctx)
        finally:
            running.reset(token)


def flags_of(command: Any) -> frozenset[str]:
    """All flags of a command."""
    return frozenset(flag for one in command.params for flag in one.opts)


def words_of(command: Any, args: list[str]) -> tuple[str, ...]:
    """The words that name a command below a group, at the beginning of its arguments; none if none is run."""
    words: tuple[str, ...] = ()
    # Groups take no options but --help, so what has a dash here is that, or the -- after which none
    # come.
    for word in (word for word in args if not word.startswith("-")):
        command = getattr(command, "commands", {}).get(word)
        if command is None:
            return ()
        words += (word,)
        if not hasattr(command, "commands"):
            return words
    return ()


def spoken(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every option below a command that must be said aloud, with the words of its command."""
    for parameter in command.params:
        if is_spoken(parameter, path):
            yield path, parameter
    for name, below in getattr(command, "commands", {}).items():
        yield from spoken(below, (*path, name))


def _named_lists(command: Any) -> Iterator[Any]:
    """The options that list names of columns or their values."""
    yield from (one for one in command.params if one.name in ("by", "values"))
    for below in getattr(command, "commands", {}).values():
        yield from _named_lists(below)


def is_spoken(parameter: Any, path: tuple[str, ...]) -> bool:
    """Whether a parameter of the command at a path is an option that must be said aloud."""
    return (
        parameter.param_type_name == "option"
        and parameter.name in ALOUD
        and (*path, parameter.name) not in OTHERS
    )


def refuse_variables(command: Any, *, prefix: str) -> None:
    """Refuse variables that look as if they set such an option: somebody thinks that they do."""
    for path, parameter in spoken(command):
        name = "_".join((prefix, *path, parameter.name)).upper().replace("-", "_")
        if os.environ.get(name):
            raise InvalidInput(
                f"the variable {name} sets {parameter.opts[0]} of '{' '.join(path)}', which counts on the "
                "command line only; unset it; nothing was done"
            )

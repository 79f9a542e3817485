"""Options that must be given and were not: told together with every other mistake, not one after another."""

from __future__ import annotations

from contextvars import ContextVar
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from sfumato.errors import InvalidInput, InvalidParameter, Mistakes

left_out: ContextVar[tuple[str, ...]] = ContextVar("left_out", default=())
"""The options that the command that runs needs and was not given."""


class ToldTogether(TyperCommand):
    """A command that runs without the options it needs: it calls `check_given` among its checks."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take what is missing as None, and keep how it is called."""
        ctx.allow_extra_args = True  # told below, in words that help
        needed = [one for one in self.params if one.required and one.param_type_name == "option"]
        try:
            rest = super().parse_args(ctx, list(args))
        except typer.BadParameter:  # of which a missing one is a kind: any other is raised again
            for one in needed:
                one.required = False
            try:
                rest = super().parse_args(ctx, list(args))
            finally:
                for one in needed:
                    one.required = True
        if rest:
            ctx.fail(_too_many(rest))
        left_out.set(tuple(one.opts[0] for one in needed if ctx.params[one.name] in (None, (), [])))
        return rest


def _too_many(words: list[str]) -> str:
    """What to say of words that no option takes: most often a shell has put files in the place of a pattern."""
    said = f"got unexpected {'argument' if len(words) == 1 else 'arguments'} {', '.join(words)}"
    file = Path(words[0])
    if not file.is_file():
        return f"{said}; nothing was read"
    pattern = file.with_name(f"*{file.suffix}")
    return (
        f"{said}: several files are one table by a pattern in quotes, as '{pattern}', which the shell "
        "leaves as it is; nothing was read"
    )


def check_given() -> None:
    """Refuse a command that was not given what it needs."""
    if missing := left_out.get():
        raise InvalidParameter(f"{', '.join(missing)} must be given; nothing was read")


def tell_with_files(mistakes: Mistakes, *read: Path | None) -> None:
    """Tell all mistakes, with files that are read and not there: alone, these are told by who reads them."""
    if mistakes.found:
        for path in read:
            with mistakes.noted():
                if path is not None and not path.exists():
                    raise InvalidInput(f"there is no file at {path}; nothing was read")
    mistakes.tell()

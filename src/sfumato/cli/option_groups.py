"""Options that several commands have, written once: a frozen value whose fields are options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeVar, get_type_hints

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class OptionGroup:
    """A parameter of a command that stands for several options, one for each of its fields."""

    def keywords(self) -> dict[str, Any]:
        """The options under their names, as pipelines take them."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


def grouped(command: Callable[P, R]) -> Callable[P, R]:
    """A command whose option groups are filled from the command line: typer sees their fields."""
    groups: dict[str, type[OptionGroup]] = {}
    seen: list[Parameter] = []
    for parameter in signature(command, eval_str=True).parameters.values():
        kind = parameter.annotation
        if isinstance(kind, type) and issubclass(kind, OptionGroup):
            groups[parameter.name] = kind
            if any(one.default is MISSING for one in fields(kind)):
                raise TypeError(f"every option of {kind.__name__} needs a default that is a value")
            hints = get_type_hints(kind, include_extras=True)
            seen += [
                Parameter(
                    one.name,
                    Parameter.KEYWORD_ONLY,
                    default=one.default,
                    annotation=hints[one.name],
                )
                for one in fields(kind)
            ]
        else:
            seen.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        given: dict[str, Any] = dict(kwargs)
        for name, kind in groups.items():
            given[name] = kind(**{one.name: given.pop(one.name) for one in fields(kind)})
        return command(*args, **given)

    del run.__wrapped__
    run.__signature__ = signature(command).replace(parameters=seen)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in seen}
    return run

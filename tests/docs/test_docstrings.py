"""Functions that a room exports say what their parameters are, in one form."""

from __future__ import annotations

import importlib
import inspect
import re
from types import FunctionType

import pytest
from docs.make_reference import rooms

pytestmark = pytest.mark.docs


def section(docstring: str, title: str) -> str:
    """The lines under `title:` in a Google-style docstring, without their indent."""
    found = re.search(rf"^{title}:\n((?:[ ]+.*\n?|\n(?=[ ]))+)", docstring, re.MULTILINE)
    return inspect.cleandoc("\n" + found[1]) if found else ""


def missing(function: FunctionType) -> list[str]:
    """Parameters that Args does not name, names in it that are no parameters, and a missing Returns."""
    docstring = inspect.cleandoc(function.__doc__ or "")
    parameters = set(inspect.signature(function).parameters)
    named = set(
        re.findall(r"^\*{0,2}(\w+)(?: \([^)]*\))?:", section(docstring, "Args"), re.MULTILINE)
    )
    faults = [f"no {name}" for name in sorted(parameters - named)]
    faults += [f"{name} is no parameter" for name in sorted(named - parameters)]
    returns = inspect.signature(function).return_annotation
    if returns not in {"None", None, "NoReturn"} and not re.search(
        r"^(Returns|Yields):\n", docstring, re.MULTILINE
    ):
        faults.append("no Returns")
    return faults


def exported_functions(room: str) -> dict[str, FunctionType]:
    door = importlib.import_module(room)
    values = {name: getattr(door, name) for name in door.__all__}
    return {name: value for name, value in values.items() if inspect.isfunction(value)}


@pytest.mark.parametrize("room", rooms())
def test_exported_functions_say_their_parameters(room: str) -> None:
    faults = {name: missing(value) for name, value in exported_functions(room).items()}
    assert not {name: lines for name, lines in faults.items() if lines}


def test_what_is_missing_is_seen() -> None:
    def good(x: float, *names: str) -> int:
        """Do it.

        Args:
            x: In metres,
                above 0.
            *names: Any.

        Returns:
            One.
        """
        raise NotImplementedError

    def bad(x: float, y: float) -> int:  # noqa: D417
        """Do it.

        Args:
            x: In metres.
            z: No parameter.
        """
        raise NotImplementedError

    def silent() -> None:
        """Do it."""

    assert missing(good) == []  # type: ignore[arg-type]
    assert missing(silent) == []  # type: ignore[arg-type]
    assert missing(bad) == ["no y", "z is no parameter", "no Returns"]  # type: ignore[arg-type]

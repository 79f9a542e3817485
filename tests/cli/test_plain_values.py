"""Plain words of the command line mean to us what they mean to typer, and all others are left to it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer.main
from typer._click.exceptions import UsageError

from sfumato.cli.main import app
from sfumato.cli.plain_values import _Plainly, take_plainly

pytestmark = pytest.mark.unit

WORDS = (
    "", "a", "user", "0", "1", "-1", "007", "1_000", "+3", " 3", "3 ", "1.5", "-0.25", ".5", "5.",
    "1e3", "1e999", "nan", "inf", "-0", "-0.0", "0x10", "99999999999999999999", "123456789012345",
    "true", "no", "-", ".", "..", "a//b/./c/", "~/x", "/etc/hostname", "é", "日本", "\uff11\uff12", "a\0b",
    "\ud800", "density", "DENSITY", "hour", "x" * 5000, "123.4567891234", "/etc/hostname/x",
    3, 0.5, True, b"ab", Path("a"), None,
)  # fmt: skip


def leaves(command: Any) -> Iterator[Any]:
    for one in getattr(command, "commands", {}).values():
        yield from leaves(one)
    yield from command.params


def outcome(parameter: Any, value: Any) -> tuple[str, str]:
    """What a parameter makes of a value, or says of it."""
    try:
        found = parameter.get_runtime_param().coerce(value, param=parameter, ctx=None)
    except (UsageError, ValueError, TypeError) as problem:
        return type(problem).__name__, str(problem)
    return type(found).__name__, repr(found)


def kinds() -> dict[str, Any]:
    """A parameter of each sort among all commands."""
    found: dict[str, Any] = {}
    for one in leaves(typer.main.get_command(app)):
        about = one.type_descriptor.parameter_info
        key = (one.type_descriptor.annotation, one.multiple, one.nargs, about.file_okay,
               about.dir_okay, about.min, about.max)  # fmt: skip
        found.setdefault(str(key), one)
    return found


@pytest.mark.parametrize("kind", sorted(kinds()))
def test_every_kind_of_option_means_what_typer_says(kind: str) -> None:
    parameter = kinds()[kind]
    several = parameter.multiple or parameter.nargs != 1
    default = parameter.default if not callable(parameter.default) else None
    for value in (*WORDS, default):
        for given in [value, [value], (value, "b"), [], ()] if several else [value]:
            parameter._runtime_param = None
            expected = outcome(parameter, given)
            parameter._runtime_param = None
            take_plainly([parameter])
            assert outcome(parameter, given) == expected, given


def test_a_parameter_with_rules_of_its_own_is_typers() -> None:
    def command(
        count: Annotated[int, typer.Option(min=0, clamp=True)] = 1,
        where: Annotated[Path, typer.Option(exists=True)] = Path("a"),
        name: Annotated[str, typer.Option(parser=str.upper)] = "a",
        plain: str = "",
    ) -> None:
        """Nothing."""

    small = typer.Typer(add_completion=False)
    small.command()(command)
    parameters: dict[Any, Any] = {one.name: one for one in typer.main.get_command(small).params}
    take_plainly(parameters.values())
    made = {name for name, one in parameters.items() if isinstance(one._runtime_param, _Plainly)}
    assert made == {"plain"}
    take_plainly([object()])  # another typer


def test_a_command_with_plain_words_loads_no_pydantic(tmp_path: Path) -> None:
    script = (
        "import sys, sfumato.cli.main\n"
        "try: sfumato.cli.main.main()\n"
        "finally: print('pydantic' in sys.modules)"
    )
    for words, loaded in (
        (["ledger", "show", "no.ledger"], False),
        (["heatmap", "hotspots", "no.json", "-k", "3", "--quiet"], False),
        (["heatmap", "draw", "no.json", "--out", "map.png"], False),
        (["heatmap", "hotspots", "no.json", "-k", "three"], True),
    ):
        done = subprocess.run(
            [sys.executable, "-c", script, *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout == f"{loaded}\n", done.stderr

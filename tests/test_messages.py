"""The library names parameters; only the command line knows how its flags are called."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import sfumato
from sfumato.cli.aloud import flags_of
from sfumato.cli.console import SPELLED, in_flags
from sfumato.cli.main import app

pytestmark = pytest.mark.unit

ROOT = Path(sfumato.__file__).parent
FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*")
COMMAND = re.compile(r"sfumato (?:[a-z]+ )+[^`';,]*")
"""A whole command line, which anybody can run as it stands."""


FLAGS_OF_MPYC = {"--no-prss", "--mix32-64bit"}
"""It reads them from the command line of its process, where ours puts them."""


def texts(source: str) -> Iterator[tuple[int, str]]:
    """The line and the text of every string that is no docstring; what is put into it is a dot."""
    tree = ast.parse(source)
    said = {
        id(one.value)
        for one in ast.walk(tree)
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)
    }
    parts = {
        id(part) for one in ast.walk(tree) if isinstance(one, ast.JoinedStr) for part in one.values
    }
    for one in ast.walk(tree):
        if isinstance(one, ast.JoinedStr):
            yield (
                one.lineno,
                "".join(
                    str(part.value) if isinstance(part, ast.Constant) else "."
                    for part in one.values
                ),
            )
        elif isinstance(one, ast.Constant) and id(one) not in said | parts:
            yield one.lineno, str(one.value)


def flags_in(source: str) -> list[tuple[int, str]]:
    return [
        (line, flag) for line, text in texts(source) for flag in FLAG.findall(COMMAND.sub("", text))
    ]


def all_flags(command: Any) -> set[str]:
    below = getattr(command, "commands", {}).values()
    return set(flags_of(command)).union(*map(all_flags, below))


def test_no_text_of_the_library_names_a_flag() -> None:
    named = [
        f"{file.relative_to(ROOT)}:{line} {flag}"
        for file in sorted(ROOT.rglob("*.py"))
        if "cli" not in file.relative_to(ROOT).parts
        for line, flag in flags_in(file.read_text(encoding="utf-8"))
        if flag not in FLAGS_OF_MPYC
    ]
    assert named == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('raise E("choose with --name; nothing")', ["--name"]),
        ('raise E(f"{x} goes with --bounds {y}")', ["--bounds"]),
        ('raise E(f"{x} goes " "without " f"--mass-per-period {y}")', ["--mass-per-period"]),
        ('def f():\n    """As `show --json` prints it."""', []),
        ('line = f"sfumato ledger create {path} --epsilon 1 --unit user"', []),
        ('raise E("`name` -- and this -1")', []),
    ],
)
def test_the_walk_sees_flags_and_passes_over_commands(source: str, found: list[str]) -> None:
    assert [flag for _, flag in flags_in(source)] == found


@pytest.mark.parametrize(
    ("text", "flags", "spelled"),
    [
        ("say `a_b`", {"--a-b"}, "say --a-b"),
        ("say `a=1`, `a='x y'`, `a=True`", {"--a"}, "say --a 1, --a x y, --a"),
        ("say `a`, `sfumato a b`, `A.b`", set(), "say `a`, `sfumato a b`, `A.b`"),
        ("give `max_mass`", {"--upper"}, "give --upper"),
        ("give `max_mass`", {"--max-mass", "--upper"}, "give --max-mass"),
        ("ask for `square=False`", {"--cells"}, "ask for --cells stretched"),
        ("costs: `loss`", {"--epsilon", "--rho"}, "costs: --epsilon with --delta, or --rho"),
        ("costs: `loss`", {"--rho"}, "costs: `loss`"),
    ],
)
def test_parameters_become_the_flags_of_the_command(
    text: str, flags: set[str], spelled: str
) -> None:
    assert in_flags(text, flags) == spelled


def test_every_other_spelling_is_a_flag_of_some_command() -> None:
    known = all_flags(typer.main.get_command(app))
    assert {flag.split()[0] for flag in SPELLED.values()} <= known


def test_outside_a_command_nothing_is_translated() -> None:
    assert in_flags("say `public`") == "say `public`"

"""The README's commands do what the README says they do.

Every ```console block is run, in order, in one empty directory, the environment's own commands
first on the path. `# exit N` ends a command that must fail so. Lines under a command are its
output, `...` standing for anything. `make X` must name a target; `pip install` and `git clone` must
be sound shell; none is run.

The first call of each command of ours in the README is of the real executable, and on another page of a
process that has read the libraries and nothing of ours; a later one is answered by a process that has
read all (tests/warm.py).
"""

from __future__ import annotations

import doctest
import re
import subprocess
from pathlib import Path

import pytest
from tests.warm import variables

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parent.parent.parent
NOT_RUN = ("pip install ", "git clone ", "make ")
STARTED = {"demo"}
"""What tests/cli/test_front_door.py runs by the real executable."""
SMALL = {"SFUMATO_HEATMAP_RELEASE_LEVELS": "6"}
"""Maps of other pages have 64 x 64 cells where they say no size: those of the README have all 256 x 256."""


def steps(text: str) -> list[tuple[str, int, str]]:
    """Each command of the console blocks with the exit code and the output it promises."""
    blocks = re.findall(r"^```console\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    found = []
    for part in re.split(r"^\$ ", "\n".join(blocks).replace("\\\n", ""), flags=re.MULTILINE)[1:]:
        line, _, output = part.partition("\n")
        promise = re.search(r"\s# exit (\d+)\s*$", line)
        command = line[: promise.start()] if promise else line
        found.append((command.strip(), int(promise[1]) if promise else 0, output))
    return found


def tidy(output: str) -> str:
    return "\n".join(line.rstrip() for line in output.strip("\n").splitlines()) + "\n"


def ours(command: str) -> set[str]:
    """Which of our commands a line calls: "heatmap release"; what follows a name is a file or an option."""
    return {found.strip() for found in re.findall(r"\bsfumato((?: [a-z]+(?![\w./:-]))*)", command)}


def broken(
    text: str,
    directory: Path,
    *,
    warm: Path | None = None,
    lukewarm: Path | None = None,
    known: set[str] | None = None,
) -> list[str]:
    """What the commands in text do otherwise than promised; those known are called in the folder warm."""
    faults, known = [], STARTED | (known or set())
    for command, code, output in steps(text):
        folder = warm if ours(command) <= known else lukewarm
        known |= ours(command)
        small = SMALL if lukewarm and "cells of" not in output else {}
        env = variables(*([folder] if folder else [])) | small
        if fault := fault_of(command, code, output, directory, env):
            faults.append(fault)
    return faults


def fault_of(command: str, code: int, output: str, directory: Path, env: dict[str, str]) -> str:
    if f"{command} ".startswith(NOT_RUN):
        return unsound(command)
    run = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=directory,
        env=env | {"XDG_CONFIG_HOME": str(directory / "no-config")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1800,  # a guard against what hangs, on whatever machine
    )
    if run.returncode != code:
        return f"$ {command}\nexits {run.returncode}, the README says {code}:\n{run.stdout}"
    matches = doctest.OutputChecker().check_output(tidy(output), tidy(run.stdout), doctest.ELLIPSIS)
    if output.strip() and not matches:
        return f"$ {command}\nprints:\n{run.stdout}\nthe README says:\n{output}"
    return ""


def unsound(command: str) -> str:
    """Why a command we do not run could not be run either."""
    if subprocess.run(["bash", "-n", "-c", command], check=False).returncode:
        return f"$ {command}\nis no sound shell"
    wanted = [word for line in re.findall(r"\bmake ([^&|;]+)", command) for word in line.split()]
    targets = re.findall(r"^([a-z]+):(?!=)", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    missing = [
        word
        for word in wanted
        if word not in targets and not word.startswith("-") and "=" not in word
    ]
    return f"$ {command}\nthe Makefile has no target {', '.join(missing)}" if missing else ""


def test_the_readme_keeps_its_word(warm: Path, tmp_path: Path) -> None:
    readme = ROOT / "README.md"
    assert readme.exists(), "there is no README.md"
    assert steps(readme.read_text()), "README.md has no ```console block with a line beginning '$ '"
    faults = broken(readme.read_text(), tmp_path, warm=warm)
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    "block",
    [
        "$ true",
        "$ exit 3  # exit 3",
        "$ echo one; echo two >&2\none\ntwo",
        "$ seq 9\n1\n...\n9",
        "$ echo a > file\n$ cat file\na",
        "$ echo a \\\n  b\na b",
        "$ make test PYTHON=python3.12",
        "$ git clone no-such-place sfumato && cd sfumato && make demo",
        "$ python -c 'import sfumato'",
    ],
)
def test_a_true_block_passes(block: str, tmp_path: Path) -> None:
    assert not broken(f"Text.\n\n```console\n{block}\n```\n", tmp_path)


@pytest.mark.parametrize(
    "block",
    [
        "$ false",
        "$ true  # exit 3",
        "$ false | true",
        "$ echo one\ntwo",
        "$ seq 9\n1\n...\n8",
        "$ no-such-command",
        "$ make tea",
        "$ git clone no-such-place && make tea",
        "$ pip install 'sfumato",
    ],
)
def test_a_false_block_fails(block: str, tmp_path: Path) -> None:
    assert broken(f"Text.\n\n```console\n{block}\n```\n", tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        "sfumato --version",
        "sfumato heatmap --help | tail -n 3",
        "sfumato ledger create a --epsilon 1 --unit user --source a && cd .. && sfumato ledger show in/a",
        "sfumato ledger create a --epsilon 1/3 --unit ü --source a; sfumato ledger show a --json 2>&1 >b",
        "sfumato ledger show no.ledger 2>/dev/null | cat",
        "SFUMATO_CONFIG=no.toml sfumato ledger show no.ledger",
        "sfumato --help | sfumato --help | head -n 1",
    ],
)
def test_the_warm_command_is_the_command(line: str, warm: Path, tmp_path: Path) -> None:
    """Exit code, both streams and the files it leaves; what differs from run to run is told in one word."""
    found = []
    for folders in ([], [warm]):
        here = tmp_path / str(len(folders)) / "in"
        here.mkdir(parents=True)
        run = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            cwd=here,
            env=variables(*folders),
            capture_output=True,
        )
        said = [
            re.sub(rb"[0-9a-f]{16,}|[0-9]{4}-[0-9T:.+-]*Z?", b"#", out)
            for out in (run.stdout, run.stderr)
        ]
        said = [text.replace(str(here).encode(), b"here") for text in said]
        found.append((run.returncode, *said, sorted(file.name for file in here.iterdir())))
    assert found[0] == found[1]


def test_our_commands_are_found_in_a_line() -> None:
    assert ours("sfumato heatmap release a.csv --user user && cat a | sfumato demo --out b") == {
        "heatmap release",
        "demo",
    }
    assert ours("sfumato") == {""}
    assert ours("ls city.ledger") == set()


def test_other_blocks_are_not_commands() -> None:
    assert not steps("```python\n$ false\n```\n```\n$ false\n```\n")

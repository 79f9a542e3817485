"""The command `sfumato`: quick to start, quiet about data, one sentence for a mistake, a real demo."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

import sfumato
from sfumato import report
from sfumato.cli.main import app, tree_for
from sfumato.heatmap import read_heatmap
from sfumato.heatmap.benchmark import demo_city
from sfumato.privacy import Ledger, PureDP
from sfumato.privacy.ledger import Spent

pytestmark = pytest.mark.unit

COMMAND = str(Path(sys.executable).parent / "sfumato")
HEAVY = [
    "cryptography", "dp_accounting", "matplotlib", "mpmath", "numba", "numpy", "opendp", "scipy", "sqlite3",
]  # fmt: skip
COLOR = re.compile(r"\x1b\[[0-9;]*[34][0-7]")
HANGS = 600
MODULES = 500
"""More than `--help` reads, by a quarter."""
"""Seconds after which a process will not end any more, however busy the machine is."""
CREATE = ["ledger", "create", "city.ledger", "--epsilon", "1"]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative names, no config file and no variables from outside."""
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith("SFUMATO_") or name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
            monkeypatch.delenv(name)


def run(*words: str, **env: str) -> Result:
    result = CliRunner().invoke(app, list(words), env=env)
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result


def process(
    *words: str, before: tuple[str, ...] = (), **env: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*before, COMMAND, *words],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
    )


# starting


@pytest.mark.parametrize(
    "words", [[], ["--help"], ["ledger", "--help"], ["--version"], ["ledger", "show"]]
)
def test_heavy_packages_wait_until_they_are_needed(words: list[str]) -> None:
    script = (
        "import sys, sfumato.cli.main\n"
        "try:\n"
        "    if len(sys.argv) > 1: sfumato.cli.main.main()\n"
        "finally:\n"
        "    print('loaded', *sorted(set(sys.modules)))"
    )
    found = subprocess.run(
        [sys.executable, "-c", script, *words],
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
    )
    *_, loaded = found.stdout.splitlines()
    assert "sfumato.cli.main" in loaded.split()
    assert not set(HEAVY) & set(loaded.split())
    # Starting takes as long as modules take to read: their number is the same on every machine.
    assert len(loaded.split()) < MODULES


def test_a_command_is_built_without_the_others_where_nobody_looks_at_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = [
        *(one.name for one in app.registered_groups),
        *(one.name for one in app.registered_commands),
    ]
    for name in map(str, names):
        small = tree_for([name, "--help"])
        assert len([*small.registered_groups, *small.registered_commands]) == 1
        whole, part = (CliRunner().invoke(tree, [name, "--help"]) for tree in (app, small))
        assert (part.exit_code, part.output) == (whole.exit_code, whole.output)
    assert len([*app.registered_groups, *app.registered_commands]) == len(names)
    for words in ([], ["--help"], ["--version"], ["ledgers"], ["--config", "ledger"]):
        assert tree_for(words) is app
    for variable in ("SFUMATO_HEATMAP_RELEASE_EPSILON", "_SFUMATO_COMPLETE"):
        with monkeypatch.context() as patch:
            patch.setenv(variable, "1")
            assert tree_for(["ledger"]) is app
    Path("sfumato.toml").write_text("")
    assert tree_for(["ledger"]) is app


def test_the_interpreter_runs_the_command_too() -> None:
    found = subprocess.run(
        [sys.executable, "-m", "sfumato", "--version"],
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
    )
    assert (found.returncode, found.stdout) == (0, f"sfumato {sfumato.__version__}\n")


def test_noise_brings_along_the_samplers_alone() -> None:
    """Not OpenDP's prelude, which takes sklearn and more with it."""
    script = (
        "import sys\n"
        "from sfumato.privacy.noise.system import SystemNoise\n"
        "SystemNoise().laplace(3, 2), SystemNoise().gaussian(3, 2)\n"
        "print(*sorted(set(sys.modules)))"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=HANGS, check=True
    )
    loaded = set(found.stdout.split())
    assert "opendp.measurements" in loaded
    assert not {"sklearn", "pandas", "polars", "opendp.prelude"} & loaded


def test_help_tells_of_every_command_and_exit_code() -> None:
    result = run("--help", COLUMNS="100")
    assert result.exit_code == 0
    assert result.stderr == ""
    for word in ("demo", "ledger", "0 done", "3 budget refused", "5 inconclusive", "sfumato.toml"):
        assert word in " ".join(result.stdout.split())
    assert run("-h").stdout == run("--help").stdout
    listed = re.findall(r"^│ ([a-z]+) {2,}\w", result.stdout, re.MULTILINE)
    assert listed[:3] == ["heatmap", "ledger", "sense"], "what most look for stands first"


def test_a_bare_call_shows_the_help() -> None:
    assert "Usage: " in run().output
    assert "Usage: " in run("ledger").output


def test_the_version_is_that_of_the_package() -> None:
    assert process("--version").stdout == f"sfumato {sfumato.__version__}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_can_complete_commands(shell: str) -> None:
    found = process(_SFUMATO_COMPLETE=f"source_{shell}")
    assert found.returncode == 0
    assert "_SFUMATO_COMPLETE" in found.stdout
    assert "sfumato" in found.stdout


def test_completion_knows_the_commands() -> None:
    found = process(_SFUMATO_COMPLETE="complete_bash", COMP_WORDS="sfumato ledger ", COMP_CWORD="2")
    assert found.stdout.split() == [
        "create", "show", "move", "close", "convert", "verify",
    ]  # fmt: skip


def test_color_is_an_offer() -> None:
    assert COLOR.search(process("--help", FORCE_COLOR="1").stdout)
    assert not COLOR.search(process("--help", FORCE_COLOR="1", NO_COLOR="1").stdout)
    assert "\x1b" not in process("--help").stdout


# mistakes


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--no-such-option"], 2),
        (["no-such-command"], 2),
        (["ledger", "create", "x", "--epsilon", "much", "--unit", "u", "--source", "s"], 2),
        (["demo", "--epsilon", "0"], 2),
        (["ledger", "show", "no.ledger"], 4),
        (["ledger", "show", "."], 4),
        (["ledger", "create", "/", "--epsilon", "1", "--unit", "u", "--source", "s"], 4),
        (["--config", "no.toml", "ledger", "show", "no.ledger"], 4),
        (["ledger", "verify", "thesis.txt"], 1),
        (["demo", "--out", "thesis.txt"], 4),
        (["demo", "--out", "/proc/nowhere"], 4),
    ],
)
def test_a_mistake_ends_without_a_traceback(words: list[str], code: int) -> None:
    Path("thesis.txt").write_text("my thesis\n" * 1000)
    found = process(*words)
    assert found.returncode == code, found.stderr
    assert found.stdout == ""
    assert found.stderr
    assert "Traceback" not in found.stderr
    if code != 2:
        assert len(found.stderr.splitlines()) == 1
    assert [file.name for file in Path().iterdir()] == ["thesis.txt"]
    assert Path("thesis.txt").read_text() == "my thesis\n" * 1000


def test_an_unforeseen_error_shows_no_values() -> None:
    """S16: a traceback may show our lines, never what the variables in them hold."""
    script = (
        "import sfumato.heatmap.benchmark.demo_city as demo\n"
        "def made_up(users, **where):\n"
        "    secret = 987_654_321 * 1000\n"
        "    raise RuntimeError('unforeseen')\n"
        "demo.check_ins = made_up\n"
        "from sfumato.cli.main import main\n"
        "main()"
    )
    found = subprocess.run(
        [sys.executable, "-c", script, "demo"],
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
    )
    assert found.returncode == 1
    assert "RuntimeError: unforeseen" in found.stderr
    assert "987654321000" not in found.stderr + found.stdout


# defaults from a file and from variables


def made(*words: str, **env: str) -> dict[str, Any]:
    """The ledger a call makes."""
    Path("city.ledger").unlink(missing_ok=True)
    result = run(*words, **env)
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(run("ledger", "show", "city.ledger", "--json").stdout)
    return found


def test_an_option_wins_over_a_variable_over_the_file_over_the_default() -> None:
    variable = {"SFUMATO_LEDGER_CREATE_SOURCE": "variable"}
    assert run(*CREATE, "--unit", "user").exit_code == 2  # no default for the source
    Path("sfumato.toml").write_text('[ledger.create]\nsource = "file"\nunit = "household"\n')
    assert made(*CREATE)["source"] == "file"
    assert made(*CREATE, **variable)["source"] == "variable"
    assert made(*CREATE, "--source", "option", **variable)["source"] == "option"
    assert made(*CREATE)["unit"] == "household"
    assert made(*CREATE)["model"] == "central"


def test_the_file_can_be_named() -> None:
    Path("sfumato.toml").write_text('[ledger.create]\nsource = "here"\nunit = "user"\n')
    for name in ("a", "b"):
        Path(f"{name}.toml").write_text(f'[ledger.create]\nsource = "{name}"\nunit = "user"\n')
    assert made(*CREATE)["source"] == "here"
    assert made(*CREATE, SFUMATO_CONFIG="a.toml")["source"] == "a"
    assert made("--config", "b.toml", *CREATE, SFUMATO_CONFIG="a.toml")["source"] == "b"


def test_numbers_in_the_file_are_exact() -> None:
    Path("sfumato.toml").write_text(
        '[ledger.create]\nunit = "user"\nsource = "city"\nneighbors = "moved-mass"\nradius = 0.1\n'
        'metric = "line"\nmodel = "local"\n'
    )
    found = made(*CREATE)
    assert found["neighbors"] == {"kind": "MovedMass", "radius": "1/10", "metric": "line"}
    assert found["model"] == "local"


def test_the_file_may_set_what_is_printed() -> None:
    Path("sfumato.toml").write_text(
        '[ledger.create]\nunit = "user"\nsource = "city"\nquiet = true\n[ledger.show]\njson = true\n'
    )
    said = "ledger.create.unit, ledger.create.source, ledger.create.quiet"
    assert run(*CREATE).output == f"sfumato: sfumato.toml sets {said}\n"
    assert json.loads(run("ledger", "show", "city.ledger").stdout)["source"] == "city"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("[ledger.create]\nsauce = 1", "sets 'ledger.create.sauce', which is no command or option"),
        ("[ledger.spend]\nunit = 1", "sets 'ledger.spend', which is no command or option"),
        ("[heat]\nmap = 1", "sets 'heat', which is no command or option"),
        ("unit = 'user'", "sets 'unit', which is no command or option"),
        ("config = 'other.toml'", "sets 'config', which is no command or option"),
        ("[ledger\n", "is not TOML: "),
    ],
)
def test_a_file_that_sets_what_does_not_exist_is_refused(content: str, sentence: str) -> None:
    Path("sfumato.toml").write_text(content)
    result = run(*CREATE, "--unit", "user", "--source", "city")
    assert (result.exit_code, result.stdout) == (4, "")
    assert result.stderr.startswith(f"sfumato: the config file sfumato.toml {sentence}")
    assert len(result.stderr.splitlines()) == 1
    assert not Path("city.ledger").exists()


def test_a_file_that_is_not_there_is_refused() -> None:
    result = run("--config", "no.toml", *CREATE, "--unit", "user", "--source", "city")
    assert result.exit_code == 4
    assert (
        result.stderr == "sfumato: cannot read the config file no.toml: No such file or directory\n"
    )


# the demo


def no_network() -> tuple[str, ...]:
    """What to put before a command so that it has no network, where the machine allows that."""
    cut = ("unshare", "--net", "--map-root-user")
    if (
        shutil.which("unshare")
        and not subprocess.run([*cut, "true"], capture_output=True, check=False).returncode
    ):
        return cut
    return ()


@pytest.fixture(scope="module")
def shown(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """One run of the demo in a process of its own, cut off from every network."""
    out = tmp_path_factory.mktemp("demo") / "out"
    clean = {name: "" for name in os.environ if name.startswith("SFUMATO_")}
    return out, process("demo", "--out", str(out), "--json", before=no_network(), **clean)


ERRORS = ("similarity", "pearson", "kl", "emd", "emd_metres")
Shown = tuple[Path, "subprocess.CompletedProcess[str]"]


def test_the_demo_leaves_a_report_a_picture_a_release_and_a_ledger(shown: Shown) -> None:
    out, found = shown
    assert found.returncode == 0, found.stderr
    assert found.stderr == ""
    result = json.loads(found.stdout)
    assert list(result) == [
        "report", "check_ins", "maps", "ledger", "guarantee", "refused", *ERRORS, "corridor", "network"
    ]  # fmt: skip
    assert sorted(file.name for file in out.iterdir()) == [
        "checkins.parquet", "city.ledger", "corridor.json", "corridor.ledger", "corridor.png", "map.geojson",
        "map.html", "map.json", "map.png", "network.json", "network.ledger", "network.png", "report.html",
        "side-by-side.png",
    ]  # fmt: skip
    assert all(Path(result[name]).parent == out for name in ("report", "check_ins", "ledger"))
    assert (
        result["guarantee"] == "epsilon 1 for each user (one user added or removed), central model"
    )
    assert (
        result["refused"]
        == f"asked epsilon 1, 0 left in {out / 'city.ledger'}; nothing was released"
    )
    assert (out / "map.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_the_demo_pays_exactly_for_what_it_releases(shown: Shown) -> None:
    out, _ = shown
    ledger, made = Ledger(out / "city.ledger"), read_heatmap(out / "map.json")
    statement = ledger.statement()
    assert statement.spent == Spent(epsilon=Fraction(1))
    assert statement.left == PureDP(0)
    assert [entry.number for entry in statement.entries] == [made.receipt.entry.number] == [1]
    assert made.area.grid.levels == demo_city.LEVELS
    assert not made.receipt.rehearsal
    result = run("ledger", "verify", str(out / "city.ledger"), "--against", str(out / "map.json"))
    assert result.exit_code == 0, result.stderr


def test_the_report_fetches_nothing(shown: Shown) -> None:
    page = (shown[0] / "report.html").read_text()
    policy = re.search(r'<meta http-equiv="Content-Security-Policy"\s+content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].split() == [
        "default-src",
        "'none';",
        "img-src",
        "data:;",
        "style-src",
        "'unsafe-inline'",
    ]
    assert not re.search(
        r"(?i)\b(https?|ftp|file|javascript):|url\(|@import|<(script|link|iframe|object)\b", page
    )
    sources = re.findall(r'(?i)\b(?:src|href|srcset|action|poster)\s*=\s*"?([^"\s>]*)', page)
    assert sources
    assert all(source.startswith("data:image/png;base64,") for source in sources)


def test_a_quiet_demo_says_where_its_report_is(
    shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a demo leaves was looked at above: this one only says its steps and gives its result."""
    result = report.DemoResult.from_json(json.loads(shown[1].stdout))

    def run_demo(out: Path, *, epsilon: str, watch: Callable[[str], None]) -> report.DemoResult:
        watch("a step")
        return replace(result, report=str(out / "report.html"))

    monkeypatch.setattr(report, "run_demo", run_demo)
    for words, steps in (((), "a step\n"), (("--quiet",), "")):
        said = run("demo", "--out", "out", *words)
        assert said.exit_code == 0, said.stderr
        assert said.stdout == f"report: {Path('out/report.html')}\n"
        assert said.stderr == steps


def test_the_demo_keeps_the_ledger_of_another_source() -> None:
    Path("mine").mkdir()
    real = Ledger.create("mine/city.ledger", PureDP(1), unit="user", source="my city")
    content = real.path.read_bytes()
    result = run("demo", "--out", "mine")
    assert (result.exit_code, result.stdout) == (4, "")
    assert "mine/city.ledger accounts for another source and is kept" in result.stderr
    assert [file.name for file in Path("mine").iterdir()] == ["city.ledger"]
    assert real.path.read_bytes() == content


@pytest.mark.parametrize("epsilon", ["0", "-1", "much", "1/0", ""])
def test_the_demo_needs_a_budget(epsilon: str) -> None:
    result = run("demo", "--out", "out", "--epsilon", epsilon)
    assert (result.exit_code, result.stdout) == (2, "")
    assert not Path("out").exists()


def crowd(people: int) -> Callable[..., Any]:
    """A city whose people all stand on one spot."""
    west, south, _, _ = demo_city.BOUNDS
    return lambda *_, **__: pa.table(
        {
            "user": np.arange(people),
            "lon": np.full(people, west + 0.03),
            "lat": np.full(people, south + 0.03),
        }
    )


def test_the_demo_writes_no_private_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """S15, S16: two cities, the same words; a count is in no output and in no byte of the ledger."""
    outputs = []
    for out, people in (("one", 1), ("all", 123_457)):
        monkeypatch.setattr(demo_city, "check_ins", crowd(people))
        result = run("demo", "--out", out, "--json")
        assert result.exit_code == 0, result.stderr
        page = re.sub(r'base64,[^"]*', "", Path(out, "report.html").read_text())
        for text in (result.output, page, Path(out, "city.ledger").read_bytes().decode("latin-1")):
            # Six digits are also in one noisy double of 100,000 and in one hash of 300,000: what
            # follows a decimal point and whatever is too long for a count is no place for it.
            told = re.sub(r"\.[0-9]+|[0-9a-f]{16,}", "", text)
            assert "123457" not in told
            assert "123,457" not in told
        found = json.loads(result.stdout)
        # Exact errors of a made-up city, and noisy places: the tables of them have the same shape.
        words = re.sub(r"<td>[-0-9.e%]*</td>", "<td></td>", page)
        # What is recovered from sensors is told in words of its own; its people are not those of
        # the city.
        words = re.sub(
            r"(explains what it got: |community it came from: |off by )[^\n]*", "", words
        )
        words = re.sub(r"set [0-9a-f]{16}", "set", words)
        for name in ("corridor", "network"):
            del found[name]
        outputs.append(
            (json.dumps({**found, **dict.fromkeys(ERRORS)}) + words).replace(f"{out}/", "out/")
        )
    assert outputs[0] == outputs[1]

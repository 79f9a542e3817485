"""What must be said aloud counts on the command line only, in every command; a config file is announced."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from docs.make_reference import command_page
from typer.testing import CliRunner, Result

from sfumato.cli.main import app
from sfumato.privacy import Ledger, PureDP

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]

# Written down here once more: the table of the package must not be judged by itself.
ALOUD = {
    "public", "one_row_one_user", "prior", "per_source", "largest", "beside", "baseline", "reference",
    "most_epsilon", "most_delta",
    "epsilon", "delta", "rho", "budget_epsilon", "budget_delta", "window", "since", "until",
    "share", "bounds_share", "mass_per_period", "mass_per_value", "method_option",
    "overwrite", "team", "other_table", "anew",
}  # fmt: skip
COSTS = {
    "most_epsilon", "most_delta",
    "epsilon", "delta", "rho", "budget_epsilon", "budget_delta", "window", "since", "until", "share",
    "bounds_share", "mass_per_period", "mass_per_value", "method_option", "team", "other_table",
    "anew",
}  # fmt: skip
ANOTHER_THING = {
    "graph limits rho", "graph simulate rho", "sense whisper locate share", "heatmap release team",
    "joint release team", "shuffle collect team", "ledger show team",
}  # fmt: skip
OTHERS = """
    curious days me names parties timeout
    answers ask at_most campaign listen place
    adder anybody at batch devices enrolled listen memory shuffler token trial units wait
    ambient each over_bounds offsets origin passphrase passphrase_file replaced round_time sensor value
    against as_shares audits average band between bits blur bound bounds bounds_file budget by calibration
    cells certify cities claim columns command communities confidence config connection count
    coverage crs curves data delimiter details device diffusion_time dry_run edges end engine entry
    estimator every_cell fail_below family fit frames graph grid h3_resolution image input inputs
    install_completion json k key kind labels largest_part last layout ledger legend length levels
    line list_only maps mass masses matrix method methods metric mixed model most mouth_to_mouth n
    name neighbors nodes normalize note offset on once operator operator_option out outer outline outputs
    over paid_only pair pairs period places plane plot pooling
    proximity quick
    quiet radius rate readings roads relation report
    rows rows_per_user runs samples seed sensors show_completion
    sigma site some source sources space specification speed start step strength swapped text_coordinates time
    time_zone title top trials unit upper user users values version want weight weight_cap weight_step width
    windows without_suspects x y zones history rounds height template
    chance protect_starts_within spread steps target
    host keep largest_upload mqtt mqtt_ca mqtt_password noise port site_out
"""
FREE = set(OTHERS.split())


def options(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every option of every command, with the words of its command."""
    for parameter in command.params:
        if parameter.param_type_name == "option":
            yield " ".join(path), parameter
    for name, below in getattr(command, "commands", {}).items():
        yield from options(below, (*path, name))


EVERY = [(path, option.name) for path, option in options(typer.main.get_command(app))]
MUST = [
    (path, name) for path, name in EVERY if name in ALOUD and f"{path} {name}" not in ANOTHER_THING
]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative names, no config file and no variables from outside."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("SFUMATO_")]:
        monkeypatch.delenv(name)


def run(*words: str, **env: str) -> Result:
    result = CliRunner().invoke(app, list(words), env=env)
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result


def test_every_option_of_every_command_is_one_or_the_other() -> None:
    assert len(MUST) >= 50
    assert not ALOUD & FREE
    undecided = {f"{path} --{name}" for path, name in EVERY if name not in ALOUD | FREE}
    assert not undecided, "say in this test, and in cli/aloud.py, whether they must be said aloud"
    assert {f"{path} {name}" for path, name in EVERY} >= ANOTHER_THING


def listed(text: str, begin: str, end: str) -> set[str]:
    """Options named between two places of a text."""
    _, found, rest = text.partition(begin)
    assert found, f"there is no {begin!r}"
    return {word.replace("-", "_") for word in re.findall(r"--([a-z-]+)", rest.partition(end)[0])}


def test_the_pages_name_what_must_be_said_aloud() -> None:
    """All of it on the page that explains it; elsewhere budgets and costs are not listed one by one."""
    assert (
        listed(
            (ROOT / "docs/how-to/ledger.md").read_text(), "Some words count", "A file or a variable"
        )
        == ALOUD
    )
    help_ = app.info.epilog or ""
    for text, begin, end in (
        ((ROOT / "docs/threat-model.md").read_text(), "what declares, pays or replaces (", ")"),
        ((ROOT / "CHANGELOG.md").read_text(), "### Privacy", "count on the command line only"),
        (command_page(), "must be said aloud: budgets and costs", "\n"),
        (help_, "must be said aloud: budgets and costs", "\n"),
    ):
        assert listed(text, begin, end) == ALOUD - COSTS, begin


@pytest.mark.parametrize(("path", "name"), MUST)
def test_a_file_cannot_say_it(path: str, name: str) -> None:
    table, key = path.replace(" ", "."), name.replace("_", "-")
    Path("sfumato.toml").write_text(f"[{table}]\n{key} = {'true' if 'o' in key else '1'}\n")
    result = run("ledger", "show", "a.ledger")
    assert (result.exit_code, result.stdout) == (4, "")
    assert result.stderr == (
        f"sfumato: the config file sfumato.toml sets '{table}.{key}', which counts on the command line "
        "only; take it out; nothing was done\n"
    ), "it was taken from a file"


@pytest.mark.parametrize(
    "line", ["one_row_one_user = true", "one-row-one-user = false", "overwrite = []"]
)
def test_a_file_cannot_say_it_in_another_way(line: str) -> None:
    Path("sfumato.toml").write_text(f"[heatmap.release]\n{line}\n")
    assert "counts on the command line only" in run("ledger", "show", "a.ledger").stderr


@pytest.mark.parametrize(("path", "name"), MUST)
def test_a_variable_cannot_say_it(path: str, name: str) -> None:
    variable = f"SFUMATO {path} {name}".upper().replace(" ", "_").replace("-", "_")
    result = run("ledger", "show", "a.ledger", **{variable: "1"})
    assert (result.exit_code, result.stdout) == (4, "")
    assert result.stderr == (
        f"sfumato: the variable {variable} sets --{name.replace('_', '-')} of '{path}', which counts on the "
        "command line only; unset it; nothing was done\n"
    ), "it was taken from a variable"


def test_no_variable_is_read_or_offered_for_it() -> None:
    root = typer.main.get_command(app)
    context = typer.Context(root, auto_envvar_prefix="SFUMATO")
    judged = [option for path, option in options(root) if (path, option.name) in MUST]
    assert len(judged) == len(MUST)
    for option in judged:
        assert not option.allow_from_autoenv
        assert option.resolve_envvar_value(context) is None
        assert "env var" not in (option.get_help_record(context) or ("", ""))[1]


def test_an_empty_variable_sets_nothing() -> None:
    Ledger.create("a.ledger", PureDP(1), unit="user", source="city")
    assert run("ledger", "show", "a.ledger", SFUMATO_LEDGER_CREATE_EPSILON="").exit_code == 0


def test_a_table_is_never_rehearsed_by_a_default() -> None:
    """The whole way: exact numbers of rows that nobody declared public, and a ledger nobody gave a budget."""
    Path("rows.csv").write_text("user,lon,lat\n1,0.5,0.5\n")
    words = [
        "rehearse",
        "rows.csv",
        "--user",
        "user",
        "--bounds",
        "0,0,1,1",
        "--epsilon",
        "1",
        "--out",
        "m.json",
    ]
    refused = run("heatmap", *words, SFUMATO_HEATMAP_REHEARSE_PUBLIC="1")
    assert (refused.exit_code, refused.stdout) == (4, "")
    made = run(
        "ledger",
        "create",
        "b.ledger",
        "--unit",
        "u",
        "--source",
        "s",
        SFUMATO_LEDGER_CREATE_EPSILON="9",
    )
    assert made.exit_code == 4
    assert sorted(path.name for path in Path().iterdir()) == ["rows.csv"]


@pytest.mark.parametrize("path", sorted(ANOTHER_THING))
def test_a_word_that_means_something_else_may_be_set(path: str) -> None:
    *table, key = path.split()
    Path("sfumato.toml").write_text(f"[{'.'.join(table)}]\n{key} = 0.5\n")
    *announced, told = run("ledger", "show", "a.ledger").stderr.splitlines()
    assert told.startswith("sfumato: there is no ledger at a.ledger")
    used = [f"sfumato: sfumato.toml sets {'.'.join(table)}.{key}"]
    assert announced == (used if table == ["ledger", "show"] else [])


# a file that is used


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_a_file_that_is_used_is_announced(quiet: list[str]) -> None:
    Path("sfumato.toml").write_text(
        '[ledger.create]\nunit = "user"\nsource = "city"\n[heatmap.release]\nx = "a"\n'
    )
    made = run("ledger", "create", "b.ledger", "--epsilon", "1", *quiet)
    assert made.exit_code == 0
    said, *rest = made.stderr.splitlines()
    assert said == "sfumato: sfumato.toml sets ledger.create.unit, ledger.create.source"
    assert bool(rest) != bool(quiet)


def test_a_file_cannot_hush_its_own_announcement() -> None:
    Path("sfumato.toml").write_text(
        '[ledger.create]\nunit = "user"\nsource = "city"\nquiet = true\n'
    )
    made = run("ledger", "create", "b.ledger", "--epsilon", "1")
    assert made.stderr == (
        "sfumato: sfumato.toml sets ledger.create.unit, ledger.create.source, ledger.create.quiet\n"
    )


@pytest.mark.parametrize("words", [["--config", "other.toml"], []])
def test_a_file_by_name_is_announced_by_its_name(words: list[str]) -> None:
    Ledger.create("a.ledger", PureDP(1), unit="user", source="city")
    Path("other.toml").write_text("[ledger.show]\njson = true\n")
    found = run(
        *words, "ledger", "show", "a.ledger", **({} if words else {"SFUMATO_CONFIG": "other.toml"})
    )
    assert found.stderr == "sfumato: other.toml sets ledger.show.json\n"


def test_a_file_that_is_not_used_is_not_announced() -> None:
    Ledger.create("a.ledger", PureDP(1), unit="user", source="city")
    assert run("ledger", "show", "a.ledger").stderr == ""
    Path("sfumato.toml").write_text('[heatmap.release]\nx = "a"\n')
    assert run("ledger", "show", "a.ledger").stderr == ""


def test_only_what_the_command_takes_is_announced() -> None:
    Ledger.create("a.ledger", PureDP(1), unit="user", source="city")
    Path("sfumato.toml").write_text('[ledger.create]\nunit = "user"\n[ledger.show]\njson = true\n')
    assert (
        run("ledger", "show", "a.ledger").stderr == "sfumato: sfumato.toml sets ledger.show.json\n"
    )
    assert "sets ledger.show.json\n" in run("ledger", "--", "show", "a.ledger").stderr
    assert run("ledger", "verify", "a.ledger").stderr == ""
    assert "sets" not in run("ledger").stderr
    # Also where the command is refused: what the file says may be why.
    assert run("ledger", "create", "--no").stderr.startswith(
        "sfumato: sfumato.toml sets ledger.create.unit\n"
    )


def test_groups_take_no_options() -> None:
    """Their words would stand before the name of the command, and are not read there."""

    def groups(command: Any) -> Iterator[Any]:
        for below in getattr(command, "commands", {}).values():
            if hasattr(below, "commands"):
                yield below
                yield from groups(below)

    found = list(groups(typer.main.get_command(app)))
    assert len(found) > 5
    assert not [group.name for group in found if group.params]


def test_commands_below_two_groups_are_announced() -> None:
    Path("sfumato.toml").write_text(
        "[sense.whisper.locate]\nshare = 0.5\n[sense.whisper.release]\nquiet = true\n"
    )
    said = run("sense", "whisper", "locate", "no.csv", "no.csv").stderr.splitlines()
    assert said[0] == "sfumato: sfumato.toml sets sense.whisper.locate.share"

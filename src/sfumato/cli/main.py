"""The root command: what is common to all, and the list of them."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Annotated

import typer

from sfumato import __version__
from sfumato._process import make_own
from sfumato.cli import demo, emd, graph, leaderboard, ledger, serve
from sfumato.cli.aloud import PATH, SpokenGroup, refuse_variables
from sfumato.cli.audit import claims as audit
from sfumato.cli.config import defaults, file_of_defaults, taken
from sfumato.cli.console import fail, say
from sfumato.cli.endings import INVALID, MEANINGS, run_to_end
from sfumato.cli.heatmap import maps as heatmap
from sfumato.cli.network import collect, sensor
from sfumato.cli.parties import joint, local, shuffle
from sfumato.cli.sense import keys as sense_keys
from sfumato.cli.sense import readings as sense
from sfumato.errors import InvalidInput

PREFIX = "SFUMATO"

app = typer.Typer(
    name="sfumato",
    help="Release where things are, privately: the geography survives, the exact places do not.",
    epilog=f"Exit codes: {', '.join(f'{code} {means}' for code, means in MEANINGS.items())}. "
    "Options can be set by a variable SFUMATO_COMMAND_OPTION or in sfumato.toml, but not "
    "what must be said aloud: budgets and costs, --public, --one-row-one-user, --prior, "
    "--per-source, --beside, --largest, --baseline, --reference, --overwrite.",
    cls=SpokenGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"auto_envvar_prefix": PREFIX, "help_option_names": ["-h", "--help"]},
)
app.add_typer(heatmap.app, name="heatmap")
app.add_typer(sense.app, name="sense")
app.add_typer(audit.app, name="audit")
app.add_typer(graph.app, name="graph")
app.add_typer(ledger.app, name="ledger")
app.add_typer(joint.app, name="joint")
app.add_typer(local.app, name="local")
app.add_typer(sensor.app, name="sensor")
app.add_typer(sense_keys.keys, name="keys")
app.command("unseal")(sensor.unseal)
app.command("collect")(collect.collect)
app.add_typer(shuffle.app, name="shuffle")
app.command("demo")(demo.demo)
app.command("emd")(emd.emd)
app.command("leaderboard")(leaderboard.leaderboard)
app.command("serve")(serve.serve)


def _version(asked: bool) -> None:
    if asked:
        print(f"sfumato {__version__}")  # noqa: T201
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(
            help="TOML file with defaults; ./sfumato.toml if there.", envvar="SFUMATO_CONFIG"
        ),
    ] = None,
    version: Annotated[  # noqa: ARG001 - its callback acts before any command
        bool,
        typer.Option(
            "--version",
            help="Print the version.",
            is_eager=True,
            callback=_version,
            allow_from_autoenv=False,
        ),
    ] = False,
) -> None:
    """Read the config file before any command, and say so if it sets anything of it."""
    file = file_of_defaults(config)
    try:
        refuse_variables(context.command, prefix=PREFIX)
        found = {} if file is None else defaults(file, context.command)
    except InvalidInput as problem:
        fail(str(problem), code=INVALID, json=False)
    context.default_map = found
    if used := taken(found, context.meta.get(PATH, ())):
        # Not to be hushed: the file itself could do that.
        say(f"sfumato: {file} sets {', '.join(used)}", quiet=False)


def tree_for(words: Sequence[str]) -> typer.Typer:
    """The commands that these words can reach: to build all of them takes longer than most run.

    All of them where somebody looks at the others: help of the root, a word that names none, completion
    of words, a file of defaults, and variables, which are refused whichever command they are for.
    """
    asked = any(name.lstrip("_").startswith(f"{PREFIX}_") for name in os.environ)
    if not words or asked or file_of_defaults(None) is not None:
        return app
    small = copy(app)
    small.registered_groups = [one for one in app.registered_groups if one.name == words[0]]
    small.registered_commands = [one for one in app.registered_commands if one.name == words[0]]
    return small if small.registered_groups or small.registered_commands else app


def main() -> None:
    """Run the command line."""
    make_own()
    # Two thousand modules are loaded and hardly a cycle is left: to look for them takes 5 % of a command.
    gc.set_threshold(100_000)
    run_to_end(tree_for(sys.argv[1:]))

"""Defaults from a TOML file: one table per command, the keys named like its options.

    # sfumato.toml
    [ledger.create]
    unit = "user"
    source = "city"

The file is `--config FILE`, else $SFUMATO_CONFIG, else ./sfumato.toml. An option on the command line wins
over a variable (SFUMATO_LEDGER_CREATE_UNIT), a variable over the file, the file over the built-in default.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidInput

DEFAULT = Path("sfumato.toml")


def defaults(path: Path | None, command: Any) -> dict[str, Any]:
    """What the file sets, checked against the commands and options that exist."""
    if path is None:
        if not DEFAULT.is_file():
            return {}
        path = DEFAULT
    try:
        with path.open("rb") as file:
            found = tomllib.load(file)
    except OSError as problem:
        raise InvalidInput(f"cannot read the config file {path}: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"the config file {path} is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as problem:
        raise InvalidInput(f"the config file {path} is not TOML: {problem}") from None
    return _checked(found, command, path, "")


def _checked(table: dict[str, Any], command: Any, path: Path, where: str) -> dict[str, Any]:
    known: dict[str, Any] = {}
    commands = getattr(command, "commands", {})
    parameters = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    options = {parameter.name.replace("_", "-"): parameter.name for parameter in parameters}
    for key, value in table.items():
        if key in commands and isinstance(value, dict):
            known[key] = _checked(value, commands[key], path, f"{where}{key}.")
        elif where and key.replace("_", "-") in options:
            known[options[key.replace("_", "-")]] = value
        else:
            raise InvalidInput(f"the config file {path} sets '{where}{key}', which is no command or option")
    return known

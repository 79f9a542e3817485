"""Defaults from a TOML file: one table per command, the keys named like its options.

    # sfumato.toml
    [ledger.create]
    unit = "user"
    source = "city"

The file is `--config FILE`, else $SFUMATO_CONFIG, else ./sfumato.toml. An option on the command
line wins over a variable (SFUMATO_LEDGER_CREATE_UNIT), a variable over the file, the file over the
built-in default. What must be said aloud (`aloud.py`) is in no file.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from sfumato.cli.aloud import is_spoken
from sfumato.errors import InvalidInput

DEFAULT = Path("sfumato.toml")


def file_of_defaults(path: Path | None) -> Path | None:
    """The file that is read: the one that is named, or the one in the current folder, or none."""
    if path is None and DEFAULT.is_file():
        return DEFAULT
    return path


def defaults(path: Path, command: Any) -> dict[str, Any]:
    """What the file sets, checked against the commands and options that exist."""
    try:
        with path.open("rb") as file:
            found = tomllib.load(file)
    except OSError as problem:
        raise InvalidInput(f"cannot read the config file {path}: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"the config file {path} is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as problem:
        raise InvalidInput(f"the config file {path} is not TOML: {problem}") from None
    return _checked(found, command, path, ())


def taken(table: dict[str, Any], path: tuple[str, ...]) -> list[str]:
    """What a table of defaults sets for the command at a path, as in ledger.create.unit."""
    for word in path:
        table = table.get(word, {})
    return [".".join((*path, key.replace("_", "-"))) for key in table] if path else []


def _checked(
    table: dict[str, Any], command: Any, path: Path, where: tuple[str, ...]
) -> dict[str, Any]:
    known: dict[str, Any] = {}
    commands = getattr(command, "commands", {})
    parameters = [
        parameter for parameter in command.params if parameter.param_type_name == "option"
    ]
    options = {parameter.name.replace("_", "-"): parameter for parameter in parameters}
    for key, value in table.items():
        if key in commands and isinstance(value, dict):
            known[key] = _checked(value, commands[key], path, (*where, key))
            continue
        said = f"the config file {path} sets '{'.'.join((*where, key))}', which"
        option = options.get(key.replace("_", "-")) if where else None
        if option is None:
            raise InvalidInput(f"{said} is no command or option")
        if is_spoken(option, where):
            raise InvalidInput(
                f"{said} counts on the command line only; take it out; nothing was done"
            )
        # An option that may be given again, given once.
        once = option.multiple and isinstance(value, str)
        known[option.name] = [value] if once else value
    return known

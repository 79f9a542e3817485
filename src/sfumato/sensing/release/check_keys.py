"""Check keys: what a collector holds, to tell whose packet it got. They take no noise off."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sfumato.errors import InvalidInput
from sfumato.files import check_private, read_json, write_file
from sfumato.privacy.noise import KEY_BYTES
from sfumato.sensing.release.keys import MasterKey

FORMAT = "sfumato-check-keys/1"


@dataclass(frozen=True, slots=True)
class CheckKeys:
    """The check keys of devices under one master key; a device that is not in it is refused."""

    key_id: str
    devices: Mapping[str, bytes] = field(repr=False)


def check_keys_of(master: MasterKey, names: Iterable[str]) -> CheckKeys:
    """The check keys of some devices.

    Args:
        master: The master key.
        names: The devices.

    Returns:
        Their check keys.
    """
    return CheckKeys(master.id, {name: master.check_key(name) for name in names})


def write_check_keys(path: str | Path, keys: CheckKeys, *, overwrite: bool = False) -> None:
    """Keep check keys in a file that only its owner may read.

    Args:
        path: The file.
        keys: The keys.
        overwrite: Whether a file of that name gives way.

    Raises:
        InvalidInput: The file exists already, or cannot be written; no key was made.
    """
    devices = {name: key.hex() for name, key in keys.devices.items()}
    text = json.dumps({"format": FORMAT, "id": keys.key_id, "devices": devices}, indent=1)
    write_file(path, f"{text}\n", overwrite=overwrite, private=True, lost="no key was made")


def read_check_keys(path: str | Path) -> CheckKeys:
    """Check keys from their file.

    Args:
        path: The file that `write_check_keys` wrote.

    Returns:
        The keys.

    Raises:
        InvalidInput: The file cannot be read, is not whole, or others than its owner may read it.
    """
    data = read_json(path, "a file of check keys")
    try:
        if data["format"] != FORMAT:
            raise ValueError
        devices = {str(name): bytes.fromhex(key) for name, key in data["devices"].items()}
        if any(len(key) != KEY_BYTES for key in devices.values()):
            raise ValueError
        found = CheckKeys(str(data["id"]), devices)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InvalidInput(f"{path} is not a whole file of check keys; nothing was done") from None
    check_private(path)
    return found

"""Keys of sealed readings: made, and used by who may take the noise off."""

from __future__ import annotations

from pathlib import Path

from sfumato.files import write_table
from sfumato.sensing.release.keys import (
    MasterKey,
    new_master_key,
    read_master_key,
    write_device_key,
    write_master_key,
)
from sfumato.sensing.release.readings import Readings, read_readings, unseal_snapshot
from sfumato.sensing.results.release import KeyResult, UnsealedResult


def unseal_readings(
    readings: Readings | str | Path,
    key: MasterKey | str | Path,
    *,
    out: str | Path | None = None,
) -> UnsealedResult:
    """Take the noise off, exactly, for the holder of the master key; what comes out is private again.

    Args:
        readings: Sealed readings, or their .json file.
        key: The master key, or its file.
        out: A new .csv file that only its owner may read.

    Returns:
        The readings as they were quantised, by time and sensor.

    Raises:
        InvalidInput: The readings were not sealed, or under another key, or were changed since.
    """
    master = key if isinstance(key, MasterKey) else read_master_key(key)
    found = readings if isinstance(readings, Readings) else read_readings(readings)
    rows = tuple(
        (snapshot.time, name, value)
        for snapshot in found.snapshots
        for name, value in zip(
            snapshot.names,
            unseal_snapshot(snapshot, found.site, master).reveal().tolist(),
            strict=True,
        )
    )
    if out is None:
        return UnsealedResult(rows)
    write_table(out, ["time", "sensor", "value"], rows, private=True)
    return UnsealedResult(rows, Path(out))


def make_master_key(file: str | Path) -> KeyResult:
    """Make a master key: keep it off the devices, whoever holds it can take the noise off.

    Args:
        file: A new file that only its owner may read.

    Returns:
        The file, and the public id of the key.

    Raises:
        InvalidInput: The file exists already, or cannot be written.
    """
    master = new_master_key()
    write_master_key(file, master)
    return KeyResult(Path(file), master.id)


def make_device_key(master: MasterKey | str | Path, file: str | Path, *, name: str) -> KeyResult:
    """Make the key file of one device; it moves forward each time the device starts, and never back.

    Args:
        master: The master key, or its file.
        file: A new file for the device.
        name: What the device is called; each one has its own name.

    Returns:
        The file, the device and the id of the master key.

    Raises:
        InvalidInput: The file exists already, or cannot be written.
        InvalidParameter: The name is empty or not printable.
    """
    key = master if isinstance(master, MasterKey) else read_master_key(master)
    write_device_key(file, key, name)
    return KeyResult(Path(file), key.id, name)

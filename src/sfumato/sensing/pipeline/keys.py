"""Keys of sealed readings: made, listed, rotated, retired, and used by who may take the noise off."""

from __future__ import annotations

import hashlib
from pathlib import Path

from sfumato.errors import InvalidInput
from sfumato.files import check_writable, read_json, write_table
from sfumato.privacy.accounting import canonical
from sfumato.sensing.release.check_keys import check_keys_of, write_check_keys
from sfumato.sensing.release.key_log import KeyEvent, KeyLog, KnownDevice, next_generation
from sfumato.sensing.release.keys import (
    MAX_STEPS,
    MasterKey,
    device_step,
    is_locked,
    new_master_key,
    read_master_key,
    write_device_key,
    write_master_key,
)
from sfumato.sensing.release.readings import Readings, read_readings, unseal_snapshot
from sfumato.sensing.results.keys import KeyListing, KeyResult
from sfumato.sensing.results.release import UnsealedResult


def unseal_readings(
    readings: Readings | str | Path,
    key: MasterKey | str | Path,
    *,
    out: str | Path | None = None,
    passphrase: str | None = None,
) -> UnsealedResult:
    """Take the noise off, exactly, for the holder of the master key; what comes out is private again.

    Where the key is a file, that it was used is written into its log first, the file beside it that ends in
    .log: when, by whom, which readings. A key in memory has none.

    Args:
        readings: Sealed readings, or their .json file.
        key: The master key, or its file.
        out: A new .csv file that only its owner may read.
        passphrase: That of a key file which was locked with one.

    Returns:
        The readings as they were quantised, by time and sensor.

    Raises:
        InvalidInput: The readings were not sealed, or under another key, by a device after it was retired, or
            were changed since; or the log cannot be written.
    """
    master = key if isinstance(key, MasterKey) else read_master_key(key, passphrase=passphrase)
    found = readings if isinstance(readings, Readings) else read_readings(readings)
    log = None if isinstance(key, MasterKey) else KeyLog(key)
    if log is not None:
        _not_retired(found, log.devices())
    rows = tuple(
        (snapshot.time, name, value)
        for snapshot in found.snapshots
        for name, value in zip(
            snapshot.names,
            unseal_snapshot(snapshot, found.site, master).reveal().tolist(),
            strict=True,
        )
    )
    if out is not None:
        check_writable(out)
    if not isinstance(key, MasterKey):
        named = str(readings) if isinstance(readings, str | Path) else ""
        digest = hashlib.sha256(canonical(found.to_json()).encode()).hexdigest()
        note_unsealing(key, readings=named, times=len(found.snapshots), sha256=digest, out=out)
    if out is None:
        return UnsealedResult(rows)
    write_table(out, ["time", "sensor", "value"], rows, private=True)
    return UnsealedResult(rows, Path(out))


def note_unsealing(
    key: str | Path, *, readings: str, times: int, sha256: str, out: str | Path | None
) -> None:
    """Write into the log of a master key that noise is about to be taken off.

    Args:
        key: The file of the master key.
        readings: The file that has the readings; "" for those in memory.
        times: How many times were read.
        sha256: A digest of what is unsealed.
        out: Where the readings go; None for the screen.

    Raises:
        InvalidInput: The log cannot be written; nothing was unsealed.
    """
    log, where = KeyLog(key), "" if out is None else str(out)
    used = {"readings": readings, "times": times, "sha256": sha256, "out": where}
    with log.held():
        log.add(KeyEvent("unsealed", more=used))


def last_steps(key: str | Path) -> dict[str, int]:
    """The last step that each device of a master key may have taken, by its log.

    Args:
        key: The file of the master key.

    Returns:
        Steps by device: that of its end, where it was rotated or retired with its key file at hand, else the
        last that any key has. What was sealed at a later one, or by a device that is not there, is forged.

    Raises:
        InvalidInput: The log cannot be read.
    """
    known = KeyLog(key).devices().values()
    return {one.name: MAX_STEPS if one.last_step is None else one.last_step for one in known}


def _not_retired(read: Readings, devices: dict[str, KnownDevice]) -> None:
    for snapshot in read.snapshots:
        seal = snapshot.seal
        known = None if seal is None else devices.get(seal.device)
        if seal is None or known is None or known.last_step is None:
            continue
        if seal.step > known.last_step:
            raise InvalidInput(
                f"device {seal.device!r} sealed these readings at its step {seal.step}, but was "
                f"{known.status} at step {known.last_step}; nothing was unsealed"
            )


def make_master_key(file: str | Path, *, passphrase: str | None = None) -> KeyResult:
    """Make a master key: keep it off the devices, whoever holds it can take the noise off.

    Args:
        file: A new file that only its owner may read.
        passphrase: Without it nobody can use the file; None for a file that holds the key itself.

    Returns:
        The file, and the public id of the key.

    Raises:
        InvalidInput: The file exists already, or cannot be written.
        InvalidParameter: The passphrase is empty.
    """
    master = new_master_key()
    write_master_key(file, master, passphrase=passphrase)
    return KeyResult(Path(file), master.id)


def make_device_key(
    master: MasterKey | str | Path,
    file: str | Path,
    *,
    name: str,
    passphrase: str | None = None,
) -> KeyResult:
    """Make the key file of one device; it moves forward each time the device starts, and never back.

    Where the master key is a file, its log beside it knows the names that were given, and refuses one twice.

    Args:
        master: The master key, or its file.
        file: A new file for the device.
        name: What the device is called; each one has its own name.
        passphrase: That of a master key which was locked with one.

    Returns:
        The file, the device and the id of the master key.

    Raises:
        ExistsAlready: A device of that name has a key of this master key already.
        InvalidInput: The file exists already, or cannot be written.
        InvalidParameter: The name is empty or not printable.
    """
    if isinstance(master, MasterKey):
        write_device_key(file, master, name)
        return KeyResult(Path(file), master.id, name)
    key, log = read_master_key(master, passphrase=passphrase), KeyLog(master)
    key.device(name)
    log.unused(name)
    check_writable(file, lost="no key was made")
    with log.held():
        log.unused(name)  # which another process may have given meanwhile
        # First into the log: a name that has no file is harmless, a file whose name is free is not.
        log.add(KeyEvent("device", name, {"file": str(file)}))
        write_device_key(file, key, name)
    return KeyResult(Path(file), key.id, name)


def rotate_device_key(
    master: str | Path,
    file: str | Path,
    *,
    name: str,
    replaced: str | Path | None = None,
    passphrase: str | None = None,
) -> KeyResult:
    """Give a device a key of its own that does not follow from its old one: after a loss, or every year.

    The new key is that of a device with the same name and a number, door~2. What the old one sealed can still
    be unsealed; with its file, `replaced`, only what it sealed until now.

    Args:
        master: The file of the master key.
        file: A new file for the device.
        name: What the device is called.
        replaced: The device's present key file: what it seals from now on is refused.
        passphrase: That of a master key which was locked with one.

    Returns:
        The new file, the name that seals will have, and the id of the master key.

    Raises:
        InvalidInput: The log knows no such device in use, or a file cannot be read or written.
    """
    key, log = read_master_key(master, passphrase=passphrase), KeyLog(master)
    check_writable(file, lost="no key was made")
    with log.held():
        old = log.current(name)
        last = _last_step(old, replaced)  # of this key, not of one that was rotated meanwhile
        new = next_generation(old.name)
        log.add(
            KeyEvent("rotated", old.name, {"last_step": last}),
            KeyEvent("device", new, {"file": str(file)}),
        )
        write_device_key(file, key, new)
    return KeyResult(Path(file), key.id, new)


def retire_device_key(
    master: str | Path,
    *,
    name: str,
    replaced: str | Path | None = None,
    passphrase: str | None = None,
) -> KeyListing:
    """End the key of a device: its name is never given again.

    What it sealed can still be unsealed; with its file, `replaced`, only what it sealed until now.

    Args:
        master: The file of the master key.
        name: What the device is called.
        replaced: The device's present key file: what it seals from now on is refused.
        passphrase: That of a master key which was locked with one.

    Returns:
        All devices, as `list_keys` says them.

    Raises:
        InvalidInput: The log knows no such device in use, or the file cannot be read.
    """
    key, log = read_master_key(master, passphrase=passphrase), KeyLog(master)
    with log.held():
        old = log.current(name)
        log.add(KeyEvent("retired", old.name, {"last_step": _last_step(old, replaced)}))
    return KeyListing(Path(master), key.id, is_locked(master), log.events())


def make_check_keys(
    master: str | Path,
    file: str | Path,
    *,
    overwrite: bool = False,
    passphrase: str | None = None,
) -> KeyResult:
    """Make the file of check keys for a collector: of every device whose key is in use.

    With it a collector tells who sent a packet. It takes no noise off. Make it again after a device got its
    key, was rotated or retired; after the last was retired the file has no key, and a collector takes
    nothing.

    Args:
        master: The file of the master key.
        file: A new file for the collector.
        overwrite: Whether a file of that name gives way.
        passphrase: That of a master key which was locked with one.

    Returns:
        The file and the id of the master key.

    Raises:
        InvalidInput: The file exists already, or cannot be written; or no device has had a key.
    """
    key, log = read_master_key(master, passphrase=passphrase), KeyLog(master)
    devices = log.devices()
    if not devices:
        raise InvalidInput(f"no device has had a key by {log.path}; no key was made")
    names = [one.name for one in devices.values() if one.status == "in use"]
    write_check_keys(file, check_keys_of(key, names), overwrite=overwrite)
    return KeyResult(Path(file), key.id)


def list_keys(master: str | Path) -> KeyListing:
    """What a master key was used for: devices that have or had a key of it, and what was unsealed.

    Needs no passphrase. Devices that got their keys from a version before there was a log are not known.

    Args:
        master: The file of the master key.

    Returns:
        Devices and unsealings, from the log beside the key.

    Raises:
        InvalidInput: The key or its log cannot be read.
    """
    data = read_json(master, "a master key")
    locked = is_locked(master)
    name = str(data.get("id", "")) if isinstance(data, dict) else ""
    if not locked:
        name = read_master_key(master).id
    return KeyListing(Path(master), name, locked, KeyLog(master).events())


def _last_step(known: KnownDevice, file: str | Path | None) -> int | None:
    """The last step that a device has taken, as its file says; None if nobody looked."""
    if file is None:
        return None
    name, step = device_step(file)
    if name != known.name:
        raise InvalidInput(
            f"{file} is the key of {name!r}, not of {known.name!r}; nothing was done"
        )
    return step - 1

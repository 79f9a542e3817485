"""Packets without their noise, for the holder of the master key: private again."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidInput, InvalidParameter, NoiseExhausted
from sfumato.files import check_writable, write_table
from sfumato.network.wire import Packet, Status, decode, encode, is_signed, status_of
from sfumato.sensing.model import Site
from sfumato.sensing.pipeline import last_steps, note_unsealing
from sfumato.sensing.release import MasterKey, StepKeys, read_master_key

MAX_LINE = 4_000_000
_SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class UnsealedRow:
    """One reading without its noise. Private."""

    time: str
    device: str
    sensor: str
    value: float
    status: Status


@dataclass(frozen=True, slots=True)
class UnsealedPackets:
    """What packets say without their noise, and how many were refused. Private.

    Attributes:
        rows: A row for each reading, in the order of the packets.
        refused: Packets of another key, device or site, or changed since they were sealed, or no packets at
            all.
        file: Where they were written, if they were.
    """

    rows: tuple[UnsealedRow, ...]
    refused: int = 0
    file: Path | None = None

    def to_json(self) -> dict[str, Any]:
        """The rows, or the file that has them."""
        told: dict[str, Any] = {"readings": len(self.rows), "refused": self.refused}
        if self.file is not None:
            return told | {"out": str(self.file)}
        names = UnsealedRow.__dataclass_fields__
        rows = [{name: getattr(row, name) for name in names} for row in self.rows]
        return told | {"rows": rows}


def read_packets(path: str | Path) -> Iterator[Packet | None]:
    """Packets in JSON lines, each whole under `payload`, or rounds with theirs under `packets`; or of a store.

    Args:
        path: A file of lines that a collector writes, or its store in SQLite, which has late packets too.

    Yields:
        The packets, in their order; None for what is no packet.

    Raises:
        InvalidInput: The file cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            is_store = file.read(len(_SQLITE)) == _SQLITE
        if is_store:
            yield from _stored(Path(path))
            return
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.strip():
                    yield from _packets(line)
    except OSError as problem:
        raise InvalidInput(
            f"cannot read {path}: {problem.strerror}; nothing was unsealed"
        ) from None


def unseal_packets(
    packets: Iterable[Packet | None],
    key: MasterKey | str | Path,
    *,
    site: Site | None = None,
    out: str | Path | None = None,
    passphrase: str | None = None,
    named: str = "",
) -> UnsealedPackets:
    """Take the noise off packets, exactly, for the holder of the master key.

    A packet of another key or site, of a device that the key's log does not know, and one that was changed
    since the device sealed it, by the collector too, is counted as refused and not unsealed. Where the key is a
    file, that it was used is written into its log first.

    Args:
        packets: Decoded packets; None for what was none.
        key: The master key, or its file.
        site: The site, for the names of sensors; without it they are their places in its list.
        out: A new .csv file that only its owner may read.
        passphrase: That of a key file which was locked with one.
        named: What the log calls the packets: their file.

    Returns:
        The readings as they were quantised, and which were dummies.

    Raises:
        InvalidInput: The key cannot be read, or its log not be written.
    """
    master = key if isinstance(key, MasterKey) else read_master_key(key, passphrase=passphrase)
    ended = {} if isinstance(key, MasterKey) else last_steps(key)
    rows: list[UnsealedRow] = []
    refused = times = 0
    digest = hashlib.sha256()
    for packet in packets:
        found = None if packet is None else _rows(packet, master, site, ended)
        if packet is None or found is None:
            refused += 1
            continue
        times += 1
        digest.update(encode(packet))
        rows += found
    if out is not None:
        check_writable(out)
    if not isinstance(key, MasterKey):
        note_unsealing(key, readings=named, times=times, sha256=digest.hexdigest(), out=out)
    if out is None:
        return UnsealedPackets(tuple(rows), refused)
    table = [(row.time, row.device, row.sensor, row.value, row.status) for row in rows]
    write_table(out, ["time", "device", "sensor", "value", "status"], table, private=True)
    return UnsealedPackets(tuple(rows), refused, Path(out))


def _rows(
    packet: Packet, master: MasterKey, site: Site | None, ended: Mapping[str, int]
) -> list[UnsealedRow] | None:
    """The readings of a packet; None where it is not one that this key's device sealed."""
    if packet.key_id != master.id or (ended and packet.step > ended.get(packet.device, -1)):
        return None
    try:
        keys = StepKeys(master, packet.device, packet.step)
    except InvalidParameter:  # a step that no device takes
        return None
    if not is_signed(packet, keys.sign):
        return None
    if site is not None and (
        packet.site != site.digest[:32] or max(packet.sensors) >= len(site.sensors)
    ):
        return None
    try:
        exact = keys.take_off(
            packet.values,
            epoch=packet.epoch,
            first=packet.first,
            law=packet.law,
            sigma=packet.sigma,
        )
        status, time = status_of(packet, keys.sign), packet.to_json()["time"]
    except (InvalidInput, NoiseExhausted):  # of a device that is broken
        return None
    names = [str(place) if site is None else site.sensors.names[place] for place in packet.sensors]
    # Where each sensor has its own noise its reading was multiplied: without a site that is not known.
    gains = [1.0 if site is None else float(site.gains[place]) for place in packet.sensors]
    if not all(gains):
        return None
    return [
        UnsealedRow(time, packet.device, name, math.ldexp(unit, packet.exponent) / gain, status)
        for name, unit, gain in zip(names, exact, gains, strict=True)
    ]


def _packets(line: str) -> list[Packet | None]:
    """The packet of a line, or all packets of a collector's round; None for each that is none."""
    if len(line) > MAX_LINE:
        return [None]
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return [None]
    several = data.get("packets") if isinstance(data, dict) and "payload" not in data else None
    return [_packet(one) for one in several] if isinstance(several, list) else [_packet(data)]


def _stored(path: Path) -> Iterator[Packet | None]:
    import sqlite3

    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as store:
            for (payload,) in store.execute("SELECT payload FROM packets ORDER BY round, device"):
                try:
                    yield decode(bytes(payload))
                except (InvalidInput, TypeError):
                    yield None
    except sqlite3.Error as problem:
        raise InvalidInput(
            f"cannot read the store {path}: {problem}; nothing was unsealed"
        ) from None


def _packet(data: Any) -> Packet | None:
    try:
        return Packet.from_json(data)
    except (InvalidInput, ValueError, RecursionError):
        return None

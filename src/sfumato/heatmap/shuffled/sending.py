"""Devices that take part: each asks for the round that is open, answers it, and waits for the next."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidInput, SessionStopped
from sfumato.files import read_rows
from sfumato.heatmap.shuffled.device import Device
from sfumato.heatmap.shuffled.plan import ShufflePlan
from sfumato.heatmap.shuffled.wire import POLL_SECONDS, RETRY_SECONDS, ask, parse_address

Watch = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SentReports:
    """What devices of this process have sent.

    Attributes:
        devices: How many there were.
        rounds: How many rounds they answered.
        sent: Bytes that each sent, all rounds together.

    """

    devices: int
    rounds: int
    sent: int

    def to_json(self) -> dict[str, Any]:
        """What `sfumato shuffle send --json` prints."""
        return {"devices": self.devices, "rounds": self.rounds, "bytes_a_device": self.sent}


def send_reports(
    devices: Sequence[Device], shuffler: str, *, timeout: float = 600.0, watch: Watch | None = None
) -> SentReports:
    """Take part with one device, or for a trial with many, until the map is done.

    Args:
        devices: The devices, all of one plan.
        shuffler: HOST:PORT of the shuffler.
        timeout: How many seconds the shuffler may be silent. While it answers that there is no round yet,
            devices wait: the adder takes hours to open the messages of many.
        watch: Told of each round.

    Returns:
        How many rounds were answered, and bytes.

    Raises:
        SessionStopped: The shuffler does not answer, refuses, or is silent for too long.
        InvalidInput: A round is not of the plan; nothing more was sent.

    """
    say, address = watch or (lambda _: None), parse_address(shuffler)
    first, rounds, sent = devices[0], 0, 0
    (epsilon, delta), (all_epsilon, all_delta) = first.plan.cost, first.spent
    together = f"; with plans answered before {float(all_epsilon):.6g} and {float(all_delta):.2g}"
    say(
        f"the plan costs a device epsilon {float(epsilon):.6g}, delta {float(delta):.2g}"
        + (together if all_epsilon > epsilon else "")
    )
    while True:
        found = _next_round(address, first.answered, timeout, known=rounds > 0)
        if found is None:
            return SentReports(len(devices), rounds, sent)
        reports = (device.report(*found) for device in devices)
        sent += _sent(address, reports, timeout)
        rounds += 1
        say(f"level {first.answered}: answered")


def _next_round(
    address: tuple[str, int], after: int, timeout: float, *, known: bool
) -> tuple[bytes, bytes] | None:
    """The next round as it was signed, and the shuffler's session; None where the map is done."""
    heard = time.monotonic() if known else None
    while True:
        try:
            # Longer than the shuffler holds a question back.
            told, body = ask(
                address, {"do": "round", "after": after}, timeout=max(timeout, 2 * POLL_SECONDS)
            )
        except SessionStopped:
            # At the first word nobody is there; later a connection may break.
            if heard is None or time.monotonic() - heard > timeout:
                raise
            time.sleep(RETRY_SECONDS)
            continue
        heard = time.monotonic()
        if told.get("state") == "open":
            return body, _session(told)
        if told.get("state") == "over":
            return None
        if told.get("busy"):
            time.sleep(RETRY_SECONDS)


def _session(told: dict[str, Any]) -> bytes:
    try:
        return bytes.fromhex(told["session"])
    except (KeyError, TypeError, ValueError):
        raise SessionStopped("the shuffler does not say its session; nothing was sent") from None


def _sent(address: tuple[str, int], reports: Iterable[bytes], timeout: float) -> int:
    size = 0
    for report in reports:
        ask(address, {"do": "report"}, report, timeout=timeout)
        size = len(report)
    return size


def devices_of_rows(plan: ShufflePlan, path: str | Path) -> list[Device]:
    """A device for each user of a table, for trials: in truth each has its own places alone.

    Args:
        plan: The plan of all.
        path: A table (CSV, JSON or Parquet) with columns user, lon and lat.

    Returns:
        The devices, each with the places of one user.

    Raises:
        InvalidInput: The table cannot be read, or lacks a column.

    """
    rows = read_rows(path)
    places: dict[Any, list[tuple[float, float]]] = {}
    for row in rows:
        try:
            places.setdefault(row["user"], []).append((float(row["lon"]), float(row["lat"])))
        except (KeyError, TypeError, ValueError):
            raise InvalidInput(
                f"{path} needs the columns user, lon and lat, with numbers in the last two; nothing was sent"
            ) from None
    return [Device(plan, one) for one in places.values()]

"""What is asked of devices: a public file with cells, a channel, and who is asked. Nothing needs NumPy."""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato.errors import InvalidInput
from sfumato.heatmap.local.channels import (
    Channel,
    DiskChannel,
    KaryResponse,
    LocalHashing,
    SubsetSelection,
    UnaryEncoding,
)
from sfumato.heatmap.local.odds import MAX_EPSILON, odds_below
from sfumato.privacy.accounting import written

FORMAT = "sfumato-local-question/1"
FINEST_CELL = 8
LONGEST_CAMPAIGN = 150
# Fractions of a question: so many digits above and below the bar, and no powers of ten.
FRACTION = re.compile(r"[0-9]{1,400}(/[0-9]{1,400})?", re.ASCII)
Bounds = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a campaign; every device answers at most one of them.

    Attributes:
        campaign: The name that all rounds share.
        round: 1 or 2.
        users: How many devices are asked in all rounds together.
        epsilon: What an answer may tell.
        bounds: Low x, low y, high x, high y of the square of cells.
        cells: Level and Z-order code of each cell; together they are the whole square, once.
        part: Which devices: those whose lot lies in this half-open interval of 0..1.
        channel: How they answer.
    """

    campaign: str
    round: int
    users: int
    epsilon: Fraction
    bounds: Bounds
    cells: tuple[tuple[int, int], ...]
    part: tuple[Fraction, Fraction]
    channel: Channel

    def __post_init__(self) -> None:
        if not (
            self.campaign and self.campaign.isprintable() and len(self.campaign) <= LONGEST_CAMPAIGN
        ):
            raise InvalidInput(
                f"the name of a campaign is 1 to {LONGEST_CAMPAIGN} printable letters; no question was made"
            )
        if any(not 0 <= level <= FINEST_CELL for level, _ in self.cells):
            raise InvalidInput(f"cells are of levels 0..{FINEST_CELL}; no question was made")
        # In Z-order each begins where the one before ends.
        ends = [0]
        for begin, level in sorted((c << 2 * (FINEST_CELL - lev), lev) for lev, c in self.cells):
            ends.append(begin + 4 ** (FINEST_CELL - level) if begin == ends[-1] else -1)
        if ends[-1] != 4**FINEST_CELL:
            raise InvalidInput("the cells of a question cover the map once; no question was made")
        if len(set(self.cells)) != self.channel.cells or len(self.cells) != self.channel.cells:
            raise InvalidInput("a question has one cell for each of its channel; none was made")
        if not 0 < self.epsilon <= MAX_EPSILON or self.channel.odds > odds_below(self.epsilon):
            raise InvalidInput(
                f"the odds of a question must be at most e**{self.epsilon}, got "
                f"{float(self.channel.odds):.6g}: it would tell more than it says; not answered"
            )
        west, south, east, north = self.bounds
        sides = (east - west, north - south)
        if not (all(map(math.isfinite, (*self.bounds, *sides))) and min(sides) > 0):
            raise InvalidInput("the bounds of a question rise from low to high; none was made")
        if not 0 <= self.part[0] < self.part[1] <= 1 or self.round not in (1, 2) or self.users < 1:
            raise InvalidInput(
                "a question has a part of 0..1, round 1 or 2, and users; none was made"
            )

    @property
    def digest(self) -> str:
        """SHA-256 of the question as it is written: an answer names it."""
        text = json.dumps(self._written(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def cell_of(self, x: float, y: float) -> int | None:
        """Which cell a place lies in; None outside the bounds."""
        west, south, east, north = self.bounds
        if not (west <= x <= east and south <= y <= north):
            return None
        side = 1 << FINEST_CELL
        column = min(int((x - west) / (east - west) * side), side - 1)
        row = min(int((y - south) / (north - south) * side), side - 1)
        code = 0
        for bit in range(FINEST_CELL):
            code |= (column >> bit & 1) << 2 * bit | (row >> bit & 1) << 2 * bit + 1
        numbers = {cell: number for number, cell in enumerate(self.cells)}
        for level in range(FINEST_CELL + 1):
            found = numbers.get((level, code >> 2 * (FINEST_CELL - level)))
            if found is not None:
                return found
        return None

    def asks(self, device: str) -> bool:
        """Whether a device of this name is asked: its lot is a hash of the campaign and the name."""
        low, high = self.part
        return low <= lot(self.campaign, device) < high

    def _written(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "campaign": self.campaign,
            "round": self.round,
            "users": self.users,
            "epsilon": written(self.epsilon),
            "bounds": list(self.bounds),
            "cells": [list(one) for one in self.cells],
            "part": [written(one) for one in self.part],
            "channel": self.channel.to_json(),
        }

    def to_json(self) -> dict[str, Any]:
        """The whole question and its digest."""
        return {**self._written(), "digest": self.digest}

    @classmethod
    def from_json(cls, data: Any) -> Question:
        """What `to_json` wrote; InvalidInput for anything else, and for another digest."""
        try:
            if data["format"] != FORMAT:
                raise ValueError(f"its format is {data['format']!r}, not {FORMAT!r}")
            low, high = (_fraction(one) for one in data["part"])
            west, south, east, north = (float(one) for one in data["bounds"])
            found = cls(
                campaign=str(data["campaign"]),
                round=int(data["round"]),
                users=int(data["users"]),
                epsilon=_fraction(data["epsilon"]),
                bounds=(west, south, east, north),
                cells=tuple((_whole(level), _whole(code)) for level, code in data["cells"]),
                part=(low, high),
                channel=channel_from_json(data["channel"]),
            )
        except InvalidInput:
            raise
        except (KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError) as problem:
            raise InvalidInput(f"this is no question for a local map: {problem}") from None
        if data.get("digest") != found.digest:
            raise InvalidInput(
                "a question has another digest than it says: it was changed; not answered"
            )
        return found


def lot(campaign: str, device: str) -> Fraction:
    """The lot of a device: 64 bits of SHA-256 of the campaign and its name, as a fraction of 1."""
    text = f"sfumato.local.lot|{campaign}|{device}".encode()
    return Fraction(int.from_bytes(hashlib.sha256(text).digest()[:8], "big"), 2**64)


_KINDS = {
    one.kind: one
    for one in (SubsetSelection, DiskChannel, KaryResponse, LocalHashing, UnaryEncoding)
}


def channel_from_json(data: Any) -> Channel:
    """The channel of a question file; InvalidInput for anything else."""
    try:
        known = dict(data)
        made = _KINDS[known.pop("kind")]
        known["odds"] = _fraction(known["odds"])
        if "near" in known:
            known["near"] = tuple(tuple(map(_whole, one)) for one in known["near"])
        for name in known.keys() - {"odds", "near"}:
            _whole(known[name])
        return made(**known)
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as problem:
        raise InvalidInput(f"a question has no channel that is known here: {problem}") from None


def _fraction(text: Any) -> Fraction:
    if type(text) is not str or not FRACTION.fullmatch(text):
        raise ValueError(f"a fraction was expected, got {str(text)[:40]!r}")
    return Fraction(text)


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"an integer was expected, got {value!r}")
    return value

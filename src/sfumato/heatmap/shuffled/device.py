"""What a device does: count its places, add its share of the noise, split, seal; nothing heavy is loaded."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sfumato._types import IntArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import read_json, write_file
from sfumato.heatmap.shuffled.plan import SESSION, TOKEN, ShufflePlan
from sfumato.heatmap.shuffled.rounds import Round, sealed_messages
from sfumato.heatmap.shuffled.sealing import seal
from sfumato.privacy.noise import draw_shares, split_into_messages


class Device:
    """One device: its places, and which levels of the plan it has answered.

    A device without places inside the area sends noise alone, and can stand in for one that is gone.
    """

    def __init__(
        self,
        plan: ShufflePlan,
        places: Sequence[tuple[float, float]] = (),
        *,
        token: bytes | None = None,
        memory: str | Path | None = None,
    ) -> None:
        """Make a device of a plan.

        Args:
            plan: The plan, whose cost the device has checked.
            places: Where its person was, (x, y) each; all count the same.
            token: 16 bytes by which the shuffler knows it; random if none are given.
            memory: A file in which it notes the levels it has answered, before it answers them.

        """
        self.plan = plan
        self.token = os.urandom(TOKEN) if token is None else token
        if len(self.token) != TOKEN:
            raise InvalidParameter(
                f"a token is {TOKEN} bytes, got {len(self.token)}; nothing was sent"
            )
        self._codes, self._units = mass_of_places(plan, places)
        self._memory = None if memory is None else Path(memory)
        self.answered = plan.first_level - 1
        if self._memory is not None and self._memory.exists():
            told = read_json(self._memory, "a device's memory", undone="nothing was sent")
            self.answered = max(self.answered, int(told.get(plan.digest.hex(), self.answered)))

    def report(self, announced: bytes, session: bytes) -> bytes:
        """Answer a round, sealed to the shuffler: once for each level, whoever asks again.

        Args:
            announced: The round as the adder signed it.
            session: 16 bytes of the shuffler that it has drawn anew: it takes the report in this session alone.

        Returns:
            The report, of a size that says nothing about the places.

        Raises:
            InvalidInput: The round is not of the plan, or its level was answered.

        """
        plan, asked = self.plan, Round.checked(announced, self.plan)
        if len(session) != SESSION:
            raise InvalidInput(
                f"a session is {SESSION} bytes, got {len(session)}; nothing was sent"
            )
        if asked.level <= self.answered:
            raise InvalidInput(
                f"level {asked.level} was answered, and each is answered once; nothing was sent"
            )
        self.answered = asked.level
        self._note()
        shares = draw_shares(
            plan.trust, [plan.level_scale(asked.level)], np.zeros(asked.cells.size, dtype=np.int64)
        )
        values = self._counted(asked) + shares
        messages = split_into_messages(values, plan.messages, bits=plan.bits)
        told = self.token + bytes([asked.level]) + sealed_messages(plan, asked, messages)
        return seal(told, plan.shuffler, context=plan.digest + session)

    def _counted(self, asked: Round) -> IntArray:
        up = 2 * (self.plan.area.grid.levels - asked.level)
        found = np.zeros(asked.cells.size, dtype=np.int64)
        for code, units in zip(self._codes >> up, self._units, strict=True):
            found[asked.cells == code] += units
        return found

    def _note(self) -> None:
        if self._memory is None:
            return
        told = {}
        if self._memory.exists():
            told = read_json(self._memory, "a device's memory", undone="nothing was sent")
        told[self.plan.digest.hex()] = self.answered
        write_file(self._memory, json.dumps(told) + "\n", overwrite=True, private=True)


def mass_of_places(
    plan: ShufflePlan, places: Sequence[tuple[float, float]]
) -> tuple[IntArray, IntArray]:
    """Cells of the finest level that hold a device's mass, and units in each: `plan.units` in all, or none."""
    x, y = np.array(places, dtype=np.float64).reshape(-1, 2).T
    west, south, east, north = plan.area.bounds
    if plan.area.crosses_antimeridian:
        x = np.where(x < west, x + 360, x)
    inside = (west <= x) & (x <= east) & (south <= y) & (y <= north)
    codes, rows = np.unique(plan.area.grid.cells_of(x[inside], y[inside]), return_counts=True)
    if not codes.size:
        return codes.astype(np.int64), rows.astype(np.int64)
    # Whole units in proportion to rows; what is left over goes to the cells with the most of them.
    units, total = rows * plan.units // rows.sum(), int(rows.sum())
    left = plan.units - int(units.sum())
    most = np.argsort(-(rows * plan.units % total), kind="stable")[:left]
    units[most] += 1
    return codes.astype(np.int64), units.astype(np.int64)


def parse_place(text: str) -> tuple[float, float]:
    """A place in words.

    Args:
        text: X,Y; it is private, and no message quotes it.

    Returns:
        Two numbers.

    Raises:
        InvalidParameter: It is none.

    """
    try:
        x, y = map(float, text.split(","))
    except ValueError:
        raise InvalidParameter("a place is two numbers, X,Y; nothing was sent") from None
    return x, y


def read_token(path: str | Path) -> bytes:
    """The token by which a shuffler knows a device.

    Args:
        path: A file of 32 hexadecimal digits.

    Returns:
        16 bytes.

    Raises:
        InvalidInput: The file holds none.

    """
    try:
        token = bytes.fromhex(Path(path).read_text(encoding="ascii").strip())
    except (OSError, ValueError):
        token = b""
    if len(token) != TOKEN:
        raise InvalidInput(
            f"{path} holds no token, {2 * TOKEN} hexadecimal digits; nothing was sent"
        )
    return token

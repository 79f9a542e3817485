"""What a device does: count its places, add its share of the noise, split, seal; nothing heavy is loaded."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from sfumato._types import IntArray
from sfumato.errors import BudgetExceeded, InvalidInput, InvalidParameter
from sfumato.files import read_json, write_file
from sfumato.heatmap.shuffled.plan import SESSION, TOKEN, ShufflePlan
from sfumato.heatmap.shuffled.rounds import Round, sealed_messages
from sfumato.heatmap.shuffled.sealing import seal
from sfumato.privacy.accounting import Number, exact
from sfumato.privacy.noise import draw_shares, split_into_messages


@dataclass(frozen=True, slots=True)
class Answered:
    """What a device remembers of a plan: the last level that it answered, and what the whole plan costs."""

    level: int
    epsilon: Fraction
    delta: Fraction

    def to_json(self) -> dict[str, Any]:
        """As the memory holds it."""
        return {"level": self.level, "epsilon": str(self.epsilon), "delta": str(self.delta)}

    @staticmethod
    def from_json(data: Any) -> Answered:
        """What the memory holds; ValueError, TypeError or KeyError where it is something else."""
        level, epsilon, delta = data["level"], Fraction(data["epsilon"]), Fraction(data["delta"])
        if type(level) is not int or epsilon < 0 or delta < 0:
            raise ValueError("not what a device has answered")
        return Answered(level, epsilon, delta)


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
        most_epsilon: Number | None = None,
        most_delta: Number | None = None,
    ) -> None:
        """Make a device of a plan.

        Args:
            plan: The plan, whose cost the device has checked.
            places: Where its person was, (x, y) each; all count the same.
            token: 16 bytes by which the shuffler knows it; random if none are given.
            memory: A file in which it notes plans and levels that it answers, before it does; a device
                that is started again without it would answer twice.
            most_epsilon: What all plans in its memory may cost it together; no limit, if None.
            most_delta: Their delta, likewise.

        Raises:
            BudgetExceeded: The plan would cost more than is left; nothing was sent.
            InvalidInput: The memory is none.
            InvalidParameter: The token is none, or there are limits and no memory.

        """
        self.plan = plan
        self.token = os.urandom(TOKEN) if token is None else token
        if len(self.token) != TOKEN:
            raise InvalidParameter(
                f"a token is {TOKEN} bytes, got {len(self.token)}; nothing was sent"
            )
        self._codes, self._units = mass_of_places(plan, places)
        self._memory = None if memory is None else Path(memory)
        self._most = [
            (name, None if most is None else exact(most, name=name))
            for name, most in (("most_epsilon", most_epsilon), ("most_delta", most_delta))
        ]
        if self._memory is None and any(most is not None for _, most in self._most):
            raise InvalidParameter(
                "a limit is one of all plans that a device answers: give `memory` too; nothing was sent"
            )
        own = self._remembered().get(plan.digest.hex())
        self.answered = plan.first_level - 1 if own is None else own.level
        self._check(self.spent)

    @property
    def spent(self) -> tuple[Fraction, Fraction]:
        """Epsilon and delta of this plan and of all others that the device has answered."""
        plans = {**self._remembered(), self.plan.digest.hex(): Answered(0, *self.plan.cost)}
        found = plans.values()
        return sum((one.epsilon for one in found), Fraction(0)), sum(
            (one.delta for one in found), Fraction(0)
        )

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
        self._note(asked.level)
        self.answered = asked.level
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

    def _note(self, level: int) -> None:
        if self._memory is None:
            return
        # Read again: another plan may have been answered since.
        self._check(self.spent)
        told = self._remembered()
        told[self.plan.digest.hex()] = Answered(level, *self.plan.cost)
        data = {digest: one.to_json() for digest, one in told.items()}
        write_file(self._memory, json.dumps(data) + "\n", overwrite=True, private=True)

    def _check(self, spent: tuple[Fraction, Fraction]) -> None:
        for (name, most), cost in zip(self._most, spent, strict=True):
            if most is not None and cost > most:
                raise BudgetExceeded(
                    f"`{name}` is {float(most):g}, with this plan it would be {float(cost):g}; nothing was sent"
                )

    def _remembered(self) -> dict[str, Answered]:
        if self._memory is None or not self._memory.exists():
            return {}
        told = read_json(self._memory, "a device's memory", undone="nothing was sent")
        try:
            return {str(digest): Answered.from_json(one) for digest, one in told.items()}
        except (AttributeError, KeyError, TypeError, ValueError):
            raise InvalidInput(
                f"{self._memory} is no memory of a device; nothing was sent"
            ) from None


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

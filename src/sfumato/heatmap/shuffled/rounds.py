"""What is asked for in a round, signed by the adder, and the messages that answer it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato._types import IntArray
from sfumato.errors import InvalidInput
from sfumato.heatmap.shuffled.plan import INDEX, ShufflePlan
from sfumato.heatmap.shuffled.sealing import Keys, seal

Words = npt.NDArray[np.uint64]
SIGNATURE = 64
OVER = b"over"


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """The cells of a level that devices count; a level is asked for once.

    Attributes:
        level: The level, one of the plan's.
        cells: Codes of cells of it, rising [cell].

    """

    level: int
    cells: IntArray

    def signed(self, plan: ShufflePlan, keys: Keys) -> bytes:
        """The round as it is sent: the signature, and what was signed."""
        told = json.dumps([self.level, self.cells.tolist()]).encode()
        return keys.sign(plan.digest + told) + told

    @staticmethod
    def checked(data: bytes, plan: ShufflePlan) -> Round:
        """The round that the adder of a plan signed; InvalidInput where it is none, or not of the plan."""
        signature, told = data[:SIGNATURE], data[SIGNATURE:]
        if not plan.adder.verify(plan.digest + told, signature):
            raise InvalidInput("the round is not signed by the adder of the plan; nothing was sent")
        try:
            level, cells = json.loads(told)
            codes = np.array(cells, dtype=np.int64).reshape(-1)
        except (ValueError, TypeError, OverflowError, RecursionError):
            raise InvalidInput("a round is a level and its cells; nothing was sent") from None
        if type(level) is not int or not plan.first_level <= level <= plan.last_level:
            raise InvalidInput(f"the plan has no level {level!r}; nothing was sent")
        most = plan.cells_by_level[level - plan.first_level]
        if (
            not 1 <= codes.size <= most
            or np.any(np.diff(codes) <= 0)
            or not 0 <= codes[0] <= codes[-1] < 4**level
        ):
            raise InvalidInput(
                f"a round asks for 1 to {most} cells of level {level}, each once and in order, this one for "
                f"{codes.size}; nothing was sent"
            )
        return Round(level, codes)

    def context(self, plan: ShufflePlan) -> bytes:
        """What messages of the round are sealed for: they mean nothing in another."""
        return plan.digest + bytes([self.level])


def sealed_messages(plan: ShufflePlan, asked: Round, messages: Words) -> bytes:
    """A device's messages [message, cell], each sealed by itself to the adder."""
    size, context = (plan.bits + 7) // 8, asked.context(plan)
    return b"".join(
        seal(cell.to_bytes(INDEX, "big") + value.to_bytes(size, "big"), plan.adder, context=context)
        for row in messages.tolist()
        for cell, value in enumerate(row)
    )


def added_up(plan: ShufflePlan, asked: Round, mixed: memoryview, keys: Keys) -> tuple[Words, int]:
    """The sum of all messages of each cell, modulo 2**64, and how many could not be read.

    Args:
        plan: The plan of the map.
        asked: The round that they answer.
        mixed: All messages, one after the other.
        keys: The adder's.

    Returns:
        A sum for each cell that was asked for, and the number of messages that were spoilt.

    """
    found, spoilt, context = [0] * asked.cells.size, 0, asked.context(plan)
    for at in range(0, len(mixed), plan.record):
        told = keys.unseal(bytes(mixed[at : at + plan.record]), context)
        cell = -1 if told is None else int.from_bytes(told[:INDEX], "big")
        if told is None or cell >= asked.cells.size:
            spoilt += 1
            continue
        found[cell] += int.from_bytes(told[INDEX:], "big")
    return np.array([one % 2**64 for one in found], dtype=np.uint64), spoilt


def mix(reports: list[bytes], record: int) -> bytearray:
    """Messages of all reports in an order that says nothing: each is as likely, by the system's randomness.

    Args:
        reports: What each device sent, of one size.
        record: Bytes of one message.

    Returns:
        The messages of all, one after another.

    """
    # One copy, of which each message's place is drawn.
    found = bytearray(sum(map(len, reports)))
    held, at = np.frombuffer(found, dtype=np.uint8).reshape(-1, record), 0
    order = uniform_order(len(held))
    for report in reports:
        messages = np.frombuffer(report, dtype=np.uint8).reshape(-1, record)
        held[order[at : at + len(messages)]] = messages
        at += len(messages)
    return found


def uniform_order(count: int) -> IntArray:
    """A permutation, each exactly as likely: the order of random numbers that are all different."""
    while True:
        drawn = np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
        order = np.argsort(drawn, kind="stable")
        if not np.any(drawn[order][1:] == drawn[order][:-1]):
            return order

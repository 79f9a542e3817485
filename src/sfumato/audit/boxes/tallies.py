"""How often each output came of either input of a pair."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato.audit.boxes.box import Box, Outputs, Pair
from sfumato.audit.boxes.runs import Fresh, common_encoder, run_side
from sfumato.audit.boxes.samples import Encoder, encoder_of
from sfumato.audit.claims import EpsilonDelta
from sfumato.audit.verdict import Event, Witness
from sfumato.errors import InvalidInput, InvalidParameter


@dataclass(frozen=True, slots=True)
class Table:
    """How often each output came of either input; `strange` if there were others than those stated."""

    counts: tuple[IntArray, IntArray]
    keys: tuple[bytes, ...]
    encoder: Encoder
    strange: bool


class Tallies:
    """Runs a box and counts its outputs, all of which, or whose number, is known.

    Where laws are stated of the outputs, others make a table strange; else they are an error.
    """

    def __init__(self, box: Box, outputs: int | Sequence[Any], *, stated: bool) -> None:
        self._box, self._outputs, self._stated = box, outputs, stated
        self._fresh: dict[int, Fresh] = {}  # by id: what a pair holds need not have a hash

    def count(self, pair: Pair, runs: int) -> Table:
        """So many runs of either input, counted; refused where they repeat those of an earlier call."""
        outputs = run_side(self._box, pair, 0, runs), run_side(self._box, pair, 1, runs)
        size = self._outputs if isinstance(self._outputs, int) else len(self._outputs)
        known: tuple[bytes, ...] = ()
        if isinstance(self._outputs, int):
            encoder = common_encoder(*outputs)
        else:
            encoder = encoder_of(self._outputs)
            known = tuple(_tally(self._outputs, encoder(self._outputs)))
            if len(known) != size:
                raise InvalidParameter(
                    f"the {size} outputs must all differ, got {len(known)} different ones"
                )
        rows = encoder(outputs[0]), encoder(outputs[1])
        self._fresh.setdefault(id(pair), Fresh(self._box, pair)).require(rows)
        tallies = [_tally(some, encoded) for some, encoded in zip(outputs, rows, strict=True)]
        others = tuple(sorted({key for tally in tallies for key in tally} - set(known)))
        if not self._stated and len(known) + len(others) > size:
            raise InvalidInput(
                f"{self._box.name} is said to have {size} outputs, and gave others, or more of them; "
                "nothing was concluded"
            )
        if not self._stated:
            known, others = known + others, ()
        first, second = (
            np.array([tally[key] for key in known], dtype=np.int64) for tally in tallies
        )
        return Table((first, second), known, encoder, bool(others))


def too_often(pair: Pair, table: Table, statement: EpsilonDelta) -> Witness:
    """The outputs that one input has more than e**epsilon times as often as the other, by this sample."""
    first, second = table.counts
    grown = math.exp(statement.epsilon)
    if np.maximum(first - grown * second, 0).sum() < np.maximum(second - grown * first, 0).sum():
        pair, first, second = Pair(pair.second, pair.first, f"{pair.name}, swapped"), second, first
    inside = np.flatnonzero(first > grown * second)
    keys = frozenset(table.keys[int(at)] for at in inside)

    def contains(rows: FloatArray) -> npt.NDArray[np.bool_]:
        bits = np.ascontiguousarray(rows).view(np.int64)
        return np.array([row.tobytes() in keys for row in bits], dtype=np.bool_)

    words = f"{inside.size} of the {first.size} outputs, those that the first input has too often"
    hits = int(first[inside].sum()), int(second[inside].sum())
    return Witness(
        pair,
        Event(words, contains),
        statement,
        hits,
        (int(first.sum()), int(second.sum())),
        table.encoder,
    )


def _tally(outputs: Outputs, rows: FloatArray) -> Counter[bytes]:
    """How often each output occurs, by its bits: 0.0 and -0.0 differ, and so do nan and inf."""
    odd = rows[:, -1] != 0
    found, counts = _distinct(np.ascontiguousarray(rows[~odd]).view(np.int64))
    tally = Counter({row.tobytes(): int(count) for row, count in zip(found, counts, strict=True)})
    tally.update(repr(outputs[int(at)]).encode() for at in np.flatnonzero(odd))
    return tally


def _distinct(rows: IntArray) -> tuple[IntArray, IntArray]:
    """The rows that differ, in their order, and how often each occurs."""
    varying = np.flatnonzero((rows != rows[:1]).any(axis=0))
    if varying.size != 1:
        found, counts = np.unique(rows, axis=0, return_counts=True)
        return found, counts
    # Numbers are sorted ten times as fast as rows.
    values, counts = np.unique(rows[:, varying[0]], return_counts=True)
    found = np.repeat(rows[:1], values.size, axis=0)
    found[:, varying[0]] = values
    return found, counts

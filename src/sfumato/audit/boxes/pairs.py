"""Neighboring inputs to try a black box on, when the user names only their form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sfumato.audit.boxes.box import Pair
from sfumato.errors import InvalidParameter
from sfumato.privacy import AddRemoveUser, Claim, ReplaceUser

Relation = AddRemoveUser | ReplaceUser | None
Vector = npt.NDArray[np.float64]

SHIFTS = (-4.0, -2.0, -1.0, 1.0, 2.0, 4.0)


class Inputs(Protocol):
    """A form of data, with pairs of it that differ by one person."""

    @property
    def relation(self) -> Relation:
        """In which sense the two of a pair are neighbors; None where the form leaves it open."""

    def patterns(self) -> tuple[Pair, ...]:
        """The pairs to begin with."""

    def vary(self, pair: Pair) -> tuple[Pair, ...]:
        """Neighboring pairs close to this one, for a search."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """One number, which a person changes by at most `step`.

    Attributes:
        step: How much a person changes the number, above 0.

    >>> [(pair.first, pair.second) for pair in Numbers().patterns()]
    [(0.0, 1.0), (10.0, 11.0), (-1.0, 0.0)]
    """

    step: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a step that changes nothing."""
        _require(0 < self.step < np.inf, "a step must be above 0", self.step)

    @property
    def relation(self) -> Relation:
        """Left open: what a person does to a number is for whoever computed it to say."""
        return None

    def patterns(self) -> tuple[Pair, ...]:
        """Next to zero on either side, and away from it."""
        return tuple(self._at(start * self.step) for start in (0.0, 10.0, -1.0))

    def vary(self, pair: Pair) -> tuple[Pair, ...]:
        """The same step from elsewhere."""
        start = min(float(pair.first), float(pair.second))
        return tuple(self._at(start + shift * self.step) for shift in SHIFTS)

    def _at(self, start: float) -> Pair:
        return Pair(start, start + self.step, f"{start:g} and {start + self.step:g}")


@dataclass(frozen=True, slots=True)
class Queries:
    """Answers to so many queries, each of which a person changes by at most 1, in any direction.

    The patterns are the eight of [ding18, table 1].

    Attributes:
        count: Of queries, at least 1.
    """

    count: int

    def __post_init__(self) -> None:
        """Refuse no queries."""
        _require(self.count >= 1, "queries must be at least 1", self.count)

    @property
    def relation(self) -> Relation:
        """Left open: what a person does to an answer is up to the query."""
        return None

    def patterns(self) -> tuple[Pair, ...]:
        """One or all answers up or down, halves apart, and halves that change places."""
        ones = np.ones(self.count)
        first = np.arange(self.count) == 0
        half = np.arange(self.count) < (self.count + 1) // 2
        found = (
            Pair(ones, np.where(first, 2.0, 1.0), "one up"),
            Pair(ones, np.where(first, 0.0, 1.0), "one down"),
            Pair(ones, np.where(first, 2.0, 0.0), "one up, the others down"),
            Pair(ones, np.where(first, 0.0, 2.0), "one down, the others up"),
            Pair(ones, np.where(half, 0.0, 2.0), "half down, half up"),
            Pair(ones, 2 * ones, "all up"),
            Pair(ones, 0 * ones, "all down"),
            Pair(half.astype(np.float64), (~half).astype(np.float64), "halves change places"),
        )
        return _different(found)

    def vary(self, pair: Pair) -> tuple[Pair, ...]:
        """All answers of both inputs higher or lower, the queries in the other order, a starker contrast."""
        first, second = np.asarray(pair.first, float), np.asarray(pair.second, float)
        name = pair.name
        lean = np.sign(first - first.mean()) + np.sign(second - second.mean())
        found = [Pair(first + by, second + by, f"{name}, {by:+g}") for by in SHIFTS]
        found.append(Pair(first[::-1].copy(), second[::-1].copy(), f"{name}, backwards"))
        found.append(Pair(first + lean, second + lean, f"{name}, starker"))
        return _different(found)


@dataclass(frozen=True, slots=True)
class Histograms:
    """Counts of so many bins. One person more or less; with `replace` one moves to another bin.

    Attributes:
        bins: At least 1, or 2 with replace.
        replace: Whether a person moves rather than comes.
    """

    bins: int
    replace: bool = False

    def __post_init__(self) -> None:
        """Refuse a histogram in which nobody can move."""
        _require(
            self.bins >= 1 + self.replace, f"bins must be at least {1 + self.replace}", self.bins
        )

    @property
    def relation(self) -> Relation:
        """One person more or less, or one replaced."""
        return ReplaceUser() if self.replace else AddRemoveUser()

    def patterns(self) -> tuple[Pair, ...]:
        """Nobody else, a few everywhere, many, and a ramp; the person in the first or the last bin."""
        bases = {
            "nobody else": np.zeros(self.bins),
            "one in every bin": np.ones(self.bins),
            "ten in every bin": np.full(self.bins, 10.0),
            "a ramp": np.arange(self.bins, dtype=np.float64),
        }
        return _different(
            self._move(base, bin_, f"{name}, bin {bin_}")
            for name, base in bases.items()
            for bin_ in dict.fromkeys((0, self.bins - 1))
        )

    def vary(self, pair: Pair) -> tuple[Pair, ...]:
        """More or fewer others, and the person in the next bin."""
        first, second = np.asarray(pair.first, float), np.asarray(pair.second, float)
        base, bin_ = np.minimum(first, second), int(np.argmax(np.abs(second - first)))
        found = [
            self._move(np.maximum(base + by, 0), bin_, f"{pair.name}, {by:+g} in every bin")
            for by in SHIFTS
        ]
        beside = (bin_ + 1) % self.bins
        found.append(self._move(base, beside, f"{pair.name}, then bin {beside}"))
        found.append(self._move(base[::-1].copy(), bin_, f"{pair.name}, backwards"))
        return _different(found)

    def _move(self, base: Vector, bin_: int, name: str) -> Pair:
        first, second = base.copy(), base.copy()
        second[bin_] += 1
        if self.replace:
            first[(bin_ + 1) % self.bins] += 1
        return Pair(first, second, name)


@dataclass(frozen=True, slots=True)
class Lists:
    """People with a number from low to high each. One person is added or, with `replace`, changed.

    Attributes:
        length: Of the list, about.
        low: The smallest number of a person.
        high: The largest.
        replace: Whether a person changes rather than comes.
    """

    length: int = 10
    low: float = 0.0
    high: float = 1.0
    replace: bool = False

    def __post_init__(self) -> None:
        """Refuse a range without two values."""
        _require(self.length >= 1, "a list must have at least 1 person", self.length)
        _require(self.low < self.high, "low must be below high", (self.low, self.high))

    @property
    def relation(self) -> Relation:
        """One person more or less, or one replaced."""
        return ReplaceUser() if self.replace else AddRemoveUser()

    def patterns(self) -> tuple[Pair, ...]:
        """Everybody low, high or half and half, the person at the other end; alone; among many."""
        low, high, size = [self.low], [self.high], self.length
        others = {
            "all low": low * size,
            "all high": high * size,
            "half low, half high": low * (size // 2) + high * (size - size // 2),
            "ten times as many, all low": low * (10 * size),
        }
        alone = (
            ()
            if self.replace
            else (Pair([], high, "nobody, one high"), Pair([], low, "nobody, one low"))
        )
        ends = (self.low, self.high)
        return alone + tuple(
            self._add(base, value, name) for name, base in others.items() for value in ends
        )

    def vary(self, pair: Pair) -> tuple[Pair, ...]:
        """The person first instead of last, more others, and a middling person."""
        shorter, longer = sorted((list(pair.first), list(pair.second)), key=len)
        person = longer[-1]
        middle = (self.low + self.high) / 2
        return (
            Pair(shorter[::-1], longer[::-1], f"{pair.name}, backwards"),
            Pair(shorter + shorter, shorter + longer, f"{pair.name}, twice as many"),
            self._add(shorter[: self.length // 2], person, f"{pair.name}, half as many"),
            self._add(shorter, middle, f"{pair.name}, one middling"),
        )

    def _add(self, others: list[float], value: float, name: str) -> Pair:
        words = "low" if value == self.low else "high" if value == self.high else f"{value:g}"
        if self.replace:
            opposite = self.high if value == self.low else self.low
            return Pair([*others, opposite], [*others, value], f"{name}, one made {words}")
        return Pair(others, [*others, value], f"{name}, one {words} more")


FORMS: dict[str, Callable[[str], Inputs]] = {
    "numbers": lambda size: Numbers(float(size or 1)),
    "queries": lambda size: Queries(int(size or 10)),
    "histogram": lambda size: Histograms(int(size or 5)),
    "histogram-replace": lambda size: Histograms(int(size or 5), replace=True),
    "list": lambda size: Lists(int(size or 10)),
    "list-replace": lambda size: Lists(int(size or 10), replace=True),
}
"""Names of the forms, with the size where one is given."""


def inputs_of(text: str) -> Inputs:
    """The form that a command line names: numbers, queries:10, histogram:5, list:20.

    Args:
        text: The name of a form, maybe with :SIZE.

    Returns:
        The form.

    Raises:
        InvalidParameter: If there is no such form.

    >>> inputs_of("histogram:5"), inputs_of("numbers")
    (Histograms(bins=5, replace=False), Numbers(step=1.0))
    """
    form, _, size = text.partition(":")
    try:
        return FORMS[form](size)
    except (KeyError, ValueError):
        raise InvalidParameter(
            f"inputs are one of {', '.join(FORMS)}, each with :SIZE after it or not, got {text!r}; "
            "nothing was run"
        ) from None


def require_relation(inputs: Sequence[Pair] | Inputs, claim: Claim) -> None:
    """Refuse a form whose pairs are no neighbors in the sense of a claim: they would refute a true one.

    To be called where a form meets a claim, before any run (`refute`, `assert_private`, the command
    line). Pairs that are given one by one, and forms that leave their relation open, are taken as
    they are.
    """
    if (
        isinstance(inputs, Sequence)
        or inputs.relation is None
        or inputs.relation == claim.neighbors
    ):
        return
    raise InvalidParameter(
        f"inputs must be neighbors in the sense of the claim, {claim.neighbors}, got {inputs}, with "
        f"{inputs.relation}; nothing was run"
    )


def _different(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    """Without pairs of twice the same, and without the same pair twice."""
    found: dict[tuple[Any, Any], Pair] = {}
    for pair in pairs:
        key = (tuple(np.asarray(pair.first).tolist()), tuple(np.asarray(pair.second).tolist()))
        if key[0] != key[1]:
            found.setdefault(key, pair)
    return tuple(found.values())


def _require(holds: bool, rule: str, value: object) -> None:
    if not holds:
        raise InvalidParameter(f"{rule}, got {value}; nothing was run")

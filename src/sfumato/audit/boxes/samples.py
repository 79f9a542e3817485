"""Outputs of a black box as rows of numbers, whatever they are: numbers, vectors, categories, words."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray

WORD = 2.0**1000
"""Numbers from here on stand for words: 52 bits of a hash in [2**1000, 2**1001). Outputs so large are odd."""
WHOLE = 2**53
"""Up to here a double tells two whole numbers apart."""
LEAF_ODD, ALL_ODD = 1.0, 2.0
"""What the last column says of an output that has an odd part, and of one that has not the usual parts."""
FIRST = 1000
"""So many outputs choose the encoder."""
REMEMBERED = 10_000
"""So many words are remembered, to be shown in place of their numbers."""

Keys = npt.NDArray[np.uint64]

_spelled: dict[float, str] = {}


@dataclass(frozen=True, slots=True)
class Encoder:
    """How outputs become rows: `width` numbers each, and a last column that is not 0 where an output is odd.

    An output's row depends on that output alone. Its parts (of lists, tuples, arrays in any shape;
    of dicts in the order of their keys) are columns: numbers as they are, with their bits, words as
    codes from `WORD` on. Odd is what is not a number that a double holds (nan, infinite, too large)
    nor a word, and what does not have the parts of the first outputs seen. With `words` nothing is
    odd: single numbers are kept, all else has one code. Two outputs that differ in more than their
    shape get rows that differ.
    """

    width: int
    words: bool

    def __call__(self, outputs: Sequence[Any] | npt.NDArray[Any]) -> FloatArray:
        """One row for each output: width + 1 numbers."""
        array = _numeric(outputs)
        rows = np.zeros((len(outputs), self.width + 1))
        left: Sequence[int] = range(len(outputs))
        if (
            array is not None
            and array.shape[1] == self.width
            and not (self.words and self.width > 1)
        ):
            rows[:, :-1] = array
            max_number = WHOLE if array.dtype.kind in "biu" else np.nextafter(WORD, 0)
            left = np.flatnonzero(
                ~((array >= -max_number) & (array <= max_number)).all(axis=1)
            ).tolist()
        for place in left:
            rows[place] = self._row(outputs[place])
        return rows

    def _row(self, output: Any) -> FloatArray:
        row = np.zeros(self.width + 1)
        leaves = _leaves(output)
        numbers = [_number(leaf) for leaf in leaves]
        if self.words:
            kept = len(numbers) == 1 and numbers[0] is not None and not isinstance(leaves[0], _Code)
            row[0] = numbers[0] if kept else code(output)
        elif len(leaves) == self.width:
            for place, (leaf, number) in enumerate(zip(leaves, numbers, strict=True)):
                row[place] = code(leaf) if number is None else number
                if number is None and not isinstance(leaf, str | bytes):
                    row[-1] = LEAF_ODD
        else:
            # The identity of an odd output still tells: two different ones are two different rows.
            row[0], row[-1] = code(output), ALL_ODD
        return row


def encoder_of(outputs: Sequence[Any] | npt.NDArray[Any]) -> Encoder:
    """The encoder that suits these first outputs.

    Args:
        outputs: Of a box, at least one.

    Returns:
        The encoder.

    >>> encoder_of([1.5, 2.5]), encoder_of(["yes", "no"]), encoder_of([("yes", 1), ("no", 2)])
    (Encoder(width=1, words=False), Encoder(width=1, words=True), Encoder(width=2, words=False))
    """
    array = _numeric(outputs)
    if array is not None:
        return Encoder(array.shape[1], words=False) if array.shape[1] else Encoder(1, words=True)
    parts = [_leaves(output) for output in outputs[:FIRST]]
    # What most have is usual; words alone, and what has no usual form, are told as they are.
    kinds = Counter(
        (len(leaves), len(leaves) == 1 and not _is_number(leaves[0])) for leaves in parts
    )
    (width, words), often = kinds.most_common(1)[0] if kinds else ((0, True), 0)
    if words or not width or 2 * often <= len(parts):
        return Encoder(1, words=True)
    return Encoder(width, words=False)


def keys_of(rows: FloatArray, *, before: float | None = None) -> Keys:
    """A 64-bit number for each row, equal for rows of the same bits; others collide by chance alone.

    A number `before` all rows is as one more column of it, and is worked out once.
    """
    found = np.full(len(rows) if before is None else 1, 0xCBF29CE484222325, dtype=np.uint64)
    first = () if before is None else (np.array([before]).view(np.uint64),)
    for column in (*first, *np.ascontiguousarray(rows).view(np.uint64).T):
        found = (found ^ (column >> np.uint64(29)) ^ column) * np.uint64(0x9E3779B97F4A7C15)
        found ^= found >> np.uint64(32)
    return found


def code(word: Any) -> float:
    """A number from `WORD` on that stands for anything: 52 bits of a hash of how it prints."""
    text = repr(_plain(word))
    digest = hashlib.sha256(text.encode(errors="backslashreplace")).digest()
    found = math.ldexp(2**52 + (int.from_bytes(digest[:7], "big") >> 4), 1000 - 52)
    if found not in _spelled:
        if len(_spelled) >= REMEMBERED:
            del _spelled[next(iter(_spelled))]
        _spelled[found] = text if len(text) <= 60 else text[:57] + "..."
    return found


def spelled(number: float) -> str | None:
    """The word that a number in a row stands for, as it prints; None of a number that is one.

    >>> spelled(code("red")), spelled(2.5)
    ("'red'", None)
    """
    if number < WORD:
        return None
    return _spelled.get(number, f"a word (code {number / WORD * 2**52 - 2**52:.0f})")


class _Code(str):
    """What stands for the form of an output, or for what a double leaves of a number: never a word itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _leaves(output: Any) -> list[Any]:
    """The parts of an output, in order; before them its form, where that is more than a list or an array."""
    match output:
        case np.ndarray():
            return list(itertools.chain.from_iterable(map(_leaves, output.ravel().tolist())))
        case np.generic():
            plain = output.item()
            return [plain] if isinstance(plain, np.generic) else _leaves(plain)
        case complex():
            return [output.real, output.imag]
        case Fraction() | Decimal():
            return _with_rest(output)
        case dict():
            keys = sorted(output, key=lambda key: repr(_plain(key)))
            form = f"a dict of {', '.join(repr(_plain(key)) for key in keys)}"
            inside = [_leaves(output[key]) for key in keys]
            sizes = (
                ""
                if all(len(part) == 1 for part in inside)
                else f" in {[len(part) for part in inside]}"
            )
            return [_Code(form + sizes), *itertools.chain.from_iterable(inside)]
        case list() | tuple():
            inside = [_leaves(part) for part in output]
            sizes_of = {len(part) for part in inside}
            form_of = (
                [] if len(sizes_of) <= 1 else [_Code(f"parts of {[len(part) for part in inside]}")]
            )
            return [*form_of, *itertools.chain.from_iterable(inside)]
        case _:
            return [output]


def _with_rest(output: Fraction | Decimal) -> list[Any]:
    """The nearest double, and what stands for the exact number where that is another one."""
    try:
        near = float(output)
        again = Fraction(near) if isinstance(output, Fraction) else Decimal(repr(near))
    except (OverflowError, ValueError):
        return [math.nan, _Code(f"exactly {output}")]
    return [near, 0.0 if str(again) == str(output) else _Code(f"exactly {output}")]


def _is_number(leaf: Any) -> bool:
    return isinstance(leaf, int | float | np.number)


def _number(leaf: Any) -> float | None:
    """A number that a double holds as it is, else None."""
    if not _is_number(leaf) or (isinstance(leaf, int) and not -WHOLE <= leaf <= WHOLE):
        return None
    found = float(leaf)
    return found if found == leaf and -WORD < found < WORD else None


def _plain(output: Any) -> Any:
    """An output that prints the same wherever it comes from: no NumPy, dicts and sets in order."""
    match output:
        case _Code():
            return output
        case np.ndarray():
            return _plain(output.tolist())
        case np.generic() if not isinstance(output, np.longdouble | np.clongdouble):
            return _plain(output.item())
        case str():
            return str(output)
        case list():
            return [_plain(part) for part in output]
        case tuple():
            return tuple(_plain(part) for part in output)
        case dict():
            parts = [(_plain(key), _plain(part)) for key, part in output.items()]
            return dict(sorted(parts, key=lambda part: repr(part[0])))
        case set() | frozenset():
            return _Code(f"{{{', '.join(sorted(repr(_plain(part)) for part in output))}}}")
        case _:
            return output


def _numeric(outputs: Sequence[Any] | npt.NDArray[Any]) -> npt.NDArray[Any] | None:
    """Rows of numbers that doubles hold as they are, or whole ones that are looked at next; else None.

    Only where this gives of each output what it would give of that output alone.
    """
    if not isinstance(outputs, np.ndarray):
        if not len(outputs) or (array := _alike(outputs)) is None:
            return None
        outputs = array
    if outputs.ndim == 0 or outputs.dtype.kind not in "biuf" or outputs.dtype.itemsize > 8:
        return None
    return outputs.reshape(len(outputs), math.prod(outputs.shape[1:]))


def _alike(outputs: Sequence[Any]) -> npt.NDArray[Any] | None:
    """An array of outputs that are all of one type: floats, whole numbers, tuples or arrays of them."""
    kinds = set(map(type, outputs))
    if len(kinds) > 1:
        return None
    if kinds == {np.ndarray}:
        same = len({(one.shape, one.dtype) for one in outputs}) == 1
        return np.stack(list(outputs)) if same else None
    if kinds <= {list, tuple}:
        inner = set(map(type, itertools.chain.from_iterable(outputs)))
        if len(inner) != 1 or len(set(map(len, outputs))) > 1:
            return None
        kinds = inner
    kind = kinds.pop()
    if kind in (float, bool) or (
        issubclass(kind, np.number | np.bool_) and kind is not np.longdouble
    ):
        return np.array(outputs)
    # Whole numbers too large for 64 bits make an array of objects, or of doubles.
    found = np.array(outputs) if kind is int else None
    return found if found is not None and found.dtype.kind == "i" else None

"""Whose row it is, and of which group: keys that every engine takes for the same where we do."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import ibis

from sfumato.errors import InvalidInput
from sfumato.records.collations import text_bytes
from sfumato.records.numbers import bytes_in, double, finite, hex_of, types_are_hints


def user_key(column: Any, name: str) -> tuple[Any, Any]:
    """What tells users apart, and whether a row has one: no NULL, NaN, infinity or empty text."""
    kind = column.type()
    # Engines convert moments on reading, and fail at those that are out of their range.
    moment = kind.is_timestamp() or kind.is_time() or kind.is_interval()
    if moment or kind.is_nested() or kind.is_json() or kind.is_geospatial() or kind.is_unknown():
        raise InvalidInput(
            f"column {name!r} cannot name users, its type is {kind}; nothing was counted"
        )
    if types_are_hints(column):
        there = (column.typeof() == "real").ifelse(
            finite(column.cast("float64")), bytes_in(column) > 0
        )
        return _sqlite_key(column), there
    if kind.is_string():
        # Not by a comparison with '', which a collation may take for a comma.
        return text_bytes(column, column.get_backend().name, name), column.notnull() & (
            column.length() > 0
        )
    if kind.is_floating():
        number = column.cast("float64")
        # Zeros of both signs are one number, and not all engines group them as one.
        return number + double(0), finite(number)
    return column, column.notnull()


def group_key(
    column: Any, name: str, groups: tuple[str, ...]
) -> tuple[Any, list[Any], dict[Hashable, int]]:
    """What tells groups apart; the public keys to compare it with; and which group each of them is."""
    kind, engine = column.type(), column.get_backend().name
    numbers: dict[Hashable, int]
    if types_are_hints(column):
        numbers = {f"t{one.encode().hex().upper()}": number for number, one in enumerate(groups)}
        return _sqlite_key(column), list(numbers), numbers
    if kind.is_string():
        numbers = {one.encode(): number for number, one in enumerate(groups)}
        return (
            text_bytes(column, engine, name),
            [text_bytes(ibis.literal(one), engine, name) for one in groups],
            numbers,
        )
    if kind.is_integer():
        # The public values are made to fit the column: a row need not fit another type.
        low, high = kind.bounds
        numbers = {int(one): number for number, one in enumerate(groups) if _is_whole(one)}
        fit = [one for one in numbers if isinstance(one, int) and low <= one <= high]
        return column, [ibis.literal(one, kind) for one in fit], numbers
    raise InvalidInput(
        f"column {name!r} must hold text or whole numbers to group by, its type is {kind}; "
        "nothing was counted"
    )


def _sqlite_key(column: Any) -> Any:
    """A value of SQLite as text that equal values share: a row may hold any type, whatever its column says.

    1, 1.0 and '1' are one value; bytes are never text. 17 digits tell doubles apart.
    """
    kind, number = column.typeof(), column.cast("float64")
    # SQLite compares whole numbers with doubles exactly.
    whole = (kind == "real") & (number == number.cast("int64"))
    text = whole.ifelse(number.cast("int64").cast("string"), column.cast("string"))
    return ibis.cases(
        (kind == "blob", "b" + hex_of(column.cast("binary"))),
        ((kind == "real") & ~whole, "r" + _printf("%!.17g", number)),
        else_="t" + hex_of(text.cast("binary")),
    )


@ibis.udf.scalar.builtin(name="printf")  # type: ignore[untyped-decorator]
def _printf(pattern: str, value: float) -> str:  # type: ignore[empty-body]
    """SQLite's number in as many digits as are asked for."""


def _is_whole(text: str) -> bool:
    """Whether text is a whole number as it is printed, of at most the 20 digits of 64 bits."""
    return len(text) <= 20 and text.removeprefix("-").isdecimal() and str(int(text)) == text

"""What a field of a row says, alike on every engine: numbers, whose row it is, and of which group."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import ibis
import ibis.expr.operations as ops

from sfumato.errors import InvalidInput
from sfumato.records.text_rows import DECIMAL


def double(value: float) -> Any:
    """A double in a query, exactly.

    Written as text: as a bare number with 17 digits some engines take it for a decimal, and round
    twice.
    """
    return ibis.literal(repr(float(value))).cast("float64")


def as_double(column: Any, name: str) -> Any:
    """A column as doubles, NULL where it holds no number; types that hold none raise.

    Text is a number if it is one in decimal, with blanks around it or not. Decimals go through text
    too, which is rounded once; engines that divide by a power of ten may round twice.

    Args:
        column: A column of an Ibis table.
        name: What messages call it.

    Returns:
        An Ibis expression of doubles.

    Raises:
        InvalidInput: The type of the column holds no numbers.

    """
    kind = column.type()
    if not (kind.is_floating() or kind.is_integer() or kind.is_decimal() or kind.is_string()):
        raise InvalidInput(
            f"column {name!r} must hold numbers or text, its type is {kind}; nothing was counted"
        )
    if types_are_hints(column):
        is_number = column.typeof().isin(["integer", "real"])
        return is_number.ifelse(column.cast("float64"), _read(_plain_text(column)))
    if kind.is_floating() or kind.is_integer():
        return column.cast("float64")
    return _read(without_collation(column.cast("string")))


def types_are_hints(column: Any) -> bool:
    """Whether a row may hold a value of another type than its column's: SQLite takes 'zz' for an integer."""
    return bool(column.get_backend().name == "sqlite")


def _read(text: Any) -> Any:
    """The numbers that text is, NULL where it is none. Blanks are looked for only where there may be some."""
    bare = text.strip()
    blank = bare.re_search(DECIMAL).ifelse(bare, ibis.null("string"))
    number = text.re_search(DECIMAL).ifelse(text, blank)
    # Whatever passed is a number, so that a plain cast cannot fail where an engine has no other.
    return number.try_cast("float64") if can(text, ops.TryCast) else number.cast("float64")


def _plain_text(column: Any) -> Any:
    """The text in a column of SQLite that may be a number, NULL for other text, bytes and numbers.

    Its regular expressions are Python's, which stop at text that is no UTF-8. So this asks SQLite
    alone; a character 0 ends text for `glob` and `length`, not for the length in bytes.
    """
    text = column.cast("string")
    plain = (column.typeof() == "text") & (text.length() == bytes_in(text))
    return (plain & ~_glob("*[^-+.0-9eE \t\n\r\v\f]*", text)).ifelse(text, ibis.null("string"))


def bytes_in(column: Any) -> Any:
    """How many bytes a value of SQLite has as text, or as the bytes it is."""
    return hex_of(column.cast("binary")).length() // 2


@ibis.udf.scalar.builtin(name="hex")  # type: ignore[untyped-decorator]
def hex_of(value: bytes) -> str:  # type: ignore[empty-body]
    """SQLite's bytes of a value as digits in capitals; its own length of text ends at a character 0."""


@ibis.udf.scalar.builtin(name="glob")  # type: ignore[untyped-decorator]
def _glob(pattern: str, text: str) -> bool:  # type: ignore[empty-body]
    """SQLite's match of a pattern as in a shell."""


def without_underflow(column: Any) -> Any:
    """Doubles that PostgreSQL divides without an error: it stops where a quotient is too near to 0.

    No edge of a cell lies between 0 and these.
    """
    if column.get_backend().name != "postgres":
        return column
    least = double(1e-250)
    near = (column > -least) & (column < least) & (column != double(0))
    return near.ifelse((column > double(0)).ifelse(least, -least), column)


def computed_once(rows: Any) -> Any:
    """The same rows, whose columns an engine computes once a row and not once a use.

    SQLite and PostgreSQL write the columns of a query within a query out wherever they are used,
    unless it has a limit; no table has 2**62 rows.
    """
    return rows.limit(2**62) if rows.get_backend().name in ("sqlite", "postgres") else rows


def finite(column: Any) -> Any:
    """Whether a double is neither NaN nor infinite: x - x is 0 for the others alone, on every engine.

    A filter must ask this beside any bounds: DuckDB 2.0 drops a comparison that the minimum and
    maximum in a Parquet file already answer, and these leave NaN out.
    """
    return (column - column) == double(0)


def can(expression: Any, operation: type[ops.Value]) -> bool:
    """Whether the engine of an expression knows an operation."""
    return bool(expression.get_backend().has_operation(operation))


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


def text_bytes(text: Any, engine: str, name: str) -> Any:
    """The UTF-8 of text in a query, for grouping and comparing.

    Collations may take 'A' for 'a', 'e' for 'é' or '' for '!': two users would be one, and the
    spelling of a group another's. An engine whose way to bytes is not known and tested is refused.
    """
    if engine not in _BYTES:
        raise InvalidInput(
            f"text is compared by its bytes, and how to ask {engine} for them is not known; column {name!r} "
            "must hold whole numbers there, or the table be exported to Parquet; nothing was counted"
        )
    return _BYTES[engine](text)


def without_collation(text: Any) -> Any:
    """The same text for functions: regular expressions of PostgreSQL refuse columns of some collations."""
    if text.get_backend().name == "postgres":
        return _convert_from(_convert_to(text, "UTF8"), "UTF8")
    return text


@ibis.udf.scalar.builtin(name="encode")  # type: ignore[untyped-decorator]
def _encode(text: str) -> bytes:  # type: ignore[empty-body]
    """DuckDB's UTF-8 of text; a cast would take backslashes for escapes."""


@ibis.udf.scalar.builtin(name="convert_to")  # type: ignore[untyped-decorator]
def _convert_to(text: str, encoding: str) -> bytes:  # type: ignore[empty-body]
    """PostgreSQL's bytes of text."""


@ibis.udf.scalar.builtin(name="convert_from")  # type: ignore[untyped-decorator]
def _convert_from(text: bytes, encoding: str) -> str:  # type: ignore[empty-body]
    """PostgreSQL's text of bytes, in the collation of the database, which is a deterministic one."""


_BYTES: dict[str, Callable[[Any], Any]] = {
    "duckdb": _encode,
    "polars": lambda text: text.cast("binary"),
    "pyspark": lambda text: text.cast("binary"),
    "postgres": lambda text: _convert_to(text, "UTF8"),
}

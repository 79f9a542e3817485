"""Text by its bytes, whatever collation an engine would compare it by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ibis

from sfumato.errors import InvalidInput


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

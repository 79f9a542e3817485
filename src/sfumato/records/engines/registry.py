"""Engines by name: ours, and those that others register or install."""

from __future__ import annotations

from typing import Any

from sfumato._registry import Registry
from sfumato.errors import InvalidParameter
from sfumato.records.engines.protocol import RowEngine


def _made(_: str, found: Any) -> RowEngine:
    """Entry points name an engine, or a function or class that makes one."""
    engine: RowEngine = found() if callable(found) else found
    return engine


_HERE = "sfumato.records.engines"
ENGINES = Registry[RowEngine](
    "engine",
    "sfumato.engines",
    {
        "duckdb": f"{_HERE}.duckdb:DuckDBEngine",
        "polars": f"{_HERE}.polars:PolarsEngine",
        "spark": f"{_HERE}.spark:SparkEngine",
    },
    made=_made,
)


def register_engine(engine: RowEngine) -> None:
    """Make an engine known by its name, in this process.

    Args:
        engine: The engine; its name is none of `engine_names`, unless of one that is installed and
            was not used yet.

    Raises:
        InvalidParameter: There is an engine of this name already.

    """
    ENGINES.add(engine.name, engine)


def unregister_engine(name: str) -> None:
    """Forget an engine that `register_engine` made known.

    Args:
        name: Its name.

    Raises:
        InvalidParameter: No engine of this name was registered; those of the package stay.

    """
    ENGINES.remove(name)


def engine_names() -> tuple[str, ...]:
    """The names of all engines there are.

    Returns:
        Ours first, then those of others, in the order in which they became known.

    """
    return ENGINES.names()


def engine_named(name: str) -> RowEngine:
    """The engine of a name.

    Args:
        name: One of `engine_names`.

    Returns:
        The engine.

    Raises:
        InvalidParameter: There is none of that name.

    """
    if name not in engine_names():
        raise InvalidParameter(
            f"engine must be one of {engine_names()}, got {name!r}; nothing was read"
        )
    return ENGINES.get(name)

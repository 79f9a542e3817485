"""Engines by name: ours, and those that others register or install."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points

from sfumato.errors import InvalidParameter
from sfumato.records.engines.duckdb import DuckDBEngine
from sfumato.records.engines.polars import PolarsEngine
from sfumato.records.engines.protocol import RowEngine
from sfumato.records.engines.spark import SparkEngine

GROUP = "sfumato.engines"
"""Entry points of this group name an engine, or a function or class that makes one."""

_ENGINES: dict[str, RowEngine] = {
    one.name: one for one in (DuckDBEngine(), PolarsEngine(), SparkEngine())
}
OURS = tuple(_ENGINES)


def register_engine(engine: RowEngine) -> None:
    """Make an engine known by its name, in this process.

    Args:
        engine: The engine; its name is none of `engine_names`, unless of one that is installed and
            was not used yet.

    Raises:
        InvalidParameter: There is an engine of this name already.

    """
    if engine.name in _ENGINES:
        raise InvalidParameter(
            f"there is an engine {engine.name!r} already; choose another name; nothing was registered"
        )
    _ENGINES[engine.name] = engine


def unregister_engine(name: str) -> None:
    """Forget an engine that `register_engine` made known.

    Args:
        name: Its name.

    Raises:
        InvalidParameter: No engine of this name was registered; those of the package stay.

    """
    if name in OURS or _ENGINES.pop(name, None) is None:
        raise InvalidParameter(f"no engine {name!r} was registered; nothing was forgotten")


def engine_names() -> tuple[str, ...]:
    """The names of all engines there are.

    Returns:
        Ours first, then those of others, in the order in which they became known.

    """
    return tuple(dict.fromkeys([*_ENGINES, *_installed()]))


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
    if name not in _ENGINES:
        made = _installed()[name].load()
        _ENGINES[name] = made() if callable(made) else made
    return _ENGINES[name]


@cache
def _installed() -> dict[str, EntryPoint]:
    return {one.name: one for one in entry_points(group=GROUP)}

"""Tables in memory as Arrow: pandas, Polars and Arrow itself, no row of which can stop the reader."""

from __future__ import annotations

import math
from decimal import Decimal
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import InvalidInput
from sfumato.records.columns import Columns, check_columns
from sfumato.records.quiet import quietly
from sfumato.records.text_rows import plain_number, texts


def arrow_table(source: Any, columns: Columns | None) -> pa.Table:
    """A table in memory, or one that Arrow or DuckDB reads into it, as Arrow.

    Columns of Python objects become text, whatever they hold. Columns that are not asked for are
    not looked at.
    """
    module = type(source).__module__.partition(".")[0].removeprefix("_")
    if module not in ("pyarrow", "pandas", "polars", "duckdb", "geopandas"):
        raise InvalidInput(
            "rows must come from a path, a list of paths, an Arrow, pandas, Polars, DuckDB, Spark or Ibis "
            f"table or a GeoDataFrame, got {type(source).__name__}; nothing was read"
        )
    if isinstance(source, pa.RecordBatchReader):
        # One that was read already looks like a table of nobody, and a map of it would be paid for.
        raise InvalidInput(
            "a reader of batches gives its rows once, and nothing tells whether it has: give the table of "
            "its read_all(); nothing was read"
        )
    if module == "geopandas":
        geographic, module = source, "pandas"
        source = quietly(
            lambda: _with_points(geographic, columns),
            "the GeoDataFrame has no active geometry; nothing was read",
        )
    if columns is not None and module in ("pandas", "duckdb") and hasattr(source, "columns"):
        # Below it has no other columns than those asked for.
        check_columns(source.columns, columns)

    def convert() -> pa.Table:
        if module == "polars":
            table = (source.collect() if hasattr(source, "collect") else source).to_arrow()
        elif module == "pandas":
            asked = (
                source.columns
                if columns is None
                else [c for c in source.columns if c in columns.names]
            )
            said = {
                name: _as_text(source[name]) for name in asked if _holds_objects(source[name].dtype)
            }
            table = pa.Table.from_pandas(source[list(asked)].assign(**said), preserve_index=False)
        elif module == "duckdb":
            from duckdb import ColumnExpression

            names = dict.fromkeys(source.columns if columns is None else columns.names)
            table = source.select(*map(ColumnExpression, names)).to_arrow_table()
        else:
            table = _arrow(source, columns)
        plain = [
            column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
            for column in table.columns
        ]
        whole = pa.table(plain, names=table.column_names)
        # Not every engine looks whether text is UTF-8.
        whole.validate(full=True)
        return whole

    return quietly(convert, f"the {module} table could not be read as Arrow; nothing was read")


def _arrow(source: Any, columns: Columns | None) -> pa.Table:
    """What Arrow holds, or reads of its datasets: of these only the columns asked for."""
    if isinstance(source, pa.Table):
        return source
    if hasattr(source, "to_table"):  # a dataset, or a scanner of one
        there = getattr(source, "schema", None)
        if columns is None or there is None or not hasattr(source, "scanner"):
            return source.to_table()
        check_columns(there.names, columns)
        return source.to_table(columns=list(dict.fromkeys(columns.names)))
    return pa.table(source)


def _with_points(frame: Any, columns: Columns | None) -> Any:
    """A GeoDataFrame as a plain one; its points are x and y, unless it has a column of either name.

    What is no point is nowhere, so that no row decides whether the table can be read.
    """
    import pandas as pd
    import shapely

    plain = pd.DataFrame(frame.drop(columns=frame.geometry.name))
    places = np.array(frame.geometry.array, dtype=object)
    places[shapely.is_empty(places)] = None  # GEOS has an error for these
    x, y = ("x", "y") if columns is None else (columns.x, columns.y)
    if not {x, y} & set(plain.columns):
        plain[x], plain[y] = shapely.get_x(places), shapely.get_y(places)
    return plain


def _holds_objects(kind: Any) -> bool:
    """Whether a column of pandas holds Python objects, by itself or as its categories."""
    return bool(getattr(getattr(kind, "categories", None), "dtype", kind) == np.dtype(object))


def _as_text(column: Any) -> Any:
    """The rule depends on the type of the column, so that no row decides whether it can be read."""
    return texts([_text(value) for value in column]).to_pandas()


def _text(value: Any) -> str | None:
    """What a Python object says, equal numbers in one way: 1, 1.0 and Decimal('1.00') are all 1."""
    try:
        return _spelled(value)
    except Exception:  # whatever an object does when it is asked: it is nobody
        return None


def _spelled(value: Any) -> str | None:
    if value is None or value != value:  # NaN, NaT
        return None
    match value:
        case bool():
            return str(value)
        case Integral():
            return format(Decimal(int(value)), "f")
        case float() | np.floating():
            return plain_number(repr(float(value))) if math.isfinite(value) else None
        case Decimal():
            return plain_number(str(value)) if value.is_finite() else None
        case _:
            return str(value)

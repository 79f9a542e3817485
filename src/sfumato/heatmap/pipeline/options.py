"""Options of heatmaps in words users have, and the typed values they stand for."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.heatmap.areas import BoundsLike, Cells, public_area
from sfumato.heatmap.export.formats import WriteOptions
from sfumato.heatmap.export.legend import LegendKind
from sfumato.privacy import Ledger
from sfumato.privacy.accounting import Number, exact
from sfumato.records import Columns, Pairs, Periods, Values, check_columns, names_of
from sfumato.spaces import Area

if TYPE_CHECKING:
    from sfumato.records import Engine, Groups

PRIVATE = "private"
PoolingKind = Literal["none", "partial"]
COLUMN_WORDS = (
    "user",
    "x",
    "y",
    "weight",
    "weight_step",
    "weight_cap",
    "by",
    "one_row_one_user",
    "rows_per_user",
)
PLACE_WORDS = ("bounds", "outer", "bounds_file", "image")
GRID_WORDS = ("plane", "crs", "cells", "levels")


class HeatmapOptions(TypedDict, total=False):
    """Keywords of `release_heatmap`, `plan_release` and `rehearse_heatmap`, in words users have.

    Rows: `user`, `x` ("lon"), `y` ("lat"), `weight`, `weight_step`, `weight_cap` (2**20), `by`,
    `one_row_one_user` and `rows_per_user` (count rows, at most so many of each user) name columns
    and the public rules of counting them, as `records.Columns` does; `engine` ("duckdb", "polars"
    or "spark"), `connection` and `delimiter` say how they are read; `text_coordinates` that columns
    of text hold x and y, as decimal numbers.

    Area: `bounds` (west, south, east, north; or "private", to find them inside `outer` for
    `bounds_share` of epsilon, 1/10), `bounds_file` (GeoJSON) or `image`; `plane`, `crs` (the
    reference system of rows and bounds, e.g. "EPSG:3857"), `cells` ("square" or "stretched") and
    `levels` (8).

    Forecast: `users`, a public guess of how many there are: what the maps will be like is then said
    before they are paid for.

    Maps: `mass_per_value` (with a list of `groups`: everybody has mass 1 in each, as in
    `records.Values`); `pooling` ("none" or "partial"), whether several maps share strength:
    post-processing, at no cost.

    Files: `over` (a public image under pictures and pages: a stimulus of the size of the area,
    {by} in its name for the group, or a GeoTIFF), `outline` (public lines and areas, GeoJSON),
    `legend` ("density" or "share"), `h3_resolution`, `every_cell` (.geojson as released, not
    smoothed) and `overwrite`.

    Ledger: `team`, whose sub-budget pays, and `other_table`, which says that a table the ledger has
    not seen holds the same people.
    """

    user: str | None
    x: str
    y: str
    weight: str | None
    weight_step: Number | None
    weight_cap: int
    by: str | tuple[str, ...] | None
    one_row_one_user: bool
    rows_per_user: int | None
    engine: Engine
    connection: str | None
    delimiter: str
    text_coordinates: bool
    bounds: BoundsLike | None
    outer: BoundsLike | None
    bounds_share: Number
    bounds_file: str | Path | None
    image: str | Path | None
    plane: bool
    crs: str | None
    cells: Cells
    levels: int
    users: float | None
    mass_per_value: bool
    pooling: PoolingKind
    over: str | Path | None
    outline: str | Path | None
    legend: LegendKind
    h3_resolution: int | None
    every_cell: bool
    overwrite: bool
    team: str
    other_table: bool


def check_pooling_kind(kind: PoolingKind, undone: str) -> None:
    """Refuse a word for pooling that there is not."""
    if kind not in get_args(PoolingKind):
        raise InvalidParameter(f"`pooling` is none or partial, got {kind!r}; {undone}")


def check_options(
    options: HeatmapOptions, columns: Columns | None, area: Area | Sequence[float] | None
) -> None:
    """Refuse keywords that there are not, and those that do not go with what is given beside them."""
    unknown = sorted(set(options) - HeatmapOptions.__annotations__.keys())
    if unknown:
        raise InvalidParameter(
            f"keywords are {', '.join(HeatmapOptions.__annotations__)}, got {', '.join(unknown)}; "
            "nothing was charged"
        )
    if columns is not None and (twice := _given(options, COLUMN_WORDS)):
        raise InvalidParameter(
            f"columns are given once, by columns or by keywords, got columns and {twice}; "
            "nothing was charged"
        )
    hidden = (*PLACE_WORDS, *GRID_WORDS) if isinstance(area, Area) else PLACE_WORDS
    if area is not None and (twice := _given(options, hidden)):
        raise InvalidParameter(
            f"the area is given once, by area or by keywords, got area and {twice} (private bounds are "
            "found inside outer); nothing was charged"
        )
    if not is_private(options) and _given(options, ("outer",)):
        raise InvalidParameter(
            "an outer area is for bounds that are found in it: `outer` goes with `bounds='private'` only; "
            "nothing was charged"
        )
    if is_private(options) and options.get("over") is not None:
        raise InvalidParameter(
            "an image lies under the area it shows, not one found in it: `over` does not go "
            "with `bounds='private'`; nothing was charged"
        )


def stated_groups(groups: Groups, columns: Columns | None, options: HeatmapOptions) -> Groups:
    """Groups as rows are counted by: values of a column in words, with the mass that the keyword says."""
    plain = groups is not None and not isinstance(groups, Values | Periods | Pairs | str)
    named = names_of(groups) if plain else groups
    if not options.get("mass_per_value", False):
        return named
    by = columns.by if columns is not None else options.get("by")
    if not plain or not isinstance(by, str):
        raise InvalidParameter(
            "`mass_per_value` goes with a list of `groups` and the one column `by` they are values of; of "
            "periods and pairs, Periods(...) and Values(...) say it themselves; nothing was charged"
        )
    return Values(by, names_of(groups), mass_per_value=True)


def check_public(ledger: Ledger | str | Path, *, public: bool) -> None:
    """Refuse a ledger of rehearsals unless its rows are declared public, and public rows on another."""
    if public != (isinstance(ledger, Ledger) and ledger.header.rehearsal):
        raise InvalidParameter(
            "rows declared public (public=True) go with a ledger of rehearsals, and it with no other rows; "
            f"got public={public} and the ledger {getattr(ledger, 'path', ledger)}; "
            "nothing was read or charged"
        )


def _given(options: HeatmapOptions, names: Sequence[str]) -> str:
    """Which of these keywords say something, as text; None, "" and False are their being left out."""
    values = {name: options.get(name) for name in names}
    return ", ".join(
        name
        for name, value in values.items()
        if not (value is None or value is False or (isinstance(value, str) and not value))
    )


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows and how they are read; its repr shows none of them, nor a password of the connection."""

    source: Any = field(repr=False)
    columns: Columns
    engine: Engine = "duckdb"
    connection: str | None = field(default=None, repr=False)
    delimiter: str = ","
    text_coordinates: bool = False

    @property
    def how(self) -> dict[str, Any]:
        """What `open_table` takes besides the source."""
        return {
            "engine": self.engine,
            "connection": self.connection,
            "delimiter": self.delimiter,
            "columns": self.columns,
        }


def rows_of(source: Any, columns: Columns | None, options: HeatmapOptions) -> Rows:
    """The rows and their columns, by value or in words."""
    if columns is None:
        step = options.get("weight_step")
        columns = Columns(
            options.get("user") or None,
            options.get("x", "lon"),
            options.get("y", "lat"),
            weight=options.get("weight") or None,
            step=None if step is None or step == "" else exact(step, name="weight step"),
            cap=options.get("weight_cap", 2**20),
            by=options.get("by") or None,
            one_row_one_user=options.get("one_row_one_user", False),
            rows_per_user=options.get("rows_per_user"),
        )
    return Rows(
        source,
        columns,
        options.get("engine", "duckdb"),
        options.get("connection") or None,
        options.get("delimiter", ","),
        options.get("text_coordinates", False),
    )


def open_rows(rows: Rows, area: Area) -> Any:
    """The table of the rows, of which nothing was read; refused where its schema says that x or y is text.

    Text files have no schema but their header: there, columns of places are numbers. A table that
    knows its reference system must have that of the area: else it would count nobody.
    """
    from sfumato.records import open_table  # which reads engines

    own = getattr(rows.source, "crs", None)
    if (
        own is not None
        and not {rows.columns.x, rows.columns.y}
        & set(map(str, getattr(rows.source, "columns", ())))
        and not (own.equals(area.crs) if area.crs else _fits(own, area))
    ):
        raise InvalidInput(
            f"the places of the table are in {own.name} and the area is "
            f"{f'in {area.crs}' if area.crs else f'one of {area.kind}'}: say `crs`, or convert the table "
            "by its to_crs; nothing was charged"
        )
    table = open_table(rows.source, **rows.how)
    check_columns(table.columns, rows.columns)
    for name in () if rows.text_coordinates else (rows.columns.x, rows.columns.y):
        kind = table[name].type()
        if kind.is_string():
            raise InvalidInput(
                f"column {name!r} is text, x and y are numbers: make it one, or say "
                "`text_coordinates` if its text is decimal numbers like 43.77 (43,77 counts nobody); "
                "nothing was charged"
            )
    return table


def warn_of_exchange(columns: Columns) -> None:
    """Warn where x is called latitude, or y longitude: the map would be of another place, or of nobody."""
    x, y = columns.x.lower(), columns.y.lower()
    if x.startswith("lat") or y.startswith(("lon", "lng")):
        warnings.warn(
            f"`x` is the longitude and `y` the latitude, got x {columns.x!r} and y {columns.y!r}: are they "
            "exchanged?",
            stacklevel=3,
        )


def _fits(own: Any, area: Area) -> bool:
    """Whether a reference system is one of degrees if the area is, and only then."""
    return bool(own.is_geographic) == (area.kind == "degrees")


def is_private(options: HeatmapOptions) -> bool:
    """Whether the bounds are to be found in the data."""
    bounds = options.get("bounds")
    return isinstance(bounds, str) and bounds == PRIVATE


def outer_name(options: HeatmapOptions) -> str:
    """What the public area in which private bounds are found was given as."""
    outer = options.get("outer")
    if outer is None or (isinstance(outer, str) and not outer):
        return str(options.get("image") or options.get("bounds_file") or "")
    return outer if isinstance(outer, str) else ",".join(f"{number:g}" for number in outer)


def area_of(area: Area | Sequence[float] | None, options: HeatmapOptions) -> Area:
    """The area, by value or in words; where bounds are private, the outer one."""
    if isinstance(area, Area):
        return area
    bounds = area if area is not None else options.get("bounds")
    return public_area(
        options.get("outer") if is_private(options) else bounds,
        bounds_file=options.get("bounds_file"),
        image=options.get("image"),
        plane=options.get("plane", False),
        crs=options.get("crs") or None,
        cells=options.get("cells", "square"),
        levels=options.get("levels", 8),
    )


def read_files(options: HeatmapOptions, prior: Any) -> list[str | Path | None]:
    """The public files that are read, which no output may replace."""
    return [
        options.get("image"),
        options.get("bounds_file"),
        prior if isinstance(prior, str | Path) else None,
    ]


def write_options(options: HeatmapOptions) -> WriteOptions:
    """How files are written."""
    return WriteOptions(
        None,
        options.get("over") or None,
        options.get("h3_resolution"),
        options.get("outline") or None,
        options.get("legend", "density"),
        options.get("every_cell", False),
    )

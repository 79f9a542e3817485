"""What was asked of a ledger, as it lies beside it until the maps are delivered: no rows, no passwords."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.heatmap.export.legend import LegendKind
from sfumato.heatmap.methods.protocol import MapMethod
from sfumato.heatmap.methods.registry import method_named
from sfumato.heatmap.pipeline.options import PoolingKind, Rows
from sfumato.privacy.accounting import canonical, parameters
from sfumato.privacy.runs import Request
from sfumato.records import (
    Columns,
    Groups,
    Pairs,
    Periods,
    Values,
    is_file_list,
    public_connection,
)
from sfumato.spaces import Area, Grid

KIND = "heatmap/1"


@dataclass(frozen=True, slots=True, eq=False)
class HeatmapRequest:
    """A release of maps as it was asked for.

    Attributes:
        rows: The rows and how they are read; a table in memory is not kept, only that it was one.
        area: The public area, or the outer one where bounds are found.
        epsilon: What the maps may cost.
        bounds_epsilon: What finding their area may cost; 0 where it was given.
        method: The method with its parameters.
        groups: Groups or periods.
        note: The line for the ledger.
        outer: What the outer area was given as.
        team: Whose sub-budget pays.
        other_table: Whether another table than before holds the same people.
        outputs: Files, as they were asked for.
        over: The image under pictures.
        h3_resolution: That of H3 tables.
        overwrite: Whether files that exist are replaced.
        prior: The file that the maps follow.
        title: What they are called.
        outline: The lines drawn on pictures.
        legend: What the numbers of legends are.
        every_cell: Whether .geojson has every cell.
        pooling: Whether the maps share strength.

    """

    rows: Rows
    area: Area
    epsilon: Fraction
    bounds_epsilon: Fraction
    method: MapMethod[Any]
    groups: Groups = None
    note: str = ""
    outer: str = ""
    team: str = ""
    other_table: bool = False
    outputs: tuple[str, ...] = ()
    over: str | None = None
    h3_resolution: int | None = None
    overwrite: bool = False
    prior: str | None = None
    title: str = ""
    outline: str | None = None
    legend: LegendKind = "density"
    every_cell: bool = False
    pooling: PoolingKind = "none"

    @property
    def request(self) -> Request:
        """As a ledger keeps it: names of files whole, so that it can be finished from any folder."""
        asked = {
            "rows": _rows_json(self.rows),
            "columns": _plain_fields(self.rows.columns),
            "area": _area_json(self.area),
            "epsilon": str(self.epsilon),
            "bounds_epsilon": str(self.bounds_epsilon),
            "method": self.method.name,
            "parameters": parameters(self.method),
            "groups": _groups_json(self.groups),
            "note": self.note,
            "outer": self.outer,
            "team": self.team,
            "other_table": self.other_table,
        }
        delivery = {
            "outputs": [os.path.abspath(path) for path in self.outputs],
            "over": None if self.over is None else os.path.abspath(self.over),
            "h3_resolution": self.h3_resolution,
            "overwrite": self.overwrite,
            "prior": None if self.prior is None else os.path.abspath(self.prior),
            "title": self.title,
            "outline": None if self.outline is None else os.path.abspath(self.outline),
            "legend": self.legend,
            "every_cell": self.every_cell,
            "pooling": self.pooling,
        }
        return Request(KIND, "heatmap", asked, delivery)

    @staticmethod
    def from_json(
        asked: Mapping[str, Any],
        delivery: Mapping[str, Any],
        *,
        source: Any = None,
        connection: str | None = None,
        method: MapMethod[Any] | None = None,
    ) -> HeatmapRequest:
        """What `request` says; with the rows, the connection or the method where it cannot hold them."""
        try:
            rows = dict(asked["rows"])
            kept = rows.pop("source")
            secret = bool(rows.pop("secret"))
            rows["connection"] = connection or (None if secret else rows["connection"])
            return HeatmapRequest(
                Rows(kept if source is None else source, _columns(asked["columns"]), **rows),
                _area(asked["area"]),
                Fraction(asked["epsilon"]),
                Fraction(asked["bounds_epsilon"]),
                _method(asked["method"], asked["parameters"], method),
                _groups(asked["groups"]),
                str(asked["note"]),
                str(asked["outer"]),
                str(asked["team"]),
                bool(asked["other_table"]),
                tuple(map(str, delivery["outputs"])),
                delivery["over"],
                delivery["h3_resolution"],
                bool(delivery["overwrite"]),
                delivery["prior"],
                str(delivery["title"]),
                delivery.get("outline"),
                delivery.get("legend", "density"),
                bool(delivery.get("every_cell", False)),
                "partial" if delivery.get("pooling") == "partial" else "none",
            )
        except (KeyError, TypeError, ValueError, ArithmeticError) as problem:
            if isinstance(problem, InvalidParameter):
                raise
            raise InvalidInput(
                f"what is kept of the request is not whole: {problem}; nothing was made of it"
            ) from problem


def needs_rows(request: HeatmapRequest, asked: Mapping[str, Any]) -> str:
    """What must be given again before its rows can be read; nothing if all is there."""
    if request.rows.source is None:
        return "its rows were a table in memory: give them as `source`"
    if asked["rows"]["secret"] and request.rows.connection is None:
        return "its connection had a password, which is not kept: give it as `connection`"
    return ""


def _rows_json(rows: Rows) -> dict[str, Any]:
    """How rows are read: every field but the columns, which are beside them."""
    told = _plain_fields(rows, skip=("source", "columns", "connection"))
    said, secret = _without_secrets(rows.connection)
    source: str | list[str] | None = None
    if is_file_list(rows.source):
        source = [os.path.abspath(one) for one in rows.source]
    elif isinstance(rows.source, str | Path):
        named = str(rows.source)
        whole = rows.connection is not None or "://" in named
        source = named if whole else os.path.abspath(named)
    return {**told, "source": source, "connection": said, "secret": secret}


def _without_secrets(connection: str | None) -> tuple[str | None, bool]:
    """A connection without password and settings, and whether it had any."""
    if connection is None:
        return None, False
    found = public_connection(connection)
    return found.url, found.secret


def _plain_fields(value: Any, skip: Sequence[str] = ()) -> dict[str, Any]:
    """The fields of a value, all of them, so that one of tomorrow is kept too; fractions as text."""
    found = {one.name: getattr(value, one.name) for one in fields(value) if one.name not in skip}
    told = {
        name: {"exact": str(item)}
        if isinstance(item, Fraction)
        else list(item)
        if isinstance(item, tuple)
        else item
        for name, item in found.items()
    }
    canonical(told)  # refuses what JSON cannot hold, before anything is charged
    return told


def _columns(data: Mapping[str, Any]) -> Columns:
    found: dict[str, Any] = {
        name: Fraction(item["exact"]) if isinstance(item, dict) else item
        for name, item in data.items()
    }
    if isinstance(found.get("by"), list):
        found["by"] = tuple(found["by"])
    return Columns(**found)


def _area_json(area: Area) -> dict[str, Any]:
    return {
        "kind": area.kind,
        "bounds": list(area.bounds),
        "grid": list(area.grid.bounds),
        "levels": area.grid.levels,
        **({"crs": area.crs, "metre": area.metre} if area.crs else {}),
    }


def _area(data: Mapping[str, Any]) -> Area:
    low_x, low_y, high_x, high_y = map(float, data["bounds"])
    grid = Grid(int(data["levels"]), tuple(map(float, data["grid"])))  # type: ignore[arg-type]
    bounds = (low_x, low_y, high_x, high_y)
    return Area(grid, bounds, data["kind"], data.get("crs", ""), float(data.get("metre", 0.0)))


def _groups_json(groups: Groups) -> Any:
    match groups:
        case Periods():
            told = _plain_fields(groups, skip=("start", "end"))
            return {**told, "start": groups.start.isoformat(), "end": groups.end.isoformat()}
        case Values():
            return _plain_fields(groups)
        case Pairs():
            return {"pairs": [_groups_json(one) for one in groups.parts]}
        case _:
            return None if groups is None else list(groups)


def _groups(data: Any) -> Groups:
    if not isinstance(data, dict):
        return None if data is None else tuple(map(str, data))
    if "pairs" in data:
        first, second = map(_groups, data["pairs"])
        return Pairs(first, second)  # type: ignore[arg-type]
    if "names" in data:
        return Values(**data)
    start, end = (datetime.fromisoformat(data[name]) for name in ("start", "end"))
    return Periods(**{**data, "start": start, "end": end})


def _method(name: str, options: Mapping[str, Any], given: MapMethod[Any] | None) -> MapMethod[Any]:
    """The method that was asked for; one that is not registered must be given again."""
    found = given if given is not None else method_named(name, options=options)
    if (found.name, canonical(parameters(found))) != (name, canonical(dict(options))):
        raise InvalidParameter(
            f"the method was {name} with {dict(options)}, got {found!r}; nothing was made of it"
        )
    return found

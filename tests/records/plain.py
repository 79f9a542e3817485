"""The sums as a plain program: loops, dictionaries and fractions; what every engine must equal."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from sfumato.privacy.guarded import Guarded, open_for_release
from sfumato.records import UNITS, CellSums, Columns
from sfumato.spaces import Area

Row = dict[str, Any]
NUMBER = re.compile(r"[+-]?([0-9]{1,40}([.][0-9]{0,40})?|[.][0-9]{1,40})([eE][+-]?[0-9]{1,3})?")


def number(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, str):
        text = value.strip(" \t\n\r\v\f")
        return float(text) if NUMBER.fullmatch(text) else None
    return float(value)


def plain_sums(
    rows: Iterable[Row], columns: Columns, area: Area, groups: Sequence[str] | None = None
) -> dict[int, int]:
    """Units by code."""
    west, south, east, north = area.bounds
    counts: defaultdict[Any, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))
    for place, row in enumerate(rows):
        user = place if columns.user is None else row[columns.user]
        x, y = number(row[columns.x]), number(row[columns.y])
        if user is None or user == "" or user != user or x is None or y is None:
            continue
        if area.crosses_antimeridian and x < west:
            x += 360
        elif area.kind == "degrees" and abs(x) == 180 and not west <= x <= east:
            x = -x
        if not (west <= x <= east and south <= y <= north):
            continue
        steps = 1
        if columns.weight is not None:
            weight = number(row[columns.weight])
            if weight is None or not math.isfinite(weight) or weight < 0:
                continue
            step = float(columns.step or 1)
            steps = math.floor(min(weight, columns.cap * step) / step)
        code = int(area.grid.cells_of([x], [y])[0])
        if columns.by is not None and groups is not None:
            if row[columns.by] is None or str(row[columns.by]) not in groups:
                continue
            code += area.grid.size * list(groups).index(str(row[columns.by]))
        counts[user][code] += steps
    out: defaultdict[int, int] = defaultdict(int)
    for cells in counts.values():
        clamped = {code: min(count, 2**30) for code, count in cells.items()}
        total = sum(clamped.values())
        for code, count in clamped.items():
            if count:
                out[code] += math.floor(Fraction(count * UNITS, total))
    return {code: units for code, units in sorted(out.items()) if units}


def opened(guarded: Guarded[CellSums]) -> dict[int, int]:
    """What is under guard, for tests."""
    sums = open_for_release(guarded)
    assert sums.codes.dtype == sums.units.dtype == "int64"
    return dict(zip(sums.codes.tolist(), sums.units.tolist(), strict=True))

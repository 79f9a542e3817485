"""A comparison of two maps as files: a picture, a page, a table, and its JSON. It costs nothing."""

from __future__ import annotations

import base64
import csv
import io
import json
import math
from dataclasses import asdict
from html import escape
from pathlib import Path

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.figures import (
    TOPS,
    DifferenceLayers,
    Words,
    arrows,
    draw_difference,
    round_number,
)
from sfumato.heatmap.comparison.difference_map import MapDifference
from sfumato.heatmap.comparison.results import CompareResult, Pictured, ZoneChange
from sfumato.heatmap.export.picture import extent_of, frame_of
from sfumato.heatmap.render.compare import (
    people,
    percent,
    sentences,
    square_text,
    zone_head,
    zone_row,
)
from sfumato.spaces import Area

CELLS = 6  # the level of a table of cells: narrower than the blur
SHOWN = 20  # squares on a page
# The quantile of differences that has the strongest color: a single peak does not pale all others.
BRIGHTEST = 0.999


def comparison_file(result: CompareResult, path: str | Path, *, shares: bool) -> bytes:
    """A comparison as what the suffix of a file says.

    Args:
        result: What `compare_maps` found.
        path: The file: .png, .html, .json or .csv.
        shares: Whether pictures and tables of cells show shares of the whole instead of users.

    Returns:
        The bytes of the file.

    Raises:
        InvalidParameter: The result was read from JSON, which has no pictures.

    """
    match Path(path).suffix.lower():
        case ".png":
            return png(result, shares=shares)
        case ".html":
            return page(result, shares=shares)
        case ".csv":
            return zones_csv(result) if result.zones else cells_csv(result, shares=shares)
        case _:
            return (json.dumps(result.to_json(), indent=1, allow_nan=False) + "\n").encode()


def png(result: CompareResult, *, shares: bool = False, titled: bool = True) -> bytes:
    """The difference as a picture: purple for more, orange for less, hatched where it is not sure.

    Not `titled`, for a page that has a title.
    """
    drawn, found = _drawn(result, shares=shares)
    area = drawn.area
    times, said = density(area)
    unit = f"share of all {result.unit}s, %" if shares else f"{result.unit}s"
    first_column, first_row, end_column, end_row = area.window(found.level)
    cell = math.prod(length * 2 ** (area.grid.levels - found.level) for length in area.cell_size)
    values = found.change * times / cell * (100 if shares else 1)
    values = values[first_row:end_row, first_column:end_column]
    top = float(np.quantile(np.abs(values), BRIGHTEST))
    return draw_difference(
        values,
        frame_of(area, extent_of(area, found.level)),
        words=Words(
            title="From {} to {}".format(*_short(result.names)) if titled else "",
            subtitle=f"{' and '.join(dict.fromkeys(result.methods))} · what changed, smoothed by "
            f"{100 * found.sigma:g}% of the grid's side",
            legend=f"{unit} per {said}: less, more",
            caption=_caption(result),
            stamp="REHEARSAL" if result.rehearsal else "",
        ),
        top=round_number(max(top, 1e-12), TOPS),
        layers=_layers(result, drawn, shares=shares),
        under=None if drawn.ground is None else drawn.ground.pixels,
    )


def _short(names: tuple[str, str]) -> tuple[str, str]:
    """The names without what both are called before a colon: a title has room for little.

    >>> _short(("Private heatmap: monday", "Private heatmap: sunday"))
    ('monday', 'sunday')
    """
    (one, _, first), (other, _, second) = (name.partition(": ") for name in names)
    return (first, second) if one == other and first and second else names


def _layers(result: CompareResult, drawn: Pictured, *, shares: bool) -> DifferenceLayers:
    found = drawn.shares_found if shares else drawn.users_found
    sure = None if found is None else found.where
    rows = len(drawn.flow.east)
    exceeds = bool(result.shift.exceeds)
    # Arrows are of shares: where users alone differ, as on two days against five, nothing need have moved.
    known = drawn.shares_found
    moves = np.zeros((1, 1), dtype=np.bool_) if known is None else known.where
    moved = exceeds and bool(moves.any())
    if sure is None:
        hatch = "hatched: where it is sure, is not known"
    elif sure.any():
        hatch = "hatched: may be noise; elsewhere a square differs, all of them with 95%"
    else:
        hatch = "hatched everywhere: all of it may be noise"
    return DifferenceLayers(
        hatched=np.ones((1, 1), dtype=np.bool_) if sure is None else ~sure,
        extent=drawn.area.grid.bounds,
        hatch_says=hatch,
        arrows=arrows(drawn.flow.east, drawn.flow.north, (rows, rows)) if moved else None,
        cells=rows,
        moves=moves,
        arrows_say="arrows, where shares differ for sure: where mass moves as shares; longer for more of it"
        if moved
        else "no arrows: of no square it is known that its share changed"
        if exceeds
        else "no arrows: mass moves no further than noise alone would move it",
        lines=(*(() if drawn.ground is None else drawn.ground.lines), *drawn.lines),
    )


def _caption(result: CompareResult) -> str:
    _, *said = sentences(result)
    lines = [f"{one[0].upper()}{one[1:]}." for one in (*said, *result.remarks)]
    if result.zones:
        many = len(result.zones)
        lines.append(f"Outlined: {'the zone' if many == 1 else f'the {many:,} zones'} compared.")
    if result.pictured is not None and result.pictured.ground is not None:
        lines += [result.pictured.ground.sentence.strip()] * bool(result.pictured.ground.facts)
    promised = dict.fromkeys(result.statements)
    return "\n".join([*lines, *(f"{one}." for one in promised)])


def density(area: Area) -> tuple[float, str]:
    """What a density is said of: how many square units of the ground it is, and its words.

    >>> from sfumato.spaces import area_of_plane
    >>> density(area_of_plane((0, 0, 2, 2), 3))
    (1.0, 'square unit')
    """
    match area.unit:
        case "m":
            return 1e6, "km²"
        case "px":
            return 1e6, "megapixel"  # as on a map
        case _:
            return 1.0, "square unit"


def zones_csv(result: CompareResult) -> bytes:
    """A row for each zone: name, before, after, change, low, high, inside; empty where unknown."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(ZoneChange.__dataclass_fields__)
    table.writerows(asdict(one).values() for one in result.zones)
    return out.getvalue().encode()


def cells_csv(result: CompareResult, *, shares: bool = False) -> bytes:
    """A row for each cell of the blurred maps: x, y, before, after, change, low, high, sure."""
    drawn, found = _drawn(result, shares=shares)
    differs = drawn.shares_found if shares else drawn.users_found
    level = min(found.level, CELLS)
    grid = drawn.area.grid.at_level(level)
    first_column, first_row, end_column, end_row = drawn.area.window(level)
    sums = [
        None if one is None else _pooled(one, level)
        for one in (found.before, found.after, found.change, found.low, found.high)
    ]
    sure = None if differs is None else _pooled(differs.where.astype(float), level) > 0
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["x", "y", "before", "after", "change", "low", "high", "sure"])
    for row in range(first_row, end_row):
        for column in range(first_column, end_column):
            table.writerow(
                [
                    f"{grid.bounds[0] + (column + 0.5) * grid.cell_width:.9g}",
                    f"{grid.bounds[1] + (row + 0.5) * grid.cell_height:.9g}",
                    *("" if one is None else f"{one[row, column]:.6g}" for one in sums),
                    "" if sure is None else int(sure[row, column]),
                ]
            )
    return out.getvalue().encode()


def page(result: CompareResult, *, shares: bool = False) -> bytes:
    """One page with the picture, the sentences and the tables; no scripts, nothing fetched."""
    title = escape("From {} to {}".format(*_short(result.names)))
    style = (
        "body{font:15px/1.5 system-ui,sans-serif;max-width:960px;margin:2rem auto;padding:0 1rem}"
        "img{max-width:100%}table{border-collapse:collapse;margin:1rem 0}"
        "td,th{padding:.2rem .8rem;border-bottom:1px solid #ccc;text-align:right}"
        "td:first-child,th:first-child{text-align:left}"
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "img-src data:; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{style}</style></head><body>"
        f"{'<p><strong>REHEARSAL: protects nobody</strong></p>' if result.rehearsal else ''}"
        f"<h1>{title}</h1>{html_body(result, shares=shares, titled=False)}</body></html>\n"
    ).encode()


def html_figure(result: CompareResult) -> str:
    """A comparison for notebooks: its picture, if there is one, sentences and zones."""
    return f'<div style="max-width:720px">{html_body(result, shares=False)}</div>'


def html_body(result: CompareResult, *, shares: bool, titled: bool = True) -> str:
    """The picture, the sentences and the tables; without their title if that stands above."""
    first, *others = sentences(result)
    said = [*result.remarks, *([first] if titled else []), *others]
    parts = []
    if result.pictured is not None:
        picture = base64.b64encode(png(result, shares=shares, titled=titled)).decode()
        alt = escape(f"What changed {first}")
        parts.append(
            f'<img alt="{alt}" style="max-width:100%" src="data:image/png;base64,{picture}">'
        )
    parts.append("".join(f"<p>{escape(one)}</p>" for one in said))
    if result.zones:
        parts.append(_table(zone_head(result), [zone_row(one) for one in result.zones]))
    found, words = (result.shares, percent) if shares else (result.users, people)
    if found is not None and found.changes:
        rows = [[square_text(one, words)] for one in found.changes[:SHOWN]]
        parts.append(_table([f"squares that differ: the first {len(rows)}"], rows))
    parts.append(
        "".join(f"<p><small>{escape(one)}</small></p>" for one in dict.fromkeys(result.statements))
    )
    return "".join(parts)


def _table(head: list[str], rows: list[list[str]]) -> str:
    names = "".join(f"<th>{escape(one)}</th>" for one in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(one)}</td>' for one in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"


def _drawn(result: CompareResult, *, shares: bool) -> tuple[Pictured, MapDifference]:
    drawn = result.pictured
    if drawn is None:
        raise InvalidParameter(
            "a comparison that was read from JSON has no pictures: compare the maps again; nothing was drawn"
        )
    return drawn, drawn.shares if shares else drawn.users


def _pooled(image: FloatArray, level: int) -> FloatArray:
    side, part = 1 << level, len(image) >> level
    return np.asarray(image.reshape(side, part, side, part).sum(axis=(1, 3)))

"""Rounds of recovered sources as one page that plays them: a slider over the site, or over a floor plan."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter
from sfumato.figures.pages.fill import filled_page, page_style
from sfumato.figures.style import FOUND, SURE, TOPS, blues, round_number, warm

Box = tuple[float, float, float, float]
# Milliseconds a round is shown: a film lasts about half a minute.
FASTEST, SLOWEST, LENGTH = 60, 800, 30_000
FAINT = 1 / 200  # of the top of the scale: smaller masses are not drawn
MAX_EDGES = 5000  # of a graph: more would be all there is to see
DIGITS = 5


@dataclass(frozen=True, slots=True, eq=False)
class PageRound:
    """What a page shows of one round.

    Attributes:
        name: Its time.
        masses: A mass for each cell; None where nothing can be told.
        bands: Places with radius and probability; on a graph the place is the number of a node.
        readings: One for each sensor; not a number where it was not read.
        total: All mass.
        answered: Whether there is an answer.
        words: Where sources were, or why nothing is told.
    """

    name: str
    masses: FloatArray | None
    bands: Sequence[tuple[FloatArray, float, float]]
    readings: FloatArray
    total: float
    answered: bool
    words: str


@dataclass(frozen=True, slots=True, eq=False)
class RoundsPage:
    """What a page shows of all rounds.

    Attributes:
        title: Of the page.
        statement: What was promised.
        facts: Names and values of how it was made.
        cells: Where cells are, [cell, x and y]; y is 0 on a line.
        cell_size: Width and height of a square cell; 0 where cells are places of their own.
        sensors: Where sensors are, [sensor, x and y].
        sensor_names: Their names.
        kind: "line", "plane" or "graph".
        norm: How far is measured: bands are circles, or diamonds.
        edges: Of a graph, pairs of cells.
        near: Of a graph, the nodes within the radius of each band, by (node, radius).
        image: The floor plan as a data URI, in `image_bounds`.
        image_bounds: Low x, low y, high x, high y.
        lines: Lines of the floor plan.
        rehearsal: Whether REHEARSAL is written across it.
    """

    title: str
    statement: str
    facts: Sequence[tuple[str, str]]
    cells: FloatArray
    cell_size: tuple[float, float]
    sensors: FloatArray
    sensor_names: Sequence[str]
    kind: Literal["line", "plane", "graph"] = "plane"
    norm: Literal["l1", "euclidean"] = "euclidean"
    edges: IntArray | None = None
    near: dict[tuple[int, float], IntArray] = field(default_factory=dict)
    image: str | None = None
    image_bounds: Box | None = None
    lines: Sequence[FloatArray] = ()
    rehearsal: bool = False


def rounds_page(page: RoundsPage, rounds: Sequence[PageRound]) -> bytes:
    """One HTML file that plays rounds of recovered sources; it fetches nothing.

    All rounds have one scale of masses and one of readings. Pass what was computed from released
    values.

    Args:
        page: What all rounds share.
        rounds: The rounds, in order.

    Returns:
        The bytes of the file.

    Raises:
        InvalidParameter: If there is no round.
    """
    if not rounds:
        raise InvalidParameter("a page needs at least one round, got none; nothing was drawn")
    place = files("sfumato.figures.pages")
    script, template = (
        (place / name).read_text(encoding="utf-8") for name in ("rounds.js", "rounds.html")
    )
    mark = '<div class="watermark" aria-hidden="true">REHEARSAL</div>'
    words = {
        "TITLE": escape(page.title),
        "STAMP": '<span class="stamp">REHEARSAL</span>' if page.rehearsal else "",
        "WATERMARK": mark if page.rehearsal else "",
        "STATEMENT": escape(page.statement),
        "DESCRIPTION": escape(f"Recovered sources of the chosen round: {page.title}."),
        "ONE": "round",
        "SLIDER": "Round",
        "LAST": str(len(rounds) - 1),
        "ROWS": "".join(
            f"<tr><th scope=row>{escape(name)}</th><td>{escape(value)}</td></tr>"
            for name, value in page.facts
        ),
    }
    return filled_page(
        template,
        style=page_style("page", "timelapse", "rounds"),
        script=script,
        words=words,
        data=_data(page, rounds),
    )


def _data(page: RoundsPage, rounds: Sequence[PageRound]) -> dict[str, Any]:
    largest = max((float(one.masses.max(initial=0)) for one in rounds if one.masses is not None),
                  default=0.0)  # fmt: skip
    top = round_number(largest, TOPS) if largest > 0 else 1.0
    read = np.concatenate([one.readings[np.isfinite(one.readings)] for one in rounds])
    low, high = (float(read.min()), float(read.max())) if read.size else (0.0, 1.0)
    edges = page.edges if page.edges is not None and len(page.edges) <= MAX_EDGES else None
    image = None
    if page.image is not None and page.image_bounds is not None:
        image = {"uri": page.image, "bounds": list(page.image_bounds)}
    return {
        "title": page.title,
        "kind": page.kind,
        "norm": page.norm,
        "box": _box(page),
        "cells": _short(page.cells),
        "size": list(page.cell_size),
        "sensors": _short(page.sensors),
        "sensorNames": list(page.sensor_names),
        "edges": None if edges is None else edges.tolist(),
        "image": image,
        "lines": [_short(line) for line in page.lines],
        "top": top,
        "span": [low, high if high > low else low + 1.0],
        "palettes": {"masses": _colors(blues()), "readings": _colors(warm())},
        "found": FOUND,
        "sure": SURE,
        "pace": round(min(SLOWEST, max(FASTEST, LENGTH / len(rounds)))),
        "rounds": [_round(one, page, top) for one in rounds],
    }


def _round(one: PageRound, page: RoundsPage, top: float) -> dict[str, Any]:
    masses = np.zeros(0) if one.masses is None else one.masses
    cells = np.flatnonzero(masses > FAINT * top)
    return {
        "name": one.name,
        "cells": cells.tolist(),
        "masses": _short(masses[cells]),
        "bands": [_band(at, radius, chance, page) for at, radius, chance in one.bands],
        "readings": [
            None if not math.isfinite(value) else float(f"{value:.{DIGITS}g}")
            for value in one.readings.tolist()
        ],
        "total": float(f"{one.total:.{DIGITS}g}"),
        "told": one.answered,
        "words": one.words,
    }


def _band(at: FloatArray, radius: float, chance: float, page: RoundsPage) -> list[Any]:
    """Middle x and y, radius, probability; on a graph also the nodes that it holds."""
    if page.kind == "graph":
        node = int(at[0])
        x, y = page.cells[node].tolist()
        return [x, y, radius, chance, page.near.get((node, radius), np.array([node])).tolist()]
    return [*_short(np.append(at, 0.0)[:2]), float(f"{radius:.{DIGITS}g}"), chance]


def _box(page: RoundsPage) -> list[float]:
    """All places of sources, sensors and the floor plan, with a margin."""
    wide, high = page.cell_size
    half = np.array([wide / 2, high / 2])
    corners = [page.cells - half, page.cells + half, page.sensors, *page.lines]
    if page.image_bounds is not None:
        corners.append(np.reshape(page.image_bounds, (2, 2)))
    every = np.concatenate(corners)
    low, high_end = every.min(axis=0), every.max(axis=0)
    margin = 0.03 * max(float((high_end - low).max()), 1e-12)
    return [*(low - margin).tolist(), *(high_end + margin).tolist()]


def _short(values: FloatArray) -> Any:
    """Numbers with as many digits as a screen shows."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim > 1:
        return [_short(row) for row in array]
    return [float(f"{value:.{DIGITS + 2}g}") for value in array.tolist()]


def _colors(shades: Any) -> str:
    rgb = np.round(255 * shades(np.linspace(0, 1, 256))[:, :3]).astype(np.uint8)
    return _text(rgb)


def _text(values: npt.NDArray[Any]) -> str:
    return base64.b64encode(values.tobytes()).decode()

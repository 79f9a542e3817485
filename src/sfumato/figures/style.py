"""The colors, letters and color scales of all pictures: what maps look like in pictures, pages and widgets."""

from __future__ import annotations

import json
import math
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato._process import is_own
from sfumato._types import FloatArray

if TYPE_CHECKING:
    from matplotlib.colors import Colormap

Pixels = npt.NDArray[np.uint8]

DPI = 200
# Sizes of letters in points, small print in letters to an inch, and the height of its lines in inches.
FONT_TITLE, FONT_PANEL, FONT_HEADING, FONT_LABEL, FONT_NOTE = 15, 11, 10, 9, 8.5
FONT_KEY, FONT_SMALL, FONT_TICK, FONT_TINY = 8, 7.5, 7, 6.5
LETTERS, LINE = 16.8, 0.155

INK, GREY, PAPER = "#1f2328", "#6a7078", "#ffffff"
FRAME, LINES = "#9aa0a6", "#5f6b7a"  # around panels; grids and hatches
ALARM = "#b3261e"  # stamps, and remarks on what is missing

# Names of matplotlib's color maps: of maps by day and by night, of heat over an image, of what moves.
MAP, MAP_AT_NIGHT, HEAT, MOVES = "magma_r", "magma", "inferno", "PuOr"
NIGHT = (20, 22, 26)  # the paper of a dark page
MASSES, READINGS = "Blues", "YlOrBr"
TIMES = "viridis"  # of rounds, the first dark, the last light
ARROW = "#1a1a1a"

# One color for one thing in every picture of sensors: found, true (known in simulations only), and read.
FOUND, TRUE, READ = "#1565c0", "#c62828", "#3c4043"
SURE = "#f2b01e"  # bands: no blue of masses, no red of true sources, no ring of a community
POSSIBLE, LEVEL = "#b4b8be", "#b0b6bd"  # places without a mass; a value to compare with
# Sources over time; none is the amber of bands in a plane or the red of true sources.
PATHS = ("#1565c0", "#8e24aa", "#00838f", "#6d4c41", "#455a64", "#3949ab")
# Communities; none is a blue of masses, a brown of readings or the red of sources.
RINGS = ("#2e7d32", "#8e24aa", "#00acc1", "#ec407a", "#9e9d24", "#455a64")
PLAIN, EDGES = "#7d838b", "#5f6670"  # nodes without a community, and edges
# Singular values: seen, hidden, the line through them, lost to rounding, and noise.
SEEN, HIDDEN, THROUGH, LOST, NOISE = "#7a1f5c", "#9a9a9a", "#b8b8b8", "#ececec", "#c2571a"
# What a network can tell, from nothing to everything, also in grey: lighter is less.
REGIMES = ("#f1f3f4", "#fde7b0", "#9cc9ea", "#3b7fc4")
# Series, told apart by shape and by lightness too, for those who see few colors.
STYLES = (
    ("#1565c0", "o"), ("#c62828", "s"), ("#2e7d32", "^"), ("#8e24aa", "D"), ("#ef8f00", "v"),
    ("#00838f", "P"), ("#6d4c41", "X"), ("#455a64", "*"),
)  # fmt: skip

# What may be noise is drawn no darker than this, and what is so many times above the mark as it is.
PALE, RISE = 0.14, 1.2

TOPS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)  # of color scales: little of the scale is left unused


def palette(dark: bool = False) -> Pixels:
    """256 colors from paper to ink: magma, whose lightness changes evenly, blended into the paper.

    Args:
        dark: For a dark page.

    Returns:
        RGB from 0 to 255, [256, 3].
    """
    name, low, high = (MAP_AT_NIGHT, 0.1, 1.0) if dark else (MAP, 0.0, 0.9)
    colors, paper = _colors(name, low, high), np.array(NIGHT) / 255 if dark else np.ones(3)
    blend = np.clip(np.linspace(0, 1, 256) / PALE, 0, 1)[:, None]
    return np.asarray(np.round(255 * (paper * (1 - blend) + colors * blend)), dtype=np.uint8)


def glow() -> Pixels:
    """256 colors of heat that is laid over an image.

    Returns:
        RGB from 0 to 255, [256, 3].
    """
    return np.asarray(np.round(255 * _colors(HEAT, 0.3, 1.0)), dtype=np.uint8)


@cache
def _kept() -> dict[str, list[list[float]]]:
    """The listed colors of the maps named above, as matplotlib has them: by Smith and van der Walt, CC0."""
    file = Path(__file__).with_name("colors.json")
    found: dict[str, list[list[float]]] = json.loads(file.read_text("utf-8"))
    return found


def _colors(name: str, low: float, high: float) -> FloatArray:
    """256 colors of a color map between two places of it [color, RGB], from 0 to 1.

    Of magma and inferno they are found as matplotlib finds them, to the bit, without loading it: a page
    needs nothing else of it.
    """
    places = low + (high - low) * np.linspace(0, 1, 256)
    plain = name.removesuffix("_r")
    if plain not in _kept():
        from matplotlib import colormaps

        return np.asarray(colormaps[name](places)[:, :3], dtype=np.float64)
    colors = np.array(_kept()[plain][:: 1 if plain == name else -1])
    return np.asarray(colors[np.minimum((places * len(colors)).astype(np.int64), len(colors) - 1)])


def load_without_help() -> None:
    """In the command's own process: let matplotlib not write the help of its classes, half of its loading.

    What it draws is the same. Elsewhere, and where it is loaded already, it stays as it is.
    """
    if not is_own() or "matplotlib.figure" in sys.modules:
        return
    from matplotlib import artist

    def unsaid(cls: Any) -> None:
        cls.set._autogenerated_signature = True

    kind: Any = artist.Artist
    if hasattr(kind, "_update_set_signature_and_docstring") and hasattr(artist, "kwdoc"):
        kind._update_set_signature_and_docstring = classmethod(unsaid)
        vars(artist)["kwdoc"] = lambda _: ""


def blues() -> Colormap:
    """Colors of masses. Even the palest is not paper: where nothing was found there is nothing."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps[MASSES](np.linspace(0.25, 1, 192)))


def warm() -> Colormap:
    """Colors of readings."""
    from matplotlib import colormaps

    return colormaps[READINGS]


def times() -> Colormap:
    """Colors of rounds. Even the last is darker than paper, and none is the amber of bands."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps[TIMES](np.linspace(0, 0.86, 256)))


def opaque(colors: Pixels) -> Pixels:
    """Colors with the alpha that matplotlib adds in double precision, at four times the time.

    Args:
        colors: RGB from 0 to 255, [row, column, 3].

    Returns:
        RGBA from 0 to 255, [row, column, 4].

    """
    return np.concatenate([colors, np.full((*colors.shape[:2], 1), 255, dtype=np.uint8)], axis=2)


def shades(
    values: FloatArray, *, top: float, floor: float = 0.0, held: FloatArray | None = None
) -> FloatArray:
    """How dark each value is drawn, from 0 (paper) to 1: the root of value / top, pale below the floor.

    The root shows small places beside large ones. Below the floor, where values tell little, nothing
    is darker than PALE, and it fades in proportion into the paper, so that what may well be noise
    does not look like a place, however high the floor is. From there to RISE times the floor the
    color grows into its own.

    Args:
        values: Of any shape; below 0 counts as 0.
        top: The value that is darkest, above 0.
        floor: The value below which a map may be noise; 0 for none.
        held: What is compared with the floor: the values themselves, unless those are parts of cells.

    Returns:
        Numbers from 0 to 1, of the same shape.

    >>> shades(np.array([0.0, 1.0, 2.0, 4.0, 9.0]), top=4, floor=2)
    array([0.  , 0.07, 0.14, 1.  , 1.  ])
    """
    clear = np.clip(values, 0, None)
    full: FloatArray = np.sqrt(np.minimum(clear, top) / top)
    if floor <= 0:
        return full
    if floor == math.inf:
        return np.zeros_like(full)
    against = clear if held is None else np.clip(held, 0, None)
    pale, times = np.minimum(full, PALE), np.minimum(against, RISE * floor) / floor
    return np.asarray(
        (pale + (full - pale) * np.clip((times - 1) / (RISE - 1), 0, 1)) * np.minimum(times, 1)
    )


def shade_script() -> str:
    """The rule of `shades` for the scripts of pages: `shade(value, top, floor, held)`.

    `held` is what is compared with the floor: the value itself, unless that is a part of a cell.

    Returns:
        JavaScript, to be put before a script that calls it.
    """
    return f"""\
"use strict";
const shade = (value, top, floor, held = value) => {{
  const full = Math.sqrt(Math.min(value / top, 1));
  if (!(floor > 0)) return full;
  const pale = Math.min(full, {PALE}), times = held / floor;
  const own = Math.min(Math.max((times - 1) / ({RISE} - 1), 0), 1);
  return (pale + (full - pale) * own) * Math.min(times, 1);
}};
"""


def round_number(value: float, steps: tuple[float, ...] = (1, 2, 5)) -> float:
    """The least of these steps times a power of ten that is at least the value: for scales and ticks.

    Args:
        value: Above 0.
        steps: Numbers from 1 to below 10, increasing.

    Returns:
        The rounded number.

    >>> round_number(0.013), round_number(2.0), round_number(700), round_number(3.3, TOPS)
    (0.02, 2.0, 1000.0, 4.0)
    """
    power = math.floor(math.log10(value))
    # Through text, so that 2e-4 is the double 0.0002.
    found = [float(f"{step}e{power + more}") for more in (0, 1) for step in steps]
    return next(number for number in found if number >= value * (1 - 1e-9))

"""What pictures over time share: rounds below an axis or in a strip of colors, and names of sensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sfumato._types import FloatArray
from sfumato.figures.style import FONT_KEY, FONT_LABEL, FONT_TICK, FONT_TINY, GREY, INK, times

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TICKS, LONGEST, FEWER = (
    9,
    10,
    5,
)  # labels of times; of times with more letters there is room for fewer
BESIDE = ((4.0, 3.0, "left"), (4.0, -8.0, "left"), (-4.0, 3.0, "right"), (-4.0, -8.0, "right"))


def time_names(given: Sequence[str], count: int) -> tuple[list[str], bool]:
    """What rounds are called, of one day the hours alone, and whether they have times at all."""
    if len(given) != count or not any(given):
        return [str(number) for number in range(1, count + 1)], False
    days = {time.partition("T")[0] for time in given}
    return [time.partition("T")[2] or time if len(days) == 1 else time for time in given], True


def round_ticks(axis: Axes, given: Sequence[str], count: int, *, room: float = 1.0) -> None:
    """Rounds below the axis, by their times if they have any; of many, some."""
    names, timed = time_names(given, count)
    most = TICKS if max(map(len, names), default=0) <= LONGEST else FEWER
    shown = np.arange(1, count + 1, math.ceil(count / max(2, int(room * most))))
    axis.set_xticks(shown)
    axis.set_xticklabels([names[number - 1] for number in shown.tolist()], parse_math=False)
    axis.set_xlabel("round, by its time" if timed else "round", fontsize=FONT_LABEL, color=INK)
    axis.set_xlim(0.5, count + 0.5)


def time_strip(axis: Axes, given: Sequence[str], count: int, *, drop: float) -> None:
    """A strip of the colors of rounds below a panel, `drop` inches under it, with some of their times."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    figure = cast("Figure", axis.figure)
    height = figure.get_size_inches()[1]
    place = axis.get_position()
    strip = figure.add_axes(
        (place.x0 + 0.15 * place.width, place.y0 - (drop + 0.11) / height, 0.7 * place.width, 0.11 / height)
    )  # fmt: skip
    scale = Normalize(1, max(count, 2))
    bar = figure.colorbar(ScalarMappable(scale, times()), cax=strip, orientation="horizontal")
    cast(Any, bar.outline).set_linewidth(0.5)
    names, timed = time_names(given, count)
    shown = sorted({1, (count + 1) // 2, count})
    bar.set_ticks([float(number) for number in shown])
    strip.set_xticklabels([names[number - 1] for number in shown], parse_math=False)
    strip.tick_params(labelsize=FONT_TICK, colors=INK, length=2, width=0.5, pad=2)
    words = "round, by its time" if timed else "round"
    bar.set_label(words, fontsize=FONT_KEY, color=INK, labelpad=2, parse_math=False)


def round_colors(count: int) -> FloatArray:
    """The color of each round, RGBA."""
    return np.asarray(times()(np.linspace(0, 1, count) if count > 1 else np.zeros(1)))


def name_sensors(
    axis: Axes, at: FloatArray, names: Sequence[str], *, keep_free: FloatArray | None = None
) -> int:
    """Names beside sensors, each where it hides no other name, sensor or place to `keep_free`.

    One that has no such side is left out, since two names over each other are none. How many are there.
    """
    from matplotlib.patheffects import withStroke
    from matplotlib.transforms import Bbox

    figure = cast("Figure", axis.figure)
    axis.apply_aspect()  # names are measured where they will be
    near = 2.5 * figure.dpi / 72
    marks = at if keep_free is None else np.concatenate([at, keep_free])
    spots = axis.transData.transform(marks)
    frame = axis.get_window_extent()
    taken: list[Bbox] = []
    halo = [withStroke(linewidth=1.6, foreground="white")]
    for number, name in enumerate(names):
        text = axis.annotate(
            name, at[number], textcoords="offset points", xytext=BESIDE[0][:2], fontsize=FONT_TINY,
            color=GREY, zorder=4, parse_math=False, path_effects=halo, annotation_clip=True,
        )  # fmt: skip
        for across, up, side in BESIDE:
            text.set_position((across, up))
            text.set_horizontalalignment(cast(Any, side))
            box = text.get_window_extent()
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 + near
            hides = (
                (spots[:, 0] > box.x0 - near) & (spots[:, 0] < box.x1 + near)
                & (spots[:, 1] > box.y0 - near / 2) & (spots[:, 1] < box.y1 + near / 2)
            )  # fmt: skip
            hides[number] = False
            if inside and not hides.any() and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
        else:
            text.remove()
    return len(taken)

"""Pictures of sensors show things where they are, keep their words apart, and depend on nothing else."""

from __future__ import annotations

import functools
import io
import itertools
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import Bbox
from PIL import Image

from sfumato.errors import InvalidParameter
from sfumato.figures import (
    Series,
    draw_graph_recovery,
    draw_intervals,
    draw_line_recovery,
    draw_plane_recovery,
    intervals,
    sheet,
)
from sfumato.figures.recovery import line as line_module
from sfumato.figures.recovery import network, plane
from sfumato.figures.recovery.line import gather, stretches
from sfumato.figures.sheet import crosses
from sfumato.spaces import Graph, Grid, Line, Points

pytestmark = pytest.mark.unit

CAPTION = (
    "(4, 0.1)-differentially private for mass moved by up to 0.1, jointly over the sensors. " * 3
)
HOSTILE = "$\\frac{ & $x^"


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the pixels a side: nothing here needs more, and drawing is slow."""
    monkeypatch.setattr(sheet, "DPI", 50)


def one(size: int, *cells: int) -> np.ndarray:
    mass = np.zeros(size)
    mass[list(cells)] = 1
    return mass


def line_picture(**changed: Any) -> bytes:
    at = np.linspace(0.02, 1, 50)
    given: dict[str, Any] = {
        "line": Line(100), "estimate": one(100, 30, 31, 60), "sensors": at, "readings": np.sin(9 * at),
        "sigma": 0.2, "fitted": np.sin(9 * at + 0.1), "caption": CAPTION, **changed,
    }  # fmt: skip
    return draw_line_recovery(given.pop("line"), given.pop("estimate"), **given)


def plane_picture(**changed: Any) -> bytes:
    given: dict[str, Any] = {
        "grid": Grid(4), "estimate": one(256, 3, 77), "sensors": [(0.2, 0.9), (0.6, 0.1), (0.7, 0.7)],
        "readings": [1.0, -0.5, 3.0], "caption": CAPTION, **changed,
    }  # fmt: skip
    return draw_plane_recovery(given.pop("grid"), given.pop("estimate"), **given)


RING = Graph([(i, (i + 1) % 20) for i in range(20)])


def graph_picture(**changed: Any) -> bytes:
    given: dict[str, Any] = {
        "graph": RING, "estimate": one(20, 4), "labels": np.arange(20) // 10, "readings": np.arange(20.0),
        "caption": CAPTION, **changed,
    }  # fmt: skip
    return draw_graph_recovery(given.pop("graph"), given.pop("estimate"), **given)


def series(name: str = "ours", factor: float = 1.0) -> Series:
    x = np.array([1.0, 2, 4, 8])
    return Series(name, x, factor / x, factor / x - 0.2, 2 * factor / x)


def interval_picture(*drawn: Series, **changed: Any) -> bytes:
    given: dict[str, Any] = {"x_label": "epsilon", "caption": CAPTION, **changed}
    return draw_intervals(drawn or [series()], **given)


PICTURES: dict[str, Callable[..., bytes]] = {
    "line": line_picture,
    "plane": plane_picture,
    "graph": graph_picture,
}


def size(png: bytes) -> tuple[int, int]:
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", png[16:24])


def red(png: bytes) -> np.ndarray:
    """Where the red of true sources is, [row, column], pure or blended with white."""
    image = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)
    r, g, b = np.moveaxis(image, 2, 0)
    return np.asarray((r - g > 80) & (np.abs(g - b) < 12))


@functools.cache
def plain(name: str) -> bytes:
    return PICTURES[name]()


# every picture


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("line", {"estimate": one(100, 5)}),
        ("line", {"readings": np.zeros(50)}),
        ("line", {"sigma": 0.3}),
        ("line", {"fitted": None}),
        ("line", {"sources": one(100, 7)}),
        ("plane", {"estimate": one(256, 5)}),
        ("plane", {"readings": [1.0, -0.5, 2.0]}),
        ("plane", {"sensors": [(0.2, 0.9), (0.6, 0.1), (0.7, 0.6)]}),
        ("plane", {"sources": one(256, 7)}),
        ("graph", {"estimate": one(20, 5)}),
        ("graph", {"readings": np.arange(20.0)[::-1]}),
        ("graph", {"readings": None}),
        ("graph", {"labels": None}),
        ("graph", {"positions": np.arange(40).reshape(20, 2) % 7}),
        ("graph", {"sources": one(20, 7)}),
        ("graph", {"sensors": np.arange(20)[::-1]}),
    ],
)
def test_everything_given_is_drawn(name: str, changes: dict[str, Any]) -> None:
    assert PICTURES[name](**changes) != plain(name)


@pytest.mark.parametrize("name", PICTURES)
def test_a_rehearsal_is_stamped_and_true_sources_are_red(name: str) -> None:
    count = {"line": 100, "plane": 256, "graph": 20}[name]
    assert PICTURES[name](rehearsal=True) != plain(name)
    # Without labels, because a purple ring on an orange node blends to some red.
    rest = {"labels": None} if name == "graph" else {}
    assert not red(PICTURES[name](**rest)).any()
    assert red(PICTURES[name](sources=one(count, 9), **rest)).sum() > 5


@pytest.mark.parametrize("name", PICTURES)
def test_the_same_values_give_the_same_bytes_and_any_values_the_same_size(name: str) -> None:
    count, sensors = {"line": (100, 50), "plane": (256, 3), "graph": (20, 20)}[name]
    assert PICTURES[name]() == plain(name)
    full = PICTURES[name](estimate=np.full(count, 1e9), readings=np.zeros(sensors))
    assert size(full) == size(plain(name))


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize("wrong", [np.zeros(7), np.full((2, 2), 1.0), None, "many"])
def test_estimates_of_another_shape_are_refused(name: str, wrong: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"estimate must be .*; nothing was drawn"):
        PICTURES[name](estimate=wrong)


@pytest.mark.parametrize("name", PICTURES)
def test_readings_must_be_finite_and_as_many_as_sensors(name: str) -> None:
    count = {"line": 50, "plane": 3, "graph": 20}[name]
    with pytest.raises(InvalidParameter, match="readings must be finite, got NaN or infinity"):
        PICTURES[name](readings=np.full(count, np.nan))
    with pytest.raises(
        InvalidParameter, match=rf"one number for each of {count} sensors, got shape \(1,\)"
    ):
        PICTURES[name](readings=[1.0])


def test_words_are_taken_as_they_are() -> None:
    assert line_picture(caption=HOSTILE * 40)
    assert graph_picture(caption=HOSTILE, labels=[HOSTILE] * 10 + ["_hidden"] * 10)
    assert interval_picture(
        series(HOSTILE), x_label=HOSTILE, y_label=HOSTILE, title=HOSTILE, caption=HOSTILE
    )


# words and legends keep apart


TREE = Graph([(i, (i + 1) // 2 - 1) for i in range(1, 60)])
# The first 20 within a hundredth of the picture.
CLOSE = (
    np.stack([np.arange(60) % 5, np.arange(60) // 5], axis=1)
    * np.where(np.arange(60) < 20, 0.01, 1)[:, None]
)
APART = np.array([0.1, 0.12, 0.14, 0.16, 0.5, 0.84, 0.86, 0.88, 0.9])

CROWDED: dict[str, Callable[[], bytes]] = {
    "line": lambda: line_picture(sources=one(100, 9)),
    "line of a million": lambda: line_picture(
        line=Line(10**6), estimate=one(10**6, 3, 4, 10**5), sources=one(10**6, 3), readings=-1e5 * np.ones(50)
    ),
    "line with tiny numbers": lambda: line_picture(readings=1e-7 * np.arange(50), fitted=None, sigma=1e-7),
    "line with one sensor": lambda: line_picture(sensors=[0.5], readings=[1], fitted=[1.1]),
    "plane": lambda: plane_picture(sources=one(256, 9)),
    "fine plane": lambda: plane_picture(grid=Grid(7), estimate=one(4**7, 5), sources=one(4**7, 9)),
    "corridor": lambda: plane_picture(grid=Grid(4, (0, 0, 5000, 3)), sources=one(256, 9)),
    "tower": lambda: plane_picture(grid=Grid(4, (0, 0, 3, 5000)), sources=one(256, 9)),
    "points": lambda: plane_picture(
        grid=Points([(0, 0), (1, 2), (3, 1)]), estimate=[0, 2, 1], sources=[1, 0, 0]
    ),
    "graph": lambda: graph_picture(sources=one(20, 9)),
    "graph with six communities": lambda: graph_picture(
        labels=np.array([f"a community with a long name {k % 6}" for k in range(20)]),
        sources=one(20, 9), sensors=np.arange(0, 20, 2), readings=np.arange(10.0),
    ),
    "graph without readings": lambda: graph_picture(
        labels=np.array([f"a community with a long name {k % 6}" for k in range(20)]),
        sources=one(20, 9), readings=None,
    ),
    "graph with names of neighbors": lambda: graph_picture(
        graph=TREE, estimate=one(60, *range(1, 9)), labels=None, readings=None, positions=CLOSE,
        names=[f"n{k + 100}" for k in range(60)],
    ),
    "small graph with names of neighbors": lambda: graph_picture(
        labels=None, readings=None, positions=CLOSE[10:30], names=[f"n{k + 100}" for k in range(20)],
    ),
    "line with gaps": lambda: line_picture(sensors=APART, readings=APART, fitted=APART),
    "eight series": lambda: interval_picture(
        *(series(f"calibration of paper {k}", 2.0**k) for k in range(8)),
        x_scale="log", y_scale="log", slopes=[-1, -0.5], title="A title that takes about half of the line",
    ),
    "one series": lambda: interval_picture(title="A title that takes about half of the line"),
}  # fmt: skip


@pytest.mark.parametrize("name", CROWDED)
def test_words_do_not_overlap_and_legends_do_not_cover_data(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures: list[Figure] = []

    def keep(figure: Figure) -> bytes:
        figures.append(figure)
        return sheet.png(figure)

    for module in (line_module, plane, network, intervals):
        monkeypatch.setattr(module, "png", keep)
    CROWDED[name]()
    [figure] = figures
    words = boxes_of_words(figure)
    paper = figure.bbox
    for said, box in words:
        inside = box.x0 >= 0 and box.y0 >= 0 and box.x1 <= paper.x1 and box.y1 <= paper.y1
        assert inside, f"{said!r} leaves the paper"
    for (said, box), (other, below) in itertools.combinations(words, 2):
        assert not overlap(box, below), f"{said!r} lies on {other!r}"
    titles = [
        text for axis in figure.axes for text in axis.texts if text.get_fontweight() == "bold"
    ]
    for title, axis in itertools.product(titles, figure.axes):
        assert not overlap(title.get_window_extent(), axis.get_window_extent()), (
            "a title lies on data"
        )
    legends = [legend for axis in figure.axes if (legend := axis.get_legend())] + figure.legends
    for legend, axis in itertools.product(legends, figure.axes):
        for text in legend.get_texts():
            assert not overlap(text.get_window_extent(), axis.get_window_extent()), (
                "a legend lies on data"
            )


def boxes_of_words(figure: Figure) -> list[tuple[str, Bbox]]:
    """Everything that is written, but for numbers at ticks outside the axes, which are not drawn."""
    found = [*figure.texts]
    for named in figure.legends:
        found += named.get_texts()
    for axis in figure.axes:
        found += [*axis.texts, axis.xaxis.label, axis.yaxis.label]
        if legend := axis.get_legend():
            found += legend.get_texts()
        for along, limits in ((axis.xaxis, axis.get_xlim()), (axis.yaxis, axis.get_ylim())):
            for tick in along.get_major_ticks():
                if tick.label1.get_visible() and min(limits) <= tick.get_loc() <= max(limits):
                    found.append(tick.label1)
    return [
        (text.get_text(), text.get_window_extent()) for text in found if text.get_text().strip()
    ]


def overlap(one: Bbox, other: Bbox) -> bool:
    # Half a pixel at 50 to the inch is a hundredth of an inch: touching boxes are no overlap.
    across = min(one.x1, other.x1) - max(one.x0, other.x0)
    along = min(one.y1, other.y1) - max(one.y0, other.y0)
    return bool(across > 0.5 and along > 0.5)


def test_overlapping_words_are_seen() -> None:
    assert overlap(Bbox([[0, 0], [10, 5]]), Bbox([[9, 4], [20, 20]]))
    assert not overlap(Bbox([[0, 0], [10, 5]]), Bbox([[10, 0], [20, 20]]))
    assert not overlap(Bbox([[0, 0], [10, 5]]), Bbox([[0, 6], [20, 20]]))


# the line


def test_a_stem_stands_at_its_position() -> None:
    places = []
    for cell in (24, 74):
        stem = red(line_picture(sources=one(100, cell)))[20:]  # below the legend
        places.append(np.flatnonzero(stem.any(axis=0)).mean())
    # The panel is 6.92 inches of 50 pixels, and shows 1.04 times what cells and sensors span, 0.01
    # to 1: half a line is 50 * 6.92 * 0.5 / (1.04 * 0.99) = 168 pixels, and a stem is two wide.
    assert places[1] - places[0] == pytest.approx(168, abs=2)


def test_twice_the_mass_is_twice_as_high() -> None:
    high = []
    for mass in (1.0, 2.0):
        estimate = 4 * one(100, 90)
        stem = red(line_picture(estimate=estimate, sources=mass * one(100, 20)))[20:]
        high.append(int(stem.any(axis=1).sum()))
    # 1.85 inches hold 1.12 * 4: a unit is 20.6 pixels; the head of radius 2.1 pixels stays as it
    # is.
    assert high[1] - high[0] == pytest.approx(20.6, abs=2)


def test_neighboring_cells_of_a_fine_line_are_one_stem() -> None:
    line = Line(10**6)
    x, mass = gather(line.positions, one(10**6, 10, 11, 500_000), 1 / 160)
    assert mass.tolist() == [2, 1]
    assert x == pytest.approx([11.5e-6, 0.500001])
    x, mass = gather(Line(100).positions, one(100, 10, 11), 1 / 160)
    assert mass.tolist() == [1, 1]
    assert gather(Line(4).positions, np.zeros(4), 0.1)[0].size == 0


@pytest.mark.property
@given(st.integers(1, 300), st.floats(1e-6, 2.0), st.integers(0, 2**32 - 1))
def test_stems_keep_mass_and_center_and_stand_apart(n: int, width: float, seed: int) -> None:
    chance = np.random.default_rng(seed)
    positions = Line.at(np.unique(chance.random(n))).positions
    masses = chance.random(positions.size) * (chance.random(positions.size) < 0.5)
    x, mass = gather(positions, masses, width)
    # Sums of at most 300 terms in another order: relative 300 * 2**-53 = 4e-14, ten times for the
    # products.
    assert mass.sum() == pytest.approx(masses.sum(), rel=1e-12)
    assert x @ mass == pytest.approx(positions @ masses, rel=1e-12)
    assert (np.diff(x) > 0).all()
    assert x.size <= 1 / width + 1 or width < 1 / 300


def along(line: Line2D) -> list[float]:
    return [float(x) for x in np.asarray(line.get_xdata())]


def test_no_band_lies_where_no_sensor_is(monkeypatch: pytest.MonkeyPatch) -> None:
    figures: list[Figure] = []

    def keep(figure: Figure) -> bytes:
        figures.append(figure)
        return b""

    monkeypatch.setattr(line_module, "png", keep)
    line_picture(sensors=APART[::-1], readings=np.ones(9), fitted=np.ones(9))
    line_picture(sensors=[0.1, 0.1, 0.5, 0.9], readings=np.ones(4), fitted=np.ones(4))
    gaps, even = ([line for axis in figure.axes for line in axis.lines] for figure in figures)
    solid = [
        along(line) for line in gaps if line.get_linestyle() == "-" and line.get_alpha() is None
    ]
    assert [x for x in solid if len(x) == 4] == [APART[:4].tolist(), APART[5:].tolist()]
    dotted = [along(line) for line in gaps if line.get_linestyle() == ":"]
    assert dotted == [[0.16, 0.5], [0.5, 0.84]]
    assert [along(line) for line in gaps if line.get_marker() == "_"] == [[0.5]]
    assert not any(line.get_linestyle() == ":" for line in even)
    assert stretches(np.array([2.0])) == [0, 1]


def test_bad_lines_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="sigma must be finite and at least 0, got -1"):
        line_picture(sigma=-1)
    with pytest.raises(InvalidParameter, match="at least one sensor, got none"):
        line_picture(sensors=[], readings=[], fitted=None)
    with pytest.raises(InvalidParameter, match="sources must be one number for each of 100 cells"):
        line_picture(sources=[1, 2])


# the plane


def test_a_cross_stands_in_its_cell_and_north_is_up() -> None:
    grid = Grid(2)
    at = {}
    for name, (column, row) in {
        "south-west": (0, 0),
        "south-east": (3, 0),
        "north-west": (0, 3),
    }.items():
        cell = int(grid.encode(column, row))
        cross = red(plane_picture(grid=grid, estimate=np.zeros(16), sources=one(16, cell)))
        rows, columns = np.nonzero(cross[30:])  # below the legend
        at[name] = rows.mean(), columns.mean()
    # Three cells of a quarter: 50 pixels an inch * 6.44 inches * 0.75 / 1.04 = 232.
    assert at["south-east"][1] - at["south-west"][1] == pytest.approx(232, abs=2)
    assert at["south-west"][0] - at["north-west"][0] == pytest.approx(232, abs=2)


def test_a_fine_grid_is_drawn_in_squares_with_their_total() -> None:
    """Four cells of half a unit in one square look as one coarse cell of two, the legend's words aside."""
    estimate = np.zeros(4**6)
    estimate[400:404] = 0.5
    fine = plane_picture(grid=Grid(6), estimate=estimate)
    coarse = plane_picture(grid=Grid(5), estimate=2 * one(4**5, 100))
    image, other = (np.asarray(Image.open(io.BytesIO(png))) for png in (fine, coarse))
    label = slice(-100, None)
    assert np.array_equal(image[: label.start], other[: label.start])
    assert not np.array_equal(image, other)


def test_bad_planes_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="a plane has 2 coordinates, got 3"):
        plane_picture(grid=Points([(0, 0, 0), (1, 1, 1)]), estimate=[1, 1])
    with pytest.raises(
        InvalidParameter, match=r"sensors must be at least one row of 2 coordinates"
    ):
        plane_picture(sensors=[0.1, 0.2, 0.3])


# the graph


@pytest.mark.parametrize(
    "graph",
    [
        Graph([], nodes=1),
        Graph([(0, 1)]),
        Graph([], nodes=5),
        Graph([(0, 1), (1, 2), (3, 4)], nodes=8),
    ],
    ids=["one node", "one edge", "no edge", "in parts"],
)
def test_the_smallest_graphs_are_drawn(graph: Graph) -> None:
    everywhere = np.ones(graph.size)
    assert graph_picture(
        graph=graph, estimate=everywhere, readings=everywhere, labels=np.arange(graph.size)
    )


def corners(count: int, wide: float, high: float) -> np.ndarray:
    """Places in a box, four of them in its corners and four in the middle of its sides."""
    edge = [(0, 0), (0, 1), (1, 0), (1, 1), (0.5, 0), (0.5, 1), (0, 0.5), (1, 0.5)]
    inner = [
        ((7 * k % count + 1) / (count + 2), (k + 1) / (count + 2)) for k in range(count - len(edge))
    ]
    return np.array(edge + inner) * (wide, high)


@pytest.mark.parametrize("shape", [(1, 1), (5, 1), (2, 1), (1, 5), (1e-3, 1e-3)])
@pytest.mark.parametrize("count", [8, 200, 2000])
def test_no_node_is_cut(
    count: int, shape: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a node at the edge, nor its mass, nor the halo under it."""
    drawn: list[Figure] = []
    monkeypatch.setattr(network, "png", drawn.append)
    graph = Graph([(node, node + 1) for node in range(count - 1)])
    all_of_them = one(count, *range(8))
    draw_graph_recovery(
        graph, all_of_them, labels=np.arange(count) % 2, positions=corners(count, *shape),
        readings=np.arange(count), sources=all_of_them, bands=[((node,), 0.5, 0.9) for node in range(8)],
        caption=CAPTION,
    )  # fmt: skip
    (figure,) = drawn
    figure.draw_without_rendering()
    judged = 0
    for axis in figure.axes:
        for marks in axis.collections:
            if not isinstance(marks, PathCollection):
                continue
            judged += 1
            at = axis.transData.transform(np.asarray(marks.get_offsets()))
            radius = (
                (np.sqrt(marks.get_sizes()) + np.max(marks.get_linewidth())) / 2 * figure.dpi / 72
            )
            room = np.minimum(at - axis.bbox.min, axis.bbox.max - at).min(axis=1) - radius
            assert room.min() >= -0.01, "a node is cut"
    assert judged == 4  # readings; nodes, masses and halos


def test_a_cross_stands_on_its_node() -> None:
    square = Graph([(0, 1), (1, 2), (2, 3), (3, 0)])
    positions = [(0, 0), (1, 0), (1, 1), (0, 1)]
    at = []
    for node in (0, 1, 3):
        png = graph_picture(
            graph=square, estimate=np.zeros(4), readings=np.zeros(4), labels=None, positions=positions,
            sources=one(4, node),
        )  # fmt: skip
        rows, columns = np.nonzero(red(png)[25:])  # below the legend
        at.append((rows.mean(), columns.mean()))
    # The panel is 4.71 inches a side. Nodes are of 90 square points, so a halo is of 4 * 90 + 330,
    # its radius 13.1 and a point more for its rim: 50 * (4.71 - 2 * 14.1 / 72) = 216.
    assert at[1][1] - at[0][1] == pytest.approx(216, abs=2)
    assert at[0][0] - at[2][0] == pytest.approx(216, abs=2)


def test_bad_graphs_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="nodes from 0 to 19, got 3 to 20"):
        graph_picture(sensors=[3, 20], readings=[1, 1])
    with pytest.raises(InvalidParameter, match="sensors must be numbers of nodes"):
        graph_picture(sensors=[0.5, 1], readings=[1, 1])
    with pytest.raises(
        InvalidParameter, match=r"labels must be one number or name for each of 20 nodes"
    ):
        graph_picture(labels=[1, 2])
    with pytest.raises(InvalidParameter, match=r"positions must be 20 rows of 2 coordinates"):
        graph_picture(positions=[(0, 1)])


@pytest.mark.unit
def test_crosses_are_called_what_they_mark() -> None:
    figure = Figure()
    axis = figure.add_subplot()
    crosses(axis, np.zeros((1, 2)))
    crosses(axis, np.ones((1, 2)), label="where it truly began")
    assert [line.get_label() for line in axis.lines[1::2]] == [
        "simulated sources",
        "where it truly began",
    ]

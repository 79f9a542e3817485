"""Tracks: time is color, bands do not pile up, axes are the whole site's, and sensors have their names."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image

from sfumato.errors import InvalidParameter
from sfumato.figures import draw_graph_track, draw_line_track, draw_plane_track, sheet
from sfumato.figures.recovery import graph_track, track
from sfumato.figures.recovery.floor import Floor
from sfumato.figures.recovery.over_time import round_colors, time_names
from sfumato.figures.style import LEVEL
from sfumato.spaces import Graph, Grid

pytestmark = pytest.mark.unit

GRID = Grid(3, (0.0, 0.0, 4.0, 4.0))
SENSORS = np.array([(0.5, 0.5), (3.5, 0.5), (2.0, 3.5)])
NAMES = ("door", "desk", "wall")
WAY = np.array([(1.0, 1.0), (1.4, 1.2), (1.8, 1.5), (2.0, 2.0)])[:, np.newaxis]


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are drawn, in few pixels."""
    monkeypatch.setattr(sheet, "DPI", 60)
    drawn: list[Figure] = []
    for module in (track, graph_track):
        whole = module.png

        def kept(figure: Figure, whole: Any = whole) -> bytes:
            drawn.append(figure)
            found: bytes = whole(figure)
            return found

        monkeypatch.setattr(module, "png", kept)
    return drawn


def plane(path: Any = WAY, radius: float = 0.3, **more: Any) -> bytes:
    radii = np.full(path.shape[:2], radius)
    given: dict[str, Any] = {"sensors": SENSORS, "space": GRID, "caption": "x", **more}
    return draw_plane_track(path, radii, **given)


def words(figure: Figure) -> list[str]:
    return [text.get_text() for axis in figure.axes for text in axis.texts]


def test_a_place_that_is_held_a_hundred_times_is_no_darker(figures: list[Figure]) -> None:
    """Bands that pile up say that a place is likelier, which it is not."""
    still = np.repeat(WAY[:1], 100, axis=0)

    def shade(data: bytes, axis: Any) -> Any:
        pixels = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
        x, y = axis.transData.transform((1.0 + 0.2, 1.0))
        return pixels[pixels.shape[0] - 1 - int(y), int(x)]

    once, often = plane(still[:2]), plane(still)
    first, second = (
        shade(data, figure.axes[0]) for data, figure in zip((once, often), figures, strict=True)
    )
    assert np.array_equal(first, second)
    whole = 255 * (0.45 * np.array(to_rgb(LEVEL)) + 0.55)
    assert np.abs(first - whole).max() <= 2


def test_axes_are_those_of_the_whole_site(figures: list[Figure]) -> None:
    plane()
    axis = figures[0].axes[0]
    (left, right), (low, high) = axis.get_xlim(), axis.get_ylim()
    assert left <= 0.0 <= 4.0 <= right
    assert low <= 0.0 <= 4.0 <= high
    draw_line_track(WAY[:, :, 0], np.zeros((4, 1)), limits=(0, 4), sensors=[-1.0, 5.0], caption="x")
    low, high = figures[1].axes[0].get_ylim()
    assert low <= -1
    assert high >= 5


def test_sensors_have_their_names(figures: list[Figure]) -> None:
    plane(sensor_names=NAMES)
    assert set(NAMES) <= set(words(figures[0]))
    draw_line_track(
        WAY[:, :, 0], np.zeros((4, 1)), limits=(0, 4), sensors=SENSORS[:, 0], sensor_names=NAMES,
        caption="x",
    )  # fmt: skip
    assert set(NAMES) <= set(words(figures[1]))
    crowd = np.tile(SENSORS[:1], (20, 1))
    plane(sensors=crowd, sensor_names=[f"number {i}" for i in range(20)])
    # Of twenty at one place only as many as have a side of their own.
    assert sum(text.startswith("number") for text in words(figures[2])) <= 4


def test_time_is_color(figures: list[Figure]) -> None:
    colors = round_colors(4)
    lightness = colors[:, :3] @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(lightness) > 0.05).all()
    plane(times=["2026-01-01T09:00", "2026-01-01T09:10", "2026-01-01T09:20", "2026-01-01T09:30"])
    axis, strip = figures[0].axes
    assert [text.get_text() for text in strip.get_xticklabels()] == ["09:00", "09:10", "09:30"]
    assert any(np.allclose(part.get_facecolor()[:4], colors[: len(part.get_facecolor())])
               for part in axis.collections if len(part.get_facecolor()) == 4)  # fmt: skip


def test_names_of_rounds() -> None:
    assert time_names(["2026-01-01T09:00", "2026-01-01T10:00"], 2) == (["09:00", "10:00"], True)
    assert time_names(["2026-01-01T09:00", "2026-01-02T09:00"], 2)[0][1] == "2026-01-02T09:00"
    assert time_names([], 2) == (["1", "2"], False)


def test_a_floor_plan_lies_under_a_track(figures: list[Figure]) -> None:
    wall = np.array([(0.0, 0.0), (6.0, 0.0)])
    floor = Floor(np.zeros((4, 4, 3), dtype=np.uint8), (0.0, 0.0, 4.0, 4.0), (wall,))
    assert plane(floor=floor) != plane()
    assert len(figures[0].axes[0].images) == 1
    assert figures[0].axes[0].get_xlim()[1] >= 6


def test_a_track_on_a_graph_has_a_row_for_each_node_it_was_at(figures: list[Figure]) -> None:
    graph = Graph([(i, (i + 1) % 8) for i in range(8)])
    way = np.array([[0], [1], [1], [5]])
    chances = np.zeros((4, 1, 8))
    chances[np.arange(4), 0, way[:, 0]] = 0.9
    chances[:, 0, 7] = 0.1
    names = [f"room {node}" for node in range(8)]
    first = draw_graph_track(graph, way, chances, names=names, caption="x")
    assert first == draw_graph_track(graph, way, chances, names=names, caption="x")
    assert first != draw_graph_track(graph, way[::-1], chances[::-1], names=names, caption="x")
    chart = figures[0].axes[2]
    rows = [text.get_text() for text in chart.get_yticklabels()]
    assert rows == ["room 0", "room 1", "room 5", "room 7"]
    with pytest.raises(InvalidParameter, match="nothing was drawn"):
        draw_graph_track(graph, way, chances[:, :, :4], caption="x")

"""Bands, answers and tracks are drawn where they are, and pictures without them are what they were."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image

from sfumato.errors import InvalidParameter
from sfumato.figures import (
    draw_graph_recovery,
    draw_line_recovery,
    draw_plane_recovery,
    sheet,
)
from sfumato.figures.recovery import beliefs
from sfumato.figures.recovery import network as network_module
from sfumato.figures.recovery.beliefs import at_least, band_label
from sfumato.figures.recovery.track import draw_line_track, draw_plane_track
from sfumato.figures.style import SURE
from sfumato.spaces import Graph, Grid, Line

pytestmark = pytest.mark.unit

RING = Graph([(i, (i + 1) % 20) for i in range(20)])
SENSORS = [(0.2, 0.9), (0.6, 0.1), (0.7, 0.7)]


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the pixels a side: nothing here needs more, and drawing is slow."""
    monkeypatch.setattr(sheet, "DPI", 50)


def one(size: int, *cells: int) -> np.ndarray:
    mass = np.zeros(size)
    mass[list(cells)] = 1
    return mass


def line(**changed: Any) -> bytes:
    at = np.linspace(0.02, 1, 10)
    return draw_line_recovery(
        Line(100), one(100, 30), sensors=at, readings=np.sin(at), sigma=0.2, caption="x", **changed
    )


def plane(**changed: Any) -> bytes:
    return draw_plane_recovery(
        Grid(4), one(256, 77), sensors=SENSORS, readings=[1.0, -0.5, 3.0], caption="x", **changed
    )


def network(**changed: Any) -> bytes:
    given: dict[str, Any] = {"readings": np.arange(20.0), "caption": "x", **changed}
    return draw_graph_recovery(RING, one(20, 4), **given)


PICTURES: dict[str, tuple[Callable[..., bytes], Any, list[Any]]] = {
    "line": (line, ([0.31, 0.6], [0.5, 0.5]), [((0.4,), 0.1, 0.9)]),
    "plane": (plane, one(256, 5), [((0.4, 0.5), 0.1, 0.9)]),
    "network": (network, one(20, 7), [((7,), 2, 0.9)]),
}


def amber(png: bytes) -> np.ndarray:
    """Columns in which something has the hue of a band, blended with white or not."""
    image = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)
    r, g, b = np.moveaxis(image, 2, 0)
    return np.flatnonzero(((r - b > 25) & (g - b > 15) & (r - g < 60)).any(axis=0))


@pytest.mark.parametrize("name", PICTURES)
def test_answers_and_bands_are_drawn(name: str) -> None:
    draw, answer, bands = PICTURES[name]
    plain, beside, both = draw(), draw(answer=answer), draw(answer=answer, bands=bands)
    assert len({plain, beside, both, draw(bands=bands)}) == 4
    assert draw(answer=answer, bands=bands) == both
    wider = [(place, 2 * radius, probability) for place, radius, probability in bands]
    assert draw(answer=answer, bands=wider) != both


def test_a_span_is_where_the_band_is() -> None:
    """From the axis of 0.0 to 1.0, which is 6.92 inches wide and begins 0.78 from the left."""
    columns = amber(line(bands=[((0.5,), 0.2, 0.9)]))
    inside = columns / 50
    low, high = (0.78 + 6.92 * (x - 0.01 + 0.02 * 0.99) / (1.04 * 0.99) for x in (0.3, 0.7))
    span = inside[(inside > 0.7) & (inside < 5.5)]  # the legend's own patch is to the right
    assert span.min() == pytest.approx(low, abs=0.08)
    assert span.max() == pytest.approx(high, abs=0.08)
    assert not amber(line()).size
    assert SURE.startswith("#")


@pytest.mark.parametrize(
    "bands",
    [
        [((0.4, 0.5, 0.6), 0.1, 0.9)],
        [((0.4,), -0.1, 0.9)],
        [((0.4,), np.inf, 0.9)],
        [((np.nan,), 0.1, 0.9)],
        [((0.4,), 0.1, 1.5)],
    ],
)
def test_bands_that_are_none_are_refused(bands: Any) -> None:
    with pytest.raises(InvalidParameter, match="nothing was drawn"):
        line(bands=bands)


def test_a_band_never_says_more_than_the_least_of_all() -> None:
    assert band_label([((0.1,), 0.1, 0.999), ((0.2,), 0.1, 0.9099)]) == "a source is in here, 90 %"


def test_a_share_is_rounded_down_wherever_it_is_told() -> None:
    assert [at_least(share) for share in (0.9199, 0.9, 0.29, 0.9949, 0.995)] == [
        "91 %", "90 %", "29 %", "99 %", ">99 %",
    ]  # fmt: skip


OVERLAP: dict[str, tuple[Callable[..., bytes], list[Any]]] = {
    "line": (line, [((0.4,), 0.2, 0.93), ((0.5,), 0.2, 0.917)]),
    "plane": (plane, [((0.4, 0.4), 0.3, 0.93), ((0.5, 0.4), 0.3, 0.917)]),
}


@pytest.mark.parametrize("name", OVERLAP)
def test_where_bands_overlap_it_is_no_darker_and_each_has_its_own_words(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw, bands = OVERLAP[name]
    said: list[str] = []
    write = beliefs._write

    def keep(axis: Any, at: Any, words: str, **where: Any) -> Any:
        said.append(words)
        return write(axis, at, words, **where)

    monkeypatch.setattr(beliefs, "_write", keep)
    image = np.asarray(Image.open(io.BytesIO(draw(bands=bands))).convert("RGB")).astype(int)
    assert said == ["93 %", "91 %"]
    shades, counts = np.unique(image.reshape(-1, 3), axis=0, return_counts=True)
    fills = shades[(counts > 1500) & (shades[:, 0] > shades[:, 2] + 20)]
    assert len(fills) == 1  # of the union; that of the overlap would be another
    said.clear()
    draw(bands=bands[:1])
    assert said == []  # the legend says it


def test_a_node_of_two_bands_has_one_halo() -> None:
    assert network(bands=[((7,), 2, 0.9), ((7,), 1, 0.9)]) == network(bands=[((7,), 2, 0.9)])


def drawn(monkeypatch: pytest.MonkeyPatch, **changed: Any) -> Any:
    """The figure of a network."""
    figures: list[Any] = []
    monkeypatch.setattr(network_module, "png", figures.append)
    network(**changed)
    return figures[0]


def test_no_name_hides_a_true_source(monkeypatch: pytest.MonkeyPatch) -> None:
    axis = drawn(monkeypatch, sources=one(20, 4), names=[f"n{i}" for i in range(20)]).axes[1]
    crosses = [mark for mark in axis.lines if mark.get_marker() == "x"]
    assert crosses
    assert min(mark.get_zorder() for mark in crosses) > max(
        text.get_zorder() for text in axis.texts
    )


def test_answers_with_names_have_colors_and_no_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    units = ("no: 0, yes: 1", "mass")
    figure = drawn(monkeypatch, readings=np.arange(20) % 2, units=units)
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["no", "yes"]
    assert len(figure.axes) == 3  # two panels and the scale of masses
    assert len(drawn(monkeypatch, readings=np.arange(20) / 19, units=units).axes) == 4


def test_all_that_say_the_same_have_its_color(monkeypatch: pytest.MonkeyPatch) -> None:
    units = ("no: 0, yes: 1", "mass")
    no, yes = (
        drawn(monkeypatch, readings=np.full(20, value), units=units).axes[0].collections[-1]
        for value in (0, 1)
    )
    assert no.norm(0) == 0 == yes.norm(1) - 1


def test_nodes_of_one_set_are_under_one_halo() -> None:
    assert network(held=([1, 2], "both")) != network(held=([1, 3], "both"))
    with pytest.raises(InvalidParameter):
        network(held=([20], "none"))


# tracks

PATH = np.array([[0.2, 0.9], [0.3, 0.8], [0.4, 0.7]])
RADII = np.full((3, 2), 0.05)


def test_tracks_show_places_and_radii() -> None:
    given: dict[str, Any] = {"limits": (0, 1), "caption": "x"}
    plain = draw_line_track(PATH, RADII, **given)
    assert draw_line_track(PATH, RADII, **given) == plain
    assert draw_line_track(PATH, 2 * RADII, **given) != plain
    assert draw_line_track(PATH[::-1], RADII, **given) != plain
    assert draw_line_track(PATH, RADII, **given, rehearsal=True) != plain
    day = draw_line_track(
        PATH, RADII, times=["2026-01-01T09:00", "2026-01-01T09:10", "2026-01-01T09:20"], **given
    )
    assert day == draw_line_track(PATH, RADII, times=["09:00", "09:10", "09:20"], **given) != plain
    assert draw_line_track(PATH, RADII, times=["$x^", "b", "c"], **given) != plain


def test_tracks_in_a_plane_show_them_too() -> None:
    path = np.stack([PATH, PATH[:, ::-1]], axis=2)
    given: dict[str, Any] = {"sensors": SENSORS, "caption": "x"}
    plain = draw_plane_track(path, RADII, **given)
    assert draw_plane_track(path, 2 * RADII, **given) != plain
    assert draw_plane_track(path, RADII, norm="l1", **given) != plain
    assert draw_plane_track(path[::-1], RADII, **given) != plain


def test_what_is_no_track_is_refused() -> None:
    for path, radii in (
        (PATH, RADII[:2]),
        (PATH, -RADII),
        (PATH[0], RADII),
        (PATH * np.nan, RADII),
    ):
        with pytest.raises(InvalidParameter, match="nothing was drawn"):
            draw_line_track(path, radii, limits=(0, 1), caption="x")
    with pytest.raises(InvalidParameter, match="nothing was drawn"):
        draw_plane_track(PATH[:, :, np.newaxis], RADII, sensors=SENSORS, caption="x")

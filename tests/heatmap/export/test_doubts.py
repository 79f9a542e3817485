"""What a map does not know is in its files: hatch, rings, bands, and a page that reads them out."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import math
import re
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from PIL import Image
from tests.heatmap.export.maps import CITY, SCENE, heatmap, tile_at, town
from tests.heatmap.export.test_page import browse, embedded, read
from tests.heatmap.posteriors import Broken, Given, around

from sfumato.errors import InvalidInput
from sfumato.heatmap import HeatmapRelease, read_heatmap
from sfumato.heatmap.accuracy.uncertainty import DRAWS
from sfumato.heatmap.export import geotiff, write
from sfumato.heatmap.export.page import html
from sfumato.heatmap.export.picture import drawn, hatch_text, png
from sfumato.spaces import Area
from sfumato.spaces.area import area_in_degrees, area_of_image

pytestmark = pytest.mark.unit

NARROW = area_in_degrees(CITY.bounds, 6)
SURE, UNSURE = (-73.98, 40.75), (-73.82, 40.65)


def doubting(
    area: Area = NARROW, *, sure: tuple[float, float] = SURE, unsure: Any = UNSURE
) -> HeatmapRelease:
    """A map of one place that is sure, and one that is there in every other draw."""
    release = heatmap(area, [tile_at(area, *sure, users=900), tile_at(area, *unsure, users=100)])
    images = np.repeat(release.tiles.image()[None], DRAWS, axis=0)
    rows, columns = np.nonzero(images[0] == 100)
    images[::2, rows, columns] = 0
    return replace(release, posterior=Given(images))


def pixels(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)


# pictures


@pytest.mark.parametrize(
    ("area", "sure", "unsure"),
    [(NARROW, SURE, UNSURE), (area_of_image(80, 60, 6), (20.0, 15.0), (60.0, 45.0))],
    ids=["degrees", "pixels"],
)
def test_a_ring_is_where_the_map_is_sure_and_a_hatch_where_it_is_not(
    area: Area, sure: tuple[float, float], unsure: tuple[float, float]
) -> None:
    release = doubting(area, sure=sure, unsure=unsure)
    found = release.uncertainty()
    (mark,) = found.marks
    assert (mark.x, mark.y) == pytest.approx(sure, abs=area.grid.cell_width)
    row, column = (
        int((place - low) / size)
        for place, low, size in zip(
            unsure[::-1], area.grid.bounds[1::-1], cell(area)[::-1], strict=True
        )
    )
    assert found.silent[row, column]
    with_doubts, without = pixels(png(release)), pixels(png(replace(release, posterior=None)))
    assert with_doubts.shape[0] > without.shape[0], (
        "the words of hatch and rings are under the legend"
    )
    assert with_doubts.shape[1] == without.shape[1]
    # Above the legend all that differs is shades, hatch and ring; dark and colorless is the ring
    # alone.
    high = round(without.shape[0] * 0.75)
    dark = (with_doubts[:high].max(axis=2) < 70) & (without[:high].min(axis=2) > 120)
    rows, columns = np.nonzero(dark)
    assert rows.size > 100
    across, up = area.cell_size
    assert np.ptp(rows) * across == pytest.approx(np.ptp(columns) * up, rel=0.1), "as cells are"


def cell(area: Area) -> tuple[float, float]:
    return area.grid.cell_width, area.grid.cell_height


def test_hatch_and_rings_lie_over_an_image_too(tmp_path: Path) -> None:
    area = area_of_image(800, 600, 6)
    Image.new("RGB", (800, 600), (120, 120, 120)).save(tmp_path / "s.png")
    release = doubting(area, sure=(200.0, 150.0), unsure=(600.0, 450.0))
    write(release, tmp_path / "a.png", over=tmp_path / "s.png")
    image = pixels((tmp_path / "a.png").read_bytes())
    grey = np.abs(image - 120).max(axis=2) == 0
    rows, columns = np.nonzero(grey)
    inside = image[rows.min() : rows.max(), columns.min() : columns.max()]
    light = inside.min(axis=2) > 150
    lit_rows, lit_columns = np.nonzero(light)
    assert lit_rows.size > 100
    assert lit_columns.min() < 260, "around the sure place"
    assert lit_columns.max() > 540, "on the doubtful one"


def test_what_may_be_noise_is_said_by_the_map_itself() -> None:
    """The doubtful place is below the floor, the sure one far above; without doubts the noise's width is."""
    release = doubting()
    found = drawn(release)
    grid = NARROW.grid
    first_column, first_row, _, _ = NARROW.window(found.level)
    values = {}
    for name, (x, y) in (("sure", SURE), ("unsure", UNSURE)):
        column = int((x - grid.bounds[0]) / grid.cell_width) - first_column
        row = int((y - grid.bounds[1]) / grid.cell_height) - first_row
        values[name] = found.shares[row, column]
    assert values["unsure"] < 2 * found.floor
    assert values["sure"] > 5 * found.floor
    assert found.floor != drawn(replace(release, posterior=None)).floor


def test_pictures_say_what_they_mean(rng: np.random.Generator) -> None:
    data = embedded(html(doubting()))["uncertainty"]
    assert data["hatched"].lower() == f"{hatch_text()}."
    ring, label = data["ringed"].split(". ", 1)
    assert ring == "Ring: over twice the average inside it, with a chance of about 95%"
    assert label.startswith("The number at a ring is the share of all mass inside it, with its 90%")
    empty = replace(town(NARROW), posterior=Given(np.zeros((DRAWS, 64, 64))))
    data = embedded(html(empty))["uncertainty"]
    assert data["ringed"] == "", "what is not there is not explained"
    assert data["marks"] == []


# files


@pytest.mark.parametrize("area", [NARROW, area_of_image(80, 60, 6)], ids=["degrees", "pixels"])
@pytest.mark.parametrize("level", [None, 4])
def test_a_geotiff_has_the_band_beside_the_share(
    area: Area, level: int | None, rng: np.random.Generator, tmp_path: Path
) -> None:
    release = town(area)
    release = replace(release, posterior=around(release.tiles.image(), rng))
    write(release, tmp_path / "a.tif", level=level)
    chosen = 6 if level is None else level
    first_column, first_row, last_column, last_row = area.window(chosen)
    band = release.band(chosen)
    with rasterio.open(tmp_path / "a.tif") as file:
        assert file.count == 4
        assert file.descriptions[0] == "share"
        assert [text.split(" ")[0] for text in file.descriptions[1:]] == ["width", "low", "high"]
        share, width, low, high = file.read()
        assert file.tags()["band_sigma"] == "0.02 of the grid's side"
        assert file.tags()["band_coverage"].startswith("0.9,")
    cut = np.s_[first_row:last_row, first_column:last_column]
    for found, wanted in ((share, release.image(chosen)), (low, band.low), (high, band.high)):
        shown = wanted[cut] if area.kind == "pixels" else wanted[cut][::-1]
        np.testing.assert_allclose(found, shown, rtol=1e-6)
    np.testing.assert_allclose(width, high - low, rtol=1e-5, atol=1e-9)
    write(replace(release, posterior=None), tmp_path / "b.tif", level=level)
    with rasterio.open(tmp_path / "b.tif") as file:
        assert file.count == 1
        assert "band_sigma" not in file.tags()


def test_a_geotiff_finer_than_the_band_has_parts_of_it(
    rng: np.random.Generator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(geotiff, "FINEST_DRAWS", 5)
    area = area_of_image(64, 64, 6)
    release = town(area)
    release = replace(release, posterior=around(release.tiles.image(), rng))
    write(release, tmp_path / "a.tif")
    with rasterio.open(tmp_path / "a.tif") as file:
        low = file.read(3)
    assert low.shape == (64, 64)
    parts = low.reshape(32, 2, 32, 2)
    assert (parts == parts[:, :1, :, :1]).all()
    np.testing.assert_allclose(parts.sum(axis=(1, 3)), release.band(5).low, rtol=1e-5)


def test_arrays_hold_the_band_and_the_marks(tmp_path: Path) -> None:
    release = doubting()
    write(release, tmp_path / "a.npz")
    found = release.uncertainty()
    with np.load(tmp_path / "a.npz") as data:
        for name in ("low", "middle", "high"):
            np.testing.assert_array_equal(data[f"band_{name}"], getattr(found.band, name))
        np.testing.assert_array_equal(data["silent"], found.silent)
        assert data["marks"].tolist() == [list(astuple(mark)) for mark in found.marks]
        assert (data["band_level"], data["band_sigma"], data["band_coverage"]) == (6, 0.02, 0.9)
    write(town(NARROW), tmp_path / "b.npz")
    with np.load(tmp_path / "b.npz") as data:
        assert not [name for name in data if name.startswith(("band", "marks", "silent"))]


def test_a_report_keeps_the_marks_and_no_arrays(tmp_path: Path) -> None:
    release = doubting()
    write(release, tmp_path / "a.json")
    said = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["uncertainty"]
    assert said["marks"][0].keys() == {"x", "y", "share", "low", "high"}
    assert said["width"] == release.band().width
    assert said["silent_share"] == release.uncertainty().silent_share
    assert len(json.dumps(said)) < 1000
    saved = read_heatmap(tmp_path / "a.json")
    assert saved.posterior is None
    assert saved.marks() == release.marks()
    write(saved, tmp_path / "b.json")
    assert read_heatmap(tmp_path / "b.json").marks() == release.marks()
    write(town(), tmp_path / "c.json")
    assert read_heatmap(tmp_path / "c.json").known_marks is None


def test_a_map_is_kept_even_when_its_uncertainty_fails(tmp_path: Path) -> None:
    release = replace(town(NARROW), posterior=Broken())
    with pytest.raises(MemoryError):
        write(release, tmp_path / "a.png")
    write(release, tmp_path / "a.json")
    saved = read_heatmap(tmp_path / "a.json")
    assert np.array_equal(saved.tiles.masses, release.tiles.masses)
    assert saved.known_marks is None


@pytest.mark.parametrize(
    "marks", ["none", [{"x": 1}], [{"x": 1, "y": 1, "share": "much", "low": 0, "high": 1}]]
)
def test_damaged_marks_are_refused(marks: Any, tmp_path: Path) -> None:
    write(doubting(), tmp_path / "a.json")
    data = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    data["uncertainty"]["marks"] = marks
    (tmp_path / "a.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"is not a whole map: .*; nothing was drawn"):
        read_heatmap(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("field", "damaged"),
    [
        ("silent", {"level": 99, "cells": ""}),
        ("silent", {"level": 3, "cells": "AA=="}),
        ("silent", "all"),
        ("total", {"low": 3.0, "high": 2.0, "coverage": 0.9}),
        ("total", {"low": -1.0, "high": 2.0, "coverage": 0.9}),
        ("total", {"low": 0.0, "high": math.inf, "coverage": 0.9}),
        ("total", {"low": "x", "high": 2.0, "coverage": 0.9}),
        ("total", [1.0, 2.0]),
    ],
)
def test_damaged_silent_cells_and_totals_are_refused(
    field: str, damaged: Any, tmp_path: Path
) -> None:
    write(doubting(), tmp_path / "a.json")
    data = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    data[field] = damaged
    (tmp_path / "a.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"is not a whole map: .*; nothing was drawn"):
        read_heatmap(tmp_path / "a.json")


def test_a_saved_map_says_its_total_without_its_posterior(tmp_path: Path) -> None:
    release = doubting()
    write(release, tmp_path / "a.json")
    again = read_heatmap(tmp_path / "a.json")
    assert release.posterior is not None
    assert again.total() == release.total()
    assert replace(again, posterior=Broken()).total() == release.total()


def test_marks_beyond_all_numbers_are_refused(tmp_path: Path) -> None:
    write(doubting(), tmp_path / "a.json")
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    (tmp_path / "a.json").write_text(
        re.sub(r'"share": [\d.e-]+', '"share": Infinity', text), encoding="utf-8"
    )
    with pytest.raises(InvalidInput, match="marks are not all finite"):
        read_heatmap(tmp_path / "a.json")


def test_the_same_release_gives_the_same_bytes_with_doubts(tmp_path: Path) -> None:
    release = doubting()
    again = replace(release, posterior=Given(release.posterior.drawn))  # type: ignore[union-attr]
    for name in ("png", "tif", "npz", "html", "json"):
        write(release, tmp_path / f"a.{name}")
        write(again, tmp_path / f"b.{name}")
        assert (tmp_path / f"a.{name}").read_bytes() == (tmp_path / f"b.{name}").read_bytes(), name


# the page


def test_a_page_holds_the_band_the_silence_and_the_marks() -> None:
    release = doubting(area := area_in_degrees(CITY.bounds, 7))
    data = embedded(html(release))["uncertainty"]
    band, found = release.band(6), release.uncertainty()
    first_column, first_row, last_column, last_row = window = area.window(6)
    assert (data["bandLevel"], data["bandWindow"]) == (6, list(window))
    for name in ("low", "middle", "high"):
        held = np.frombuffer(base64.b64decode(data[name]), "<f4").reshape(last_row - first_row, -1)
        wanted = getattr(band, name)[first_row:last_row, first_column:last_column]
        np.testing.assert_allclose(held, wanted, rtol=1e-6)
    first_column, first_row, last_column, last_row = area.window(7)
    bits = np.unpackbits(np.frombuffer(base64.b64decode(data["silent"]), np.uint8))
    cut = found.silent[first_row:last_row, first_column:last_column]
    assert bits[: cut.size].tolist() == cut.ravel().astype(int).tolist()
    assert data["marks"] == found.to_json()["marks"]
    words = "".join(read(html(release)).inside[""])
    assert f"{found.band.width:.2f} times as wide" in words
    assert f"on {100 * found.silent_share:.0f}% of the area" in words
    assert embedded(html(town(SCENE)))["uncertainty"] is None
    assert "times as wide" not in html(town(SCENE)).decode()


@pytest.mark.browser
def test_a_browser_says_how_sure_the_map_is(tmp_path: Path) -> None:
    """At a ring, on a hatch, and with the doubts put away; a script of the test plays the user."""
    release = doubting()
    play = """
      const waiting = setInterval(() => {
        if (!document.querySelector("#marks li")) return;
        clearInterval(waiting);
        const view = document.getElementById("view"), said = [], box = view.getBoundingClientRect();
        const data = JSON.parse(document.getElementById("data").textContent);
        const [lowX, lowY, highX, highY] = data.bounds;
        const tall = (highY - lowY) * data.stretch;
        const zoom = 0.94 * Math.min(box.width / (highX - lowX), box.height / tall);
        const read = (x, y) => {
          view.dispatchEvent(new PointerEvent("pointermove", {pointerId: 1,
            clientX: box.left + box.width / 2 + (x - (lowX + highX) / 2) * zoom,
            clientY: box.top + box.height / 2 - (y - (lowY + highY) / 2) * zoom * data.stretch}));
          said.push(document.getElementById("readout").textContent);
        };
        const button = document.getElementById("doubt");
        read(SURE); read(UNSURE);
        said.push(document.getElementById("hatched").textContent, String(button.hidden));
        button.click(); read(SURE);
        document.body.dataset.said = JSON.stringify(said);
      }, 50);
    """
    play = play.replace("UNSURE", f"{UNSURE[0]}, {UNSURE[1]}").replace(
        "SURE", f"{SURE[0]}, {SURE[1]}"
    )
    digest = base64.b64encode(hashlib.sha256(play.encode()).digest()).decode()
    text = html(release).decode().replace("script-src '", f"script-src 'sha256-{digest}' '", 1)
    dom = browse(
        tmp_path, text.replace("</body>", f"<script>{play}</script></body>").encode(), "--dump-dom"
    )
    found = re.search(r'data-said="([^"]*)"', dom)
    assert found is not None
    sure, unsure, hatched, hidden, quiet = json.loads(found[1].replace("&quot;", '"'))
    (mark,) = release.marks()
    assert re.search(r"Smoothed share of a cell of .*: [\d.]+% \(90%: [\d.]+ – [\d.]+%\)\.", sure)
    assert (
        f"In this ring: {100 * mark.share:.3g}% (90%: {100 * mark.low:.3g} – {100 * mark.high:.3g}%)."
        in sure
    )
    assert "says nothing" not in sure
    assert unsure.endswith("The map says nothing here.")
    assert hatched.startswith("Hatched: the map says nothing here")
    assert hidden == "false"
    assert "Smoothed share" not in quiet

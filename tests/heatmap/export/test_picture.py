"""Pictures show mass where it is, leave an image as it is elsewhere, and print what was promised."""

from __future__ import annotations

import base64
import io
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from tests.heatmap.export.maps import CITY, HOSTILE, PACIFIC, SCENE, heatmap, tile_at, town

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.figures.style import shades
from sfumato.heatmap import release_heatmap
from sfumato.heatmap.accuracy import noise_share
from sfumato.heatmap.accuracy.noise_floor import quick_density
from sfumato.heatmap.export import html_repr, write
from sfumato.heatmap.export.picture import drawn, png
from sfumato.heatmap.inference.counts import NoisyCounts
from sfumato.heatmap.inference.posterior import CountsPosterior
from sfumato.privacy import UNITS, Ledger, PureDP
from sfumato.spaces.area import Area, area_of_image, area_of_plane

pytestmark = pytest.mark.unit


def pixels(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)


def frame(image: np.ndarray) -> tuple[int, int, int, int]:
    """Left, top, right, bottom of the map: its thin frame is the first long line of one grey."""
    grey = np.abs(image - np.array([0x9A, 0xA0, 0xA6])).max(axis=2) < 40
    columns, rows = np.flatnonzero(grey.mean(axis=0) > 0.3), np.flatnonzero(grey.mean(axis=1) > 0.5)
    return columns[0], rows[0], columns[-1], rows[-1]


@pytest.mark.parametrize(
    ("area", "place"),
    [
        (CITY, (-73.98, 40.75)),
        (PACIFIC, (188.0, -3.0)),
        (area_of_plane((0, 0, 10, 5), 8), (2, 4)),
        (area_of_image(800, 600, 8), (100, 100)),
    ],
    ids=["city", "antimeridian", "plane", "pixels"],
)
def test_a_tile_is_drawn_at_its_place(area: Area, place: tuple[float, float]) -> None:
    image = pixels(png(heatmap(area, [tile_at(area, *place, users=1e6)])))
    left, top, right, bottom = frame(image)
    inside = image[top + 3 : bottom - 2, left + 3 : right - 2]
    colored = np.argwhere(inside.max(axis=2) - inside.min(axis=2) > 60)
    row, column = colored.mean(axis=0) / inside.shape[:2]
    low_x, low_y, high_x, high_y = area.bounds
    assert column == pytest.approx((place[0] - low_x) / (high_x - low_x), abs=0.02)
    down = (place[1] - low_y) / (high_y - low_y)
    assert row == pytest.approx(down if area.kind == "pixels" else 1 - down, abs=0.02)


def test_the_map_has_the_proportions_of_the_ground() -> None:
    left, top, right, bottom = frame(pixels(png(town())))
    low_x, low_y, high_x, high_y = CITY.bounds
    ratio = (high_y - low_y) / ((high_x - low_x) * np.cos(np.radians((low_y + high_y) / 2)))
    assert (bottom - top) / (right - left) == pytest.approx(ratio, rel=0.01)


def test_a_rehearsal_is_stamped() -> None:
    real, stamped = town(), town(rehearsal=True)
    one, other = pixels(png(real)), pixels(png(stamped))

    def red(image: np.ndarray) -> int:
        return int(((image[..., 0] > image[..., 1] + 20) & (image[..., 1] > 190)).sum())

    assert red(other) > 2 * red(one) + 10_000
    assert "REHEARSAL" in html_repr(stamped)
    assert "REHEARSAL" not in html_repr(real)


def test_what_may_be_noise_is_pale() -> None:
    """Beside a city, a place of one user, as wide as the noise, is faded; one of a hundred is not."""
    shown = {}
    for users in (1.0, 100.0):
        release = heatmap(
            CITY, [tile_at(CITY, -73.98, 40.75, users=users), tile_at(CITY, -73.8, 40.62)]
        )
        assert noise_share(release) == pytest.approx(2 / (1000 + users))
        found = drawn(release)
        row, column = np.argwhere(CITY.grid.codes_of_image() == release.tiles.codes[0])[0]
        first_column, first_row, _, _ = CITY.window(8)
        value = found.shares[[row - first_row], [column - first_column]]
        faded, full = (shades(value, top=found.top, floor=floor)[0] for floor in (found.floor, 0))
        shown[users] = faded / full
    assert shown[1.0] == pytest.approx(0.5, abs=0.02)
    assert shown[100.0] == 1
    assert drawn(heatmap(CITY, [])).floor == np.inf


def test_the_noise_of_zoom_is_that_of_its_last_counts() -> None:
    """Sixteen counts for a quarter of epsilon, one of them split for the rest: scales of 4 and of 4 / 3.

    Of 19 last counts 15 have the scale 4, which is the median; the largest scale of all is that of
    one part, 64 users, and would call everything noise.
    """
    levels = np.array([2] * 16 + [3] * 4)
    codes, scales = np.array([*range(16), 0, 1, 2, 3]), np.array([4.0] * 16 + [4 / 3] * 4)
    counts = NoisyCounts(levels, codes, np.full(20, 50.0), scales, np.zeros(20, dtype=bool))
    plain = heatmap(CITY, [tile_at(CITY, -73.98, 40.75, users=1000)])
    entry = replace(plain.receipt.entry, parameters={"part_scale": str(64 * UNITS)})
    release = replace(
        plain,
        receipt=replace(plain.receipt, entry=entry),
        posterior=CountsPosterior(counts, mean_is_map=True),
        method="zoom",
    )
    assert noise_share(release) == pytest.approx(2 * 4 / 1000)
    # On a grid of 8 levels each of the 19 is far larger than the blur: as one place noise stands
    # higher.
    blob = 2 * np.pi * (0.01 * 256) ** 2
    assert quick_density(release) / 4**8 / 1000 == pytest.approx(2 * 4 / 1000 / blob)


# gaze


def stimulus(folder: Path, size: tuple[int, int] = (800, 600)) -> Path:
    across, down = np.meshgrid(np.arange(size[0]) % 256, np.arange(size[1]) % 256)
    Image.fromarray(np.stack([across, down, (across + down) % 256], axis=-1).astype(np.uint8)).save(
        folder / "s.png"
    )
    return folder / "s.png"


def test_heat_lies_on_the_image_pixel_for_pixel(tmp_path: Path) -> None:
    area = area_of_image(800, 600, 8)
    path = stimulus(tmp_path)
    release = heatmap(area, [tile_at(area, 200, 450, users=1e6)])
    write(release, tmp_path / "a.png", over=path)
    picture, image = pixels((tmp_path / "a.png").read_bytes()), pixels(path.read_bytes())
    # The corner of the image, found by its first row: from there on they agree but for the heat.
    strip = np.lib.stride_tricks.sliding_window_view(picture[:200], (1, 100, 3))[:, :, 0, 0]
    top, left = np.argwhere((strip == image[0, :100]).all(axis=(2, 3)))[0]
    shown = picture[top : top + 600, left : left + 800]
    changed = np.argwhere(np.abs(shown - image).max(axis=2) > 0)
    row, column = changed.mean(axis=0)
    assert (row, column) == (pytest.approx(450, abs=6), pytest.approx(200, abs=6))
    assert len(changed) < 0.05 * 800 * 600


def test_tiny_and_huge_images_keep_their_shape(tmp_path: Path) -> None:
    path = stimulus(tmp_path, (80, 60))
    write(town(SCENE), tmp_path / "a.png", over=path)
    assert pixels((tmp_path / "a.png").read_bytes()).shape[1] > 640


def test_images_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = stimulus(tmp_path, (81, 60))
    with pytest.raises(
        InvalidParameter, match=r"its size, 80 x 60, .* has 81 x 60; nothing was written"
    ):
        write(town(SCENE), tmp_path / "a.png", over=path)
    with pytest.raises(InvalidParameter, match="in degrees says where it lies"):
        write(town(), tmp_path / "a.png", over=path)
    (tmp_path / "half.png").write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(InvalidInput, match="as an image; nothing was written"):
        write(town(area_of_image(81, 60, 4)), tmp_path / "a.png", over=tmp_path / "half.png")
    assert not (tmp_path / "a.png").exists()


# words


def test_hostile_words_are_words() -> None:
    release = town(group=HOSTILE, unit="$\\bad$ <b>", method="$x^$")
    assert png(release)
    figure = html_repr(release)
    assert "<script" not in figure
    assert "<b>" not in figure
    assert "&lt;script&gt;" in figure


def test_a_notebook_shows_the_map_and_its_promise() -> None:
    release = town()
    figure = release._repr_html_()
    assert figure.startswith("<figure")
    assert release.statement in figure
    found = re.search(r"data:image/png;base64,([^\"]+)", figure)
    assert found is not None
    image = pixels(base64.b64decode(found[1]))
    assert max(image.shape[:2]) <= 1200
    assert image.min() < 100
    assert len(figure) < 300_000


def test_a_notebook_shows_the_stimulus_that_was_asked_for(tmp_path: Path) -> None:
    Image.new("RGB", (80, 60), (0, 200, 0)).save(tmp_path / "stim.png")
    ledger = Ledger.create(tmp_path / "g.ledger", PureDP(1), unit="observer", source="gaze")
    made = release_heatmap(
        pa.table({"user": [1, 2], "x": [40.0, 41.0], "y": [30.0, 30.0]}),
        user="user", x="x", y="y", image=tmp_path / "stim.png", levels=4, over=tmp_path / "stim.png",
        ledger=ledger, epsilon=1,
    )  # fmt: skip

    def green() -> int:
        (found,) = re.findall(r"data:image/png;base64,([^\"]+)", made._repr_html_())
        image = pixels(base64.b64decode(found))
        return int((image[..., 1] - image[..., 0] > 150).sum())

    assert green() > 1000
    (tmp_path / "stim.png").unlink()
    assert green() == 0, "a file that is gone is left out"

"""Two maps compared: nothing between a map and itself, refusals, and metres beside what noise gives."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.heatmap.export.maps import heatmap, tile_at
from typer.testing import CliRunner

from sfumato.cli.main import app
from sfumato.errors import ExistsAlready, InvalidInput, InvalidParameter
from sfumato.figures import flow_field
from sfumato.heatmap import (
    HeatmapRelease,
    Tiles,
    as_text,
    check_ins,
    compare_maps,
    map_distance,
    map_frame,
    rehearse,
)
from sfumato.heatmap.analysis.zone_shapes import read_zones
from sfumato.heatmap.analysis.zones import zone_totals
from sfumato.heatmap.comparison.differences import Change
from sfumato.heatmap.comparison.results import CompareResult, Differences, ZoneChange
from sfumato.heatmap.comparison.shift import PAIRS, Shift, shift_between, simulated_shifts
from sfumato.heatmap.export.difference import _caption, _layers, density, page
from sfumato.heatmap.export.difference import png as picture_of
from sfumato.heatmap.inference import Declared
from sfumato.heatmap.pipeline.compare import _zone_change
from sfumato.heatmap.render.compare import comparison_text, shift_text
from sfumato.records import Columns
from sfumato.spaces import area_in_degrees, area_of_image, area_of_plane

BOX = (11.20, 43.74, 11.32, 43.81)
AREA = area_in_degrees(BOX, 5)
COLUMNS = Columns(user="user", x="lon", y="lat")
WEST = [[11.2, 43.74], [11.26, 43.74], [11.26, 43.81], [11.2, 43.81]]
PLACE = (11.22, 43.79)


def made(table: Any, *, method: str = "zoom", epsilon: Any = 2, **changed: Any) -> HeatmapRelease:
    found = rehearse(table, COLUMNS, AREA, public=True, epsilon=epsilon, method=method)
    return replace(found, **changed)


def people(rng: np.random.Generator, users: int = 200) -> Any:
    return check_ins(users, bounds=BOX, rng=rng).to_pandas()


def moved(table: Any, part: float = 0.3) -> Any:
    users = table["user"].max() + 1
    return table.assign(
        lon=table["lon"].where(table["user"] >= part * users, PLACE[0]),
        lat=table["lat"].where(table["user"] >= part * users, PLACE[1]),
    )


@pytest.mark.property
def test_a_map_and_itself(rng: np.random.Generator) -> None:
    one = made(people(rng))
    found = compare_maps(one, one)
    assert found.shift.value == 0
    assert found.shift.exceeds is False
    assert found.shift.noise is not None
    assert found.shift.noise > 0
    assert found.total.change == 0
    assert found.users is not None
    assert found.users.changes == ()
    assert found.shares is not None
    assert found.shares.changes == ()
    assert found.remarks[0] == "both are one and the same map: there is nothing to compare"
    assert map_distance(one, one).value == 0


@pytest.mark.property
def test_the_other_way_round(rng: np.random.Generator) -> None:
    table = people(rng)
    a, b = made(table), made(moved(table), epsilon=1)
    there, back = (compare_maps(*pair, zones={"west": WEST}) for pair in ((a, b), (b, a)))
    assert there.shift.value == pytest.approx(back.shift.value)
    assert there.shift.noise == pytest.approx(back.shift.noise)
    assert there.total.change == -back.total.change
    for one, other in ((there.total, back.total), (there.zones[0], back.zones[0])):
        assert one.low is not None
        assert other.high is not None
        assert one.low == pytest.approx(-other.high)
        assert one.before == other.after
    assert there.users is not None
    assert back.users is not None
    assert there.users.changes
    assert [one.change for one in there.users.changes] == [
        -one.change for one in back.users.changes
    ]
    assert there.pictured is not None
    assert back.pictured is not None
    assert np.allclose(there.pictured.users.change, -back.pictured.users.change)
    low, high = there.pictured.users.low, back.pictured.users.high
    assert low is not None
    assert high is not None
    assert np.allclose(low, -high, atol=1e-5)


@pytest.mark.unit
def test_what_cannot_be_compared_is_refused(rng: np.random.Generator, tmp_path: Path) -> None:
    table = people(rng, 40)
    one = made(table)
    other = rehearse(
        table, COLUMNS, area_in_degrees(BOX, 4), public=True, epsilon=1, method="laplace"
    )
    with pytest.raises(InvalidParameter, match=r"one area and grid .* 32 x 32 .* 16 x 16"):
        compare_maps(one, other)
    real = replace(one, receipt=replace(one.receipt, rehearsal=False))
    with pytest.raises(InvalidParameter, match="say `mixed`"):
        compare_maps(one, real)
    with pytest.raises(InvalidParameter, match="say `mixed`"):
        map_distance(one, real)
    assert map_distance(one, real, mixed=True).value == 0
    rows = replace(one, counted={**one.counted, "rows_per_user": 5})
    with pytest.raises(InvalidParameter, match="got users and rows, at most 5 of each user"):
        compare_maps(one, rows)
    followed = replace(one, prior=Declared("roads.geojson", "0" * 64, 3))
    with pytest.raises(InvalidParameter, match="follow one prior"):
        compare_maps(one, followed)
    days = replace(
        one,
        receipt=replace(one.receipt, guarantee=replace(one.receipt.guarantee, unit="user-day")),
    )
    with pytest.raises(InvalidParameter, match="got users and user-days"):
        compare_maps(one, days)
    with pytest.raises(InvalidParameter, match=r"end in one of .png"):
        compare_maps(one, one, outputs=tmp_path / "a.tif")
    (tmp_path / "a.png").touch()
    with pytest.raises(ExistsAlready):
        compare_maps(one, one, outputs=tmp_path / "a.png")


@pytest.mark.statistical
@pytest.mark.parametrize(("method", "users"), [("zoom", 120), ("pyramid", 300)])
def test_noise_alone_is_what_two_releases_of_one_table_differ_by(
    rng: np.random.Generator, method: str, users: int
) -> None:
    """Of 12 pairs of one table at most 3 are beyond noise; of 12 pairs of a changed one at least 9.

    At 1 in 20, more than 3 have p < 0.003. Nor is noise overstated: at most 6 are below all of it.
    """
    beyond = found = below = 0
    for _ in range(12):
        table = people(rng, users)
        a, b, c = (made(rows, method=method) for rows in (table, table, moved(table)))
        same = shift_between(a, b)
        assert same.low is not None
        assert same.noise is not None
        assert same.high is not None
        assert same.low <= same.noise <= same.high
        beyond += bool(same.exceeds)
        below += same.value < same.low
        found += bool(shift_between(a, c).exceeds)
    assert beyond <= 3, beyond
    assert below <= 6, below
    assert found >= 9, found


@pytest.mark.unit
def test_a_map_that_is_not_sure_has_no_noise_to_compare_with(rng: np.random.Generator) -> None:
    known = made(people(rng, 40))
    assert simulated_shifts(known, replace(known, method="somebodys")) is None
    one = made(people(rng, 40), method="laplace")
    foreign = replace(one, method="somebodys")
    assert simulated_shifts(foreign, one) is None
    said = shift_between(foreign, one)
    assert (said.value, said.noise, said.exceeds) == (0.0, None, None)
    assert "a map does not say how sure it is" in shift_text(said)
    found = compare_maps(foreign, one)
    assert found.users is None
    assert found.total.low is None
    assert "where users differ is not known: a map does not say how sure it is" in as_text(found)


@pytest.mark.unit
def test_distances_are_on_the_ground() -> None:
    """A mass two cells east: two cell widths in metres, and as many on an image, in pixels."""
    rng = np.random.default_rng(0)
    one = made(people(rng, 5), posterior=None)
    for area in (AREA, area_of_image(320, 320, 5), area_of_plane((0, 0, 8, 8), 5)):
        grid = area.grid
        tiles = [
            Tiles(grid, np.array([5]), grid.encode([column], [3]), np.array([10.0]))
            for column in (4, 6)
        ]
        a, b = (replace(one, area=area, tiles=tile) for tile in tiles)
        found = map_distance(a, b)
        assert found.value == pytest.approx(2 * area.cell_size[0])
        assert found.unit == area.unit
        assert found.lower <= found.value <= found.upper
    assert [density(one)[1] for one in (AREA, area_of_image(8, 8, 3), area_of_plane((0, 0, 8, 8), 5))] == [
        "km²", "megapixel", "square unit",
    ]  # fmt: skip


@pytest.mark.unit
def test_public_ground_lies_under_a_difference_and_is_named(
    rng: np.random.Generator, tmp_path: Path
) -> None:
    """An image shows where nothing changed, the strongest color where most did; lines lie over both."""
    area = area_of_image(640, 320, 5)
    cells, scene, lines = [(4, 3), (6, 3)], tmp_path / "scene.png", tmp_path / "a.geojson"
    Image.new("RGB", (640, 320), (10, 200, 10)).save(scene)
    line = {"type": "LineString", "coordinates": [[0, 300], [640, 300]]}
    feature = {"type": "Feature", "properties": {}, "geometry": line}
    lines.write_text(json.dumps(feature))
    grid = area.grid
    a, b = (
        replace(
            made(people(rng, users=20)), area=area, posterior=None,
            tiles=Tiles(grid, np.array([5]), grid.encode([column], [row]), np.array([90.0])),
        )
        for column, row in cells
    )  # fmt: skip
    out = tmp_path / "d.png"
    found = compare_maps(a, b, over=scene, outline=lines, outputs=[out, tmp_path / "d.html"])
    assert found.pictured is not None
    assert found.pictured.ground is not None
    said = _caption(found)
    assert re.search(
        r"Outline a\.geojson \(sha256 \w{12}\), public\. Over scene\.png \(sha256", said
    )
    with Image.open(out) as picture:
        pixels = np.asarray(picture.convert("RGB")).reshape(-1, 3).astype(int)
    ground = (np.abs(pixels - (10, 200, 10)).max(axis=1) <= 2).mean()
    purple = ((pixels[:, 2] > pixels[:, 1] + 40) & (pixels[:, 2] > pixels[:, 0])).sum()
    assert ground > 0.1, "the image is seen"
    assert purple > 100, "more is purple"
    plain = compare_maps(a, b, outputs=tmp_path / "p.png")
    assert "public" not in _caption(plain).split("REHEARSAL")[0]
    with Image.open(tmp_path / "p.png") as picture:
        pixels = np.asarray(picture.convert("RGB")).reshape(-1, 3).astype(int)
    assert not (np.abs(pixels - (10, 200, 10)).max(axis=1) <= 2).any()
    small = tmp_path / "small.png"
    Image.new("RGB", (32, 32)).save(small)
    with pytest.raises(InvalidParameter, match="must have its size, 640 x 320"):
        compare_maps(a, b, over=small, outputs=tmp_path / "never.png")
    with pytest.raises(InvalidInput, match="there is no file at"):
        compare_maps(a, b, outline=tmp_path / "none.geojson", outputs=tmp_path / "never.png")
    with pytest.raises(InvalidParameter, match=r"is read|replace"):
        compare_maps(a, b, over=scene, outputs=scene, overwrite=True)
    assert not (tmp_path / "never.png").exists()


@pytest.mark.unit
def test_files(rng: np.random.Generator, tmp_path: Path) -> None:
    table = people(rng)
    a, b = made(table, title="January <1>"), made(moved(table), title="February")
    files = [tmp_path / f"d{suffix}" for suffix in (".png", ".html", ".json", ".csv")]
    found = compare_maps(a, b, outputs=files)
    assert found.written == tuple(map(str, files))
    with Image.open(files[0]) as picture:
        assert picture.format == "PNG"
        assert picture.width == 1600
    html = files[1].read_text()
    assert "From January &lt;1&gt; to February" in html
    assert "<script" not in html
    assert "REHEARSAL" in html
    assert "data:image/png;base64," in html
    assert json.loads(files[2].read_text()) == found.to_json()
    assert CompareResult.from_json(found.to_json()) == found
    rows = list(csv.DictReader(io.StringIO(files[3].read_text())))
    first_column, first_row, end_column, end_row = AREA.window(5)
    assert len(rows) == (end_column - first_column) * (end_row - first_row)
    for row in rows:
        change = float(row["change"])
        assert float(row["low"]) <= change + 1e-6
        assert change - 1e-6 <= float(row["high"])
    total = sum(float(row["after"]) for row in rows)
    assert total == pytest.approx(found.total.after, rel=0.01)
    assert any(row["sure"] == "1" for row in rows)
    zoned = compare_maps(a, b, zones={"west": WEST}, outputs=tmp_path / "z.csv")
    (row,) = csv.DictReader(io.StringIO((tmp_path / "z.csv").read_text()))
    assert row["name"] == "west"
    assert float(row["change"]) == zoned.zones[0].change
    # The picture has the borders of the zones, and says so.
    assert zoned.pictured is not None
    (border,) = zoned.pictured.lines
    assert border.min(axis=0).tolist() == np.min(WEST, axis=0).tolist()
    plain, outlined = (picture_of(one) for one in (found, zoned))
    assert plain != outlined
    assert "Outlined: the zone compared." in _caption(zoned)
    by_share = compare_maps(a, b, outputs=tmp_path / "s.csv", as_shares=True)
    first = next(csv.DictReader(io.StringIO((tmp_path / "s.csv").read_text())))
    assert float(first["before"]) < 1
    assert by_share.users == found.users
    assert "<img" in found._repr_html_()
    again = CompareResult.from_json(found.to_json())
    assert "<img" not in again._repr_html_()
    assert "February" in again._repr_html_()


@pytest.mark.unit
def test_zones_then_and_now_hold_the_change(rng: np.random.Generator) -> None:
    """Of 12 changes of a half of the city by 60 users, and 12 of none, at most 4 are not in their intervals."""
    missed, zones = 0, read_zones({"west": WEST})
    for _ in range(6):
        table = people(rng)
        other = moved(table)
        a, b, c = made(table), made(other), made(table)
        west = [
            float((rows["lon"] < 11.26).groupby(rows["user"]).mean().sum())
            for rows in (table, other)
        ]
        for pair, truth in (((a, b), west[1] - west[0]), ((a, c), 0.0)):
            # What a comparison says of zones, without all else that it works out.
            (zone,) = map(_zone_change, *(zone_totals(one, zones) for one in pair))
            assert zone.low is not None
            assert zone.high is not None
            assert zone.low <= zone.change <= zone.high
            missed += not zone.low <= truth <= zone.high
    assert missed <= 4
    assert compare_maps(*pair, zones={"west": WEST}).zones == (zone,)


@pytest.mark.unit
def test_maps_of_one_release_say_that_users_are_shared(rng: np.random.Generator) -> None:
    one = made(people(rng, 40), group="morning")
    said = compare_maps(one, replace(one, group="evening"))
    assert [name.rpartition(": ")[2] for name in said.names] == ["morning", "evening"]
    assert "one release: their noise is independent, but each user has one mass" in said.remarks[0]


@pytest.mark.unit
def test_words() -> None:
    far = Shift(322.1, "m", 304.0, 251.0, 363.0, False)
    assert PAIRS == 19
    assert "no more than noise" in shift_text(far)
    assert shift_text(replace(far, exceeds=True)).endswith(": more than noise")
    assert Fraction(1, PAIRS + 1) == Fraction(1, 20)


@pytest.mark.unit
def test_where_the_whole_grew_shares_are_listed_first() -> None:
    """Five weekdays against two days of a weekend: every busy square has fewer users, which says little."""
    here = Differences((Change(0, 0, 1, 1, 9.0, 4.0, -5.0, -9.0, -1.0),), 7, 0.95)
    for total, first in (((-60.0, -40.0), "shares"), ((-9.0, 4.0), "users")):
        said = CompareResult(
            ("a: weekday", "a: weekend"), ("", ""), ("zoom", "zoom"), "user",
            ZoneChange("all", 90.0, 40.0, -50.0, *total), Shift(1.0, "m", None, None, None, False), here, here,
        )  # fmt: skip
        listed = [line for line in comparison_text(said).splitlines() if line.startswith("  ")]
        assert listed[0].startswith(f"  {first}: ")
        assert len(listed) == 2
    assert b"<title>From weekday to weekend</title>" in page(said)


@pytest.mark.unit
def test_fewer_users_everywhere_are_no_arrows(rng: np.random.Generator) -> None:
    """Weekdays against weekends: users differ in many squares for sure, and no share does."""
    table = people(rng, 400)
    found = compare_maps(made(table, epsilon=8), made(table[table["user"] < 100], epsilon=8))
    drawn = found.pictured
    assert drawn is not None
    assert drawn.users_found is not None
    assert drawn.users_found.where.any()
    far = replace(found, shift=replace(found.shift, exceeds=True))
    here = np.zeros_like(drawn.users_found.where)
    same = replace(drawn, shares_found=replace(drawn.users_found, where=here))
    layers = _layers(far, same, shares=False)
    assert layers.arrows is None
    assert "of no square it is known that its share changed" in layers.arrows_say
    here[0, 0] = True
    layers = _layers(far, same, shares=False)
    assert layers.arrows is not None
    assert layers.moves.sum() == 1


def test_the_flow_between_images_lies_as_they_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was drawn upside down, with a strip below the image that no image has."""
    screen = area_of_image(80, 60, 4)
    for name, (x, y) in (("a", (10, 10)), ("b", (70, 10))):
        heatmap(screen, [tile_at(screen, x, y, users=100)]).write(tmp_path / f"{name}.json")
    frames = []

    def seen(*images: Any, frame: Any, **words: Any) -> bytes:
        frames.append(frame)
        return flow_field(*images, frame=frame, **words)

    monkeypatch.setattr("sfumato.figures.flow_field", seen)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["emd", "a.json", "b.json", "--plot", "flow.png", "--quiet"])
    assert done.exit_code == 0, done.output
    assert frames == [map_frame("a.json")]
    assert frames[0].downward
    assert (frames[0].window, frames[0].extent) == ((0, 0, 80, 60), (0, 0, 80, 80))

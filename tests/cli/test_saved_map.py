"""`sfumato heatmap hotspots` says which places are real, where the map knows."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.heatmap.export.maps import heatmap, tile_at
from tests.heatmap.posteriors import Given
from typer.testing import CliRunner

from sfumato.cli.main import app
from sfumato.heatmap import public_area
from sfumato.heatmap.accuracy.uncertainty import DRAWS
from sfumato.spaces.area import area_of_plane

pytestmark = pytest.mark.unit

AREA = area_of_plane((0, 0, 100, 100), 6)
PLAIN = ["x", "y", "share", "within", "within_low", "within_high"]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A sure place, and one that is there in every other draw."""
    release = heatmap(AREA, [tile_at(AREA, 20, 30, users=700), tile_at(AREA, 80, 60, users=300)])
    images = np.repeat(release.tiles.image()[None], DRAWS, axis=0)
    rows, columns = np.nonzero(images[0] == 300)
    images[::2, rows, columns] = 0
    replace(release, posterior=Given(images)).write(tmp_path / "map.json")
    release.write(tmp_path / "plain.json")
    return tmp_path / "map.json"


def run(*words: str) -> str:
    done = CliRunner().invoke(app, ["heatmap", "hotspots", *words])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_real_hotspots_are_marked(saved: Path) -> None:
    head, first, second = run(str(saved), "-k", "2").splitlines()
    assert re.split("  +", head) == ["x", "y", "nearest to it", "within 2"]
    assert first.split()[2:] == ["70.0%", "70.0%", "real"]
    assert second.split()[2:] == ["30.0%", "30.0%"]
    told = json.loads(run(str(saved), "-k", "2", "--json"))
    assert [spot["real"] for spot in told["hotspots"]] == [True, False]
    (mark,) = told["marks"]
    assert (mark["x"], mark["y"]) == (pytest.approx(20, abs=1.6), pytest.approx(30, abs=1.6))


def test_how_much_a_better_choice_could_save_is_said(saved: Path) -> None:
    done = CliRunner().invoke(app, ["heatmap", "hotspots", str(saved), "-k", "1"])
    told = json.loads(run(str(saved), "-k", "1", "--json"))
    assert 0 < told["lower"] <= told["distance"]
    assert told["gap"] == pytest.approx(1 - told["lower"] / told["distance"])
    assert done.stderr == (
        f"mass is {told['distance']:.3g} sides of the map from the nearest place on average; no choice of 1 "
        f"brings it below {told['lower']:.3g}, {told['gap']:.1%} less\n"
    )
    hushed = CliRunner().invoke(app, ["heatmap", "hotspots", str(saved), "-k", "1", "--quiet"])
    assert (hushed.stdout, hushed.stderr) == (done.stdout, "")


def test_on_the_ground_hotspots_are_told_in_metres(tmp_path: Path) -> None:
    """The box is 9.6 km wide; and who sees degrees sees which is which."""
    area = public_area((11.20, 43.74, 11.32, 43.81), levels=6)
    people = [tile_at(area, 11.22, 43.76, users=700), tile_at(area, 11.30, 43.78, users=300)]
    heatmap(area, people).write(tmp_path / "city.json")
    done = CliRunner().invoke(app, ["heatmap", "hotspots", str(tmp_path / "city.json"), "-k", "1"])
    told = json.loads(run(str(tmp_path / "city.json"), "-k", "1", "--json"))
    mean, lower = (float(f"{told[name] * 9630:.2g}") for name in ("distance", "lower"))
    said = re.fullmatch(
        r"mass is ([\d,]+) m \(([\d.]+) sides of the map\) from the nearest place on average; "
        r"no choice of 1 brings it below ([\d,]+) m, .*% less\n",
        done.stderr,
    )
    assert said is not None, done.stderr
    assert float(said[1].replace(",", "")) == pytest.approx(mean, rel=0.05)
    assert float(said[3].replace(",", "")) == pytest.approx(lower, rel=0.05)
    head, row = (re.split("  +", line) for line in done.stdout.splitlines())
    assert head == ["lon", "lat", "nearest to it", "within 200 m"]
    # All of the mass is nearest to the only place there is, and not all of it is near.
    assert row[2:] == ["100.0%", "70.0%"]
    assert told["within"] == {"length": 200, "unit": "m"}


def test_hotspots_are_written_as_a_table_and_as_points(tmp_path: Path) -> None:
    area = public_area((11.20, 43.74, 11.32, 43.81), levels=6)
    heatmap(area, [tile_at(area, 11.22, 43.76, users=700)]).write(tmp_path / "city.json")
    table, points = tmp_path / "spots.csv", tmp_path / "spots.geojson"
    for path in (table, points):
        run(str(tmp_path / "city.json"), "-k", "1", "--out", str(path))
    head, row = table.read_text().splitlines()
    assert head.split(",") == ["x", "y", "share", "within", "within_low", "within_high"]
    (feature,) = json.loads(points.read_text())["features"]
    assert feature["geometry"]["coordinates"] == [float(one) for one in row.split(",")[:2]]
    assert feature["properties"]["within"] == pytest.approx(1)
    words = ["heatmap", "hotspots", str(tmp_path / "city.json"), "--out", str(table)]
    assert CliRunner().invoke(app, words).exit_code == 8  # it exists
    words[-1] = str(tmp_path / "spots.txt")
    assert CliRunner().invoke(app, words).exit_code == 2


def test_a_map_that_does_not_know_says_nothing_of_it(saved: Path) -> None:
    assert "real" not in run(str(saved.with_name("plain.json")), "-k", "2")
    told = json.loads(run(str(saved.with_name("plain.json")), "-k", "2", "--json"))
    assert [list(spot) for spot in told["hotspots"]] == [PLAIN] * 2
    assert all(spot["within_low"] is None for spot in told["hotspots"])
    assert "marks" not in told


@pytest.mark.parametrize(
    ("data", "what"), [(b"user,lon,lat\nann,11.25,43.77\n", "JSON"), (b"PAR1\xff\xfe", "text")]
)
def test_a_table_is_no_saved_map(tmp_path: Path, data: bytes, what: str) -> None:
    """Whoever gives the rows for the map is told so, not where a parser stopped."""
    (tmp_path / "jan.csv").write_bytes(data)
    done = CliRunner().invoke(
        app, ["heatmap", "draw", str(tmp_path / "jan.csv"), "--out", str(tmp_path / "m.png")]
    )
    assert done.exit_code == 4
    assert done.stderr.endswith(
        f"jan.csv is no map saved as .json: it is no {what}; nothing was drawn\n"
    )

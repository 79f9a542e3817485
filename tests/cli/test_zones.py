"""`sfumato heatmap totals`: a table of zones from a map that is paid for."""

from __future__ import annotations

import csv
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.heatmap.export.maps import CITY, heatmap, tile_at
from typer.testing import CliRunner, Result

from sfumato.cli.main import app
from sfumato.heatmap import HeatmapRelease, Tiles, map_totals, read_heatmap
from sfumato.heatmap.inference import MapPosterior

pytestmark = pytest.mark.unit

LOW_X, LOW_Y, HIGH_X, HIGH_Y = CITY.bounds
MIDDLE = (LOW_X + HIGH_X) / 2


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A saved map with 1,500 users in the west and 500 in the east, and three zones."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("SFUMATO_")]:
        monkeypatch.delenv(name)
    y = (LOW_Y + HIGH_Y) / 2
    west, east = (
        tile_at(CITY, MIDDLE - 0.1, y, users=1500),
        tile_at(CITY, MIDDLE + 0.1, y, users=500),
    )
    heatmap(CITY, [west, east]).write("map.json")
    zones(
        {"west side": (LOW_X, MIDDLE), "[b]east[/b]": (MIDDLE, HIGH_X), "Paris": (2.2, 2.4)},
    )
    return tmp_path


def zones(
    places: dict[str, tuple[float, float]], name: str = "zones.geojson", key: str = "name"
) -> None:
    features = [
        {
            "type": "Feature",
            "properties": {key: zone},
            "geometry": {
                "type": "Polygon",
                "coordinates": [
                    [[low, LOW_Y], [high, LOW_Y], [high, HIGH_Y], [low, HIGH_Y], [low, LOW_Y]]
                ],
            },
        }
        for zone, (low, high) in places.items()
    ]
    Path(name).write_text(json.dumps({"type": "FeatureCollection", "features": features}))


def run(*words: str) -> Result:
    result = CliRunner().invoke(app, ["heatmap", "totals", *words])
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result


def test_a_plain_table_says_what_is_known() -> None:
    result = run("map.json", "zones.geojson")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "zone         users  share",
        "west side    1,500  75.0%",
        "[b]east[/b]    500  25.0%",
        "Paris            0   0.0%  outside the area: nobody was counted there",
        "no intervals: the file does not say how sure this map, by made-up, is",
    ]


def test_a_notebook_says_where_the_map_knows_nothing() -> None:
    """A zone outside the area would look like one of nobody, from 0 to 0."""
    shown = map_totals("map.json", "zones.geojson")._repr_html_()
    assert "<td>outside the area: nobody was counted there</td>" in shown
    assert shown.count("<th>") == shown.split("<tr>")[2].count("<td>")


@dataclass(frozen=True, eq=False)
class Doubled(MapPosterior):
    """Half of the draws are the map, half of them twice the map."""

    tiles: Tiles

    def maps(self, count: int, level: int) -> npt.NDArray[np.float64]:
        times = np.resize([1.0, 2.0], count)
        return np.asarray(times[:, None, None] * self.tiles.image(level))


def test_with_draws_there_are_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    def sure(path: Path) -> HeatmapRelease:
        saved = read_heatmap(path)
        return replace(saved, posterior=Doubled(saved.tiles))

    monkeypatch.setattr("sfumato.heatmap.pipeline.saved_maps.read_heatmap", sure)
    lines = run("map.json", "zones.geojson", "--coverage", "0.8").stdout.splitlines()
    assert lines == [
        "zone         users  share    80% interval    at the worst",
        "west side    1,500  75.0%  1,500 to 3,000  1,500 to 3,000",
        "[b]east[/b]    500  25.0%    500 to 1,000    500 to 1,000",
        "Paris            0   0.0%          0 to 0          0 to 0  outside the area: nobody was counted there",
    ]


def test_json_and_files_say_the_same() -> None:
    result = run("map.json", "zones.geojson", "--json", "--out", "totals.csv")
    data: dict[str, Any] = json.loads(result.stdout)
    assert (data["coverage"], data["statement"]) == (0.9, read_heatmap("map.json").statement)
    users = [row["users"] for row in data["zones"]]
    assert users == pytest.approx([1500, 500, 0])
    fields = ("name", "users", "share", "low", "high", "inside", "least", "most")
    assert tuple(data["zones"][0]) == fields
    rows = list(csv.DictReader(Path("totals.csv").read_text().splitlines()))
    assert [float(row["users"]) for row in rows] == users
    assert (
        run("map.json", "zones.geojson", "--out", "totals.geojson").stderr
        == "wrote totals.geojson\n"
    )
    shapes = json.loads(Path("totals.geojson").read_text())["features"]
    assert [one["properties"]["users"] for one in shapes] == users
    again = run("map.json", "totals.geojson", "--json")  # what was written is a file of zones too
    assert [row["users"] for row in json.loads(again.stdout)["zones"]] == pytest.approx(users)


def test_mistakes_are_one_sentence_and_write_nothing() -> None:
    zones({"a": (LOW_X, MIDDLE)}, "districts.geojson", key="district")
    before = {path: path.read_bytes() for path in Path().iterdir()}
    for words, code, message in [
        (["map.json", "districts.geojson"], 4, "choose with --name"),
        (["map.json", "none.geojson"], 4, "there is no file"),
        (["zones.geojson", "zones.geojson"], 4, "is not a whole map"),
        (["map.json", "zones.geojson", "--coverage", "1"], 2, "coverage must lie in"),
        (["map.json", "zones.geojson", "--out", "a.png"], 2, "totals end in one of .csv, .geojson"),
        (["map.json", "zones.geojson", "--out", "no/a.csv"], 2, "folder of no/a.csv must be there"),
        (["map.json", "zones.geojson", "--out", "zones.geojson"], 2, "must not replace"),
        (
            ["map.json", "zones.geojson", "--out", "zones.geojson", "--overwrite"],
            2,
            "must not replace",
        ),
        (
            ["map.json", "zones.geojson", "--out", "districts.geojson"],
            8,
            "exists already and is kept",
        ),
    ]:
        result = run(*words)
        assert (result.exit_code, result.stdout) == (code, ""), words
        assert message in result.stderr
        assert result.stderr.count("\n") == 1
    assert {path: path.read_bytes() for path in Path().iterdir()} == before
    assert run("map.json", "districts.geojson", "--name", "district").exit_code == 0


def test_every_file_that_is_asked_for_is_written() -> None:
    words = [
        "heatmap",
        "totals",
        "map.json",
        "zones.geojson",
        "--out",
        "a.csv",
        "--out",
        "b.geojson",
    ]
    result = CliRunner().invoke(app, [*words, "--json"])
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["written"] == ["a.csv", "b.geojson"]
    assert Path("a.csv").is_file()
    assert len(json.loads(Path("b.geojson").read_text())["features"]) == 3
    Path("a.csv").unlink()
    assert CliRunner().invoke(app, words).exit_code != 0  # the second is there, and none is written
    assert not Path("a.csv").exists()

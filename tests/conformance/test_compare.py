"""`sfumato heatmap compare --json`, `compare_maps` and the saved file say the same of the same maps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from typer.testing import CliRunner

from sfumato.cli.main import app
from sfumato.heatmap import as_text, check_ins, compare_maps, map_distance, read_heatmap, rehearse
from sfumato.heatmap.comparison.results import CompareResult
from sfumato.records import Columns
from sfumato.spaces import area_in_degrees
from sfumato.transport import EmdResult

pytestmark = pytest.mark.unit

BOX = (11.20, 43.74, 11.32, 43.81)
RING = [[11.2, 43.74], [11.26, 43.74], [11.26, 43.81], [11.2, 43.81], [11.2, 43.74]]
ZONES = {
    "type": "Feature",
    "properties": {"district": "west"},
    "geometry": {
        "type": "Polygon",
        "coordinates": [RING],
    },
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    """Two maps of one city, by two methods, with a quarter of the people elsewhere."""
    monkeypatch.chdir(tmp_path)
    table = check_ins(120, bounds=BOX, rng=rng).to_pandas()
    later = table.assign(lon=table["lon"].where(table["user"] >= 30, 11.3))
    columns, area = Columns(user="user", x="lon", y="lat"), area_in_degrees(BOX, 4)
    for name, rows, method in (("a", table, "zoom"), ("b", later, "pyramid")):
        rehearse(rows, columns, area, public=True, epsilon=2, method=method).write(f"{name}.json")
    Path("z.geojson").write_text(json.dumps(ZONES))


def run(*words: str) -> Any:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output
    return done


def test_command_call_and_file_agree() -> None:
    words = ["heatmap", "compare", "a.json", "b.json", "--zones", "z.geojson", "--name", "district"]
    by_command = run(*words, "--out", "d.json", "--json")
    assert by_command.stderr == ""
    said = json.loads(by_command.stdout)
    by_call = compare_maps("a.json", "b.json", zones="z.geojson", name="district")
    ring = {"west": RING[:-1]}
    by_maps = compare_maps(read_heatmap("a.json"), read_heatmap("b.json"), zones=ring)
    assert said["written"] == ["d.json"]
    assert json.loads(Path("d.json").read_text()) == said
    assert {**said, "written": []} == by_call.to_json()
    assert by_maps.zones == by_call.zones
    assert by_maps.shift == by_call.shift
    assert CompareResult.from_json(by_call.to_json()) == by_call
    assert run(*words).stdout == as_text(by_call) + "\n"
    west, south, east, north = area_in_degrees(BOX, 4).bounds
    with rasterio.open(
        "air.tif",
        "w",
        driver="GTiff",
        width=60,
        height=40,
        count=3,
        dtype="uint8",
        crs="EPSG:4326",
        transform=rasterio.Affine((east - west) / 60, 0, west, 0, (south - north) / 40, north),
    ) as file:
        file.write(np.full((3, 40, 60), 120, dtype=np.uint8))
    ground = ["--over", "air.tif", "--outline", "z.geojson"]
    run(*words, *ground, "--out", "d.png", "--quiet")
    at_once = {"over": "air.tif", "outline": "z.geojson", "zones": "z.geojson", "name": "district"}
    compare_maps("a.json", "b.json", outputs="e.png", **at_once)  # type: ignore[arg-type]
    assert Path("d.png").read_bytes() == Path("e.png").read_bytes()
    assert by_call.names == ("a", "b")


def test_emd_reads_saved_maps_in_metres() -> None:
    said = json.loads(run("emd", "a.json", "b.json", "--json").stdout)
    found = map_distance("a.json", "b.json")
    assert said == found.to_json()
    assert said["unit"] == "m"
    assert EmdResult.from_json(said) == found
    assert found.value == pytest.approx(compare_maps("a.json", "b.json").shift.value)
    drawn = run("emd", "a.json", "b.json", "--plot", "flow.png")
    assert drawn.stdout.startswith(f"{found.value} m (at least ")
    assert Path("flow.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a.json", "b.npy"], "a saved map is compared with another"),
        (["a.json", "b.json", "--bounds", "0,0,1,1"], "leave out --space, --edges and --bounds"),
        (["a.json", "z.json"], "cannot read z.json"),
    ],
)
def test_emd_refuses(words: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["emd", *words])
    assert done.exit_code != 0
    assert said in done.output
    assert done.stdout == ""


def test_refusals_name_flags() -> None:
    data = json.loads(Path("a.json").read_text())
    real = {**data, "rehearsal": False}
    real["statement"] = data["statement"].partition(": ")[2]
    Path("real.json").write_text(json.dumps(real))
    done = CliRunner().invoke(app, ["heatmap", "compare", "a.json", "real.json"])
    assert done.exit_code != 0
    assert "say --mixed" in done.output
    assert "nothing was" in done.output
    run("heatmap", "compare", "a.json", "real.json", "--mixed", "--quiet")

"""Rows counted with a public cap per user: a row is a row, and one user moves the map by the cap at most."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.records.plain import plain_sums
from typer.testing import CliRunner

from sfumato.cli.main import app
from sfumato.errors import InvalidParameter
from sfumato.heatmap import PoolResult, as_text, pool_maps, read_heatmap, release_heatmap
from sfumato.privacy import UNITS, Ledger
from sfumato.records import Columns, open_table, sum_public_cells
from sfumato.spaces import area_of_plane

pytestmark = pytest.mark.unit

AREA = area_of_plane((0.0, 0.0, 4.0, 4.0), 2)
# One with a row, one with three in two places, one with ten.
ROWS = [
    {"user": "a", "x": 0.5, "y": 0.5},
    {"user": "b", "x": 0.5, "y": 0.5},
    {"user": "b", "x": 0.5, "y": 0.5},
    {"user": "b", "x": 3.5, "y": 0.5},
    *({"user": "c", "x": 3.5, "y": 3.5} for _ in range(10)),
]


def summed(rows: list[dict[str, Any]], cap: int) -> dict[int, int]:
    columns = Columns("user", "x", "y", rows_per_user=cap)
    sums = sum_public_cells(open_table(rows_table(rows), columns=columns), columns, AREA)
    found = dict(zip(sums.codes.tolist(), sums.units.tolist(), strict=True))
    assert found == plain_sums(rows, columns, AREA)
    return found


def rows_table(rows: list[dict[str, Any]]) -> Any:
    import pyarrow as pa

    return pa.Table.from_pylist(rows)


@pytest.mark.parametrize("cap", [1, 2, 4, 7])
def test_a_row_is_a_row_until_the_cap(cap: int) -> None:
    total = sum(summed(ROWS, cap).values()) * cap / UNITS
    expected = min(1, cap) + min(3, cap) + min(10, cap)
    # Each user and cell loses less than one unit to rounding.
    assert expected - 4 * cap / UNITS <= total <= expected


@pytest.mark.parametrize("cap", [1, 2, 4, 7])
@pytest.mark.parametrize("user", ["a", "b", "c"])
def test_one_user_moves_at_most_one_mass(cap: int, user: str) -> None:
    whole = summed(ROWS, cap)
    without = summed([row for row in ROWS if row["user"] != user], cap)
    moved = {code: whole.get(code, 0) - without.get(code, 0) for code in whole}
    assert all(units >= 0 for units in moved.values())
    assert sum(moved.values()) <= UNITS


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"rows_per_user": 0}, "whole number"),
        ({"rows_per_user": 2**30 + 1}, "whole number"),
        ({"rows_per_user": 2.5}, "whole number"),
        ({"rows_per_user": True}, "whole number"),
        ({"rows_per_user": 3, "weight": "w"}, "goes with no `weight`"),
    ],
)
def test_caps_that_are_none_are_refused(given: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidParameter, match=rule):
        Columns("user", "x", "y", **given)


def test_rows_without_users_have_no_cap() -> None:
    with pytest.raises(InvalidParameter, match="it needs `user`"):
        Columns(None, "x", "y", one_row_one_user=True, rows_per_user=3)


def test_the_files_of_a_map_of_rows_say_rows(tmp_path: Path, rng: np.random.Generator) -> None:
    """A million epsilon: what is written is the number of rows, in every face that counts."""
    places = rng.random((600, 2))
    table = {"user": [n % 50 for n in range(600)], "x": places[:, 0], "y": places[:, 1]}
    import pyarrow as pa

    ledger = Ledger.create(tmp_path / "l.ledger", 10**6, unit="user", source="cabs")
    made = release_heatmap(
        pa.table(table),
        ledger=ledger,
        epsilon=10**6,
        bounds=(0.0, 0.0, 1.0, 1.0),
        plane=True,
        levels=3,
        x="x",
        y="y",
        user="user",
        rows_per_user=40,
        outputs=[tmp_path / "map.csv", tmp_path / "map.json", tmp_path / "map.png"],
    )
    assert "rows are counted, at most 40 of each user" in made.statement
    assert (made.maps[0].measure.name, made.maps[0].measure.scale) == ("rows", 40)
    found = list(csv.DictReader(io.StringIO((tmp_path / "map.csv").read_text())))
    assert sum(float(row["rows"]) for row in found) == pytest.approx(600, rel=0.01)
    assert read_heatmap(tmp_path / "map.json").measure == made.maps[0].measure
    whole = {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "properties": {"name": "all"},
                "geometry": {
                    "type": "Polygon",
                    "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]],
                },
            }
        ],
    }
    (tmp_path / "zones.geojson").write_text(json.dumps(whole))
    said = CliRunner().invoke(
        app,
        [
            "heatmap",
            "totals",
            str(tmp_path / "map.json"),
            str(tmp_path / "zones.geojson"),
            "--quiet",
        ],
    )
    head, line = said.stdout.splitlines()[:2]
    assert head.split()[:2] == ["zone", "rows"]
    assert line.split()[:2] == ["all", "600"]


def test_pooled_maps_and_a_geotiff_of_rows_say_rows(tmp_path: Path) -> None:
    """A million epsilon again: 12 rows of each of 50 users, two thirds of them in the week.

    Pooling printed masses under the word users, and the tag of a GeoTIFF had them as users.
    """
    import pyarrow as pa
    import rasterio

    rows = [
        {
            "user": n % 50, "lon": 11.2 + 0.12 * (n % 7) / 7, "lat": 43.74 + 0.07 * (n % 5) / 5,
            "day": "week" if n % 3 else "end",
        }
        for n in range(600)
    ]  # fmt: skip
    made = release_heatmap(
        pa.Table.from_pylist(rows),
        user="user",
        by="day",
        groups=["week", "end"],
        rows_per_user=40,
        bounds=(11.2, 43.74, 11.32, 43.81),
        levels=4,
        ledger=Ledger.create(tmp_path / "l.ledger", 10**6, unit="user", source="cabs"),
        epsilon=10**6,
        outputs=[tmp_path / "{by}.json", tmp_path / "{by}.tif"],
    )
    for one in made.maps:
        with rasterio.open(tmp_path / f"{one.group}.tif") as file:
            number, *words = file.tags()["noise_mark"].split()
        assert words[0] == "rows"
        assert float(number) == pytest.approx(40 * one.noise.density)
    found = pool_maps([tmp_path / "week.json", tmp_path / "end.json"])
    head, *lines = as_text(found).splitlines()[1:]
    assert head.split()[:2] == ["map", "rows"]
    assert [line.split()[:2] for line in lines] == [["end", "200"], ["week", "400"]]
    told = json.loads(json.dumps(found.to_json()))
    assert (told["unit"], round(told["pooled"][0]["users"])) == ("row", 200)
    assert PoolResult.from_json(told) == found
    # What was saved before it said what is counted.
    del told["unit"]
    assert PoolResult.from_json(told).unit == "user"

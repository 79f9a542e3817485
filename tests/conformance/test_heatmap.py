"""For every verb of heatmaps: the command with --json, the Python call and the saved file agree."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.seeded import seed_system
from typer.testing import CliRunner

from sfumato.cli.main import app
from sfumato.heatmap import (
    HeatmapRelease,
    draw_map,
    map_hotspots,
    map_timelapse,
    map_totals,
    plan_release,
    pool_maps,
    read_heatmap,
    rehearse_heatmap,
    release_heatmap,
)
from sfumato.heatmap.accuracy import noise_share
from sfumato.heatmap.analysis import Zone, ZoneTotal
from sfumato.heatmap.hotspot_results import HotspotsResult
from sfumato.heatmap.methods.baselines import CoarseMethod
from sfumato.heatmap.results import (
    DrawResult,
    PlannedRelease,
    PoolResult,
    RehearsalResult,
    ReleaseResult,
    TotalsResult,
)
from sfumato.privacy import Ledger, PureDP
from sfumato.records import Columns, Pairs, Periods, Values
from sfumato.spaces import area_in_degrees

pytestmark = pytest.mark.unit

BOX = (11.20, 43.74, 11.32, 43.81)
TEXT = ",".join(map(str, BOX))
ZONES = {
    "west": [[11.2, 43.74], [11.26, 43.74], [11.26, 43.81], [11.2, 43.81]],
    "east": [[11.26, 43.74], [11.32, 43.74], [11.32, 43.81], [11.26, 43.81]],
}
WORDS = ["--user", "user", "--bounds", TEXT, "--levels", "4", "--epsilon", "1"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Forty people with places, groups and times, and a public road."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("SFUMATO_")]:
        monkeypatch.delenv(name)
    user = np.repeat(np.arange(40), 5)
    table = {
        "user": [f"u{number}" for number in user],
        "lon": np.where(user % 4 > 0, 11.225, 11.295),
        "lat": np.where(user % 4 > 0, 43.755, 43.795),
        "seen": ["a", "b"] * 100,
        "time": [datetime(2026, 1, 5 + number % 3, 12) for number in range(200)],
    }
    pq.write_table(pa.table(table), "rows.parquet")
    road = {"type": "LineString", "coordinates": [[11.2, 43.75], [11.32, 43.8]]}
    Path("roads.geojson").write_text(json.dumps(road))
    shapes = [
        {
            "type": "Feature",
            "properties": {"name": name},
            "geometry": {"type": "Polygon", "coordinates": [[*ring, ring[0]]]},
        }
        for name, ring in ZONES.items()
    ]
    collection = {"type": "FeatureCollection", "features": shapes}
    Path("zones.geojson").write_text(json.dumps(collection))
    return tmp_path


def command(*words: str) -> Any:
    """What a command prints with --json, on noise of a known seed."""
    with pytest.MonkeyPatch.context() as patch:
        seed_system(patch, b"one seed for both")
        done = CliRunner().invoke(app, ["heatmap", *words, "--json"])
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    return json.loads(done.stdout)


def call(function: Any, *values: Any, **named: Any) -> Any:
    """What a function returns, on noise of the same seed."""
    with pytest.MonkeyPatch.context() as patch:
        seed_system(patch, b"one seed for both")
        return function(*values, **named)


def ledger(name: str) -> Path:
    Ledger.create(name, PureDP(10), unit="user", source="city")
    return Path(name)


def timeless(found: Any) -> Any:
    """JSON without what two ledgers never share: names, where rows were, the time of an entry and its hash."""
    if isinstance(found, dict):
        own = {"time", "hash", "ledger", "previous", "written", "request"}
        return {key: timeless(value) for key, value in found.items() if key not in own}
    return [timeless(one) for one in found] if isinstance(found, list) else found


def saved(path: str | Path) -> Any:
    return timeless(json.loads(Path(path).read_text()))


CASES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "plain": ([], {}),
    "groups": (
        ["--by", "seen", "--values", "a,b"],
        {"by": "seen", "groups": ("a", "b")},
    ),
    "periods": (
        ["--time", "time", "--by", "day", "--from", "2026-01-05", "--to", "2026-01-08"],
        {"groups": Periods("time", "day", datetime(2026, 1, 5), datetime(2026, 1, 8))},
    ),
    "mass per value": (
        ["--by", "seen", "--values", "a,b", "--mass-per-value"],
        {"groups": Values("seen", ("a", "b"), mass_per_value=True)},
    ),
    "two columns": (
        ["--by", "seen", "--values", "a,b", "--time", "time", "--by", "day",
         "--from", "2026-01-05", "--to", "2026-01-07", "--method", "laplace"],
        {
            "groups": Pairs(
                Values("seen", ("a", "b")),
                Periods("time", "day", datetime(2026, 1, 5), datetime(2026, 1, 7)),
            ),
            "method": "laplace",
        },
    ),
    "pooled": (
        ["--by", "seen", "--values", "a,b", "--pooling", "partial"],
        {"by": "seen", "groups": ("a", "b"), "pooling": "partial"},
    ),
    "private bounds": (
        ["--bounds", "private", "--outer", "11,43.5,11.5,44"],
        {"bounds": "private", "outer": (11, 43.5, 11.5, 44)},
    ),
    "prior": (["--prior", "roads.geojson"], {"prior": "roads.geojson"}),
    "pyramid": (
        ["--method", "pyramid", "--method-option", "width=30"],
        {"method": "pyramid"},
    ),
    "coarse": (["--method", "coarse", "--users", "40"], {"method": CoarseMethod(users=40)}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_release_is_the_same_from_command_call_and_file(case: str) -> None:
    words, named = CASES[case]
    if case == "pyramid":
        from sfumato.heatmap import PyramidMethod

        named = {"method": PyramidMethod(width=30)}
    several = "{by}-" if "groups" in named else ""
    told = command(
        "release", "rows.parquet", *WORDS, *words,
        "--ledger", str(ledger("one.ledger")), "--out", f"{several}command.json",
    )  # fmt: skip
    settings: dict[str, Any] = {"user": "user", "bounds": BOX, "levels": 4, **named}
    result = call(
        release_heatmap,
        "rows.parquet",
        ledger=ledger("two.ledger"),
        epsilon=1,
        outputs=f"{several}call.json",
        **settings,
    )
    assert timeless(result.to_json()) == timeless(told)
    assert len(told["written"]) == len(result.written) == len(result.maps)
    rows = zip(result.maps, told["written"], result.written, told["errors"], strict=True)
    for one, by_command, by_call, error in rows:
        assert saved(by_command) == saved(by_call)
        whole = json.loads(Path(by_call).read_text())
        del whole["uncertainty"]
        # A saved map shows what it showed, without drawing it again.
        known, shown = read_heatmap(by_call), whole.pop("silent")
        if shown is not None:
            assert shown == one.uncertainty().shown.to_json()
            assert np.array_equal(known.shown_uncertainty().silent, one.uncertainty().silent)
            assert known.shown_uncertainty().marks == one.uncertainty().marks
        # How far off the map is: the command, the call, the map, the file, and the file opened.
        assert whole.pop("error") == error == one.error().to_json()
        # And between what its total lies.
        ends = whole.pop("total")
        assert (ends is None) == (one.total().low is None)
        assert known.total() == one.total()
        assert one.to_json() == whole
        assert read_heatmap(by_call).to_json() == whole
        assert read_heatmap(by_call).error() == one.error()
    assert [one.to_json() for one in result.errors.values()] == told["errors"]
    assert ReleaseResult.from_json(json.loads(json.dumps(result.to_json()))) == result
    assert result.by_group[result.maps[-1].group] is result.maps[-1]


@pytest.mark.parametrize("method", ["zoom", "pyramid", "laplace", "privtree", "adaptive"])
def test_files_of_before_open_as_they_did(method: str) -> None:
    """Maps did not always say the scale of their noise, and that they are a posterior's mean."""
    found = call(
        release_heatmap,
        "rows.parquet",
        user="user",
        bounds=BOX,
        levels=4,
        method=method,
        ledger=ledger("city.ledger"),
        epsilon=1,
        outputs="map.json",
    )
    whole = json.loads(Path("map.json").read_text())
    new = ("noise_scale", "mean_is_map", "error", "total")
    old = {key: value for key, value in whole.items() if key not in new}
    Path("old.json").write_text(json.dumps(old))
    again, (one,) = read_heatmap("old.json"), found.maps
    assert again.to_json() == one.to_json()
    assert noise_share(again) == noise_share(one)
    assert again.known_error is None
    assert again.known_total is None
    assert again.total() == one.total()
    assert again.error() == one.error()  # worked out when it is asked for


def test_typed_values_and_words_are_the_same_release() -> None:
    in_words = call(
        release_heatmap,
        Path("rows.parquet"),
        user="user",
        bounds=TEXT,
        levels=4,
        ledger=str(ledger("one.ledger")),
        epsilon="1",
    )
    typed = call(
        release_heatmap,
        pq.read_table("rows.parquet"),
        Columns("user", "lon", "lat"),
        area_in_degrees(BOX, 4),
        ledger=Ledger(ledger("two.ledger")),
        epsilon=1,
    )
    framed = call(
        release_heatmap,
        pq.read_table("rows.parquet").to_pandas(),
        Columns("user", "lon", "lat"),
        np.array(BOX),
        levels=4,
        ledger=str(ledger("three.ledger")),
        epsilon=1,
    )
    made = [timeless(one.maps[0].to_json()) for one in (in_words, typed, framed)]
    # Only what is a file has a name that its entry can tell.
    assert made[0]["entry"].pop("table") == {"name": "rows.parquet", "user": "user"}
    assert made[0] == made[1] == made[2]


def test_a_dry_run_says_what_the_plan_says_and_reads_no_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr("sfumato.heatmap.pipeline.release_plan.sum_cells")
    words = [*WORDS, "--ledger", str(ledger("one.ledger")), "--out", "map.json"]
    told = command("release", "rows.parquet", *words, "--dry-run")
    plan = plan_release(
        "rows.parquet",
        user="user",
        bounds=BOX,
        levels=4,
        ledger="one.ledger",
        epsilon=1,
        outputs="map.json",
    )
    assert plan.result.to_json() == told
    assert PlannedRelease.from_json(told) == plan.result
    assert plan.result.cost == PureDP(1)
    assert not Path("map.json").exists()
    assert not Ledger("one.ledger").statement().entries


def test_a_rehearsal_is_the_same_from_command_call_and_file() -> None:
    told = command("rehearse", "rows.parquet", *WORDS, "--public", "--out", "command.json")
    result = call(
        rehearse_heatmap,
        "rows.parquet",
        public=True,
        epsilon=1,
        user="user",
        bounds=BOX,
        levels=4,
        outputs=["call.json"],
    )
    assert timeless(result.to_json()) == timeless(told)
    assert saved("command.json") == saved("call.json")
    assert RehearsalResult.from_json(result.to_json()) == result
    assert result.map is not None
    assert result.map.receipt.rehearsal
    assert result.truth is not None
    assert result.truth.sum() == pytest.approx(1)


def released() -> HeatmapRelease:
    found = call(
        release_heatmap,
        "rows.parquet",
        user="user",
        bounds=BOX,
        levels=4,
        ledger=ledger("city.ledger"),
        epsilon=1,
        outputs="map.json",
    )
    (one,) = found.maps
    assert isinstance(one, HeatmapRelease)
    return one


def test_a_drawing_is_the_same_from_command_call_and_map() -> None:
    one = released()
    more = ["--title", "Here", "--prior", "roads.geojson"]
    told = command("draw", "map.json", *more, "--out", "command.json", "--out", "command.csv")
    options: dict[str, Any] = {"title": "Here", "prior": "roads.geojson"}
    result = draw_map("map.json", ["call.json", "call.csv"], **options)
    again = draw_map(one, ["again.json", "again.csv"], **options)
    assert timeless(result.to_json()) == timeless(again.to_json()) == timeless(told)
    assert DrawResult.from_json(result.to_json()) == result
    for suffix in (".json", ".csv"):
        made = {Path(f"{name}{suffix}").read_bytes() for name in ("command", "call", "again")}
        assert len(made) == 1


def test_hotspots_are_the_same_from_command_call_and_map() -> None:
    one = released()
    told = command("hotspots", "map.json", "-k", "3")
    result = map_hotspots("map.json", 3)
    assert result.to_json() == told == map_hotspots(one, 3).to_json()
    assert HotspotsResult.from_json(told) == result
    assert "<td>" in result._repr_html_()


def test_totals_are_the_same_from_command_call_and_map() -> None:
    one = released()
    told = command("totals", "map.json", "zones.geojson", "--out", "command.csv")
    result = map_totals("map.json", "zones.geojson", output="call.csv")
    assert timeless(result.to_json()) == timeless(told)
    assert timeless(map_totals(one, ZONES).to_json()) == timeless(told)
    assert Path("command.csv").read_bytes() == Path("call.csv").read_bytes()
    assert TotalsResult.from_json(result.to_json()) == result
    assert [type(zone) for zone in result.zones] == [ZoneTotal] * 2
    assert "west" in result._repr_html_()
    assert Zone("west", ()).size == 0


def test_a_timelapse_is_the_same_from_command_call_and_release() -> None:
    periods = Periods("time", "day", datetime(2026, 1, 5), datetime(2026, 1, 8))
    found = call(
        release_heatmap,
        "rows.parquet",
        user="user",
        bounds=BOX,
        levels=4,
        groups=periods,
        ledger=ledger("city.ledger"),
        epsilon=1,
        outputs=["day-{by}.json", "release.html"],
    )
    files = sorted(map(str, Path().glob("day-*.json")))
    told = command("film", *files, "--out", "command.html")
    result = map_timelapse(reversed(files), "call.html")
    map_timelapse(found.maps, "maps.html")
    assert timeless(result.to_json()) == timeless(told)
    assert (
        len({Path(f"{name}.html").read_bytes() for name in ("release", "command", "call", "maps")})
        == 1
    )


def test_saved_maps_are_pooled_alike_by_command_call_and_release() -> None:
    named: dict[str, Any] = {
        "user": "user",
        "bounds": BOX,
        "levels": 4,
        "groups": Periods("time", "day", datetime(2026, 1, 5), datetime(2026, 1, 8)),
        "epsilon": 1,
    }
    one = ledger("one.ledger")
    alone = call(release_heatmap, "rows.parquet", ledger=one, outputs="day-{by}.json", **named)
    files = sorted(map(str, Path().glob("day-*.json")))
    told = command("pool", *files, "--out", "command-{by}.json", "--out", "command.html")
    result = pool_maps(reversed(files), ["call-{by}.json", "call.html"])
    assert timeless(result.to_json()) == timeless(told)
    assert PoolResult.from_json(told) == PoolResult.from_json(
        result.to_json() | {"written": told["written"]}
    )
    assert Path("command.html").read_bytes() == Path("call.html").read_bytes()
    assert b"partly pooled over 3 maps" in Path("call.html").read_bytes()
    # Nothing was charged, and pooled with the release itself they are the same maps.
    assert len(Ledger(one).statement().entries) == 1
    at_once = call(
        release_heatmap,
        "rows.parquet",
        ledger=ledger("two.ledger"),
        outputs="once-{by}.json",
        pooling="partial",
        **named,
    )
    for group in (one.group for one in alone.maps):
        assert saved(f"command-{group}.json") == saved(f"call-{group}.json")
        assert saved(f"call-{group}.json") == saved(f"once-{group}.json")
    assert at_once.statement == result.statement

"""`sfumato heatmap` in careful and in hostile hands: maps where people are, mistakes that cost nothing."""

from __future__ import annotations

import gc
import json
import os
import re
import struct
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from tests.broken_disk import fill
from typer.main import get_command
from typer.testing import CliRunner, Result

from sfumato.cli.main import app
from sfumato.heatmap import HeatmapRelease, read_heatmap
from sfumato.heatmap.export import SUFFIXES, picture, tables
from sfumato.heatmap.render.error import error_lines
from sfumato.privacy import Ledger, PureDP, ReplaceUser
from sfumato.privacy.ledger.storage import book as ledger_file
from sfumato.privacy.ledger.storage import disk

pytestmark = pytest.mark.unit

BOX = "11.20,43.74,11.32,43.81"
HERE, THERE = (11.225, 43.755), (11.295, 43.795)
PEOPLE = 40
# Noise of about a thousandth of a user: where the mass lies is certain, to far below 1e-6.
CLEAR = "1000"
STATEMENT = "epsilon 1 for each user (one user added or removed), central model"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """People at two places in a file, a ledger for them; no config file and no variables from outside."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("SFUMATO_")]:
        monkeypatch.delenv(name)
    pq.write_table(people(), "rows.parquet")
    Ledger.create("city.ledger", PureDP(100_000), unit="user", source="city")
    return tmp_path


def people(
    at: tuple[float, float] = HERE, other: tuple[float, float] = THERE, **more: Any
) -> pa.Table:
    """Three in four are at one place, the others at another; each has ten rows."""
    user = np.repeat(np.arange(PEOPLE), 10)
    first = user % 4 > 0
    return pa.table(
        {
            "user": [f"u{number}" for number in user],
            "lon": np.where(first, at[0], other[0]),
            "lat": np.where(first, at[1], other[1]),
            **more,
        }
    )


def run(*words: str, **env: str) -> Result:
    result = CliRunner().invoke(app, list(words), env=env)
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result


def words(
    source: str = "rows.parquet", *more: str, epsilon: str = "1", area: str = BOX
) -> list[str]:
    named = ["--bounds", area] if area else []
    return [
        "heatmap", "release", source, "--user", "user", *named, "--epsilon", epsilon,
        "--ledger", "city.ledger", "--levels", "4", *more,
    ]  # fmt: skip


def released(source: str = "rows.parquet", *more: str, area: str = BOX) -> HeatmapRelease:
    """The map of a release that must succeed."""
    result = run(*words(source, *more, "--out", "map.json", "--quiet", epsilon=CLEAR, area=area))
    assert result.exit_code == 0, result.stderr
    return read_heatmap("map.json")


def share(found: HeatmapRelease, place: tuple[float, float]) -> float:
    """The share of the cell around a place."""
    grid, image = found.area.grid, found.image()
    column = int((place[0] - grid.bounds[0]) / grid.cell_width)
    row = int((place[1] - grid.bounds[1]) / grid.cell_height)
    return float(image[row, column])


def assert_two_places(found: HeatmapRelease) -> None:
    assert share(found, HERE) == pytest.approx(0.75, abs=0.02)
    assert share(found, THERE) == pytest.approx(0.25, abs=0.02)


def listing() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(Path().rglob("*")) if path.is_file()}


def refused(code: int, *command: str) -> str:
    """The one sentence of a mistake, after which every file, the ledger too, is what it was."""
    before = listing()
    result = run(*command, "--quiet")
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    sentence: str = result.stderr.removesuffix("\n")
    assert "\n" not in sentence
    assert sentence.startswith("sfumato: ")
    assert listing() == before
    return sentence.removeprefix("sfumato: ")


# the whole way


def test_from_a_made_up_city_to_every_file() -> None:
    made = run("heatmap", "city", "town.parquet", "--users", "300")
    assert (made.exit_code, made.stdout, made.stderr) == (
        0,
        "town.parquet\n",
        "made up 300 people\n",
    )
    assert pq.read_schema("town.parquet").names == ["user", "lon", "lat", "time"]
    create = [
        "ledger",
        "create",
        "town.ledger",
        "--epsilon",
        "3/2",
        "--unit",
        "user",
        "--source",
        "town",
    ]
    assert run(*create).exit_code == 0
    outs = [f"map{suffix}" for suffix in SUFFIXES]
    asked = ["--user", "user", "--bounds", BOX, "--levels", "5", "--epsilon", "1"]
    result = run(
        "heatmap", "release", "town.parquet", *asked, "--ledger", "town.ledger", "--note", "for my boss",
        *(word for out in outs for word in ("--out", out)),
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    promised, left, *off = result.stdout.splitlines()
    assert (promised, left) == (STATEMENT, "left in town.ledger: epsilon 0.5")
    assert off == list(error_lines(read_heatmap("map.json").error()))
    assert off[0].startswith("on average mass is ")
    assert result.stderr.splitlines() == [
        "area of 9.63 x 7.78 km around 43.78N 11.26E, cells of 301 x 324 m",
        "counting town.parquet with duckdb",
        "releasing by zoom from town.ledger",
        "drawing, and working out how sure the map is",
        *(f"wrote {out}" for out in outs),
    ]
    assert all(Path(out).stat().st_size > 0 for out in outs)
    (entry,) = Ledger("town.ledger").statement().entries
    assert (entry.cost, entry.note) == (PureDP(1), "for my boss")

    saved = read_heatmap("map.json")
    assert (saved.receipt.entry, saved.statement) == (entry, STATEMENT)
    verified = run("ledger", "verify", "town.ledger", "--against", "map.json")
    assert verified.exit_code == 0, verified.stderr
    assert "1 release(s) paid for" in verified.stdout

    paid = Path("town.ledger").read_bytes()
    drawn = run("heatmap", "draw", "map.json", "--out", "again.png", "--out", "again.json")
    assert (drawn.exit_code, drawn.stdout) == (0, "again.png\nagain.json\n")
    assert drawn.stderr.splitlines() == [
        "drawing, and working out how sure the map is",
        "wrote again.png",
        "wrote again.json",
    ]
    assert Path("again.json").read_bytes() == Path("map.json").read_bytes()
    assert Path("again.png").read_bytes() == Path("map.png").read_bytes()
    spots = run("heatmap", "hotspots", "map.json", "-k", "3")
    assert spots.exit_code == 0
    assert len(spots.stdout.splitlines()) == 1 + 3
    assert Path("town.ledger").read_bytes() == paid

    rehearsed = run("heatmap", "rehearse", "town.parquet", "--public", *asked, "--out", "try.json")
    assert rehearsed.exit_code == 0, rehearsed.stderr
    assert rehearsed.stderr.splitlines()[0] == "rehearsing on town.parquet"
    assert [re.split(r" [0-9]|,", line)[0] for line in rehearsed.stdout.splitlines()] == [
        "seen through a blur of", "similarity", "divergence (kl)", "earth mover's distance", "on average",
        "cell by cell", "what the map says of itself", "  on average mass is", "  similarity",
    ]  # fmt: skip
    assert read_heatmap("try.json").statement.startswith(
        "REHEARSAL on public data, protects nobody"
    )
    assert Path("town.ledger").read_bytes() == paid
    assert run("ledger", "verify", "town.ledger", "--against", "try.json").exit_code == 1


def test_a_rehearsal_need_not_write() -> None:
    asked = ("--user", "user", "--bounds", BOX, "--epsilon", "1", "--levels", "4")
    told = run("heatmap", "rehearse", "rows.parquet", "--public", *asked)
    assert told.exit_code == 0, told.stderr
    assert "earth mover's distance" in told.stdout
    assert {one.name for one in Path().iterdir()} == {"rows.parquet", "city.ledger"}


@pytest.mark.parametrize("verb", sorted(get_command(app).commands["heatmap"].commands))  # type: ignore[attr-defined]
def test_every_verb_takes_quiet(verb: str) -> None:
    asked = get_command(app).commands["heatmap"].commands[verb]  # type: ignore[attr-defined]
    assert any("--quiet" in one.opts for one in asked.params)


def test_a_release_in_json() -> None:
    result = run(*words("rows.parquet", "--out", "map.csv", "--json", epsilon="1/3"))
    assert (result.exit_code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert list(found) == [
        "statement", "method", "parameters", "entry", "left", "area", "written", "ledger", "cost",
        "made_before", "errors", "errors_of", "noise",
    ]  # fmt: skip
    (entry,) = Ledger("city.ledger").statement().entries
    assert found["entry"] == entry.to_json()
    assert found["entry"]["cost"] == {"kind": "PureDP", "epsilon": "1/3"}
    assert found["left"] == {"kind": "PureDP", "epsilon": "299999/3"}
    assert (found["method"], found["written"]) == ("zoom", ["map.csv"])
    assert found["parameters"] == {"blur": 0.01, "worth": "6", "crowd": "6/5"}


def test_the_other_commands_in_json() -> None:
    released()
    drawn = json.loads(run("heatmap", "draw", "map.json", "--out", "map.csv", "--json").stdout)
    assert drawn == {"statement": read_heatmap("map.json").statement, "written": ["map.csv"]}
    spots = json.loads(run("heatmap", "hotspots", "map.json", "-k", "2", "--json").stdout)
    assert list(spots) == [
        "statement",
        "hotspots",
        "distance",
        "lower",
        "gap",
        "marks",
        "k",
        "empty",
        "side",
        "degrees",
        "within",
        "written",
    ]
    columns = ["x", "y", "share", "within", "within_low", "within_high", "real", "tested"]
    assert [list(spot) for spot in spots["hotspots"]] == [columns] * 2
    shares = sorted(spot["share"] for spot in spots["hotspots"])
    assert shares == pytest.approx([0.25, 0.75], abs=0.05)
    command = [
        "rehearse",
        "rows.parquet",
        "--public",
        "--user",
        "user",
        "--bounds",
        BOX,
        "--epsilon",
        "1",
    ]
    result = run("heatmap", *command, "--out", "try.csv", "--levels", "4", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    rehearsed = json.loads(result.stdout)
    assert rehearsed["rehearsal"] is True
    assert list(rehearsed)[:3] == ["rehearsal", "statement", "written"]
    assert 0 <= rehearsed["similarity"] <= 1
    made = json.loads(run("heatmap", "city", "town.parquet", "--users", "7", "--json").stdout)
    assert made["written"] == "town.parquet"
    assert (made["users"], made["rows"]) == (7, pq.read_metadata("town.parquet").num_rows)


def test_a_rehearsal_without_public_rows_is_refused() -> None:
    command = ["rehearse", "rows.parquet", "--user", "user", "--bounds", BOX, "--epsilon", "1"]
    result = run("heatmap", *command, "--out", "try.json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "said aloud by --public" in result.stderr
    assert not Path("try.json").exists()


def test_a_dry_run_reads_no_row_and_charges_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("sfumato.heatmap.pipeline.release_plan.sum_cells")
    before = listing()
    result = run(*words("rows.parquet", "--out", "map.png", "--dry-run"))
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (
        "would cost epsilon 1; epsilon 100000 left in city.ledger; area of 9.63 x 7.78 km around 43.78N "
        "11.26E, cells of 602 x 649 m; nothing was read or charged\n"
    )
    result = run(*words("rows.parquet", "--out", "map.png", "--dry-run", "--json"))
    found = json.loads(result.stdout)
    grid = found.pop("grid")
    assert grid[:2] == pytest.approx([11.2, 43.74], abs=0.05)
    assert found == {
        "cost": {"kind": "PureDP", "epsilon": "1"},
        "left": {"kind": "PureDP", "epsilon": "100000"},
        "area": [11.2, 43.74, 11.32, 43.81],
        "kind": "degrees",
        "crs": "",
        "metre": 0.0,
        "levels": 4,
        "ledger": "city.ledger",
    }
    assert listing() == before


def test_a_dry_run_refuses_what_the_release_would_refuse() -> None:
    assert "left in city.ledger" in refused(
        3, *words(epsilon="100001"), "--out", "map.png", "--dry-run"
    )
    assert "m.doc" in refused(2, *words(), "--out", "m.doc", "--dry-run")


@pytest.mark.parametrize(
    "method", ["zoom", "pyramid", "laplace", "top", "coarse", "privtree", "adaptive", "hierarchy"]
)
def test_every_method_is_charged_what_was_asked(method: str) -> None:
    result = run(
        *words("rows.parquet", "--method", method, "--out", "map.json", "--json", epsilon="1/7")
    )
    assert result.exit_code == 0, result.stderr
    (entry,) = Ledger("city.ledger").statement().entries
    assert entry.cost == PureDP("1/7")
    assert json.loads(result.stdout)["method"] == read_heatmap("map.json").method == method


def test_gaussian_noise_needs_a_budget_with_delta() -> None:
    message = refused(3, *words("rows.parquet", "--method", "gaussian"), "--out", "map.json")
    assert "delta" in message
    create = [
        "ledger",
        "create",
        "soft.ledger",
        "--epsilon",
        "1",
        "--delta",
        "1e-6",
        "--unit",
        "user",
    ]
    assert run(*create, "--source", "city").exit_code == 0
    command = words(
        "rows.parquet", "--method", "gaussian", "--out", "map.json", "--ledger", "soft.ledger"
    )
    result = run(*command)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("epsilon 1, delta 1e-06 for each user")


# areas


@pytest.mark.parametrize("kind", ["Polygon", "Feature", "FeatureCollection", "GeometryCollection"])
def test_the_area_of_a_geojson_file(kind: str) -> None:
    ring = [[11.2, 43.74], [11.32, 43.75, 7.0], [11.3, 43.81], [11.2, 43.74]]
    shape: dict[str, Any] = {"type": "Polygon", "coordinates": [ring]}
    feature = {"type": "Feature", "properties": {"coordinates": [[0, 0]]}, "geometry": shape}
    nothing: dict[str, Any] = {"type": "Feature", "properties": {}, "geometry": None}
    content = {
        "Polygon": shape,
        "Feature": feature,
        "FeatureCollection": {"type": "FeatureCollection", "features": [nothing, feature]},
        "GeometryCollection": {"type": "GeometryCollection", "geometries": [shape]},
    }[kind]
    Path("area.geojson").write_text(json.dumps(content))
    found = released("rows.parquet", "--bounds-file", "area.geojson", area="")
    assert found.area.bounds == (11.2, 43.74, 11.32, 43.81)
    assert_two_places(found)


@pytest.mark.parametrize(
    "text", ["", "{}", "[1, 2]", '{"coordinates": "here"}', "\xff", "[" * 100_000]
)
def test_an_area_file_that_is_none(text: str) -> None:
    Path("area.geojson").write_bytes(text.encode("latin-1"))
    message = refused(
        4, *words("rows.parquet", "--bounds-file", "area.geojson", area=""), "--out", "m.png"
    )
    assert message == "area.geojson is no GeoJSON with coordinates; nothing was read"


@pytest.mark.parametrize("text", ['{"features": 5}', f'{{"coordinates": [{10**400}, 2]}}'])
def test_an_area_file_of_strange_values(text: str) -> None:
    Path("area.geojson").write_text(text)
    message = refused(
        4, *words("rows.parquet", "--bounds-file", "area.geojson", area=""), "--out", "m.png"
    )
    assert message == "area.geojson is no GeoJSON with coordinates; nothing was read"


def test_cells_are_nearly_square_unless_stretched() -> None:
    wide, high = released().area.cell_size
    assert max(wide, high) <= 1.4143 * min(wide, high)
    Path("map.json").unlink()
    stretched = released("rows.parquet", "--cells", "stretched")
    assert stretched.area.grid.bounds == stretched.area.bounds
    assert_two_places(stretched)


def test_any_other_plane() -> None:
    pq.write_table(people((-900.0, 5000.0), (900.0, 5000.0)), "plane.parquet")
    found = released("plane.parquet", "--plane", area="-1000,4000,1000,6000")
    assert (found.area.kind, found.area.unit) == ("plane", "")
    assert share(found, (-900, 5000)) == pytest.approx(0.75, abs=0.02)
    message = refused(
        2, *words("plane.parquet", "--plane", area="-1,-1,1,1"), "--out", "map.geojson"
    )
    assert "GeoJSON is in longitudes and latitudes, the map is in plane" in message


def test_an_area_across_the_antimeridian() -> None:
    pq.write_table(people((179.5, -17.0), (-179.5, -17.0)), "fiji.parquet")
    found = released("fiji.parquet", area="178,-19,-178,-15")
    assert found.area.bounds == (178, -19, 182, -15)
    assert share(found, (179.5, -17)) == pytest.approx(0.75, abs=0.02)
    assert share(found, (180.5, -17)) == pytest.approx(0.25, abs=0.02)
    outs = ["map.png", "map.tif", "map.geojson", "map.h3.csv", "map.html"]
    result = run(
        "heatmap", "draw", "map.json", *(word for out in outs for word in ("--out", out)), "--quiet"
    )
    assert result.exit_code == 0, result.stderr


def test_an_area_found_privately_costs_its_share() -> None:
    pq.write_table(people((11.25, 43.77), (11.27, 43.78)), "near.parquet")
    command = words(
        "near.parquet", "--outer", "10,43,12,45", "--out", "map.json", epsilon=CLEAR, area="private"
    )
    result = run(*command)
    assert result.exit_code == 0, result.stderr
    assert result.stderr.splitlines()[0] == "finding the area inside 10,43,12,45"
    found = read_heatmap("map.json")
    west, south, east, north = found.area.bounds
    assert 10 < west < 11.25 < 11.27 < east < 12
    assert 43 < south < 43.77 < 43.78 < north < 45
    assert (east - west) * (north - south) < 0.1
    costs = [entry.cost for entry in Ledger("city.ledger").statement().entries]
    assert costs == [PureDP(50), PureDP(50), PureDP(900)]


@pytest.mark.parametrize("part", ["1", "-1/10", "2", "some"])
def test_the_share_of_the_area_lies_between_0_and_1(part: str) -> None:
    command = words(
        "rows.parquet", "--outer", "10,43,12,45", "--bounds-share", part, area="private"
    )
    assert "bounds share must" in refused(2, *command, "--out", "m.png")


def test_the_share_of_the_area_is_not_0() -> None:
    command = words("rows.parquet", "--outer", "10,43,12,45", "--bounds-share", "0", area="private")
    assert "bounds share must" in refused(2, *command, "--out", "m.png")


def test_an_area_is_found_privately_across_the_antimeridian() -> None:
    pq.write_table(people((179.5, -17.0), (-179.5, -17.0)), "fiji.parquet")
    found = released("fiji.parquet", "--outer", "170,-20,-170,0", area="private")
    assert found.area.crosses_antimeridian


def test_an_area_found_privately_in_an_image_is_in_pixels() -> None:
    stimulus("seen.png", 160, 120)
    command = ["--bounds", "private", "--image", "seen.png"]
    assert released("rows.parquet", *command, area="").area.kind == "pixels"


def test_a_map_whose_area_was_found_promises_what_both_cost() -> None:
    found = released("rows.parquet", "--outer", "10,43,12,45", area="private")
    assert found.guarantee.loss == PureDP(CLEAR)
    assert found.statement.startswith("epsilon 1000 for each user")
    assert found.statement.endswith(": epsilon 900 for the map, epsilon 100 for finding its area")
    assert run("ledger", "verify", "city.ledger", "--against", "map.json").exit_code == 0


def test_a_note_is_refused_before_the_area_is_paid_for() -> None:
    command = words("rows.parquet", "--outer", "10,43,12,45", "--note", "a\nb", area="private")
    refused(2, *command, "--out", "m.png")


def test_an_area_to_be_found_needs_a_public_outer_box() -> None:
    message = refused(2, *words("rows.parquet", area="private"), "--out", "m.png")
    assert message.startswith("the area is public and must be given, once: --bounds W,S,E,N")


def stimulus(name: str, width: int, height: int) -> str:
    Image.new("RGB", (width, height), "white").save(name)
    return name


def test_gaze_over_its_image() -> None:
    stimulus("seen.png", 160, 120)
    pq.write_table(
        people((20.0, 30.0), (140.0, 90.0)).rename_columns(["user", "x", "y"]), "gaze.parquet"
    )
    command = words(
        "gaze.parquet", "--x", "x", "--y", "y", "--image", "seen.png", "--over", "seen.png",
        "--out", "map.png", "--out", "map.json", epsilon=CLEAR, area="",
    )  # fmt: skip
    result = run(*command)
    assert result.exit_code == 0, result.stderr
    found = read_heatmap("map.json")
    assert (found.area.kind, found.area.bounds) == ("pixels", (0, 0, 160, 120))
    assert share(found, (20, 30)) == pytest.approx(0.75, abs=0.02)
    with Image.open("map.png") as drawn:
        assert drawn.width > 160
    assert run("heatmap", "draw", "map.json", "--out", "plain.png", "--quiet").exit_code == 0
    assert Path("plain.png").read_bytes() != Path("map.png").read_bytes()


@pytest.mark.parametrize("under", ["small.png", "none.png", "text.png"])
def test_an_image_that_does_not_go_under_the_map(under: str) -> None:
    stimulus("seen.png", 160, 120)
    stimulus("small.png", 80, 120)
    Path("text.png").write_text("no picture")
    command = words("rows.parquet", "--image", "seen.png", "--over", under, area="")
    code = 2 if under == "small.png" else 4
    assert under in refused(code, *command, "--out", "map.png")


def test_an_area_of_an_image_too_large_to_be_true() -> None:
    data = bytearray(Path(stimulus("bomb.jpg", 16, 12)).read_bytes())
    place = data.index(b"\xff\xc0") + 5
    data[place : place + 4] = struct.pack(">HH", 50_000, 50_000)
    Path("bomb.jpg").write_bytes(data)
    assert "bomb.jpg" in refused(
        4, *words("rows.parquet", "--image", "bomb.jpg", area=""), "--out", "m.png"
    )


@pytest.mark.parametrize("name", ["none.png", "text.png", "."])
def test_an_area_of_an_image_that_is_none(name: str) -> None:
    Path("text.png").write_text("no picture")
    message = refused(4, *words("rows.parquet", "--image", name, area=""), "--out", "map.png")
    what = "there is no file none.png" if name == "none.png" else f"cannot read {name} as an image"
    assert message == f"{what}; nothing was written"


# several maps, weights


def test_maps_by_a_column_cost_epsilon_once() -> None:
    which = np.where(np.arange(10 * PEOPLE) % 10 < 5, "cat", "a dog/2")
    pq.write_table(people(seen=which), "rows.parquet", compression="none")
    command = words(
        "rows.parquet", "--by", "seen", "--values", "cat, a dog/2,nobody", "--out", "map-{by}.json",
        "--out", "{by}.csv", "--json", epsilon=CLEAR,
    )  # fmt: skip
    result = run(*command)
    assert result.exit_code == 0, result.stderr
    names = [
        "map-cat.json",
        "cat.csv",
        "map-a_dog_2.json",
        "a_dog_2.csv",
        "map-nobody.json",
        "nobody.csv",
    ]
    assert json.loads(result.stdout)["written"] == names
    (entry,) = Ledger("city.ledger").statement().entries
    assert entry.cost == PureDP(CLEAR)
    maps = [read_heatmap(name) for name in names[::2]]
    assert [found.group for found in maps] == ["cat", "a dog/2", "nobody"]
    assert all(found.receipt.entry == entry for found in maps)
    assert [found.tiles.total for found in maps] == pytest.approx(
        [PEOPLE / 2, PEOPLE / 2, 0], abs=1
    )
    assert_two_places(maps[0])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--by", "user"], "--by needs its public values in --values"),
        (["--values", "a,b"], "--by needs its public values in --values"),
        (["--by", "user", "--values", "a,a"], "--values must differ and not be empty"),
        (["--by", "user", "--values", "a,"], "--values must differ and not be empty"),
        (
            ["--by", "user", "--values", "a,b", "--out", "more.csv"],
            "every one of --out needs {by} in its name",
        ),
        (["--by", "user", "--values", "a/b,a?b"], "every output needs its own file"),
    ],
)
def test_maps_by_a_column_are_named_in_public(more: list[str], said: str) -> None:
    assert said in refused(2, *words("rows.parquet", *more), "--out", "map-{by}.png")


def test_weights_on_a_public_lattice() -> None:
    """Each user looks 0.9 s at one place and 0.1 s at another; what is below a step counts 0."""
    user = [f"u{number}" for number in range(PEOPLE) for _ in range(4)]
    places = np.array([HERE, THERE, THERE, THERE] * PEOPLE)
    seconds = [0.9004, 0.1009, 0.0009, -1.0] * PEOPLE
    pq.write_table(
        pa.table({"user": user, "lon": places[:, 0], "lat": places[:, 1], "s": seconds}),
        "looks.parquet",
    )
    found = released("looks.parquet", "--weight", "s", "--weight-step", "0.001")
    assert share(found, HERE) == pytest.approx(0.9, abs=0.02)
    assert share(found, THERE) == pytest.approx(0.1, abs=0.02)
    Path("map.json").unlink()
    capped = released(
        "looks.parquet", "--weight", "s", "--weight-step", "0.001", "--weight-cap", "100"
    )
    assert share(capped, HERE) == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(
    "more",
    [
        ["--weight-step", "0"],
        ["--weight-step", "-1"],
        ["--weight-step", "x"],
        ["--weight-cap", "0"],
    ],
)
def test_weights_need_a_lattice(more: list[str]) -> None:
    refused(2, *words("rows.parquet", "--weight", "lon", *more), "--out", "m.png")


def test_rows_without_a_user_must_be_said_aloud() -> None:
    command = [word for word in words() if word not in ("--user", "user")]
    assert "--one-row-one-user" in refused(2, *command, "--out", "map.json")
    assert "--one-row-one-user" in refused(2, *words(), "--one-row-one-user", "--out", "map.json")
    result = run(*command, "--one-row-one-user", "--epsilon", CLEAR, "--out", "map.json")
    assert result.exit_code == 0, result.stderr
    assert read_heatmap("map.json").tiles.total == pytest.approx(10 * PEOPLE, abs=1)


# where rows come from


def test_every_source_gives_the_same_places() -> None:
    rows = people()
    text = rows.to_pandas()
    text.to_csv("rows.csv", index=False)
    text.to_csv("rows.txt", index=False, sep=";")
    text.to_csv("rows.tsv", index=False, sep="\t")
    text.to_json("rows.ndjson", orient="records", lines=True)
    Path("parts").mkdir()
    for number in range(4):
        pq.write_table(rows.slice(100 * number, 100), f"parts/part-{number}.parquet")
    with duckdb.connect("rows.duckdb") as database:
        database.execute("create table visits as select * from 'rows.parquet'")
    for source in (
        ["rows.csv"],
        ["rows.txt", "--delimiter", ";"],
        ["rows.tsv"],
        ["rows.ndjson"],
        ["parts/part-*.parquet"],
        ["parts"],
        ["rows.duckdb::visits"],
        ["visits", "--connection", "duckdb://rows.duckdb"],
        ["rows.parquet", "--engine", "polars"],
        ["rows.csv", "--engine", "polars"],
    ):
        gc.collect()  # a DuckDB file is closed with its connection; a command of its own would have ended
        found = released(*source, "--overwrite", "--other-table")
        assert_two_places(found)
        assert found.tiles.total == pytest.approx(PEOPLE, abs=1), source


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (["none.parquet"], "there is no file none.parquet; nothing was read"),
        (["part-*.csv"], "there is no file part-*.csv; nothing was read"),
        (["rows.xlsx"], "a file must end in one of .csv, "),
        (["none.duckdb::visits"], "there is no database none.duckdb; nothing was read"),
        (
            ["rows.duckdb::none"],
            "there is no table 'none' in rows.duckdb, only 'visits'; nothing was read",
        ),
        (["visits", "--connection", "duckdb://none.duckdb"], "there is no database none.duckdb"),
        (["none", "--connection", "duckdb://rows.duckdb"], "there is no table 'none' in duckdb"),
        (
            ["visits", "--connection", "nonsense://me:secret@host/db"],
            "could not connect to nonsense://...",
        ),
        (["corrupt.parquet"], "corrupt.parquet could not be read as Parquet; nothing was read"),
        (["corrupt.parquet", "--engine", "polars"], "corrupt.parquet could not be read as Parquet"),
        (["empty.parquet"], "empty.parquet could not be read as Parquet; nothing was read"),
        (
            ["empty.csv"],
            "empty.csv must begin with a line that names its columns; nothing was read",
        ),
        (["torn.parquet"], "duckdb could not read or count the rows of city; nothing was charged"),
        (["torn.parquet", "--engine", "polars"], "polars could not read or count the rows of city"),
        (
            ["rows.parquet", "--user", "nobody"],
            "there is no column 'nobody', only 'user', 'lon', 'lat'",
        ),
        (["rows.parquet", "--weight", "ms"], "there is no column 'ms', only 'user', 'lon', 'lat'"),
    ],
)
def test_rows_that_cannot_be_read_cost_nothing(source: list[str], said: str) -> None:
    Path("corrupt.parquet").write_bytes(Path("rows.parquet").read_bytes()[:-100])
    Path("empty.parquet").touch()
    Path("empty.csv").touch()
    pq.write_table(people(), "torn.parquet", compression="zstd", use_dictionary=False)
    torn = bytearray(Path("torn.parquet").read_bytes())
    torn[40:400] = bytes(360)  # its schema stands, its pages do not
    Path("torn.parquet").write_bytes(torn)
    Path("rows.xlsx").touch()
    with duckdb.connect("rows.duckdb") as database:
        database.execute("create table visits as select 1 as user")
    message = refused(4, *words(*source), "--out", "map.png")
    assert message.startswith(said)
    assert "secret" not in message


@pytest.mark.parametrize(
    ("code", "command"),
    [
        (2, words(area="")),
        (2, words(epsilon="much")),
        (3, words(epsilon="100001")),
        (4, words("none.parquet")),
        (4, words("rows.parquet", "--ledger", "none.ledger")),
    ],
)
def test_a_mistake_in_json(code: int, command: list[str]) -> None:
    sentence, before = refused(code, *command, "--out", "map.png"), listing()
    result = run(*command, "--out", "map.png", "--json")
    assert (result.exit_code, result.stdout) == (code, "")
    assert json.loads(result.stderr) == {"error": {"message": sentence, "exit": code}}
    assert listing() == before


def test_a_mistake_is_one_line() -> None:
    result = run(*words("none.parquet", "--out", "map.png"))
    assert (result.exit_code, result.stdout) == (4, "")
    assert result.stderr == "sfumato: there is no file none.parquet; nothing was read\n"


# budgets and ledgers


def test_a_spent_ledger_refuses_before_anything_is_read() -> None:
    Ledger.create("small.ledger", PureDP(1), unit="user", source="city")
    small = ["--ledger", "small.ledger"]
    assert run(*words("rows.parquet", *small, "--out", "map.json")).exit_code == 0
    Path("nowhere").mkdir()
    Path("nowhere/rows.parquet").write_text("cannot be read")
    message = refused(3, *words("nowhere/rows.parquet", *small, epsilon="1/2"), "--out", "map.png")
    assert message == "asked epsilon 0.5, 0 left in small.ledger; nothing was released"
    private = words("nowhere/rows.parquet", *small, "--outer", "10,43,12,45", area="private")
    assert "0 left in small.ledger" in refused(3, *private, "--out", "map.png")


def test_an_area_found_privately_must_leave_enough_for_the_map() -> None:
    """All of it is affordable, or none of it is charged."""
    Ledger.create("small.ledger", PureDP("0.95"), unit="user", source="city")
    command = words(
        "rows.parquet", "--ledger", "small.ledger", "--outer", "10,43,12,45", area="private"
    )
    assert (
        "asked epsilon 0.05 and epsilon 0.05 and epsilon 0.9, epsilon 0.95 left in small.ledger"
        in refused(3, *command, "--out", "map.png")
    )


def test_a_locked_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "BUSY_SECONDS", 0.05)
    before = Path("city.ledger").read_bytes()
    with ledger_file.locked(Path("city.ledger")):
        result = run(*words("rows.parquet", "--out", "map.png", "--quiet"))
    assert (result.exit_code, result.stdout) == (4, "")
    assert result.stderr == (
        "sfumato: city.ledger was held by another process for 0.05 s; "
        "nothing was charged or released, try again\n"
    )
    assert Path("city.ledger").read_bytes() == before
    assert not Path("map.png").exists()


def test_a_ledger_of_another_relation() -> None:
    Ledger.create("other.ledger", PureDP(9), unit="user", source="city", neighbors=ReplaceUser())
    message = refused(4, *words("rows.parquet", "--ledger", "other.ledger"), "--out", "map.png")
    assert message.startswith("other.ledger accounts for 'one user's data replaced'")
    assert message.endswith("; nothing was charged")


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_a_ledger_of_the_local_model(more: list[str]) -> None:
    Ledger.create("own.ledger", PureDP(9), unit="user", source="city", model="local")
    message = refused(
        4, *words("rows.parquet", "--ledger", "own.ledger"), "--out", "map.png", *more
    )
    assert message.startswith("own.ledger is of the local model")
    assert message.endswith("which takes a ledger of the central model; nothing was charged")


def test_a_dry_run_refuses_a_ledger_of_another_relation() -> None:
    Ledger.create("other.ledger", PureDP(9), unit="user", source="city", neighbors=ReplaceUser())
    refused(4, *words("rows.parquet", "--ledger", "other.ledger", "--dry-run"), "--out", "map.png")


def test_the_unit_of_the_ledger_is_what_the_user_column_names() -> None:
    Ledger.create("homes.ledger", PureDP(9), unit="household", source="city")
    result = run(*words("rows.parquet", "--ledger", "homes.ledger", "--out", "map.json"))
    assert result.stdout.startswith("epsilon 1 for each household (one user added or removed)")


@pytest.mark.parametrize("name", ["none.ledger", "rows.parquet", "."])
def test_a_ledger_that_is_none(name: str) -> None:
    assert name in refused(4, *words("rows.parquet", "--ledger", name), "--out", "map.png")


@pytest.mark.parametrize("epsilon", ["", "much", "nan", "inf", "1/0", "0", "-1", "1e-9", "1e-400"])
def test_epsilon_must_make_sense(epsilon: str) -> None:
    refused(2, *words(epsilon=epsilon), "--out", "map.png")


@pytest.mark.parametrize("epsilon", ["0", "-1"])
def test_a_bad_epsilon_is_called_by_its_name(epsilon: str) -> None:
    assert "epsilon must" in refused(2, *words(epsilon=epsilon), "--out", "map.png")


@pytest.mark.parametrize(
    ("area", "said"),
    [
        ("", "the area is public and must be given, once"),
        ("1,2,3", "bounds are four numbers west,south,east,north, got '1,2,3'"),
        ("a,b,c,d", "bounds are four numbers"),
        ("nan,2,3,4", "bounds must be finite"),
        ("11.2,43.8,11.3,43.7", "latitudes must rise"),
        ("11.2,43.7,11.2,43.8", "west and east must differ"),
        ("-200,43,11,44", "longitudes must lie in -180..180"),
        ("-180,-90,180,90", "no square on the Earth holds"),
    ],
)
def test_bounds_must_make_sense(area: str, said: str) -> None:
    assert refused(2, *words(area=area), "--out", "map.png").startswith(said)


def test_one_area_is_enough() -> None:
    stimulus("seen.png", 16, 12)
    message = refused(2, *words("rows.parquet", "--image", "seen.png"), "--out", "map.png")
    assert message.startswith("the area is public and must be given, once")


@pytest.mark.parametrize(
    ("outs", "said"),
    [
        (["map.doc"], "the name of an output must end in one of .png, "),
        (["map"], "the name of an output must end in one of .png, "),
        (["none/map.png"], "the folder of none/map.png must exist"),
        (["there.png"], "there.png exists already and is kept"),
        (["rows.parquet.json", "there.png"], "there.png exists already and is kept"),
        (["map.png", "./map.png"], "every output needs its own file"),
    ],
)
def test_outputs_are_checked_before_anything_is_paid(outs: list[str], said: str) -> None:
    Path("there.png").write_text("mine")
    Path("nowhere.parquet").write_text("cannot be read")
    command = words("nowhere.parquet", *(word for out in outs for word in ("--out", out)))
    assert refused(8 if "exists already" in said else 2, *command).startswith(said)


@pytest.mark.parametrize("name", ["ledger.json", "rows.csv"])
def test_an_output_never_replaces_the_ledger_or_the_rows(name: str) -> None:
    Ledger.create("ledger.json", PureDP(9), unit="user", source="city")
    people().to_pandas().to_csv("rows.csv", index=False)
    refused(2, *words("rows.csv", "--ledger", "ledger.json", "--out", name, "--overwrite"))


def test_a_file_is_replaced_only_when_that_is_asked_for() -> None:
    Path("map.json").write_text("mine")
    assert_two_places(released("rows.parquet", "--overwrite"))


@pytest.mark.parametrize(
    "option", [["--levels", "17"], ["--levels", "-1"], ["--method", "magic"], ["--engine", "x"]]
)
def test_values_the_options_do_not_have(option: list[str]) -> None:
    before = listing()
    result = run(*words("rows.parquet", *option, "--out", "map.png"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr
    assert listing() == before


@pytest.mark.parametrize("missing", ["--epsilon", "--ledger", "--out"])
def test_what_must_be_said(missing: str) -> None:
    command = words("rows.parquet", "--out", "map.png")
    place = command.index(missing)
    result = run(*command[:place], *command[place + 2 :])
    assert (result.exit_code, result.stdout) == (2, "")
    assert missing in result.stderr


def test_a_note_is_one_line() -> None:
    assert "a note must be printable" in refused(
        2, *words("rows.parquet", "--note", "a\nb"), "--out", "m.png"
    )


# after the charge


def full(*_: Any, **__: Any) -> NoReturn:
    raise OSError(28, "No space left on device")


def test_a_map_that_cannot_be_written_is_kept_beside_the_ledger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(picture, "png", full)
        result = run(
            *words("rows.parquet", "--out", "map.csv", "--out", "map.png", "--quiet", epsilon=CLEAR)
        )
    assert (result.exit_code, result.stdout) == (4, "")
    (entry,) = Ledger("city.ledger").statement().entries
    assert result.stderr.startswith("sfumato: could not write map.png (")
    assert "No space left" in result.stderr
    assert (
        "was charged and its counts are kept: sfumato heatmap resume city.ledger" in result.stderr
    )
    assert not Path("map.png").exists()
    before = Path("map.csv").read_bytes()
    Path("rows.parquet").unlink()  # what was drawn needs no rows
    result = run("heatmap", "resume", "city.ledger", "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["results"][0]["made_before"] is True
    assert (Path("map.csv").read_bytes(), Path("map.png").exists()) == (before, True)
    assert run("heatmap", "resume", "city.ledger", "--out", "m.json").stdout == (
        "city.ledger: nothing to finish\n"
    )
    assert Ledger("city.ledger").statement().entries == (entry,)


def test_all_maps_of_a_failed_write_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(people(seen=["a", "b"] * (5 * PEOPLE)), "rows.parquet")
    with monkeypatch.context() as broken:
        broken.setattr(tables, "cell_table", full)
        result = run(
            *words("rows.parquet", "--by", "seen", "--values", "a,b", "--out", "{by}.csv", "--json")
        )
    assert (result.exit_code, result.stdout) == (4, "")
    assert "its counts are kept" in json.loads(result.stderr)["error"]["message"]
    assert run("heatmap", "resume", "city.ledger", "--out", "{by}.json").exit_code == 0
    assert [read_heatmap(f"{name}.json").group for name in "ab"] == ["a", "b"]


def test_a_map_of_a_full_disk_is_finished_when_there_is_room(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as disk:
        fill(disk)
        result = run(*words("rows.parquet", "--out", "map.json", "--quiet"))
    assert (result.exit_code, result.stdout) == (4, "")
    there = sorted(path.name for path in folder.iterdir())
    assert there == ["city.ledger", "city.ledger.d", "rows.parquet"]
    assert run("heatmap", "resume", "city.ledger").exit_code == 0
    assert read_heatmap("map.json").statement == STATEMENT
    assert list((folder / "city.ledger.d").iterdir()) == []


# defaults


def test_defaults_from_the_file_the_variables_and_the_command() -> None:
    Path("sfumato.toml").write_text(
        "[heatmap.release]\n"
        f'user = "user"\nbounds = "{BOX}"\nledger = "city.ledger"\nlevels = 3\n'
        'weight-step = "1/2"\nout = ["map.json"]\n'
    )
    command = ["heatmap", "release", "rows.parquet", "--json", "--overwrite", "--epsilon", "1/4"]

    def levels(*more: str, **env: str) -> int:
        result = run(*command, *more, **env)
        assert result.exit_code == 0, result.stderr
        found = json.loads(result.stdout)
        assert found["written"] == ["map.json"]
        assert found["entry"]["cost"]["epsilon"] == "1/4"
        return read_heatmap("map.json").area.grid.levels

    assert levels() == 3
    assert levels(SFUMATO_HEATMAP_RELEASE_LEVELS="4") == 4
    assert levels("--levels", "5", SFUMATO_HEATMAP_RELEASE_LEVELS="4") == 5
    assert Ledger("city.ledger").statement().left == PureDP(100_000 - Fraction(3, 4))


def test_a_default_that_no_command_has() -> None:
    Path("sfumato.toml").write_text('[heatmap.release]\nepsilom = "1"\n')
    result = run(*words("rows.parquet", "--out", "map.png"))
    assert (result.exit_code, result.stdout) == (4, "")
    assert "'heatmap.release.epsilom', which is no command or option" in result.stderr


# what is saved


@pytest.mark.parametrize(
    "command", [["draw", "map.json", "--out", "map.png"], ["hotspots", "map.json"]]
)
@pytest.mark.parametrize("content", [None, "", "{}", "[]", "\xff"])
def test_a_saved_map_that_is_none(command: list[str], content: str | None) -> None:
    if content is not None:
        Path("map.json").write_bytes(content.encode("latin-1"))
    result = run("heatmap", *command)
    assert (result.exit_code, result.stdout) == (4, "")
    assert result.stderr.startswith("sfumato: ")
    assert "map.json" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not Path("map.png").exists()


def test_drawing_keeps_what_is_there() -> None:
    released()
    assert "exists already and is kept" in refused(
        8, "heatmap", "draw", "map.json", "--out", "map.json"
    )
    assert "must end in one of" in refused(2, "heatmap", "draw", "map.json", "--out", "map.doc")


@pytest.mark.parametrize("name", ["town.csv", "rows.parquet", "none/town.parquet"])
def test_a_city_goes_to_a_new_file(name: str) -> None:
    before = listing()
    result = run("heatmap", "city", name, "--users", "3")
    assert result.exit_code in (2, 4)
    assert len(result.stderr.splitlines()) == 1
    assert listing() == before


def test_a_gaze_city() -> None:
    command = [
        "heatmap",
        "city",
        "gaze.parquet",
        "--family",
        "gaze",
        "--bounds",
        "0,0,160,120",
        "--users",
        "9",
    ]
    assert run(*command).exit_code == 0
    table = pq.read_table("gaze.parquet")
    assert table.column_names == ["user", "x", "y", "ms"]
    assert len(set(table["user"].to_pylist())) == 9

"""`--prior` in careful and in careless hands: free, told of, and never the private table."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from sfumato.cli.main import app
from sfumato.heatmap import HeatmapRelease, read_heatmap, read_prior
from sfumato.heatmap.inference import Prior
from sfumato.privacy import Ledger, PureDP

pytestmark = pytest.mark.unit

BOX = "11.20,43.74,11.32,43.81"
STATEMENT = "epsilon 1 for each user (one user added or removed), central model"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Forty people at one place, a ledger, and a road through it; nothing from outside."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("SFUMATO_")]:
        monkeypatch.delenv(name)
    table = pa.table(
        {"user": [f"u{k}" for k in range(40)], "lon": [11.225] * 40, "lat": [43.755] * 40}
    )
    pq.write_table(table, "rows.parquet")
    Ledger.create("city.ledger", PureDP(10), unit="user", source="city")
    road(43.755)
    return tmp_path


def road(latitude: float, name: str = "roads.geojson") -> None:
    line = {"type": "LineString", "coordinates": [[11.21, latitude], [11.31, latitude]]}
    Path(name).write_text(json.dumps(line))


def run(*words: str) -> Result:
    result = CliRunner().invoke(app, list(words))
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result


def asked(*more: str, rows: str = "rows.parquet", area: str = BOX) -> list[str]:
    return [
        "heatmap", "release", rows, "--user", "user", "--bounds", area, "--epsilon", "1",
        "--ledger", "city.ledger", "--levels", "5", "--method", "pyramid", "--quiet", *more,
    ]  # fmt: skip


def left() -> str:
    return str(Ledger("city.ledger").statement().left)


def refused(*command: str) -> str:
    before = sorted(Path().rglob("*"))
    result = run(*command)
    assert result.exit_code in (2, 4), result.output
    assert left() == "epsilon 10"
    assert sorted(Path().rglob("*")) == before
    return result.stderr.strip()


def test_a_release_follows_its_prior_for_nothing() -> None:
    result = run(*asked("--prior", "roads.geojson", "--out", "map.json", "--out", "map.html"))
    assert result.stdout.startswith(
        f"{STATEMENT}\nleft in city.ledger: epsilon 9\non average mass is "
    )
    found = read_heatmap("map.json")
    assert found.prior is not None
    assert str(found.prior).startswith("prior roads.geojson (sha256 ")
    assert str(found.prior) in Path("map.html").read_text()
    entry = Ledger("city.ledger").statement().entries[-1]
    assert "prior" not in json.dumps(
        entry.to_json()
    )  # nobody paid for it, so the ledger does not know it
    assert "roads" not in json.dumps(entry.to_json())


def test_a_saved_map_can_follow_one_later() -> None:
    assert run(*asked("--out", "map.json")).exit_code == 0
    drawn = ["heatmap", "draw", "map.json", "--prior", "roads.geojson", "--quiet"]
    assert run(*drawn, "--out", "again.json").exit_code == 0
    plain, found = read_heatmap("map.json"), read_heatmap("again.json")
    assert (found.statement, found.receipt) == (plain.statement, plain.receipt)
    assert found.tiles.total == pytest.approx(plain.tiles.total, rel=1e-12)
    # Noise says which tiles there are, so the road itself need not gain: the whole map is compared.
    assert found.to_json() == plain.sharpened(read_prior("roads.geojson")).to_json()
    assert left() == "epsilon 9"
    twice = run("heatmap", "draw", "again.json", "--prior", "roads.geojson", "--out", "third.png")
    assert "a map follows one prior" in twice.stderr
    kept = run(*drawn, "--out", "roads.geojson", "--overwrite")
    assert "must not replace the prior" in kept.stderr


def test_a_rehearsal_shows_what_a_prior_is_worth(rng: np.random.Generator) -> None:
    """People on one road: with it the map is nearer to them than with one elsewhere."""
    places = {"lon": 11.21 + 0.1 * rng.random(400), "lat": np.full(400, 43.7552)}
    pq.write_table(pa.table({"user": [f"u{k}" for k in range(400)], **places}), "made-up.parquet")
    road(43.7552, "right.geojson")
    road(43.79, "wrong.geojson")
    worth = {}
    for name in ("right", "wrong"):
        result = run(
            "heatmap", "rehearse", "made-up.parquet", "--public", "--user", "user", "--bounds", BOX,
            "--epsilon", "1", "--levels", "6", "--method", "coarse", "--prior", f"{name}.geojson",
            "--out", f"{name}.json", "--json",
        )  # fmt: skip
        assert result.exit_code == 0, result.stderr
        worth[name] = json.loads(result.stdout)["without_blur"]["similarity"]
        assert read_heatmap(f"{name}.json").prior is not None
    assert worth["right"] > 2 * worth["wrong"]


def test_the_private_table_is_no_prior_under_any_name() -> None:
    np.save("rows.npy", np.ones((2, 2)))
    os.link("rows.npy", "copy.npy")
    Path("link.npy").symlink_to("rows.npy")
    Path("many").mkdir()
    np.save("many/a.npy", np.ones((2, 2)))
    for rows, prior in [
        ("rows.npy", "rows.npy"),
        ("rows.npy", "copy.npy"),
        ("rows.npy", "link.npy"),
        ("rows.npy::visits", "./rows.npy"),
        ("many/*.npy", "many/a.npy"),
        ("many", "many/a.npy"),
    ]:
        said = refused(*asked("--prior", prior, "--out", "map.json", rows=rows))
        assert (
            said
            == f"sfumato: a prior is public, {Path(prior)} is the private table itself; nothing was charged"
        )


def test_a_prior_of_no_use_is_refused_before_anything_is_charged() -> None:
    road(10.0, "far.geojson")
    np.save("bad.npy", np.array([[np.nan, 1.0]]))
    for name, message in [
        ("far.geojson", "inside the area, far.geojson has none"),
        ("bad.npy", "finite and at least 0"),
        ("none.png", "there is no file"),
        ("rows.parquet", "the private table itself"),
        ("city.ledger", "a prior ends in one of"),
    ]:
        said = refused(*asked("--prior", name, "--out", "map.json"))
        assert message in said
        assert said.endswith("; nothing was charged")
    assert "must not replace" in refused(
        *asked("--prior", "roads.geojson", "--out", "roads.geojson", "--overwrite")
    )


@pytest.mark.fault
@pytest.mark.parametrize("problem", [MemoryError(), ValueError("x")])
def test_what_is_paid_for_is_written_whatever_happens_to_the_prior(
    problem: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: HeatmapRelease, prior: Prior) -> HeatmapRelease:
        raise problem

    monkeypatch.setattr(HeatmapRelease, "sharpened", fail)
    result = run(*asked("--prior", "roads.geojson", "--out", "map.json"))
    assert result.exit_code == 0
    assert "could not follow roads.geojson" in result.stderr
    assert "the map is paid for, and written without it" in result.stderr
    assert read_heatmap("map.json").prior is None
    assert left() == "epsilon 9"


def test_a_prior_goes_with_an_area_found_in_private() -> None:
    outer = ["--outer", "11,43.6,11.6,43.9", "--prior", "roads.geojson", "--out", "map.json"]
    result = run(*asked(*outer, area="private"))
    assert result.exit_code == 0, result.stderr
    assert read_heatmap("map.json").prior is not None

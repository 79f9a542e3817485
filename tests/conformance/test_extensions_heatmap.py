"""A map method and an output format from outside the package, through every face of heatmaps."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from sfumato.cli.main import app
from sfumato.errors import InvalidParameter
from sfumato.heatmap import (
    HeatmapRelease,
    Tiles,
    draw_map,
    map_totals,
    read_heatmap,
    register_format,
    register_method,
    rehearse_heatmap,
    release_heatmap,
)
from sfumato.heatmap.accuracy import noise_share
from sfumato.heatmap.benchmark import run_leaderboard
from sfumato.heatmap.export import MapFormat, WriteOptions, registered_formats, unregister_format
from sfumato.heatmap.methods import method_named, registered_methods, unregister_method
from sfumato.heatmap.methods.baselines import FlatLaplace
from sfumato.privacy import UNITS, Bound, Ledger, PureDP, laplace_scale
from sfumato.report import write_leaderboard
from sfumato.spaces import Grid

pytestmark = pytest.mark.unit

BOX = (11.20, 43.74, 11.32, 43.81)


@dataclass(frozen=True)
class Mine:
    """Noise on one coarse level: three members, and no class of the package inherited."""

    level: int = 2
    keep: Fraction = Fraction(1)
    name: ClassVar[str] = "mine"

    def mechanism(self, epsilon: Fraction, bound: Bound, grid: Grid) -> FlatLaplace:
        scale = laplace_scale(epsilon, sensitivity=bound.required("l1", by="mine"))
        return FlatLaplace(min(self.level, grid.levels), scale)

    def estimate(self, released: Any, grid: Grid) -> tuple[Tiles, ...]:
        (level,) = released.levels
        masses = np.maximum(level.values / UNITS, 0).reshape(released.groups, -1)
        codes = np.arange(masses.shape[1])
        levels = np.full(codes.size, level.level)
        return tuple(Tiles(grid, levels, codes, float(self.keep) * one) for one in masses)


def as_lines(release: HeatmapRelease, options: WriteOptions) -> bytes:
    """A format of one line for each cell of a level."""
    shares = release.image(min(options.level or 2, release.area.grid.levels))
    return ("\n".join([release.statement, *map(repr, shares.ravel().tolist())]) + "\n").encode()


@dataclass(frozen=True)
class EntryPoint:
    """What importlib.metadata gives for an installed package."""

    name: str
    value: Any

    def load(self) -> Any:
        return self.value


@pytest.fixture(params=["registered", "entry point"])
def extended(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Both ways in: a call of `register`, and the metadata of a package."""
    if request.param == "registered":
        register_method(Mine)
        register_format(".mine", as_lines, description="one line a cell")
        yield
        unregister_method("mine")
        unregister_format(".mine")
        return
    true = importlib.metadata.entry_points
    found = {
        "sfumato.map_methods": [EntryPoint("mine", Mine)],
        "sfumato.map_formats": [EntryPoint("mine", MapFormat(".mine", as_lines))],
    }

    def entry_points(**asked: Any) -> Any:
        return found.get(asked.get("group", ""), true(**asked))

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    yield


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    user = np.arange(40)
    rows = {
        "user": user,
        "lon": np.where(user % 4 > 0, 11.225, 11.295),
        "lat": np.where(user % 4 > 0, 43.755, 43.795),
    }
    pq.write_table(pa.table(rows), "rows.parquet")
    Ledger.create("city.ledger", PureDP(100), unit="user", source="city")


def run(*words: str) -> Result:
    done = CliRunner().invoke(app, list(words))
    assert isinstance(done.exception, SystemExit | None), done.exception
    return done


def release(*more: str) -> Result:
    return run(
        "heatmap", "release", "rows.parquet", "--user", "user", "--epsilon", "2", "--levels", "4",
        "--bounds", ",".join(map(str, BOX)), "--ledger", "city.ledger", *more,
    )  # fmt: skip


@pytest.mark.usefixtures("extended")
def test_the_command_takes_both() -> None:
    done = release(
        "--method", "mine", "--method-option", "level=3", "--json",
        "--out", "map.mine", "--out", "map.json", "--out", "map.png",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["method"], told["parameters"]["level"]) == ("mine", 3)
    assert told["written"] == ["map.mine", "map.json", "map.png"]
    assert Path("map.mine").read_text().startswith("epsilon 2 for each user")
    saved = read_heatmap("map.json")
    assert (saved.method, saved.posterior) == ("mine", None)
    # Its noise is at least that of epsilon, though it does not say how much there is.
    assert noise_share(saved) == pytest.approx(2 * (1 / 2) / saved.tiles.total)
    assert run("heatmap", "draw", "map.json", "--out", "again.mine").exit_code == 0
    assert Path("again.mine").read_bytes() == Path("map.mine").read_bytes()
    assert run("heatmap", "hotspots", "map.json", "-k", "2").exit_code == 0


@pytest.mark.usefixtures("extended")
def test_the_call_takes_both_and_groups_too() -> None:
    named: dict[str, Any] = {"user": "user", "bounds": BOX, "levels": 4, "epsilon": 1}
    by_name = release_heatmap(
        "rows.parquet", ledger="city.ledger", method="mine", outputs="one.mine", **named
    )
    assert by_name.method == "mine"
    by_value = release_heatmap(
        "rows.parquet",
        ledger="city.ledger",
        method=Mine(level=1),
        by="user",
        groups=("1", "2"),
        outputs="{by}.mine",
        **named,
    )
    assert by_value.written == ("1.mine", "2.mine")
    zone = {"all": [[11.2, 43.74], [11.32, 43.74], [11.32, 43.81], [11.2, 43.81]]}
    (total,) = map_totals(by_name.maps[0], zone).zones
    assert total.low is None
    assert draw_map(by_name.maps[0], ["two.mine"]).written == ("two.mine",)


@pytest.mark.usefixtures("extended")
def test_comparison_leaderboard_and_report_take_the_method() -> None:
    rehearsed = rehearse_heatmap(
        "rows.parquet", public=True, epsilon=10, method="mine", user="user", bounds=BOX, levels=4
    )
    assert 0 < rehearsed.errors.similarity <= 1
    result = run_leaderboard(
        methods=["mine", "laplace"],
        epsilons=[1.0],
        users=50,
        runs=2,
        chance=lambda seed: np.random.default_rng(list(seed)),
    )
    assert {score.method for score in result.scores} == {"mine", "laplace"}
    write_leaderboard(result, "page.html")
    assert "mine" in Path("page.html").read_text()


def test_what_is_not_known_is_refused_before_a_charge() -> None:
    done = release("--method", "mine", "--out", "map.json")
    assert done.exit_code == 2
    assert "a map method is one of zoom, pyramid, " in done.stderr
    done = release("--out", "map.mine")
    assert done.exit_code == 2
    assert "must end in one of .png, " in done.stderr
    done = release("--method", "pyramid", "--method-option", "depth=3", "--out", "map.json")
    assert done.exit_code == 2
    assert "method pyramid has no option 'depth', it has width, decay" in done.stderr
    done = release("--method", "pyramid", "--method-option", "width", "--out", "map.json")
    assert "--method-option is name=value, got 'width'" in done.stderr
    assert not Ledger("city.ledger").statement().entries


def test_names_are_taken_once() -> None:
    with pytest.raises(InvalidParameter, match="there is a map method 'zoom' already"):
        register_method(Mine, name="zoom")
    with pytest.raises(InvalidParameter, match="needs a name of one word"):
        register_method(Mine, name="two words")
    with pytest.raises(InvalidParameter, match=r"there is a format \.png already"):
        register_format(".png", as_lines)
    with pytest.raises(InvalidParameter, match="a suffix is a dot and small letters"):
        register_format("mine", as_lines)
    with pytest.raises(InvalidParameter, match="no map method 'mine' was registered"):
        unregister_method("mine")
    with pytest.raises(InvalidParameter, match=r"no format '\.mine' was registered"):
        unregister_format(".mine")
    assert "mine" not in registered_methods()
    assert ".mine" not in registered_formats()


def test_options_are_read_as_their_types() -> None:
    assert method_named("pyramid", options={"width": "40", "decay": "0.5"}) == method_named(
        "pyramid", options={"width": 40, "decay": 0.5}
    )
    with pytest.raises(InvalidParameter, match="width is a number, got 'wide'"):
        method_named("pyramid", options={"width": "wide"})
    assert method_named("top", flags={"top": "0.02", "width": 3}) == method_named(
        "top", options={"share": "1/5000"}
    )


def test_a_class_is_no_method_and_none_no_ledger() -> None:
    asked: dict[str, Any] = {"user": "user", "bounds": BOX, "levels": 4, "epsilon": 1}
    with pytest.raises(
        InvalidParameter, match=r"got the class Mine: write Mine\(\); nothing was ch"
    ):
        release_heatmap("rows.parquet", ledger="city.ledger", method=Mine, **asked)  # type: ignore[arg-type]
    with pytest.raises(
        InvalidParameter, match=r"by Ledger\.create\(.*got None; nothing was charged"
    ):
        release_heatmap("rows.parquet", ledger=None, **asked)  # type: ignore[arg-type]
    assert not Ledger("city.ledger").statement().entries

"""Heatmaps from Python: what is misread is refused before a charge, and what is paid for is kept."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pyarrow as pa
import pytest

from sfumato.errors import InvalidInput, InvalidParameter, SolverFailed
from sfumato.heatmap import (
    HeatmapRelease,
    ReleaseResult,
    plan_release,
    rehearse_heatmap,
    release,
    release_heatmap,
    resume_heatmap,
)
from sfumato.heatmap.methods.baselines import FlatMethod, GaussianMethod
from sfumato.heatmap.pipeline.options import Rows
from sfumato.privacy import ZCDP, ApproxDP, Bound, DiscreteGaussian, KeyedNoise, Ledger, PureDP
from sfumato.records import Columns
from sfumato.spaces import Grid, area_in_degrees

pytestmark = pytest.mark.unit

BOX = (11.20, 43.74, 11.32, 43.81)
AREA = area_in_degrees(BOX, 4)
COLUMNS = Columns("user", "lon", "lat")
ROWS = pa.table({"user": ["ann", "bob"], "lon": [11.25, 11.3], "lat": [43.77, 43.78]})
WORDS: dict[str, Any] = {"user": "user", "bounds": BOX, "levels": 4}
PRIVATE: dict[str, Any] = {"user": "user", "bounds": "private", "outer": BOX, "levels": 4}


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """A ledger that is real; what is rescued goes to the folder of the test."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rescued").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "rescued"))
    return Ledger.create("city.ledger", ApproxDP(5, "1e-3"), unit="user", source="city")


class Unread:
    """Rows that nobody may look at."""

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__") and name != "__arrow_c_stream__":
            return super().__getattribute__(name)
        raise AssertionError(f"rows were read: {name}")


def refused(ledger: Ledger, words: str, *values: Any, **named: Any) -> None:
    """Plan and release say the same, read nothing and charge nothing."""
    whole: dict[str, Any] = {"ledger": ledger, "epsilon": 1, "method": "laplace", **named}
    with pytest.raises(InvalidParameter, match=words) as problem:
        release_heatmap(Unread(), *values, **whole)
    assert "nothing was" in str(problem.value)
    with pytest.raises(InvalidParameter, match=words):
        plan_release(Unread(), *values, **whole)
    assert not ledger.statement().entries


# what is not understood


@pytest.mark.parametrize("word", ["dry_run", "mass_per_period", "bound_share", "level", "delta"])
def test_a_keyword_that_there_is_not_is_refused(ledger: Ledger, word: str) -> None:
    refused(ledger, f"got {word}; nothing was charged", **WORDS, **{word: True})
    wrong: dict[str, Any] = {word: True, **WORDS}
    with pytest.raises(InvalidParameter, match=f"got {word}; nothing was charged"):
        rehearse_heatmap(Unread(), public=True, epsilon=1, **wrong)


@pytest.mark.parametrize(
    ("values", "named", "words"),
    [
        ((COLUMNS, AREA), {"user": "house"}, "got columns and user"),
        ((COLUMNS, AREA), {"weight": "w", "by": "b"}, "got columns and weight, by"),
        ((COLUMNS, AREA), {"bounds": (0, 0, 1, 1)}, "got area and bounds"),
        ((COLUMNS, AREA), {"levels": 9}, "got area and levels"),
        ((COLUMNS, BOX), {"bounds": (0, 0, 1, 1)}, "got area and bounds"),
        ((COLUMNS, BOX), {"bounds": "private", "outer": BOX}, "got area and bounds, outer"),
        ((COLUMNS, AREA), {"bounds": "private"}, "got area and bounds"),
        ((COLUMNS, BOX), {"image": "seen.png"}, "got area and image"),
        ((COLUMNS,), {"bounds": BOX, "outer": (0, 0, 1, 1)}, "`outer` goes with"),
        ((COLUMNS, AREA), {"groups": "ab"}, "list of names, got the text 'ab'"),
    ],
)
def test_what_is_said_twice_or_as_another_kind_is_refused(
    ledger: Ledger, values: tuple[Any, ...], named: dict[str, Any], words: str
) -> None:
    refused(ledger, words, *values, **named)


def test_keywords_that_are_empty_are_left_out(ledger: Ledger) -> None:
    empty: dict[str, Any] = {"user": "", "weight": None, "bounds": "", "outer": "", "plane": False}
    asked: dict[str, Any] = {"ledger": ledger, "epsilon": 1, "method": "laplace"}
    assert plan_release(ROWS, COLUMNS, AREA, **asked, **empty).asked.area == AREA


def test_the_bounds_of_a_rehearsal_are_public() -> None:
    with pytest.raises(InvalidParameter, match="private'` does not go with it; nothing was read"):
        rehearse_heatmap(Unread(), public=True, epsilon=1, **PRIVATE)


def test_a_ledger_of_rehearsals_wants_rows_declared_public(ledger: Ledger) -> None:
    free = Ledger.rehearsal(PureDP(5))
    refused(free, r"got public=False and the ledger", **WORDS)
    asked: dict[str, Any] = {"epsilon": 1, "method": "laplace"}
    found = release_heatmap(ROWS, ledger=free, public=True, **asked, **WORDS)
    assert found.statement.startswith("REHEARSAL on public data, protects nobody")
    assert release(ROWS, COLUMNS, AREA, ledger=free, public=True, **asked).receipt.rehearsal
    # And a real one would charge what somebody takes for a rehearsal.
    refused(ledger, r"got public=True and the ledger city.ledger", public=True, **WORDS)
    with pytest.raises(InvalidParameter, match=r"got public=True and the ledger city.ledger"):
        release_heatmap(Unread(), ledger="city.ledger", public=True, **asked, **WORDS)


# what is refused before a charge


@pytest.mark.parametrize("words", [WORDS, PRIVATE], ids=["public bounds", "private bounds"])
def test_known_noise_is_refused_before_a_row_is_read(ledger: Ledger, words: Any) -> None:
    noise = KeyedNoise(bytes(32), epoch=bytes(12))
    with pytest.raises(InvalidParameter, match="nothing was read or charged"):
        release_heatmap(Unread(), ledger=ledger, epsilon=1, method="laplace", noise=noise, **words)
    assert not ledger.statement().entries


@dataclass(frozen=True)
class Own:
    """A method of somebody's own; its mechanism may be that of another epsilon."""

    times: Fraction = Fraction(1)
    field: Any = None
    name: ClassVar[str] = "own"
    base: ClassVar[Any] = FlatMethod()

    def mechanism(self, epsilon: Fraction, bound: Bound, grid: Grid) -> Any:
        return self.base.mechanism(self.times * epsilon, bound, grid)

    def estimate(self, released: Any, grid: Grid) -> Any:
        return self.base.estimate(released, grid)


@dataclass(frozen=True)
class Gaussian(Own):
    """The same with a delta."""

    base: ClassVar[Any] = GaussianMethod()


@dataclass(frozen=True)
class Rho(Own):
    """A method whose cost is no epsilon."""

    def mechanism(self, epsilon: Fraction, bound: Bound, grid: Grid) -> Any:
        true = super().mechanism(epsilon, bound, grid)

        class Costs:
            name, additive = "costs-rho/1", True
            cost = DiscreteGaussian(2**20).cost
            draws, sample = true.draws, true.sample

        return Costs()


@dataclass(frozen=True)
class Few(Own):
    """A method that makes no map."""

    def estimate(self, released: Any, grid: Grid) -> Any:
        del released, grid
        return ()


class Plain:
    """A method that is no dataclass."""

    name = "plain"
    mechanism, estimate = Own().mechanism, Own().estimate


@pytest.mark.parametrize("words", [WORDS, PRIVATE], ids=["public bounds", "private bounds"])
@pytest.mark.parametrize(
    ("method", "why"),
    [
        (Own(times=Fraction(2)), "at most the epsilon asked for, .*, own would cost epsilon"),
        (Gaussian(times=Fraction(2)), "own would cost epsilon .*, delta 1e-06; nothing"),
        (Rho(), "epsilon and delta, that of own costs rho .*; nothing was charged"),
        (Own(field={1, 2}), "can be saved as JSON, got Own .*set.*; nothing was charged"),
        (Own(field=float("nan")), "can be saved as JSON, got Own .*; nothing was charged"),
        (Plain(), "is a frozen dataclass .*, got Plain .*; nothing was charged"),
    ],
    ids=["pure", "approximate", "zcdp", "set", "nan", "no dataclass"],
)
def test_a_method_that_breaks_its_terms_is_refused_before_a_charge(
    ledger: Ledger, method: Any, why: str, words: Any
) -> None:
    refused(ledger, why, **{**words, "method": method})


@pytest.mark.parametrize("method", ["gaussian", Gaussian(), Own(), Own(times=Fraction(1, 2))])
def test_a_method_within_epsilon_is_charged_for_epsilon(ledger: Ledger, method: Any) -> None:
    cost = release_heatmap(ROWS, ledger=ledger, epsilon=1, method=method, **WORDS).cost
    assert not isinstance(cost, ZCDP)
    assert cost.epsilon == 1


# what is paid for


def test_counts_are_kept_when_a_method_makes_other_maps_than_asked(ledger: Ledger) -> None:
    with pytest.raises(SolverFailed, match="its counts are kept: sfumato heatmap resume"):
        release_heatmap(ROWS, ledger=ledger, epsilon=1, method=Few(), **WORDS)
    assert ledger.recover(1).entry == ledger.statement().entries[0]


@pytest.mark.fault
@pytest.mark.parametrize("problem", [TypeError, RecursionError, OSError])
def test_counts_are_kept_when_no_map_can_be_written(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, problem: type[Exception]
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise problem("not this one")

    with monkeypatch.context() as patch:
        patch.setattr(HeatmapRelease, "write", broken)
        with pytest.raises(InvalidInput, match=r"could not write map\.json .*its counts are kept"):
            release_heatmap(
                ROWS, ledger=ledger, epsilon=1, method="laplace", outputs="map.json", **WORDS
            )
    (found,) = resume_heatmap(ledger).results
    assert found is not None
    assert found.written == (str(Path("map.json").absolute()),)
    assert Path("map.json").exists()


@pytest.mark.fault
@pytest.mark.parametrize("method", ["zoom", "laplace"])
def test_a_map_is_written_though_nobody_can_be_told(ledger: Ledger, method: str) -> None:
    def gone(message: str) -> None:
        if message.startswith(("drawing", "wrote")):
            raise BrokenPipeError(message)

    found = release_heatmap(
        ROWS,
        ledger=ledger,
        epsilon=1,
        method=method,
        outputs=["map.csv", "map.json"],
        watch=gone,
        **WORDS,
    )
    assert found.written == ("map.csv", "map.json")
    assert all(Path(name).exists() for name in found.written)


@pytest.mark.fault
def test_a_map_is_made_in_the_area_that_was_paid_for_though_nobody_can_be_told(
    ledger: Ledger,
) -> None:
    def gone(message: str) -> None:
        if not message.startswith("finding"):
            raise BrokenPipeError(message)

    release_heatmap(ROWS, ledger=ledger, epsilon=1, method="laplace", watch=gone, **PRIVATE)
    assert len(ledger.statement().entries) == 3


def _loud(message: str) -> None:
    raise BrokenPipeError(message)


@pytest.mark.fault
@pytest.mark.parametrize("warn", [None, _loud], ids=["warnings are errors", "callback"])
def test_a_map_is_written_though_a_warning_is_an_error(
    ledger: Ledger,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    warn: Callable[[str], None] | None,
) -> None:
    road = {"type": "LineString", "coordinates": [[11.2, 43.75], [11.32, 43.8]]}
    Path("roads.geojson").write_text(json.dumps(road))

    def broken(*_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(HeatmapRelease, "sharpened", broken)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = release_heatmap(
            ROWS,
            ledger=ledger,
            epsilon=1,
            method="laplace",
            prior="roads.geojson",
            outputs="map.json",
            warn=warn,
            **WORDS,
        )
    assert found.written == ("map.json",)
    assert Path("map.json").exists()
    assert "the map is paid for, and written without it" in capsys.readouterr().err


@pytest.mark.fault
def test_an_interrupt_says_what_was_charged(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = HeatmapRelease.write

    def stopped(self: HeatmapRelease, path: Path, **options: Any) -> None:
        if path.suffix == ".csv":
            raise KeyboardInterrupt
        true(self, path, **options)

    monkeypatch.setattr(HeatmapRelease, "write", stopped)
    with pytest.raises(KeyboardInterrupt) as end:
        release_heatmap(
            ROWS,
            ledger=ledger,
            epsilon=1,
            method="laplace",
            outputs="map.csv",
            warn=_loud,
            **WORDS,
        )
    (told,) = end.value.__notes__
    assert told.startswith("entry 1 of ")
    assert "epsilon 1, was charged and its counts are kept: sfumato heatmap resume" in told


# what is said of it


def test_a_plan_shows_no_row_and_no_password(ledger: Ledger) -> None:
    frame = pd.DataFrame({"user": ["Wilhelmina"], "lon": [11.25], "lat": [43.77]})
    plan = plan_release(
        frame,
        ledger=ledger,
        epsilon=1,
        method="laplace",
        connection="postgres://me:s3cret@h",
        **WORDS,
    )
    for shown in (repr(plan), str(plan), repr(plan.asked.rows), repr(Rows(frame, COLUMNS))):
        assert "Wilhelmina" not in shown
        assert "s3cret" not in shown
    assert plan.asked.rows.source is frame


def test_a_saved_result_keeps_the_whole_cost(ledger: Ledger) -> None:
    found = release_heatmap(ROWS, ledger=ledger, epsilon=1, method="laplace", **PRIVATE)
    data = json.loads(json.dumps(found.to_json()))
    again = ReleaseResult.from_json(data)
    assert found.entry.cost == PureDP("9/10")
    assert again.cost == found.cost == found.maps[0].guarantee.loss == PureDP(1)
    assert again == found
    assert replace(again, cost=again.entry.cost) != found
    del data["cost"]  # as results were saved before
    assert ReleaseResult.from_json(data).cost == PureDP("9/10")

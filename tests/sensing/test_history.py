"""A history of changes: rounds are public, states hold, and no change changes the shape of a release."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.privacy import ZCDP, Ledger
from sfumato.sensing import describe_site, heat_line, open_ledger
from sfumato.sensing import history as module
from sfumato.sensing.history import held_states, public_rounds
from sfumato.sensing.pipeline import Windows, payer, release_readings, resume_readings
from sfumato.sensing.reading_tables import read_snapshots, snapshots_of, snapshots_of_pairs
from sfumato.sensing.release.exact import named_numbers
from sfumato.sensing.table_form import Columns, TableForm

pytestmark = pytest.mark.unit

LINE = heat_line(sources=20, sensors=4, diffusion_time=0.02)
GIVEN: dict[str, Any] = {"operator": LINE, "radius": "1/10", "unit": "mass", "per_source": 1}
HALL = describe_site("hall", **GIVEN, step="0.2").site
NAMES = HALL.sensors.names
START = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
FORM = TableForm(round_time="5m", since="2026-11-16T09:00Z", until="2026-11-16T09:15Z")
BEGUN = "".join(f"sensor.{name},{name}.5,2026-11-16T09:00:00.000Z\n" for name in NAMES)
HEAD = "entity_id,state,last_changed\n"


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for one in (payer, module):
        monkeypatch.setattr(one, "_now", lambda: START + timedelta(hours=2))


def test_an_export_of_home_assistant_is_read_at_public_rounds() -> None:
    Path("ha.csv").write_text(
        HEAD + BEGUN + "light.hall,on,2026-11-16T09:04:00.000Z\n"
        "sensor.1,2.5,2026-11-16T09:03:12.501Z\n"
        "sensor.0,unavailable,2026-11-16T09:07:00.000Z\n"
        "sensor.1,9,2026-11-16T09:09:00.000Z\n"
        "sensor.1,3.5,2026-11-16T09:08:00.000Z\n"  # rows of an export come entity by entity, or not
        "sensor.2,7,2026-11-16T09:15:00.000Z\n"
    )
    rest = {"0": 0.5, "2": 2.5, "3": 3.5}
    assert read_snapshots("ha.csv", HALL, form=FORM) == [
        ("2026-11-16T09:00Z", {**rest, "1": 1.5}),
        ("2026-11-16T09:05Z", {**rest, "1": 2.5}),
        ("2026-11-16T09:10Z", {**rest, "1": 9.0}),
    ]
    ledger = open_ledger(HALL, "hall.ledger", ZCDP(9)).ledger
    made = release_readings(
        "ha.csv", HALL, ledger=ledger, loss=ZCDP(1), round_time="5m", since=FORM.since,
        until=FORM.until,
    )  # fmt: skip
    assert [one.time for one in made.readings.snapshots] == [
        f"2026-11-16T09:{minute:02}Z" for minute in (0, 5, 10)
    ]
    assert len(ledger.statement().entries) == 3
    # Any other table can say that it is one.
    Path("log.csv").write_text(
        "who,what,when\n" + "".join(f"{n},1,2026-11-16T08:00Z\n" for n in NAMES)
    )
    called = Columns(sensor="who", value="what", time="when")
    told = TableForm(called, "5m", history=True, since=FORM.since, until=FORM.until)
    assert [at for _, at in read_snapshots("log.csv", HALL, form=told)] == [
        dict.fromkeys(NAMES, 1.0)
    ] * 3


@pytest.mark.parametrize("left_out", ["round_time", "since", "until"])
def test_what_a_table_would_tell_must_be_said(left_out: str) -> None:
    Path("ha.csv").write_text(HEAD + BEGUN)
    ledger = open_ledger(HALL, "hall.ledger", ZCDP(9)).ledger
    said: dict[str, Any] = {"round_time": "5m", "since": FORM.since, "until": FORM.until}
    for value in ("", "0") if left_out == "round_time" else ("",):
        with pytest.raises(InvalidParameter, match="its times would tell when; say `round_time`"):
            release_readings(
                "ha.csv", HALL, ledger=ledger, loss=ZCDP(1), some=True, **{**said, left_out: value}
            )
    assert not ledger.statement().entries


@pytest.mark.parametrize(
    ("since", "until", "why"),
    [
        ("soon", "2026-11-16", "`since` is a date like"),
        ("2026-11-16", "2026-11-16", "`until` must be after `since`"),
        ("9999-12-31T23:59:59Z", "2026-11-16", "`until` must be after `since`"),
        ("1970-01-01", "2026-11-16", "1 to 100000 rounds"),
        ("2026-11-16", "2026-11-18", "`until` must not be a time to come"),
    ],
)
def test_rounds_that_are_none_are_refused(since: str, until: str, why: str) -> None:
    with pytest.raises(InvalidParameter, match=why):
        public_rounds(since, until, timedelta(minutes=5))


def test_rounds_are_whole_ones_from_the_beginning_on_and_before_the_end() -> None:
    found = public_rounds("2026-11-16T08:58+00:00", "2026-11-16T11:10+01:00", timedelta(minutes=5))
    assert found == [START + timedelta(minutes=5 * number) for number in range(14)]


def test_a_site_of_exact_sensors_has_no_history() -> None:
    """Between two changes a state is off by what a sensor does not report."""
    Path("ha.csv").write_text(HEAD + BEGUN)
    with pytest.raises(InvalidParameter, match=r"must say `step`, at least twice the smallest"):
        read_snapshots("ha.csv", describe_site("hall", **GIVEN, step=0).site, form=FORM)


def test_naming_its_columns_makes_no_other_table_of_an_export() -> None:
    """Else rounds, sensors and charges would follow from who changed when."""
    Path("ha.csv").write_text(HEAD + BEGUN.replace("sensor.", ""))
    called = Columns(sensor="entity_id", value="state", time="last_changed")
    with pytest.raises(InvalidParameter, match="`since`"):
        read_snapshots("ha.csv", HALL, form=TableForm(called, "5m"))
    told = TableForm(called, "5m", since=FORM.since, until=FORM.until)
    assert read_snapshots("ha.csv", HALL, form=told) == read_snapshots("ha.csv", HALL, form=FORM)


def test_since_is_of_a_history_or_of_windows() -> None:
    Path("r.csv").write_text("time,0,1,2,3\n2026-11-16T09:00Z,1,1,1,1\n")
    with pytest.raises(
        InvalidParameter, match="`since` and `until` are of windows, or of a history"
    ):
        read_snapshots("r.csv", HALL, form=TableForm(since="2026-11-16"))


def test_who_has_no_state_at_the_beginning_is_in_no_round() -> None:
    """From its first change on it would tell when that was."""
    late = BEGUN.replace("sensor.3,3.5,2026-11-16T09:00:00", "sensor.3,3.5,2026-11-16T09:01:00")
    ledger = open_ledger(HALL, "hall.ledger", ZCDP(9)).ledger
    asked: dict[str, Any] = {
        "ledger": ledger, "loss": ZCDP(1), "round_time": "5m", "since": FORM.since,
        "until": FORM.until,
    }  # fmt: skip
    for text in (late, BEGUN.replace("3.5", "unknown") + "sensor.3,3,2026-11-16T09:01:00Z\n"):
        Path("ha.csv").write_text(HEAD + text)
        with pytest.raises(InvalidInput, match="no reading of sensor '3' at time 1 of 3; `some`"):
            release_readings("ha.csv", HALL, **asked)
        made = release_readings("ha.csv", HALL, **asked, some=True)
        assert [one.names for one in made.readings.snapshots] == [NAMES[:3]] * 3
    Path("ha.csv").write_text(HEAD + BEGUN.replace("T09:00", "T09:01"))
    with pytest.raises(InvalidInput, match="no sensor has a state at `since`"):
        read_snapshots("ha.csv", HALL, form=FORM)
    Path("ha.csv").write_text(HEAD + "sensor.9,1,2026-11-16T09:00Z\n")
    with pytest.raises(InvalidInput, match="no entity that is a sensor of 'hall'"):
        read_snapshots("ha.csv", HALL, form=FORM)
    Path("ha.csv").write_text(HEAD + BEGUN + "climate.0,1,2026-11-16T09:00Z\n")
    with pytest.raises(InvalidInput, match="two entities that are called like sensor '0'"):
        read_snapshots("ha.csv", HALL, form=FORM)


WHENS = st.integers(-600, 1200).map(lambda seconds: START + timedelta(seconds=seconds))
STATES = st.one_of(st.none(), st.floats(-5, 5))
ROWS = st.lists(st.tuples(WHENS, st.sampled_from(NAMES), STATES), max_size=12)


@given(rows=ROWS, one=st.sampled_from(NAMES), other=st.lists(st.tuples(WHENS, STATES), max_size=8))
def test_another_history_of_a_sensor_has_the_same_shape(
    rows: list[Any], one: str, other: list[Any]
) -> None:
    """Whatever it says, whenever and however often, and if it falls silent: times and sensors stay."""
    rounds = public_rounds(FORM.since, FORM.until, timedelta(minutes=5))
    begun = [(START - timedelta(hours=1), name, 0.0) for name in NAMES]

    def shape(changes: list[Any]) -> list[Any]:
        found = held_states([*begun, *changes], rounds, since=START)
        assert all(value is not None for _, at in found for value in at.values())
        return [(moment, sorted(at)) for moment, at in found]

    own = [row for row in rows if row[1] != one]
    neighbor = [*own, *((when, one, state) for when, state in other)]
    assert shape(rows) == shape(neighbor) == [(moment, sorted(NAMES)) for moment in rounds]


def test_states_of_neighbors_differ_by_what_the_site_counts_on(rng: np.random.Generator) -> None:
    """Sensors that speak when they are off by d: states differ by the change and 2 d, the step, at most."""
    d, moved = 0.1, 0.3
    seconds = np.arange(900)
    rounds = public_rounds(FORM.since, FORM.until, timedelta(minutes=5))
    worst = 0.0
    for _ in range(20):
        truth = np.cumsum(rng.normal(scale=0.02, size=900))
        near = truth + moved * np.sin(seconds / rng.uniform(20, 200))
        states = [
            [at["0"] for _, at in held_states(spoken(one, d), rounds, since=START)]
            for one in (truth, near)
        ]
        worst = max(worst, float(np.abs(np.diff(states, axis=0)).max()))
    assert moved < worst <= moved + 2 * d
    assert float(HALL.step) == 2 * d


def spoken(truth: Any, d: float) -> list[Any]:
    """A row whenever a sensor is off by d from what it said last."""
    rows, last = [], np.inf
    for second, value in enumerate(truth.tolist()):
        if abs(value - last) > d:
            rows.append((START + timedelta(seconds=second), "0", value))
            last = value
    return rows


@pytest.mark.parametrize("kind", ["float32", "Float32", "float64", "text", "mixed"])
@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_states_of_short_types_are_refused_like_readings(kind: str, library: str) -> None:
    """Their rounding is coarser than the promise counts on, and would not be seen in a text."""
    if library == "pyarrow" and kind in ("Float32", "mixed"):
        return
    numbers: Any = ["20.1", "unavailable", "21.5"]
    if kind == "mixed":
        numbers = pd.Series([np.float32(20.1), None, 21.5], dtype=object)
    elif kind != "text":
        numbers = pd.Series([20.1, None, 21.5], dtype=kind)
    if library == "pyarrow":
        numbers = pa.array(numbers, from_pandas=True)
    frame: dict[str, Any] = {
        "entity_id": ["sensor.0", "sensor.2", "sensor.1"], "state": numbers,
        "last_changed": ["2026-11-16T08:00Z"] * 3,
    }  # fmt: skip
    table = pd.DataFrame(frame) if library == "pandas" else pa.table(frame)

    def read() -> Any:
        found = snapshots_of(table, HALL, form=FORM)
        assert [sorted(at) for _, at in found] == [["0", "1"]] * 3
        return named_numbers(found[0][1], HALL)

    if kind in ("float64", "text"):
        read()
    else:
        with pytest.raises((InvalidInput, InvalidParameter), match="type"):
            read()


def test_pairs_are_a_history_like_any_table() -> None:
    """Times of their rows are times of changes: none of them is released."""
    begun = [("2026-11-16T09:00:00Z", dict.fromkeys(NAMES, 1.0))]
    changed = [
        ("2026-11-16T09:03:12Z", {"1": 2.0}),
        ("2026-11-16T09:07:44Z", {"2": 3.0, "0": None}),
    ]
    pairs: Any = [*begun, *changed]
    ledger = open_ledger(HALL, "hall.ledger", ZCDP(9)).ledger
    asked: dict[str, Any] = {"ledger": ledger, "loss": ZCDP(1), "history": True}
    said: dict[str, Any] = {"round_time": "5m", "since": FORM.since, "until": FORM.until}
    for left_out in said:
        with pytest.raises(InvalidParameter, match="its times would tell when; say `round_time`"):
            release_readings(pairs, HALL, **asked, **{**said, left_out: ""}, some=True)
    with pytest.raises(InvalidInput, match="row 2 of the readings is of no sensor"):
        release_readings([*begun, ("2026-11-16T09:03Z", {"x": 1.0})], HALL, **asked, **said)
    assert not ledger.statement().entries
    made = release_readings(pairs, HALL, **asked, **said)
    assert [one.time for one in made.readings.snapshots] == [
        f"2026-11-16T09:{minute:02}Z" for minute in (0, 5, 10)
    ]
    assert all(one.names == NAMES for one in made.readings.snapshots)
    told = replace(FORM, history=True)
    assert [at for _, at in snapshots_of_pairs(pairs, HALL, form=told)] == [
        dict.fromkeys(NAMES, 1.0), {**dict.fromkeys(NAMES, 1.0), "1": 2.0},
        {"0": 1.0, "1": 2.0, "2": 3.0, "3": 1.0},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"since": "2026-11-16"}, "`since` and `until` are of windows, or of a history"),
        ({"until": "2026-11-16"}, "`since` and `until` are of windows, or of a history"),
        ({"round_time": "5m"}, "with `round_time` every time is written like"),
        ({"round_time": "5m", "history": True, "since": FORM.since, "until": FORM.until},
         "with `round_time` every time is written like"),
    ],
)  # fmt: skip
def test_what_is_said_of_times_is_refused_for_readings_without_any(
    more: dict[str, Any], why: str
) -> None:
    ledger = open_ledger(HALL, "hall.ledger", ZCDP(9)).ledger
    read = dict.fromkeys(NAMES, 1.0)
    for readings in (read, [("", read)]):
        with pytest.raises((InvalidInput, InvalidParameter), match=why):
            release_readings(readings, HALL, ledger=ledger, loss=ZCDP(1), **more)
    assert not ledger.statement().entries


def test_what_is_said_beside_windows_is_theirs_unless_they_say_it() -> None:
    """And then of the history: as it was said, the rounds of both are those before 09:15."""
    Path("ha.csv").write_text(HEAD + BEGUN)
    Path("r.csv").write_text("time,0,1,2,3\n2026-11-16T09:05Z,1,1,1,1\n")
    asked: dict[str, Any] = {"share": 9, "round_time": "5m"}
    beside: dict[str, Any] = {"since": FORM.since, "until": FORM.until}
    made = release_readings("ha.csv", HALL, windows=Windows("a", ZCDP(2), "10m"), **asked, **beside)
    assert len(made.readings.snapshots) == 3
    release_readings("r.csv", HALL, windows=Windows("b", ZCDP(2), "10m"), **asked, **beside)
    with pytest.raises(InvalidInput, match="a reading lies before"):
        release_readings(
            "r.csv", HALL, windows=Windows("c", ZCDP(2), "10m"), **asked, since="2026-11-16T09:10Z"
        )
    windows = Windows("d", ZCDP(2), "10m", FORM.since, FORM.until)
    made = release_readings("ha.csv", HALL, windows=windows, **asked, until="2026-11-16T09:10Z")
    assert len(made.readings.snapshots) == 2


def test_windows_say_when_a_history_begins_and_a_request_keeps_it() -> None:
    Path("ha.csv").write_text(HEAD + BEGUN)
    windows = Windows("w", ZCDP(2), "10m", FORM.since, FORM.until)
    with pytest.raises(InvalidParameter, match="a window must be some whole rounds long"):
        release_readings("ha.csv", HALL, windows=windows, share=2, round_time="4m")
    made = release_readings("ha.csv", HALL, windows=windows, share=2, round_time="5m")
    assert len(made.readings.snapshots) == 3
    spent = [len(Ledger(one).statement().entries) for one in sorted(Path("w").glob("*.ledger"))]
    assert spent == [2, 1]


def test_a_stopped_release_of_a_history_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.sensing.pipeline import release

    Path("ha.csv").write_text(HEAD + BEGUN)
    open_ledger(HALL, "hall.ledger", ZCDP(9))
    whole, calls = release.__dict__["release_snapshot"], []

    def stops(*given: Any, **more: Any) -> Any:
        calls.append(given)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return whole(*given, **more)

    monkeypatch.setattr(release, "release_snapshot", stops)
    with pytest.raises(KeyboardInterrupt):
        release_readings(
            "ha.csv", HALL, ledger="hall.ledger", loss=ZCDP(1), round_time="5m", since=FORM.since,
            until=FORM.until, out=["o.json"],
        )  # fmt: skip
    resume_readings("hall.ledger")
    assert Path("o.json").exists()
    assert len(Ledger("hall.ledger").statement().entries) == 3

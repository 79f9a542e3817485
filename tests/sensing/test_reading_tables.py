"""Readings as they come: any names of columns, wide tables, Parquet, gaps and clocks."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import BudgetExceeded, InvalidInput, InvalidParameter
from sfumato.privacy import ZCDP, Ledger
from sfumato.sensing import Columns, describe_site, heat_line, open_ledger
from sfumato.sensing.clocks import scattered
from sfumato.sensing.pipeline import (
    Windows,
    payer,
    release,
    release_readings,
    resume_readings,
)
from sfumato.sensing.pipeline.requests import ReadingsRequest
from sfumato.sensing.reading_tables import read_snapshots, snapshots_of
from sfumato.sensing.release import Readings, read_readings
from sfumato.sensing.release.windows import window_of
from sfumato.sensing.render import release_remark, site_remarks
from sfumato.sensing.rounding import EPOCH, round_of
from sfumato.sensing.table_form import TableForm
from sfumato.sensing.tables import local_metres, placed_sensors, read_offsets, read_sensors

pytestmark = pytest.mark.unit

LINE = heat_line(sources=20, sensors=4, diffusion_time=0.02)
HALL = describe_site("hall", operator=LINE, radius="1/10", unit="mass", per_source=1).site
NAMES = HALL.sensors.names
START = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def book() -> Ledger:
    return open_ledger(HALL, "hall.ledger", ZCDP(100)).ledger


def test_columns_have_any_names() -> None:
    Path("t.csv").write_text("mote,celsius,at\n0,1,a\n1,2,a\n")
    called = Columns(sensor="mote", value="celsius", time="at")
    assert read_snapshots("t.csv", HALL, form=TableForm(called)) == [("a", {"0": 1.0, "1": 2.0})]
    Path("s.csv").write_text("mote,east,north\na,1,2\nb,3,4\n")
    placed = read_sensors("s.csv", columns=Columns(sensor="mote", x="east", y="north"))
    assert placed.positions.tolist() == [[1, 2], [3, 4]]
    with pytest.raises(InvalidParameter, match="a column needs a name, `value` has none"):
        Columns(value="")


def test_a_table_may_have_a_column_for_each_sensor() -> None:
    wide = "time,0,1,2,3,rain\na,1,2,3,4,9\nb,5,,7,unavailable,9\n"
    Path("w.csv").write_text(wide)
    found = [("a", {"0": 1.0, "1": 2.0, "2": 3.0, "3": 4.0}), ("b", {"0": 5.0, "2": 7.0})]
    assert read_snapshots("w.csv", HALL) == found
    frame = pd.read_csv("w.csv", na_values=["unavailable"])
    assert snapshots_of(frame, HALL) == found
    Path("bad.csv").write_text("time,0,1\na,1,inf\n")
    with pytest.raises(InvalidInput, match=r"the 1 in row 1 of bad\.csv is not a finite number"):
        read_snapshots("bad.csv", HALL)


def test_parquet_is_read_like_any_table_and_keeps_short_numbers() -> None:
    rows = {
        "time": [START, START, START],
        "sensor": ["0", "1", "2"],
        "value": pa.array([0.5, None, 2.5], pa.float32()),
    }
    pq.write_table(pa.table(rows), "t.parquet")
    ((time, at),) = read_snapshots("t.parquet", HALL)
    assert time == "2026-11-16T09:00:00+00:00"
    assert at == {"0": 0.5, "2": 2.5}
    assert all(isinstance(value, np.float32) for value in at.values())
    pq.write_table(pa.table({"sensor": ["a", "b"], "x": [1.0, 2.0]}), "s.parquet")
    assert read_sensors("s.parquet").names == ("a", "b")
    Path("no.parquet").write_text("no")
    with pytest.raises(InvalidInput, match="nothing was charged"):
        read_snapshots("no.parquet", HALL)


@pytest.mark.parametrize("some", [True, False])
def test_a_misspelt_column_is_no_gap(some: bool) -> None:
    ledger = book()
    Path("w.csv").write_text("time,0,1,2,3rd,rain,7.5\na,1,2,3,4,9,1\n")
    with pytest.raises(InvalidInput) as refused:
        release_readings("w.csv", HALL, ledger=ledger, loss=ZCDP(1), some=some)
    said = str(refused.value)
    assert "no column for 1 of 4 sensors, '3' first, and 3 of no sensor: '3rd', 'rain'. Is" in said
    assert "7.5" not in said  # it may be a reading, in a table without a header
    frame = pd.read_csv("w.csv")
    with pytest.raises(InvalidInput, match="'3rd', 'rain'"):
        release_readings(frame, HALL, ledger=ledger, loss=ZCDP(1), some=some)
    assert not ledger.statement().entries


def test_a_release_says_how_many_readings_are_missing() -> None:
    Path("w.csv").write_text("time,0,1,2\na,1,2,3\nb,5,,7\n")
    made = release_readings("w.csv", HALL, ledger=book(), loss=ZCDP(1), some=True)
    assert made.missing == {"1": 1, "3": 2}
    assert release_remark(made).endswith(
        "; 3 of 8 readings of the site's sensors are missing, 2 of them of sensor '3'"
    )
    whole = release_readings(dict.fromkeys(NAMES, 1.0), HALL, ledger="hall.ledger", loss=ZCDP(1))
    assert whole.missing == {}
    assert "missing" not in release_remark(whole)


def test_a_column_of_times_with_another_name_is_asked_for() -> None:
    Path("t.csv").write_text("sensor,value,at\n0,1,a\n0,2,b\n")
    with pytest.raises(
        InvalidInput, match="again at its time: there is no column 'time'; `time` says"
    ):
        read_snapshots("t.csv", HALL)
    Path("w.csv").write_text("at,0,1,2,3\na,1,2,3,4\nb,1,2,3,4\n")
    with pytest.raises(InvalidInput, match="there is no column 'time'; `time` says which it is"):
        read_snapshots("w.csv", HALL)
    Path("two.csv").write_text("sensor,value,time\n0,1,a\n0,2,a\n")
    with pytest.raises(InvalidInput, match="'0' again at its time; nothing was charged"):
        read_snapshots("two.csv", HALL)


def test_two_offsets_of_a_sensor_are_refused() -> None:
    Path("o.csv").write_text("sensor,offset\n0,1\n1,2\n0,3\n")
    with pytest.raises(InvalidInput, match="two offsets of sensor '0'; nothing was built"):
        read_offsets("o.csv")
    Path("o.csv").write_text("sensor,offset\n0,1\n1,2\n")
    assert read_offsets("o.csv") == {"0": "1", "1": "2"}


def test_a_site_that_does_not_say_its_step_is_asked() -> None:
    given: dict[str, Any] = {"operator": LINE, "radius": "1/10"}
    rest: list[dict[str, Any]] = [
        {"unit": "mass", "per_source": 1},
        {"unit": "mass", "per_source": 1, "step": 0},
        {"unit": "mass", "per_source": 1, "step": "0.1"},
        {},  # nothing can be released from it yet
    ]
    asked = [
        any(
            "no `step` was said" in line
            for line in site_remarks(describe_site("hall", **given, **more))
        )
        for more in rest
    ]
    assert asked == [True, False, False, False]


def test_latitudes_become_metres_from_a_stated_origin() -> None:
    Path("s.csv").write_text("sensor,lat,lon\na,59.00,18.00\nb,59.02,18.04\n")
    placed, origin = placed_sensors("s.csv")
    assert origin == (59.01, 18.02)
    # A hundredth of a degree north is 1,112 m; east cos(59.01 degrees) of that, twice.
    assert placed.positions[1] == pytest.approx([1145.1, 1112.0], abs=1)
    assert placed.positions[0] == pytest.approx(-placed.positions[1])
    made = describe_site(
        "town", sensors="s.csv", grid=2, bounds=(17.99, 58.99, 18.05, 59.03), diffusion_time=1e5,
        radius=100, origin=(59.0, 18.0), out="site.json",
    ).site  # fmt: skip
    assert made.origin == (59.0, 18.0)
    assert json.loads(Path("site.json").read_text())["origin"] == [59.0, 18.0]
    assert made.box is not None
    assert made.box[0] == pytest.approx([-572.7, -1112.0], abs=1)
    with pytest.raises(InvalidInput, match="within 20 degrees of their origin"):
        local_metres(np.array([0.0, 45.0]), np.array([0.0, 0.0]), (0.0, 0.0))
    with pytest.raises(InvalidInput, match="latitudes lie within 90 degrees"):
        local_metres(np.array([100.0]), np.array([0.0]), (0.0, 0.0))


def test_a_length_is_of_a_line_and_bounds_are_of_a_plane() -> None:
    Path("s.csv").write_text("sensor,x,y\na,1,1\nb,30,8\n")
    given: dict[str, Any] = {"sensors": "s.csv", "grid": 2, "diffusion_time": 4, "radius": 1}
    with pytest.raises(InvalidParameter, match="`length` is of a `line`; a plane has `bounds`"):
        describe_site("floor", **given, length=40)
    with pytest.raises(
        InvalidParameter, match=r"needs its `bounds`.*sensors are at 1 to 30 by 1 to 8"
    ):
        describe_site("floor", **given)
    with pytest.raises(
        InvalidParameter, match=r"0 to 0.9 by 0 to 0.9\); is `bounds` in another unit"
    ):
        describe_site("floor", **given, bounds=(0, 0, 0.9, 0.9))


def jittered(rounds: int, seconds: float) -> str:
    """Every sensor reads each minute, by a clock of its own."""
    rows = [
        (START + timedelta(minutes=number, seconds=seconds * place), name, number + place)
        for number in range(rounds)
        for place, name in enumerate(NAMES)
    ]
    lines = [f"{time.isoformat()},{name},{value}" for time, name, value in rows]
    return "\n".join(["time,sensor,value", *lines]) + "\n"


def test_clocks_that_differ_by_seconds_do_not_spend_the_budget() -> None:
    Path("r.csv").write_text(jittered(6, 1.7))
    ledger = book()
    # What was advised before, `some`, would have made 24 releases of one sensor each.
    for some in (False, True):
        with pytest.raises(InvalidInput) as refused:
            release_readings("r.csv", HALL, ledger=ledger, loss=ZCDP(1), some=some)
        assert "24 times, each with 1.0 of its 4 sensors" in str(refused.value)
        assert "`round_time` 30s makes 6 rounds of them" in str(refused.value)
        assert "`some`" not in str(refused.value)
    assert not ledger.statement().entries
    made = release_readings("r.csv", HALL, ledger=ledger, loss=ZCDP(1), round_time="1m")
    assert [one.time for one in made.readings.snapshots] == [
        f"2026-11-16T09:0{n}Z" for n in range(6)
    ]
    assert all(one.names == NAMES for one in made.readings.snapshots)
    assert len(ledger.statement().entries) == 6
    # Pairs of a time and values are put together alike: what is advised is done.
    pairs = read_snapshots("r.csv", HALL)
    with pytest.raises(InvalidInput, match="`round_time` 30s makes 6 rounds of them"):
        release_readings(pairs, HALL, ledger=ledger, loss=ZCDP(1))
    alike = release_readings(pairs, HALL, ledger=ledger, loss=ZCDP(1), round_time="30s")
    assert [one.time for one in alike.readings.snapshots] == [
        one.time for one in made.readings.snapshots
    ]
    # Who means it says so.
    again = release_readings("r.csv", HALL, ledger=ledger, loss=ZCDP(1), some=True, round_time="0")
    assert len(again.readings.snapshots) == 24


def test_a_device_that_reads_alone_is_no_wrong_clock() -> None:
    own = [(f"2026-11-16T09:{n:02}Z", {"2": 1.0}) for n in range(20)]
    assert scattered(own, NAMES) is None
    two = [(f"2026-11-16T09:{n:02}Z", {"2": 1.0, "3": 1.0}) for n in range(20)]
    assert scattered(two, NAMES) is None
    assert scattered([("a", {"0": 1.0}), ("b", {"1": 1.0}), ("c", {"2": 1.0})], NAMES) is None


@pytest.mark.parametrize(
    ("apart", "jitter", "rounds", "told", "in_minutes"),
    [
        (60, 1.7, 6, ("30s", 6), "30s"),
        (60, 14.0, 40, ("1m", 41), "1m"),  # the last is of the next minute
        (60, 10.1, 6, ("1m", 7), "1m"),  # of 7 rounds the first and the last have gaps
        (300, 40.0, 12, ("5m", 12), None),  # no rounds within a minute have half of them
        (5, 1.0, 30, ("10s", 16), "10s"),
    ],
)
def test_the_finest_rounds_that_are_nearly_full_are_advised(
    apart: int, jitter: float, rounds: int, told: tuple[str, int], in_minutes: str | None
) -> None:
    """Coarser ones are as full, of several readings of a sensor of which one is kept."""
    read = [
        ((START + timedelta(seconds=apart * number + jitter * place)).isoformat(), {name: 1.0})
        for number in range(rounds)
        for place, name in enumerate(NAMES)
    ]
    odd = scattered(read, NAMES)
    assert odd is not None
    assert (odd.step, odd.rounds) == told
    # Windows are some whole rounds long: no advice that is refused next.
    odd = scattered(read, NAMES, window=timedelta(minutes=1))
    assert (None if odd is None else odd.step) == in_minutes


def test_the_reading_nearest_to_a_round_is_its_reading() -> None:
    Path("r.csv").write_text(
        "time,sensor,value\n2026-11-16T09:00:10Z,0,1\n2026-11-16T08:59:58Z,0,2\n"
        "2026-11-16T09:00:01Z,0,\n2026-11-16T09:00:29Z,1,3\n2026-11-16T09:00:31Z,1,4\n"
    )
    assert read_snapshots("r.csv", HALL, form=TableForm(round_time="1m")) == [
        ("2026-11-16T09:00Z", {"0": 2.0, "1": 3.0}),
        ("2026-11-16T09:01Z", {"1": 4.0}),
    ]
    Path("n.csv").write_text("time,sensor,value\n12,0,1\n")
    with pytest.raises(InvalidInput, match="with `round_time` every time is written like"):
        read_snapshots("n.csv", HALL, form=TableForm(round_time="1m"))
    for wrong in ("1", "1w", "-1m", "0.5m"):
        with pytest.raises(InvalidParameter, match="is a number of s, m, h or d"):
            read_snapshots("r.csv", HALL, form=TableForm(round_time=wrong))


@given(
    moment=st.datetimes(datetime(1950, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)),
    step=st.integers(1, 10**4),
    rounds=st.integers(1, 10**3),
    near=st.integers(-(10**7), 10**7),
)
def test_a_round_lies_in_the_window_of_each_of_its_readings(
    moment: datetime, step: int, rounds: int, near: int
) -> None:
    """So the window that is charged for a round is that of every reading in it."""
    apart, window = timedelta(minutes=step), timedelta(minutes=step * rounds)
    edge = window_of(moment, window) + timedelta(microseconds=near)  # where it is decided
    for one in (moment, edge):
        whole = round_of(one, apart, window)
        assert window_of(whole, window) == window_of(one, window)
        assert not (whole - EPOCH) % apart
        assert abs(whole - one) <= apart
        if window_of(round_of(one, apart), window) == window_of(one, window):
            assert whole == round_of(one, apart)


def test_one_reading_has_one_budget_however_rounds_are_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(payer, "_now", lambda: START + timedelta(days=2))
    Path("r.csv").write_text("time,0,1,2,3\n2026-11-16T12:01Z,1,1,1,1\n")
    asked: dict[str, Any] = {"windows": Windows("w", ZCDP(1), since="2026-10-01"), "loss": ZCDP(1)}
    release_readings("r.csv", HALL, **asked, round_time="1d")
    for length in ("0", "1m", "8h", "12h", "24h"):
        with pytest.raises(BudgetExceeded):
            release_readings("r.csv", HALL, **asked, round_time=length)
    for length in ("2d", "7d", "3000d", "7m", "25h"):
        with pytest.raises(InvalidParameter, match="a window must be some whole rounds long"):
            release_readings("r.csv", HALL, **asked, round_time=length)
    # The last minutes of a day are not of the next one, which would pay for them as well.
    Path("late.csv").write_text(
        "time,0,1,2,3\n2026-11-15T12:00Z,1,1,1,1\n2026-11-15T23:40Z,1,1,1,1\n"
    )
    with pytest.raises(BudgetExceeded):
        release_readings("late.csv", HALL, **asked, round_time="1h")
    assert len([one for one in Path("w").glob("*.ledger") if Ledger(one).statement().entries]) == 1
    # Nor does a long round let a clock be ahead by a day.
    Path("ahead.csv").write_text("time,0,1,2,3\n2026-11-19T01:00Z,1,1,1,1\n")
    with pytest.raises(InvalidInput, match="a time to come"):
        release_readings("ahead.csv", HALL, **asked, round_time="1d")


def dated(*times: str) -> list[tuple[str, dict[str, float]]]:
    return [(time, dict.fromkeys(NAMES, 1.0)) for time in times]


@pytest.mark.parametrize("wrong", ["1970-01-01T00:00:12Z", "2026-11-15T23:59Z"])
def test_a_clock_of_1970_opens_no_window(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payer, "_now", lambda: START)
    windows = Windows("w", ZCDP(2))
    asked: dict[str, Any] = {"windows": windows, "share": 2}
    with pytest.raises(
        InvalidInput, match=r"time 2 of 2 lies before 2026-11-16T00:00Z, when windows"
    ):
        release_readings(dated("2026-11-16T08:00Z", wrong), HALL, **asked)
    assert not Path("w").exists()  # nor that of the right one
    release_readings(dated("2026-11-16T08:00Z"), HALL, **asked)
    # Later too: the first ledger of the folder is where windows begin.
    monkeypatch.setattr(payer, "_now", lambda: START + timedelta(days=2))
    with pytest.raises(InvalidInput, match="lies before 2026-11-16T00:00Z"):
        release_readings(dated(wrong), HALL, **asked)
    release_readings(dated("2026-11-17T08:00Z"), HALL, **asked)
    with pytest.raises(InvalidInput, match="a time to come"):
        release_readings(dated("2026-11-19T08:00Z"), HALL, **asked)
    assert len(list(Path("w").glob("*.ledger"))) == 2


@pytest.mark.parametrize("kept", [True, False])
def test_a_table_that_is_read_again_has_the_times_that_were_asked_for(
    kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in requests of versions that did not keep them: the schedule holds."""
    monkeypatch.setattr(payer, "_now", lambda: START + timedelta(days=2))

    def table(*days: str) -> None:
        Path("r.csv").write_text(
            "time,0,1,2,3\n" + "".join(f"{day}T08:00Z,1,1,1,1\n" for day in days)
        )

    def ledgers() -> dict[str, int]:
        return {one.name: len(Ledger(one).statement().entries) for one in Path("w").iterdir()
                if one.suffix == ".ledger"}  # fmt: skip

    table("2026-11-16", "2026-11-17")
    whole, calls = release.__dict__["release_snapshot"], []

    def stops(*given: Any, **more: Any) -> Any:
        calls.append(given)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return whole(*given, **more)

    monkeypatch.setattr(release, "release_snapshot", stops)
    if not kept:
        monkeypatch.setattr(release, "digest_of", lambda _: "")
    with pytest.raises(KeyboardInterrupt):
        release_readings(
            "r.csv",
            HALL,
            windows=Windows("w", ZCDP(2), since="2026-11-16"),
            share=2,
            out=["o.json"],
        )
    before = ledgers()
    assert sorted(before.values()) == [0, 1]
    for wrong in ("1999-01-01", "2031-01-01"):
        table("2026-11-16", wrong)
        with pytest.raises(
            InvalidInput, match="other times than" if kept else "lies before|to come"
        ):
            resume_readings("w")
    assert ledgers() == before
    table("2026-11-16", "2026-11-17")
    resume_readings("w")
    assert ledgers() == dict.fromkeys(before, 1)


def test_old_tables_have_a_schedule_that_is_said() -> None:
    windows = Windows("w", ZCDP(2), since="2004-02-28", until="2004-03-01")
    release_readings(
        dated("2004-02-28T08:00Z", "2004-02-29T08:00Z"), HALL, windows=windows, share=2
    )
    for wrong, why in (("2004-02-27T23:59Z", "before"), ("2015-06-01T00:00Z", "after `until`")):
        with pytest.raises(InvalidInput, match=f"a reading lies {why}"):
            release_readings(dated(wrong), HALL, windows=windows, share=2)
    with pytest.raises(InvalidParameter, match="`since` is a date like"):
        release_readings(
            dated("2004-02-28T08:00Z"), HALL, windows=Windows("w", ZCDP(2), since="soon"), share=2
        )
    assert len(list(Path("w").glob("*.ledger"))) == 2


def test_a_running_baseline_is_in_the_table_or_a_file_and_holds_until_the_next() -> None:
    site = describe_site(
        "hall",
        operator=LINE,
        radius="1/10",
        unit="C",
        per_source=1,
        baseline="out",
        out="site.json",
    ).site
    lines = [f"2026-11-16T09:0{n}Z,{name},{20 + n}" for n in range(3) for name in NAMES]
    Path("r.csv").write_text("\n".join(["time,sensor,value", *lines]) + "\n")
    Path("o.csv").write_text("time,value\n2026-11-16T08:50Z,19\n2026-11-16T09:01:30Z,20\n")
    ledger = open_ledger(site, "hall.ledger", ZCDP("1e20")).ledger
    made = release_readings("r.csv", site, ledger=ledger, loss=ZCDP("1e18"), reference="o.csv")
    levels = [one.numbers().mean() for one in made.readings.snapshots]
    assert levels == pytest.approx([1, 2, 2], abs=1e-6)
    Path("both.csv").write_text(Path("r.csv").read_text() + "2026-11-16T09:00Z,out,19\n")
    made = release_readings("both.csv", site, ledger=ledger, loss=ZCDP("1e18"))
    assert [one.numbers().mean() for one in made.readings.snapshots] == pytest.approx([1, 2, 3])
    with pytest.raises(
        InvalidParameter, match="'out', which these readings lack; nothing was charged"
    ):
        release_readings("r.csv", site, ledger=ledger, loss=ZCDP("1e18"))
    # Before its first reading that one is taken; a time that is no date has no last before.
    Path("o.csv").write_text("time,value\n2026-11-16T09:01Z,19\nnoon,20\n")
    early = [
        (time, dict.fromkeys(NAMES, 21.0)) for time in ("2026-11-16T09:00Z", "noon", "evening")
    ]
    made = release_readings(early[:2], site, ledger=ledger, loss=ZCDP("1e18"), reference="o.csv")
    assert [one.numbers().mean() for one in made.readings.snapshots] == pytest.approx([2, 1])
    before = len(ledger.statement().entries)
    with pytest.raises(InvalidInput, match="no reading at time 3 of the table, nor one"):
        release_readings(early, site, ledger=ledger, loss=ZCDP("1e18"), reference="o.csv")
    assert len(ledger.statement().entries) == before
    other = open_ledger(HALL, "other.ledger", ZCDP(100)).ledger
    with pytest.raises(InvalidParameter, match="of a site with a running baseline"):
        release_readings("r.csv", HALL, ledger=other, loss=ZCDP(1), reference="o.csv")


def test_a_form_comes_back_from_a_request_and_says_nothing_by_itself() -> None:
    assert TableForm().to_json() == {}
    form = TableForm(Columns(sensor="mote"), "1m", "o.csv", True, "2026-11-16", "2026-11-17")
    assert TableForm.from_json(json.loads(json.dumps(form.to_json()))) == form


def test_readings_saved_before_there_were_levels_open() -> None:
    made = release_readings(dict.fromkeys(NAMES, 1.0), HALL, ledger=book(), loss=ZCDP(1))
    held = json.loads(json.dumps(made.readings.to_json()))
    assert not {"level", "origin"} & set(held["site"])  # as an earlier version wrote them
    Path("old.json").write_text(json.dumps(held))
    found = read_readings("old.json")
    assert found.site == HALL
    assert found.to_json() == Readings(HALL, made.readings.snapshots).to_json()


def test_a_request_keeps_how_its_table_is_read() -> None:
    windows = Windows("w", ZCDP(2), since="2004-02-28")
    form = TableForm(Columns(time="step"), "1m", None)
    asked = ReadingsRequest(
        "r.csv", HALL, None, windows, None, 2, "analytic", None, None, True, "", 3, (), form
    )
    request = asked.request
    told = json.loads(json.dumps(request.asked))
    again = ReadingsRequest.from_json(told, {"outputs": []})
    assert again.form == form
    assert again.windows is not None
    assert again.windows.since == "2004-02-28"
    # As a version before wrote it: without a form, and windows that say no more than they did.
    del told["form"], told["windows"]["since"]
    older = ReadingsRequest.from_json(told, {"outputs": []})
    assert older.form == TableForm()
    assert "form" not in older.request.asked

"""Sites, releases and plans are the same by command, by Python call and from the file that was saved."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.cli.sense_runs import VALUES, alone, answer, hall, table
from tests.seeded import seed_system

from sfumato.errors import InvalidInput
from sfumato.privacy import ZCDP, ApproxDP, Ledger
from sfumato.sensing import read_readings, read_site
from sfumato.sensing.pipeline import (
    Windows,
    describe_site,
    make_device_key,
    make_master_key,
    open_ledger,
    plan_placement,
    plan_sensors,
    price_release,
    release_readings,
    simulate_site,
    unseal_readings,
)
from sfumato.sensing.planning import SyntheticOptions
from sfumato.sensing.render import plan_text
from sfumato.sensing.results import (
    KeyResult,
    LedgerResult,
    PlacementResult,
    ReleasePrice,
    ReleaseResult,
    SensorPlan,
    SimulationResult,
    SiteResult,
    UnsealedResult,
)

pytestmark = pytest.mark.unit

EDGES = [("ann", "bob"), ("bob", "cid"), ("ann", "cid"), ("cid", "dan"), ("x", "y")]

Both = Callable[[Callable[[], Any], Callable[[], Any]], tuple[Any, Any]]


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: bytes) -> Both:
    """Run a command and a call, each in a folder of its own with the same files and the same randomness."""
    alone(tmp_path, monkeypatch)

    def run(command: Callable[[], Any], call: Callable[[], Any]) -> tuple[Any, Any]:
        found = []
        for name, job in (("command", command), ("call", call)):
            folder = tmp_path / name
            folder.mkdir()
            os.chdir(folder)
            hall()
            seed_system(monkeypatch, key)
            found.append(job())
        return found[0], found[1]

    return run


def saved(name: str) -> bytes:
    """A file that both have written, which must be the same."""
    command, call = (Path("..") / folder / name for folder in ("command", "call"))
    assert command.read_bytes() == call.read_bytes()
    return call.read_bytes()


def numbers(folder: str, name: str = "r.json") -> list[list[float]]:
    readings = read_readings(Path("..") / folder / name)
    return [snapshot.numbers().tolist() for snapshot in readings.snapshots]


SITE = ("--radius", "1/10", "--unit", "mass", "--per-source", "1/2", "--step", "1/16")
DESCRIBED: dict[str, Any] = {"radius": "1/10", "unit": "mass", "per_source": "1/2", "step": "1/16"}


@pytest.mark.parametrize(
    ("words", "given"),
    [
        (
            ("--line", "20", "--sensors", "sensors.csv", "--diffusion-time", "0.02"),
            {"line": 20, "sensors": "sensors.csv", "diffusion_time": 0.02},
        ),
        (
            ("--graph", "edges.csv", "--rate", "0.3", "--largest-part"),
            {"graph": "edges.csv", "rate": 0.3, "largest_part": True},
        ),
    ],
)
def test_a_site_is_the_same(both: Both, words: tuple[str, ...], given: dict[str, Any]) -> None:
    def command() -> Any:
        table("edges.csv", ["u", "v"], EDGES)
        return answer("site", "new.json", "--name", "hall", *SITE, *words)

    def call() -> SiteResult:
        table("edges.csv", ["u", "v"], EDGES)
        return describe_site("hall", **DESCRIBED, **given, out="new.json")

    told, result = both(command, call)
    assert told == result.to_json()
    saved("new.json")
    assert read_site("new.json") == result.site
    assert SiteResult.from_json(told) == result


def test_a_ledger_is_the_same(both: Both) -> None:
    told, result = both(
        lambda: answer("ledger", "site.json", "new.ledger", "--epsilon", "2"),
        lambda: open_ledger("site.json", Path("new.ledger"), ApproxDP(2, "1e-5")),
    )
    same = ("ledger", "budget", "unit", "source", "neighbors")
    assert [told[name] for name in same] == [result.to_json()[name] for name in same]
    assert Ledger("new.ledger").header == result.ledger.header
    assert LedgerResult.from_json(result.to_json()).ledger.header == result.ledger.header


@pytest.mark.parametrize("on", ["line", "plane", "graph"])
def test_a_simulation_is_the_same(both: Both, on: Any) -> None:
    told, result = both(
        lambda: answer("simulate", "sim", "--on", on, "--sources", "2", "--seed", "5"),
        lambda: simulate_site(
            options=SyntheticOptions(on), sources=2, rng=np.random.default_rng(5), folder="sim"
        ),
    )
    assert told == result.to_json()
    for name in SimulationResult.FILES:
        saved(f"sim/{name}")
    again = SimulationResult.from_json(told)
    assert again.site == result.site
    assert np.array_equal(again.sources, result.sources)
    assert np.array_equal(again.readings, result.readings)


def test_a_release_is_the_same(both: Both) -> None:
    words = (
        "release",
        "readings.csv",
        "--site",
        "site.json",
        "--ledger",
        "hall.ledger",
        "--rho",
        "1",
    )
    told, result = both(
        lambda: answer(*words, "--out", "r.json", "--out", "r.csv"),
        lambda: release_readings(
            "readings.csv", "site.json", ledger="hall.ledger", loss=ZCDP(1), out=["r.json", "r.csv"]
        ),
    )
    assert told == result.to_json()
    assert (
        numbers("command")
        == numbers("call")
        == [snapshot.numbers().tolist() for snapshot in result.readings.snapshots]
    )
    saved("r.csv")
    again = ReleaseResult.from_json(told)
    assert again.to_json() == told
    assert again.readings.to_json() == result.readings.to_json()


def test_values_are_released_as_their_table_is(both: Both) -> None:
    site, paid = "site.json", "hall.ledger"
    table_, values = both(
        lambda: release_readings("readings.csv", site, ledger=paid, loss=ZCDP(2), out=["r.json"]),
        lambda: release_readings(
            VALUES, read_site(site), ledger=Ledger(paid), loss=ZCDP(2), out=["r.json"]
        ),
    )
    assert table_.to_json() == values.to_json()
    assert numbers("command") == numbers("call")


def again(result: Any) -> Any:
    """What its own JSON, as text, is read as."""
    return type(result).from_json(json.loads(json.dumps(result.to_json())))


@pytest.mark.parametrize("on", ["line", "plane", "graph"])
def test_a_simulation_without_a_folder_is_in_its_json(on: Any) -> None:
    made = simulate_site(options=SyntheticOptions(on), sources=2, rng=np.random.default_rng(5))
    found = again(made)
    assert (found.site, found.folder) == (made.site, None)
    assert np.array_equal(found.sources, made.sources)
    assert np.array_equal(found.readings, made.readings)
    with pytest.raises(InvalidInput, match="a reading of each sensor and a mass of each cell"):
        SimulationResult.from_json({**made.to_json(), "sources": [1.0]})


def test_a_release_without_files_is_in_its_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone(tmp_path, monkeypatch)
    hall()
    paid: Any = {"ledger": "hall.ledger", "loss": ZCDP("1/2")}
    made = release_readings([("1", VALUES), ("2", VALUES)], "site.json", **paid)
    found = again(made)
    assert found.to_json() == made.to_json()
    assert found.readings.to_json() == made.readings.to_json()
    told = {key: value for key, value in made.to_json().items() if key != "released"}
    with pytest.raises(InvalidInput, match="the readings are in no file, and not stated either"):
        ReleaseResult.from_json(told)
    with pytest.raises(InvalidInput, match="not a whole file of readings: it has no 'snapshots'"):
        ReleaseResult.from_json(
            {
                **told,
                "released": {
                    k: v for k, v in made.to_json()["released"].items() if k != "snapshots"
                },
            }
        )
    table = release_readings(VALUES, "site.json", out=["r.csv"], **paid)
    assert "released" not in table.to_json()
    with pytest.raises(InvalidInput, match="only, which has no promise in it"):
        again(table)
    site = SiteResult(read_site("site.json"))
    assert again(site) == site
    with pytest.raises(InvalidInput, match="the site has other sensors than were described"):
        SiteResult.from_json({**site.to_json(), "set": "0"})


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_table_in_memory_is_released_as_its_file_is(both: Both, make: Any) -> None:
    rows = [(time, *pair) for time in ("1", "2") for pair in VALUES.items()]
    header = ["time", "sensor", "value"]

    def file() -> ReleaseResult:
        table("t.csv", header, rows)
        return release_readings(
            "t.csv", "site.json", ledger="hall.ledger", loss=ZCDP(1), out=["r.json"]
        )

    def memory() -> ReleaseResult:
        columns = {
            name: list(column) for name, column in zip(header, zip(*rows, strict=True), strict=True)
        }
        return release_readings(
            make(columns), "site.json", ledger="hall.ledger", loss=ZCDP(1), out=["r.json"]
        )

    one, other = both(file, memory)
    assert one.to_json() == other.to_json()
    assert numbers("command") == numbers("call")


def test_windows_pay_the_same(both: Both) -> None:
    words = ("release", "t.csv", "--site", "site.json", "--windows", "w", "--window", "6h")
    times = [(f"2026-01-01T{hour:02}:00Z", *pair) for hour in (1, 7, 8) for pair in VALUES.items()]

    def command() -> Any:
        table("t.csv", ["time", "sensor", "value"], times)
        more = ("--since", "2026-01-01", "--until", "2026-01-02")
        return answer(*words, *more, "--budget-epsilon", "4", "--share", "2", "--out", "r.json")

    def call() -> ReleaseResult:
        table("t.csv", ["time", "sensor", "value"], times)
        windows = Windows("w", ApproxDP(4, "1e-5"), "6h", "2026-01-01", "2026-01-02")
        return release_readings("t.csv", "site.json", windows=windows, share=2, out=["r.json"])

    told, result = both(command, call)
    assert told == result.to_json()
    assert told["readings"] == 3
    assert len(told["ledgers"]) == 2
    assert numbers("command") == numbers("call")


def test_a_price_is_the_same(both: Both) -> None:
    words = (
        "release",
        "readings.csv",
        "--site",
        "site.json",
        "--ledger",
        "hall.ledger",
        "--share",
        "4",
    )
    told, result = both(
        lambda: answer(*words, "--out", "r.json", "--dry-run"),
        lambda: price_release("site.json", ledger="hall.ledger", share=4),
    )
    assert told == result.to_json()
    assert ReleasePrice.from_json(told) == result


def test_keys_seal_and_unseal_the_same(both: Both) -> None:
    words = (
        "release",
        "readings.csv",
        "--site",
        "site.json",
        "--ledger",
        "hall.ledger",
        "--rho",
        "1",
    )

    def command() -> Any:
        made = answer("key", "new", "master.json")
        device = answer("key", "device", "master.json", "door.json", "--name", "door")
        told = answer(*words, "--device", "door.json", "--out", "r.json")
        unsealed = answer("unseal", "r.json", "--key", "master.json")
        answer("unseal", "r.json", "--key", "master.json", "--out", "private.csv")
        return [made, device, told, unsealed]

    def call() -> Any:
        made = make_master_key("master.json")
        device = make_device_key("master.json", "door.json", name="door")
        result = release_readings(
            "readings.csv",
            "site.json",
            ledger="hall.ledger",
            loss=ZCDP(1),
            device="door.json",
            out=["r.json"],
        )
        unsealed = unseal_readings(result.readings, "master.json")
        kept = unseal_readings("r.json", "master.json", out="private.csv")
        assert UnsealedResult.from_json(kept.to_json()).rows == unsealed.rows == kept.rows
        assert KeyResult.from_json(device.to_json()) == device
        return [made, device, result, unsealed]

    told, results = both(command, call)
    assert told == [result.to_json() for result in results]
    assert told[2]["sealed"] is True
    assert UnsealedResult.from_json(told[3]) == results[3]
    assert numbers("command") == numbers("call")
    saved("private.csv")


def test_a_plan_is_the_same(both: Both) -> None:
    words = (
        "plan",
        "--cells",
        "20",
        "--sensors",
        "6",
        "--rho",
        "8",
        "--trials",
        "2",
        "--seed",
        "7",
    )
    told, result = both(
        lambda: answer(*words),
        lambda: plan_sensors(
            SyntheticOptions(cells=20, sensors=6), ZCDP(8), trials=2, rng=np.random.default_rng(7)
        ),
    )
    assert told == result.to_json()
    shown = result._repr_html_()
    assert shown.startswith("<pre>will it work? yes: ")
    assert "\nplanned line: 6 sensors, 20 cells" in shown


def test_a_plan_of_a_site_is_the_same(both: Both) -> None:
    told, result = both(
        lambda: answer("plan", "site.json", "--epsilon", "1", "--readings", "24"),
        lambda: plan_sensors(
            "site.json", ApproxDP(1, "1e-5"), readings=24, rng=np.random.default_rng(1)
        ),
    )
    assert told == result.to_json()
    assert told["sigma"] == result.noise.sigma


@pytest.mark.parametrize(
    ("site", "asked"),
    [
        (SyntheticOptions(cells=12, sensors=4), {"trials": 2, "curves": True, "target": 0.05}),
        (SyntheticOptions("graph", cells=8, radius="1/8"), {"trials": 2}),
        (SyntheticOptions("plane", sensors=4), {"trials": 0, "readings": 24}),
    ],
    ids=["curves", "graph", "readings"],
)
def test_a_plan_is_read_back(
    site: SyntheticOptions, asked: dict[str, Any], rng: np.random.Generator
) -> None:
    made = plan_sensors(site, ZCDP(8), rng=rng, **asked)
    told = json.loads(json.dumps(made.to_json(), allow_nan=False))
    read = SensorPlan.from_json(told)
    assert read.to_json() == told
    assert read.noise.to_json() == made.noise.to_json()
    assert read.options == made.options
    assert plan_text(read, tables=True) == plan_text(replace(made, seconds=0.0), tables=True)
    with pytest.raises(InvalidInput, match="not a whole plan of sensors: it has no 'design'"):
        SensorPlan.from_json({})


def test_a_placement_is_the_same(both: Both) -> None:
    words = (
        "place",
        "--site",
        "site.json",
        "--count",
        "2",
        "--rho",
        "4",
        "--trials",
        "3",
        "--seed",
        "2",
    )
    told, result = both(
        lambda: answer(*words),
        lambda: plan_placement(
            read_site("site.json"), 2, ZCDP(4), trials=3, rng=np.random.default_rng(2)
        ),
    )
    assert told == result.to_json()
    assert PlacementResult.from_json(told).to_json() == told

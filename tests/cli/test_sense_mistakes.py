"""`sfumato sense` in hasty hands: one sentence, the right exit code, no entry in the ledger."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import pytest
from tests.cli.sense_runs import (
    HALL,
    VALUES,
    alone,
    answer,
    clear,
    done,
    entries,
    hall,
    listing,
    refused,
    release,
    run,
    table,
)

from sfumato.errors import InvalidInput, InvalidParameter, LedgerBusy
from sfumato.privacy import ZCDP, Ledger, PureDP
from sfumato.sensing import Readings, read_readings, release_readings, resume_readings
from sfumato.sensing.pipeline import Windows
from sfumato.sensing.release import Snapshot
from sfumato.sensing.results import ReleaseResult

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(tmp_path, monkeypatch)


# readings


def changed(**values: Any) -> list[tuple[str, Any]]:
    return list({**VALUES, **values}.items())


@pytest.mark.parametrize(
    ("header", "lines", "sentence"),
    [
        (
            "sensor,value",
            changed()[:3],
            "readings.csv has no reading of sensor 'wall' at time 1 of 1; --some releases a part",
        ),
        (
            "sensor,value",
            [*changed(), ("door", 1)],
            "row 5 of readings.csv reads sensor 'door' again at its time: there is no column 'time'; --time "
            "says which it is",
        ),
        (
            "sensor,value",
            [*changed(), ("roof", 1)],
            "row 5 of readings.csv is of no sensor that site 'hall' has",
        ),
        (
            "sensor,value",
            changed(left="nan"),
            "the value in row 2 of readings.csv is not a finite number",
        ),
        (
            "sensor,value",
            changed(left="inf"),
            "the value in row 2 of readings.csv is not a finite number",
        ),
        (
            "sensor,value",
            changed(left="warm"),
            "the value in row 2 of readings.csv is not a finite number",
        ),
        (
            "sensor,value",
            changed(left=""),
            "readings.csv has no reading of sensor 'left' at time 1 of 1; --some releases a part",
        ),
        (
            "sensor,value",
            [*changed(), ("door",)],
            "row 5 of readings.csv reads sensor 'door' again at its time: there is no column 'time'; --time "
            "says which it is",
        ),
        ("sensor,degrees", changed(), "there is no column 'value' among the 2 of readings.csv"),
        ("name,value", changed(), "there is no column 'sensor' among the 2 of readings.csv"),
        ("sensor;value", [("door;1",)], "there is no column 'sensor' among the 1 of readings.csv"),
        ("sensor,value", [], "readings.csv has no rows"),
    ],
)
def test_wrong_readings_cost_nothing(
    header: str, lines: list[tuple[Any, ...]], sentence: str
) -> None:
    hall()
    table("readings.csv", header.split(","), lines)
    assert refused(4, *release()) == f"{sentence}; nothing was charged"
    assert entries() == ()


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ([("1", "wall", "nan")], "the value in row 8 of readings.csv is not a finite number"),
        ([], "readings.csv has no reading of sensor 'wall' at time 2 of 2; --some releases a part"),
        ([("1", "left", 3)], "row 8 of readings.csv reads sensor 'left' again at its time"),
        ([("", "wall", 3)], "readings.csv has no 'time' in row 8"),
    ],
)
def test_a_mistake_at_a_later_time_costs_nothing_either(lines: list[Any], sentence: str) -> None:
    hall()
    first = [("0", *pair) for pair in changed()]
    table(
        "readings.csv",
        ["time", "sensor", "value"],
        [*first, *(("1", *pair) for pair in changed()[:3]), *lines],
    )
    assert refused(4, *release()) == f"{sentence}; nothing was charged"
    assert entries() == ()


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("x.json", b"{not json", "x.json is not a JSON list of objects"),
        ("x.json", b'{"sensor": 1}', "x.json is not a JSON list of objects"),
        ("x.json", b"[[1, 2]]", "x.json is not a JSON list of objects"),
        ("x.json", b"[]", "x.json has no rows"),
        (
            "x.json",
            b'[{"sensor": "door", "value": NaN}]',
            "the value in row 1 of x.json is not a finite number",
        ),
        (
            "x.json",
            b'[{"sensor": "door", "value": [1]}]',
            "the value in row 1 of x.json is not a finite number",
        ),
        (
            "x.json",
            b'[{"sensor": "door", "value": 1' + b"0" * 400 + b"}]",
            "the value in row 1 of x.json is not a finite number",
        ),
        ("x.csv", b"\xff\xfe\x00", "x.csv is not text in UTF-8"),
        (
            "x.csv",
            b'sensor,value\ndoor,"' + b"7" * 200_000 + b'"\n',
            "x.csv is not a table with a header line",
        ),
        ("x.csv", None, "cannot read x.csv: No such file or directory"),
    ],
)
def test_files_that_are_no_tables_cost_nothing(
    name: str, data: bytes | None, sentence: str
) -> None:
    hall()
    if data is not None:
        Path(name).write_bytes(data)
    words = release()
    words[1] = name
    assert refused(4, *words) == f"{sentence}; nothing was charged"
    assert entries() == ()


# who pays, and how much


@pytest.mark.parametrize(
    ("code", "words", "sentence"),
    [
        (
            2,
            release("--windows", "w"),
            "say who pays: --ledger or --windows; nothing was charged",
        ),
        (2, release("--epsilon", "1"), "give the budget as --epsilon"),
        (
            2,
            release(rho=""),
            "say what one reading costs: --epsilon with --delta, or --rho (or, to",
        ),
        (2, release("--share", "3"), "--share stands alone"),
        (2, release(rho="0"), "noise cannot cost nothing"),
        (2, release(rho="-1"), "rho must"),
        (2, release(rho="much"), "rho"),
        (
            2,
            release("--epsilon", "400", "--delta", "0.1", "--calibration", "papers", rho=""),
            "the papers' formula promises delta 0.1",
        ),
        (
            2,
            release("--note", "two\nlines"),
            "a note must be printable on one line; nothing was charged",
        ),
        (3, release(rho="101"), "asked rho 101, 100 left in hall.ledger; nothing was released"),
        (
            3,
            release("--epsilon", "1", rho=""),
            "approximate DP with delta above 0 has no zCDP equivalent",
        ),
        (
            4,
            release("--ledger", "none.ledger"),
            "there is no ledger at none.ledger; `sfumato sense ledger` makes",
        ),
        (4, release("--ledger", "readings.csv"), "readings.csv"),
        (4, release("--site", "none.json"), "cannot read none.json: No such file or directory"),
        (4, release("--site", "readings.csv"), "readings.csv is not a whole site: it is no JSON"),
        (
            4,
            release("--device", "none.key"),
            "cannot read none.key: No such file or directory; nothing was sealed",
        ),
        (4, release("--device", "site.json"), "site.json is not a device key"),
    ],
)
def test_nothing_is_paid_by_mistake(code: int, words: list[str], sentence: str) -> None:
    hall()
    assert refused(code, *words).startswith(sentence)
    assert entries() == ()


def test_somebody_must_pay() -> None:
    hall()
    nobody = ["release", "readings.csv", "--site", "site.json", "--rho", "1", "--out", "r.json"]
    assert refused(2, *nobody).startswith("say who pays")
    sentence = "--windows needs a --budget-epsilon, that of each; nothing was charged"
    assert refused(2, *nobody, "--windows", "w") == sentence


def test_a_budget_for_one_time_does_not_pay_for_two() -> None:
    hall()
    table(
        "readings.csv",
        ["time", "sensor", "value"],
        [(time, *pair) for time in "01" for pair in changed()],
    )
    sentence = refused(3, *release(rho="60"))
    assert (
        sentence
        == "asked 2 times rho 60, rho 100 left, enough for 1 in hall.ledger; nothing was released"
    )
    assert entries() == ()


def test_the_ledger_of_other_sensors_does_not_pay() -> None:
    hall()
    table("sensors.csv", ["sensor", "x"], {**HALL, "door": 0.11}.items())
    words = [
        "--name",
        "hall",
        "--line",
        "20",
        "--sensors",
        "sensors.csv",
        "--diffusion-time",
        "0.02",
    ]
    done("site", "moved.json", *words, "--radius", "1/10")
    done("site", "nearer.json", *words, "--radius", "1/20")
    done("ledger", "nearer.json", "nearer.ledger", "--rho", "1")
    for site, ledger in (("moved.json", "hall.ledger"), ("moved.json", "nearer.ledger")):
        for more in ([], ["--dry-run"]):
            sentence = refused(4, *release("--site", site, "--ledger", ledger, *more))
            assert sentence.startswith(
                f"{ledger} accounts for each source, read jointly by 4 sensors"
            )
            assert sentence.endswith("; nothing was charged")


def test_a_budget_without_a_delta_pays_for_laplace_noise_alone() -> None:
    hall()
    done("ledger", "site.json", "pure.ledger", "--epsilon", "1", "--delta", "0")
    assert "nothing was released" in refused(3, *release("--ledger", "pure.ledger"))
    done(*release("--ledger", "pure.ledger", "--share", "2", rho=""))
    assert read_readings("r.json").snapshots[0].guarantee.loss == PureDP("1/2")


# outputs


@pytest.mark.parametrize(
    ("code", "out", "sentence"),
    [
        (8, ["there.json"], "there.json exists already and is kept"),
        (8, ["new.csv", "there.json"], "there.json exists already and is kept"),
        (4, ["none/r.json"], "the folder of none/r.json must exist"),
        (8, ["folder.json"], "folder.json exists already and is kept"),
        (2, ["r.txt"], "this is written as .csv or .json, got r.txt"),
        (2, ["r.json", "r.csv", "./r.json"], "every output needs its own file, got one twice"),
    ],
)
def test_outputs_are_refused_before_anything_is_paid(
    code: int, out: list[str], sentence: str
) -> None:
    hall()
    Path("there.json").write_text("kept")
    Path("folder.json").mkdir()
    assert refused(code, *release(out=out)) == f"{sentence}; nothing was charged or written"
    assert entries() == ()


def test_a_locked_folder_is_refused_before_anything_is_paid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hall()
    # Tests may run as root, whom no mode of a folder stops.
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    assert "cannot be written to; nothing was charged" in refused(4, *release())
    assert entries() == ()


def test_what_a_command_reads_is_not_an_output() -> None:
    clear(5)
    for words in (
        release(out=["readings.csv"]),
        release(out=["./site.json"]),
        ["recover", "r.json", "--out", "./r.json", "--overwrite"],
        [
            "recover",
            "r.csv",
            "--site",
            "site.json",
            "--sigma",
            "1",
            "--out",
            "site.json",
            "--overwrite",
        ],
        ["recover", "r.json", "--out", "../" + Path.cwd().name + "/r.json", "--overwrite"],
    ):
        assert "is read by this command and is kept; choose another file" in refused(4, *words)


def test_what_cannot_be_written_is_kept_and_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    hall()

    def full(self: Readings, path: str | Path) -> NoReturn:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Readings, "write", full)
        result = run(*release("--quiet"))
    assert (result.exit_code, result.stdout) == (4, "")
    said = "entry 1 of hall.ledger, rho 1, was charged and its readings are kept"
    finish = "sfumato sense resume hall.ledger"
    assert result.stderr == f"sfumato: [Errno 28] No space left on device; {said}: {finish}\n"
    done("resume", "hall.ledger")
    (snapshot,) = read_readings("r.json").snapshots
    assert entries() == (snapshot.release.entry,)


def test_an_interrupt_while_writing_throws_nothing_away(monkeypatch: pytest.MonkeyPatch) -> None:
    hall()
    write = Readings.write

    def interrupted(self: Readings, path: str | Path) -> None:
        if Path(path).name == "r.json":
            raise KeyboardInterrupt
        write(self, path)

    with monkeypatch.context() as patch:
        patch.setattr(Readings, "write", interrupted)
        result = run(*release("--quiet", out=["first.csv", "r.json"]))
    assert result.exit_code == 130
    assert "interrupted; entry 1 of hall.ledger, rho 1, was charged" in result.stderr
    first = Path("first.csv").read_text()
    Path("readings.csv").unlink()  # what was drawn needs no data
    done("resume", "hall.ledger")
    assert Path("first.csv").read_text() == first == read_readings("r.json").table()
    assert len(entries()) == 1


def test_what_was_paid_for_before_a_refusal_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may spend the budget, or hold the ledger, while ours releases time after time."""
    hall()
    table(
        "readings.csv",
        ["time", "sensor", "value"],
        [(time, *pair) for time in "012" for pair in changed()],
    )
    pay = Ledger.release
    calls: list[int] = []

    def busy(self: Ledger, *words: Any, **more: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise LedgerBusy("hall.ledger is held by another process; nothing was released")
        return pay(self, *words, **more)

    monkeypatch.setattr(Ledger, "release", busy)
    result = run(*release())
    assert (result.exit_code, result.stdout) == (4, "")
    assert result.stderr.splitlines()[-1] == (
        "sfumato: hall.ledger is held by another process; nothing was released; entries 1 (rho 1), 2 "
        "(rho 1) of hall.ledger were charged and their readings are kept: sfumato sense resume hall.ledger"
    )
    assert len(entries()) == 2
    listed = done("resume", "hall.ledger", "--list").stdout
    assert listed == "to finish: entries 1, 2 of hall.ledger, rho 2 (readings, drawn; for r.json)\n"
    done("resume", "hall.ledger", "--paid-only", "--out", "two.json")
    assert [snapshot.time for snapshot in read_readings("two.json").snapshots] == ["0", "1"]
    assert len(entries()) == 2


@pytest.mark.parametrize(
    "problem", [LedgerBusy("hall.ledger is held; nothing was released"), KeyboardInterrupt()]
)
def test_a_table_in_memory_is_finished_where_it_stopped(
    problem: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    hall()
    pay = Ledger.release
    calls: list[int] = []

    def stopped(self: Ledger, *words: Any, **more: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise problem
        return pay(self, *words, **more)

    monkeypatch.setattr(Ledger, "release", stopped)
    rows = [(time, VALUES) for time in "012"]
    with pytest.raises(type(problem)) as found:
        release_readings(rows, "site.json", ledger="hall.ledger", loss=ZCDP(1))
    told = "entries 1 (rho 1), 2 (rho 1) of hall.ledger were charged and their readings are kept"
    assert told in (
        str(found.value) if isinstance(problem, LedgerBusy) else found.value.__notes__[0]
    )
    with pytest.raises(InvalidInput, match="its readings were a table in memory"):
        resume_readings("hall.ledger")
    (result,) = resume_readings("hall.ledger", readings=rows).results
    assert isinstance(result, ReleaseResult)
    assert [snapshot.time for snapshot in result.readings.snapshots] == ["0", "1", "2"]
    assert [snapshot.release.entry for snapshot in result.readings.snapshots] == [*entries()]


BAD = {**VALUES, "left": math.nan}
SOME = {"left": 2.25}


@pytest.mark.parametrize("windows", [False, True])
@pytest.mark.parametrize(
    ("later", "error", "sentence"),
    [
        (("", BAD), InvalidParameter, "a reading must be a finite number, sensor 'left' has none"),
        (("", {**VALUES, "attic": 1.0}), InvalidParameter, "has no sensor of the 5. name given"),
        (("", {**VALUES, "left": "2.25"}), InvalidParameter, "readings must be numbers"),
        (("", {**VALUES, "left": None}), InvalidParameter, "readings must be numbers"),
        (("", dict.fromkeys(VALUES, np.float32(0.1))), InvalidParameter, "of type float32 are"),
        ((2, VALUES), InvalidParameter, "a time must be text that is printable on one line"),
        (("a\nb", VALUES), InvalidParameter, "a time must be text that is printable on one line"),
        (("", SOME), InvalidInput, "the table has no reading of sensor 'door' at time 2 of 2"),
        (
            ("", [1.0, 2.0]),
            InvalidInput,
            "number 2 of the readings is no pair of a time and values",
        ),
        (VALUES, InvalidInput, "number 2 of the readings is no pair of a time and values"),
        (1.5, InvalidInput, "number 2 of the readings is no pair of a time and values"),
    ],
)
def test_readings_in_python_are_all_checked_before_the_first_is_paid_for(
    later: Any, error: type[Exception], sentence: str, windows: bool
) -> None:
    hall()
    before = listing()
    paid: Any = (
        {"windows": Windows("w", ZCDP(5)), "share": 5}
        if windows
        else {"ledger": "hall.ledger", "loss": ZCDP(1)}
    )
    with pytest.raises(error) as found:
        release_readings([("", VALUES), later], "site.json", out=["r.json"], **paid)
    assert sentence in str(found.value)
    assert str(found.value).endswith("nothing was charged")
    assert "2.25" not in str(found.value)
    assert listing() == before


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([], "there must be at least one reading, got none; nothing was charged"),
        (1.5, "with columns sensor and value, got float; nothing was charged"),
        (iter([("", VALUES)]), "with columns sensor and value, got list_iterator; nothing was charged"),
        (pd.DataFrame({"sensor": [], "value": []}), "at least one reading, got none; nothing"),
        (pd.DataFrame([{"attic": 1.0}]), "a table of readings has columns sensor and value, perhaps time"),
        (pd.DataFrame({"sensor": ["door"], "value": ["x7"]}), "the values of the table must be numbers"),
        (pd.DataFrame({"sensor": ["door", "left"], "value": [7, math.inf]}), "row 2 of the table is not"),
        (pd.DataFrame({"sensor": ["door", "door"], "value": [7, 7]}), "row 2 of the table reads sensor"),
        (pd.DataFrame({"sensor": ["attic"], "value": [7]}), "row 1 of the table is of no sensor that"),
        (pd.DataFrame({"sensor": ["door"], "value": [7]}), "the table has no reading of sensor 'left'"),
        (
            pd.DataFrame({"sensor": ["door"], "value": [7], "time": [pd.NaT]}),
            "the table has no 'time' in row 1; nothing was charged",
        ),
        (
            pd.DataFrame({"sensor": [*VALUES], "value": np.array([0.1, 0.2, 0.3, 0.4], np.float32)}),
            "readings of type float32 are rounded",
        ),
    ],
)  # fmt: skip
def test_what_are_no_readings_in_python_cost_nothing(given: Any, sentence: str) -> None:
    hall()
    before = listing()
    with pytest.raises((InvalidInput, InvalidParameter)) as found:
        release_readings(given, "site.json", ledger="hall.ledger", loss=ZCDP(1))
    assert sentence in str(found.value)
    assert str(found.value).endswith("nothing was charged")
    assert "7" not in str(found.value)
    assert listing() == before


def test_a_sealed_release_that_is_refused_leaves_no_gap_that_matters() -> None:
    """A refusal is told before the device takes a step; the next release is unsealed all the same."""
    hall()
    done("key", "new", "m.key")
    done("key", "device", "m.key", "d.key", "--name", "d")
    table("readings.csv", ["sensor", "value"], [*changed(), ("roof", 1)])
    refused(4, *release("--device", "d.key"))  # readings are checked before the device starts
    table("readings.csv", ["sensor", "value"], changed())
    refused(2, *release("--device", "d.key", "--note", "a\tb"))
    done(*release("--device", "d.key"))
    (snapshot,) = read_readings("r.json").snapshots
    assert isinstance(snapshot, Snapshot)
    assert snapshot.seal is not None
    assert snapshot.seal.step == 0
    found = {
        row["sensor"]: row["value"]
        for row in answer("unseal", "r.json", "--key", "m.key")["readings"]
    }
    assert found == pytest.approx(VALUES, abs=2.0**snapshot.release.exponent)
    assert len(entries()) == 1

"""What `sfumato sense release` leaves behind is the same whatever sensors read: no word tells a reading."""

from __future__ import annotations

import json
import os
import struct
import tempfile
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.sense_runs import HALL, VALUES, alone, done, entries, hall, release, run, table

from sfumato.sensing import read_readings

pytestmark = pytest.mark.unit

# Nine decimals: among 4 x 4 noisy readings of some 20 digits each, chance spells them with
# probability 4e-7.
CANARY = "31337.123271828"
PRIVATE = [
    CANARY.encode(),
    b"123271828",
    struct.pack("<d", float(CANARY)),
    struct.pack(">d", float(CANARY)),
]
TABLES: dict[str, dict[str, Any]] = {
    "normal": VALUES,
    "canary": {**VALUES, "left": CANARY, "wall": f"-{CANARY}"},
    "nothing": dict.fromkeys(HALL, 0),
    "far": {**dict.fromkeys(HALL, CANARY), "door": "-1e15", "right": "1e300", "wall": "5e-324"},
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(tmp_path, monkeypatch)
    (tmp_path / "spilled").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "spilled"))


def leaked(*texts: str) -> set[str]:
    """What is private in the files here, those of the readings left out, or in words that were said."""
    found = [text.encode() for text in texts]
    found += [
        path.read_bytes()
        for path in Path().rglob("*")
        if path.is_file() and path.stem != "readings"
    ]
    return {repr(one) for one in PRIVATE for data in found if one in data}


def shape(value: Any) -> Any:
    """Keys, lengths and kinds; of numbers and texts nothing, but promises and public words as they are."""
    match value:
        case dict():
            return {key: shape(one) for key, one in value.items()}
        case list():
            return [shape(one) for one in value]
        case str():
            return "text"
        case _:
            return type(value).__name__


def trace(result: Any) -> dict[str, Any]:
    """Everything a reader sees besides the noisy readings themselves."""
    whole = json.loads(Path("r.json").read_text())
    lines = [line.split(",") for line in Path("r.csv").read_text().splitlines()]
    (book,) = [name for name in ("eps.ledger", "hall.ledger") if Path(name).exists()][:1]
    paid = [{**entry.to_json(), "time": None, "hash": None} for entry in entries(book)]
    return {
        "words": (result.exit_code, result.stdout, result.stderr),
        "files": sorted(str(path) for path in Path().rglob("*")),
        "shape": shape(whole),
        "site": whole["site"],
        "promise": [one["release"]["guarantee"] for one in whole["snapshots"]],
        "names": [one["names"] for one in whole["snapshots"]],
        "csv": [[*line[:-2], line[-1]] for line in lines],
        "ledger": paid,
    }


@pytest.mark.parametrize(
    "more",
    [[], ["--json"], ["--device", "d.key"], ["--epsilon", "1"]],
    ids=["rho", "json", "sealed", "epsilon"],
)
def test_all_readings_leave_the_same_traces(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    more: list[str],
) -> None:
    seen = {}
    for name, values in TABLES.items():
        # One place for all: the hash of a request in the ledger is of whole names of files, and of
        # nothing that was read.
        place = tmp_path / "place"
        place.mkdir()
        monkeypatch.chdir(place)
        hall()
        if "--device" in more:
            done("key", "new", "m.key")
            done("key", "device", "m.key", "d.key", "--name", "d")
        ledger = ["--ledger", "eps.ledger"] if "--epsilon" in more else []
        if ledger:
            done("ledger", "site.json", "eps.ledger", "--epsilon", "2")
        table("readings.csv", ["sensor", "value"], values.items())
        result = run(*release(*ledger, *more, out=["r.json", "r.csv"], rho="" if ledger else "1"))
        assert result.exit_code == 0, (name, result.stderr)
        assert len(entries(ledger[1] if ledger else "hall.ledger")) == 1
        assert leaked(result.output, result.stderr) == set(), name
        seen[name] = trace(result)
        monkeypatch.chdir(tmp_path)
        place.rename(tmp_path / name)
    for name in TABLES:
        assert seen[name] == seen["normal"], name
    assert tuple(capfd.readouterr()) == ("", "")  # nothing past Python's own streams
    assert os.listdir(tempfile.gettempdir()) == []


def test_a_search_for_the_canary_would_find_it() -> None:
    hall()
    Path("copy.bin").write_bytes(struct.pack("<d", float(CANARY)))
    assert leaked() == {repr(PRIVATE[2])}
    Path("copy.bin").write_text(f'{{"value": "{CANARY}"}}')
    assert leaked() == {repr(PRIVATE[0]), repr(PRIVATE[1])}
    Path("copy.bin").unlink()
    assert leaked() == set()
    assert leaked(f"sensor left read {CANARY}") == {repr(PRIVATE[0]), repr(PRIVATE[1])}


BAD = {
    "no header": f"left,{CANARY}\nright,{CANARY}\n",
    "one row without a header": f"left,{CANARY}\n",
    "another delimiter": f"sensor;value\nleft;{CANARY}\n",
    "columns mixed up": f"sensor,value\n{CANARY},left\n",
    "both are readings": f"sensor,value\n{CANARY},{CANARY}\n",
    "readings for times": f"time,sensor,value\n{CANARY},left,x\n",
    "words after a reading": f"sensor,value\nleft,{CANARY} degrees\n",
    "twice": f"sensor,value\nleft,{CANARY}\nleft,{CANARY}\n",
    "one only": f"sensor,value\nleft,{CANARY}\n",
    "too many columns": f"sensor,value\nleft,,{CANARY}\n",
    "an endless text": f'sensor,value\nleft,"{CANARY}{"7" * 200_000}"\n',
    "not UTF-8": f"sensor,value\nleft,{CANARY}\xff\n",
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("more", [[], ["--json"]], ids=["words", "json"])
def test_a_mistake_in_the_table_tells_nothing_of_its_readings(
    kind: str, more: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    hall()
    Path("readings.csv").write_bytes(BAD[kind].encode("latin-1"))
    result = run(*release(*more))
    assert (result.exit_code, result.stdout, entries()) == (4, "", ())
    assert result.stderr.rstrip("}\n").rstrip(' "exit:,4').endswith("nothing was charged")
    chain = (
        "" if result.exception is None else "".join(traceback.format_exception(result.exception))
    )
    beside = capfd.readouterr()
    assert leaked(result.output, result.stderr, chain, *beside) == set()


@pytest.mark.parametrize(
    "text",
    [
        f'[{{"sensor": "left", "value": "{CANARY}"',
        f'{{"left": {CANARY}}}',
        f"[{CANARY}]",
        f'[{{"{CANARY}": "left"}}]',
    ],
)
def test_a_mistake_in_json_tells_nothing_either(text: str) -> None:
    hall()
    Path("readings.json").write_text(text)
    words = release()
    words[1] = "readings.json"
    result = run(*words)
    assert (result.exit_code, entries()) == (4, ())
    assert leaked(result.output, result.stderr) == set()


def test_readings_beyond_the_lattice_are_cut_and_nobody_is_told() -> None:
    """A reading of 9e307 has the largest lattice value plus noise, as any reading above it has."""
    hall()
    table("readings.csv", ["sensor", "value"], {**VALUES, "right": "9e307"}.items())
    done(*release())
    (snapshot,) = read_readings("r.json").snapshots
    units = np.ldexp(snapshot.numbers(), -snapshot.release.exponent)
    right = dict(zip(snapshot.names, units.tolist(), strict=True))["right"]
    # Noise on this lattice has a deviation of at most 2**16 units: 40 of them never happen.
    assert abs(right - 2.0**48) < 40 * 2**16

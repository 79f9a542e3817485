"""What `sfumato heatmap release` leaves behind is the same whoever is in the table: threats S15 and S16."""

from __future__ import annotations

import base64
import gc
import gzip
import json
import os
import re
import struct
import tempfile
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import rasterio
from PIL import Image
from typer.testing import CliRunner, Result

from sfumato.cli.main import app
from sfumato.heatmap import read_heatmap
from sfumato.heatmap.accuracy.map_error import map_error
from sfumato.heatmap.export import SUFFIXES
from sfumato.privacy import Ledger, PureDP

pytestmark = pytest.mark.unit

BOX = "11.20,43.74,11.32,43.81"
WHO = "canary-anna-4711"
# Twelve decimals each: noise spells one of them in a run with probability below 1e-5.
X, Y, FAR = 11.271337042113, 43.771337042119, -123.456789012347
PRIVATE = [WHO, "271337042113", "771337042119", "456789012347"]
ROWS = 1_000_003
TABLES = ["empty", "one", "normal", "outlier"]
# Lines on what follows from noisy counts.
EMPTY = "indistinguishable from empty: "
FAR_OFF = ("on average mass is ", "similarity ", "certified whatever the truth is, ")
OUTS = [f"map{suffix}" for suffix in SUFFIXES]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each case has a folder of its own, so that all names are the same; temporary files are watched."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("SFUMATO_")]:
        monkeypatch.delenv(name)
    Path("spilled").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "spilled"))


def table(kind: str) -> pa.Table:
    """Nobody; the canary alone; the canary among people; the canary with a million rows, many of them odd."""
    user, lon, lat = [WHO], [X], [Y]
    match kind:
        case "one":
            pass
        case "empty":
            user, lon, lat = [], [], []
        case "normal":
            user += [f"u{number % 50}" for number in range(300)]
            lon += [11.21 + 0.0003 * number for number in range(300)]
            lat += [43.75 + 0.0001 * number for number in range(300)]
        case "outlier":
            odd = [FAR, 1e308, -1e308, 0.0, float("inf"), float("-inf"), float("nan")]
            user = [WHO] * ROWS
            lon = np.resize([X, *odd], ROWS).tolist()
            lat = np.resize([Y, *reversed(odd)], ROWS).tolist()
        case _:
            raise AssertionError(kind)
    return pa.table(
        {
            "user": pa.array(user, pa.string()),
            "lon": pa.array(lon, pa.float64()),
            "lat": pa.array(lat, pa.float64()),
        }
    )


def save(rows: pa.Table, name: str) -> None:
    """As Parquet with its values in the clear, or as text, where odd values are words."""
    if name.endswith(".parquet"):
        pq.write_table(rows, name, compression="none", use_dictionary=False)
        return
    frame: pd.DataFrame = rows.to_pandas()
    if len(frame) > 1000:  # the same odd rows, less often: text is slow
        frame = frame.head(5000)
        odd = frame.index % 3 == 0
        frame = frame.assign(lon=frame.lon.astype(object).mask(odd, "north; of <here>"))
    if name.endswith(".csv"):
        frame.to_csv(name, index=False)
    else:
        frame.to_json(name, orient="records", lines=True)


def run(*words: str) -> Result:
    result = CliRunner().invoke(app, list(words))
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result


def release(source: str, *more: str, outs: list[str] = OUTS) -> Result:
    Ledger.create("city.ledger", PureDP(2), unit="user", source="city")
    return run(
        "heatmap", "release", source, "--user", "user", "--bounds", BOX, "--epsilon", "1",
        "--ledger", "city.ledger", "--levels", "4", *more, *(word for out in outs for word in ("--out", out)),
    )  # fmt: skip


def impersonal(value: Any) -> Any:
    """A report without what is different in any two runs: times, hashes and the name of the ledger.

    How far off a map is, and whether it could be of nobody, follows from noisy counts: of that its
    shape alone.
    """
    if isinstance(value, dict):
        return {
            key: None
            if key in ("time", "hash", "ledger", "entry_hash")
            else shape(one)
            if key in ("error", "errors", "noise", "noise_scale", "features")
            else impersonal(one)
            for key, one in value.items()
        }
    return value


def shape(value: Any) -> Any:
    """Keys, lengths and kinds; of numbers nothing."""
    match value:
        case dict():
            return {key: shape(one) for key, one in value.items()}
        case list():
            return [shape(one) for one in value]
        case str():
            return value
        case _:
            return type(value).__name__


def blank(words: str) -> str:
    """Words without the numbers that say how far off a map is."""
    return re.sub(r"-?\d[\d,.]*( k?m\b)?", "#", words)


def said(words: str, *, empty: bool) -> list[str]:
    """What was printed, without those numbers; that a map could be of nobody is said when it could."""
    lines = words.splitlines()
    assert sum(line.startswith(EMPTY) for line in lines) == empty
    return [
        blank(line) if line.startswith(FAR_OFF) else line
        for line in lines
        if not line.startswith(EMPTY)
    ]


def far_off_tags(tags: dict[str, str], *, empty: bool) -> dict[str, Any]:
    """The tags of a picture in the same way."""
    assert ("empty" in tags) == empty
    noisy = ("emd", "similarity", "pearson", "how_far_off", "noise_mark")
    return {
        name: blank(one) if name.startswith(noisy) else impersonal({name: one})[name]
        for name, one in tags.items()
        if name != "empty"
    }


def could_be_empty(whole: dict[str, Any]) -> bool:
    """Whether a map says that it could be of nobody; all it says of its error follows from itself."""
    made = read_heatmap("map.json")
    assert json.loads(json.dumps(map_error(made).to_json())) == whole["error"]
    return bool(whole["noise"]["empty"])


def trace(result: Result) -> dict[str, Any]:
    """Everything a reader sees besides the noisy masses themselves."""
    whole = json.loads(Path("map.json").read_text())
    empty = could_be_empty(whole)
    told = result.stdout
    words = [told] if told.startswith("{") else said(told, empty=empty)
    seen: dict[str, Any] = {"words": (result.exit_code, words, result.stderr)}
    seen["files"] = sorted(
        path.name for path in Path().iterdir() if not path.name.startswith("rows")
    )
    # How many cells were counted, and how many places are marked, follows from noisy counts alone.
    noisy = ("tiles", "counts", "uncertainty", "silent", "total")
    seen["noisy"] = [list(whole[name]) for name in noisy]
    seen["report"] = impersonal({**whole, **dict.fromkeys(noisy)})
    with np.load("map.npz") as arrays:
        seen["npz"] = {
            name: (arrays[name].shape[name == "marks" :], arrays[name].dtype.kind)
            for name in arrays.files
        }
        seen["npz report"] = impersonal(json.loads(str(arrays["report"])))
    shapes = json.loads(Path("map.geojson").read_text())
    seen["geojson"] = (list(shapes), impersonal(shapes["sfumato"]))
    assert {tuple(shape["properties"]) for shape in shapes["features"]} <= {
        ("share", "users", "density_per_km2", "level", "noise")
    }
    with rasterio.open("map.tif") as picture:
        seen["tif"] = (
            picture.profile,
            far_off_tags(picture.tags(), empty=empty),
            picture.tags(1),
            picture.descriptions,
        )
    with Image.open("map.png") as drawn:
        # As high as its legend, which has what the released map shows.
        seen["png"] = (drawn.width, drawn.mode, sorted(drawn.info))
    for name in ("map.csv", "map.h3.csv"):
        lines = Path(name).read_text().splitlines()
        seen[name] = next(line for line in lines if not line.startswith("#"))
    seen["h3"] = pq.read_schema("map.h3.parquet").names
    page = re.sub(r'"marks": ?\[[^\]]*\]', "", Path("map.html").read_text())
    rows = re.findall(r"<th scope=row>([^<]*)", page)
    assert rows.count("shows") == empty
    seen["html"] = (
        [name for name in rows if name != "shows"],
        sorted(re.findall(r'"(\w+)":', page)),
    )
    return seen


def leaked(*texts: str) -> set[str]:
    """What is private in the files here, those of the rows left out, or in words that were said."""
    private = [word.encode() for word in PRIVATE] + [
        struct.pack("<d", number) for number in (X, Y, FAR)
    ]
    found = [text.encode() for text in texts]
    for path in Path().rglob("*"):
        if path.is_file() and not path.name.startswith("rows"):
            found.append(path.read_bytes())
            found += [base64.b64decode(text) for text in re.findall(rb"[A-Za-z0-9+/]{40,}=*", found[-1])
                      if path.suffix == ".html" and len(text) % 4 == 0]  # fmt: skip
    if Path("map.npz").exists():
        with np.load("map.npz") as arrays:
            found += [arrays[name].tobytes() + str(arrays[name]).encode() for name in arrays.files]
    return {repr(one) for one in private for data in found if one in data}


def spilled() -> list[str]:
    gc.collect()
    return [path.name for path in Path("spilled").iterdir()]


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("rows.parquet", []),
        ("rows.csv", ["--json"]),
        ("rows.parquet", ["--engine", "polars"]),
        ("rows.ndjson", []),
    ],
)
def test_all_tables_leave_the_same_traces(
    tmp_path: Path,
    name: str,
    more: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    seen = {}
    for kind in TABLES:
        # One place for all: the hash of a request in an entry is of whole names of files, and of
        # nothing that was read.
        place = tmp_path / "place"
        (place / "spilled").mkdir(parents=True)
        monkeypatch.chdir(place)
        save(table(kind), name)
        result = release(name, *more)
        assert result.exit_code == 0, (kind, result.stderr)
        assert leaked(result.output, result.stderr) == set(), kind
        assert str(ROWS) not in result.stderr
        assert [entry.cost for entry in Ledger("city.ledger").statement().entries] == [PureDP(1)]
        if "--json" in more:
            told = impersonal(json.loads(result.stdout))
            result.stdout_bytes = json.dumps(told).encode()
        seen[kind] = trace(result)
        monkeypatch.chdir(tmp_path)
        place.rename(tmp_path / kind)
    for kind in TABLES:
        assert seen[kind] == seen["normal"], kind
    assert tuple(capfd.readouterr()) == ("", "")  # nothing past Python's own streams
    monkeypatch.chdir(tmp_path)
    assert spilled() == []


def test_a_search_for_the_canary_would_find_it() -> None:
    save(table("one"), "rows.parquet")
    Path("copy.bin").write_bytes(Path("rows.parquet").read_bytes())
    assert leaked() >= {repr(WHO.encode()), repr(struct.pack("<d", X)), repr(struct.pack("<d", Y))}
    Path("copy.bin").unlink()
    assert leaked() == set()
    assert leaked(f"row ({WHO}, {X})") == {repr(WHO.encode()), repr(b"271337042113")}


def test_one_row_without_a_place_among_rows_inside() -> None:
    """All other rows lie inside the bounds, and the file says so in its statistics."""
    rows = pa.table(
        {"user": ["a", "a", WHO], "lon": [11.25, float("nan"), X], "lat": [43.76, 43.76, Y]}
    )
    save(rows, "rows.parquet")
    result = release("rows.parquet", outs=["map.json"])
    assert result.exit_code == 0, result.stderr


def test_one_weight_that_is_no_number_counts_nothing() -> None:
    """At epsilon 1000 it is certain where the mass is: not where the weight is NaN."""
    user = [f"u{number}" for number in range(40) for _ in range(2)]
    rows = pa.table({"user": user, "lon": [11.225, 11.295] * 40, "lat": [43.755, 43.795] * 40,
                     "s": [1.0, float("nan")] * 40})  # fmt: skip
    save(rows, "rows.parquet")
    Ledger.create("town.ledger", PureDP(1000), unit="user", source="city")
    result = release(
        "rows.parquet",
        "--weight",
        "s",
        "--weight-step",
        "1",
        "--ledger",
        "town.ledger",
        "--epsilon",
        "1000",
        outs=["map.json"],
    )
    assert result.exit_code == 0, result.stderr
    (spot,) = json.loads(run("heatmap", "hotspots", "map.json", "-k", "1", "--json").stdout)[
        "hotspots"
    ]
    assert (spot["x"], spot["y"]) == pytest.approx((11.225, 43.755), abs=0.01)


def damaged(name: str) -> str:
    """A file with the canary in it that cannot be read, or only in part."""
    rows = table("normal")
    match name:
        case "rows-cut.parquet":
            save(rows, name)
            Path(name).write_bytes(Path(name).read_bytes()[:-50])
        case "rows-torn.parquet":
            save(rows, name)
            data = Path(name).read_bytes()
            place = data.index(WHO.encode())
            # The length of the first name, which now reaches far past the end of its page.
            Path(name).write_bytes(data[: place - 4] + b"\xff\xff\xff\x7f" + data[place:])
        case "rows-zstd.parquet":
            pq.write_table(rows, name, compression="zstd")
            data = Path(name).read_bytes()
            Path(name).write_bytes(data[:30] + bytes(170) + data[200:])
        case "rows-cut.csv.gz":
            text = rows.to_pandas().to_csv(index=False).encode()
            Path(name).write_bytes(gzip.compress(text)[:-20])
        case "rows-torn.json":
            text = rows.to_pandas().to_json(orient="records")
            Path(name).write_text(text[:-40])
        case "rows-text.parquet":
            Path(name).write_text(f"{WHO},{X},{Y}\n")
        case "rows-bare.csv":
            Path(name).write_text(f"{WHO},{X},{Y}\n{WHO},{X},{Y}\n")
        case _:
            raise AssertionError(name)
    return name


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize(
    "name",
    [
        "rows-cut.parquet", "rows-torn.parquet", "rows-zstd.parquet", "rows-cut.csv.gz", "rows-torn.json",
        "rows-text.parquet", "rows-bare.csv",
    ],
)  # fmt: skip
def test_a_damaged_file_tells_nothing_of_its_rows(
    name: str, engine: str, capfd: pytest.CaptureFixture[str]
) -> None:
    result = release(damaged(name), "--engine", engine, "--quiet", outs=["map.json"])
    assert result.exit_code in (0, 4), result.stderr
    chain = (
        "" if result.exception is None else "".join(traceback.format_exception(result.exception))
    )
    beside = capfd.readouterr()
    assert leaked(result.output, result.stderr, chain, beside.out, beside.err) == set()
    assert beside.err == ""
    entries = Ledger("city.ledger").statement().entries
    assert len(entries) == (1 if result.exit_code == 0 else 0)
    if result.exit_code == 4:
        assert (result.stdout, len(result.stderr.splitlines())) == ("", 1)
        assert not Path("map.json").exists()


@pytest.mark.parametrize("mark", [";", "|"])
def test_a_file_without_a_header_and_with_another_delimiter_does_not_show_its_first_row(
    mark: str,
) -> None:
    Path("rows.csv").write_text(f"{WHO}{mark}{X}{mark}{Y}\n" * 2)
    result = release("rows.csv", outs=["map.json"])
    assert result.exit_code == 4
    assert leaked(result.output, result.stderr) == set()


@pytest.mark.parametrize(
    "more", [["--x", "none"], ["--weight", "none"], ["--by", "none", "--values", "a"]]
)
def test_a_missing_column_is_told_of_without_a_row(more: list[str]) -> None:
    save(table("normal"), "rows.csv")
    result = release("rows.csv", *more, outs=["map-{by}.json"])
    assert result.exit_code == 4
    assert result.stderr.splitlines()[-1] == (
        "sfumato: there is no column 'none' among the 3 of the first line of rows.csv; nothing was read"
    )
    assert leaked(result.output, result.stderr) == set()


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("user,a,lat", "'lon' among the 3 of the first line of t.csv; --x is 'lon' unless you name "
         "another; nothing was read"),
        ("user,lon,b", "'lat' among the 3 of the first line of t.csv; --y is 'lat' unless you name "
         "another; nothing was read"),
        ("user;a;b", "'user' among the 1 of the first line of t.csv; is it the delimiter? nothing was read"),
    ],
)  # fmt: skip
def test_a_missing_column_nobody_named_is_told_to_be_the_usual_one(head: str, said: str) -> None:
    Path("t.csv").write_text(f"{head}\n")
    result = release("t.csv", outs=["map.json"])
    assert result.exit_code == 4
    assert result.stderr.splitlines()[-1] == f"sfumato: there is no column {said}"


def test_an_area_found_privately_leaves_the_same_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = []
    for kind in ("empty", "one", "normal"):
        (tmp_path / kind).mkdir()
        monkeypatch.chdir(tmp_path / kind)
        save(table(kind), "rows.parquet")
        result = release(
            "rows.parquet", "--bounds", "private", "--outer", "10,43,12,45", outs=["map.json"]
        )
        assert leaked(result.output, result.stderr) == set()
        costs = [entry.cost for entry in Ledger("city.ledger").statement().entries]
        # The area that was found is paid for, and told.
        told = re.sub(r"^area of .*$", "area", result.stderr, flags=re.MULTILINE)
        empty = could_be_empty(json.loads(Path("map.json").read_text()))
        lines = said(result.stdout, empty=empty)
        words.append((result.exit_code, lines, told, costs, sorted(os.listdir())))
    assert words[0][0] == 0, words[0][2]
    assert words[0] == words[1] == words[2]

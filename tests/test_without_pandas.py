"""What needs no pandas works where it is not installed, and what needs it names the extra.

Each scenario runs in a new process in which no import of pandas succeeds, as in an environment of a
plain `pip install sfumato`: an engine, a format or a command that loads it after all fails there.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from sfumato.heatmap import check_ins

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parent.parent
BOUNDS = (11.20, 43.74, 11.32, 43.81)

ABSENT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pandas":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None

sys.meta_path.insert(0, Absent())
"""

SOURCES = """
import contextlib, sqlite3

import duckdb, ibis, polars
import pyarrow as pa
import pyarrow.csv, pyarrow.dataset, pyarrow.parquet

from sfumato.records import Columns, open_table, sum_public_cells
from sfumato.spaces import area_in_degrees

table = pa.parquet.read_table("rows.parquet")
rows = [(*row[:3], row[3].isoformat()) for row in zip(*table.to_pydict().values())]
pa.csv.write_csv(table, "rows.csv")
with open("rows.ndjson", "w") as lines:
    for row in rows:
        print('{"user": %d, "lon": %r, "lat": %r, "time": "%s"}' % row, file=lines)
with contextlib.closing(sqlite3.connect("100 #1?.db")) as file, file:
    file.execute("create table visits (user integer, lon real, lat real, time text)")
    file.executemany("insert into visits values (?, ?, ?, ?)", rows)
for database in ("rows.duckdb", "same.duckdb"):
    with duckdb.connect(database) as file:
        file.execute("create table visits as select * from 'rows.parquet'")
sources = [
    ("rows.parquet", {}),
    ("rows.csv", {}),
    ("rows.ndjson", {}),
    ("100 #1?.db::visits", {}),
    ("visits", {"connection": "sqlite://100 #1?.db"}),
    ("rows.duckdb::visits", {}),
    ("visits", {"connection": "duckdb://same.duckdb"}),
    (table, {}),
    (pa.dataset.dataset("rows.parquet"), {}),
    (duckdb.sql("select * from 'rows.parquet'"), {}),
    (ibis.duckdb.connect().read_parquet("rows.parquet"), {}),
    (polars.read_parquet("rows.parquet"), {}),
    ("rows.parquet", {"engine": "polars"}),
    ("rows.csv", {"engine": "polars"}),
]
columns = Columns("user", "lon", "lat")
area = area_in_degrees((11.20, 43.74, 11.32, 43.81), 5)
for source, where in sources:
    rows = open_table(source, **where)
    found = sum_public_cells(rows, columns, area)
    print(found.units.sum(), hash(found.codes.tobytes() + found.units.tobytes()))
"""

LINES = r"""
heatmap city more.parquet --users 300
ledger create city.ledger --epsilon 4 --unit user --source city
heatmap plan --users 200 --want similarity=0.7
heatmap rehearse rows.parquet --public --levels 6 --epsilon 1
heatmap release rows.parquet --epsilon 1 --out a.json --out a.png --out a.html --out a.geojson
heatmap release rows.parquet --epsilon 1 --out b.json
heatmap release rows.parquet --epsilon 1 --time time DAYS --out {by}.json --out days.html
heatmap draw a.json --out again.csv --out again.png --out again.npz
heatmap totals a.json zones.geojson --out totals.csv
heatmap hotspots a.json -k 2
heatmap compare a.json b.json --zones zones.geojson --out change.png --out change.html --out change.csv
heatmap film 2026-01-05.json 2026-01-06.json 2026-01-07.json --out film.html
emd a.json b.json --plot flow.png
ledger verify city.ledger --against a.json
sense simulate hall
sense ledger hall/site.json hall.ledger --epsilon 2
sense release hall/readings.csv --site hall/site.json --ledger hall.ledger --epsilon 2 --out noisy.json
sense recover noisy.json --sources hall/sources.csv --out found.json --plot found.png
graph simulate town
graph blocks town/edges.csv --plot blocks.png
audit run sfumato.audit.catalogue:half_noise --claim epsilon=1 --inputs numbers --out verdict.json # exit 1
"""
ZONES = {
    "type": "Feature",
    "properties": {"name": "north-west"},
    "geometry": {
        "type": "Polygon",
        "coordinates": [
            [[11.20, 43.775], [11.26, 43.775], [11.26, 43.81], [11.20, 43.81], [11.20, 43.775]]
        ],
    },
}

COMMANDS = """
from typer.testing import CliRunner

import sfumato
from sfumato.cli.main import app

for line in sys.argv[1].strip().splitlines():
    words, _, code = line.partition(" # exit ")
    done = CliRunner().invoke(app, words.split())
    if done.exit_code != int(code or 0):
        sys.exit(f"{line}\\n{done.output}\\n{done.exception!r}")
chooser = sfumato.Chooser(["north", "south"])
print(chooser.choose() in ("north", "south"))
chooser.observe({"north": 1.0, "south": 0.5})
"""

REFUSED = """
import sfumato
from sfumato.errors import MissingPackage
from sfumato.records import open_table

def refused(work, *words, **more):
    try:
        print(type(work(*words, **more)).__name__)
    except MissingPackage as problem:
        print(problem)

sfumato.Ledger.create("a.ledger", 2, unit="user", source="a")
made = sfumato.release_heatmap(
    "rows.parquet", bounds=(11.20, 43.74, 11.32, 43.81), user="user", x="lon", y="lat", levels=3,
    epsilon=1, ledger="a.ledger", outputs=["a.json"])
refused(made.to_dataframe)
refused(sfumato.read_heatmap("a.json").to_dataframe)
refused(open_table, "rows", connection="postgres://me@localhost/rows")
refused(open_table, "rows", connection="postgresql://me@localhost/rows")
refused(open_table, "rows.parquet", engine="spark")
open("empty.db", "w").close()
sys.modules["ibis.backends.sqlite"] = None  # as of an Ibis that wants more of pandas than its converter
refused(open_table, "rows", connection="sqlite://empty.db")
refused(open_table, type("DataFrame", (), {"__module__": "pyspark.sql.classic.dataframe"})())
"""


def run(code: str, *words: str, folder: Path) -> str:
    """What a process prints that finds no pandas."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("SFUMATO_")}
    done = subprocess.run(
        [sys.executable, "-c", ABSENT + code, *words],
        cwd=folder,
        env=env | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path, rng: np.random.Generator) -> Path:
    pq.write_table(check_ins(200, bounds=BOUNDS, rng=rng), tmp_path / "rows.parquet")
    return tmp_path


def test_what_is_absent_is_absent(folder: Path) -> None:
    code = (
        "import importlib.util; print(importlib.util.find_spec('pyarrow') is None)\nimport pandas"
    )
    with pytest.raises(AssertionError, match=r"False\n(?s:.*)No module named 'pandas'"):
        run(code, folder=folder)


def test_rows_of_every_source_are_counted_alike(folder: Path) -> None:
    told = run(SOURCES, folder=folder).splitlines()
    assert len(told) == 14
    assert len(set(told)) == 1, told
    assert int(told[0].split()[0]) > 0


def test_the_front_door_is_open(folder: Path) -> None:
    (folder / "zones.geojson").write_text(json.dumps(ZONES), "utf-8")
    asked = "--user user --x lon --y lat --bounds 11.20,43.74,11.32,43.81 --levels 6"
    paid = f"heatmap release rows.parquet {asked} --ledger city.ledger"
    lines = LINES.replace("heatmap release rows.parquet", paid)
    lines = lines.replace("DAYS", "--by day --from 2026-01-05 --to 2026-01-08")
    lines = lines.replace(
        "rehearse rows.parquet --public --levels 6", f"rehearse rows.parquet --public {asked}"
    )
    assert run(COMMANDS, lines, folder=folder) == "True\n"
    assert (folder / "a.png").read_bytes().startswith(b"\x89PNG")


def test_what_needs_pandas_names_the_extra_and_charges_nothing_more(folder: Path) -> None:
    names = ["pandas", "pandas", "postgres", "postgres", "spark", "pandas", "spark"]
    assert run(REFUSED, folder=folder).splitlines() == [
        f"pip install 'sfumato[{name}]'" for name in names
    ]


def name_of(requirement: str) -> str:
    """The package of a requirement."""
    found = re.match(r"[\w.-]+", requirement)
    assert found is not None
    return found[0].lower()


def test_ours_are_those_of_ibis_extra_for_duckdb_but_pandas() -> None:
    """A newer Ibis may want more of them; extras bring pandas where Ibis imports it for a backend."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    ours = set(map(name_of, project["dependencies"]))
    asked = [one for one in requires("ibis-framework") or [] if one.endswith("extra == 'duckdb'")]
    assert asked
    assert set(map(name_of, asked)) - ours == {"pandas"}
    extras = project["optional-dependencies"]
    assert {name for name in extras if "pandas" in map(name_of, extras[name])} == {
        "pandas", "postgres", "spark",
    }  # fmt: skip

"""What the first map compiles, and that it is never compiled again: counted, not timed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib
import pytest
from tests import compilations
from typer.testing import CliRunner

from sfumato._compiled import LATE, _stands_alone
from sfumato.cli.main import app

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parent.parent
NOT_LOADED = {
    "compiles with numba": "numba.np.npyimpl",
    "compiles with numba: C": "cffi",
    "works with SciPy: functions": "scipy.special",
    "works with SciPy: matrices": "scipy.sparse",
    "works with SciPy: algebra": "scipy.linalg",
    "clones NumPy, as SciPy does": "numpy.f2py",
    "works with Arrow's functions": "pyarrow.compute",
    "speaks to Snowflake": "sqlglot.dialects.snowflake",
    "reads tables with pandas": "pandas",
}
"""What a release by a command would do, were one of these modules loaded where machine code is kept."""
FIRST_MAP = 12
"""Functions of ours compiled before the first map; there were 24. Three say how far off it is."""


@pytest.fixture(scope="module")
def read_only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package in which nobody can keep anything, not even root: files stand in the way."""
    folder = tmp_path_factory.mktemp("installed")
    shutil.copytree(
        ROOT / "src/sfumato", folder / "sfumato", ignore=shutil.ignore_patterns("__pycache__")
    )
    for inside in [folder / "sfumato", *(folder / "sfumato").rglob("*")]:
        if inside.is_dir():
            (inside / "__pycache__").write_text("in the way")
    return folder


def release(installed: Path, here: Path, *, home: Path) -> list[str]:
    """The functions of ours that a new process compiles for a map of people who do not exist."""
    here.mkdir()
    table, ledger = str(here / "a.parquet"), str(here / "a.ledger")
    budget = ["--epsilon", "2", "--unit", "user", "--source", "city", "--quiet"]
    for words in (
        ["heatmap", "city", table, "--users", "300"],
        ["ledger", "create", ledger, *budget],
    ):
        assert CliRunner().invoke(app, words).exit_code == 0
    words = ["heatmap", "release", table, "--user", "user", "--bounds", "11.20,43.74,11.32,43.81"]
    words += ["--epsilon", "1", "--ledger", ledger, "--quiet"]
    words += ["--out", "map.png", "--out", "map.html", "--out", "map.json"]
    done = subprocess.run(
        [sys.executable, "-m", compilations.__name__, "compiled.json", *words],
        cwd=here,
        env=environment(installed, ROOT, HOME=str(home)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert (here / "map.png").read_bytes().startswith(b"\x89PNG")
    return ours_compiled(here)


def ours_compiled(here: Path) -> list[str]:
    """The functions of ours that a command in this folder compiled."""
    found = json.loads((here / "compiled.json").read_text("utf-8"))
    return [name for name in found["compiled"] if name.startswith("sfumato.")]


def environment(*folders: Path, **more: str) -> dict[str, str]:
    """Variables under which a package of these folders is found, and no cache of this machine's."""
    not_ours = ("SFUMATO_", "NUMBA_", "XDG_")
    plain = {k: v for k, v in os.environ.items() if not k.startswith(not_ours)}
    plain["MPLCONFIGDIR"] = matplotlib.get_configdir()  # its list of fonts is not what is tested
    return plain | {"PYTHONPATH": os.pathsep.join(map(str, folders))} | more


def test_the_second_process_compiles_nothing_from_a_read_only_installation(
    read_only: Path, tmp_path: Path
) -> None:
    before = sorted(read_only.rglob("*"))
    first = release(read_only, tmp_path / "first", home=tmp_path)
    assert 0 < len(first) <= FIRST_MAP, first
    kept = list((tmp_path / ".cache" / "sfumato").rglob("*.nbc"))
    assert kept
    assert release(read_only, tmp_path / "second", home=tmp_path) == []
    loaded = json.loads((tmp_path / "second" / "compiled.json").read_text("utf-8"))["loaded"]
    assert {"numba", "ibis", "matplotlib", "pyarrow"} <= set(loaded)
    assert {why: name for why, name in NOT_LOADED.items() if name in loaded} == {}
    assert sorted(read_only.rglob("*")) == before
    assert list((tmp_path / ".cache" / "sfumato").rglob("*.nbc")) == kept


DISTANCE = """
import sys
from numba.core import event
with event.install_recorder("numba:compile") as recorder:
    from sfumato.spaces import Line
    from sfumato.transport import emd
    print(emd([0.5, 0.25, 0.25], [0.25, 0.25, 0.5], Line(3)))
from sfumato._compiled import cache_folder
print(cache_folder())
print(sum(one.is_start for _, one in recorder.buffer))
"""


def run(code: str, *words: str, installed: Path = ROOT / "src", **env: str) -> list[str]:
    """The lines that a new process prints, in which a warning is an error."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *words],
        env=environment(installed, **env),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()


def distance(installed: Path, **env: str) -> list[str]:
    return run(DISTANCE, installed=installed, **env)


def test_where_nothing_can_be_kept_every_process_compiles_and_says_nothing(
    read_only: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    nowhere = str(tmp_path / "file" / "home")
    far, _, first = distance(read_only, HOME=nowhere)
    assert [far, first] == distance(read_only, HOME=nowhere)[::2]
    assert int(first) >= 1
    # The same distance where machine code is kept, of which the second process has no need to compile any.
    for variable, folder in [("XDG_CACHE_HOME", "cache"), ("NUMBA_CACHE_DIR", "mine")]:
        env = {"HOME": nowhere, variable: str(tmp_path / folder)}
        assert distance(read_only, **env)[::2] == [far, first]
        again, where, compiled = distance(read_only, **env)
        assert (again, compiled) == (far, "0")
        assert list((tmp_path / folder).rglob("*.nbc"))
        assert where.startswith(str(tmp_path / folder))
    # The same kernels in another place, such as a fresh clone or a new environment, are those that are kept.
    env = {"HOME": nowhere, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert distance(ROOT / "src", **env)[::2] == [far, "0"]


LOADED = """
import sys, json
from sfumato.spaces import Line
from sfumato.transport import emd
far = emd([0.5, 0.25, 0.25], [0.25, 0.25, 0.5], Line(3))
print(json.dumps([str(far), sorted(sys.modules)]))
if len(sys.argv) > 1:
    import numba
    from numba.core.registry import cpu_target
    print(numba.njit(lambda n: {hash((n, "a")): n}[hash((n, "a"))] + 1)(4))
"""


def test_machine_code_that_is_kept_runs_without_what_compiles(tmp_path: Path) -> None:
    """Numba's parts that know all of Python and numpy, and through them SciPy's, come with a compilation."""
    kept = str(tmp_path)
    compiles = {"numba.typed.typeddict", "numba.np.linalg", "numba.np.npyimpl", "cffi"}
    far, first = json.loads(run(LOADED, NUMBA_CACHE_DIR=kept)[0])
    assert compiles <= set(first)
    again, second = json.loads(run(LOADED, NUMBA_CACHE_DIR=kept)[0])
    assert again == far
    assert "numba" in second
    assert not compiles & set(second)
    # A function of somebody else's is compiled afterwards as ever.
    assert run(LOADED, "more", NUMBA_CACHE_DIR=kept)[1] == "5"


TABLES = """
import hashlib, sys
from sfumato.heatmap.inference.cascade import by_shape
found = by_shape()
digest = hashlib.sha256(found.below.tobytes() + found.part.tobytes()).hexdigest()
print(digest, "scipy.special" in sys.modules)
"""


def test_tables_of_the_prior_are_kept_to_the_bit_and_a_damaged_file_is_made_again(
    tmp_path: Path,
) -> None:
    def found(folder: Path) -> list[str]:
        (told,) = run(TABLES, NUMBA_CACHE_DIR=str(folder))
        return told.split()

    (tmp_path / "file").write_text("in the way")
    made, _ = found(tmp_path / "file")
    folder = tmp_path / "kept"
    assert found(folder) == [made, "True"]
    assert found(folder) == [made, "False"]
    (kept,) = folder.iterdir()
    whole = kept.read_bytes()
    for damaged in (whole[:-1], whole[:100], b"", whole[:-8] + bytes(8), whole + b"more"):
        kept.write_bytes(damaged)
        assert found(folder) == [made, "True"]
        assert kept.read_bytes() == whole
    assert list(folder.iterdir()) == [kept]


def test_machine_code_that_needs_more_of_numba_gets_it() -> None:
    def kept(machine_code: bytes, kind: str = "object") -> tuple[object, ...]:
        return (("library", kind, (machine_code, b"bitcode")), "descriptor", "environment")

    assert _stands_alone(kept(b"\0NRT_Free\0sqrt\0"))
    assert not _stands_alone(kept(b"\0_numba_hashsecret_siphash_k0\0"))
    assert not _stands_alone(kept(b"\0numba_parallel_for\0"))
    assert not _stands_alone(kept(b"\0NRT_Free\0", "bitcode"))
    assert not _stands_alone(("another", "numba"))


def test_names_that_numba_provides_late_are_known(tmp_path: Path) -> None:
    """Whatever this numba adds to what machine code may call, after its start, is one of LATE."""
    code = """
import sys
import llvmlite.binding as llvm
import numba
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys

rtsys.initialize(cpu_target.target_context)
late, add = [], llvm.add_symbol
import numba.core.base, numba.core.externals
llvm.add_symbol = lambda name, address: (late.append(name), add(name, address))[1]
cpu_target.target_context.refresh()
import numba.np.ufunc.parallel as parallel
parallel._launch_threads()
print(*sorted(set(late)))
"""
    (told,) = run(code)
    names = told.split()
    assert "_numba_hashsecret_siphash_k0" in names
    assert "numba_parallel_for" in names
    assert [name for name in names if not any(part in name.encode() for part in LATE)] == []


def test_what_calls_no_compiled_function_loads_no_compiler() -> None:
    code = (
        "import sys; from sfumato.heatmap import as_text, map_hotspots, map_totals; "
        "print(sorted({'numba', 'pandas', 'scipy.optimize', 'scipy.interpolate'} & set(sys.modules)))"
    )
    assert run(code) == ["[]"]


def test_rows_of_sqlite_are_counted_without_pandas_which_ibis_finds_when_it_is_asked(
    tmp_path: Path,
) -> None:
    code = """
import sqlite3, sys
with sqlite3.connect("rows.db") as file:
    file.execute("create table points (user text, x real, y real)")
    file.executemany("insert into points values (?, ?, ?)", [("ann", 0.2, 0.2), ("bob", 0.7, 0.2)])
file.close()
from sfumato.records import Columns, open_table, sum_cells
from sfumato.spaces import area_of_plane
rows = open_table("points", connection="sqlite://rows.db")
guarded = sum_cells(rows, Columns("user", "x", "y"), area_of_plane((0, 0, 1, 1), 1), source="rows")
print(guarded.bound.size, "pandas" in sys.modules)
print(rows.execute().user.tolist(), "pandas" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(ROOT / "src"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "4 False\n['ann', 'bob'] True\n", done.stderr


@pytest.mark.parametrize(
    "more", ["from ibis.backends.sqlite.converter import pd", "class More(SQLitePandasData): pass"]
)
def test_an_ibis_that_wants_more_than_the_stand_in_is_loaded_with_pandas(
    more: str, tmp_path: Path
) -> None:
    """Also where four threads are the first to open a file, all at once."""
    code = """
import sqlite3, sys
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import PathFinder, SourceFileLoader
from threading import Barrier

class Longer(SourceFileLoader):
    def get_code(self, name):
        text = self.get_data(self.path) + b"\\n" + sys.argv[1].encode()
        return self.source_to_code(text, self.path)

class Finder:
    def find_spec(self, name, path=None, target=None):
        found = PathFinder.find_spec(name, path) if name == "ibis.backends.sqlite" else None
        if found is not None:
            found.loader = Longer(name, found.origin)
        return found

sys.meta_path.insert(0, Finder())
with sqlite3.connect("rows.db") as file:
    file.execute("create table points (user text, x real, y real)")
    file.executemany("insert into points values (?, ?, ?)", [("ann", 0.2, 0.2), ("bob", 0.7, 0.2)])
file.close()
from sfumato.records import open_table
start = Barrier(4)

def users(_):
    start.wait(30)
    return open_table("points", connection="sqlite://rows.db").execute().user.tolist()

with ThreadPoolExecutor(4) as threads:
    print(list(threads.map(users, range(4))) == [["ann", "bob"]] * 4)
print(sys.modules["ibis.backends.sqlite.converter"].__spec__ is not None)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, more],
        env=environment(ROOT / "src"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "True\nTrue\n", done.stderr

"""In a process of its own the command loads libraries in part; elsewhere they are loaded as they are."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato import _process
from sfumato.records.engines.compilers import PACKAGE, _imported

pytestmark = pytest.mark.unit

OWN = "from sfumato._process import make_own\nmake_own()\n"


def run(code: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_this_process_is_not_the_commands() -> None:
    assert not _process.is_own()


# Ibis

COMPILERS = """
import json, sys
import ibis
from sfumato.records import open_table
from pathlib import Path
Path("rows.csv").write_text("user,x\\nann,0.5\\n")
rows = open_table("rows.csv")
names = sorted(n.rpartition(".")[2] for n in sys.modules if n.startswith("ibis.backends.sql.compilers."))
print(json.dumps([names, "sqlglot.dialects.snowflake" in sys.modules, str(ibis.to_sql(rows.count()))]))
"""
ASKED = """
import ibis.backends.sql.compilers as found
from ibis.backends.sql.compilers import *
from ibis.backends.sql.compilers import RisingWaveCompiler as again
from ibis.backends.sql.compilers.mysql import MySQLCompiler as third
assert RisingWaveCompiler is again is found.risingwave.RisingWaveCompiler
assert found.MySQLCompiler is third and found.mysql.compiler is not None
assert {"SnowflakeCompiler", "snowflake"} <= set(dir(found))
assert str(ibis.to_sql(rows, dialect="postgres")) and str(ibis.to_sql(rows, dialect="impala"))
for dialect in ("nonsense", "singlestoredb"):
    try:
        ibis.to_sql(rows, dialect=dialect)
    except ValueError as problem:
        assert str(problem) == f"Unknown dialect {dialect}"
    else:
        raise SystemExit(dialect)
for name in found.__all__:
    assert getattr(found, name).__name__ == name
print(json.dumps(sorted(found.__all__)))
"""


def test_the_command_loads_the_compiler_of_one_database_and_others_when_asked(
    tmp_path: Path,
) -> None:
    whole = json.loads(run(COMPILERS, tmp_path).splitlines()[0])
    assert {"duckdb", "snowflake", "postgres"} <= set(whole[0])
    assert whole[1]
    first, second = run(OWN + COMPILERS + ASKED, tmp_path).splitlines()
    part = json.loads(first)
    assert set(part[0]) == {"_compat", "base", "duckdb"}
    assert part[1:] == [False, whole[2]]
    assert json.loads(second) == sorted(importlib.import_module(PACKAGE).__all__)


def test_a_package_that_is_more_than_a_list_of_imports_is_loaded_as_it_is() -> None:
    line = f"from {PACKAGE}.duckdb import DuckDBCompiler\n"
    start = '"""Compilers."""\nfrom __future__ import annotations\n__all__ = ["DuckDBCompiler"]\n'
    assert _imported(start + line) == {"DuckDBCompiler": "duckdb"}
    for more in (
        "import os",
        "from os import path",
        "from . import duckdb",
        f"from {PACKAGE}.duckdb import *",
        f"from {PACKAGE}.duckdb import DuckDBCompiler as Other",
        "compiler = DuckDBCompiler()",
        "if True:\n    pass",
    ):
        assert _imported(start + line + more) is None, more
    assert _imported("") is None


# matplotlib

DRAWN = """
import hashlib, inspect
import numpy as np
from sfumato.figures.heatmap import heatmap_figure
from sfumato.figures.map_sheet import Frame, Words, png_of
words = Words("title", "subtitle", "legend", "caption")
unit = (0.0, 0.0, 1.0, 1.0)
figure = heatmap_figure(np.eye(8), Frame(unit, unit), words=words, top=1.0, floor=0.1)
print(hashlib.sha256(png_of(figure)).hexdigest())
from matplotlib.lines import Line2D
print("linewidth" in inspect.signature(Line2D.set).parameters, "linewidth" in (Line2D.set.__doc__ or ""))
line = Line2D([0], [0])
line.set(linewidth=3, color="red")
assert line.get_linewidth() == 3
"""


def test_the_command_draws_the_same_without_the_help_of_matplotlib(tmp_path: Path) -> None:
    drawn, helped = run(DRAWN, tmp_path).splitlines()
    assert helped == "True True"
    assert run(OWN + DRAWN, tmp_path).splitlines() == [drawn, "False False"]

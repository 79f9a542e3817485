"""Engines are open at the edge: one from outside counts rows like ours."""

from __future__ import annotations

import traceback
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest
from typer.testing import CliRunner

from sfumato.cli.main import app
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.records import engine_names, open_table, register_engine
from sfumato.records.engines import registry, unregister_engine
from sfumato.records.engines.duckdb import DuckDBEngine

pytestmark = pytest.mark.unit


class Counting(DuckDBEngine):
    """DuckDB under another name that notes what it was asked for."""

    name: ClassVar[str] = "counting"
    asked: ClassVar[list[str]] = []

    def read_files(self, files: Any, *, connection: str | None) -> Any:
        self.asked.append(Path(files.paths[0]).name)
        return super().read_files(files, connection=connection)

    def hold_table(self, rows: Any, *, connection: str | None) -> Any:
        self.asked.append("memory")
        return super().hold_table(rows, connection=connection)


@pytest.fixture(autouse=True)
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.ENGINES, "added", dict(registry.ENGINES.added))
    monkeypatch.setattr(registry.ENGINES, "_loaded", {})
    Counting.asked.clear()


def used(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("user,x\na,1\nb,2\n", encoding="utf-8")
    assert open_table(tmp_path / "rows.csv", engine="counting").count().to_pyarrow().as_py() == 2
    frame = pd.DataFrame({"user": ["a"], "x": [1.0]})
    assert open_table(frame, engine="counting").count().to_pyarrow().as_py() == 1
    assert Counting.asked == ["rows.csv", "memory"]


def test_an_engine_can_be_registered(tmp_path: Path) -> None:
    assert engine_names()[:3] == ("duckdb", "polars", "spark")
    register_engine(Counting())
    assert engine_names()[-1] == "counting"
    used(tmp_path)


def test_the_command_takes_a_registered_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    register_engine(Counting())
    Path("rows.csv").write_text("user,lon,lat\na,0.5,0.5\nb,0.2,0.7\n", encoding="utf-8")
    words = "heatmap rehearse rows.csv --public --user user --bounds 0,0,1,1 --plane --epsilon 1"
    for engine, code in (("counting", 0), ("uncounting", 2)):
        run = CliRunner().invoke(app, [*words.split(), "--engine", engine, "--out", "map.json"])
        assert run.exit_code == code, run.output
    assert Counting.asked == ["rows.csv"]
    assert "'uncounting' is none of duckdb, polars, spark, counting" in " ".join(
        run.output.replace("│", " ").split()
    )


@pytest.mark.parametrize("name", ["duckdb", "counting"])
def test_a_name_that_is_taken_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    register_engine(Counting())
    before = dict(registry.ENGINES.added)
    monkeypatch.setattr(Counting, "name", name)
    with pytest.raises(InvalidParameter, match=f"there is an engine '{name}' already; .* nothing"):
        register_engine(Counting())
    assert before == registry.ENGINES.added


def test_a_registered_engine_can_be_forgotten_and_ours_cannot() -> None:
    register_engine(Counting())
    unregister_engine("counting")
    assert "counting" not in engine_names()
    register_engine(Counting())
    for name in ("duckdb", "abacus"):
        with pytest.raises(InvalidParameter, match=f"no engine '{name}' was registered"):
            unregister_engine(name)
    assert engine_names() == ("duckdb", "polars", "spark", "counting")


class Loud(DuckDBEngine):
    """An engine that fails over a row, and says which."""

    name: ClassVar[str] = "loud"

    def read_files(self, files: Any, *, connection: str | None) -> Any:  # noqa: ARG002
        return int(Path(files.paths[0]).read_text(encoding="utf-8").splitlines()[1])

    def hold_table(self, rows: Any, *, connection: str | None) -> Any:  # noqa: ARG002
        raise ValueError(str(rows.to_pylist()[0]))


@pytest.mark.parametrize("held", [False, True])
def test_an_engine_that_fails_quotes_no_row(tmp_path: Path, held: bool) -> None:
    register_engine(Loud())
    (tmp_path / "rows.csv").write_text("user,x\nann,1\n", encoding="utf-8")
    rows = pd.DataFrame({"user": ["ann"], "x": [1.0]}) if held else tmp_path / "rows.csv"
    with pytest.raises(InvalidInput, match="loud; nothing was read") as caught:
        open_table(rows, engine="loud")
    assert "ann" not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_an_engine_can_be_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("counting", f"{__name__}:Counting", registry.ENGINES.group)
    monkeypatch.setattr(registry.ENGINES, "_installed", lambda: {"counting": point})
    used(tmp_path)


def test_an_installed_engine_is_known_by_the_name_it_was_installed_under(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even one that calls itself otherwise; and it takes nobody's place."""
    point = EntryPoint("counting", f"{__name__}:Counting", registry.ENGINES.group)
    monkeypatch.setattr(registry.ENGINES, "_installed", lambda: {"counting": point})
    monkeypatch.setattr(Counting, "name", "duckdb")
    used(tmp_path)
    assert not isinstance(registry.engine_named("duckdb"), Counting)


def test_another_name_is_refused() -> None:
    with pytest.raises(InvalidParameter, match=r"engine must be one of .*, got 'abacus'"):
        open_table("rows.csv", engine="abacus")

"""Engines are open at the edge: one from outside counts rows like ours."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest

from sfumato.errors import InvalidParameter
from sfumato.records import engine_names, open_table, register_engine
from sfumato.records.engines import registry
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
    monkeypatch.setattr(registry, "_ENGINES", dict(registry._ENGINES))
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


def test_an_engine_can_be_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("counting", f"{__name__}:Counting", registry.GROUP)
    monkeypatch.setattr(registry, "_installed", lambda: {"counting": point})
    used(tmp_path)


def test_another_name_is_refused() -> None:
    with pytest.raises(InvalidParameter, match=r"engine must be one of .*, got 'abacus'"):
        open_table("rows.csv", engine="abacus")

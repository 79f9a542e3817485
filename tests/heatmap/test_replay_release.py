"""`replay_release` takes users out of public files by Python alone, and says by how much sums move."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.records.storages import (
    Row,
    as_table,
    write_csv,
    write_duckdb,
    write_json,
    write_parquet,
    write_sqlite,
)
from typer.testing import CliRunner

from sfumato.cli.main import app
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.heatmap import as_text, replay_release
from sfumato.records import Columns
from sfumato.spaces import area_of_plane

AREA = area_of_plane((-1.0, -1.0, 3.0, 3.0), 2)
COLUMNS = Columns("user", "x", "y")
ROWS = [
    Row("a\r\nb", comment="A,0.5,0.5\nB,0.5,0.5\n"), Row("A", x="2.5"), Row("a"), Row("a"),
    Row("1", spelling=0), Row("1", x="2.5", spelling=1), Row("1", y="2.5", spelling=2), Row("q\"q"),
]  # fmt: skip


def stored(kind: str, folder: Path) -> str:
    match kind:
        case "csv":
            return str(write_csv(folder / "in.csv", ROWS, end="\r\n", bom=True))
        case "tsv.gz":
            return str(
                write_csv(folder / "in.tsv.gz", ROWS, mark="\t", pack=True, raw=b"\xff\t1\n")
            )
        case "json":
            return str(write_json(folder / "in.ndjson", ROWS))
        case "parquet":
            return str(write_parquet(folder, ROWS, parts=1) / "0.parquet")
        case "duckdb":
            return write_duckdb(folder / "in.duckdb", ROWS, collations=["nocase"])
        case _:
            return write_sqlite(folder / "in.db", ROWS, collation="nocase")


@pytest.mark.engine
@pytest.mark.parametrize("kind", ["csv", "tsv.gz", "json", "parquet", "sqlite", "duckdb"])
def test_every_user_moves_one_mass(kind: str, tmp_path: Path, rng: np.random.Generator) -> None:
    texts = kind in (
        "sqlite",
        "duckdb",
    )  # there, columns here are text: a release asks for the word
    found = replay_release(
        stored(kind, tmp_path), COLUMNS, AREA, public=True, rng=rng, text_coordinates=texts
    )
    assert found.held
    assert found.users == len(found.neighbors) == 5
    assert {one.user for one in found.neighbors} == {"a\r\nb", "A", "a", "1", 'q"q'}
    # Users in one place move a whole mass; a third of one is no whole number of units.
    assert {round(one.l1, 4) for one in found.neighbors} == {1.0}
    assert as_text(found).splitlines()[0].startswith("HELD by duckdb: 5 of 5 users taken out of ")


@pytest.mark.fault
def test_a_reader_that_splits_a_user_is_found(
    tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.records.text_rows.plain_number", str)
    found = replay_release(stored("json", tmp_path), COLUMNS, AREA, public=True, rng=rng)
    assert not found.held
    assert found.worst is not None
    assert (found.worst.user, found.worst.l1) == ("1", 3.0)
    assert (
        as_text(found)
        .splitlines()[0]
        .endswith("moved by at most 3 of the 1 that is paid for: without '1'")
    )


@pytest.mark.fault
def test_a_reader_that_takes_two_users_for_one_is_found(
    tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sfumato.records import aggregate as sums

    # As a collation does; with as many rows each, no sum moves by more than a mass.
    monkeypatch.setattr(sums, "user_key", lambda column, name: (column.lower(), column.notnull()))
    path = write_csv(
        tmp_path / "in.csv", [Row("A"), Row("a", x="2.5"), Row("B"), Row("b", x="2.5")]
    )
    found = replay_release(str(path), COLUMNS, AREA, public=True, rng=rng)
    assert not found.held
    assert found.worst is not None
    assert (found.worst.l1, found.worst.raised) == (1.0, 0.5)
    assert "others' cells rose by 0.5: without" in as_text(found).splitlines()[0]


@pytest.mark.unit
def test_what_cannot_be_replayed_is_refused(tmp_path: Path, rng: np.random.Generator) -> None:
    def replayed(source: Any, columns: Columns = COLUMNS, *, public: bool = True) -> object:
        return replay_release(str(source), columns, AREA, public=public, rng=rng)

    path = stored("csv", tmp_path)
    with pytest.raises(InvalidParameter, match=r"said aloud by `public=True`; nothing was read"):
        replayed(path, public=False)
    with pytest.raises(
        InvalidParameter, match="a column must say whose row it is; nothing was read"
    ):
        replayed(path, Columns(None, "x", "y", one_row_one_user=True))
    with pytest.raises(InvalidInput, match="neighbors are made of one file"):
        replayed(tmp_path / "*.csv")
    elsewhere = area_of_plane((10.0, 10.0, 12.0, 12.0), 2)
    nobody = replay_release(path, COLUMNS, elsewhere, public=True, rng=rng)
    assert not nobody.compared
    assert as_text(nobody).splitlines()[0].endswith("so nothing was compared; is it the area?")
    none = write_csv(tmp_path / "none.csv", [])
    found = replay_release(str(none), COLUMNS, AREA, public=True, rng=rng)
    assert as_text(found) == f"{none} has no users to take out; nothing was compared"


@pytest.mark.unit
def test_the_command_says_what_the_function_says(tmp_path: Path) -> None:
    table = as_table(ROWS)
    import pyarrow.parquet as pq

    pq.write_table(table, tmp_path / "rows.parquet")
    call = ["audit", "replay-release", str(tmp_path / "rows.parquet"), "--user", "user", "--x", "x",
            "--y", "y", "--plane", "--bounds=-1,-1,3,3", "--levels", "2", "--seed=1", "--json"]  # fmt: skip
    refused = CliRunner().invoke(app, call)
    assert refused.exit_code == 2
    done = CliRunner().invoke(app, [*call, "--public", "--by", "image", "--values", "a,b"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert (said["held"], said["users"], said["masses"]) == (True, 5, 1)

"""Nothing that may be a part of a password is said of a connection, however it was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.errors import InvalidInput
from sfumato.records import (
    Columns,
    named_files,
    open_table,
    public_connection,
    table_identity,
)

pytestmark = pytest.mark.unit

PASSWORDS = [
    "plain", "2024#spring", "1234/x", "#x", "sec/ret#1", "a?b", "a;b", "a=b", "a[b", "a@b", "12/34?5#6", "9]",
]  # fmt: skip


@pytest.mark.parametrize("password", PASSWORDS)
def test_no_part_of_a_password_is_public(password: str) -> None:
    url = f"postgres://ann:{password}@db/town"
    found = public_connection(url)
    known = table_identity("trips", Columns("user", "x", "y"), connection=url)
    assert known is not None
    for said in (found.host, found.database, found.url, known.name):
        rest = (
            said.replace("postgres", "")
            .replace("town", "")
            .replace("trips", "")
            .replace("ann@db", "")
        )
        assert rest.strip(":/") in ("", "db"), said
    assert found.secret


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("postgres://ann@db:5432/town", "db:5432"),
        ("postgres:///town?host=/tmp/pg", "/tmp/pg"),  # noqa: S108
        ("sc://h:15002/;token=abc", "h:15002"),
    ],
)
def test_hosts_are_named(url: str, host: str) -> None:
    assert public_connection(url).host == host
    assert "abc" not in public_connection(url).url


def test_what_is_no_url_is_not_quoted() -> None:
    with pytest.raises(InvalidInput) as refused:
        open_table("trips", connection="host=db user=ann password=hunter2")
    assert "hunter2" not in str(refused.value)
    assert "ann" not in str(refused.value).replace("scanned", "")


def test_headers_that_may_be_rows_are_not_quoted(tmp_path: Path) -> None:
    for name, row in (("a", "ann4217;2.35;48.85"), ("b", "bob99;2.36;48.86")):
        (tmp_path / f"{name}.csv").write_text(f"{row}\n{row}\n")
    with pytest.raises(InvalidInput) as refused:
        open_table(str(tmp_path / "*.csv"), columns=Columns("user", "lon", "lat"))
    assert not any(secret in str(refused.value) for secret in ("ann4217", "bob99", "2.35", "2.36"))


@pytest.mark.parametrize("way", ["link", "around"])
def test_one_file_under_two_names_is_one(way: str, tmp_path: Path) -> None:
    """Else each of its rows would count twice."""
    (tmp_path / "sub").mkdir()
    one = tmp_path / "a.csv"
    one.write_text("user,x,y\n1,0.5,0.5\n")
    other = tmp_path / "b.csv" if way == "link" else tmp_path / "sub" / ".." / "a.csv"
    if way == "link":
        other.symlink_to(one)
    with pytest.raises(InvalidInput, match="every file is named once"):
        open_table([one, other], columns=Columns("user", "x", "y"))


def test_partitions_beside_one_that_is_missing_are_not_told(tmp_path: Path) -> None:
    for user in ("ann", "zoe"):
        (tmp_path / f"user={user}").mkdir()
    with pytest.raises(InvalidInput, match="there is no partition user=bob") as refused:
        open_table(str(tmp_path / "user=bob" / "a.parquet"))
    assert not any(name in str(refused.value) for name in ("ann", "zoe"))


def test_files_of_a_dataset_are_private(tmp_path: Path) -> None:
    """So that no output replaces them, and none of them is taken for a public prior."""
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"user": [1]}), tmp_path / "a.parquet")
    assert named_files(ds.dataset(tmp_path)) == (tmp_path / "a.parquet",)

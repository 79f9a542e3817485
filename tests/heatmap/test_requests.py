"""What is kept of a request: all that a release is made of, and no password."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import InvalidParameter
from sfumato.heatmap import PyramidMethod, ZoomMethod
from sfumato.heatmap.methods import registered_methods
from sfumato.heatmap.pipeline.options import Rows
from sfumato.heatmap.pipeline.release_plan import ReleasePlan
from sfumato.heatmap.pipeline.requests import HeatmapRequest, needs_rows
from sfumato.records import Columns, Periods, table_identity
from sfumato.spaces import area_in_degrees

pytestmark = pytest.mark.unit

AREA = area_in_degrees((11.20, 43.74, 11.32, 43.81), 7)
COLUMNS = Columns("user", "lon", "lat", weight="w", step=Fraction(1, 3), cap=7)


def asked(**more: Any) -> HeatmapRequest:
    words: dict[str, Any] = {
        "rows": Rows("a.csv", COLUMNS),
        "area": AREA,
        "epsilon": Fraction(1, 3),
        "bounds_epsilon": Fraction(0),
        "method": ZoomMethod(),
        **more,
    }
    return HeatmapRequest(**words)


def again(request: HeatmapRequest, **given: Any) -> HeatmapRequest:
    """What a ledger gives back of it."""
    kept = request.request
    asked, delivery = json.loads(json.dumps([kept.asked, kept.delivery]))
    return HeatmapRequest.from_json(asked, delivery, **given)


@pytest.mark.parametrize("name", sorted(registered_methods()))
def test_every_method_is_asked_for_again(name: str) -> None:
    method = registered_methods()[name].make()
    assert again(asked(method=method)).method == method


@pytest.mark.parametrize(
    "groups",
    [
        None,
        ("a", "b"),
        Periods("t", "day", datetime(2026, 1, 1), datetime(2026, 1, 3), "Europe/Rome", True),
    ],
)
def test_a_request_is_what_it_was(
    groups: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = asked(
        groups=groups, outputs=("m-{by}.png",), prior="roads.geojson", title="T", team="x"
    )
    found = again(first)
    for one in fields(HeatmapRequest):
        if one.name not in ("rows", "outputs", "prior"):
            assert getattr(found, one.name) == getattr(first, one.name), one.name
    assert found.rows.columns == COLUMNS
    assert found.rows.source == str(tmp_path / "a.csv")
    assert found.outputs == (str(tmp_path / "m-{by}.png"),)
    assert found.prior == str(tmp_path / "roads.geojson")


@pytest.mark.parametrize(
    "connection",
    [
        "postgres://me:s3cret@h/db",
        "postgres://h/db?password=s3cret",
        "x://h#s3cret",
        "sc://h:15002/;token=s3cret",
        "host=h password=s3cret",
        "postgres://me:a/s3cret@h/db",
        "postgres://me:s3cret/a@h/db",
        "postgres://me:s3cret?a@h/db",
        "postgres://me:s3cret#a@h/db",
        "postgres://me:a@s3cret@h/db",
    ],
)
def test_no_password_is_kept(connection: str) -> None:
    rows = Rows("trips", COLUMNS, connection=connection)
    kept = asked(rows=rows).request
    assert "s3cret" not in json.dumps([kept.asked, kept.delivery])
    assert "s3cret" not in str(table_identity("trips", COLUMNS, connection=connection))
    found = again(asked(rows=rows))
    assert "connection" in needs_rows(found, kept.asked)
    told = again(asked(rows=rows), connection=connection)
    assert (needs_rows(told, kept.asked), told.rows.connection) == ("", connection)


def test_rows_in_memory_must_be_given_again() -> None:
    request = asked(rows=Rows(object(), COLUMNS))
    assert "source" in needs_rows(again(request), request.request.asked)
    assert needs_rows(again(request, source="b.csv"), request.request.asked) == ""


def test_another_method_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="the method was zoom"):
        again(asked(), method=PyramidMethod())


def test_a_plan_has_nothing_that_its_request_does_not_say() -> None:
    """Whoever adds a field that the release depends on says in HeatmapRequest how it is kept."""
    assert {one.name for one in fields(ReleasePlan)} == {
        *("asked", "ledger", "price", "prior", "outputs", "result", "bound", "table"),
        *("once", "kept", "missing"),
        # Rows that were looked at for their columns, and whether to pay although something is undelivered.
        *("opened", "anew"),
    }

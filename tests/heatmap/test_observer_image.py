"""A user column of pairs gives each observer mass 1 in each image; its ledger pays for no other column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.records.plain import opened

from sfumato.errors import LedgerMismatch
from sfumato.heatmap import plan_release
from sfumato.privacy import UNITS, Ledger, PureDP
from sfumato.records import Columns, open_table, sum_cells
from sfumato.spaces import area_of_plane

pytestmark = pytest.mark.unit

ROWS: dict[str, list[Any]] = {
    "observer": ["1", "1", "1", "2"],
    "pair": ["1/a", "1/a", "1/b", "2/a"],
    "image": ["a", "a", "b", "a"],
    "x": [0.2, 0.7, 0.7, 0.2],
    "y": [0.2, 0.7, 0.7, 0.2],
}


def summed(user: str, *, without: str = "") -> dict[int, int]:
    kept = [number for number, pair in enumerate(ROWS["pair"]) if pair != without]
    table = pa.table({name: [values[at] for at in kept] for name, values in ROWS.items()})
    columns = Columns(user, "x", "y", by="image")
    area = area_of_plane((0, 0, 1, 1), 1)
    return opened(sum_cells(open_table(table), columns, area, source="gaze", groups=("a", "b")))


def moved(user: str) -> int:
    whole, rest = summed(user), summed(user, without="1/a")
    return sum(abs(whole.get(cell, 0) - rest.get(cell, 0)) for cell in whole.keys() | rest.keys())


def test_a_pair_moves_one_mass_and_of_observers_it_would_move_more() -> None:
    assert sum(summed("pair").values()) == 3 * UNITS, "observer 1 has mass 1 in both images"
    assert moved("pair") == UNITS
    assert moved("observer") > UNITS, "why a ledger of pairs must not pay for a column of observers"


def test_a_ledger_that_paid_for_pairs_does_not_pay_for_observers(tmp_path: Path) -> None:
    pq.write_table(pa.table(ROWS), tmp_path / "gaze.parquet")
    ledger = Ledger.create(tmp_path / "g.ledger", PureDP(4), unit="observer-image", source="gaze")
    asked: dict[str, Any] = {
        "x": "x", "y": "y", "by": "image", "groups": ("a", "b"), "bounds": (0, 0, 1, 1),
        "plane": True, "levels": 2, "ledger": ledger, "epsilon": 1,
    }  # fmt: skip
    paid = plan_release(tmp_path / "gaze.parquet", user="pair", **asked).run()
    assert paid.statement.startswith("epsilon 1 for each observer-image")
    with pytest.raises(
        LedgerMismatch, match=r"by 'pair', this is .* by 'observer'.*nothing was charged"
    ):
        plan_release(tmp_path / "gaze.parquet", user="observer", **asked)

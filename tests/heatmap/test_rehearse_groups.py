"""A rehearsal of several maps: exact errors of each, their means, and nothing where nobody was."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sfumato.cli.main import app
from sfumato.errors import InvalidInput
from sfumato.heatmap import RehearsalResult, as_text, compare, rehearse_heatmap, smooth
from sfumato.privacy import KeyedNoise
from sfumato.records import Periods

pytestmark = pytest.mark.unit

BOX = (0.0, 0.0, 1.0, 1.0)
DAYS = Periods("t", "day", datetime(2026, 1, 5), datetime(2026, 1, 8))


def rows() -> pa.Table:
    """Sixty people: in the west on Monday, in the east on Tuesday, nowhere on Wednesday."""
    rng = np.random.default_rng(5)
    users = np.repeat(np.arange(60), 2)
    east = np.tile([0.0, 1.0], 60)
    return pa.table(
        {
            "user": [f"u{one}" for one in users],
            "x": 0.3 + 0.4 * east + 0.01 * rng.random(120),
            "y": 0.5 + 0.01 * rng.random(120),
            "t": [f"2026-01-0{5 + int(one)}T07:00" for one in east],
            "side": ["east" if one else "west" for one in east],
        }
    )


def rehearsed(**options: Any) -> RehearsalResult:
    return rehearse_heatmap(
        rows(), user="user", x="x", y="y", bounds=BOX, plane=True, levels=5, public=True, epsilon=20,
        noise=KeyedNoise(bytes(32), epoch=bytes(12)), **options,
    )  # fmt: skip


def test_each_map_is_held_against_its_own_truth() -> None:
    found = rehearsed(groups=DAYS)
    assert list(found.by_group) == ["2026-01-05", "2026-01-06", "2026-01-07"]
    assert found.by_group["2026-01-07"] is None, "nobody was there"
    for one, truth in zip(found.maps[:2], found.truths[:2], strict=True):
        assert truth is not None
        own = found.by_group[one.group]
        assert own == compare(smooth(truth, found.blur), one.image(sigma=found.blur), one.area)
        assert own is not None
        assert own.similarity > 0.6
    west, east = found.truths[:2]
    assert west is not None
    assert east is not None
    assert (west[:, :16].sum(), east[:, 16:].sum()) == pytest.approx((1, 1))
    values = [one.similarity for one in found.by_group.values() if one is not None]
    assert found.errors.similarity == pytest.approx(sum(values) / 2)


def test_values_are_groups_too_and_mass_in_each_period_is_paid_for() -> None:
    sides = rehearsed(groups=("west", "east"), by="side")
    assert set(sides.by_group) == {"west", "east"}
    each = rehearsed(groups=Periods(DAYS.column, DAYS.unit, DAYS.start, DAYS.end, "", True))
    shared = rehearsed(groups=DAYS)
    assert each.maps[0].guarantee.loss != shared.maps[0].guarantee.loss
    assert round(each.maps[0].tiles.total) == 60
    assert round(shared.maps[0].tiles.total) == 30


def test_a_rehearsal_of_nobody_in_any_group_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no row counts"):
        rehearsed(groups=("north", "south"), by="side")


def test_the_command_says_the_same(tmp_path: Path) -> None:
    pq.write_table(rows(), tmp_path / "rows.parquet")
    words = [
        "heatmap", "rehearse", str(tmp_path / "rows.parquet"), "--user", "user", "--x", "x", "--y", "y",
        "--bounds", "0,0,1,1", "--plane", "--levels", "5", "--public", "--epsilon", "20", "--time", "t",
        "--by", "day", "--from", "2026-01-05", "--to", "2026-01-08", "--out", str(tmp_path / "{by}.json"),
    ]  # fmt: skip
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    again = RehearsalResult.from_json(told)
    assert again.to_json() == told
    assert set(again.by_group) == {"2026-01-05", "2026-01-06", "2026-01-07"}
    assert len(told["written"]) == 3
    said = as_text(again)
    assert "2026-01-07  nobody" in said
    assert "means over the 2 maps that somebody is on:" in said


def test_of_one_map_there_is_no_plural() -> None:
    said = as_text(
        rehearsed(groups=Periods("t", "day", datetime(2026, 1, 6), datetime(2026, 1, 8)))
    )
    assert "means over the map that somebody is on:" in said

"""A ledger shows itself in a notebook: its terms, what was spent and is left, and the last entries."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.privacy import AddRemoveUser, Bound, DiscreteLaplace, Ledger, PureDP, guard

pytestmark = pytest.mark.unit


def test_a_ledger_shows_itself(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a.ledger", PureDP(3), unit="user", source="<city>")
    for number in range(12):
        ledger.release(
            DiscreteLaplace(2**22),
            guard([0], Bound(AddRemoveUser(), 1, l1=2**20), source="<city>"),
            note=f"map {number}",
        )
    shown = ledger._repr_html_()
    assert "&lt;city&gt;" in shown
    assert "budget epsilon 3; spent epsilon 3" in shown
    assert "left epsilon 0" in shown
    assert "map 11" in shown
    assert "map 2<" in shown
    assert "map 1<" not in shown, "the last ten alone"

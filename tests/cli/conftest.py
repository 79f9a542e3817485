"""Commands draw with a quarter of the pixels a side."""

from __future__ import annotations

import pytest

from sfumato.figures import map_sheet, sheet


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing is slow, and nothing here needs more: how fine a picture is, tests/figures looks at."""
    monkeypatch.setattr(sheet, "DPI", 50)
    monkeypatch.setattr(map_sheet, "DPI", 50)

"""Every mechanism has a cost, a law, a privacy line and a proof page that names it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from sfumato import privacy
from sfumato.privacy import mechanisms

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parents[2]
MECHANISMS = [
    kind
    for _, kind in inspect.getmembers(mechanisms, inspect.isclass)
    if kind.__module__ == mechanisms.__name__ and kind is not mechanisms.Mechanism
]


def test_the_mechanisms_are_found() -> None:
    assert len(MECHANISMS) == 5


@pytest.mark.parametrize("kind", MECHANISMS, ids=lambda kind: kind.__name__)
def test_a_mechanism_has_its_proof(kind: type) -> None:
    assert kind.__name__ in privacy.__all__
    assert re.fullmatch(r"[a-z-]+/\d+", kind.name)  # type: ignore[attr-defined]
    assert hasattr(kind, "cost")
    assert hasattr(kind, "law")
    stated = re.search(r"Privacy: .*Proof: (docs/proofs/[a-z-]+\.md)", kind.__doc__ or "", re.DOTALL)
    assert stated, f"{kind.__name__} has no 'Privacy: ... Proof: ...' line"
    page = (ROOT / stated[1]).read_text(encoding="utf-8")
    assert f"`{kind.__name__}(" in page
    assert "**Proof.**" in page

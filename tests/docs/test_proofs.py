"""Every mechanism has a cost, a law, a privacy line and a proof page that names it."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest

import sfumato

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parents[2]
# By the names ledgers keep: one that is missing here, or not found in the package, is noticed.
NAMES = [
    "adaptive-grid/1",
    "discrete-gaussian/1",
    "discrete-laplace/1",
    "flat-gaussian/1",
    "flat-laplace/1",
    "flipped-dyads/1",
    "hierarchy/1",
    "joint/1",
    "local-answer/1",
    "permute-and-flip/1",
    "privtree/1",
    "pyramid/1",
    "randomised-response/1",
    "rounded-gaussian/1",
    "shared-laplace/1",
    "shuffled/1",
    "strips/1",
    "zoom/1",
]
# Where the public names of a mechanism are, by the start of its module.
HOMES = (
    "sfumato.heatmap.local",
    "sfumato.heatmap.methods.baselines",
    "sfumato.heatmap.methods",
    "sfumato.graphon",
    "sfumato.privacy",
)


def mechanisms() -> list[Any]:
    """Classes of the package with a name, a cost and a way to sample; a protocol has no name."""
    found = []
    for one in pkgutil.walk_packages(sfumato.__path__, "sfumato."):
        module = importlib.import_module(one.name)
        for _, kind in inspect.getmembers(module, inspect.isclass):
            named = isinstance(getattr(kind, "name", None), str)
            if (
                kind.__module__ == one.name
                and named
                and hasattr(kind, "cost")
                and hasattr(kind, "sample")
            ):
                found.append(kind)
    return found


MECHANISMS = mechanisms()


def test_the_mechanisms_are_found() -> None:
    assert sorted(kind.name for kind in MECHANISMS) == NAMES
    assert len({kind.__name__ for kind in MECHANISMS}) == len(NAMES) == 18


@pytest.mark.parametrize("kind", MECHANISMS, ids=lambda kind: kind.__name__)
def test_a_mechanism_has_its_proof(kind: Any) -> None:
    home = next(home for home in HOMES if kind.__module__.startswith(f"{home}."))
    assert kind.__name__ in importlib.import_module(home).__all__
    assert re.fullmatch(r"[a-z-]+/\d+", kind.name)
    assert isinstance(kind.additive, bool)
    assert hasattr(kind, "draws")
    assert hasattr(kind, "law")
    stated = re.search(
        r"Privacy: .*Proof: (docs/proofs/[a-z-]+\.md)", kind.__doc__ or "", re.DOTALL
    )
    assert stated, f"{kind.__name__} has no 'Privacy: ... Proof: ...' line"
    page = (ROOT / stated[1]).read_text(encoding="utf-8")
    assert f"`{kind.__name__}(" in page
    assert "**Proof.**" in page

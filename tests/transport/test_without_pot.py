"""Without POT, which is large and an extra, scipy gives the same distances on few points."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from sfumato.errors import MissingPackage
from sfumato.transport import cheapest_plan, emd_euclidean


@pytest.mark.reference
@pytest.mark.parametrize("size", [2, 17, 120])
def test_distances_are_those_of_pot(
    size: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = rng.normal(size=(size, 2))
    p, q = rng.exponential(size=size), rng.exponential(size=size)
    with_pot = emd_euclidean(p, q, places, normalize=True)
    monkeypatch.setitem(sys.modules, "ot", None)
    without = emd_euclidean(p, q, places, normalize=True)
    assert with_pot.value == pytest.approx(without.value, rel=1e-9)
    assert without.lower <= with_pot.upper
    assert with_pot.lower <= without.upper
    assert without.value > 0


@pytest.mark.reference
def test_plans_cost_what_those_of_pot_do(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Costs of a graphon's coupling may be below 0."""
    a, b = rng.dirichlet(np.ones(9)), rng.dirichlet(np.ones(5))
    costs = rng.normal(size=(9, 5))
    theirs = float((cheapest_plan(a, b, costs)[0] * costs).sum())
    monkeypatch.setitem(sys.modules, "ot", None)
    plan, u, v = cheapest_plan(a, b, costs)
    assert float((plan * costs).sum()) == pytest.approx(theirs, abs=1e-9)
    assert float(u @ a + v @ b) == pytest.approx(theirs, abs=1e-9)
    assert plan.sum(axis=1) == pytest.approx(a)
    assert plan.sum(axis=0) == pytest.approx(b)


@pytest.mark.unit
def test_many_pairs_are_refused_with_the_install_line(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ot", None)
    places = rng.normal(size=(500, 2))
    with pytest.raises(MissingPackage, match=r"^pip install 'sfumato\[emd\]'$"):
        emd_euclidean(np.arange(500), np.arange(500)[::-1], places)

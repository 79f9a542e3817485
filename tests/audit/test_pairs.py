"""Pairs to try: every one of them, however far a search goes, is a pair of neighbors."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit.boxes.box import Pair
from sfumato.audit.boxes.pairs import (
    Histograms,
    Inputs,
    Lists,
    Numbers,
    Queries,
    inputs_of,
    require_relation,
)
from sfumato.errors import InvalidParameter
from sfumato.privacy import AddRemoveUser, Claim, PureDP, ReplaceUser

pytestmark = pytest.mark.unit

FORMS: list[Inputs] = [
    Numbers(),
    Numbers(0.25),
    Queries(1),
    Queries(2),
    Queries(7),
    Histograms(1),
    Histograms(4),
    Histograms(2, replace=True),
    Lists(),
    Lists(1),
    Lists(5, low=-2, high=3, replace=True),
]


def neighbors(form: Inputs, pair: Pair) -> bool:
    """The relation itself, in words as plain as can be."""
    match form:
        case Numbers(step):
            return bool(abs(pair.first - pair.second) == step)
        case Queries():
            return 0 < float(np.abs(pair.first - pair.second).max()) <= 1
        case Histograms(_, replace):
            moved = pair.second - pair.first
            whole = (pair.first >= 0).all() and (pair.second >= 0).all()
            return bool(whole) and sorted(moved[moved != 0].tolist()) in (
                [[-1, 1]] if replace else [[1], [-1]]
            )
        case Lists(_, low, high, replace):
            inside = all(low <= value <= high for value in [*pair.first, *pair.second])
            fewer, more = Counter(pair.first), Counter(pair.second)
            gone, come = (fewer - more).total(), (more - fewer).total()
            return inside and sorted((gone, come)) == ([1, 1] if replace else [0, 1])
        case _:
            raise AssertionError(form)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_patterns_are_pairs_of_neighbors_with_names_of_their_own(form: Inputs) -> None:
    found = form.patterns()
    assert found
    assert all(neighbors(form, pair) for pair in found)
    assert len({pair.name for pair in found}) == len(found)


@given(form=st.sampled_from(FORMS), path=st.lists(st.integers(0, 30), min_size=1, max_size=5))
def test_a_search_never_leaves_the_neighbors(form: Inputs, path: list[int]) -> None:
    pair = form.patterns()[path[0] % len(form.patterns())]
    for turn in path[1:]:
        around = form.vary(pair)
        pair = around[turn % len(around)]
        assert neighbors(form, pair), pair


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_varying_changes_no_pair_in_place(form: Inputs) -> None:
    for pair in form.patterns():
        before = repr(pair)
        form.vary(pair)
        assert repr(pair) == before


def test_the_eight_patterns_of_the_literature() -> None:
    found = {
        pair.name: (pair.first.tolist(), pair.second.tolist()) for pair in Queries(5).patterns()
    }
    assert len(found) == 8
    assert found["half down, half up"] == ([1] * 5, [0, 0, 0, 2, 2])
    assert found["halves change places"] == ([1, 1, 1, 0, 0], [0, 0, 0, 1, 1])


def test_a_form_is_named_on_the_command_line() -> None:
    assert inputs_of("queries:7") == Queries(7)
    assert inputs_of("list-replace:3") == Lists(3, replace=True)
    assert inputs_of("histogram-replace") == Histograms(5, replace=True)
    assert inputs_of("numbers:0.5") == Numbers(0.5)
    for wrong in ("", "matrix:3", "queries:many", "list:1e3", "numbers:inf"):
        with pytest.raises(InvalidParameter, match="nothing was run"):
            inputs_of(wrong)


def test_forms_without_neighbors_are_refused() -> None:
    for make in (
        lambda: Numbers(0),
        lambda: Queries(0),
        lambda: Histograms(1, replace=True),
        lambda: Lists(0),
        lambda: Lists(3, low=1, high=1),
    ):
        with pytest.raises(InvalidParameter, match="nothing was run"):
            make()


@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_refused_for_claims_about_other_neighbors(form: Inputs) -> None:
    for neighbors in (AddRemoveUser(), ReplaceUser()):
        claim = Claim(PureDP(1), neighbors)
        require_relation(form.patterns(), claim)
        if form.relation in (None, neighbors):
            require_relation(form, claim)
        else:
            with pytest.raises(InvalidParameter, match="neighbors in the sense of the claim"):
                require_relation(form, claim)


def test_forms_say_how_their_pairs_are_neighbors() -> None:
    found = [
        form.relation for form in map(inputs_of, ("numbers", "queries:2", "histogram:2", "list:2"))
    ]
    assert found == [None, None, AddRemoveUser(), AddRemoveUser()]
    assert (
        inputs_of("list-replace").relation
        == inputs_of("histogram-replace").relation
        == ReplaceUser()
    )

"""A chooser is saved whole or not at all, and refuses in a sentence what it cannot choose from or learn."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.online.chooser import Chooser


def learnt(losses: npt.ArrayLike, noise: str = "gumbel") -> Chooser[int]:
    table = np.asarray(losses, dtype=np.float64)
    made = Chooser(range(table.shape[1]), noise)
    for row in table:
        made.observe(row)
    return made


@pytest.mark.unit
def test_it_can_be_saved_and_taken_up(rng: np.random.Generator) -> None:
    losses = rng.random((40, 3))
    whole = learnt(losses, "laplace")
    half = learnt(losses[:20], "laplace")
    again: Chooser[int] = Chooser.from_dict(json.loads(json.dumps(half.to_dict())))
    for row in losses[20:]:
        again.observe(row)
    assert again.to_dict() == whole.to_dict()
    assert again.probabilities == whole.probabilities
    assert repr(again) == repr(whole)


@pytest.mark.unit
@pytest.mark.parametrize(
    "changed",
    [
        {"format": "other"},
        {"candidates": [0, 0, 1]},
        {"noise": "white"},
        {"losses": [0.0, 1.0]},
        {"losses": [0.0, 1.0, "x"]},
        {"paid": math.nan},
        {"paid": "much"},
        {"rounds": 1.5},
        {"losses": [-1.0, 1.0, 0.0]},
        {"rounds": -3},
        {"paid": -1.0},
        {"saved": -5.0, "saved_before": -6.0},
        {"saved_before": 1e9},
        {"saved_before": -1.0},
        {"widest": -1.0},
        {"length": -1.0},
        {"path": [[1, 2]]},
        {"losses": ["1", "0", "0"]},
        {"paid": 10**400},
        {"more": 1},
    ],
)
def test_a_damaged_save_is_refused(changed: dict[str, Any]) -> None:
    data = learnt([[1, 0, 0]]).to_dict()
    with pytest.raises(InvalidInput, match="not a saved chooser"):
        Chooser.from_dict({**data, **changed})


@pytest.mark.unit
def test_a_save_must_be_whole() -> None:
    """Without "saved_before" the bound would be too small, and nobody would know."""
    data = learnt([[1, 0, 0], [0, 1, 0]]).to_dict()
    for name in data:
        rest = {key: value for key, value in data.items() if key != name}
        with pytest.raises(
            InvalidInput, match=f"^not a saved chooser: it has no '{name}'; nothing was read$"
        ):
            Chooser.from_dict(rest)
    with pytest.raises(InvalidInput, match="'more' is not part of one"):
        Chooser.from_dict({**data, "more": 1})
    wrong: Any
    for wrong in (None, 3, [1, 2]):
        with pytest.raises(InvalidInput, match="it is no mapping"):
            Chooser.from_dict(wrong)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("losses", "rule"),
    [
        ([1.0, math.nan], "finite, got nan for 'b'"),
        ([1.0, math.inf], "finite, got inf for 'b'"),
        ([1.0], "each of 2 candidates"),
        ([[1.0, 2.0]], "each of 2 candidates"),
        (["much", 1], "must be numbers"),
        (["1", "2"], "must be numbers"),
        ({"a": "1", "b": 2.0}, "must be numbers"),
        (np.array(["1", 2], dtype=object), "must be numbers"),
        (np.array([1j, 2]), "must be numbers"),
        ([10**400, 1], "no double holds"),
        ({"a": 1.0}, "none for 'b'"),
        ({"a": 1.0, "b": 1.0, "c": 1.0}, "unknown 'c'"),
        ([1.7e308, -1.7e308], "by 0 or by 1e-290 to 1e\\+290, .* these by inf"),
        ([1e291, 0.0], "these by 1e\\+291"),
        ([1e-291, 0.0], "these by 1e-291"),
    ],
)
def test_losses_that_make_no_sense_teach_nothing(losses: Any, rule: str) -> None:
    made = Chooser(["a", "b"])
    made.observe([0, 1])
    before = made.state
    with pytest.raises(InvalidParameter, match=rule) as refused:
        made.observe(losses)
    assert "nothing was learnt" in str(refused.value)
    assert made.state is before


@pytest.mark.unit
def test_what_cannot_be_chosen_from_is_refused() -> None:
    candidates: Any
    for candidates in ([], ["a", "a"], [["a"], ["b"]], 3, None):
        with pytest.raises(InvalidParameter, match="at least one, hashable and all different"):
            Chooser(candidates)
    with pytest.raises(InvalidParameter, match="gumbel"):
        Chooser(["a"], "white")
    for rng in (3, np.random, "dice", random, np.random.RandomState(0)):
        with pytest.raises(
            InvalidParameter, match=r"rng must be a numpy Generator, got .*; no chooser was made"
        ):
            Chooser(["a", "b"], rng=rng)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="hazard of Gaussian"):
        Chooser(["a"], "gaussian")
    with pytest.raises(InvalidParameter, match="text or numbers"):
        Chooser([("a", 1)]).to_dict()

"""Private data can be held and not read, and what it carries bounds what one user can change."""

from __future__ import annotations

import ast
import copy
import dataclasses
import json
import operator
import pickle
import pprint
import traceback
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter, Unguarded
from sfumato.privacy import AddRemoveUser, Bound, Guarded, MovedMass, ReplaceUser, guard, histogram
from sfumato.privacy.ledger.guarded import LARGEST, lattice, open_for_release

HOUSE = Path(__file__).parent.parent.parent / "src" / "sfumato"
CANARY = 987_654_321_987


def guarded(*values: int) -> Guarded[Any]:
    found = values or (CANARY, CANARY + 1)
    return guard(
        np.array(found, dtype=np.int64), Bound(AddRemoveUser(), len(found), l1=1), source="city"
    )


READS: dict[str, Any] = {
    "asarray": np.asarray,
    "array of objects": lambda g: np.array(g, dtype=object),
    "array inside a list": lambda g: np.array([g]),
    "sum": np.sum,
    "isnan": np.isnan,
    "iter": iter,
    "list": list,
    "unpacking": lambda g: (lambda *_: None)(*g),
    "len": len,
    "index": lambda g: g[0],
    "slice": lambda g: g[:1],
    "contains": lambda g: CANARY in g,
    "bool": bool,
    "int": int,
    "float": float,
    "complex": complex,
    "operator.index": operator.index,
    "bytes": bytes,
    "memoryview": memoryview,
    "round": round,
    "pickle": pickle.dumps,
    "pickle 0": lambda g: pickle.dumps(g, protocol=0),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "reduce": lambda g: g.__reduce__(),
    "getstate": lambda g: g.__getstate__(),
    "json": json.dumps,
    "vars": vars,
    "asdict": dataclasses.asdict,
    "replace": dataclasses.replace,
    "hash": hash,
    "format spec": lambda g: f"{g:d}",
    "percent": lambda g: "%d" % g,  # noqa: UP031
    "call": lambda g: g(),
    "set": lambda g: setattr(g, "bound", None),
    "set another": lambda g: setattr(g, "note", None),
    "delete": lambda g: delattr(g, "source"),
}
OPERATORS = [
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.matmul, operator.and_, operator.or_, operator.xor, operator.lshift, divmod,
]  # fmt: skip
UNARY = [operator.neg, operator.pos, operator.abs, operator.invert]
OTHERS: list[Any] = [
    1,
    1.5,
    2j,
    np.int64(3),
    np.float64(0.5),
    np.arange(2),
    np.array([1.0, 2.0]),
    [1, 2],
]


@pytest.mark.unit
@pytest.mark.parametrize("name", READS)
def test_every_way_to_read_is_refused(name: str) -> None:
    with pytest.raises(TypeError) as refusal:
        READS[name](guarded())
    assert str(CANARY) not in "".join(traceback.format_exception(refusal.value))


@pytest.mark.unit
@pytest.mark.parametrize("operation", OPERATORS, ids=lambda operation: operation.__name__)
def test_no_arithmetic_or_comparison_from_either_side(operation: Callable[[Any, Any], Any]) -> None:
    for other in OTHERS:
        with pytest.raises(TypeError):
            operation(guarded(), other)
        with pytest.raises(TypeError):
            operation(other, guarded())
    with pytest.raises(TypeError):
        operation(guarded(), guarded())


@pytest.mark.unit
@pytest.mark.parametrize("operation", UNARY, ids=lambda operation: operation.__name__)
def test_no_arithmetic_alone(operation: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError):
        operation(guarded())


@pytest.mark.unit
def test_the_refusal_says_which_way_is_open() -> None:
    with pytest.raises(
        Unguarded, match=r"^private data leaves only through Ledger\.release; nothing was read$"
    ):
        np.asarray(guarded())


@pytest.mark.unit
def test_what_is_shown_depends_on_no_value() -> None:
    shows: list[Callable[[Any], str]] = [
        repr,
        str,
        format,
        ascii,
        pprint.pformat,
        "{}".format,
        "{!r:>99}".format,
    ]
    for show in shows:
        assert show(guarded(CANARY, 7)) == show(guarded(0, 0))
        assert str(CANARY) not in show(guarded(CANARY, 7))
    assert (
        repr(guarded(CANARY, 7))
        == "Guarded(2 private entries of 'city', one user added or removed)"
    )


@pytest.mark.unit
def test_no_named_attribute_holds_the_values() -> None:
    held = guarded()
    assert not hasattr(held, "__dict__")
    assert str(CANARY) not in repr(dir(held))
    public = [name for name in dir(held) if not name.startswith("_")]
    assert public == ["bound", "exponent", "source", "table"]
    assert all(str(CANARY) not in repr(getattr(held, name)) for name in public)


@pytest.mark.unit
@pytest.mark.parametrize(
    "values",
    [[1.0, 2.0], [True, False], [2**70, 0], ["1", "2"], [1 + 0j, 2], [None, 1], [np.nan, 1]],
)
def test_only_integers_come_under_guard(values: list[Any]) -> None:
    with pytest.raises(
        InvalidParameter, match=r"^guarded values must be integers \(lattice units\), got dtype"
    ):
        guard(values, Bound(AddRemoveUser(), 2, l1=1), source="city")
    with pytest.raises(InvalidParameter, match=r"^cells must be a 1-D integer array"):
        histogram(values, 2, source="city")


@pytest.mark.unit
@pytest.mark.parametrize("values", [[1], [1, 2, 3], [[1, 2]], [[1], [2]], 5])
def test_another_shape_than_the_bound_is_refused(values: Any) -> None:
    with pytest.raises(
        InvalidParameter, match=r"^guarded values must have shape \(2,\) as bounded, got \("
    ):
        guard(values, Bound(AddRemoveUser(), 2, l1=1), source="city")


@pytest.mark.unit
def test_values_are_clipped_to_leave_room_for_noise() -> None:
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    values = np.array([low, -LARGEST - 1, -LARGEST, -1, LARGEST, LARGEST + 1, high])
    held = open_for_release(guard(values, Bound(AddRemoveUser(), 7, l1=1), source="city"))
    assert held.tolist() == [-(2**61), -(2**61), -(2**61), -1, 2**61, 2**61, 2**61]
    top = np.array([2**64 - 1, 3], dtype=np.uint64)
    assert open_for_release(
        guard(top, Bound(AddRemoveUser(), 2, l1=1), source="city")
    ).tolist() == [2**61, 3]


@pytest.mark.unit
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32, np.int64, np.uint64])
def test_any_integer_type_is_held_as_int64(dtype: type) -> None:
    held = open_for_release(
        guard(np.array([5, 100], dtype=dtype), Bound(AddRemoveUser(), 2, l1=1), source="x")
    )
    assert held.dtype == np.int64
    assert held.tolist() == [5, 100]


@pytest.mark.unit
def test_what_is_held_cannot_be_changed_from_outside() -> None:
    values = np.array([1, 2])
    held = guard(values, Bound(AddRemoveUser(), 2, l1=1), source="city")
    values[:] = 9
    assert open_for_release(held).tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        open_for_release(held)[0] = 9


@pytest.mark.unit
def test_a_histogram_counts_users_per_cell_and_nobody_outside() -> None:
    cells = [2, 0, 2, -1, 3, 2, -(2**40), 2**40]
    assert open_for_release(histogram(cells, 3, source="city")).tolist() == [1, 0, 3]
    assert open_for_release(
        histogram(np.array([2**63], dtype=np.uint64), 2, source="x")
    ).tolist() == [0, 0]


@pytest.mark.unit
@pytest.mark.parametrize("nobody", [[], (), np.array([], dtype=np.int64), np.array([])])
def test_nobody_is_a_data_set_like_any_other(nobody: Any) -> None:
    empty, one = histogram(nobody, 3, source="city"), histogram([1], 3, source="city")
    assert open_for_release(empty).tolist() == [0, 0, 0]
    assert empty.bound == one.bound
    assert repr(empty) == repr(one)


@pytest.mark.unit
@pytest.mark.parametrize(("cells", "size"), [([[1]], 2), (1, 2), ([1], 0), ([1], -3)])
def test_a_histogram_needs_a_list_of_cells_and_a_cell(cells: Any, size: int) -> None:
    with pytest.raises(InvalidParameter, match=r"1-D integer array|at least 1 cell"):
        histogram(cells, size, source="city")


def neighbors(
    cells: list[int], size: int, relation: AddRemoveUser | ReplaceUser
) -> Iterator[list[int]]:
    """Every data set one step away, a user outside all cells included."""
    anywhere = range(-1, size + 1)
    for at in range(len(cells) + 1):
        before, after = cells[:at], cells[at + 1 :]
        if isinstance(relation, AddRemoveUser):
            yield from ([*before, cell, *cells[at:]] for cell in anywhere)
            if at < len(cells):
                yield before + after
        elif at < len(cells):
            yield from ([*before, cell, *after] for cell in anywhere)


@st.composite
def data_sets(draw: st.DrawFn) -> tuple[list[int], int, AddRemoveUser | ReplaceUser]:
    size = draw(st.integers(1, 5))
    cells = draw(st.lists(st.integers(-1, size), max_size=6))
    relation = draw(st.one_of(st.just(AddRemoveUser()), st.just(ReplaceUser())))
    return cells, size, relation


@pytest.mark.property
@given(data_sets())
def test_a_neighbor_moves_a_histogram_within_its_bound(
    case: tuple[list[int], int, AddRemoveUser | ReplaceUser],
) -> None:
    cells, size, relation = case
    here = histogram(cells, size, source="city", neighbors=relation)
    bound = here.bound
    assert bound.neighbors == relation
    for other in neighbors(cells, size, relation):
        there = histogram(other, size, source="city", neighbors=relation)
        assert there.bound == bound
        assert_within(open_for_release(there) - open_for_release(here), bound)


def assert_within(step: Any, bound: Bound) -> None:
    moved = np.abs(step).astype(object)
    for name, found in (
        ("l1", moved.sum()),
        ("l2_squared", (moved**2).sum()),
        ("linf", moved.max()),
    ):
        limit = getattr(bound, name)
        assert limit is None or found <= limit, name
    assert np.count_nonzero(step) <= bound.entries


@pytest.mark.unit
@pytest.mark.parametrize("relation", [AddRemoveUser(), ReplaceUser()])
def test_the_bound_of_a_histogram_is_reached(relation: AddRemoveUser | ReplaceUser) -> None:
    here = histogram([0, 1], 3, source="city", neighbors=relation)
    steps = [
        open_for_release(histogram(other, 3, source="city", neighbors=relation))
        - open_for_release(here)
        for other in neighbors([0, 1], 3, relation)
    ]
    assert max(np.abs(step).sum() for step in steps) == here.bound.l1
    assert max((step**2).sum() for step in steps) == here.bound.l2_squared
    assert max(np.abs(step).max() for step in steps) == here.bound.linf
    assert max(np.count_nonzero(step) for step in steps) == here.bound.entries


@pytest.mark.property
@given(
    step=st.lists(st.integers(-(2**40), 2**40) | st.integers(-2, 2), min_size=1, max_size=8),
    slack=st.fractions(0, 3),
    with_linf=st.booleans(),
)
def test_norms_derived_from_l1_hold_for_every_vector(
    step: list[int], slack: Fraction, with_linf: bool
) -> None:
    vector = np.array(step, dtype=np.int64)
    total, largest = sum(map(abs, step)) + slack, max(map(abs, step)) + slack
    bound = Bound(AddRemoveUser(), len(step), l1=total, linf=largest if with_linf else None)
    assert bound.l1 == total
    assert bound.linf is not None
    assert bound.l2_squared is not None
    assert_within(vector, bound)


@pytest.mark.unit
def test_norms_that_nobody_knows_stay_unknown() -> None:
    known = Bound(AddRemoveUser(), 4, l2_squared="9/4")
    assert (known.l1, known.l2_squared, known.linf, known.entries) == (
        None,
        Fraction(9, 4),
        None,
        4,
    )
    flat = Bound(AddRemoveUser(), 4, linf=2)
    assert (flat.l1, flat.l2_squared, flat.linf, flat.entries) == (None, None, Fraction(2), 4)
    tight = Bound(AddRemoveUser(), 4, l1=0.1, entries=3)
    assert (tight.l1, tight.entries) == (Fraction(1, 10), 3)
    assert Bound(AddRemoveUser(), 4, l1=2).entries == 2
    assert Bound(AddRemoveUser(), 4, l1=9).entries == 4
    assert Bound(AddRemoveUser(), 4, l1=0).entries == 1


@pytest.mark.unit
def test_a_bound_that_says_nothing_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="at least one of l1, l2_squared, linf; got none"):
        Bound(AddRemoveUser(), 4)
    with pytest.raises(InvalidParameter, match="at least 1 entry, got 0"):
        Bound(AddRemoveUser(), 0, l1=1)
    with pytest.raises(InvalidParameter, match="l1 must be at least 0, got -1"):
        Bound(AddRemoveUser(), 4, l1=-1)
    for entries in (0, 5):
        with pytest.raises(
            InvalidParameter, match=rf"entries must lie in 1\.\.4 \(the size\), got {entries}"
        ):
            Bound(AddRemoveUser(), 4, l1=1, entries=entries)


@pytest.mark.unit
def test_a_missing_norm_is_named() -> None:
    bound = Bound(MovedMass(1, "line"), 4, l2_squared=2)
    assert bound.required("l2_squared", by="the test") == 2
    with pytest.raises(
        InvalidParameter, match="the test needs a bound on l1, and the data carries none"
    ):
        bound.required("l1", by="the test")


@pytest.mark.unit
def test_lattice_numbers_are_exact_or_refused() -> None:
    assert lattice(np.array([3, -1]), -1).tolist() == [1.5, -0.5]
    assert lattice(np.array([2**53]), 0).tolist() == [2.0**53]
    with pytest.raises(InvalidParameter, match=r"above 2\*\*53"):
        lattice(np.array([2**53 + 1]), 0)


def openings(source: str) -> list[str]:
    """Where a module reads private values: calls and other uses of the one function that opens them."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(
                func=ast.Name("open_for_release") | ast.Attribute(attr="open_for_release")
            ):
                found.append("call")
            case ast.Name("open_for_release") | ast.Attribute(attr="open_for_release"):
                found.append("use")
            case ast.alias(name="open_for_release"):
                found.append("import")
            case ast.FunctionDef(name="open_for_release"):
                found.append("definition")
            case (
                ast.Constant("_Guarded__value" | "open_for_release")
                | ast.Attribute(attr="_Guarded__value")
            ):
                found.append("back door")
            case _:
                pass
    return sorted(found)


@pytest.mark.unit
def test_only_the_ledger_opens_private_data() -> None:
    found = {
        str(file.relative_to(HOUSE)): openings(file.read_text())
        for file in sorted(HOUSE.rglob("*.py"))
    }
    assert {file: uses for file, uses in found.items() if uses} == {
        "privacy/ledger/guarded.py": ["back door", "back door", "definition"],
        # A call is also a use: one call, made once, under the name it has.
        "privacy/ledger/ledger.py": ["call", "import", "use"],
    }


@pytest.mark.unit
@pytest.mark.parametrize(
    "line",
    [
        "open_for_release(g)",
        "guarded.open_for_release(g)",
        "from sfumato.privacy.ledger.guarded import open_for_release as o",
        "f = guarded.open_for_release",
        "getattr(guarded, 'open_for_release')(g)",
        "object.__getattribute__(g, '_Guarded__value')",
        "g._Guarded__value",
    ],
)
def test_a_side_door_is_seen(line: str) -> None:
    assert openings(line)

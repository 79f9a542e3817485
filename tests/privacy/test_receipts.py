"""Receipts of any value: integers come back as integers, the rest as plain data; the ledger knows both."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from sfumato.cli.main import app
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.heatmap.methods.protocol import NoisyLevel, NoisyTree
from sfumato.privacy import (
    ZCDP,
    AddRemoveUser,
    ApproxDP,
    DiscreteLaplace,
    Guarantee,
    Ledger,
    Loss,
    PureDP,
    Release,
    SwappedCells,
    histogram,
    read_release,
)
from sfumato.privacy.accounting.codec import decode_guarantee, encode_guarantee

pytestmark = pytest.mark.unit


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "city.ledger", PureDP(1), unit="user", source="city")


@pytest.fixture
def paid(ledger: Ledger) -> Release[Any]:
    return ledger.release(DiscreteLaplace(10), histogram([0, 1, 1], 4, source="city"))


def tree(counts: Any) -> NoisyTree:
    return NoisyTree(1, (NoisyLevel(1, np.arange(counts.size), counts),))


AS_DATA: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "a tree": (tree, lambda counts: tree(counts).to_json()),
    "floats": (lambda counts: counts / 2, lambda counts: (counts / 2).tolist()),
    "a list": (lambda counts: counts.tolist(), lambda counts: counts.tolist()),
    "words": (lambda _: ["many"], lambda _: ["many"]),
    "arrays in a tuple": (
        lambda counts: (counts, counts[0]),
        lambda counts: [counts.tolist(), counts[0]],
    ),
    "an object with data in it": (lambda _: {"data": 1}, lambda _: {"data": 1}),
    "nothing": (lambda _: None, lambda _: None),
}


@pytest.mark.parametrize("name", AS_DATA)
def test_a_receipt_of_anything_is_read_back_and_verified(
    name: str, ledger: Ledger, paid: Release[Any], tmp_path: Path
) -> None:
    make, plain = AS_DATA[name]
    receipt = paid.then(make)
    receipt.write(tmp_path / "receipt.json")
    found = read_release(tmp_path / "receipt.json")
    assert found.value == plain(paid.value)
    assert not isinstance(found.value, np.ndarray)
    assert (found.guarantee, found.entry, found.ledger) == (paid.guarantee, paid.entry, paid.ledger)
    ledger.check(found)
    found.write(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "receipt.json").read_bytes()
    command = ["ledger", "verify", str(ledger.path), "--against", str(tmp_path / "receipt.json")]
    result = CliRunner().invoke(app, command)
    assert (result.exit_code, "1 release(s) paid for" in result.output) == (0, True)


def test_integers_stay_a_list_in_the_file(paid: Release[Any], tmp_path: Path) -> None:
    for receipt in (paid, paid.then(lambda counts: counts.astype(np.int32))):
        receipt.write(tmp_path / "receipt.json")
        assert json.loads((tmp_path / "receipt.json").read_bytes())["value"] == paid.value.tolist()
        found = read_release(tmp_path / "receipt.json")
        assert found.value.dtype == np.int64
        assert found.numbers().tolist() == receipt.numbers().tolist() == paid.value.tolist()
        (tmp_path / "receipt.json").unlink()


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (tree, "NoisyTree"),
        (lambda counts: counts / 2, "float64 array"),
        (lambda counts: counts > 0, "bool array"),
        (lambda counts: counts.tolist(), "list"),
    ],
)
def test_what_is_no_array_of_integers_has_no_numbers(
    make: Callable[[Any], Any], kind: str, paid: Release[Any]
) -> None:
    with pytest.raises(
        InvalidParameter, match=f"only an array of integers has numbers, the value is {kind}"
    ):
        paid.then(make).numbers()


@pytest.mark.parametrize("value", [object(), [float("nan")], {(1, 2): 3}, [b"bytes"]])
def test_what_json_cannot_hold_leaves_no_file(
    value: Any, paid: Release[Any], tmp_path: Path
) -> None:
    with pytest.raises(
        InvalidParameter, match=r"cannot be saved as JSON .*nothing was written, the release"
    ):
        paid.then(lambda _: value).write(tmp_path / "receipt.json")
    assert not (tmp_path / "receipt.json").exists()


@pytest.mark.parametrize(
    ("value", "words"), [({}, "it has no 'data'"), ([1.5], "no integers"), ("1", "no integers")]
)
def test_a_damaged_value_is_refused(
    value: Any, words: str, paid: Release[Any], tmp_path: Path
) -> None:
    (tmp_path / "receipt.json").write_text(json.dumps({**paid.to_json(), "value": value}))
    with pytest.raises(InvalidInput, match=words):
        read_release(tmp_path / "receipt.json")


# guarantees


@pytest.mark.parametrize("loss", [PureDP("1/3"), ApproxDP(1, "1e-9"), ZCDP("1/7")])
@pytest.mark.parametrize("distance", [None, Fraction(1, 2**90)])
def test_a_guarantee_comes_back_from_json(loss: Loss, distance: Fraction | None) -> None:
    for guarantee in (
        Guarantee(loss, AddRemoveUser(), "user", "local", distance),
        Guarantee(loss, SwappedCells("1/4"), "household", "central", distance),
    ):
        assert decode_guarantee(json.loads(json.dumps(encode_guarantee(guarantee)))) == guarantee


def test_half_a_guarantee_is_refused() -> None:
    whole = encode_guarantee(Guarantee(PureDP(1), AddRemoveUser(), "user"))
    for name in whole:
        with pytest.raises(KeyError, match=name):
            decode_guarantee({key: item for key, item in whole.items() if key != name})
    with pytest.raises(InvalidInput, match="the unit of a guarantee is a name, got 5"):
        decode_guarantee({**whole, "unit": 5})

"""What comes out of a ledger: values, the guarantee they carry, and the entry that paid for them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import decoding, read_json, write_file
from sfumato.privacy.accounting.codec import decode_guarantee, decode_loss, encode, encode_guarantee
from sfumato.privacy.accounting.guarantee import Guarantee
from sfumato.privacy.accounting.losses import Loss
from sfumato.privacy.accounting.numbers import exact, written
from sfumato.privacy.accounting.units import Clock, ValueColumns, told_by
from sfumato.privacy.ledger.guarded import Table, lattice

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")

FORMAT = "sfumato-release/1"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a ledger: who paid, how much, for what. Its hash covers the entry before it.

    `clock` tells the parts of a unit such as user-day or user-image; it is that of every entry of the ledger.
    `periods` are those that were charged (all, if there are none), `team` whose sub-budget paid,
    `accounts` the zCDP accounts that opened besides that of the whole: team, period and size.
    `table` is what was counted. `bound` and `request` (a SHA-256) are what must be the same when
    values that nobody saw are drawn again, `once` is the key of a release that is made once.
    """

    number: int
    time: str
    mechanism: str
    parameters: dict[str, Any]
    cost: Loss
    computational: Fraction | None
    account: Fraction | None
    note: str
    hash: str
    clock: Clock | ValueColumns | None = None
    periods: tuple[str, ...] | None = None
    team: str = ""
    accounts: tuple[tuple[str, str, Fraction], ...] = ()
    table: Table | None = None
    bound: dict[str, Any] | None = None
    request: str = ""
    once: str = ""

    def sizes(self) -> dict[tuple[str, str], Fraction]:
        """The sizes of all accounts that it opened, by team and period."""
        found = {(team, period): size for team, period, size in self.accounts}
        return found if self.account is None else found | {("", ""): self.account}

    def to_json(self) -> dict[str, Any]:
        """The entry as it is stored, with its hash."""
        said: dict[str, Any] = {
            "clock": None if self.clock is None else self.clock.to_json(),
            "periods": None if self.periods is None else list(self.periods),
            "team": self.team,
            "accounts": [[team, of, written(size)] for team, of, size in self.accounts],
            "table": None if self.table is None else self.table.to_json(),
            "bound": self.bound,
            "request": self.request,
            "once": self.once,
        }
        return {
            "number": self.number,
            "time": self.time,
            "mechanism": self.mechanism,
            "parameters": self.parameters,
            "cost": encode(self.cost),
            "computational": None if self.computational is None else written(self.computational),
            "account": None if self.account is None else written(self.account),
            "note": self.note,
            "hash": self.hash,
            **{name: value for name, value in said.items() if value},
        }

    @staticmethod
    def from_json(data: Any) -> Entry:
        """The entry a JSON object states."""
        try:
            distance, account = data["computational"], data["account"]
            return Entry(
                number=int(data["number"]),
                time=str(data["time"]),
                mechanism=str(data["mechanism"]),
                parameters=dict(data["parameters"]),
                cost=decode_loss(data["cost"]),
                computational=None if distance is None else exact(distance),
                account=None if account is None else exact(account),
                note=str(data["note"]),
                hash=str(data["hash"]),
                clock=told_by(data["clock"]) if "clock" in data else None,
                periods=tuple(map(str, data["periods"])) if "periods" in data else None,
                team=str(data.get("team", "")),
                accounts=tuple(
                    (str(team), str(of), exact(size)) for team, of, size in data.get("accounts", ())
                ),
                table=Table.from_json(data["table"]) if "table" in data else None,
                bound=dict(data["bound"]) if "bound" in data else None,
                request=str(data.get("request", "")),
                once=str(data.get("once", "")),
            )
        except (KeyError, TypeError, ValueError, ArithmeticError) as problem:
            raise InvalidInput(f"not a ledger entry: {problem}") from problem


@dataclass(frozen=True, slots=True)
class Release(Generic[T_co]):
    """Released values in lattice units of 2**exponent, with what was promised and the entry that paid.

    `ledger` and `entry` let anyone check it against the ledger it came from: `sfumato ledger verify
    --against`. A rehearsal spent nothing and protects nobody; it is marked. So is what `then` has
    processed: its value no longer has the noise that the entry names.
    """

    value: T_co
    exponent: int
    guarantee: Guarantee
    ledger: str
    entry: Entry
    rehearsal: bool
    processed: bool = False

    def numbers(self: Release[IntArray]) -> FloatArray:
        """The released integers times 2**exponent, exactly; a release of anything else has none."""
        if not _integers(self.value):
            raise InvalidParameter(
                f"only an array of integers has numbers, the value is {_named(self.value)}; use it as it is"
            )
        return lattice(self.value, self.exponent)

    def then(self, function: Callable[[T_co], U]) -> Release[U]:
        """Post-process: any function of a release keeps its guarantee at no cost [mcmillan18, prop. 2.3].

        The function must not look at the private data again.
        """
        return replace(self, value=function(self.value), processed=True)  # type: ignore[return-value, arg-type]

    def to_json(self) -> dict[str, Any]:
        """Everything, with exact numbers as text; a value that is no array of integers is under "data"."""
        plain = _plain(self.value)
        return {
            "format": FORMAT,
            "rehearsal": self.rehearsal,
            "statement": str(self.guarantee),
            "guarantee": encode_guarantee(self.guarantee),
            "ledger": self.ledger,
            "entry": self.entry.to_json(),
            "exponent": self.exponent,
            "value": plain if _integers(self.value) else {"data": plain},
            **({"processed": True} if self.processed else {}),
        }

    def write(self, path: str | Path) -> None:
        """Save as JSON, in a new file: a release is a receipt, and one is never written over another."""
        try:
            text = json.dumps(self.to_json(), indent=1, default=_inner, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as problem:
            raise InvalidParameter(
                f"a value of {_named(self.value)} cannot be saved as JSON ({problem}); nothing was written, "
                "the release was paid for, keep it"
            ) from problem
        lost = "the release was paid for, keep it"
        write_file(path, text + "\n", kept="write the release elsewhere", lost=lost)


def _integers(value: Any) -> bool:
    return (
        isinstance(value, np.ndarray)
        and value.dtype.kind in "iu"
        and np.can_cast(value.dtype, np.int64)
    )


def _named(value: Any) -> str:
    return f"{value.dtype} array" if isinstance(value, np.ndarray) else type(value).__name__


def _plain(value: Any) -> Any:
    """What JSON holds of an array, a number of NumPy, or anything that says so itself; others as they are."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return value.to_json() if hasattr(value, "to_json") else value


def _inner(value: Any) -> Any:
    """The same for what lies inside a value, where JSON has no word of its own for it."""
    plain = _plain(value)
    if plain is value:
        raise TypeError(f"it holds a {type(value).__name__}")
    return plain


def release_from_json(data: Any) -> Release[Any]:
    """The release that a JSON object states: integers as an array, any other value as plain JSON data.

    Args:
        data: What `Release.to_json` gave.

    Returns:
        The release.

    Raises:
        ValueError: A part is wrong.
        KeyError: A part is missing.

    """
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ValueError(f"its format is not {FORMAT}")
    guarantee = decode_guarantee(data["guarantee"])
    if data["statement"] != str(guarantee):
        raise ValueError("its statement is not that of its guarantee")
    if type(data["exponent"]) is not int or type(data["rehearsal"]) is not bool:
        raise ValueError("its exponent is no integer, or its rehearsal neither true nor false")
    if type(data.get("processed", False)) is not bool:
        raise ValueError("its processed is neither true nor false")
    return Release(
        value=_value(data["value"]),
        exponent=data["exponent"],
        guarantee=guarantee,
        ledger=str(data["ledger"]),
        entry=Entry.from_json(data["entry"]),
        rehearsal=data["rehearsal"],
        processed=data.get("processed", False),  # files from before the mark have none
    )


def read_release(path: str | Path) -> Release[Any]:
    """Read a release that was saved with `Release.write`.

    Args:
        path: The JSON file.

    Returns:
        The release: integers as an array, any other value as plain JSON data.

    Raises:
        InvalidInput: The file cannot be read, or is not a whole release.

    """
    data = read_json(path, "a whole release", undone="nothing was checked")
    with decoding("a whole release", path=path, undone="nothing was checked"):
        return release_from_json(data)


def _value(data: Any) -> Any:
    if isinstance(data, dict):
        return data["data"]
    value = np.array(data)
    if value.size == 0:
        value = value.astype(np.int64)
    if value.dtype != np.int64:
        raise ValueError("its values are no integers")
    value.setflags(write=False)
    return value

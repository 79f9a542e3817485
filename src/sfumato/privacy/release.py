"""What comes out of a ledger: values, the guarantee they carry, and the entry that paid for them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from sfumato.errors import InvalidInput
from sfumato.privacy.codec import decode_loss, decode_neighbors, encode
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.guarded import FloatArray, IntArray, lattice
from sfumato.privacy.losses import Loss

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")

FORMAT = "sfumato-release/1"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a ledger: who paid, how much, for what. Its hash covers the entry before it."""

    number: int
    time: str
    mechanism: str
    parameters: dict[str, Any]
    cost: Loss
    computational: Fraction | None
    account: Fraction | None
    note: str
    hash: str

    def to_json(self) -> dict[str, Any]:
        """The entry as it is stored, with its hash."""
        return {
            "number": self.number,
            "time": self.time,
            "mechanism": self.mechanism,
            "parameters": self.parameters,
            "cost": encode(self.cost),
            "computational": None if self.computational is None else str(self.computational),
            "account": None if self.account is None else str(self.account),
            "note": self.note,
            "hash": self.hash,
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
                computational=None if distance is None else Fraction(distance),
                account=None if account is None else Fraction(account),
                note=str(data["note"]),
                hash=str(data["hash"]),
            )
        except (KeyError, TypeError, ValueError, ArithmeticError) as problem:
            raise InvalidInput(f"not a ledger entry: {problem}") from problem


@dataclass(frozen=True, slots=True)
class Release(Generic[T_co]):
    """Released values in lattice units of 2**exponent, with what was promised and the entry that paid.

    `ledger` and `entry` let anyone check it against the ledger it came from: `sfumato ledger verify
    --against`. A rehearsal spent nothing and protects nobody; it is marked.
    """

    value: T_co
    exponent: int
    guarantee: Guarantee
    ledger: str
    entry: Entry
    rehearsal: bool

    def numbers(self: Release[IntArray]) -> FloatArray:
        """The released integers times 2**exponent, exactly."""
        return lattice(self.value, self.exponent)

    def then(self, function: Callable[[T_co], U]) -> Release[U]:
        """Post-process: any function of a release keeps its guarantee at no cost [mcmillan18, prop. 2.3].

        The function must not look at the private data again.
        """
        return replace(self, value=function(self.value))  # type: ignore[return-value, arg-type]

    def to_json(self) -> dict[str, Any]:
        """Everything, with exact numbers as text."""
        value: Any = self.value
        if isinstance(value, np.ndarray):
            value = value.tolist()
        elif hasattr(value, "to_json"):
            value = value.to_json()
        return {
            "format": FORMAT,
            "rehearsal": self.rehearsal,
            "statement": str(self.guarantee),
            "guarantee": {
                "loss": encode(self.guarantee.loss),
                "neighbors": encode(self.guarantee.neighbors),
                "unit": self.guarantee.unit,
                "model": self.guarantee.model,
                "computational": None if (c := self.guarantee.computational) is None else str(c),
            },
            "ledger": self.ledger,
            "entry": self.entry.to_json(),
            "exponent": self.exponent,
            "value": value,
        }

    def write(self, path: str | Path) -> None:
        """Save as JSON, in a new file: a release is a receipt, and one is never written over another."""
        try:
            with Path(path).open("x", encoding="utf-8") as file:
                file.write(json.dumps(self.to_json(), indent=1) + "\n")
        except FileExistsError:
            raise InvalidInput(f"{path} exists already and is kept; write the release elsewhere") from None
        except OSError as problem:
            raise InvalidInput(
                f"cannot write {path}: {problem.strerror}; the release was paid for, keep it"
            ) from None


def read_release(path: str | Path) -> Release[IntArray]:
    """A release saved with `Release.write`."""
    try:
        data = json.loads(Path(path).read_text())
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT}")
        promised = data["guarantee"]
        distance = promised["computational"]
        value = np.array(data["value"])
        if value.size == 0:
            value = value.astype(np.int64)
        if value.dtype != np.int64:  # e.g. what `then` made of it
            raise ValueError("its values are no integers")
        value.setflags(write=False)
        guarantee = Guarantee(
            loss=decode_loss(promised["loss"]),
            neighbors=decode_neighbors(promised["neighbors"]),
            unit=promised["unit"],
            model=promised["model"],
            computational=None if distance is None else Fraction(distance),
        )
        if data["statement"] != str(guarantee):
            raise ValueError("its statement is not that of its guarantee")
        if type(data["exponent"]) is not int or type(data["rehearsal"]) is not bool:
            raise ValueError("its exponent is no integer, or its rehearsal neither true nor false")
        return Release(
            value=value,
            exponent=data["exponent"],
            guarantee=guarantee,
            ledger=str(data["ledger"]),
            entry=Entry.from_json(data["entry"]),
            rehearsal=data["rehearsal"],
        )
    except OSError as problem:
        raise InvalidInput(f"cannot read {path}: {problem.strerror}; nothing was checked") from None
    except KeyError as problem:
        raise InvalidInput(
            f"{path} is not a whole release: it has no {problem}; nothing was checked"
        ) from problem
    except UnicodeDecodeError as problem:
        raise InvalidInput(f"{path} is not a whole release: it is no text; nothing was checked") from problem
    except (TypeError, ValueError, ArithmeticError, RecursionError) as problem:
        raise InvalidInput(f"{path} is not a whole release: {problem}; nothing was checked") from problem

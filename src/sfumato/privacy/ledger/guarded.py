"""Private data as a type: it can be held, not read; only `Ledger.release` opens it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, Final, Generic, Literal, NoReturn, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter, Unguarded
from sfumato.privacy.accounting.losses import nonnegative
from sfumato.privacy.accounting.neighbors import AddRemoveUser, Neighbors, ReplaceUser
from sfumato.privacy.accounting.numbers import Number, written
from sfumato.privacy.accounting.trust import Plain
from sfumato.privacy.accounting.units import Clock, ValueColumns, period_of

T_co = TypeVar("T_co", covariant=True)


class Rehearsal(Enum):
    """The mark of public or made-up data, which belongs to no source; no text is equal to it."""

    REHEARSAL = "rehearsal"

    def __repr__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.value


REHEARSAL: Final[Literal[Rehearsal.REHEARSAL]] = Rehearsal.REHEARSAL
Source = str | Rehearsal

# Room for noise below the ends of int64; clipping to it is 1-Lipschitz, so it can only lower a
# sensitivity.
LARGEST = 2**61

UNITS = 2**20
"""Indivisible units of mass that every user owns."""


@dataclass(frozen=True, slots=True)
class Table:
    """Which table was counted, as far as that is public: so that a ledger notices another one.

    Attributes:
        name: What the file, or the table of a database, is called: without folders, passwords and
            digits.
        user: The column that says whose a row is; empty where each row is somebody.

    """

    name: str
    user: str = ""

    def __str__(self) -> str:
        return f"{self.name} by {self.user!r}" if self.user else self.name

    def to_json(self) -> dict[str, Any]:
        """The table as it is stored."""
        return {"name": self.name, "user": self.user}

    @staticmethod
    def from_json(data: Any) -> Table:
        """The table a JSON object states; a missing part is a KeyError that names it."""
        return Table(str(data["name"]), str(data["user"]))


@dataclass(frozen=True, slots=True, init=False)
class Bound:
    """How far one step of the neighbor relation can move a vector of `size` integers, in lattice units.

    Give l1, l2_squared or linf, whichever are known; l1 bounds the others (l2**2 <= l1 * linf, linf
    <= l1). A mechanism that needs a bound nobody gave refuses. `entries` is how many entries can
    change at once, `unit` what one step adds, removes or replaces: a user, unless rows were bounded
    per household, user-day and so on. A unit that names a period has the `clock` that tells it, one
    that is a user in one value of columns (user-image) has these there, no other has any, and
    `periods` are those that the data is of, if rows of any other change nothing.
    `model` says who holds the data: whoever gathered it ("central"), or the person or device that
    it is of ("local").
    """

    neighbors: Neighbors
    size: int
    l1: Fraction | None
    l2_squared: Fraction | None
    linf: Fraction | None
    entries: int
    unit: str
    clock: Clock | ValueColumns | None
    periods: tuple[str, ...] | None
    model: Plain

    def __init__(
        self,
        neighbors: Neighbors,
        size: int,
        *,
        l1: Number | None = None,
        l2_squared: Number | None = None,
        linf: Number | None = None,
        entries: int | None = None,
        unit: str = "user",
        clock: Clock | ValueColumns | None = None,
        periods: Sequence[str] | None = None,
        model: Plain = "central",
    ) -> None:
        if isinstance(clock, ValueColumns):
            if period_of(unit) is not None or not clock.named_by(unit):
                raise InvalidParameter(
                    f"a unit that is a user in one value of columns is called after them, e.g. "
                    f"user-{'-'.join(clock.columns)}, got {unit!r}; nothing was charged"
                )
        elif (period_of(unit) is None) != (clock is None):
            raise InvalidParameter(
                f"a unit that names a period is bounded by a clock (a column of times and a zone), and no "
                f"other is: the unit is {unit!r}, the clock {clock or 'none'}; nothing was charged"
            )
        of = None if periods is None else tuple(periods)
        if of is not None and (
            not isinstance(clock, Clock) or not of or not all(of) or len(set(of)) != len(of)
        ):
            raise InvalidParameter(
                f"periods are one or more different names, and go with a clock, got {periods} and the clock "
                f"{clock or 'none'}; nothing was charged"
            )
        if model not in get_args(Plain):
            raise InvalidParameter(
                f"model must be 'central' or 'local', got {model!r}; nothing was charged"
            )
        if size < 1:
            raise InvalidParameter(f"a guarded vector needs at least 1 entry, got {size}")
        if entries is not None and not 1 <= entries <= size:
            raise InvalidParameter(f"entries must lie in 1..{size} (the size), got {entries}")
        total = None if l1 is None else nonnegative(l1, "l1")
        largest = total if linf is None else nonnegative(linf, "linf")
        if l2_squared is not None:
            square: Fraction | None = nonnegative(l2_squared, "l2_squared")
        else:
            square = None if total is None or largest is None else total * largest
        if total is None and square is None and largest is None:
            raise InvalidParameter("a bound needs at least one of l1, l2_squared, linf; got none")
        # Integers that change, change by at least 1: no more of them can change than l1 allows.
        most = size if total is None else min(size, max(1, int(total)))
        for name, value in (
            ("neighbors", neighbors),
            ("size", size),
            ("l1", total),
            ("l2_squared", square),
            ("linf", largest),
            ("entries", most if entries is None else entries),
            ("unit", unit),
            ("clock", clock),
            ("periods", of),
            ("model", model),
        ):
            object.__setattr__(self, name, value)

    def to_json(self) -> dict[str, Any]:
        """The size and the norms, as an entry keeps them; the rest of it has fields of its own."""
        norms = {name: getattr(self, name) for name in ("l1", "l2_squared", "linf")}
        known = {name: None if norm is None else written(norm) for name, norm in norms.items()}
        return {"size": self.size, "entries": self.entries, **known}

    def required(self, norm: str, *, by: str) -> Fraction:
        """The bound in the norm a mechanism works with, or a refusal that says which is missing."""
        value: Fraction | None = getattr(self, norm)
        if value is None:
            raise InvalidParameter(
                f"{by} needs a bound on {norm}, and the data carries none; nothing was charged"
            )
        return value


class Guarded(Generic[T_co]):
    """Private values with the bound that makes them releasable; no accessor, no array, no pickle, no repr.

    The threat is an honest but careless analyst, not hostile code in the same process
    (docs/threat-model.md).
    """

    __slots__ = ("__value", "bound", "exponent", "source", "table")

    bound: Bound
    source: Source
    exponent: int
    table: Table | None

    def __init__(
        self,
        value: T_co,
        bound: Bound,
        *,
        source: Source,
        exponent: int = 0,
        table: Table | None = None,
    ) -> None:
        if isinstance(value, np.ndarray) and (
            value.dtype != np.int64 or value.shape != (bound.size,)
        ):
            raise InvalidParameter(
                f"a guarded array holds {bound.size} int64 as bounded, got {value.shape} {value.dtype}; "
                "use guard()"
            )
        object.__setattr__(self, "_Guarded__value", value)
        object.__setattr__(self, "bound", bound)
        object.__setattr__(self, "source", source)
        object.__setattr__(self, "exponent", exponent)
        object.__setattr__(self, "table", table)

    def __repr__(self) -> str:
        return (
            f"Guarded({self.bound.size} private entries of {self.source!r}, {self.bound.neighbors})"
        )

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise Unguarded("private data leaves only through Ledger.release; nothing was read")

    __setattr__ = __delattr__ = _refuse
    __array__ = __iter__ = __len__ = __getitem__ = __contains__ = __bool__ = _refuse
    __int__ = __float__ = __index__ = __bytes__ = __copy__ = __deepcopy__ = _refuse
    __reduce__ = __reduce_ex__ = __getstate__ = _refuse
    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __floordiv__ = (
        _refuse
    )


def open_for_release(guarded: Guarded[T_co]) -> T_co:
    """The private value itself. Only `Ledger.release` calls this, after the charge; a test holds that."""
    value: T_co = object.__getattribute__(guarded, "_Guarded__value")
    return value


def guard(
    values: npt.ArrayLike, bound: Bound, *, source: Source, exponent: int = 0
) -> Guarded[IntArray]:
    """Put integers under guard: lattice units of 2**exponent that the bound speaks about.

    The caller vouches for the bound, and with the source `REHEARSAL` for data that is public or
    made up. Floats are refused: round to the lattice first, and count the rounding.

    Args:
        values: Integers, [size], in lattice units; clipped to 2**61 in size.
        bound: How far neighbors can move them.
        source: The name of the data source, that of the ledger; or `REHEARSAL`.
        exponent: A unit is 2**exponent.

    Returns:
        The values under guard: no accessor, only `Ledger.release` opens them.

    Raises:
        InvalidParameter: The values are no integers, or not as many as the bound says.

    """
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise InvalidParameter(
            f"guarded values must be integers (lattice units), got dtype {array.dtype}"
        )
    if array.shape != (bound.size,):
        raise InvalidParameter(
            f"guarded values must have shape ({bound.size},) as bounded, got {array.shape}"
        )
    held = np.clip(array, -LARGEST, LARGEST).astype(np.int64)
    held.setflags(write=False)
    return Guarded(held, bound, source=source, exponent=exponent)


def histogram(
    cells: npt.ArrayLike,
    size: int,
    *,
    source: Source,
    neighbors: AddRemoveUser | ReplaceUser | None = None,
    unit: str = "user",
    clock: Clock | ValueColumns | None = None,
    periods: Sequence[str] | None = None,
) -> Guarded[IntArray]:
    """Users per cell, guarded: one entry of `cells` per user; masked or outside 0..size-1 counts nowhere.

    Adding or removing a user changes one count by 1; replacing one changes two.

    Args:
        cells: One cell for each user, 0 to size - 1.
        size: How many cells there are.
        source: The name of the data source; or `REHEARSAL`.
        neighbors: Users added or removed by default, or `ReplaceUser()`.
        unit: What a row of `cells` is of.
        clock: By which clock the unit is told, if it names a period.
        periods: The periods that the cells are of, if rows of any other were left out.

    Returns:
        The counts under guard, [size].

    Raises:
        InvalidParameter: The cells are no integers, or size is below 1.

    """
    relation = AddRemoveUser() if neighbors is None else neighbors
    array = np.asarray(cells.filled(-1) if isinstance(cells, np.ma.MaskedArray) else cells)
    if array.shape == (0,):
        array = array.astype(
            np.int64
        )  # NumPy takes an empty list for floats; nobody there is data too
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise InvalidParameter(
            f"cells must be a 1-D integer array, got {array.ndim}-D {array.dtype}"
        )
    if size < 1:
        raise InvalidParameter(f"a histogram needs at least 1 cell, got {size}")
    changes = 1 if isinstance(relation, AddRemoveUser) else 2
    counts = np.bincount(array[(array >= 0) & (array < size)].astype(np.int64), minlength=size)
    bound = Bound(
        relation,
        size,
        l1=changes,
        l2_squared=changes,
        linf=1,
        entries=min(changes, size),
        unit=unit,
        clock=clock,
        periods=periods,
    )
    return guard(counts, bound, source=source)


def lattice(values: IntArray, exponent: int) -> FloatArray:
    """Released integers as numbers, exactly: integer times 2**exponent.

    Above 2**53 a double cannot hold every integer, so that is refused rather than rounded.

    Args:
        values: Released integers.
        exponent: A unit is 2**exponent.

    Returns:
        The numbers, as doubles.

    Raises:
        InvalidParameter: An integer is above 2**53.

    """
    if np.any(np.abs(values) > 2**53):
        raise InvalidParameter(
            "integers above 2**53 are not exact as doubles; use the integers themselves"
        )
    return np.ldexp(values.astype(np.float64), exponent)

"""Which columns of a table mean what, and the public rules by which rows become whole numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from sfumato.errors import InvalidInput, InvalidParameter

# Per user and cell, counts are clamped to this: times UNITS = 2**20 they stay below 2**53, exact as
# doubles.
MAX_CAP = 2**30


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of the columns to count, and the public lattice of weights.

    `user` says whose row it is. Without one, every row is counted as a user of its own, and
    `one_row_one_user` must say so aloud: a person with many rows is then protected once per row
    only. A row counts 1, or floor(weight / step) steps of its `weight`, at most `cap`; columns of
    whole numbers have step 1 unless it is said, others must say it. `by` names a column of text or
    whole numbers that tells which of several maps a row belongs to, or two of them.

    With `rows_per_user`, K, it is rows that are counted, not users: the mass of a user with n rows
    is n / K, at most 1, and all rows of one with more than K count alike, K / n each. So a mass of
    1 is K rows; the noise is that of K rows too.

    >>> Columns("visitor", "lon", "lat").names
    ('visitor', 'lon', 'lat')
    >>> Columns("observer", "x", "y", weight="seconds", step=Fraction(1, 1000), cap=60_000).step
    Fraction(1, 1000)
    """

    user: str | None
    x: str
    y: str
    weight: str | None = None
    by: str | tuple[str, ...] | None = None
    one_row_one_user: bool = False
    step: Fraction | float | None = None
    cap: int = 2**20
    rows_per_user: int | None = None

    def __post_init__(self) -> None:
        if self.user is None and not self.one_row_one_user:
            raise InvalidParameter(
                "a column must say whose row it is, got none; name it with `user`, or say `one_row_one_user` "
                "if every row is another user; nothing was read"
            )
        if self.user is not None and self.one_row_one_user:
            raise InvalidParameter(
                f"`one_row_one_user` is for tables without a user column, got {self.user!r} too; "
                "nothing was read"
            )
        if not all(name for name in self.names):
            raise InvalidParameter(f"columns must be named, got {self.names}; nothing was read")
        # Steps between these keep cap * step and 1 / step far from the ends of a double.
        if self.step is not None and not 1e-100 <= self.step <= 1e100:
            raise InvalidParameter(
                f"step must lie between 1e-100 and 1e100, got {self.step}; nothing was read"
            )
        if not 1 <= self.cap <= MAX_CAP:
            raise InvalidParameter(
                f"cap must lie in 1..2**30 steps, got {self.cap}; nothing was read"
            )
        if self.rows_per_user is not None:
            self._check_rows()

    def _check_rows(self) -> None:
        if self.user is None or self.weight is not None:
            raise InvalidParameter(
                "`rows_per_user` counts the rows of each user, at most so many: it needs `user`, and goes "
                "with no `weight`; nothing was read"
            )
        if type(self.rows_per_user) is not int or not 1 <= self.rows_per_user <= MAX_CAP:
            raise InvalidParameter(
                f"`rows_per_user` is a whole number in 1..2**30, got {self.rows_per_user!r}; "
                "nothing was read"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are read."""
        named = (self.user, self.x, self.y, self.weight, *self.grouped)
        return tuple(name for name in named if name is not None)

    @property
    def grouped(self) -> tuple[str, ...]:
        """The columns that tell which map a row belongs to: none, one or two."""
        return (self.by,) if isinstance(self.by, str) else self.by or ()


def check_columns(there: Iterable[object], columns: Columns) -> None:
    """Refuse a table without the columns that are asked for; the names of all it has are public.

    Args:
        there: The names of its columns.
        columns: Which are asked for.

    Raises:
        InvalidInput: One is missing.

    """
    known = list(there)
    for name in columns.names:
        if name not in known:
            raise InvalidInput(
                f"there is no column {name!r}, only {', '.join(map(repr, known))}; nothing was counted"
            )

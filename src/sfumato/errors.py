"""Every error sfumato raises on purpose.

    SfumatoError
    ├── InvalidParameter   (ValueError)   an argument breaks a stated rule
    ├── InvalidInput       (ValueError)   a file or table cannot be read as what it should be
    │   └── ExistsAlready                 a file of that name is there, and is kept
    ├── NotComparable      (TypeError)    a loss cannot be expressed in the terms asked for
    ├── Unguarded          (TypeError)    private data was about to leave without the ledger
    ├── NoiseExhausted                    a keyed stream has no unused counter left
    ├── SolverFailed                      a solution did not pass its own check
    ├── Unverifiable                      no number of samples can establish the claim asked about
    ├── MissingPackage     (ImportError)  an optional package is absent; the message is the install line
    ├── SessionStopped                    a party of a joint map stopped, was late, or asks for something else
    └── LedgerError
        ├── BudgetExceeded                the budget does not allow it; nothing was read or released
        ├── LedgerMismatch                the ledger accounts for another source, unit or neighbor relation
        ├── LedgerBusy                    another process holds the ledger
        ├── LedgerClosed                  the ledger was closed, or moved, and pays for nothing
        ├── ReleasedAlready               a release that is made once was made
        └── LedgerDamaged                 the file is not a whole, unedited ledger

A message states the rule, then the value, then what was *not* done.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager


class SfumatoError(Exception):
    """Root of the tree: catch this to catch every mistake we can name.

    Attributes:
        mistakes: The mistakes that this one is made of, where several were told at once.

    """

    mistakes: tuple[SfumatoError, ...] = ()


class InvalidParameter(SfumatoError, ValueError):
    """An argument breaks a stated rule."""


class InvalidInput(SfumatoError, ValueError):
    """A file or table cannot be read as what it should be."""


class ExistsAlready(InvalidInput):
    """A file of that name is there, and is kept."""


class NotComparable(SfumatoError, TypeError):
    """A loss cannot be expressed in the terms asked for."""


class Unguarded(SfumatoError, TypeError):
    """Private data was about to leave without the ledger."""


class NoiseExhausted(SfumatoError):
    """A keyed stream has no unused counter left."""


class SolverFailed(SfumatoError):
    """A solution did not pass its own check; no answer was given. Please report it."""


class Unverifiable(SfumatoError):
    """No number of samples can establish the claim asked about; the message says which theorem."""


class MissingPackage(SfumatoError, ImportError):
    """An optional package is absent; the message is the install line."""


class SessionStopped(SfumatoError):
    """A party of a joint map, or a shuffler, stopped, was late or disagrees; it says what was charged."""


class LedgerError(SfumatoError):
    """Something about a ledger file stopped the work."""


class BudgetExceeded(LedgerError):
    """The budget does not allow it; nothing was read or released."""


class LedgerMismatch(LedgerError):
    """The ledger accounts for another source, unit or neighbor relation."""


class LedgerBusy(LedgerError):
    """Another process holds the ledger."""


class LedgerClosed(LedgerError):
    """The ledger was closed, or moved elsewhere, and pays for nothing any more."""


class ReleasedAlready(LedgerError):
    """A release that is made once was made; nothing was charged again.

    Attributes:
        number: The entry that paid for it.

    """

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.number = number


class LedgerDamaged(LedgerError):
    """The file is not a whole, unedited ledger."""


class Mistakes:
    """What several checks refuse, told at once rather than one after the other.

    >>> mistakes = Mistakes()
    >>> for one in ("a is 1; nothing was read", "b is 3; nothing was charged"):
    ...     with mistakes.noted():
    ...         raise InvalidParameter(one)
    >>> mistakes.tell()
    Traceback (most recent call last):
        ...
    sfumato.errors.InvalidParameter: 2 mistakes: (1) a is 1; (2) b is 3; nothing was read or charged
    """

    def __init__(self) -> None:
        self.found: list[SfumatoError] = []

    @contextmanager
    def noted(self) -> Iterator[None]:
        """A check, whose refusal is kept for later; the same one twice, as of two outputs, is kept once."""
        try:
            yield
        except SfumatoError as problem:
            for one in problem.mistakes or (problem,):
                if str(one) not in map(str, self.found):
                    self.found.append(one)

    def tell(self) -> None:
        """Raise what was refused: one refusal as it is, several as one of their kind, if it is one kind."""
        if not self.found:
            return
        if len(self.found) == 1:
            raise self.found[0]
        kinds = {type(one) for one in self.found}
        kind = kinds.pop() if len(kinds) == 1 else InvalidParameter
        told = [re.sub(r"; nothing was [^;]*$", "", str(one)) for one in self.found]
        listed = "; ".join(f"({number}) {one}" for number, one in enumerate(told, 1))
        problem = kind(f"{len(told)} mistakes: {listed}; nothing was read or charged")
        problem.mistakes = tuple(self.found)
        raise problem

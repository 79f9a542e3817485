"""Releases that nothing is kept of, in the words of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sfumato.privacy.ledger.guarded import Guarded
from sfumato.privacy.ledger.ledger import Ledger
from sfumato.privacy.ledger.release import Release
from sfumato.privacy.mechanisms.protocol import Mechanism

T = TypeVar("T")
U = TypeVar("U")


class Unkept:
    """Stands where a `Run` may: its caller has what is released when it returns, or nobody."""

    def made(self, ledger: Ledger, part: str = "", *, number: int = 0) -> bool:
        """Nothing was made before."""
        del ledger, part, number
        return False

    def release(
        self,
        ledger: Ledger,
        mechanism: Mechanism[T, U],
        guarded: Callable[[], Guarded[T]],
        *,
        part: str = "",
        attach: Any = None,
        **terms: Any,
    ) -> tuple[Release[U], None]:
        """One release; nothing is attached."""
        del part, attach
        return ledger.release(mechanism, guarded(), **terms), None

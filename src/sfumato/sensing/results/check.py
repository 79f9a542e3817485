"""The result of checking a recovery: what its proof shows, and whether its readings were paid for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

_NUMBERS = ("objective", "bound", "gap", "residual", "radius")


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a recovery proves.

    Attributes:
        holds: Whether everything that was checked holds.
        status: What the recovery claims: "optimal", "zero" or "infeasible".
        objective: Total mass of its estimate.
        bound: No feasible sources have a smaller total.
        gap: Relative difference of the two.
        residual: Distance of the estimate to the readings.
        radius: What that distance may be.
        why: Why it holds or does not.
        message: The same in a sentence that names the recovery.
        paid: Whether its readings were paid for; None where that was not checked.
    """

    holds: bool
    status: str
    objective: float
    bound: float
    gap: float
    residual: float
    radius: float
    why: str
    message: str = ""
    paid: bool | None = None

    def failed(self, message: str) -> CheckResult:
        """The same with a failure of what was checked beside the proof."""
        return replace(self, holds=False, why=message, message=message, paid=False)

    def paid_in(self, ledgers: Sequence[str]) -> CheckResult:
        """The same, with the ledgers in which the readings were found to be paid for."""
        where = " and ".join(ledgers)
        more = f"; releases of these sensors were paid for in {where} (no receipt vouches for their values)"
        return replace(self, message=self.message + more, paid=True)

    def to_json(self) -> dict[str, Any]:
        """As `sense check --json` prints it; what is not finite is null."""
        data: dict[str, Any] = {"holds": self.holds, "status": self.status}
        for name in _NUMBERS:
            value = float(getattr(self, name))
            data[name] = value if math.isfinite(value) else None
        data["why"] = self.why
        return data if self.paid is None else {**data, "paid": self.paid}

    @staticmethod
    def from_json(data: Any) -> CheckResult:
        """The result that a JSON object states; what was not finite is nan."""
        objective, bound, gap, residual, radius = (
            math.nan if data[name] is None else float(data[name]) for name in _NUMBERS
        )
        return CheckResult(
            bool(data["holds"]), str(data["status"]), objective, bound, gap, residual, radius,
            str(data["why"]), paid=data.get("paid"),
        )  # fmt: skip

"""One verdict on a recovery: whether to rely on it, made of all that was tested, and said everywhere alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    from sfumato.sensing.recovery.answer import Answer
    from sfumato.sensing.recovery.certificate import Status
    from sfumato.sensing.results.diagnostics import RecoveryDiagnostics

VerdictKind = Literal["rely", "care", "nothing", "misfit"]

UNLIKELY = 1e-3
"""A p-value below which readings are not explained."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether to rely on a recovery.

    Attributes:
        kind: "rely": nothing speaks against the answer. "care": there is one, and the reasons say
            what may be wrong with it. "nothing": the readings tell nothing. "misfit": what was
            found does not explain the readings, so do not rely on it.
        message: The verdict in a sentence.
        reasons: What it rests on, a sentence each, the weightiest first.
    """

    kind: VerdictKind
    message: str
    reasons: tuple[str, ...] = ()

    @property
    def reliable(self) -> bool:
        """Whether the readings do not contradict what was found."""
        return self.kind != "misfit"

    def to_json(self) -> dict[str, Any]:
        """As it is saved and printed."""
        return {"kind": self.kind, "said": self.message, "reasons": list(self.reasons)}

    @staticmethod
    def from_json(data: Any) -> Verdict:
        """The verdict that a JSON object states."""
        if data["kind"] not in get_args(VerdictKind):
            raise ValueError(f"no verdict {data['kind']!r}")
        return Verdict(data["kind"], str(data["said"]), tuple(map(str, data["reasons"])))


def verdict_of(status: Status, answer: Answer | None, told: RecoveryDiagnostics) -> Verdict:
    """The verdict that all tests come to together; `status` is that of R which the answer stands beside."""
    against = _against(status, answer, told)
    if against:
        return Verdict("misfit", f"do not rely on this: {against[0]}", tuple(against[1:]))
    if answer is None:
        unclear = "" if told.misfit is None else told.misfit.message
        if status == "zero":
            why = "the readings are within their noise of no sources at all"
        elif unclear:
            # A misfit that was not found out is no reason to blame the noise.
            why = (
                f"{unclear}; no sources in the box are within the radius (this is proved): give another "
                "`estimator` or a larger `radius`"
            )
        else:
            why = (
                "noise alone leaves no sources within the radius in 1 draw of 10; give another "
                "`estimator` or a larger `radius`"
            )
        return Verdict("nothing", f"nothing can be told: {why}")
    doubts = _doubts(answer, told)
    if doubts:
        return Verdict(
            "care", f"there is an answer, take it with care: {doubts[0]}", tuple(doubts[1:])
        )
    fits = "" if told.misfit is None else f" (p = {told.misfit.p_value:.2g})"
    return Verdict("rely", f"sources explain the readings{fits}, nothing speaks against the answer")


def _against(status: Status, answer: Answer | None, told: RecoveryDiagnostics) -> list[str]:
    """What shows that the readings are not explained, in sentences."""
    found = []
    if told.misfit is not None and told.misfit.p_value < UNLIKELY:
        found.append(told.misfit.message)
    beliefs = None if answer is None else answer.beliefs
    if beliefs is not None and beliefs.fits is not None and beliefs.fits < UNLIKELY:
        found.append(beliefs.doubt)
    if status == "infeasible" and answer is None and (found or told.misfit is None):
        found.append(
            "no sources in the box explain the readings within the radius (this is proved): the site does "
            "not fit (`fit` may find out why), or `radius` or `max_mass` is too small"
        )
    if not found:
        return []
    suspects = [f"{one.message}; `fit='sensors'` leaves it out" for one in told.suspects]
    return [found[0], *suspects, *found[1:], *([told.ceiling.message] if told.ceiling else [])]


def _doubts(answer: Answer, told: RecoveryDiagnostics) -> list[str]:
    """What may be wrong with an answer that explains the readings."""
    doubts = []
    beliefs, fit = answer.beliefs, answer.fit
    if beliefs is not None and not beliefs.mixed:
        doubts.append("its draws did not mix, so it is a guess")
    if fit is not None and not fit.converged:
        doubts.append("it did not come to rest, so it is a guess")
    if told.ceiling is not None:
        doubts.append(told.ceiling.message)
    if beliefs is not None and beliefs.doubt:
        doubts.append(beliefs.doubt)
    if told.misfit is not None and told.misfit.message:
        doubts.append(told.misfit.message)
    if told.field is not None:
        doubts.append(
            "the answer takes the fitted field for known, so it is surer than it should be"
        )
    return doubts

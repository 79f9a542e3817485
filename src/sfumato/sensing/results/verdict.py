"""One verdict on a recovery or a track: whether to rely on it, of all that was tested, said everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    from sfumato.sensing.diagnostics.field_sensors import FaultySensor
    from sfumato.sensing.diagnostics.shared_level import SharedLevel
    from sfumato.sensing.diagnostics.track_fit import RoundFit
    from sfumato.sensing.recovery.answer import Answer
    from sfumato.sensing.recovery.certificate import Status
    from sfumato.sensing.results.diagnostics import FieldReport, RecoveryDiagnostics

VerdictKind = Literal["rely", "care", "nothing", "misfit"]

UNLIKELY = 1e-3
"""A p-value below which readings are not explained."""
NOT_APART = (
    "the total mass and the offset cannot be told apart here: what sources add to all sensors alike may "
    "count as offset, or the offset as mass"
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether to rely on a recovery, or on a track.

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


UNJUDGED = Verdict("nothing", "nothing was judged")


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
        held = told.ceiling is not None and told.ceiling.matters and told.ceiling.message
        reasons = [held] if held else []
        if told.field is not None and told.field.offset_error != 0:
            reasons.append(NOT_APART)
        return Verdict("nothing", f"nothing can be told: {why}", tuple(reasons))
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
    if told.level is not None:
        doubts.append(f"{told.level.message}, and `fit='offset'` finds both")
    if told.ceiling is not None and told.ceiling.matters:
        doubts.append(told.ceiling.message)
    if beliefs is not None and beliefs.doubt:
        doubts.append(beliefs.doubt)
    if told.misfit is not None and told.misfit.message:
        doubts.append(told.misfit.message)
    return doubts if told.field is None else [*doubts, *_doubts_of_field(told.field)]


def _doubts_of_field(field: FieldReport) -> list[str]:
    """What an answer beside a fitted field hangs on."""
    counted = field.offset_interval is not None
    doubts = []
    if counted:
        doubts.append(
            "readings tell the offset from sources by what differs between sensors alone: the total and the "
            "offset have the intervals that this leaves, and hang on what is believed of sources"
        )
    elif field.offset_error != 0:
        doubts.append(f"{NOT_APART} (bayes-median counts that)")
    if not counted or field.interval is not None or field.faulty_sensors:
        doubts.append(
            "the answer takes the fitted field for known, so it is surer than it should be"
        )
    return doubts


@dataclass(frozen=True, slots=True)
class LeftOut:
    """How many of the sensors of a track were left out, since the others contradict them."""

    count: int
    sensors: int
    too_many: bool

    @property
    def message(self) -> str:
        """What that says of the track, or ""."""
        told = f"{self.count} of {self.sensors} sensors contradict the others"
        if self.too_many:
            return (
                f"{told}, too many to be broken: rather the site does not fit (places, names, unit)"
            )
        return f"{told}, and were left out" if self.count else ""


def verdict_of_track(
    fits: Sequence[RoundFit],
    *,
    times: Sequence[str],
    count: int,
    suspects: Sequence[FaultySensor],
    looked_at: int,
    mixed: bool,
    fewer: float | None,
    left_out: LeftOut | None = None,
    level: SharedLevel | None = None,
) -> Verdict:
    """The verdict on a whole track.

    Chances of single rounds are taken times the number of rounds, so that the whole is told not to
    be relied on, where all is well, no more often than a recovery is.

    Args:
        fits: How well each round is explained.
        times: The time of each round; "" where nobody said.
        count: How many sources were followed.
        suspects: Sensors that the others contradict, and that were used all the same.
        looked_at: In how many rounds such sensors were looked for.
        mixed: Whether the draws of a sampled track agree.
        fewer: How many times likelier the readings are with one source fewer.
        left_out: How many sensors were left out; None where that was not asked for.
        level: What all sensors read above their level, where that is more than sources make alike.

    Returns:
        The verdict on the whole; `verdicts_of_rounds` has those on each round.
    """
    from sfumato.sensing.diagnostics.track_fit import chance_of_more

    told = [
        (_unexplained(one, len(fits), count), when) for one, when in zip(fits, times, strict=True)
    ]
    bad = [(why, when) for why, when in told if why]
    together = chance_of_more(
        sum(one.sensors for one in fits),
        sum(one.square for one in fits),
        laplace=any(one.laplace for one in fits),
    )
    against = []
    if bad:
        why, when = bad[0]
        at = f", at {when}" if when else ""
        where = (
            "in every round" if len(bad) == len(fits) else f"in {len(bad)} of {len(fits)} rounds"
        )
        against.append(f"{where} the readings are not explained; the first{at}: {why}")
    elif together < UNLIKELY:
        against.append(
            f"{_explain(count, well=False)} all rounds together (p = {together:.1e}), though each by itself: "
            "look at single sensors, the unit and the noise"
        )
    if left_out is not None and left_out.too_many:
        against.insert(0, left_out.message)
    sure = [one for one in suspects if one.p_value < UNLIKELY]
    named = [f"{one.message}; `leave_out_faulty` leaves it out" for one in suspects]
    if against or sure:
        first, *rest = [*against, *named]
        return Verdict("misfit", f"do not rely on this: {first}", tuple(rest))
    if count == 1 and fewer is not None and fewer >= 1:
        why = f"the readings are {fewer:.2g} times as likely where there is no source at all"
        return Verdict("nothing", f"nothing can be told: {why}")
    doubts = [] if mixed else ["its draws did not mix: it is one of several tracks that fit"]
    doubts += named
    if left_out is not None and left_out.message:
        doubts.append(left_out.message)
    if level is not None:
        doubts.append(level.message)
    if mixed and fewer is not None and fewer >= 1:
        doubts.append(f"one source fewer explains the readings better: try `count` {count - 1}")
    if not looked_at:
        doubts.append("no round has two sensors, so that broken ones were not looked for")
    if doubts:
        return Verdict(
            "care", f"there is a track, take it with care: {doubts[0]}", tuple(doubts[1:])
        )
    return Verdict(
        "rely",
        f"{_explain(count, well=True)} the readings of every round, nothing speaks against the track",
    )


def verdicts_of_rounds(
    fits: Sequence[RoundFit], *, count: int, whole: Verdict
) -> tuple[Verdict, ...]:
    """The verdict on each round of a track that follows so many sources, given that on the whole."""
    return tuple(_verdict_of_round(one, len(fits), count, whole) for one in fits)


def _verdict_of_round(fit: RoundFit, rounds: int, count: int, whole: Verdict) -> Verdict:
    """That on one round: its own misfit, else what is said of the whole."""
    why = _unexplained(fit, rounds, count)
    if why:
        return Verdict("misfit", f"do not rely on this: {why}")
    fits = f"{_explain(count, well=True)} the round (p = {fit.p_value:.2g})"
    match whole.kind:
        case "misfit":
            return Verdict("care", f"{fits}, but the track is not to be relied on")
        case "care":
            return Verdict("care", f"{fits}; take the track with care")
        case "nothing":
            return Verdict("nothing", "nothing can be told")
        case _:
            return Verdict("rely", fits)


def _unexplained(fit: RoundFit, rounds: int, count: int) -> str:
    """Why the readings of one of so many rounds are not explained, or ""."""
    if rounds * fit.misfit.p_value < UNLIKELY and fit.misfit.message:
        return fit.misfit.message
    if rounds * fit.p_value < UNLIKELY:
        chance = f"(p = {fit.p_value:.1e})"
        return f"{_explain(count, well=False)} the readings {chance}, more would: give a larger `count`"
    return ""


def _explain(count: int, *, well: bool) -> str:
    """That so many sources explain something, or do not."""
    if count == 1:
        return f"the source that was followed {'explains' if well else 'does not explain'}"
    return f"the {count} sources that were followed {'explain' if well else 'do not explain'}"

"""Results of joint maps in words."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from sfumato.heatmap.distributed.certificates import MadeCertificates
from sfumato.heatmap.distributed.demo import JointDemo
from sfumato.heatmap.distributed.results import (
    CheckedSession,
    JointCheck,
    JointResult,
    PlannedJoint,
)
from sfumato.heatmap.measure import amount_of
from sfumato.heatmap.render.release import as_text as release_text


@singledispatch
def joint_text(result: Any) -> str:
    """A result of joint maps as lines for people.

    Args:
        result: What a function of this folder returned.

    Returns:
        The lines, without a line end after the last.

    Raises:
        TypeError: It is no such result.

    """
    raise TypeError(f"no words for {type(result).__name__}")


@joint_text.register
def _planned(result: PlannedJoint) -> str:
    resumes = (
        f"\nsession {result.resumes} was charged and not finished: it would go on, at no cost"
        if result.resumes
        else ""
    )
    return (
        f"{release_text(result.release)}\n"
        f"{result.me} of {', '.join(result.parties)}; {_curious(result.trust.curious)}\n"
        f"request {result.digest}: it must be the same at all parties{resumes}\n"
        f"chance that a sum leaves its field: {_chance(result.wrap_chance)}"
    )


@joint_text.register
def _released(result: JointResult) -> str:
    resumed = ", begun before" if result.resumed else ""
    return (
        f"{release_text(result.release)}\n"
        f"session {result.session} of {', '.join(result.parties)}{resumed}: "
        f"{amount_of(result.counts, 'counts')} opened in {amount_of(result.rounds, 'rounds')}, "
        f"{_bytes(result.traffic.sent)} sent and {_bytes(result.traffic.received)} "
        f"received by {result.me}; chance that a sum left its field: {_chance(result.wrap_chance)}"
    )


@joint_text.register
def _checked(result: JointCheck) -> str:
    return "\n".join(line for one in result.sessions for line in _session(one))


@joint_text.register
def _demo(result: JointDemo) -> str:
    return f"{result.statement}\n{joint_text(result.check)}\npicture: {result.picture}"


@joint_text.register
def _certificates(result: MadeCertificates) -> str:
    keys = ", ".join(f"{name}.key" for name in result.names)
    certificates = ", ".join(f"{name}.crt" for name in result.names)
    return (
        f"made {keys} (for nobody else) and {certificates} (for all parties) in {result.folder}, good until "
        f"{result.until}"
    )


def _session(one: CheckedSession) -> list[str]:
    many = f"{len(one.ledgers)} of {one.parties} parties' ledgers"
    maps = f" and {len(one.maps)} map{'s' * (len(one.maps) > 1)}" if one.maps else ""
    head = f"session {one.session}, {one.cost} at each party: {many}{maps}"
    if not one.problems:
        return [f"{head} tell the same story"]
    return [f"{head} tell different stories", *(f"  {problem}" for problem in one.problems)]


def _curious(curious: int) -> str:
    if not curious:
        return "it would protect against outsiders only"
    who = "any 1 of them" if curious == 1 else f"any {curious} of them together"
    return f"{who} may be curious"


def _chance(chance: float) -> str:
    return "below 1e-12" if chance < 1e-12 else f"{chance:.1g}"


def _bytes(count: int) -> str:
    if count < 10_000:
        return f"{count:,} bytes"
    return f"{count / 1e3:,.0f} kB" if count < 10_000_000 else f"{count / 1e6:,.1f} MB"

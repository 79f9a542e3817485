"""One sigma for all sensors, or each its own: what a plan takes where nobody says, by a public rule.

Noise for each sensor is taken unasked where it tells at least `GAIN` times as much of which of two communities
of a graph mass is in, no sensor adds more than `NOISIER` times the noise of one sigma, and readings move at
most `LOSES` times as far as with one sigma, if the physics is 10 % wrong. The second makes it safe for
questions that nobody asked yet: readings through noise of one sigma, times `NOISIER`, can be made of these
readings by adding noise, so that the best answer to any question is no worse than through that noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from sfumato._validate import read_only
from sfumato.errors import InvalidParameter
from sfumato.privacy import PureDP
from sfumato.sensing.model.operators.weighted import Weighted
from sfumato.sensing.model.site import Site
from sfumato.sensing.planning.noise_weights import NoiseEach, noise_each
from sfumato.sensing.release.noise_plan import Calibration, SensorLoss
from sfumato.spaces import Graph

Noise = Literal["auto", "one", "each"]
Reason = Literal[
    "asked",
    "gains",
    "has",
    "little",
    "noisier",
    "physics",
    "no graph",
    "laplace",
    "papers",
    "compares",
    "large",
    "cannot",
]

GAIN = 2.0
"""Times the information of one sigma from which on noise for each is taken."""
NOISIER = 1.06
"""Times the noise of one sigma that no sensor may have more of."""
LOSES = 1.5
"""Times as far as with one sigma that readings may move more than promised, if the physics is 10 % wrong."""
ENTRIES = 1 << 21
"""Entries of the operator up to which it is tried unasked: some seconds."""


@dataclass(frozen=True, slots=True, eq=False)
class NoiseChoice:
    """Which noise a plan took, and why.

    Attributes:
        kind: One sigma for all sensors, or each its own.
        asked: What was asked for.
        reason: Why it is this kind: a word that `render` puts into a sentence.
        each: What noise for each gains, where it was looked at; with its site where it was taken.
        why_not: Why noise for each is not to be had, where it is not.
    """

    kind: Literal["one", "each"]
    asked: Noise
    reason: Reason
    each: NoiseEach | None = None
    why_not: str = ""

    def to_json(self) -> dict[str, Any]:
        """As a plan states it; the gains are the site's."""
        told: dict[str, Any] = {"kind": self.kind, "asked": self.asked, "reason": self.reason}
        return told | ({"why_not": self.why_not} if self.why_not else {})

    @staticmethod
    def from_json(data: Any, each: NoiseEach | None) -> NoiseChoice:
        """What a plan states; one from before there was a rule, what was asked of it."""
        if data is None:
            taken = each is not None and each.used
            return NoiseChoice("each" if taken else "one", "each", "asked", each)
        why_not = str(data.get("why_not", ""))
        return NoiseChoice(data["kind"], data["asked"], data["reason"], each, why_not)


def choose_noise(
    site: Site,
    loss: SensorLoss,
    asked: Noise = "auto",
    *,
    keep: float | None = None,
    offset: bool = False,
    calibration: Calibration = "analytic",
    compares: bool = False,
) -> NoiseChoice:
    """One sigma for all sensors of a site, or each its own, as asked for or by the rule.

    Args:
        site: The site; it may have noise for each already.
        loss: What one reading of all sensors may cost.
        asked: "one", "each", or "auto" for the rule.
        keep: With "each": the share of its weight that every sensor keeps, as `noise_each` has it.
        offset: Whether all readings share an offset that nobody knows.
        calibration: How noise is calibrated: that of the papers is one sigma.
        compares: Whether the plan compares sites of other sensors, which have no gains.

    Returns:
        The choice; of kind "each" with the site to release with, `choice.each.site`.

    Raises:
        InvalidParameter: Noise for each was asked for and is not to be had, or `keep` goes without it;
            nothing was planned.

    >>> from sfumato.privacy import ApproxDP
    >>> from sfumato.sensing import describe_site, heat_line
    >>> line = heat_line(sources=20, sensors=5, diffusion_time=0.05)
    >>> choose_noise(describe_site("hall", operator=line, radius="1/100").site, ApproxDP(1, "1e-6")).reason
    'no graph'
    """
    check_keep(asked, keep)
    if asked == "each":
        if isinstance(loss, PureDP):
            raise InvalidParameter(
                "epsilon without a delta takes Laplace noise of one scale, got `noise='each'`, which is "
                "Gaussian: give a delta above 0 or rho; nothing was planned"
            )
        found = noise_each(site, keep=keep, offset=offset)
        return NoiseChoice("each" if found.used else "one", asked, "asked", found)
    if has_each(site):
        return NoiseChoice("each", asked, "has")
    if asked == "one":
        return NoiseChoice("one", asked, "asked")
    barred = _barred(site, loss, calibration, compares=compares)
    if barred is not None:
        return NoiseChoice("one", asked, barred)
    try:
        found = noise_each(site, offset=offset)
    except InvalidParameter as problem:
        said, *_ = str(problem).split("; ")
        return NoiseChoice("one", asked, "cannot", why_not=said)
    reason = judged(found)
    if reason == "gains":
        return NoiseChoice("each", asked, reason, found)
    kept = replace(found, site=site, gains=read_only(np.ones(len(site.sensors))))
    return NoiseChoice("one", asked, reason, kept)


def check_keep(asked: Noise, keep: float | None) -> None:
    """Refuse a share that sensors keep where it was not asked that each has its own noise."""
    if keep is not None and asked != "each":
        raise InvalidParameter(f"`keep` goes with `noise='each'`, got {asked}; nothing was planned")


def has_each(site: Site) -> bool:
    """Whether sensors of a site have noise of their own already."""
    return isinstance(site.operator, Weighted)


def judged(found: NoiseEach) -> Reason:
    """What the rule says of noise for each sensor: "gains" if it is taken."""
    if not found.used or found.gain < GAIN:
        return "little"
    if found.noisiest is None or found.noisiest > NOISIER:
        return "noisier"
    return "gains" if found.wrong <= LOSES * found.wrong_of_one else "physics"


def _barred(
    site: Site, loss: SensorLoss, calibration: Calibration, *, compares: bool
) -> Reason | None:
    """Why the rule keeps one sigma without looking at what it would gain; None where it looks."""
    m, n = site.operator.shape
    if isinstance(loss, PureDP):
        return "laplace"
    if calibration == "papers":
        return "papers"
    if not isinstance(site.operator.space, Graph):
        return "no graph"
    if compares:
        return "compares"
    return "large" if m * n > ENTRIES else None

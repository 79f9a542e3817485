"""What an audit is asked for besides a refutation: certificates, and how much more to run for bounds."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sfumato.cli.audit_options import MOST, careful, loaded
from sfumato.cli.audit_outputs import band_epsilons
from sfumato.cli.chance import chance
from sfumato.cli.console import say, working
from sfumato.errors import InvalidInput, InvalidParameter

if TYPE_CHECKING:
    from sfumato.audit import SavedVerdict, Verdict
    from sfumato.audit.boxes import Box, Inputs, Pair
    from sfumato.audit.sequential import Budget
    from sfumato.privacy import Claim

NOTICEABLE = 0.03
TRIES = 3
BOUND, BAND = 400_000, 200_000
"""Further runs of a lower bound and of a band, at most."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """What --certify is asked for, as the command line spells it."""

    proximity: float | None
    outputs: str
    specification: str
    data: str
    confidence: float
    weight: float = 1.0

    def check(self, wanted: bool, claim: Claim) -> None:
        """Refuse options that do not go together, before anything is loaded."""
        from sfumato.privacy import RandomApproxDP, RandomPureDP

        if not wanted and isinstance(claim.loss, RandomPureDP | RandomApproxDP):
            raise InvalidParameter(
                "a claim with gamma is about random data: no pair refutes it; give --certify and --data; "
                "nothing was run"
            )
        if wanted and (self.proximity is None or not self.outputs):
            raise InvalidParameter(
                "--certify needs --proximity, how far off the claim may be, and --outputs, how many there "
                "are; nothing was run"
            )
        if not wanted and (
            self.proximity is not None or self.outputs or self.specification or self.data
        ):
            raise InvalidParameter(
                "--proximity, --outputs, --specification and --data go with --certify; nothing was run"
            )
        if self.weight != 1 and not self.data:
            raise InvalidParameter(
                f"--weight is of a gamma, and goes with --data, got {self.weight:g}; nothing was run"
            )

    def verdict(
        self, box: Box, claim: Claim, tried: Sequence[Pair] | Inputs, limit: Budget
    ) -> Verdict:
        """What the testers of the thesis say."""
        from sfumato.audit.boxes import SampleBox, function_box
        from sfumato.audit.property_testing import certify

        stated = None
        if self.specification:
            stated = careful(loaded(function_box, self.specification).function, self.specification)
        source = _source(self.data) if self.data else None
        pairs = tried if isinstance(tried, Sequence) else tried.patterns()

        def asked(budget: int | None) -> Verdict:
            return certify(
                box,
                claim,
                proximity=self.proximity or 0.0,
                outputs=_outputs(self.outputs),
                pairs=pairs,
                data=source,
                specification=stated,
                rng=chance() if source else None,
                confidence=self.confidence,
                weight=self.weight,
                budget=budget,
            )

        runs = None if limit.runs == MOST else limit.runs
        if limit.seconds is None or isinstance(box, SampleBox):
            return asked(runs)
        needed = asked(0)
        if needed.needed is None or (runs is not None and needed.needed > runs):
            return needed if needed.needed is None else asked(runs)
        first = source(chance()).first if source else pairs[0].first
        timely = int(limit.seconds * speed(box, first, needed.needed))
        if needed.needed <= timely:
            return asked(runs)
        note = f"at the speed of a few runs, {limit.seconds:g} s are enough for {timely:,}"
        return replace(
            needed, notes=(f"it takes {needed.needed:,} runs; {note}; it was not begun",)
        )


@dataclass(frozen=True, slots=True)
class Further:
    """Time for what follows a bet: the budget's once more, for all parts together."""

    box: Box
    limit: Budget
    begun: float
    rate: list[float] = field(default_factory=list)

    def runs(self, pair: Pair, most: int, *, parts: int) -> int:
        """Runs of the next of so many parts, both inputs together, at the speed of a few thrown away.

        Half of a part's time is left for what is computed from its runs.
        """
        from sfumato.audit.boxes import SampleBox

        if isinstance(self.box, SampleBox):
            return min(most, 2 * min(len(self.box.first), len(self.box.second)))
        if self.limit.seconds is None:
            return min(most, self.limit.runs)
        left = self.limit.seconds - (time.monotonic() - self.begun)
        if left <= 0:
            return 0
        if not self.rate:
            self.rate.append(speed(self.box, pair.first, min(most, self.limit.runs) // 4))
        return min(most, self.limit.runs, int(left / parts / 2 * self.rate[0]))


def speed(box: Box, data: Any, most: int) -> float:
    """Runs a second, of as few as tell; the best of a few times, since whatever else runs slows down some."""
    size = 1
    while True:
        seconds = math.inf
        for _ in range(TRIES):
            begun = time.monotonic()
            box.run(data, size)
            seconds = min(seconds, time.monotonic() - begun)
            if seconds < NOTICEABLE:
                break
        if seconds >= NOTICEABLE or size >= most:
            return size / max(seconds, 1e-6)
        size *= 4


def further(
    saved: SavedVerdict,
    time_: Further,
    tried: Sequence[Pair] | Inputs,
    *,
    bound: bool,
    band: bool,
    hush: bool,
) -> SavedVerdict:
    """The verdict with a lower bound and a band, where they are wanted and there is time."""
    from sfumato.audit.boxes import SampleBox
    from sfumato.audit.fixed import LEAST_RUNS, lower_bound, profile

    verdict, box = saved.verdict, time_.box
    if verdict.kind == "INCONCLUSIVE":
        return saved
    pair = worst_pair(verdict, tried)
    for wanted, most, parts in ((bound, BOUND, 1 + band), (band, BAND, 1)):
        if not wanted:
            continue
        # Samples are used once more: there is one pair, chosen by nobody, so what they say is valid
        # again.
        fresh = replace(box, taken=[0, 0]) if isinstance(box, SampleBox) else box
        runs = time_.runs(pair, most, parts=parts)
        if runs < LEAST_RUNS:
            name = "lower bound" if most == BOUND else "band"
            say(
                f"no {name}: there is no time left for {LEAST_RUNS} runs; give a larger --budget",
                quiet=hush,
            )
        elif most == BOUND:
            with working(f"a lower bound from {runs:,} runs", quiet=hush):
                low = lower_bound(
                    fresh, pair, delta=own_delta(verdict), runs=runs, confidence=verdict.confidence
                )
                saved = replace(saved, bound=low)
        else:
            with working(f"a band from {runs:,} runs", quiet=hush):
                grid = band_epsilons(verdict.claim)
                curves = profile(
                    fresh, pair, epsilons=grid, runs=runs, confidence=verdict.confidence
                )
                saved = replace(saved, band=curves)
    return saved


def worst_pair(verdict: Verdict, tried: Sequence[Pair] | Inputs) -> Pair:
    """The pair to look at closer: that of the witness, or the first."""
    if verdict.witness is not None:
        return verdict.witness.pair
    if verdict.pairs:
        return verdict.pairs[0]
    return (tried if isinstance(tried, Sequence) else tried.patterns())[0]


def own_delta(verdict: Verdict) -> float:
    """The delta at which epsilon is bounded: that of the statement that was broken, or a middling one."""
    from sfumato.audit import implied

    if verdict.witness is not None:
        return verdict.witness.statement.delta
    statements = implied(verdict.claim)
    return statements[len(statements) // 2].delta


def _outputs(text: str) -> int | list[Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if isinstance(found, list) or type(found) is int:
        return found
    raise InvalidParameter(
        f"--outputs is a number, or a list as JSON, got {text!r}; nothing was run"
    )


def _source(target: str) -> Callable[[Any], Pair]:
    from sfumato.audit.boxes import Pair, function_box

    draw = careful(loaded(function_box, target).function, target)

    def drawn(rng: Any, /) -> Pair:
        found = draw(rng)
        if isinstance(found, Pair):
            return found
        if isinstance(found, tuple) and len(found) == 2:
            return Pair(*found, "drawn")
        raise InvalidInput(
            f"{target} must return two inputs, got {type(found).__name__}; nothing was run"
        )

    return drawn

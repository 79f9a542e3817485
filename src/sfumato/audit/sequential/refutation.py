"""The one way to a refutation: a bet that is won, confirmed on fresh runs. Its verdict is final.

`refute`, `assert_private` and `sfumato audit run` all come here, so that the answer does not depend
on who asks. Why the level holds although a bet that is not confirmed goes on: docs/proofs/audit.md
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sfumato.audit.boxes.box import Box, Pair, SampleBox
from sfumato.audit.boxes.pairs import Inputs, require_relation
from sfumato.audit.boxes.runs import as_box, as_pair
from sfumato.audit.claims import MAX_EPSILON, as_claim, implied
from sfumato.audit.confidence import check_confidence
from sfumato.audit.replay import MIN_RUNS, enough_runs
from sfumato.audit.sequential.bet import SHARES, Bet, Look, thin
from sfumato.audit.sequential.budget import Budget
from sfumato.audit.sequential.confirm import Confirmation, confirm
from sfumato.audit.sequential.power import excluded_epsilon
from sfumato.audit.verdict import Verdict, Witness
from sfumato.errors import InvalidParameter
from sfumato.privacy import Claim

MIDDLING = 0.1
MASSES = (0.5, MIDDLING, 0.01)
PROMISING = 1.0
"""Standard deviations above what is allowed from which more runs might confirm an event."""
ENOUGH = 3
"""So many times fresh runs are seen to depend on each other before the bet is given up."""
STEPS = 4
"""From one look at fresh runs to the next there are so many times as many."""
MIN_LOOK, HASTE = 64, 20
"""The first look is after at least so many runs, and takes this part of the time, if that is limited."""
UNCONFIRMED = (
    "NOT CONFIRMED: the bet was won as if runs were independent, but fresh runs of the same event {why}; "
    "tried {often}"
)
DEPENDENT = (
    "depend on each other: those close in time are alike. A claim is about one run, and this audit takes "
    "runs to be independent, so that it says nothing of this mechanism"
)
ABSENT = "do not show it: it was luck, or runs depend on each other"
CONSTANT = (
    "every run on every input gave the same output, {output}: nothing was tested. Does the mechanism return "
    "what it releases?"
)
HELD = "outputs drawn beforehand cannot be run again: no fresh runs confirm this"


def refute(
    box: Box | Callable[..., Any],
    claim: Claim,
    *,
    pairs: Sequence[Pair | tuple[Any, Any]] | Inputs,
    confidence: float = 0.99,
    budget: Budget = Budget(),  # noqa: B008  (frozen)
    watch: Callable[[Look], None] | None = None,
) -> Verdict:
    """Whether runs of a box refute a claim: a true one is refuted with chance at most 1 - confidence.

    One bankroll of 1 is bet against the claim on pairs, events and stakes that are chosen from
    earlier runs only (`betting`). When it reaches 1 / (1 - confidence), the event that earned most
    is tried on fresh runs (`confirm`); if these refute the claim by themselves, it is refuted. If
    not, the bet goes on, and the next event is tried when wealth has doubled. The chance covers all
    pairs, directions, events and looks: a claim is refuted only after the bankroll has once reached
    1 / (1 - confidence), however often an event is then tried, and that has this chance at most
    [ville39]. Besides, the k-th trial has level (1 - confidence) 2**-k, so that the trials alone
    keep it too: either argument is enough. Runs must be independent of each other; fresh runs that
    are seen not to be confirm nothing.

    The budget is that of the bet; fresh runs take no more again. Outputs drawn beforehand are not
    confirmed. `Verdict.wealth` has a row of runs and wealth for each of at most 2,000 looks. A box
    may be a plain function of the data, a pair a tuple of two inputs. Where all outputs are the
    same nothing was tested, and the verdict is inconclusive.

    Args:
        box: A box, or a function of the data: one output, or so many with a parameter `runs`.
        claim: What is claimed, and between which neighbors; or in words, `epsilon=1`.
        pairs: Pairs of neighbors `[(first, second), ...]`, or a form such as `Queries(10)`.
        confidence: Between 0 and 1.
        budget: Of the bet; fresh runs take no more again.
        watch: Is told how the bet stands.

    Returns:
        The verdict: REFUTED, NOT_REFUTED or INCONCLUSIVE.

    Raises:
        InvalidParameter: If what is asked for cannot be audited; nothing was run.
        InvalidInput: If the box fails, or repeats its runs.
    """
    claim = as_claim(claim)
    check_confidence(confidence)
    box, confidence = as_box(box), float(confidence)
    if isinstance(pairs, Sequence):
        form, given = None, tuple(as_pair(one, number) for number, one in enumerate(pairs, 1))
    else:
        form, given = pairs, pairs.patterns()
        require_relation(pairs, claim)
    if not given:
        raise InvalidParameter(
            "an audit takes at least one pair of inputs, got none; nothing was run"
        )
    statements = tuple(one for one in implied(claim) if one.epsilon <= MAX_EPSILON)
    if not statements:
        note = f"no runs can refute an epsilon above {MAX_EPSILON:g}: nothing was run"
        return Verdict("INCONCLUSIVE", claim, confidence, 0, 0.0, ("e-value", 1.0), notes=(note,))
    target = -math.log1p(-confidence)
    bet = Bet(box, statements, pairs=given, form=form, target=target, budget=budget, watch=watch)
    tried = _Tried(bet, 1 - confidence)
    bet.run()
    while bet.won and not tried.confirms() and tried.again():
        bet.go_on()
        bet.run()
    return _verdict(bet, tried, Verdict("NOT_REFUTED", claim, confidence, bet.drawn, bet.seconds))


@dataclass(slots=True, eq=False)
class _Tried:
    """The events of a bet that were tried on fresh runs, and what is left for others."""

    bet: Bet
    level: float
    found: list[Confirmation] = field(default_factory=list)
    witness: Witness | None = None
    runs: int = 0
    seconds: float = 0.0
    required: int = 0

    def confirms(self) -> bool:
        """Whether fresh runs confirm the event that the bet was won on; of samples that is not asked."""
        if isinstance(self.bet.box, SampleBox):
            self.witness = self.bet.witness
            return True
        if (witness := self.bet.witness) is None or not (looks := self._looks(witness)):
            return False
        begun = time.monotonic()
        self.witness = witness
        self.found.append(confirm(witness, self.bet.box, runs=looks, level=self._level))
        self.runs += 2 * self.found[-1].replay.runs
        self.seconds += time.monotonic() - begun
        # The bet's own time stands still meanwhile.
        self.bet.begun += time.monotonic() - begun
        return self.found[-1].holds

    def again(self) -> bool:
        """Whether another event may be tried: the bet can go on, and there are runs left to confirm it."""
        return self.bet.pairs_left > 0 and self._left > 0 and self.dependent < ENOUGH

    @property
    def dependent(self) -> int:
        """How often fresh runs depended on each other."""
        return sum(one.dependent for one in self.found)

    @property
    def _level(self) -> float:
        """What of the level the next event has: half, a quarter, an eighth, ..., never more than all."""
        return self.level * 2.0 ** -(len(self.found) + 1)

    @property
    def _left(self) -> int:
        """Fresh runs of either input that the budget allows, once more for all events together."""
        left = self.bet.budget.runs - self.runs
        if (
            self.bet.budget.seconds is not None
            and (each := self.bet.seconds / max(1, self.bet.drawn)) > 0
        ):
            left = min(left, int((self.bet.budget.seconds - self.seconds) / each))
        return max(0, left // 2)

    def _looks(self, witness: Witness) -> list[int]:
        """After how many runs to look: few at first, then four times as many, up to what is likely enough.

        No event takes more than half of what is left for all. Where time is short the first look
        takes a small part of it.
        """
        self.required = enough_runs(witness, level=self._level / STEPS)
        short = math.inf if self.bet.budget.seconds is None else self._left // HASTE
        last, look = (
            min(-(-self._left // 2), self.required),
            int(min(MIN_RUNS, max(MIN_LOOK, short))),
        )
        found = []
        while look < last:
            found.append(look)
            look *= STEPS
        return [*found, last] if last else []


def _verdict(bet: Bet, tried: _Tried, begun: Verdict) -> Verdict:
    found = replace(
        begun,
        evidence=("e-value", math.exp(bet.bankroll.best)),
        pairs=tuple(trial.runs.pair for trial in bet.trials if len(trial.runs)),
        wealth=thin(np.concatenate(bet.path)),
        confirmed=tried.found[-1].replay if tried.found else None,
        witness=tried.witness,
    )
    held = isinstance(bet.box, SampleBox)
    if tried.witness is not None and (held or tried.found[-1].holds):
        return replace(
            found, kind="REFUTED", notes=_unchanging(bet, tried.witness) + (HELD,) * held
        )
    if bet.bankroll.best >= bet.first_target:
        return replace(found, kind="INCONCLUSIVE", **_unconfirmed(tried))
    made = [len(trial.runs) for trial in bet.trials[: bet.given]]
    target, total = bet.first_target - math.log(SHARES[0]), bet.total
    if min(made) < total:
        missing = _missing(made, math.ceil(total), bet.drawn) if total < math.inf else None
        note = "so few runs of every pair would not have caught even outputs that tell the inputs apart always"
        return replace(found, kind="INCONCLUSIVE", required_runs=missing, notes=(note,))
    if bet.constant:
        return replace(
            found, kind="INCONCLUSIVE", notes=(CONSTANT.format(output=bet.first_output),)
        )
    excluded = [
        min((excluded_epsilon(one, min(made), target, mass), one.delta) for one in bet.statements)
        for mass in MASSES
    ]
    notes = tuple(
        f"an event of mass {mass:g}, of the kinds that are tried, that breaks epsilon {epsilon:.3g} at delta "
        f"{delta:g} would have been "
        "caught with chance 90 %, on whichever pair it began with"
        for mass, (epsilon, delta) in zip(MASSES, excluded, strict=True)
        if epsilon < math.inf
    )
    return replace(found, excluded=excluded[MASSES.index(MIDDLING)][0], notes=notes)


def _unconfirmed(tried: _Tried) -> dict[str, Any]:
    """What is said of a bet that was won and led to nothing."""
    often = f"{len(tried.found)} time{'s' * (len(tried.found) != 1)}"
    why = DEPENDENT if tried.dependent else ABSENT
    notes = (UNCONFIRMED.format(why=why, often=often),)
    last = tried.found[-1].replay if tried.found else None
    if not tried.dependent and (
        last is None or (last.runs < tried.required and last.excess > PROMISING)
    ):
        notes = ("the bet was won, but there are too few runs left to confirm it",)
        return {"notes": notes, "required_runs": 2 * tried.required}
    return {"notes": notes}


def _missing(made: Sequence[int], min_runs: int, drawn: int) -> int:
    """Runs that a budget lacks to give every pair its least; those that others had are used anew."""
    lacking = 2 * min_runs * len(made) - drawn
    return lacking if lacking > 0 else sum(2 * max(0, min_runs - one) for one in made)


def _unchanging(bet: Bet, witness: Witness) -> tuple[str, ...]:
    """What to add where a claim is refuted by a box that may not be random at all."""
    inputs = {id(witness.pair.first), id(witness.pair.second)}
    return tuple(
        f"on input {side} of the pair {one.pair.name!r} every run gave the same output: it is not random, or "
        "seeded"
        for one in (trial.runs for trial in bet.trials)
        if {id(one.pair.first), id(one.pair.second)} == inputs
        and one.pair.name == witness.pair.name
        for side in one.constant
    )

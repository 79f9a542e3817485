"""A bet against a privacy claim, run by run: how it stands, and what it points at when it is won."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.audit.boxes.box import Box, Pair
from sfumato.audit.boxes.pairs import Inputs
from sfumato.audit.boxes.runs import Runs, runs_left
from sfumato.audit.boxes.samples import Encoder, keys_of, spelled
from sfumato.audit.claims import EpsilonDelta
from sfumato.audit.sequential.betting import Bankroll
from sfumato.audit.sequential.budget import Budget
from sfumato.audit.sequential.power import required_pairs
from sfumato.audit.sequential.stakes import (
    NOTHING,
    UNFITTED,
    Fitted,
    Plan,
    fit_anew,
    plan_bold,
    plan_rare,
    plan_sober,
)
from sfumato.audit.verdict import Witness

WARM = 32
"""Runs of either input before the first bet on a pair: nothing is known of it yet."""
GROWTH = 4
"""Events are chosen anew after each further quarter of a pair's runs."""
PARTS = 6
"""A batch is drawn in so many parts, so that little is drawn after the bet is won."""
SHARES = (0.35, 0.3, 0.25, 0.1)
"""Of the bankroll: for bold bets, for sober ones, for bets on rare outputs, and kept as cash."""
RANKS = 3.0
"""A pair gets runs as 1 / rank**3: the best one five sixths of them, however many there are."""
FLOOR = 1 / 2
"""Once half of a budget is spent no given pair is left with less than this of an equal share of the runs:
what would have been caught is said of every pair."""
POINTS = 2000
VARIED = 200_000
"""Runs after which pairs close to the best are tried too, or after a quarter of the budget; again after four
times as many."""
MUCH = 12.0
"""Evidence, as a square of standard deviations, that makes a search for other pairs needless."""


@dataclass(frozen=True, slots=True)
class Look:
    """How a bet stands: wealth now, the largest so far, and the target that refutes the claim.

    Attributes:
        runs: Made so far, both inputs together.
        seconds: Since the bet began.
        wealth: Now; it began with 1.
        best: The largest so far.
        target: The wealth that refutes the claim.
        pair: The name of the pair that is run.
        event: What is bet on, in words.
    """

    runs: int
    seconds: float
    wealth: float
    best: float
    target: float
    pair: str
    event: str


@dataclass(slots=True, eq=False)
class _Trial:
    """One pair, its runs so far, and what is bet on next."""

    runs: Runs
    plans: tuple[Plan, ...] = (NOTHING, NOTHING, NOTHING)
    fitted: Fitted = UNFITTED

    @property
    def evidence(self) -> float:
        return max(plan.evidence for plan in self.plans)


@dataclass(slots=True, eq=False)
class _Placed:
    """A plan while it is bet on: what it earned, and how often the two inputs reached its events."""

    pair: Pair
    plan: Plan
    encoder: Encoder | None = None
    hits: IntArray = field(default_factory=lambda: np.zeros((2, 2), dtype=np.int64))
    runs: int = 0
    earned: float = 0.0

    def settle(self, rows: tuple[FloatArray, FloatArray]) -> FloatArray:
        """What each pair of runs multiplies the account by, as logarithms."""
        if self.plan.wager is None:
            return np.zeros(len(rows[0]))
        first, second = self.plan.place(rows[0]), self.plan.place(rows[1])
        logs = self.plan.wager.logs(first.cells, second.cells)
        self.hits += np.array([first.hits, second.hits])
        self.runs += len(rows[0])
        self.earned += float(logs.sum())
        return logs

    def witness(self) -> Witness | None:
        """The event that fails by most, in the direction in which it fails."""
        if self.plan.wager is None:
            return None
        statement = self.plan.wager.statement
        found = []
        for event, more, less in ((self.plan.upper, 0, 1), (self.plan.lower, 1, 0)):
            if event is not None and self.encoder is not None:
                hits = int(self.hits[more, more]), int(self.hits[less, more])
                pair = (
                    self.pair
                    if more == 0
                    else Pair(self.pair.second, self.pair.first, self.pair.name)
                )
                made = (self.runs, self.runs)
                found.append(Witness(pair, event.event, statement, hits, made, self.encoder))
        return max(found, key=lambda one: one.excess)


class Bet:
    """A bet while it runs. It is won when its wealth reaches `target`, and goes on if nothing comes of that.

    Of a true claim, with runs that are independent of each other, it is ever won with chance at
    most e**-target, `target` as it was at first [ville39]; `go_on` only makes it harder.
    """

    def __init__(
        self,
        box: Box,
        statements: tuple[EpsilonDelta, ...],
        *,
        pairs: tuple[Pair, ...],
        form: Inputs | None,
        target: float,
        budget: Budget,
        watch: Callable[[Look], None] | None,
    ) -> None:
        self.box, self.statements, self.form, self.target = box, statements, form, target
        self.first_target = target
        self.budget, self.watch = budget, watch
        self.drawn = self.again = 0
        self.trials = [_Trial(Runs(box, pair)) for pair in pairs]
        self.given = len(pairs)
        # What bold bets, with their share of the bankroll, take to refute what always tells its
        # input.
        self.total = min(
            required_pairs(one, 1.0, 0.0, target - math.log(SHARES[0])) for one in statements
        )
        self.min_pairs = (
            math.ceil(self.total) if self.total <= self.pairs_in_all / self.given else 0
        )
        self.bankroll = Bankroll(SHARES)
        self.path: list[FloatArray] = [np.array([[0.0, 1.0]])]
        self.best: _Placed | None = None
        self.vary_at = min(VARIED, budget.runs // 4)
        self.begun = time.monotonic()

    @property
    def seconds(self) -> float:
        """How long it has been going on."""
        return time.monotonic() - self.begun

    @property
    def seconds_left(self) -> float:
        """How long it may still."""
        return math.inf if self.budget.seconds is None else self.budget.seconds - self.seconds

    @property
    def pairs_in_all(self) -> float:
        """Pairs of runs that the budget allowed at first, were there time for them."""
        return min(self.budget.runs // 2, self.drawn // 2 + runs_left(self.box))

    @property
    def pairs_left(self) -> int:
        """Pairs of runs that the budget still allows."""
        if self.seconds_left <= 0:
            return 0
        return int(min((self.budget.runs - self.drawn) // 2, runs_left(self.box)))

    @property
    def half_spent(self) -> bool:
        """Whether half of the budget is gone without a refutation: then the claim may well hold."""
        spent = 0.0 if self.budget.seconds is None else self.seconds / self.budget.seconds
        of_runs = self.drawn / min(self.budget.runs, self.drawn + 2 * runs_left(self.box))
        return max(spent, of_runs) > 0.5

    @property
    def constant(self) -> bool:
        """Whether all runs of all inputs gave one and the same output: then nothing was tested."""
        runs = [trial.runs for trial in self.trials if len(trial.runs)]
        rows = [np.unique(keys_of(side)) for one in runs for side in one.rows]
        return len({one.encoder for one in runs}) == 1 and np.unique(np.concatenate(rows)).size == 1

    @property
    def first_output(self) -> str:
        """The first output of all, in words."""
        row = self.trials[0].runs.rows[0][0]
        return ", ".join(spelled(number) or f"{number:g}" for number in row[:-1].tolist())

    @property
    def won(self) -> bool:
        """Whether wealth has reached its target."""
        return self.bankroll.best >= self.target

    @property
    def ripe(self) -> bool:
        """Whether it is won, and not too soon again."""
        return self.won and self.drawn >= self.again

    def run(self) -> None:
        """Bet until it is won or the budget is used."""
        while not self.ripe and self.pairs_left > 0:
            self.batch(*self.next_batch())
            self.vary()

    def go_on(self) -> None:
        """Take up a bet that was won for nothing: it must double its wealth and its runs, on other events."""
        self.target, self.again = self.bankroll.best + math.log(2), 2 * self.drawn
        self.best = None

    @property
    def witness(self) -> Witness | None:
        """The event on which most was earned, since the bet began or went on."""
        return None if self.best is None else self.best.witness()

    def next_batch(self) -> tuple[_Trial, int]:
        """The pair to run next, and how often, so that every given pair can still get its least."""
        trial = self.next_trial()
        size = max(WARM, len(trial.runs) // GROWTH)
        missing = {one: max(0, self.min_pairs - len(one.runs)) for one in self.trials[: self.given]}
        if size - min(size, missing.get(trial, 0)) <= max(
            0, self.pairs_left - sum(missing.values())
        ):
            return trial, size
        behind = max(missing, key=lambda one: missing[one])
        return (behind, min(size, missing[behind])) if missing[behind] else (trial, size)

    def next_trial(self) -> _Trial:
        """The pair to run next: one that was hardly run, else so that runs fall with the rank of promise."""
        if cold := [trial for trial in self.trials if len(trial.runs) < WARM]:
            return cold[0]
        behind = min(self.trials[: self.given], key=lambda trial: len(trial.runs))
        if self.half_spent and len(behind.runs) < FLOOR * self.drawn / 2 / len(self.trials):
            return behind
        order = sorted(self.trials, key=lambda trial: -trial.evidence)
        return min(
            enumerate(order, start=1), key=lambda ranked: len(ranked[1].runs) * ranked[0] ** RANKS
        )[1]

    def vary(self) -> None:
        """Where little was found, also try pairs close to the most promising one."""
        if self.form is None or self.drawn < self.vary_at:
            return
        self.vary_at *= 4
        leader = max(self.trials, key=lambda trial: trial.evidence)
        if leader.evidence > MUCH:
            return
        known = {trial.runs.pair.name for trial in self.trials}
        found = (pair for pair in self.form.vary(leader.runs.pair) if pair.name not in known)
        self.trials += [_Trial(Runs(self.box, pair)) for pair in found]

    def batch(self, trial: _Trial, size: int) -> None:
        """Runs of one pair with its plans as they are, then new plans from all of its runs."""
        self.bankroll.deal()
        bets = [_Placed(trial.runs.pair, plan) for plan in trial.plans]
        goal = len(trial.runs) + size
        while len(trial.runs) < goal and not self.ripe and (left := self.pairs_left) > 0:
            part = min(goal - len(trial.runs), max(1, size // PARTS), left)
            self.settle(trial, bets, trial.runs.draw(part, seconds=self.seconds_left))
        for bet in bets:
            bet.encoder = trial.runs.encoder
            if bet.plan.wager is not None and (self.best is None or bet.earned > self.best.earned):
                self.best = bet
        trial.runs.gather()
        if not self.ripe and self.pairs_left > 0:
            rows = trial.runs.rows
            trial.fitted = fit_anew(*rows, trial.fitted)
            trial.plans = (
                plan_bold(*rows, self.statements, trial.fitted),
                plan_sober(*rows, self.statements, trial.fitted),
                plan_rare(*rows, self.statements),
            )

    def settle(
        self, trial: _Trial, bets: Sequence[_Placed], rows: tuple[FloatArray, FloatArray]
    ) -> None:
        """What some runs do to wealth, pair by pair."""
        logs = np.zeros((len(SHARES), len(rows[0])))
        for account, bet in enumerate(bets):
            logs[account] = bet.settle(rows)
        path = self.bankroll.settle(logs, self.target if self.drawn >= self.again else math.inf)
        at = self.drawn + 2.0 * np.arange(1, path.size + 1)
        # A point for each of a few runs is more than anybody can see.
        kept = np.unique(np.append(np.arange(0, path.size, max(1, path.size // 20)), path.size - 1))
        self.path.append(np.column_stack([at, np.exp(path)])[kept])
        self.drawn += 2 * len(rows[0])
        if self.watch is not None:
            self.watch(self.look(trial, bets))

    def look(self, trial: _Trial, bets: Sequence[_Placed]) -> Look:
        """How the bet stands."""
        plan = max((bet.plan for bet in bets), key=lambda one: one.evidence)
        event = plan.upper or plan.lower
        return Look(
            self.drawn,
            self.seconds,
            math.exp(self.bankroll.now),
            math.exp(self.bankroll.best),
            math.exp(self.target),
            trial.runs.pair.name,
            event.event.words if event is not None and plan.wager is not None else "none yet",
        )


def thin(path: FloatArray) -> FloatArray:
    """At most POINTS points of a path, the largest and the last among them."""
    if len(path) <= POINTS:
        return path
    spread = np.linspace(0, len(path) - 1, POINTS - 1).astype(np.int64)
    return np.asarray(path[np.unique(np.append(spread, np.argmax(path[:, 1])))])

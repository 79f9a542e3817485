"""What to bet on next for one pair of inputs: events, how likely they seem, and how much to put on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.audit.boxes.samples import Keys, keys_of
from sfumato.audit.claims import MAX_EPSILON, EpsilonDelta
from sfumato.audit.fixed.events import Candidate, shares, thresholds
from sfumato.audit.fixed.features import lowest_bits
from sfumato.audit.fixed.fitting import fit_scorers
from sfumato.audit.fixed.scorers import Column, ColumnTable, RowTable, Scorer, Sign
from sfumato.audit.sequential.betting import Wager, best_wager, growth_rates

Cells = npt.NDArray[np.int64]

# Single-precision products of some libraries raise this flag though nothing in them is invalid; a
# score that is not a number is in no event.
quiet = np.errstate(invalid="ignore")

FIT = 0.5
"""The share of past runs that scorers are fitted on; the others choose events and stakes."""
CHOOSE = 0.4
"""The share of the others that choose the events of a sober bet; the rest of them decide its size."""
BOLD, SOBER = 1.5, 1.0
"""What of the evidence is taken for luck, as a square of standard deviations."""
FIT_ANEW = 1.6
"""Scorers are fitted anew when there are so many times as many runs; events are chosen more often."""
MAX_FITTED = 60_000
"""Numbers of either input that scorers are fitted on; more runs are thinned."""
MAX_SELECTED = 100_000
ODDS = 0.2
"""Before counting, how likely some output of one input alone is held to be, as odds."""
SLACK = 1
"""Outputs seen once less than the most frequent of them are bet on too."""
LADDERS = 3
COARSE = -40
"""Numbers on a grid of 2**-40 or coarser were rounded on purpose."""
SEEN = 2
"""How often one input must have given an output that the other never gave, for a bet on seeing it again."""
DOUBT = 0.1
"""How likely, as a share of what a claim allows, the other input is held to give it after all, at least."""
SIGNS: tuple[Sign, Sign] = (1, -1)


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """The cells of some outputs, and how many of them are in either event of a plan."""

    cells: Cells
    hits: tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Two events, one that the first input reaches too often and one of the second, and a wager.

    `evidence` is twice the logarithm of the likelihood ratio that these events had in the runs
    which chose them: about a square of standard deviations. A plan without a wager bets nothing.
    """

    upper: Candidate | None
    lower: Candidate | None
    wager: Wager | None = None
    evidence: float = 0.0

    @quiet
    def place(self, rows: FloatArray) -> Placed:
        """The cell of each output: 0 in the first event, 1 in the second and not the first, else 2."""
        cells = np.full(len(rows), 2, dtype=np.int64)
        hits = [0, 0]
        for number, event in ((1, self.lower), (0, self.upper)):
            if event is not None:
                inside = event.contains(rows)
                cells[inside] = number
                hits[number] = int(inside.sum())
        return Placed(cells, (hits[0], hits[1]))


NOTHING = Plan(None, None)


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """Scorers, the first runs of either input that they were fitted on, and the runs there were then."""

    scorers: tuple[Scorer, ...] = ()
    fitted: int = 0
    runs: int = 0


UNFITTED = Fitted()


@quiet
def fit_anew(rows1: FloatArray, rows2: FloatArray, last: Fitted) -> Fitted:
    """Scorers of the first half of all runs, or those of last time where there are hardly more runs."""
    size = min(len(rows1), len(rows2))
    if size < FIT_ANEW * last.runs or size < 4:
        return last
    cut = int(FIT * size)
    stride = -(-cut * rows1.shape[1] // MAX_FITTED)
    return Fitted(fit_scorers(rows1[:cut:stride], rows2[:cut:stride]), cut, size)


def plan_bold(
    rows1: FloatArray, rows2: FloatArray, statements: Sequence[EpsilonDelta], fitted: Fitted
) -> Plan:
    """A bet on what promises most, by the same runs that chose it: soon large, and often mistaken.

    Events are chosen on runs that the scorers were not fitted on.
    """
    found = _chosen(rows1, rows2, statements, fitted)
    return _staked(found, found.rows, BOLD)


def plan_sober(
    rows1: FloatArray, rows2: FloatArray, statements: Sequence[EpsilonDelta], fitted: Fitted
) -> Plan:
    """A bet on what promised most by some runs, as large as later ones, which did not choose it, allow."""
    size = min(len(rows1), len(rows2))
    middle = fitted.fitted + int(CHOOSE * (size - fitted.fitted))
    found = _chosen(rows1[:middle], rows2[:middle], statements, fitted)
    return _staked(found, (rows1[middle:size], rows2[middle:size]), SOBER)


@quiet
def _chosen(
    rows1: FloatArray, rows2: FloatArray, statements: Sequence[EpsilonDelta], fitted: Fitted
) -> Choice:
    size, cut = min(len(rows1), len(rows2)), fitted.fitted
    later = rows1[cut:size][-MAX_SELECTED:], rows2[cut:size][-MAX_SELECTED:]
    # A column or its bits as they are were not fitted, so that all runs can choose where to cut.
    every = rows1[:size][-MAX_SELECTED:], rows2[:size][-MAX_SELECTED:]
    plain = [one for one in fitted.scorers if isinstance(one, Column)] + bit_ladders(*every)
    learnt = [one for one in fitted.scorers if not isinstance(one, Column)]
    options = (choose_events(learnt, *later, statements), choose_events(plain, *every, statements))
    return max(options, key=lambda one: one.evidence)


def _staked(found: Choice, rows: tuple[FloatArray, FloatArray], luck: float) -> Plan:
    """A bet on chosen events as these runs suggest, drawn back towards what the claim allows.

    By luck / z**2, as James and Stein would, with z**2 twice the logarithm of the likelihood ratio.
    """
    plan = Plan(found.upper, found.lower)
    if (plan.upper is None and plan.lower is None) or not len(rows[0]):
        return NOTHING
    law1, law2 = (shares_of_cells(plan.place(part).cells) for part in rows)
    whole = best_wager(found.statement, law1, law2)
    evidence = max(2 * len(rows[0]) * whole.growth(law1, law2), 1e-12)
    if evidence <= luck:
        return replace(plan, evidence=evidence)
    return replace(
        plan, wager=_drawn_back(whole, law1, law2, 1 - luck / evidence), evidence=evidence
    )


def plan_rare(rows1: FloatArray, rows2: FloatArray, statements: Sequence[EpsilonDelta]) -> Plan:
    """A bet on outputs that one input has given and the other never has.

    Nothing is lost on it as long as none of them comes. From the second time that an output is seen
    on, each further time multiplies wealth by nearly 1 + e**-epsilon, the most a claim allows.
    """
    epsilon = min(min(one.epsilon for one in statements), MAX_EPSILON)
    keys1, keys2 = keys_of(rows1), keys_of(rows2)
    table = _one_sided(keys1, keys2, rows1, rows2)
    if table is None:
        return NOTHING
    size = min(len(rows1), len(rows2))
    doubt = _doubt(table, epsilon)
    more, less = (float(np.maximum(sign * table.values, 0).sum() / size) for sign in SIGNS)
    upper = Candidate(table, 1.0, 1, more, 0.0, more) if more else None
    lower = Candidate(table, -1.0, -1, less, 0.0, less) if less else None
    best, growth = None, 0.0
    for statement in statements:
        other = doubt * math.exp(-min(statement.epsilon, MAX_EPSILON))
        law1, law2 = _law(more, less * other, size), _law(more * other, less, size)
        wager = best_wager(statement, law1, law2)
        if (found := wager.growth(law1, law2)) > growth:
            best, growth = wager, found
    return NOTHING if best is None else Plan(upper, lower, best, 2 * size * growth)


def bit_ladders(rows1: FloatArray, rows2: FloatArray) -> list[Scorer]:
    """Scores of the first columns by how fine a grid a number lies on, finer higher and finer lower.

    Sums of doubles lie on the grid of the larger one, so that the finest numbers tell what was
    added to what [mironov12, sec. 4]. None where all numbers lie on a coarse grid.
    """
    found: list[Scorer] = []
    for place in range(min(rows1.shape[1] - 1, LADDERS)):
        bits = np.concatenate([lowest_bits(rows[:, place]) for rows in (rows1, rows2)])
        steps = np.unique(bits)
        if steps[0] > COARSE:
            continue
        codes = np.column_stack([np.full(steps.size, float(place)), steps.astype(np.float64)])
        keys = keys_of(codes)
        order = np.argsort(keys)
        # Numbered from 1, the coarsest first; a grid that was not seen before has 0.
        finer = np.arange(steps.size, 0, -1, dtype=np.float64)
        found += [
            ColumnTable("lowest set bits", "low bits", keys[order], values[order], codes[order])
            for values in (finer, -finer)
        ]
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Events against one statement, the runs that chose them, and what a bet on these would have earned."""

    statement: EpsilonDelta
    rows: tuple[FloatArray, FloatArray]
    upper: Candidate | None = None
    lower: Candidate | None = None
    evidence: float = 0.0


def choose_events(
    scorers: Sequence[Scorer],
    rows1: FloatArray,
    rows2: FloatArray,
    statements: Sequence[EpsilonDelta],
) -> Choice:
    """The statement that seems easiest to break, and the best event of either direction against it."""
    size = min(len(rows1), len(rows2))
    options: dict[Sign, list[tuple[Scorer, FloatArray, FloatArray, FloatArray]]] = {1: [], -1: []}
    for scorer in scorers:
        scores1, scores2 = scorer.score(rows1), scorer.score(rows2)
        cuts = thresholds(scores1, scores2)
        for sign in SIGNS:
            ones, others = (scores1, scores2) if sign > 0 else (scores2, scores1)
            options[sign].append(
                (scorer, cuts, shares(ones, cuts, sign), shares(others, cuts, sign))
            )
    best = Choice(statements[0], (rows1, rows2))
    for statement in statements:
        upper, lower = (_best_of(options[sign], sign, statement, size) for sign in SIGNS)
        evidence = size * sum(one.signal for one in (upper, lower) if one is not None)
        if evidence > best.evidence:
            best = Choice(statement, (rows1, rows2), upper, lower, evidence)
    return best


def _best_of(
    options: Sequence[tuple[Scorer, FloatArray, FloatArray, FloatArray]],
    sign: Sign,
    statement: EpsilonDelta,
    size: int,
) -> Candidate | None:
    """The event on which a wager would have grown fastest."""
    if not options:
        return None
    more = np.concatenate([one[2] for one in options])
    # Nothing seen is not nothing there.
    less = np.minimum(1.0, np.concatenate([one[3] for one in options]) + 0.5 / size)
    rates = growth_rates(statement, more, less)
    at = int(np.argmax(rates))
    if rates[at] <= 0:
        return None
    place = at
    for scorer, cuts, *_ in options:
        if place < cuts.size:
            return Candidate(
                scorer, float(cuts[place]), sign, float(more[at]), float(less[at]), float(rates[at])
            )
        place -= cuts.size
    return None


def shares_of_cells(cells: Cells) -> FloatArray:
    """The share of each of the three cells, with half a run added to each."""
    counts = np.bincount(cells, minlength=3) + 0.5
    return np.asarray(counts / counts.sum())


def _drawn_back(whole: Wager, law1: FloatArray, law2: FloatArray, share: float) -> Wager:
    """The best wager if the laws were only so far from what the statement allows."""
    near1, near2 = (
        law1 * (share + (1 - share) / whole.first),
        law2 * (share + (1 - share) / whole.second),
    )
    return best_wager(whole.statement, near1 / near1.sum(), near2 / near2.sum())


def _law(first: float, second: float, size: int) -> FloatArray:
    counts = np.array([first, second, 0.0]) * size + 1e-9
    counts[2] = max(size - counts[0] - counts[1], 0.5)
    return np.asarray(counts / counts.sum())


def _one_sided(keys1: Keys, keys2: Keys, rows1: FloatArray, rows2: FloatArray) -> RowTable | None:
    """The outputs that one input gave most often, and the other never.

    Of as many outputs of a private mechanism some are one-sided by chance, and most of these were
    seen twice or thrice; the most frequent one is the least likely to be.
    """
    keys, values, places = [], [], []
    for sign, ours, theirs, begin in ((1.0, keys1, keys2, 0), (-1.0, keys2, keys1, len(rows1))):
        distinct, first, counts = np.unique(ours, return_index=True, return_counts=True)
        kept = counts >= SEEN
        if kept.any():
            kept[kept] = ~np.isin(distinct[kept], theirs)
        keys.append(distinct[kept])
        values.append(sign * counts[kept])
        places.append(first[kept] + begin)
    together, signed, where = (np.concatenate(parts) for parts in (keys, values, places))
    if not together.size:
        return None
    frequent = np.abs(signed) >= np.abs(signed).max() - SLACK
    order = np.flatnonzero(frequent)[np.argsort(together[frequent])]
    rows = np.array(
        [rows1[at] if at < len(rows1) else rows2[at - len(rows1)] for at in where[order]]
    )
    return RowTable("rare outputs", together[order], signed[order].astype(np.float64), rows)


def _doubt(table: RowTable, epsilon: float) -> float:
    """How likely the other input gives such outputs after all, as a share of what the claim allows.

    An output that the claim just allows is given k times by one input and never by the other with
    chance r**k, r = 1 / (1 + e**-epsilon), and any of as many such outputs as there are counts;
    that one of them cannot be given by the other input has ODDS before.
    """
    chance = table.values.size * (1 + math.exp(-epsilon)) ** -float(np.abs(table.values).max())
    return max(DOUBT, float(chance / (chance + ODDS)))

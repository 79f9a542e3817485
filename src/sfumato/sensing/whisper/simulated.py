"""Where a whisper began that ran along edges: probabilities that hold on simulated ones."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato._random import generator
from sfumato._types import FloatArray, IntArray
from sfumato._validate import read_only
from sfumato.errors import InvalidParameter
from sfumato.sensing.recovery.community import CommunityAnswer, community_of
from sfumato.sensing.whisper.answers import SILENT, YES
from sfumato.sensing.whisper.cascades import (
    Cascade,
    draw_cascades,
    draw_reach,
)
from sfumato.sensing.whisper.posterior import checked_answers, response_law
from sfumato.spaces import Graph

Singles = npt.NDArray[np.float32]
Counts = npt.NDArray[np.uint16]

MOST_NODES = 5000
DRAWS = (64, 1000)
WORK = 150_000_000  # entries of reach that are drawn in all, about
FITTED, JUDGED, LEVELLED = (
    200,
    1000,
    500,
)  # simulated whispers: the first are judged too, the last not
MORE, NEAR = 2, 0.35  # of several models: so many times as many, of which the nearest share counts
BINS = 10
GROWTH = 4.0  # cascades of one class differ in size by this factor at most
TINY = 1e-30
SHRINK = 3.0  # draws that each chance is pulled to the mean with


@dataclass(frozen=True, slots=True, eq=False)
class CascadePosterior:
    """Where a whisper began, with probabilities that are right as often as they say on simulated whispers.

    `reached` holds, for each simulated whisper, the probability of all nodes likelier than its
    start, in order: sets of nodes go by it. `plausible` is the chance, among simulated whispers, of
    a number of yes that is as far off on its side: where it is tiny, it did not spread as said.
    Computed from released answers alone: it costs no privacy.
    """

    graph: Graph
    nodes: FloatArray
    community: CommunityAnswer | None
    spreads: tuple[Cascade, ...]
    tempered: float
    reached: FloatArray
    plausible: float

    @property
    def most_likely(self) -> int:
        """The likeliest start; of several, the first."""
        return int(np.argmax(self.nodes))

    def smallest(self, share: float = 0.9) -> IntArray:
        """A set that holds the start of at least this share of whispers that spread so, likeliest first.

        Split conformal: the level is the ceil((k + 1) share)-th of k simulated ones, so that it holds
        exactly, for starts drawn evenly [vovk05]; with more than k / (k + 1) it is every node.
        """
        if not 0 < share < 1:
            raise InvalidParameter(f"share must lie in (0, 1), got {share}; nothing was computed")
        order = np.argsort(-self.nodes, kind="stable")
        rank = math.ceil((self.reached.size + 1) * share)
        if rank > self.reached.size:
            return np.asarray(order)
        before = likelier(self.nodes[np.newaxis])[0][order]
        return np.asarray(order[before <= self.reached[rank - 1]])


def cascade_posterior(
    graph: Graph,
    answers: npt.ArrayLike,
    *,
    epsilon: Fraction | float | str,
    spread: Cascade | Sequence[Cascade],
    labels: npt.ArrayLike | None = None,
) -> CascadePosterior:
    """How likely each node and community began a cascade, given what each node said through its noise.

    The exact likelihood sums over all cascades. Here they are drawn from every start and put in
    classes by how far they went; within a class nodes count as independent, with the chances of its
    draws. That likelihood is raised to a power which is fitted on 200 other whispers simulated in full
    (start, cascade, noise) so that the true starts are likeliest. The probability of a community is how
    often it was true of 1,000 with about that score [zadrozny02]; sets of nodes get their level from 500
    further ones. Simulation leaves what is said of a community uncertain by 2 to 5 points. Chance
    comes from SHA-256 of the question: the same question has the same answer. On 2,000 nodes: some
    seconds.

    Several models are averaged over, all as likely beforehand. Of them twice as many whispers are
    simulated, and those count that are nearest in how many said yes: how far the whisper went tells
    models apart, and what is so of those that went far is not of those that did not. Starts are as
    likely as each other.
    If the whisper spread otherwise than all of them say, probabilities may be wrong, and are when the
    model reaches far more or fewer nodes (docs/reference/whisper-starts.md).

    Args:
        graph: A connected graph of at most 5,000 nodes.
        answers: 1, 0 or -1 (none) for each node.
        epsilon: Of the noise of each answer; inf for none.
        spread: One model or several.
        labels: The community of each node; None for no communities.

    Returns:
        Probabilities of nodes and communities.

    Raises:
        InvalidParameter: If a parameter has the wrong shape or range.
    """
    return cascade_posteriors(
        graph, np.asarray(answers)[np.newaxis], epsilon=epsilon, spread=spread, labels=labels
    )[0]


def cascade_posteriors(
    graph: Graph,
    answers: npt.ArrayLike,
    *,
    epsilon: Fraction | float | str,
    spread: Cascade | Sequence[Cascade],
    labels: npt.ArrayLike | None = None,
) -> list[CascadePosterior]:
    """Where each of several whispers began, from one simulation: as `cascade_posterior`, but quicker.

    Args:
        graph: A connected graph of at most 5,000 nodes.
        answers: A row for each whisper: 1, 0 or -1 (none) for each node; the same nodes are silent in all.
        epsilon: Of the noise of each answer; inf for none.
        spread: One model or several.
        labels: The community of each node; None for no communities.

    Returns:
        A posterior for each row.

    Raises:
        InvalidParameter: If a parameter has the wrong shape or range.
    """
    models = tuple(spread) if isinstance(spread, Sequence) else (spread,)
    said = _checked(graph, answers, models)
    law = response_law(epsilon)
    groups = None if labels is None else np.asarray(labels)
    if groups is not None:
        community_of(np.ones(graph.size), groups)  # says what is wrong with labels, if anything
    rng = generator(_seed(graph, said, law, models))
    asked = np.flatnonzero(said[0] != SILENT)
    more = 1 if len(models) == 1 else MORE
    judged, levelled = more * JUDGED, more * LEVELLED
    starts = rng.integers(graph.size, size=judged + levelled)
    heard = np.empty((starts.size, graph.size), dtype=np.int64)
    for number, model in enumerate(models):
        mine = np.arange(starts.size) % len(models) == number
        heard[mine] = draw_cascades(graph, starts[mine], spread=model, rng=rng)
    lies = rng.random((starts.size, asked.size)) < law[1]
    told = np.vstack([heard[:, asked] ^ lies, said[:, asked] == YES]).astype(np.float32)
    rows, prior = _likelihoods(graph, models, asked, told, law, rng)
    true, at = starts[:FITTED], np.arange(FITTED)

    def truth(power: float) -> float:
        found = _shares(rows[:, :FITTED], prior, power)[at, true]
        return float(np.log(np.maximum(found, TINY)).mean())

    power = _best(truth)
    used = _shares(rows, prior, power)
    simulated, yes = judged + levelled, told.sum(axis=1)
    asked_about = np.arange(simulated, len(told))
    if len(models) == 1:  # all simulated whispers count, for all rows
        parts = [(np.arange(judged), np.arange(judged, simulated), asked_about)]
    else:
        parts = [
            (
                _nearest(yes[:judged], yes[row]),
                judged + _nearest(yes[judged:simulated], yes[row]),
                np.array([row]),
            )
            for row in asked_about.tolist()
        ]
    out = list[CascadePosterior]()
    for first, last, mine in parts:
        here = used[np.concatenate([last, mine])]
        if groups is not None:
            here = _by_community(used[first], starts[first], here, groups)
        reached = likelier(here[: last.size])[np.arange(last.size), starts[last]]
        level = read_only(np.sort(reached))
        out += [
            CascadePosterior(
                graph,
                read_only(nodes / nodes.sum()),
                None if groups is None else community_of(nodes, groups),
                models,
                power,
                level,
                _plausible(yes[:simulated], yes[row]),
            )
            for row, nodes in zip(mine.tolist(), here[last.size :], strict=True)
        ]
    return out


def _plausible(simulated: Singles, value: np.float32) -> float:
    """Twice the share of values at least as far on the side of one, itself among them; at most 1."""
    above, below = int((simulated >= value).sum()), int((simulated <= value).sum())
    return min(1.0, 2 * (1 + min(above, below)) / (1 + simulated.size))


def _nearest(values: Singles, value: np.float32) -> IntArray:
    """The places of the share of values that are nearest to one."""
    order = np.argsort(np.abs(values - value), kind="stable")
    return np.asarray(order[: math.ceil(NEAR * values.size)])


def _checked(graph: Graph, answers: npt.ArrayLike, models: tuple[Cascade, ...]) -> IntArray:
    if not models or not all(isinstance(one, Cascade) for one in models):
        raise InvalidParameter(
            "spread must be a cascade or several (whisper_posterior takes others); nothing was computed"
        )
    if graph.size > MOST_NODES:
        raise InvalidParameter(
            f"cascades are simulated on graphs of at most {MOST_NODES} nodes, got {graph.size}; "
            "nothing was computed"
        )
    if graph.components().any():
        raise InvalidParameter(
            "a graph with cascades must be connected, got one in several parts; nothing was computed"
        )
    said = np.array([checked_answers(one, graph.size) for one in np.asarray(answers)])
    if not len(said) or ((said == SILENT) != (said[0] == SILENT)).any():
        raise InvalidParameter(
            "the same nodes must be silent in all rows of answers; nothing was computed"
        )
    return said


def likelier(shares: FloatArray) -> FloatArray:
    """For each node of each row, how much probability likelier nodes have; of equals the first is."""
    order = np.argsort(-shares, axis=1, kind="stable")
    falling = np.take_along_axis(shares, order, axis=1)
    before = np.zeros_like(falling)
    np.cumsum(falling[:, :-1], axis=1, out=before[:, 1:])
    out = np.empty_like(before)
    np.put_along_axis(out, order, before, axis=1)
    return out


def _likelihoods(
    graph: Graph,
    models: tuple[Cascade, ...],
    asked: IntArray,
    told: Singles,
    law: tuple[float, float],
    rng: np.random.Generator,
) -> tuple[Singles, Singles]:
    """Log-likelihoods [class, answers, start], and logarithms of how likely a class is [class, start]."""
    truth, lie = law
    draws = int(np.clip(WORK // graph.size**2, *DRAWS))
    counts, totals = _reached(graph, models, draws, rng)
    rows = np.empty((len(counts), len(told), graph.size), dtype=np.float32)
    prior = np.log((totals + totals.mean(axis=1, keepdims=True) / 2) / (1.5 * draws))
    for row, seen, total in zip(rows, counts, totals, strict=True):
        mean = max(0.0, float(seen.sum() - total.sum())) / max(1.0, total.sum() * (graph.size - 1))
        chance = (seen.T[asked] + np.float32(SHRINK * mean)) / (total + SHRINK).astype(np.float32)
        chance = np.clip(chance, 1e-6, 1 - 1e-6)
        chance[asked[:, np.newaxis] == np.arange(graph.size)] = 1 - 1e-6
        no = np.log(np.float32(truth) - np.float32(truth - lie) * chance)
        yes = np.log(np.float32(lie) + np.float32(truth - lie) * chance)
        row[:] = told @ (yes - no) + no.sum(axis=0)
    return rows, prior.astype(np.float32)


def _reached(
    graph: Graph, models: tuple[Cascade, ...], draws: int, rng: np.random.Generator
) -> tuple[Counts, FloatArray]:
    """By class of size: how often each start [1] reached each node [2], and how often it was in that class."""
    size = graph.size
    classes = 2 + int(math.log(size) / math.log(GROWTH))
    counts = np.zeros((classes, size, size), dtype=np.uint16)
    totals = np.zeros((classes, size))
    nodes = np.arange(size)
    for draw in range(draws):
        reach = draw_reach(graph, spread=models[draw % len(models)], rng=rng)
        far = reach.sum(axis=1)
        kind = np.where(far == 1, 0, 1 + np.floor(np.log(far) / math.log(GROWTH)).astype(np.int64))
        totals[kind, nodes] += 1
        for one in np.unique(kind).tolist():
            mine = np.flatnonzero(kind == one)
            counts[one, mine] += reach[mine]
    seen = totals.any(axis=1)
    return counts[seen], totals[seen]


def _shares(rows: Singles, prior: Singles, power: float) -> FloatArray:
    """Probabilities of starts [answers, start]: likelihoods to a power, summed over classes."""
    joint = rows * np.float32(power) + prior[:, np.newaxis]
    top = joint.max(axis=(0, 2), keepdims=True)
    shares = np.exp(joint - top, out=joint).sum(axis=0, dtype=np.float64)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _by_community(
    judged: FloatArray, starts: IntArray, used: FloatArray, labels: IntArray
) -> FloatArray:
    """Shares of nodes, such that each community's is how often it was true of simulated whispers.

    One community against the rest, in bins of equal counts, made to rise [zadrozny02]; a bin is
    pulled to the mean by two draws, so that none says never or always.
    """
    groups = np.zeros((labels.size, int(labels.max()) + 1))
    groups[np.arange(labels.size), labels] = 1.0
    before, now = judged @ groups, used @ groups
    after = np.empty_like(now)
    for one in range(groups.shape[1]):
        order = np.argsort(before[:, one], kind="stable")
        parts = np.array_split(order, BINS)
        true = labels[starts] == one
        rates = [(true[part].sum() + 2 * true.mean()) / (part.size + 2) for part in parts]
        places = [float(before[part, one].mean()) for part in parts]
        after[:, one] = np.interp(now[:, one], places, _rising(rates))
    after = np.maximum(after, TINY)
    after /= after.sum(axis=1, keepdims=True)
    return used * (after / np.maximum(now, TINY))[:, labels]


def _rising(values: Sequence[float]) -> list[float]:
    """The nearest values, in squares, that never fall: those that do are pooled."""
    pools: list[tuple[float, int]] = []
    for value in values:
        mean, count = value, 1
        while pools and pools[-1][0] >= mean:
            other, more = pools.pop()
            mean, count = (mean * count + other * more) / (count + more), count + more
        pools.append((mean, count))
    return [mean for mean, count in pools for _ in range(count)]


def _best(value: Callable[[float], float], low: float = 0.01, high: float = 4.0) -> float:
    """The power with the largest value, by golden section of its logarithm."""
    golden = (math.sqrt(5) - 1) / 2
    a, b = math.log(low), math.log(high)
    left, right = b - golden * (b - a), a + golden * (b - a)
    at_left, at_right = value(math.exp(left)), value(math.exp(right))
    for _ in range(12):
        if at_left < at_right:
            a, left, at_left = left, right, at_right
            right = a + golden * (b - a)
            at_right = value(math.exp(right))
        else:
            b, right, at_right = right, left, at_left
            left = b - golden * (b - a)
            at_left = value(math.exp(left))
    return math.exp((a + b) / 2)


def _seed(
    graph: Graph, said: IntArray, law: tuple[float, float], models: tuple[Cascade, ...]
) -> bytes:
    parts = (graph.edges.astype("<i8").tobytes(), said.astype("<i8").tobytes(), repr((law, models)))
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part if isinstance(part, bytes) else part.encode())
    return digest.digest()

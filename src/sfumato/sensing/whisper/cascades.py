"""Whispers that run along edges: independent cascades, susceptible-infected rounds, linear thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato._types import IntArray
from sfumato._validate import whole
from sfumato.errors import InvalidParameter
from sfumato.sensing.whisper.spread import Spread
from sfumato.spaces import Graph

BoolArray: TypeAlias = npt.NDArray[np.bool_]

INDEPENDENT, CASCADE, ROUNDS, THRESHOLD = (
    "independent", "independent-cascade", "si", "linear-threshold",
)  # fmt: skip
SPREADS = (INDEPENDENT, CASCADE, ROUNDS, THRESHOLD)
STEPS = 5
CHANCES = (0.5, 1.0, 1.5, 2.5)  # times 1/(spectral radius), where a cascade begins to go far
WEIGHTS = (0.7, 0.8, 0.9, 0.95)
PAIRS = 1 << 22  # of who told and who may be told, that are held at a time


@dataclass(frozen=True, slots=True)
class IndependentCascade:
    """Whoever hears it tells each neighbor once, who listens with this chance [kempe03, sec. 2]."""

    chance: float
    name: ClassVar[str] = CASCADE

    def __post_init__(self) -> None:
        _probability("chance", self.chance)

    def __str__(self) -> str:
        return f"{self.name}, chance {self.chance:g}"


@dataclass(frozen=True, slots=True)
class SusceptibleInfected:
    """In each of so many steps whoever has heard tells each neighbor, who listens with this chance."""

    chance: float
    steps: int = STEPS
    name: ClassVar[str] = ROUNDS

    def __post_init__(self) -> None:
        _probability("chance", self.chance)
        whole("steps", self.steps, low=1, high=10_000)

    def __str__(self) -> str:
        return f"{self.name}, chance {self.chance:g}, {self.steps} steps"


@dataclass(frozen=True, slots=True)
class LinearThreshold:
    """A node hears it when the share of its neighbors that have, times `weight`, reaches its threshold.

    Thresholds are even in (0, 1). The same law as: each node listens to one neighbor, drawn evenly,
    with chance `weight`, else to nobody [kempe03, claim 2.6].
    """

    weight: float
    name: ClassVar[str] = THRESHOLD

    def __post_init__(self) -> None:
        _probability("weight", self.weight)

    def __str__(self) -> str:
        return f"{self.name}, weight {self.weight:g}"


Cascade: TypeAlias = IndependentCascade | SusceptibleInfected | LinearThreshold


def spread_named(
    name: str,
    graph: Graph,
    *,
    rate: float | None = None,
    strength: float | None = None,
    chance: float | None = None,
    steps: int | None = None,
    weight: float | None = None,
) -> tuple[Spread | Cascade, ...]:
    """The model of this name; several to average over where its chance or weight is not given.

    Args:
        name: "independent", "independent-cascade", "si" or "linear-threshold".
        graph: The graph, whose spectral radius says which chances go far.
        rate: Of independent, with `strength`.
        strength: Of independent, with `rate`.
        chance: Of a cascade or si; None for several.
        steps: Of si; None for 5.
        weight: Of linear-threshold; None for several.

    Returns:
        The models; none at all stands for the 15 of `whisper_posterior`.

    Raises:
        InvalidParameter: If there is no such model, or a number is no part of it or out of range.
    """
    if name not in SPREADS:
        raise InvalidParameter(
            f"`spread` must be one of {', '.join(SPREADS)}, got {name!r}; nothing was computed"
        )
    given = {"rate": rate, "strength": strength, "chance": chance, "steps": steps, "weight": weight}
    taken = {
        INDEPENDENT: ("rate", "strength"),
        CASCADE: ("chance",),
        ROUNDS: ("chance", "steps"),
        THRESHOLD: ("weight",),
    }[name]
    for one, value in given.items():
        if value is not None and one not in taken:
            raise InvalidParameter(f"`{one}` is no part of {name}; nothing was computed")
    if (rate is None) != (strength is None):
        raise InvalidParameter("`rate` and `strength` go together; nothing was computed")
    if rate is not None and strength is not None:
        return (Spread(rate, strength),)
    if name == INDEPENDENT:
        return ()
    if name == THRESHOLD:
        return tuple(LinearThreshold(one) for one in ([weight] if weight is not None else WEIGHTS))
    if chance is None:
        critical = 1 / _radius(graph)
        chances = tuple(min(0.95, times * critical) for times in CHANCES)
    else:
        chances = (chance,)
    if name == CASCADE:
        return tuple(IndependentCascade(one) for one in chances)
    rounds = STEPS if steps is None else steps
    # Over so many steps an edge is tried so many times.
    scale = 1 if chance is not None else 2 / (1 + rounds)
    return tuple(SusceptibleInfected(one * scale, rounds) for one in chances)


def draw_cascades(
    graph: Graph, starts: npt.ArrayLike, *, spread: Cascade, rng: np.random.Generator
) -> IntArray:
    """Who has heard, 0 or 1: one draw for each of several starts.

    Args:
        graph: A graph.
        starts: The node where each begins.
        spread: How it runs.
        rng: A NumPy generator.

    Returns:
        A row for each start, a column for each node.

    Raises:
        InvalidParameter: If a start is no node.
    """
    begun = [whole("start", node, low=0, high=graph.size - 1) for node in np.ravel(starts).tolist()]
    nodes = np.array(begun, dtype=np.int64)
    wide = max(1, PAIRS // max(1, 2 * len(graph.edges), graph.size))
    parts = [_drawn(graph, nodes[at : at + wide], spread, rng) for at in range(0, nodes.size, wide)]
    heard = np.concatenate(parts) if parts else np.zeros((0, graph.size))
    return heard.astype(np.int64)


def draw_reach(graph: Graph, *, spread: Cascade, rng: np.random.Generator) -> BoolArray:
    """Who hears it from whom, in one draw of all chances: a row for each start, a column for each node.

    A row is a draw of its start's cascade; rows share their chances.
    """
    size = graph.size
    match spread:
        case IndependentCascade(chance):
            kept = Graph(graph.edges[rng.random(len(graph.edges)) < chance], nodes=size)
            parts = kept.components()
            return np.asarray(parts[:, np.newaxis] == parts)
        case SusceptibleInfected(chance, steps):
            pointers, tellers = _neighbors(graph)
            told = np.repeat(np.arange(size), np.diff(pointers))
            known = _own_bits(size)
            for _ in range(steps):
                live = np.flatnonzero(rng.random(told.size) < chance)
                if live.size:
                    first = np.flatnonzero(np.diff(told[live], prepend=-1))
                    more = np.bitwise_or.reduceat(known[tellers[live]], first, axis=0)
                    known[told[live][first]] |= more
        case LinearThreshold(weight):
            known = np.vstack([_own_bits(size), np.zeros((1, -(-size // 64)), dtype=np.uint64)])
            up = np.append(_listened(graph, weight, 1, rng)[0], size)
            # Doubling: after k rounds a node has all that are up to 2**k above it.
            for _ in range(size.bit_length()):
                known |= known[up]
                up = up[up]
            known = known[:-1]
    bits = np.unpackbits(known.view(np.uint8), axis=1, count=size, bitorder="little")
    return np.ascontiguousarray(bits.T).astype(np.bool_)


def _drawn(graph: Graph, starts: IntArray, spread: Cascade, rng: np.random.Generator) -> BoolArray:
    rows, size = np.arange(starts.size), graph.size
    heard = np.zeros((starts.size, size), dtype=np.bool_)
    heard[rows, starts] = True
    match spread:
        case LinearThreshold(weight):
            up = _listened(graph, weight, starts.size, rng)
            up = np.hstack([up, np.full((starts.size, 1), size)])
            up[rows, starts] = (
                starts  # the start listens to nobody: chains that come to it end there
            )
            for _ in range(size.bit_length()):
                up = np.take_along_axis(up, up, axis=1)
            return np.asarray(up[:, :size] == starts[:, np.newaxis])
        case IndependentCascade(chance):
            row, teller = rows, starts
            while row.size:  # whoever heard it last tells once
                row, teller = _told(graph, row, teller, chance, heard, rng)
        case SusceptibleInfected(chance, steps):
            for _ in range(steps):
                row, teller = np.nonzero(heard)
                _told(graph, row, teller, chance, heard, rng)
    return heard


def _told(
    graph: Graph,
    row: IntArray,
    teller: IntArray,
    chance: float,
    heard: BoolArray,
    rng: np.random.Generator,
) -> tuple[IntArray, IntArray]:
    """Each of these tells its neighbors; who is new to it, by rows, and marked in `heard`."""
    pointers, others = _neighbors(graph)
    count = np.diff(pointers)[teller]
    ends = np.cumsum(count)
    at = np.arange(int(ends[-1]) if ends.size else 0) + np.repeat(
        pointers[teller] - (ends - count), count
    )
    kept = rng.random(at.size) < chance
    lines, listeners = np.repeat(row, count)[kept], others[at[kept]]
    new = np.unique(lines * graph.size + listeners)
    new = new[~heard.ravel()[new]]
    heard.ravel()[new] = True
    return new // graph.size, new % graph.size


def _listened(graph: Graph, weight: float, draws: int, rng: np.random.Generator) -> IntArray:
    """To whom each node listens, or `size` for nobody: a row for each draw."""
    pointers, others = _neighbors(graph)
    degrees = np.diff(pointers)
    chances = rng.random((draws, graph.size))
    place = np.minimum((chances / weight * degrees).astype(np.int64), np.maximum(degrees - 1, 0))
    found = others[np.minimum(pointers[:-1] + place, max(0, others.size - 1))]
    return np.where((chances < weight) & (degrees > 0), found, graph.size)


def _own_bits(size: int) -> npt.NDArray[np.uint64]:
    """A row for each node in which its own bit is set."""
    bits = np.zeros((size, -(-size // 64)), dtype=np.uint64)
    nodes = np.arange(size)
    bits[nodes, nodes // 64] = np.uint64(1) << (nodes % 64).astype(np.uint64)
    return bits


def _neighbors(graph: Graph) -> tuple[IntArray, IntArray]:
    links = graph.adjacency()
    return np.asarray(links.indptr, dtype=np.int64), np.asarray(links.indices, dtype=np.int64)


def _radius(graph: Graph) -> float:
    """The spectral radius of the graph, roughly: 50 products from the degrees on."""
    links = graph.adjacency()
    x, size = np.ones(graph.size), 1.0
    for _ in range(50):
        x = links @ x + x  # one more on the diagonal: a graph in two colors would swing
        size = float(np.linalg.norm(x))
        x /= size
    return max(1.0, size - 1)


def _probability(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise InvalidParameter(f"{name} must lie in (0, 1), got {value}; nothing was computed")

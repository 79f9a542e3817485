"""How a whisper spreads along a graph: the model, and draws from it or from mouth to mouth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato._validate import whole
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.operators.graph_diffusion import graph_diffusion
from sfumato.spaces import Graph


@dataclass(frozen=True, slots=True)
class Spread:
    """How a whisper spreads from its start s: v has heard with chance 1 - exp(-strength exp(-rate L)_vs).

    The start itself has heard. Read: the start tells a Poisson number of people, `strength` on
    average, each at the end of a random walk that leaves along every edge at rate 1 for a time
    `rate`; then nodes are independent, exactly. Along edges from mouth to mouth they are not: see
    `whisper_cascade`.
    """

    rate: float
    strength: float

    def __post_init__(self) -> None:
        for name, value in (("rate", self.rate), ("strength", self.strength)):
            if not 1e-20 <= value <= 1e20:
                raise InvalidParameter(
                    f"{name} must lie between 1e-20 and 1e20, got {value}; nothing was computed"
                )


def whisper_spread(
    graph: Graph, start: int, *, spread: Spread, rng: np.random.Generator
) -> IntArray:
    """Who has heard, 0 or 1 for each node: one draw from the model itself, nodes independent.

    Args:
        graph: A graph.
        start: The node where it begins.
        spread: How it spreads.
        rng: A NumPy generator.

    Returns:
        0 or 1 for each node.
    """
    start = whole("start", start, low=0, high=graph.size - 1)
    heat = graph_diffusion(graph, spread.rate).columns([start])[:, 0]
    heard = rng.random(graph.size) >= unheard(heat, spread.strength)
    heard[start] = True
    return heard.astype(np.int64)


def whisper_cascade(
    graph: Graph, start: int, *, chance: float, rng: np.random.Generator, hops: int | None = None
) -> IntArray:
    """Who has heard, 0 or 1 for each node, if it runs from mouth to mouth: an independent cascade.

    Whoever hears it tells each neighbor once, who listens with this chance; all that is heard
    within so many `hops`. The same law as keeping each edge with this chance and walking along what
    is kept [kempe03, claim 2.3]: nodes are not independent, and `Spread` does not hold of it.

    Args:
        graph: A graph.
        start: The node where it begins.
        chance: With which each neighbor listens.
        rng: A NumPy generator.
        hops: How often it is passed on at most; None for as often as it can be.

    Returns:
        0 or 1 for each node.

    Raises:
        InvalidParameter: If the chance is no probability.
    """
    start = whole("start", start, low=0, high=graph.size - 1)
    if not 0 <= chance <= 1:
        raise InvalidParameter(f"chance must be a probability, got {chance}; nothing was drawn")
    kept = Graph(graph.edges[rng.random(len(graph.edges)) < chance], nodes=graph.size)
    far = kept.distances_from(start)
    reach = graph.size if hops is None else whole("hops", hops, low=0)
    return (far <= reach).astype(np.int64)


def unheard(heat: FloatArray, strength: float) -> FloatArray:
    """The chance of not having heard, by the heat that a start sends."""
    return np.asarray(np.exp(-strength * heat))

"""Plan how much noise hides who began a whisper: what `sense whisper plan` does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sfumato.errors import InvalidParameter
from sfumato.privacy import RandomisedResponse
from sfumato.sensing.pipeline.whisper.release import connected_graph
from sfumato.sensing.recovery.community import communities as find_communities
from sfumato.sensing.results.whisper_plan import WhisperPlan
from sfumato.sensing.whisper.cascades import spread_named
from sfumato.sensing.whisper.protect import protect_starts
from sfumato.sensing.whisper.spread import Spread
from sfumato.spaces import Graph


def plan_whisper(
    graph: Graph | str | Path,
    *,
    spread: str,
    target: float,
    within: int | None = None,
    communities: int | None = None,
    rate: float | None = None,
    strength: float | None = None,
    chance: float | None = None,
    steps: int | None = None,
    weight: float | None = None,
    largest_part: bool = False,
    watch: Callable[[str], None] | None = None,
) -> WhisperPlan:
    """The largest epsilon for each answer at which who began is hidden among protected starts.

    A Pufferfish guarantee: it holds if the model of the spread does. Nothing is read but the graph,
    which is public, and nothing is charged; `release_whisper` at this epsilon pays as ever. Answers
    to the same question released again add their epsilon to it, and with it the loss.

    Args:
        graph: Who talks to whom: a connected graph, or its edge list with columns u and v.
        spread: The model: "independent" (with `rate` and `strength`), "independent-cascade" (`chance`), "si"
            (`chance`, `steps`) or "linear-threshold" (`weight`).
        target: The loss allowed between two protected starts: odds change by a factor of e to it.
        within: Two starts are protected from each other if at most so many hops apart; None for any.
        communities: Two starts are protected from each other if in one of so many communities; None for any.
        rate: How far it spreads.
        strength: How many people the start tells, on average.
        chance: With which a neighbor listens.
        steps: How many steps it has gone; None means 5.
        weight: How likely a node listens to some neighbor.
        largest_part: Whether to keep the largest connected part of the graph.
        watch: Called with a sentence when the work begins.

    Returns:
        The epsilon, with a certificate over all protected pairs.

    Raises:
        InvalidInput: If the graph cannot be read or is in several parts.
        InvalidParameter: If a number is missing or out of range, or no epsilon can be proved to do.

    Privacy: Pufferfish, loss `target` between protected starts. Proof: docs/proofs/whisper-starts.md
    """
    net, names = connected_graph(graph, largest_part=largest_part)
    models = spread_named(
        spread,
        net,
        rate=rate,
        strength=strength,
        chance=chance,
        steps=steps,
        weight=weight,
    )
    if len(models) != 1:
        needed = {"independent": "`rate` and `strength`", "linear-threshold": "`weight`"}
        raise InvalidParameter(
            f"a guarantee rests on one model: {spread} needs {needed.get(spread, '`chance`')}; "
            "nothing was computed"
        )
    if watch is not None:
        watch(f"looking at the starts among {net.size} nodes")
    labels = None if communities is None else find_communities(net, count=communities)
    found = protect_starts(net, spread=models[0], target=target, within=within, labels=labels)
    (model,) = models
    told = (
        f"independent, rate {model.rate:g}, strength {model.strength:g}"
        if isinstance(model, Spread)
        else str(model)
    )
    s, t = found.worst
    return WhisperPlan(
        found.epsilon,
        float(RandomisedResponse(found.epsilon).law[1]),
        float(target),
        found.loss,
        found.exact,
        found.reason,
        found.pairs,
        (names[s], names[t]),
        found.next_epsilon,
        found.next_loss,
        told,
        within,
        communities,
        net.size,
    )

"""Find where a whisper began, and simulate one: what `sense whisper` does with answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sfumato._random import generator
from sfumato._types import IntArray
from sfumato.errors import InvalidParameter
from sfumato.files import column_of, new_folder, read_rows, write_table
from sfumato.sensing.pipeline.whisper.release import connected_graph
from sfumato.sensing.planning.synthetic import block_graph
from sfumato.sensing.recovery.community import communities as find_communities
from sfumato.sensing.results.whisper import (
    SimulatedWhisper,
    WhisperCommunity,
    WhisperResult,
    WhisperStart,
)
from sfumato.sensing.whisper.answers import (
    WhisperAnswers,
    merged_answers,
    read_whisper,
)
from sfumato.sensing.whisper.cascades import INDEPENDENT, Cascade, spread_named
from sfumato.sensing.whisper.posterior import WhisperPosterior, whisper_posterior
from sfumato.sensing.whisper.simulated import CascadePosterior, cascade_posterior
from sfumato.sensing.whisper.spread import Spread, whisper_cascade, whisper_spread
from sfumato.spaces import Graph


def find_whisper(
    answers: WhisperAnswers | str | Path | Sequence[WhisperAnswers | str | Path],
    *,
    communities: int = 2,
    share: float = 0.9,
    spread: str = INDEPENDENT,
    rate: float | None = None,
    strength: float | None = None,
    chance: float | None = None,
    steps: int | None = None,
    weight: float | None = None,
    start: str = "",
    watch: Callable[[str], None] | None = None,
) -> WhisperResult:
    """Where a whisper began: how likely each community and each node is; it costs no privacy.

    Args:
        answers: Answers with noise, or files of `whisper release`: of all nodes, or several of one
            graph and one epsilon, in the local model one of each node.
        communities: Of how many communities.
        share: The probability with which the set of nodes that is named holds the start, in (0, 1).
        spread: How it spread: "independent" (nodes independent given the start), or along edges as
            "independent-cascade", "si" or "linear-threshold", with probabilities that hold on simulated ones.
        rate: If independent, how far it spreads, with `strength`; None means averaged over 15 models.
        strength: How many people the start tells, on average.
        chance: Of a cascade or si: with which a neighbor listens; None means averaged over 4.
        steps: Of si: how many steps it has gone; None means 5.
        weight: Of linear-threshold: how likely a node listens to some neighbor; None means averaged over 4.
        start: The true start of a simulation: a node's name, or a table with a column node.
        watch: Called with a sentence when the work begins.

    Returns:
        Probabilities of communities and nodes, and the smallest set of nodes.

    Raises:
        InvalidInput: If files cannot be read or do not belong together.
        InvalidParameter: If a parameter is out of range, or there is no such node.
    """
    given = [answers] if isinstance(answers, str | Path | WhisperAnswers) else list(answers)
    told = merged_answers(
        [
            (str(one), read_whisper(one)) if isinstance(one, str | Path) else (f"part {n}", one)
            for n, one in enumerate(given, 1)
        ]
    )
    began = start
    if start.endswith(".csv") and start not in told.names:
        began = str(column_of(read_rows(Path(start)), "node", Path(start))[0])
    if began and began not in told.names:
        raise InvalidParameter(f"there is no node {began!r}; nothing was computed")
    if not 0 < share < 1:
        raise InvalidParameter(
            f"`share` must lie between 0 and 1, got {share}; nothing was computed"
        )
    models = spread_named(
        spread,
        told.graph,
        rate=rate,
        strength=strength,
        chance=chance,
        steps=steps,
        weight=weight,
    )
    if watch is not None:
        watch(f"looking for the start among {told.graph.size} nodes")
    labels = find_communities(told.graph, count=communities)
    found = _posterior(told, models, labels)
    chosen = found.smallest(share)
    beliefs = () if found.community is None else found.community.shares.tolist()
    return WhisperResult(
        told.statement,
        int((told.answers >= 0).sum()),
        tuple(
            WhisperCommunity(k, int((labels == k).sum()), float(p)) for k, p in enumerate(beliefs)
        ),
        share,
        tuple(told.names[node] for node in chosen.tolist()),
        dict(zip(told.names, found.nodes.tolist(), strict=True)),
        None if not began else _start(told.names.index(began), told, found.nodes, labels, chosen),
        any(receipt.rehearsal for receipt in told.receipts),
        spread if spread == INDEPENDENT or len(models) > 1 else str(models[0]),
        found.plausible if isinstance(found, CascadePosterior) else None,
        told,
        found,
        labels,
    )


def _posterior(
    told: WhisperAnswers, models: tuple[Spread | Cascade, ...], labels: IntArray
) -> WhisperPosterior | CascadePosterior:
    """By simulation where it ran along edges, else exactly."""
    cascades = [one for one in models if not isinstance(one, Spread)]
    if cascades:
        return cascade_posterior(
            told.graph, told.answers, epsilon=told.epsilon, spread=cascades, labels=labels
        )
    independent = [one for one in models if isinstance(one, Spread)] or None
    return whisper_posterior(
        told.graph, told.answers, epsilon=told.epsilon, spread=independent, labels=labels
    )


def _start(
    at: int, told: WhisperAnswers, nodes: Any, labels: IntArray, chosen: IntArray
) -> WhisperStart:
    return WhisperStart(
        told.names[at],
        float(nodes[at]),
        1 + int((nodes > nodes[at]).sum()),
        int(labels[at]),
        bool(np.isin(at, chosen)),
    )


def simulate_whisper(
    graph: Graph | str | Path | None = None,
    *,
    nodes: int = 200,
    mouth_to_mouth: float | None = None,
    seed: int | None = None,
    folder: str | Path | None = None,
) -> SimulatedWhisper:
    """Make up a network and a whisper that began somewhere in it.

    Args:
        graph: A connected graph, or its edge list; None means two communities.
        nodes: How many nodes the two communities have.
        mouth_to_mouth: The chance with which it runs along each edge; None means that it spreads as
            the model of `find_whisper` has it.
        seed: Seed of the draws; None means another whisper each time.
        folder: A new folder for edges.csv, answers.csv and start.csv.

    Returns:
        The network, who has heard, and where it began.

    Raises:
        ExistsAlready: The folder exists already; nothing was written.
    """
    rng = generator(seed)
    if graph is None:
        half = nodes // 2
        net, _ = block_graph(
            [half, nodes - half], inside=min(1.0, 20 / half), across=0.4 / half, rng=rng
        )
        names = tuple(f"n{node}" for node in range(net.size))
    else:
        net, names = connected_graph(graph, largest_part=False)
    start = int(rng.integers(net.size))
    if mouth_to_mouth is None:
        degree = 2 * len(net.edges) / net.size
        heard = whisper_spread(net, start, spread=Spread(2 / degree, net.size / 4), rng=rng)
    else:
        heard = whisper_cascade(net, start, chance=mouth_to_mouth, rng=rng)
    made = SimulatedWhisper(
        net, names, heard, names[start], None if folder is None else Path(folder)
    )
    if made.folder is not None:
        new_folder(made.folder)
        for name, (header, rows) in made.tables().items():
            write_table(made.folder / f"{name}.csv", header, rows)
    return made

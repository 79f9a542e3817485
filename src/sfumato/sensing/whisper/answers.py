"""Who says, through noise, to have heard a whisper: released, saved, read and merged."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._types import IntArray
from sfumato._validate import read_only
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import read_json, write_file
from sfumato.privacy import (
    Bound,
    Guarded,
    Ledger,
    Noise,
    PureDP,
    RandomisedResponse,
    Release,
    ReplaceUser,
    guard,
    read_release,
)
from sfumato.spaces import Graph

UNIT = "node"
ASKED = "have you heard it?"
YES, NO, SILENT = 1, 0, -1


@dataclass(frozen=True, slots=True, eq=False)
class WhisperAnswers:
    """What nodes said through noise of one epsilon.

    Attributes:
        graph: Who talks to whom.
        names: The names of the nodes.
        answers: 1 (yes), 0 (no) or -1 (none) for each node.
        epsilon: Of the noise.
        receipts: What was paid for them, of one file or of several.
    """

    graph: Graph
    names: tuple[str, ...]
    answers: IntArray
    epsilon: Fraction
    receipts: tuple[Release[IntArray], ...]

    @property
    def statement(self) -> str:
        """What was promised: said once if it is the same for all answers, else how many have which."""
        promised = Counter(
            str(receipt.guarantee) for receipt in self.receipts for _ in receipt.value
        )
        if len(promised) == 1:
            return next(iter(promised))
        return "; ".join(f"{count} with {promise}" for promise, count in promised.items())

    @property
    def count(self) -> int:
        """How many answered."""
        return int((self.answers != SILENT).sum())

    def summary(self) -> dict[str, Any]:
        """How many answered, what was promised, and with what chance each answer is flipped."""
        flipped = float(RandomisedResponse(self.epsilon).law[1])
        return {"answers": self.count, "statement": self.statement, "flipped": flipped}

    def to_json(self) -> dict[str, Any]:
        """The receipt with the graph beside it, so that `ledger verify --against` reads it as a release."""
        if len(self.receipts) != 1:
            raise InvalidParameter("answers of several receipts are in files of their own")
        answered = np.flatnonzero(self.answers != SILENT).tolist()
        about = about_answers(self.graph, self.names, answered)
        return {**self.receipts[0].to_json(), "whisper": about}

    def write(self, path: str | Path) -> None:
        """Save in a new .json file."""
        write_file(path, json.dumps(self.to_json(), indent=1) + "\n")


def whisper_release(
    heard: npt.ArrayLike,
    epsilon: Fraction | int | str,
    *,
    ledger: Ledger,
    noise: Noise | None = None,
    note: str = "",
) -> Release[IntArray]:
    """Pay for one answer of each node to "have you heard it?", then flip each with chance 1/(1 + e**epsilon).

    `heard` is 0 or 1 for each node that answers. Which nodes answer must not depend on what they
    heard. The ledger's relation is ReplaceUser and its unit "node". Whoever calls this sees the
    exact bits, so for several nodes the ledger's model is "central"; "local" is for one node that
    answers alone, its own bit from its own ledger.

    What it promises: from its own answer, all other bits given, the odds of a node's bit change by
    a factor of e**epsilon at most; at epsilon 1 an answer is true in 73 of 100. The answers of
    others tell about it too, as far as bits go together: of two cliques of five of which one has
    heard it whole, all answers at epsilon 1 move the odds that a node has heard by up to e**10.
    What it does not promise: that nobody learns who started it. Another start changes the bits of
    many nodes; where it changes k of them, the promise is that of a group, k epsilon
    (`privacy.group`), which for a large outbreak is none. How well two starts are told apart under
    a model of the spread is `start_loss`.

    Args:
        heard: 0 or 1 for each node that answers.
        epsilon: What one answer of each node costs.
        ledger: The ledger that pays.
        noise: Where noise comes from; None means the operating system.
        note: A line for the ledger.

    Returns:
        The noisy bits with their receipt.

    Raises:
        BudgetExceeded: If the ledger cannot pay; nothing was released.
        InvalidParameter: If bits are no bits; nothing was charged.

    Privacy: PureDP(epsilon) for each node's bit. Proof: docs/proofs/randomised-response.md
    """
    return ledger.release(
        RandomisedResponse(epsilon),
        guarded_answers(heard, ledger),
        noise=noise,
        note=note or ASKED,
    )


def guarded_answers(heard: npt.ArrayLike, ledger: Ledger) -> Guarded[IntArray]:
    """Exact answers under guard, refused where they are no bits; nothing is charged."""
    bits = np.asarray(heard)
    if (
        bits.ndim != 1
        or not bits.size
        or bits.dtype.kind not in "biu"
        or not np.isin(bits, (NO, YES)).all()
    ):
        # That they are wrong is said; what they are is not.
        raise InvalidParameter(
            "heard must be 0 or 1 for each node that answers; nothing was charged"
        )
    return guard(bits.astype(np.int64), bound_of(bits.size), source=ledger.header.source)


def bound_of(count: int) -> Bound:
    """How far one node can move so many answers: its own, from one to the other.

    One answer may be with the node itself; several are with somebody who has gathered them.

    Args:
        count: How many nodes answer.

    Returns:
        The bound of their answers, for a ledger.
    """
    return Bound(
        ReplaceUser(),
        count,
        l1=1,
        linf=1,
        entries=1,
        unit=UNIT,
        model="local" if count == 1 else "central",
    )


def about_answers(graph: Graph, names: Sequence[str], answered: list[int]) -> dict[str, Any]:
    """What is public of answers, as their file has it: the graph, and who answered."""
    return {"nodes": list(names), "edges": graph.edges.tolist(), "answered": answered}


def merged_answers(files: Sequence[tuple[str, WhisperAnswers]]) -> WhisperAnswers:
    """Answers of several files, by their names, as one: in the local model every node has its own.

    Refused where graphs or epsilons differ, or a node or a receipt comes twice.
    """

    def refused(why: str) -> InvalidInput:
        return InvalidInput(f"{why}; nothing was computed")

    (first, base), *_ = files
    links, number = _links(base), {name: node for node, name in enumerate(base.names)}
    said = np.full(base.graph.size, SILENT)
    paid: dict[str, str] = {}
    told: dict[str, str] = {}
    for file, one in files:
        if _links(one) != links:
            raise refused(f"files must be of one graph, {file} has another than {first}")
        if one.epsilon != base.epsilon:
            raise refused(
                f"files must be of one epsilon, {first} has {base.epsilon}, {file} {one.epsilon}"
            )
        for entry in (receipt.entry.hash for receipt in one.receipts):
            if entry in paid:
                raise refused(f"a receipt counts once, {file} has that of {paid[entry]}")
            paid[entry] = file
        for node in np.flatnonzero(one.answers != SILENT).tolist():
            if (name := one.names[node]) in told:
                raise refused(f"a node answers once, {name!r} did in {told[name]} and in {file}")
            told[name] = file
            said[number[name]] = one.answers[node]
    receipts = tuple(receipt for _, one in files for receipt in one.receipts)
    return WhisperAnswers(base.graph, base.names, read_only(said), base.epsilon, receipts)


def _links(one: WhisperAnswers) -> set[frozenset[str]]:
    """The graph by names: its edges, and its nodes as sets of one."""
    ends = [*one.graph.edges.tolist(), *([node] for node in range(one.graph.size))]
    return {frozenset(one.names[node] for node in some) for some in ends}


def read_whisper(path: str | Path) -> WhisperAnswers:
    """Answers from a file of `whisper release`, with their graph and their receipt.

    Args:
        path: The .json file.

    Returns:
        The answers of all nodes; -1 where a node gave none.

    Raises:
        InvalidInput: If the file cannot be read or is none of `whisper release`.
    """
    receipt = read_release(path)
    try:
        about = read_json(path, "a whole release")["whisper"]
        names = tuple(map(str, about["nodes"]))
        net = Graph(about["edges"], nodes=len(names))
        who = np.array(about["answered"], dtype=np.int64)
        answers = np.full(len(names), SILENT, dtype=np.int64)
        if who.ndim != 1 or (who < 0).any() or len(set(who.tolist())) != who.size:
            raise ValueError("its nodes that answered are not told apart")
        if len(set(names)) != len(names):
            raise ValueError("two of its nodes have one name")
        if np.shape(receipt.value) != who.shape:
            raise ValueError("its answers are not one for each node that answered")
        answers[who] = receipt.value
        loss = receipt.guarantee.loss
        if not np.isin(receipt.value, (NO, YES)).all() or not isinstance(loss, PureDP):
            raise ValueError("its answers are not yes or no with a promise of epsilon")
    except (KeyError, TypeError, ValueError, IndexError) as problem:
        raise InvalidInput(f"{path} is not a file of `whisper release`: {problem}") from None
    return WhisperAnswers(net, names, read_only(answers), loss.epsilon, (receipt,))

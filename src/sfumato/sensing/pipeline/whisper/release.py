"""Release who has heard a whisper, and finish what was paid for: what `sense whisper release` does."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np

from sfumato._types import IntArray
from sfumato._validate import read_only
from sfumato.errors import InvalidInput, LedgerMismatch
from sfumato.files import check_outputs, column_of, read_rows, write_outputs
from sfumato.privacy import Guarded, Ledger, Noise, PureDP, RandomisedResponse, ReplaceUser
from sfumato.privacy.runs import KeptRun, Request, Run
from sfumato.sensing.results.whisper import WhisperCost
from sfumato.sensing.tables import read_graph
from sfumato.sensing.whisper.answers import (
    ASKED,
    SILENT,
    UNIT,
    WhisperAnswers,
    about_answers,
    bound_of,
    guarded_answers,
)
from sfumato.spaces import Graph

WHISPER = "whisper/1"
WORDS = {"yes": 1, "no": 0, "true": 1, "false": 0, "1": 1, "0": 0}


def whisper_cost(
    graph: Graph | str | Path,
    *,
    epsilon: Fraction | int | str,
    ledger: Ledger | str | Path,
    largest_part: bool = False,
) -> WhisperCost:
    """What a release of answers would cost; nothing is read or charged.

    Args:
        graph: Who talks to whom: a connected graph, or its edge list with columns u and v.
        epsilon: What one answer of each node costs.
        ledger: The ledger that would pay, of unit "node" and relation "replace".
        largest_part: Whether to keep the largest connected part of the graph.

    Returns:
        The cost of the release, and how often answers are flipped.

    Raises:
        BudgetExceeded: If the ledger cannot pay.
        InvalidInput: If the graph cannot be read or is in several parts.
        LedgerMismatch: If the ledger accounts for something else.
    """
    net, _ = connected_graph(graph, largest_part=largest_part)
    mechanism = RandomisedResponse(epsilon)
    cost = mechanism.cost(bound_of(net.size))
    _book(ledger).afford(cost)
    return WhisperCost(cost, float(mechanism.law[1]))


def release_whisper(
    answers: Mapping[Any, bool | int | str] | str | Path,
    graph: Graph | str | Path,
    *,
    epsilon: Fraction | int | str,
    ledger: Ledger | str | Path,
    out: str | Path | None = None,
    largest_part: bool = False,
    note: str = "",
    anew: bool = False,
    noise: Noise | None = None,
) -> WhisperAnswers:
    """Release who has heard: pay, then flip each answer with a chance that epsilon sets.

    The promise is for each node's own answer; those of others tell about it too. It is not that
    nobody learns where it began: another start changes the answers of many.

    Args:
        answers: Exact answers by node (True or False, 1 or 0, "yes" or "no"), or a table with columns
            node and heard (yes or no).
        graph: Who talks to whom, public: a connected graph, whose nodes are named by their numbers,
            or its edge list with columns u and v.
        epsilon: What one answer of each node costs.
        ledger: The ledger that pays, of unit "node" and relation "replace".
        out: A new .json file for the answers; one that cannot be written is refused before anything is
            read, and where it fails later they are kept beside the ledger, for `resume_readings`. None
            writes nothing.
        largest_part: Whether to keep the largest connected part of the graph, and its answers.
        note: A line for the ledger.
        anew: Whether to pay again for a request that was paid for and not delivered.
        noise: Where noise comes from; None means the operating system.

    Returns:
        The noisy answers with their receipt; they are paid for, so `write` them if not to `out`.

    Raises:
        BudgetExceeded: If the ledger cannot pay; nothing was read.
        InvalidInput: If answers or graph cannot be read, or `out` cannot be written; nothing was charged.
        InvalidParameter: If `out` is no .json file; nothing was charged.
        LedgerMismatch: If the ledger accounts for something else.
        ReleasedAlready: If the same request was paid for and not delivered; nothing was charged.

    Privacy: PureDP(epsilon) for each node's bit. Proof: docs/proofs/randomised-response.md
    """
    files = [] if out is None else [Path(out)]
    reads = [Path(one) for one in (answers, graph, ledger) if isinstance(one, str | Path)]
    check_outputs(files, {".json"}, reads=reads)
    whisper_cost(graph, epsilon=epsilon, ledger=ledger, largest_part=largest_part)
    asked = {
        "answers": os.path.abspath(answers) if isinstance(answers, str | Path) else None,
        "graph": os.path.abspath(graph) if isinstance(graph, str | Path) else None,
        "epsilon": str(RandomisedResponse(epsilon).epsilon),
        "largest_part": largest_part,
        "note": note,
    }
    delivery = {"outputs": [os.path.abspath(path) for path in files]}
    run = Run(Request(WHISPER, "sense", asked, delivery, "answers"), anew=anew)
    book = _book(ledger)
    with run.on(book):
        said = _released(run, book, answers, graph, asked, noise)
        write_outputs(said.write, files)
        run.delivered()
    return said


def finish_whisper(
    kept: KeptRun,
    *,
    answers: Mapping[Any, bool | int | str] | str | Path | None = None,
    out: Sequence[str | Path] | None = None,
) -> WhisperAnswers:
    """Finish answers that were paid for and not delivered."""
    run = Run(Request(WHISPER, "sense", kept.asked, kept.delivery, "answers"), kept=kept)
    book = Ledger(kept.ledger)
    files = [Path(path) for path in (kept.delivery["outputs"] if out is None else out)]
    check_outputs(files, {".json"}, overwrite=True)
    with run.on(book):
        given = answers if answers is not None else kept.asked["answers"]
        said = _released(run, book, given, kept.asked["graph"], kept.asked, None)
        write_outputs(said.write, files, again=True)
        run.delivered()
    return said


def _released(
    run: Run,
    book: Ledger,
    answers: Mapping[Any, bool | int | str] | str | Path | None,
    graph: Graph | str | Path | None,
    asked: dict[str, Any],
    noise: Noise | None,
) -> WhisperAnswers:
    """The answers: flipped now, or as they were found; with who answered."""
    about: dict[str, Any] = {}

    def guarded() -> Guarded[IntArray]:
        if graph is None or answers is None:
            raise InvalidInput(
                "the answers or their graph were in memory, and are gone; nothing was drawn"
            )
        largest = bool(asked["largest_part"])
        net, names = connected_graph(graph, largest_part=largest)
        heard = _heard(answers, names, others=largest)
        who = [node for node, name in enumerate(names) if name in heard]
        about.update(about_answers(net, names, who))
        return guarded_answers([heard[names[node]] for node in who], book)

    paid, told = run.release(
        book,
        RandomisedResponse(asked["epsilon"]),
        guarded,
        noise=noise,
        note=asked["note"] or ASKED,
        attach=lambda _: about,
    )
    said = np.full(len(told["nodes"]), SILENT, dtype=np.int64)
    said[told["answered"]] = paid.value
    net = Graph(np.array(told["edges"], dtype=np.int64).reshape(-1, 2), nodes=len(told["nodes"]))
    promised = cast(PureDP, paid.guarantee.loss)  # as the receipt has it: 0.1 is 1/10
    return WhisperAnswers(
        net, tuple(map(str, told["nodes"])), read_only(said), promised.epsilon, (paid,)
    )


def connected_graph(
    graph: Graph | str | Path, *, largest_part: bool
) -> tuple[Graph, tuple[str, ...]]:
    """A graph along which a whisper can spread; one in parts is refused before anything is paid."""
    if isinstance(graph, Graph):
        net, names, where = graph, tuple(map(str, range(graph.size))), "whispers"
    else:
        where = str(graph)
        net, names, _ = read_graph(Path(graph), largest_part=largest_part)
    if net.components().any():
        raise InvalidInput(
            f"the graph of {where} is in several parts; `largest_part` keeps one; nothing was charged"
        )
    return net, names


def _book(ledger: Ledger | str | Path) -> Ledger:
    """A ledger that accounts for each node."""
    if isinstance(ledger, str | Path) and not Path(ledger).exists():
        raise InvalidInput(
            f"there is no ledger at {ledger}; `sfumato ledger create` makes one; nothing was charged"
        )
    book = ledger if isinstance(ledger, Ledger) else Ledger(Path(ledger))
    if book.header.unit != UNIT or book.header.neighbors != ReplaceUser():
        raise LedgerMismatch(
            f"{book.path} accounts for each {book.header.unit} ({book.header.neighbors}), answers need the "
            f"unit {UNIT!r} and neighbors 'replace'; nothing was charged"
        )
    return book


def _heard(
    answers: Mapping[Any, bool | int | str] | str | Path, names: tuple[str, ...], *, others: bool
) -> dict[str, int]:
    """Who has heard; what is no answer is refused by its row, and not quoted."""
    if isinstance(answers, str | Path):
        path, where = Path(answers), str(answers)
        rows = read_rows(path)
        given = list(
            zip(
                map(str, column_of(rows, "node", path)), column_of(rows, "heard", path), strict=True
            )
        )
    else:
        where = "the answers"
        given = [(str(node), bit) for node, bit in answers.items()]
    known = set(names)
    heard: dict[str, int] = {}
    for row, (name, word) in enumerate(given, 1):
        bit = _bit(word)
        if bit is None:
            raise InvalidInput(
                f"heard in row {row} of {where} is neither yes nor no; nothing was charged"
            )
        if name not in known:
            if others:  # of a part of the graph that was not kept
                continue
            raise InvalidInput(
                f"row {row} of {where} is of no node of the graph; nothing was charged"
            )
        if name in heard:
            raise InvalidInput(
                f"row {row} of {where} is of a node that answered before; nothing was charged"
            )
        heard[name] = bit
    if not heard:
        raise InvalidInput(f"{where} has no answer of a node of the graph; nothing was charged")
    return heard


def _bit(word: Any) -> int | None:
    """1 for yes, 0 for no, None for what is neither: a number between them is not rounded."""
    if isinstance(word, str):
        return WORDS.get(word.lower())
    whole = isinstance(word, bool | int | np.bool_ | np.integer)
    return int(word) if whole and word in (0, 1) else None

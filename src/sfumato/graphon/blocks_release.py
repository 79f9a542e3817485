"""Blocks of a private network as a job: release them, finish what was paid for, write them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sfumato.errors import ExistsAlready, InvalidInput
from sfumato.files import check_writable, holds, write_file
from sfumato.graphon.blocks import Blocks
from sfumato.graphon.limits.thresholds import signals
from sfumato.graphon.network import Network
from sfumato.graphon.release import PARTS
from sfumato.graphon.results import REHEARSED, BlocksResult
from sfumato.graphon.sources import Columns, NamedNetwork, Nodes, named_network
from sfumato.privacy import Ledger, Noise
from sfumato.privacy.runs import KeptRun, Request, ResumeResult, Run, resume_runs

KIND = "blocks/1"

Auto = Literal["auto"]
Watch = Callable[[str], None]


def release_blocks(
    graph: object,
    k: int | Auto = "auto",
    *,
    epsilon: Fraction | float | str,
    ledger: Ledger | str | Path,
    nodes: Nodes = None,
    columns: Columns = None,
    once: str = "",
    anew: bool = False,
    out: Sequence[str | Path] = (),
    overwrite: bool = False,
    noise: Noise | None = None,
    watch: Watch | None = None,
) -> BlocksResult:
    """Find blocks such that nobody can tell from them whether two given nodes are joined.

    Both parts of the cost must be affordable or nothing is charged. At most 6000 nodes. What was
    paid for is kept beside the ledger until it is delivered: whatever stops a release,
    `resume_blocks` finishes it.

    Privacy: PureDP(epsilon) for a flipped edge. Proof: docs/proofs/graphon-release.md

    Args:
        graph: As for `find_blocks`; its edges are private, its nodes public.
        k: How many blocks, from 1; "auto" finds the number in the release.
        epsilon: What it costs, above 0 and at most 20; 2 or 3 is usual.
        ledger: The ledger that pays, or its path: relation flipped-edge, unit edge.
        nodes: As for `find_blocks`, and needed for all but matrices and `Network`s: whoever is named
            only by an edge would show it.
        columns: As for `find_blocks`.
        once: A key under which this request is released once: with the same key the same request
            gives the blocks that were released, at no cost (`made_before`); another is refused.
        anew: Whether to pay again for a request that was paid for and not delivered: without it,
            `resume_blocks` finishes that one.
        out: Files to write: .json (the blocks), .csv (the block of each node), .png (their matrix).
        overwrite: Whether files that exist are replaced.
        noise: For rehearsals; the system's noise without it.
        watch: Called with each step in words. Nothing of the edges is said.

    Returns:
        The blocks, with guarantee, costs and entries of the ledger.

    Raises:
        InvalidParameter: `nodes` is missing, or epsilon or k is out of range; nothing was charged.
        InvalidInput: The graph cannot be read (which edge is wrong is not said), or there is no
            such ledger; nothing was charged.
        LedgerMismatch: The ledger accounts for something other than edges, or the key is another
            request's; nothing was charged.
        BudgetExceeded: The ledger has less left than epsilon; nothing was released.
        ReleasedAlready: The same request was paid for and not delivered; nothing was charged.

    """
    if nodes is None and isinstance(graph, str | os.PathLike):
        named_network(graph, private=True)  # refuses, before a ledger is looked at
    fitted = Blocks(k, epsilon=epsilon, ledger=ledger)
    given = named_network(graph, nodes=nodes, columns=columns, private=True)
    asked = {
        "graph": _path(graph),
        "nodes": _nodes(nodes),
        "columns": None if columns is None else list(columns),
        "k": k,
        "epsilon": str(fitted.epsilon),
    }
    delivery = {
        "outputs": [os.path.abspath(path) for path in out],
        "overwrite": overwrite,
        "caption": Path(graph).name if isinstance(graph, str | os.PathLike) else "",
    }
    run = Run(Request(KIND, "graph", asked, delivery, "blocks"), once=once, anew=anew)
    if watch is not None:
        watch(f"looking for {'blocks' if k == 'auto' else f'{k} blocks'}")
    paths = [Path(path) for path in out]
    return _carried_out(run, fitted, given, paths, overwrite=overwrite, noise=noise)


def resume_blocks(
    ledger: Ledger | str | Path,
    *,
    entry: int | None = None,
    graph: object = None,
    out: Sequence[str | Path] | None = None,
    overwrite: bool = False,
    list_only: bool = False,
    watch: Watch | None = None,
) -> ResumeResult[BlocksResult]:
    """Finish blocks that were paid for and not delivered.

    What was drawn is found beside the ledger; what was paid for and not drawn is drawn now, at no
    further cost. Where the first of the two releases was paid for alone, the second is charged, as
    was asked.

    Args:
        ledger: The ledger that paid, or its path.
        entry: Finish the request of this entry only; all, if none is given.
        graph: The network, where it was in memory, or has moved.
        out: Other files than were asked for.
        overwrite: Whether files that exist, and are others, are replaced.
        list_only: Whether to say what there is to finish, and do nothing.
        watch: Called with each step in words.

    Returns:
        What was finished, and what was left: requests of other commands, and those in progress.

    Raises:
        InvalidInput: The graph cannot be read, or a file not written; what is paid for stays.
        InvalidParameter: There is no such entry to finish, or `out` is for several requests.

    """
    book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)

    def finish(kept: KeptRun) -> BlocksResult:
        if watch is not None:
            watch(f"finishing {kept}")
        asked, delivery = kept.asked, kept.delivery
        fitted = Blocks(asked["k"], epsilon=asked["epsilon"], ledger=book)
        run = Run(Request(KIND, "graph", asked, delivery, "blocks"), kept=kept)
        return _carried_out(
            run,
            fitted,
            _network(kept, graph),
            [Path(path) for path in (delivery["outputs"] if out is None else out)],
            overwrite=overwrite or bool(delivery["overwrite"]),
            again=True,
        )

    return resume_runs(
        book.path,
        lambda: [book],
        kinds=(KIND,),
        finish=finish,
        entry=entry,
        one_only="other files" if out is not None else "",
        list_only=list_only,
    )


def _carried_out(
    run: Run,
    fitted: Blocks,
    given: NamedNetwork,
    out: Sequence[Path],
    *,
    overwrite: bool,
    noise: Noise | None = None,
    again: bool = False,
) -> BlocksResult:
    book = fitted.ledger
    if book is None:
        raise InvalidInput("private blocks need a ledger; nothing was charged")
    caption = str(run.request.delivery["caption"])
    with run.on(book):
        again = again or run.made(book, PARTS[-1], number=len(PARTS) - 1)
        if not again:
            for path in out:
                check_writable(path, overwrite=overwrite, lost="nothing was charged")
        found = blocks_result(fitted.fit(given, noise=noise, run=run), given)
        found = replace(found, made_before=run.made_before, written=tuple(map(str, out)))
        for path in out:
            write_blocks(found, path, caption=caption, overwrite=overwrite, again=again)
        run.delivered()
    return found


def write_blocks(
    result: BlocksResult, path: Path, *, caption: str = "", overwrite: bool, again: bool = False
) -> None:
    """Write blocks as the suffix says; a file that holds them already is left, if it may.

    Args:
        result: The blocks.
        path: A `.csv` of labels, a `.png` picture, or else a report.
        caption: What a picture says before the reason; without it, it has no caption.
        overwrite: Whether a file there may be replaced.
        again: Whether a file that holds these blocks already is left as it is.

    Raises:
        ExistsAlready: There is a file, and it may not be replaced.
        InvalidInput: The file cannot be written.

    """
    write = partial(_written, result, caption)
    if again and os.path.lexists(path) and holds(partial(write, overwrite=False), path):
        return
    try:
        write(path, overwrite=overwrite)
    except ExistsAlready:
        raise
    except OSError as problem:
        raise InvalidInput(f"cannot write {path}: {problem.strerror}") from problem


def _written(found: BlocksResult, caption: str, path: Path, *, overwrite: bool) -> None:
    match path.suffix:
        case ".csv":
            found.write_labels(path, overwrite=overwrite)
        case ".png":
            said = f"{caption}: {found.reason}" if caption else ""
            write_file(path, found.picture(caption=said), overwrite=overwrite)
        case _:
            found.write(path, overwrite=overwrite)


def _network(kept: KeptRun, graph: object) -> NamedNetwork:
    """The network of a request; where all was drawn its edges are not needed, and not read."""
    last = kept.parts.get(PARTS[-1])
    if last is not None and last[1].drawn and graph is None:
        names = tuple(map(str, last[1].attached["names"]))
        return NamedNetwork(Network(len(names), np.empty((0, 2), dtype=np.int64)), names)
    asked: dict[str, Any] = kept.asked
    source = asked["graph"] if graph is None else graph
    if source is None:
        raise InvalidInput("its network was in memory: give it as `graph`; nothing was drawn")
    columns = None if asked["columns"] is None else (asked["columns"][0], asked["columns"][1])
    return named_network(source, nodes=asked["nodes"], columns=columns, private=True)


def _nodes(nodes: Nodes) -> int | str | list[str] | None:
    if nodes is None or isinstance(nodes, int):
        return nodes
    if isinstance(nodes, str | Path):
        return os.path.abspath(nodes)
    return [str(name) for name in nodes]


def _path(value: object) -> str | None:
    """The whole path of a file, so that it is found from any folder; None for what is none."""
    return os.path.abspath(value) if isinstance(value, str | os.PathLike) else None


def blocks_result(fitted: Blocks, given: NamedNetwork) -> BlocksResult:
    """What was found, by the names of the nodes."""
    n = given.network.size
    releases = fitted.releases_
    rehearsal = any(release.rehearsal for release in releases)
    mark = f"{REHEARSED}: " if rehearsal else ""
    return BlocksResult(
        nodes=n,
        graphon=fitted.graphon_,
        labels={
            str(name): block
            for name, block in zip(given.names, fitted.labels_.tolist(), strict=True)
        },
        detectable=fitted.detectable_,
        hopeless=fitted.hopeless_,
        reason=fitted.reason_,
        density=fitted.density_,
        signals=tuple(signals(fitted.graphon_, n).tolist()) if n > 1 else (),
        rate=fitted.rate_,
        guarantee=tuple(f"{mark}{release.guarantee}" for release in releases),
        losses=tuple(str(release.guarantee.loss) for release in releases),
        neighbors=str(releases[0].guarantee.neighbors) if releases else "",
        entries=tuple(release.entry.number for release in releases),
        rehearsal=rehearsal,
    )

"""Go through what was paid for and not delivered, and finish it, one request after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from sfumato.errors import InvalidParameter
from sfumato.privacy.ledger.ledger import Ledger
from sfumato.privacy.runs.kept import KeptRun, kept_runs
from sfumato.privacy.runs.locks import tidy
from sfumato.privacy.runs.results import ResumeResult, Told
from sfumato.privacy.runs.run import Request, Run

R = TypeVar("R", bound=Told)


def resume_runs(
    called: str | Path,
    ledgers: Sequence[Ledger],
    *,
    kinds: Sequence[str],
    finish: Callable[[KeptRun], R],
    entry: int | None = None,
    one_only: str = "",
    list_only: bool = False,
) -> ResumeResult[R]:
    """Finish each request of these kinds that some ledgers have paid for.

    Args:
        called: What was named: the ledger, or a folder of them.
        ledgers: The ledgers.
        kinds: The kinds of requests that `finish` can finish; others are left.
        finish: Carries one out, and delivers it.
        entry: Only the request that this entry belongs to.
        one_only: What was given that is meant for one request; "" if nothing was.
        list_only: Whether to finish none.

    Returns:
        What was finished, and what is left.

    Raises:
        InvalidParameter: No request has that entry, or there are several and one was meant.

    """
    runs = kept_runs(ledgers)
    chosen = [run for run in runs if run.kind in kinds and run.state != "in progress"]
    if entry is not None:
        chosen = [run for run in chosen if entry in run.entries]
        if not chosen and not list_only:
            raise InvalidParameter(
                f"nothing of entry {entry} of {called} is to be finished; nothing was done"
            )
    if one_only and len(chosen) > 1:
        raise InvalidParameter(
            f"{one_only} are for one request, and {len(chosen)} are to be finished in {called}: say which "
            "by `entry`; nothing was done"
        )
    if list_only:
        return ResumeResult(str(called), waiting=runs)
    results: list[R | None] = []
    for run in chosen:
        if run.state == "delivered in part":
            Run(Request(run.kind, "", run.asked, run.delivery), kept=run).tick_off()
            results.append(None)
        else:
            results.append(finish(run))
    for ledger in ledgers:
        tidy(ledger)
    waiting = tuple(run for run in runs if run not in chosen)
    return ResumeResult(str(called), tuple(chosen), tuple(results), waiting)

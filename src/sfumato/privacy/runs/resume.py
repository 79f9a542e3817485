"""Go through what was paid for and not delivered, and finish it, one request after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from sfumato.errors import InvalidParameter, LedgerBusy
from sfumato.privacy.ledger.ledger import Ledger
from sfumato.privacy.runs.kept import KeptRun, kept_run, kept_runs
from sfumato.privacy.runs.locks import alone, tidy
from sfumato.privacy.runs.results import ResumeResult, Told
from sfumato.privacy.runs.run import Request, Run

R = TypeVar("R", bound=Told)


def resume_runs(
    called: str | Path,
    ledgers: Callable[[], Sequence[Ledger]],
    *,
    kinds: Sequence[str],
    finish: Callable[[KeptRun], R],
    entry: int | None = None,
    one_only: str = "",
    list_only: bool = False,
) -> ResumeResult[R]:
    """Finish each request of these kinds that some ledgers have paid for.

    Each is read again under its lock: another process may have gone on with it, and paid, or be at
    it.

    Args:
        called: What was named: the ledger, or a folder of them.
        ledgers: Finds the ledgers, as they are now.
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
    runs = kept_runs(ledgers())
    chosen = [
        run for run in runs if run.kind in kinds and run.state not in ("in progress", "incomplete")
    ]
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
    finished: list[KeptRun] = []
    results: list[R | None] = []
    waiting = [run for run in runs if run not in chosen]
    for run in chosen:
        with ExitStack() as lock:
            try:
                lock.enter_context(alone(Ledger(run.ledger), run.run))
            except LedgerBusy:
                waiting.append(replace(run, state="in progress"))
                continue
            now = kept_run(ledgers(), run.run)
            if now is None:  # another process has finished it
                continue
            if now.state == "incomplete":
                waiting.append(now)
                continue
            if now.state == "delivered in part":
                Run(Request(now.kind, "", now.asked, now.delivery), kept=now).tick_off()
                results.append(None)
            else:
                results.append(finish(now))
            finished.append(now)
    for ledger in ledgers():
        tidy(ledger)
    return ResumeResult(str(called), tuple(finished), tuple(results), tuple(waiting))

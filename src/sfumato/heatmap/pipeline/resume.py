"""Finish what was paid for and not delivered: the maps are found, or drawn again, and written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from sfumato.heatmap.export.formats import WriteOptions
from sfumato.heatmap.export.output_names import Outputs, paths_of
from sfumato.heatmap.inference.prior import declared_prior
from sfumato.heatmap.methods.protocol import MapMethod
from sfumato.heatmap.pipeline.charging import priced
from sfumato.heatmap.pipeline.outputs import Watch, plan_outputs
from sfumato.heatmap.pipeline.release_plan import ReleasePlan
from sfumato.heatmap.pipeline.requests import KIND, HeatmapRequest, needs_rows
from sfumato.heatmap.results import PlannedRelease, ReleaseResult
from sfumato.privacy import Ledger
from sfumato.privacy.runs import KeptRun, ResumeResult, resume_runs
from sfumato.records import bound_of_groups, table_identity


def resume_heatmap(
    ledger: Ledger | str | Path,
    *,
    entry: int | None = None,
    source: Any = None,
    connection: str | None = None,
    method: MapMethod[Any] | None = None,
    outputs: Outputs | None = None,
    overwrite: bool = False,
    list_only: bool = False,
    watch: Watch | None = None,
    warn: Watch | None = None,
) -> ResumeResult[ReleaseResult]:
    """Finish releases of maps that were paid for and stopped: by a signal, a crash, a full disk.

    Counts that were drawn are found beside the ledger; those that were not are drawn now, at no
    further cost. A request of several releases goes on where it stopped: parts that it has not paid
    for yet are charged, as was asked. Files that are there already and are the same are left.

    Privacy: what was paid for is released once. Proof: docs/proofs/ledger.md

    Args:
        ledger: The ledger that paid, or its path.
        entry: Finish the request of this entry only; all, if none is given.
        source: The rows, where they were a table in memory, or have moved.
        connection: The connection to a database, where it had a password: none is kept.
        method: The method, where it is not a registered one.
        outputs: Other files than were asked for.
        overwrite: Whether files that exist, and are others, are replaced.
        list_only: Whether to say what there is to finish, and do nothing.
        watch: Told of each step.
        warn: Told what went wrong on the way; a warning of Python, if none is given.

    Returns:
        What was finished, and what was left: requests of other commands, and those in progress.

    Raises:
        InvalidInput: Rows or a public file cannot be read, or a file not written; what is paid for
            stays.
        InvalidParameter: There is no such entry to finish, or `outputs` are for several requests.

    """
    budget = ledger if isinstance(ledger, Ledger) else Ledger(ledger)

    def finish(kept: KeptRun) -> ReleaseResult:
        asked = HeatmapRequest.from_json(
            kept.asked, kept.delivery, source=source, connection=connection, method=method
        )
        changed = () if outputs is None else tuple(map(str, paths_of(outputs)))
        asked = replace(
            asked,
            outputs=changed or asked.outputs,
            overwrite=overwrite or asked.overwrite,
        )
        return _plan(asked, budget, kept).run(watch=watch, warn=warn)

    return resume_runs(
        budget.path,
        lambda: [budget],
        kinds=(KIND,),
        finish=finish,
        entry=entry,
        one_only="other outputs" if outputs is not None else "",
        list_only=list_only,
    )


def _plan(asked: HeatmapRequest, budget: Ledger, kept: KeptRun) -> ReleasePlan:
    """The plan of a request that has paid already: nothing is afforded again."""
    rows = asked.rows
    targets = plan_outputs(
        asked.outputs,
        asked.groups,
        options=WriteOptions(
            None, asked.over, asked.h3_resolution, asked.outline, asked.legend, asked.every_cell
        ),
        overwrite=asked.overwrite,
    )
    targets = replace(targets, again=True)
    targets.check(asked.area, others=[budget.path, asked.prior], rows=rows.source)
    bound = bound_of_groups(asked.area.grid, asked.groups, unit=budget.header.unit)
    price = priced(asked.method, asked.epsilon, bound, asked.area)
    return ReleasePlan(
        asked,
        budget,
        price,
        declared_prior(asked.prior, asked.area, rows=rows.source),
        targets,
        PlannedRelease(price.loss, budget.left(bound=bound), asked.area, str(budget.path)),
        bound,
        table_identity(rows.source, rows.columns, connection=rows.connection),
        kept=kept,
        missing=needs_rows(asked, kept.asked),
    )

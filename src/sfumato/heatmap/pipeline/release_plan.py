"""A release that was checked and priced: carried out, or finished where an earlier attempt stopped."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidInput
from sfumato.heatmap.inference.prior import Prior
from sfumato.heatmap.methods.private_bounds import BOUNDS_PARTS, find_area
from sfumato.heatmap.pipeline.charging import Price, check_noise, maps_of_receipt
from sfumato.heatmap.pipeline.options import open_rows
from sfumato.heatmap.pipeline.outputs import (
    OutputPlan,
    Watch,
    sharpened_maps,
    tell,
    write_maps,
)
from sfumato.heatmap.pipeline.pooling import pooled_maps
from sfumato.heatmap.pipeline.requests import HeatmapRequest
from sfumato.heatmap.render.many_maps import many_words
from sfumato.heatmap.render.release import described
from sfumato.heatmap.results import HeatmapRelease, PlannedRelease, ReleaseResult
from sfumato.privacy import Bound, Guarded, Ledger, Noise, PureDP
from sfumato.privacy.ledger import Table
from sfumato.privacy.runs import KeptRun, Run
from sfumato.records import CellSums, Columns
from sfumato.spaces import Area

MAP = ""
"""The part of a run that pays for the maps; before it come those that find their area."""


def sum_cells(table: Any, columns: Columns, area: Area, **how: Any) -> Guarded[CellSums]:
    """As that of `records`, which loads Ibis: a refusal does without."""
    from sfumato import records

    return records.sum_cells(table, columns, area, **how)


@dataclass(frozen=True, slots=True, eq=False)
class ReleasePlan:
    """A release that was checked, priced and found affordable; no row was read.

    Attributes:
        result: What it would cost: what a dry run shows.

    """

    asked: HeatmapRequest
    ledger: Ledger
    price: Price
    prior: Prior | None
    outputs: OutputPlan
    result: PlannedRelease
    bound: Bound
    table: Table | None = None
    once: str = ""
    kept: KeptRun | None = None
    missing: str = ""
    anew: bool = False
    opened: Any = field(default=None, repr=False)

    def run(
        self, *, noise: Noise | None = None, watch: Watch | None = None, warn: Watch | None = None
    ) -> ReleaseResult:
        """Read, pay, sample, sharpen and write; what an earlier attempt has paid for is not paid again.

        Args:
            noise: Where the noise comes from; the system, if none is given.
            watch: Told of each step; its errors after a charge do not stop the release.
            warn: Told what went wrong after the charge; a warning of Python, if none is given.

        Returns:
            The maps, what is left, and the files that were written.

        Raises:
            InvalidParameter: The noise is known and the ledger real; nothing was read or charged.
            SfumatoError: The rows could not be read (nothing was charged), or a file not written
                (the map is paid for, and kept: the message says how to finish).

        """
        check_noise(noise, self.ledger)
        run = Run(self.asked.request, once=self.once, kept=self.kept, anew=self.anew)
        with run.on(self.ledger):
            maps = pooled_maps(self._released(run, noise, watch), self.asked.pooling, warn=warn)
            maps = sharpened_maps(maps, self.prior, warn=warn)
            written = write_maps(maps, self.outputs, watch=watch)
            run.delivered()
        return ReleaseResult.of(
            maps,
            self.ledger,
            bound=self.bound,
            team=self.asked.team,
            written=written,
            made_before=run.made_before,
            drawn_with=self.outputs.options,
        )

    def _released(
        self, run: Run, noise: Noise | None, watch: Watch | None
    ) -> tuple[HeatmapRelease, ...]:
        """The maps: paid for now, or before."""
        asked, budget, area = self.asked, self.ledger, self.asked.area
        say = watch or (lambda _: None)

        @cache
        def table() -> Any:
            """Opened once, however often it is counted."""
            if self.opened is not None:
                return self.opened
            if self.missing:
                raise InvalidInput(f"{self.missing}; nothing was drawn")
            return open_rows(asked.rows, asked.area)

        def summed(where: Area) -> Guarded[CellSums]:
            return sum_cells(
                table(),
                asked.rows.columns,
                where,
                source=budget.header.source,
                unit=budget.header.unit,
                groups=asked.groups,
                identity=self.table,
            )

        if self.kept is None and not self.once:
            table()  # what is missing is said before anything else is
        if asked.bounds_epsilon:
            # Where people are is asked of all groups together.
            say(f"finding the area inside {asked.outer}")
            area = find_area(
                summed,
                area,
                ledger=budget,
                epsilon=asked.bounds_epsilon,
                team=asked.team,
                other_table=asked.other_table,
                run=run,
            )
            say = partial(tell, watch)  # the area is paid for
        say(described(area))
        if run.made(budget, MAP, number=self.parts - 1):
            say(f"the maps were paid for in {budget.path}")
        else:
            named = asked.rows.source if isinstance(asked.rows.source, str | Path) else "rows"
            if self.result.many is not None:
                say(many_words(self.result.many, self.result.measure))
            # What is in a database is counted there, whatever engine reads files.
            by = table().get_backend().name
            say(f"counting {named} with {'spark' if by == 'pyspark' else by}")
        price = self.price
        receipt, _ = run.release(
            budget,
            price.mechanism,
            self._saying(partial(summed, area), say),
            part=MAP,
            noise=noise,
            pay=price.loss if isinstance(price.loss, PureDP) else None,
            note=asked.note,
            team=asked.team,
            other_table=asked.other_table,
        )
        return maps_of_receipt(
            receipt,
            area,
            method=asked.method,
            price=price,
            groups=("",) if asked.groups is None else asked.groups,
            area_cost=PureDP(asked.bounds_epsilon) if asked.bounds_epsilon else None,
            columns=asked.rows.columns,
            title=asked.title or ("" if budget.header.rehearsal else str(budget.header.source)),
        )

    @property
    def parts(self) -> int:
        """How many releases it is made of."""
        return 1 + (len(BOUNDS_PARTS) if self.asked.bounds_epsilon else 0)

    def _saying(self, count: partial[Guarded[CellSums]], say: Watch) -> partial[Guarded[CellSums]]:
        def counted() -> Guarded[CellSums]:
            guarded = count()
            say(f"releasing by {self.asked.method.name} from {self.ledger.path}")
            return guarded

        return partial(counted)

"""From a table to private maps, as a user means it: plan, price, afford, read, release, sharpen, write.

Every face of heatmaps (command, notebook, page) calls these functions and nothing deeper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from sfumato.errors import InvalidParameter
from sfumato.heatmap.charging import (
    DEFAULT,
    Method,
    Price,
    check_affordable,
    check_noise,
    priced,
    release_sums,
)
from sfumato.heatmap.inference.prior import Prior, declared_prior
from sfumato.heatmap.methods.private_bounds import area_prices, find_area
from sfumato.heatmap.methods.protocol import MapMethod
from sfumato.heatmap.methods.registry import as_method
from sfumato.heatmap.options import (
    HeatmapOptions,
    Rows,
    area_of,
    check_options,
    check_public,
    is_private,
    open_rows,
    outer_name,
    read_files,
    rows_of,
    write_options,
)
from sfumato.heatmap.outputs import (
    OutputPlan,
    Outputs,
    Watch,
    plan_outputs,
    sharpened_maps,
    tell,
    write_maps,
)
from sfumato.heatmap.render import described
from sfumato.heatmap.results import HeatmapRelease, PlannedRelease, ReleaseResult
from sfumato.privacy import Guarded, Ledger, Noise, PureDP, compose
from sfumato.privacy.accounting import Number, exact
from sfumato.records import CellSums, Columns, Periods, bound_of_groups, sum_cells
from sfumato.spaces import Area


@dataclass(frozen=True, slots=True, eq=False)
class ReleasePlan:
    """A release that was checked, priced and found affordable; no row was read.

    Attributes:
        result: What it would cost: what a dry run shows.

    """

    rows: Rows
    area: Area
    ledger: Ledger
    epsilon: Fraction
    bounds_epsilon: Fraction
    method: MapMethod[Any]
    price: Price
    groups: Sequence[str] | Periods | None
    prior: Prior | None
    outputs: OutputPlan
    title: str
    note: str
    outer: str
    result: PlannedRelease

    def run(
        self, *, noise: Noise | None = None, watch: Watch | None = None, warn: Watch | None = None
    ) -> ReleaseResult:
        """Read, pay, sample, sharpen and write.

        Args:
            noise: Where the noise comes from; the system, if none is given.
            watch: Told of each step; its errors after a charge do not stop the release.
            warn: Told what went wrong after the charge; a warning of Python, if none is given.

        Returns:
            The maps, what is left, and the files that were written.

        Raises:
            InvalidParameter: The noise is known and the ledger real; nothing was read or charged.
            SfumatoError: The rows could not be read (nothing was charged), or a file not written
                (the map is paid for, and kept elsewhere).

        """
        say, area, budget = watch or (lambda _: None), self.area, self.ledger
        check_noise(noise, budget)
        table = open_rows(self.rows)

        def summed(where: Area) -> Guarded[CellSums]:
            header = budget.header
            return sum_cells(
                table,
                self.rows.columns,
                where,
                source=header.source,
                unit=header.unit,
                groups=self.groups,
            )

        if self.bounds_epsilon:
            # Where people are is asked of all groups together.
            say(f"finding the area inside {self.outer}")
            area = find_area(summed, area, ledger=budget, epsilon=self.bounds_epsilon)
            say = partial(tell, watch)  # the area is paid for
        say(described(area))
        named = self.rows.source if isinstance(self.rows.source, str | Path) else "rows"
        say(f"counting {named} with {self.rows.engine}")
        guarded = summed(area)
        say(f"releasing by {self.method.name} from {budget.path}")
        maps = release_sums(
            guarded,
            area,
            ledger=budget,
            epsilon=self.epsilon,
            method=self.method,
            groups=("",) if self.groups is None else self.groups,
            noise=noise,
            area_cost=PureDP(self.bounds_epsilon) if self.bounds_epsilon else None,
            columns=self.rows.columns,
            title=self.title,
            note=self.note,
            price=self.price,
        )
        maps = sharpened_maps(maps, self.prior, warn=warn)
        written = write_maps(maps, self.outputs, watch=watch, warn=warn)
        first = maps[0]
        return ReleaseResult(
            first.statement,
            first.method,
            first.parameters,
            first.receipt.entry,
            first.guarantee.loss,
            budget.statement().left,
            first.area.bounds,
            str(budget.path),
            written,
            maps,
            {one.group: one.noise for one in maps},
        )


def release_heatmap(
    source: Any,
    columns: Columns | None = None,
    area: Area | Sequence[float] | None = None,
    *,
    ledger: Ledger | str | Path,
    epsilon: Number,
    method: Method = DEFAULT,
    groups: Sequence[str] | Periods | None = None,
    prior: Prior | str | Path | None = None,
    outputs: Outputs = (),
    title: str = "",
    note: str = "",
    public: bool = False,
    noise: Noise | None = None,
    watch: Watch | None = None,
    warn: Watch | None = None,
    **options: Unpack[HeatmapOptions],
) -> ReleaseResult:
    """Release private maps of a table of (user, place): one, or one for each group or period.

    Every user has mass 1 over all cells and maps, however many rows they have. All public checks
    (outputs, prior, price, budget) come before any row is read; then the ledger charges epsilon,
    and only then is anything sampled.

    Privacy: epsilon (with the delta of the method, if it has one) for each `unit` of the ledger
    added or removed; with mass per period epsilon for each period, unless the unit is that period.

    Args:
        source: A path or pattern (CSV, Parquet, JSON), FILE::TABLE, or an Arrow, pandas, Polars or
            Ibis table.
        columns: What its columns mean; or `user`, `x`, `y`, ... as keywords (see HeatmapOptions).
        area: The public area, or its bounds (west, south, east, north); or `bounds`, `levels`, ...
            as keywords.
        ledger: The ledger that pays, or its path.
        epsilon: What the maps may cost, above 0.
        method: A method, or the name of one of `registered_methods`.
        groups: The public values of the column `by`, or periods of time; None for one map.
        prior: A file declared public that the maps follow within their tiles, for free.
        outputs: Files to write; the suffix names the format, {by} the group. An .html without {by}
            shows all periods.
        title: What the maps are called, in pictures and pages.
        note: A line for the ledger.
        public: Whether rows are public or made up: True with a `Ledger.rehearsal`, and only then.
        noise: Where the noise comes from; the system's randomness, if none is given.
        watch: Told of each step; its errors after a charge do not stop the release.
        warn: Told what went wrong after the charge; a warning of Python, if none is given.
        **options: `user`, `x`, `y`, `weight`, `by` (columns), `bounds`, `image`, `levels` (area),
            `engine`, `over`, `overwrite` and others: all in `sfumato.heatmap.HeatmapOptions`.

    Returns:
        The maps, their cost, what is left, and the files that were written.

    Raises:
        BudgetExceeded: The ledger has not enough left; nothing was read or charged.
        InvalidParameter: A parameter is out of range; nothing was charged.
        InvalidInput: The rows, or a public file, could not be read; nothing was charged.

    Example:
        >>> import tempfile
        >>> import pyarrow as pa
        >>> from sfumato.privacy import Ledger, PureDP
        >>> rows = pa.table({"user": ["ann", "bob"], "lon": [11.25, 11.3], "lat": [43.77, 43.78]})
        >>> ledger = Ledger.create(
        ...     f"{tempfile.mkdtemp()}/city.ledger", PureDP(1), unit="user", source="city"
        ... )
        >>> found = release_heatmap(
        ...     rows, user="user", bounds=(11.2, 43.74, 11.32, 43.81), ledger=ledger, epsilon=1
        ... )
        >>> found.statement, str(found.left)
        ('epsilon 1 for each user (one user added or removed), central model', 'epsilon 0')

    """
    plan = plan_release(
        source,
        columns,
        area,
        ledger=ledger,
        epsilon=epsilon,
        method=method,
        groups=groups,
        prior=prior,
        outputs=outputs,
        title=title,
        note=note,
        public=public,
        **options,
    )
    return plan.run(noise=noise, watch=watch, warn=warn)


def plan_release(
    source: Any,
    columns: Columns | None = None,
    area: Area | Sequence[float] | None = None,
    *,
    ledger: Ledger | str | Path,
    epsilon: Number,
    method: Method = DEFAULT,
    groups: Sequence[str] | Periods | None = None,
    prior: Prior | str | Path | None = None,
    outputs: Outputs = (),
    title: str = "",
    note: str = "",
    public: bool = False,
    **options: Unpack[HeatmapOptions],
) -> ReleasePlan:
    """Check and price a release without reading a row: everything of `release_heatmap` but the data.

    Args:
        source: As for `release_heatmap`; it is not opened.
        columns: As for `release_heatmap`.
        area: As for `release_heatmap`.
        ledger: The ledger that would pay, or its path.
        epsilon: What the maps may cost, above 0.
        method: A method, or its name.
        groups: Public values of the column `by`, or periods.
        prior: A file declared public.
        outputs: Files that would be written.
        title: What the maps are called.
        note: A line for the ledger.
        public: Whether rows are public or made up: True with a `Ledger.rehearsal`, and only then.
        **options: As for `release_heatmap`.

    Returns:
        The plan: `result` says what it costs, `run` carries it out.

    Raises:
        BudgetExceeded: The ledger has not enough left.
        InvalidParameter: A parameter is out of range, or an output could not be written.
        InvalidInput: A public file could not be read.

    """
    check_options(options, columns, area)
    check_public(ledger, public=public)
    whole = exact(epsilon, name="epsilon")
    if not whole > 0:
        raise InvalidParameter(f"epsilon must be above 0, got {epsilon}; nothing was charged")
    if not note.isprintable():
        raise InvalidParameter("a note must be printable on one line; nothing was charged")
    private = is_private(options)
    targets = plan_outputs(
        outputs, groups, options=write_options(options), overwrite=options.get("overwrite", False)
    )
    rows = rows_of(source, columns, options)
    if isinstance(groups, Periods):
        if groups.mass_per_period and private:
            raise InvalidParameter(
                "an area is found with one mass for each user: --mass-per-period does not go with --bounds "
                "private; nothing was charged"
            )
        rows = replace(rows, columns=groups.in_table(rows.columns))
    way = as_method(method)
    where = area_of(area, options)
    paid_by = ledger.path if isinstance(ledger, Ledger) else ledger
    targets.check(where, others=[paid_by, *read_files(options, prior)], rows=source)
    followed = declared_prior(prior, where, rows=source)
    budget = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    share = options.get("bounds_share", Fraction(1, 10))
    on_bounds = whole * exact(share, name="bounds share") if private else Fraction(0)
    if private and not 0 < on_bounds < whole:
        raise InvalidParameter(
            f"the bounds share must lie in (0, 1), got {share}; nothing was charged"
        )
    # What the ledger would refuse in the end, it refuses before any row is read.
    bound = bound_of_groups(where.grid, groups, unit=budget.header.unit)
    paid = priced(way, whole - on_bounds, bound, where)
    costs = [*(area_prices(on_bounds) if private else ()), paid.loss]
    check_affordable(budget, costs, bound, epsilon)
    planned = PlannedRelease(
        compose(costs),
        budget.statement().left,
        where,
        str(budget.path),
        groups.count if isinstance(groups, Periods) else None,
    )
    return ReleasePlan(
        rows,
        where,
        budget,
        whole - on_bounds,
        on_bounds,
        way,
        paid,
        groups,
        followed,
        targets,
        title,
        note,
        outer_name(options),
        planned,
    )


def release(
    source: Any,
    columns: Columns,
    area: Area,
    *,
    ledger: Ledger,
    epsilon: Number,
    method: Method = DEFAULT,
    note: str = "",
    public: bool = False,
) -> HeatmapRelease:
    """The one map of `release_heatmap` without groups.

    Args:
        source: Everything `open_table` takes.
        columns: What its columns mean.
        area: The public area.
        ledger: The ledger that pays.
        epsilon: What the map may cost, above 0.
        method: A method, or its name.
        note: A line for the ledger.
        public: Whether rows are public or made up: True with a `Ledger.rehearsal`, and only then.

    Returns:
        The map.

    Raises:
        BudgetExceeded: The ledger has not enough left; nothing was read or charged.
        InvalidParameter: A parameter is out of range; nothing was charged.
        InvalidInput: The rows could not be read; nothing was charged.

    """
    found = release_heatmap(
        source,
        columns,
        area,
        ledger=ledger,
        epsilon=epsilon,
        method=method,
        note=note,
        public=public,
    )
    return found.maps[0]

"""From a table to private maps, as a user means it: plan, price, afford, read, release, sharpen, write.

Every face of heatmaps (command, notebook, page) calls these functions and nothing deeper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Unpack

from sfumato.errors import InvalidParameter, LedgerMismatch
from sfumato.heatmap.export.output_names import Outputs, paths_of
from sfumato.heatmap.inference.prior import Prior, declared_prior
from sfumato.heatmap.measure import Measure
from sfumato.heatmap.methods.private_bounds import BOUNDS_PARTS, area_prices
from sfumato.heatmap.methods.registry import as_method
from sfumato.heatmap.pipeline.charging import DEFAULT, Method, check_affordable, priced
from sfumato.heatmap.pipeline.mistakes import check_release
from sfumato.heatmap.pipeline.options import (
    HeatmapOptions,
    area_of,
    is_private,
    open_rows,
    outer_name,
    read_files,
    rows_of,
    stated_groups,
    warn_of_exchange,
    write_options,
)
from sfumato.heatmap.pipeline.outputs import Watch, plan_outputs
from sfumato.heatmap.pipeline.plan import expected_maps
from sfumato.heatmap.pipeline.pooling import check_pooling
from sfumato.heatmap.pipeline.release_plan import MAP, ReleasePlan
from sfumato.heatmap.pipeline.requests import HeatmapRequest
from sfumato.heatmap.results import PlannedRelease, ReleaseResult
from sfumato.privacy import UNITS, Bound, Ledger, Noise, PureDP, compose
from sfumato.privacy.accounting import Number, exact
from sfumato.privacy.runs import Run, Undelivered, check_repeat
from sfumato.records import (
    Columns,
    Groups,
    Pairs,
    Periods,
    Values,
    bound_of_groups,
    in_table,
    is_file_list,
    table_identity,
    whole_parts,
)
from sfumato.spaces import Area


def release_heatmap(
    source: Any,
    columns: Columns | None = None,
    area: Area | Sequence[float] | None = None,
    *,
    ledger: Ledger | str | Path,
    epsilon: Number,
    method: Method = DEFAULT,
    groups: Groups = None,
    prior: Prior | str | Path | None = None,
    outputs: Outputs = (),
    title: str = "",
    note: str = "",
    once: str = "",
    anew: bool = False,
    public: bool = False,
    noise: Noise | None = None,
    watch: Watch | None = None,
    warn: Watch | None = None,
    **options: Unpack[HeatmapOptions],
) -> ReleaseResult:
    """Release private maps of a table of (user, place): one, or one for each group or period.

    Every user has mass 1 over all cells and maps, however many rows they have, or with
    `rows_per_user` at most 1. All public checks
    (outputs, prior, price, budget) come before any row is read; then the ledger charges epsilon,
    and only then is anything sampled.

    Privacy: epsilon (with the delta of the method, if it has one) for each `unit` of the ledger
    added or removed; with mass per period (or value) epsilon for each of them, unless the unit is
    that period of a user, or that value.

    Args:
        source: A path or pattern (CSV, Parquet, JSON), FILE::TABLE, or an Arrow, pandas, Polars or
            Ibis table.
        columns: What its columns mean; or `user`, `x`, `y`, ... as keywords (see HeatmapOptions).
        area: The public area, or its bounds (west, south, east, north); or `bounds`, `levels`, ...
            as keywords.
        ledger: The ledger that pays, or its path.
        epsilon: What the maps may cost, above 0.
        method: A method, or the name of one of `registered_methods`.
        groups: The public values of the column `by`, or `Values` (with mass per value), `Periods`
            of time or `Pairs` of these; None for one map.
        prior: A file declared public that the maps follow within their tiles, for free.
        outputs: Files to write; the suffix names the format, {by} the group. An .html without {by}
            shows all periods.
        title: What the maps are called, in pictures and pages.
        note: A line for the ledger.
        once: A key under which this request is released once: with the same key the same request
            gives the release that was made, at no cost (`made_before`), and writes files that are
            missing; another request is refused.
        anew: Whether to pay again for a request that was paid for and not delivered: without it,
            `resume_heatmap` finishes that one.
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
        LedgerMismatch: The key is that of another request, or the ledger one for other data.
        ReleasedAlready: The same request was paid for and not delivered; nothing was charged.

    Whatever stops it after the charge says so, and what was paid for is kept beside the ledger:
    `resume_heatmap` finishes it.

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
        once=once,
        anew=anew,
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
    groups: Groups = None,
    prior: Prior | str | Path | None = None,
    outputs: Outputs = (),
    title: str = "",
    note: str = "",
    once: str = "",
    anew: bool = False,
    public: bool = False,
    paid_for: Callable[[HeatmapRequest], bool] | None = None,
    **options: Unpack[HeatmapOptions],
) -> ReleasePlan:
    """Check and price a release without reading a row: everything of `release_heatmap` but the data.

    Which files and columns there are is public, and looked at.

    Args:
        source: As for `release_heatmap`; of files and databases the schema is read.
        columns: As for `release_heatmap`.
        area: As for `release_heatmap`.
        ledger: The ledger that would pay, or its path.
        epsilon: What the maps may cost, above 0.
        method: A method, or its name.
        groups: Public values of the column `by`, or `Values`, `Periods` or `Pairs`.
        prior: A file declared public.
        outputs: Files that would be written.
        title: What the maps are called.
        note: A line for the ledger.
        once: A key under which this request is released once.
        anew: Whether to pay again for a request that was paid for and not delivered.
        public: Whether rows are public or made up: True with a `Ledger.rehearsal`, and only then.
        paid_for: Says of what is asked whether an earlier attempt has paid for it, so that it costs
            nothing now; whoever carries the plan out finds that attempt.
        **options: As for `release_heatmap`.

    Returns:
        The plan: `result` says what it costs, `run` carries it out.

    Raises:
        BudgetExceeded: The ledger has not enough left.
        InvalidParameter: A parameter is out of range, or an output could not be written.
        InvalidInput: A public file could not be read, or there is no such file or column of rows.
        LedgerMismatch: The ledger is one for other data, and the source is there.
        ReleasedAlready: The same request was paid for and not delivered.

    """
    groups = stated_groups(groups, columns, options)
    check_release(
        source,
        columns,
        area,
        ledger=ledger,
        epsilon=epsilon,
        method=method,
        groups=groups,
        outputs=outputs,
        note=note,
        once=once,
        public=public,
        **options,
    )
    check_pooling(options.get("pooling", "none"), groups, method)
    whole = exact(epsilon, name="epsilon")
    private = is_private(options)
    targets = plan_outputs(
        outputs, groups, options=write_options(options), overwrite=options.get("overwrite", False)
    )
    rows = rows_of(source, columns, options)
    if private and (own := whole_parts(groups)):
        word = "mass_per_period" if isinstance(own[0], Periods) else "mass_per_value"
        raise InvalidParameter(
            f"an area is found with one mass for each user: `{word}` does not go with "
            "`bounds='private'`; nothing was charged"
        )
    rows = replace(rows, columns=in_table(groups, rows.columns))
    warn_of_exchange(rows.columns)
    where = area_of(area, options)
    share = options.get("bounds_share", Fraction(1, 10))
    on_bounds = whole * exact(share, name="bounds share") if private else Fraction(0)
    written = write_options(options)
    asked = HeatmapRequest(
        rows,
        where,
        whole - on_bounds,
        on_bounds,
        as_method(method),
        groups,
        note,
        outer_name(options),
        options.get("team", ""),
        options.get("other_table", False),
        tuple(map(str, paths_of(outputs))),
        None if written.over is None else str(written.over),
        options.get("h3_resolution"),
        options.get("overwrite", False),
        None if prior is None else str(prior.file if isinstance(prior, Prior) else prior),
        title,
        None if written.outline is None else str(written.outline),
        written.legend,
        written.every_cell,
        options.get("pooling", "none"),
    )
    parts = (*(BOUNDS_PARTS if private else ()), MAP)
    made = _made(asked, ledger, parts, once) if once else ()
    targets = replace(targets, again=MAP in made)
    paid_by = ledger.path if isinstance(ledger, Ledger) else ledger
    targets.check(where, others=[paid_by, *read_files(options, prior)], rows=source)
    followed = declared_prior(prior, where, rows=source)
    budget = _opened(ledger)
    if private and not 0 < on_bounds < whole:
        raise InvalidParameter(
            f"the bounds share must lie in (0, 1), got {share}; nothing was charged"
        )
    # What the ledger would refuse in the end, it refuses before any row is read.
    bound = bound_of_groups(where.grid, groups, unit=budget.header.unit, by=rows.columns.by)
    paid = priced(asked.method, asked.epsilon, bound, where)
    standing: tuple[Undelivered, ...] = ()
    if paid_for is None:
        run = f"once {once}" if once else ""
        standing = check_repeat([budget], asked.request, run=run, anew=anew)
    prices = [*(area_prices(on_bounds) if private else ()), paid.loss]
    costs = [price for part, price in zip(parts, prices, strict=True) if part not in made]
    if paid_for is not None and paid_for(asked):
        costs = []
    table = table_identity(source, rows.columns, connection=rows.connection)
    try:
        check_affordable(
            budget,
            costs,
            bound,
            epsilon,
            team=asked.team,
            table=table,
            other_table=asked.other_table,
            what="periods" if isinstance(groups, Periods) else "maps",
        )
    except LedgerMismatch:
        # A file or column that is not there is a slip of the pen, and no other table.
        if costs:
            open_rows(rows, where)
        raise
    # Which files and columns there are is public; what was paid for before needs neither.
    named = isinstance(source, str | Path) or is_file_list(source)
    # Whoever carries out a plan of several parties opens its own rows.
    opened = open_rows(rows, where) if costs and named and paid_for is None else None
    measure = Measure.of({"rows_per_user": rows.columns.rows_per_user}, budget.header.unit)
    # How many rows users have is not guessed: of counted rows it is only said how many it takes.
    users = None if measure.name == "rows" else options.get("users")
    planned = PlannedRelease(
        compose(costs) if costs else PureDP(0),
        budget.left(bound=bound, team=asked.team),
        where,
        str(budget.path),
        groups.count if isinstance(groups, Periods) else None,
        expected_maps(
            where,
            asked.epsilon,
            method=asked.method.name,
            users=users,
            groups=groups,
        ),
        measure,
        groups.count if isinstance(groups, Values | Pairs) else None,
        _pays_once(groups, bound),
        asked.pooling == "partial",
        standing,
        bound.periods or (),
    )
    return ReleasePlan(
        asked,
        budget,
        paid,
        followed,
        targets,
        planned,
        bound,
        table,
        once,
        anew=anew,
        opened=opened,
    )


def _pays_once(groups: Groups, bound: Bound) -> str:
    """The unit of a ledger that would be charged once where this one is for each value."""
    columns = [one.column for one in whole_parts(groups) if isinstance(one, Values)]
    if not columns or bound.required("l1", by="a map") <= UNITS:
        return ""
    return "-".join(["user", *columns])


def _made(
    asked: HeatmapRequest, ledger: Ledger | str | Path, parts: Sequence[str], once: str
) -> tuple[str, ...]:
    """Which parts were made under a key; refused where it is that of another request."""
    run, budget = Run(asked.request, once=once), _opened(ledger)
    return tuple(part for number, part in enumerate(parts) if run.made(budget, part, number=number))


def _opened(ledger: Ledger | str | Path) -> Ledger:
    return ledger if isinstance(ledger, Ledger) else Ledger(ledger)

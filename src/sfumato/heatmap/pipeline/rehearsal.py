"""Try a release on public or synthetic rows: a stamped map and its exact errors; no ledger pays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.heatmap.analysis.blur import smooth
from sfumato.heatmap.analysis.metrics import Comparison, compare
from sfumato.heatmap.export.output_names import Outputs
from sfumato.heatmap.inference.prior import Prior, declared_prior
from sfumato.heatmap.methods.protocol import MapMethod
from sfumato.heatmap.methods.registry import as_method
from sfumato.heatmap.pipeline.charging import DEFAULT, Method, priced, release_sums
from sfumato.heatmap.pipeline.mistakes import check_rehearsal
from sfumato.heatmap.pipeline.options import (
    HeatmapOptions,
    Rows,
    area_of,
    open_rows,
    read_files,
    rows_of,
    stated_groups,
    write_options,
)
from sfumato.heatmap.pipeline.outputs import (
    Watch,
    plan_outputs,
    sharpened_maps,
    stated_errors,
    write_maps,
)
from sfumato.heatmap.pipeline.pooling import check_pooling, pooled_maps
from sfumato.heatmap.results import HeatmapRelease, RehearsalResult
from sfumato.heatmap.tiles import public_tiles
from sfumato.privacy import UNITS, Ledger, Noise
from sfumato.privacy.accounting import Number, exact
from sfumato.records import (
    CellSums,
    Columns,
    Groups,
    bound_of_groups,
    guard_sums,
    in_table,
    sum_public_cells,
)
from sfumato.spaces import Area

BLUR = 0.02  # of the map's side: what forecasts and the leaderboard look through


def rehearse_heatmap(
    source: Any,
    columns: Columns | None = None,
    area: Area | Sequence[float] | None = None,
    *,
    public: bool,
    epsilon: Number,
    method: Method = DEFAULT,
    groups: Groups = None,
    prior: Prior | str | Path | None = None,
    outputs: Outputs = (),
    noise: Noise | None = None,
    watch: Watch | None = None,
    warn: Watch | None = None,
    **options: Unpack[HeatmapOptions],
) -> RehearsalResult:
    """Try a release on PUBLIC or synthetic rows: stamped maps and their exact errors; no ledger pays.

    Args:
        source: As for `release_heatmap`; its rows must be public or made up.
        columns: As for `release_heatmap`.
        area: As for `release_heatmap`.
        public: Must be True: exact numbers about the rows are returned.
        epsilon: What a release would cost, above 0.
        method: A method, or its name.
        groups: The public values of the column `by`, or `Values`, `Periods` or `Pairs`; None for
            one map.
        prior: A file declared public that the maps follow.
        outputs: Files to write, as for `release_heatmap`.
        noise: Noise of a known key gives the same map again.
        watch: Told of each step.
        warn: Told what went wrong after sampling.
        **options: `user`, `x`, `y`, `weight`, `by`, `one_row_one_user` (columns); `bounds`,
            `bounds_file`, `image`, `levels`, `plane`, `cells` (area); `engine`, `delimiter`,
            `over`, `h3_resolution`, `overwrite`; all of them in `sfumato.heatmap.HeatmapOptions`.

    Returns:
        The maps, the exact pictures, the errors of each map and their means.

    Raises:
        InvalidParameter: The rows were not said to be public, or a parameter is out of range.
        InvalidInput: The rows, or a public file, could not be read; or no row counts in any group.

    Example:
        >>> import pyarrow as pa
        >>> rows = pa.table({"user": ["ann", "bob"], "lon": [11.25, 11.3], "lat": [43.77, 43.78]})
        >>> found = rehearse_heatmap(
        ...     rows, user="user", bounds=(11.2, 43.74, 11.32, 43.81), levels=4, public=True, epsilon=1
        ... )
        >>> print(found.statement.partition(":")[0])
        REHEARSAL on public data, protects nobody
        >>> 0 <= found.errors.similarity <= 1
        True

    """
    groups = stated_groups(groups, columns, options)
    check_rehearsal(
        source,
        columns,
        area,
        public=public,
        epsilon=epsilon,
        method=method,
        groups=groups,
        outputs=outputs,
        **options,
    )
    pooling = options.get("pooling", "none")
    check_pooling(pooling, groups, method)
    rows, where = rows_of(source, columns, options), area_of(area, options)
    rows = replace(rows, columns=in_table(groups, rows.columns))
    targets = plan_outputs(
        outputs, groups, options=write_options(options), overwrite=options.get("overwrite", False)
    )
    targets.check(where, others=read_files(options, prior), rows=source)
    followed = declared_prior(prior, where, rows=source)
    if watch is not None:
        watch(f"rehearsing on {source if isinstance(source, str | Path) else 'rows'}")
    maps, truths = _rehearsed(
        rows,
        where,
        public=public,
        epsilon=epsilon,
        method=as_method(method),
        noise=noise,
        groups=groups,
    )
    maps = pooled_maps(maps, pooling, warn=warn)
    maps = sharpened_maps(maps, followed, warn=warn)
    errors = {
        one.group: None
        if truth is None
        else (
            compare(smooth(truth, BLUR), one.image(sigma=BLUR), where),
            compare(truth, one.image(), where),
        )
        for one, truth in zip(maps, truths, strict=True)
    }
    if not any(errors.values()):
        raise InvalidInput(
            "no row counts, so there is nothing to compare a map with; is it the area, the periods or "
            "the values? Nothing was written"
        )
    written = write_maps(maps, targets, watch=watch)
    several = groups is not None
    found = [pair for pair in errors.values() if pair is not None]
    stated = None if several else stated_errors(maps, warn=warn).get(maps[0].group)
    return RehearsalResult(
        maps[0].statement,
        BLUR,
        _mean([blurred for blurred, _ in found]),
        _mean([sharp for _, sharp in found]),
        written,
        stated,
        maps[0],
        truths[0],
        None if several else maps[0].noise,
        {group: None if pair is None else pair[0] for group, pair in errors.items()}
        if several
        else {},
        maps,
        truths,
    )


def _mean(errors: Sequence[Comparison]) -> Comparison:
    """The mean of each number over maps."""
    rows = [asdict(one) for one in errors]
    means: dict[str, Any] = {
        name: None if value is None else sum(row[name] for row in rows) / len(rows)
        for name, value in rows[0].items()
    }
    return Comparison(**means)


def rehearse(
    source: Any,
    columns: Columns,
    area: Area,
    *,
    public: bool,
    epsilon: Number,
    method: Method = DEFAULT,
    noise: Noise | None = None,
) -> HeatmapRelease:
    """The map of `rehearse_heatmap` alone: marked, stamped, charged to nobody.

    Args:
        source: Everything `open_table` takes; its rows must be public or made up.
        columns: What its columns mean.
        area: The public area.
        public: Must be True.
        epsilon: What a release would cost, above 0.
        method: A method, or its name.
        noise: Noise of a known key gives the same map again; a ledger of real data refuses it.

    Returns:
        The map.

    Raises:
        InvalidParameter: The rows were not said to be public, or a parameter is out of range.
        InvalidInput: The rows could not be read.

    """
    return rehearse_exactly(
        source, columns, area, public=public, epsilon=epsilon, method=method, noise=noise
    )[0]


def rehearse_exactly(
    source: Any,
    columns: Columns,
    area: Area,
    *,
    public: bool,
    epsilon: Number,
    method: Method = DEFAULT,
    noise: Noise | None = None,
) -> tuple[HeatmapRelease, FloatArray]:
    """A rehearsal and beside it the exact picture, shares adding up to 1; its errors are not measured.

    Args:
        source: Everything `open_table` takes; its rows must be public or made up.
        columns: What its columns mean.
        area: The public area.
        public: Must be True.
        epsilon: What a release would cost, above 0.
        method: A method, or its name.
        noise: Noise of a known key gives the same map again.

    Returns:
        The map, and the exact shares [row, column], row 0 at the lowest y.

    Raises:
        InvalidParameter: The rows were not said to be public, or a parameter is out of range.
        InvalidInput: The rows could not be read.

    """
    (rehearsed,), (truth,) = _rehearsed(
        Rows(source, columns),
        area,
        public=public,
        epsilon=epsilon,
        method=as_method(method),
        noise=noise,
    )
    return rehearsed, np.asarray(truth)


def _rehearsed(
    rows: Rows,
    area: Area,
    *,
    public: bool,
    epsilon: Number,
    method: MapMethod[Any],
    noise: Noise | None,
    groups: Groups = None,
) -> tuple[tuple[HeatmapRelease, ...], tuple[FloatArray | None, ...]]:
    """The maps, and the exact shares of each; None where nobody was."""
    if not public:
        raise InvalidParameter(
            "a rehearsal shows exact numbers of its rows: it takes rows that are public or made up, said "
            "aloud by `public=True`; nothing was read"
        )
    bound = bound_of_groups(area.grid, groups)
    paid = priced(method, exact(epsilon, name="epsilon"), bound, area)
    ledger = Ledger.rehearsal(paid.loss)
    sums = sum_public_cells(open_rows(rows, area), rows.columns, area, groups=groups)
    masses = int(bound.required("l1", by="a rehearsal") / UNITS)
    maps = release_sums(
        guard_sums(sums, source=ledger.header.source, masses=masses),
        area,
        ledger=ledger,
        epsilon=epsilon,
        method=method,
        groups=("",) if groups is None else groups,
        noise=noise,
        columns=rows.columns,
        price=paid,
    )
    return maps, tuple(_shares(sums, number) for number in range(sums.groups))


def _shares(sums: CellSums, group: int) -> FloatArray | None:
    """The exact picture of one group; None if it is of nobody, and one of several."""
    here = sums.codes // sums.grid.size == group
    if not here.any() and sums.groups > 1:
        return None
    codes = sums.codes[here] - group * sums.grid.size
    return public_tiles(CellSums(sums.grid, codes, sums.units[here])).normalized().image()

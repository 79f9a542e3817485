"""Try a release on public or synthetic rows: a stamped map and its exact errors; no ledger pays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.heatmap.analysis.blur import smooth
from sfumato.heatmap.analysis.metrics import compare
from sfumato.heatmap.export.output_names import Outputs
from sfumato.heatmap.inference.prior import Prior, declared_prior
from sfumato.heatmap.methods.protocol import MapMethod
from sfumato.heatmap.methods.registry import as_method
from sfumato.heatmap.pipeline.charging import DEFAULT, Method, priced, release_sums
from sfumato.heatmap.pipeline.options import (
    HeatmapOptions,
    Rows,
    area_of,
    check_options,
    is_private,
    open_rows,
    read_files,
    rows_of,
    write_options,
)
from sfumato.heatmap.pipeline.outputs import (
    Watch,
    plan_outputs,
    sharpened_maps,
    stated_errors,
    write_maps,
)
from sfumato.heatmap.results import HeatmapRelease, RehearsalResult
from sfumato.heatmap.tiles import public_tiles
from sfumato.privacy import Ledger, Noise
from sfumato.privacy.accounting import Number, exact
from sfumato.records import Columns, bound_of_sums, guard_sums, sum_public_cells
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
    prior: Prior | str | Path | None = None,
    outputs: Outputs = (),
    noise: Noise | None = None,
    watch: Watch | None = None,
    warn: Watch | None = None,
    **options: Unpack[HeatmapOptions],
) -> RehearsalResult:
    """Try a release on PUBLIC or synthetic rows: a stamped map and its exact errors; no ledger pays.

    Args:
        source: As for `release_heatmap`; its rows must be public or made up.
        columns: As for `release_heatmap`.
        area: As for `release_heatmap`.
        public: Must be True: exact numbers about the rows are returned.
        epsilon: What a release would cost, above 0.
        method: A method, or its name.
        prior: A file declared public that the map follows.
        outputs: Files to write.
        noise: Noise of a known key gives the same map again.
        watch: Told of each step.
        warn: Told what went wrong after sampling.
        **options: `user`, `x`, `y`, `weight`, `by`, `one_row_one_user` (columns); `bounds`,
            `bounds_file`, `image`, `levels`, `plane`, `cells` (area); `engine`, `delimiter`,
            `over`, `h3_resolution`, `overwrite`; all of them in `sfumato.heatmap.HeatmapOptions`.

    Returns:
        The map, the exact picture, and the errors of the map.

    Raises:
        InvalidParameter: The rows were not said to be public, or a parameter is out of range.
        InvalidInput: The rows, or a public file, could not be read.

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
    check_options(options, columns, area)
    if is_private(options):
        raise InvalidParameter(
            "the rows of a rehearsal are public, and so are its bounds: `bounds='private'` does not go with "
            "it; nothing was read"
        )
    rows, where = rows_of(source, columns, options), area_of(area, options)
    targets = plan_outputs(
        outputs, None, options=write_options(options), overwrite=options.get("overwrite", False)
    )
    targets.check(where, others=read_files(options, prior), rows=source)
    followed = declared_prior(prior, where, rows=source)
    if watch is not None:
        watch(f"rehearsing on {source if isinstance(source, str | Path) else 'rows'}")
    rehearsed, truth = _rehearsed(
        rows, where, public=public, epsilon=epsilon, method=as_method(method), noise=noise
    )
    (rehearsed,) = sharpened_maps((rehearsed,), followed, warn=warn)
    errors = compare(smooth(truth, BLUR), rehearsed.image(sigma=BLUR), where)
    sharp = compare(truth, rehearsed.image(), where)
    written = write_maps((rehearsed,), targets, watch=watch)
    stated = stated_errors((rehearsed,), warn=warn).get(rehearsed.group)
    return RehearsalResult(
        rehearsed.statement,
        BLUR,
        errors,
        sharp,
        written,
        stated,
        rehearsed,
        truth,
        rehearsed.noise,
    )


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
    way = as_method(method)
    return _rehearsed(
        Rows(source, columns), area, public=public, epsilon=epsilon, method=way, noise=noise
    )


def _rehearsed(
    rows: Rows,
    area: Area,
    *,
    public: bool,
    epsilon: Number,
    method: MapMethod[Any],
    noise: Noise | None,
) -> tuple[HeatmapRelease, FloatArray]:
    if not public:
        raise InvalidParameter(
            "a rehearsal shows exact numbers of its rows: it takes rows that are public or made up, said "
            "aloud by `public=True`; nothing was read"
        )
    paid = priced(method, exact(epsilon, name="epsilon"), bound_of_sums(area.grid, 1), area)
    ledger = Ledger.rehearsal(paid.loss)
    sums = sum_public_cells(open_rows(rows, area), rows.columns, area)
    (rehearsed,) = release_sums(
        guard_sums(sums, source=ledger.header.source),
        area,
        ledger=ledger,
        epsilon=epsilon,
        method=method,
        noise=noise,
        columns=rows.columns,
        price=paid,
    )
    return rehearsed, public_tiles(sums).normalized().image()

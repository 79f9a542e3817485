"""`sfumato audit replay-release`: take users out of a public table, and see what a ledger would open."""

from __future__ import annotations

from typing import Annotated

import typer

from sfumato._random import generator
from sfumato.cli.audit.live import live
from sfumato.cli.console import (
    Json,
    Quiet,
    no_verdict_by_accident,
    sentences,
    show,
)
from sfumato.cli.endings import DONE, FAILED, INCONCLUSIVE
from sfumato.cli.heatmap.options import (
    ENGINE,
    Bounds,
    BoundsFile,
    By,
    Cells,
    Delimiter,
    EngineOption,
    From,
    Image,
    Levels,
    PerPeriod,
    Plane,
    Shape,
    Time,
    To,
    User,
    Values,
    Weight,
    WeightCap,
    WeightStep,
    X,
    Y,
    Zone,
    named_area,
    named_columns,
    named_groups,
)


@no_verdict_by_accident
@sentences
def replay_release(
    input: Annotated[  # noqa: A002
        str,
        typer.Argument(
            help="A CSV, NDJSON or Parquet file, or file::table of SQLite or DuckDB.",
            show_default=False,
        ),
    ],
    public: Annotated[
        bool,
        typer.Option(
            "--public", help="The rows are public or made up; exact numbers may be shown."
        ),
    ] = False,
    user: User = "",
    x: X = "lon",
    y: Y = "lat",
    bounds: Bounds = "",
    bounds_file: BoundsFile = None,
    image: Image = None,
    plane: Plane = False,
    cells: Cells = Shape.square,
    levels: Levels = 8,
    by: By = "",
    values: Values = "",
    time: Time = "",
    start: From = "",
    end: To = "",
    time_zone: Zone = "",
    mass_per_period: PerPeriod = False,
    weight: Weight = "",
    weight_step: WeightStep = "",
    weight_cap: WeightCap = 2**20,
    engine: EngineOption = ENGINE,
    delimiter: Delimiter = ",",
    neighbors: Annotated[
        int, typer.Option(help="How many users are taken out, at most.", min=1)
    ] = 20,
    seed: Annotated[
        int | None, typer.Option(help="The same users again; otherwise others each time.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check how a table is read: take users out of PUBLIC rows, one at a time, and compare the sums.

    Copies of the file without a user are made by Python alone; one user may move the sums by one
    mass. Exit 0 if all held, 1 if one did not, 5 if nobody taken out had been counted. Never run it
    on private rows.
    """
    from sfumato.heatmap import as_text
    from sfumato.heatmap import replay_release as replay

    columns = named_columns(user, x, y, weight, weight_step, weight_cap, "" if time else by, False)
    area = named_area(bounds, bounds_file, image, plane=plane, cells=cells, levels=levels)
    groups = named_groups(
        by, values, time=time, start=start, end=end, zone=time_zone, per_period=mass_per_period
    )
    with live(f"replaying {input}", quiet=quiet or json) as tell:
        found = replay(
            input,
            columns,
            area,
            public=public,
            rng=generator(seed),
            neighbors=neighbors,
            groups=groups,
            engine=engine,
            delimiter=delimiter,
            watch=None if tell is None else lambda who: tell(f"without {who}"),
        )
    show(found.to_json(), as_text(found), json=json)
    raise typer.Exit(INCONCLUSIVE if not found.compared else DONE if found.held else FAILED)

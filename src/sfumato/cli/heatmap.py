"""`sfumato heatmap`: from rows of (user, place) to a private map, its rehearsal, and drawing it again."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import demo, film, heatmap_plan, saved_map, zones
from sfumato.cli.area import (
    Bounds,
    BoundsFile,
    Cells,
    Image,
    Levels,
    Outer,
    Plane,
    Shape,
    described,
    named_area,
)
from sfumato.cli.console import Json, Quiet, say, sentences, show, working
from sfumato.cli.groups import (
    By,
    From,
    PerPeriod,
    Time,
    To,
    Values,
    Zone,
    files_of,
    films_among,
    masses_in,
    named_groups,
    names_of,
    with_time,
)
from sfumato.cli.map_options import (
    H3,
    Alone,
    Connection,
    Delimiter,
    Delta,
    Engine,
    EngineOption,
    Epsilon,
    Input,
    MethodOption,
    Out,
    Over,
    Overwrite,
    Title,
    Top,
    User,
    Users,
    Way,
    Weight,
    WeightCap,
    WeightStep,
    Width,
    X,
    Y,
    keep_apart,
    named_columns,
    named_method,
    write_maps,
)
from sfumato.cli.prior import PriorFile, declared_prior, sharpened_maps
from sfumato.errors import BudgetExceeded, InvalidParameter

if TYPE_CHECKING:
    from sfumato.heatmap import HeatmapRelease
    from sfumato.privacy import Guarded
    from sfumato.records import CellSums
    from sfumato.spaces import Area

BLUR = 0.02  # of the map's side: what forecasts and the leaderboard look through

app = typer.Typer(
    help="Private heatmaps: rows of (user, place) in, a private map out.", no_args_is_help=True
)
app.command("draw")(saved_map.draw)
app.command("hotspots")(saved_map.hotspots)
app.command("film")(film.film)
app.command("totals")(zones.totals)
app.command("plan")(heatmap_plan.plan)
app.command("city")(demo.city)


@app.command()
@sentences
def release(
    input: Input,  # noqa: A002 - the name users see
    epsilon: Epsilon,
    ledger: Annotated[Path, typer.Option(help="The ledger that pays.", show_default=False)],
    out: Out,
    user: User = "",
    x: X = "lon",
    y: Y = "lat",
    bounds: Bounds = "",
    bounds_file: BoundsFile = None,
    image: Image = None,
    outer: Outer = "",
    bounds_share: Annotated[
        str,
        typer.Option(
            help="Share of epsilon that --bounds private may spend.",
            rich_help_panel="Area",
            show_envvar=False,
        ),
    ] = "1/10",
    plane: Plane = False,
    cells: Cells = Shape.square,
    levels: Levels = 8,
    method: MethodOption = Way.zoom,
    width: Width = 20,
    delta: Delta = "1e-6",
    users: Users = 200,
    top: Top = "0.01",
    prior: PriorFile = None,
    weight: Weight = "",
    weight_step: WeightStep = "",
    weight_cap: WeightCap = 2**20,
    by: By = "",
    values: Values = "",
    time: Time = "",
    start: From = "",
    end: To = "",
    time_zone: Zone = "",
    mass_per_period: PerPeriod = False,
    one_row_one_user: Alone = False,
    engine: EngineOption = Engine.duckdb,
    connection: Connection = "",
    delimiter: Delimiter = ",",
    over: Over = None,
    h3_resolution: H3 = None,
    title: Title = "",
    note: Annotated[str, typer.Option(help="A line for the ledger.")] = "",
    overwrite: Overwrite = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Check everything but the data, say the cost, read nothing."
        ),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Release a private map of a table.

    Every user has mass 1, however many rows; the area, the resolution and the colors are public.
    The ledger pays first. Nothing printed or written depends on the rows, except through what was
    paid for.
    """
    from fractions import Fraction

    from sfumato.heatmap import area_prices, check_outputs, find_area, price, release_sums
    from sfumato.privacy import Ledger, PureDP, compose
    from sfumato.privacy.accounting import encode, exact
    from sfumato.privacy.ledger import at_most
    from sfumato.records import bound_of_groups, open_table, sum_cells

    hush = quiet or json
    cost = exact(epsilon, name="epsilon")
    if not cost > 0:
        raise InvalidParameter(f"epsilon must be above 0, got {epsilon}; nothing was charged")
    if not note.isprintable():
        raise InvalidParameter("a note must be printable on one line; nothing was charged")
    groups = named_groups(
        by, values, time=time, start=start, end=end, zone=time_zone, per_period=mass_per_period
    )
    films, names = films_among(out, groups), names_of(groups)
    targets = {name: files_of([path for path in out if path not in films], name) for name in names}
    private = bounds == "private"
    columns = with_time(
        named_columns(
            user, x, y, weight, weight_step, weight_cap, "" if time else by, one_row_one_user
        ),
        groups,
        private_area=private,
    )
    way = named_method(method, width=width, delta=delta, users=users, top=top)
    area = named_area(
        outer if private else bounds, bounds_file, image, plane=plane, cells=cells, levels=levels
    )
    if private and over is not None:
        raise InvalidParameter(
            "an image lies under the area it shows, not one found in it: --over does not go "
            "with --bounds private; nothing was charged"
        )
    files = [*films, *(path for paths in targets.values() for path in paths)]
    check_outputs(files, area, over=over, h3_resolution=h3_resolution, overwrite=overwrite)
    keep_apart(files, [ledger, image, over, bounds_file, prior], input)
    public = declared_prior(prior, area, rows=input)
    budget = Ledger(ledger)
    spent_on_bounds = cost * exact(bounds_share, name="bounds share") if private else Fraction(0)
    if private and not 0 < spent_on_bounds < cost:
        raise InvalidParameter(
            f"the bounds share must lie in (0, 1), got {bounds_share}; nothing was charged"
        )
    bound = bound_of_groups(area.grid, groups, unit=budget.header.unit)
    masses = masses_in(bound)
    costs = [price(way, cost - spent_on_bounds, area, groups=len(names), masses=masses)]
    if private:
        costs = [*area_prices(spent_on_bounds), *costs]
    try:
        budget.afford(*costs, bound=bound)
    except BudgetExceeded as problem:
        if masses == 1:
            raise
        raise BudgetExceeded(f"epsilon {epsilon} in each of {masses} periods: {problem}") from None
    if dry_run:
        left, whole = budget.statement().left, compose(costs)
        frames = {"frames": len(names)} if time else {}
        many = f" for {len(names)} frames" if time else ""
        show(
            {"cost": encode(whole), "left": encode(left), "area": list(area.bounds), **frames},
            f"would cost {whole}{many}; {at_most(left)} left in {ledger}; {described(area)}; nothing was "
            "read or charged",
            json=json,
        )
        return

    table = open_table(
        input,
        engine=engine.value,
        connection=connection or None,
        delimiter=delimiter,
        columns=columns,
    )

    def summed(where: Area) -> Guarded[CellSums]:
        return sum_cells(
            table,
            columns,
            where,
            source=budget.header.source,
            unit=budget.header.unit,
            groups=groups if by else None,
        )

    if private:
        # Where people are is asked of all groups together.
        with working(f"finding the area inside {outer or image or bounds_file}", quiet=hush):
            area = find_area(summed, area, ledger=budget, epsilon=spent_on_bounds)
    say(described(area), quiet=hush)
    with working(f"counting {input} with {engine.value}", quiet=hush):
        guarded = summed(area)
    say(f"releasing by {way.name} from {ledger}", quiet=hush)
    maps = release_sums(
        guarded,
        area,
        ledger=budget,
        epsilon=cost - spent_on_bounds,
        method=way,
        groups=groups,
        area_cost=PureDP(spent_on_bounds) if private else None,
        columns=columns,
        title=title,
        note=note,
    )
    maps = sharpened_maps(maps, public)
    written = write_maps(
        maps, targets, films, over=over, h3_resolution=h3_resolution, overwrite=overwrite, hush=hush
    )
    _finish(maps[0], written, budget, json=json)


@app.command()
@sentences
def rehearse(
    input: Input,  # noqa: A002
    epsilon: Epsilon,
    out: Out,
    public: Annotated[
        bool,
        typer.Option("--public", help="The rows are public or made up; exact errors may be shown."),
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
    method: MethodOption = Way.zoom,
    width: Width = 20,
    delta: Delta = "1e-6",
    users: Users = 200,
    top: Top = "0.01",
    prior: PriorFile = None,
    weight: Weight = "",
    weight_step: WeightStep = "",
    weight_cap: WeightCap = 2**20,
    one_row_one_user: Alone = False,
    engine: EngineOption = Engine.duckdb,
    connection: Connection = "",
    delimiter: Delimiter = ",",
    over: Over = None,
    h3_resolution: H3 = None,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Try a release on PUBLIC data: the map is stamped, and its true errors are printed. No ledger pays.

    Never run it on private data: the errors it prints are exact numbers about the rows.
    """
    from sfumato.heatmap import check_outputs, compare, rehearse_exactly, smooth
    from sfumato.records import open_table

    hush = quiet or json
    columns = named_columns(user, x, y, weight, weight_step, weight_cap, "", one_row_one_user)
    area = named_area(bounds, bounds_file, image, plane=plane, cells=cells, levels=levels)
    check_outputs(out, area, over=over, h3_resolution=h3_resolution, overwrite=overwrite)
    keep_apart(out, [image, over, bounds_file, prior], input)
    followed = declared_prior(prior, area, rows=input)
    say(f"rehearsing on {input}", quiet=hush)
    table = open_table(
        input,
        engine=engine.value,
        connection=connection or None,
        delimiter=delimiter,
        columns=columns,
    )
    way = named_method(method, width=width, delta=delta, users=users, top=top)
    rehearsed, truth = rehearse_exactly(
        table, columns, area, public=public, epsilon=epsilon, method=way
    )
    (rehearsed,) = sharpened_maps((rehearsed,), followed)
    errors = asdict(compare(smooth(truth, BLUR), rehearsed.image(sigma=BLUR), area))
    sharp = asdict(compare(truth, rehearsed.image(), area))
    written = write_maps(
        (rehearsed,),
        {"": out},
        over=over,
        h3_resolution=h3_resolution,
        overwrite=overwrite,
        hush=hush,
    )
    result = {
        "rehearsal": True,
        "statement": rehearsed.statement,
        "written": written,
        "blur": BLUR,
        **errors,
        "without_blur": sharp,
    }
    show(result, _error_lines(errors, sharp), json=json)


def _finish(one: HeatmapRelease, written: list[str], ledger: Any, *, json: bool) -> None:
    from sfumato.privacy.accounting import encode
    from sfumato.privacy.ledger import at_most

    left = ledger.statement().left
    result = {
        "statement": one.statement,
        "method": one.method,
        "parameters": one.parameters,
        "entry": one.receipt.entry.to_json(),
        "left": encode(left),
        "area": list(one.area.bounds),
        "written": written,
    }
    show(result, f"{one.statement}\nleft in {ledger.path}: {at_most(left)}", json=json)


def _error_lines(errors: dict[str, Any], sharp: dict[str, Any]) -> str:
    lines = [
        f"seen through a blur of {100 * BLUR:g}% of the map's side, as plan forecasts it:",
        f"similarity {errors['similarity']:.3f} and correlation {errors['pearson']:.3f}: 1 is a perfect map",
        f"divergence (kl) {errors['kl']:.3f}: 0 is a perfect map",
        f"earth mover's distance {errors['emd']:.4f} of the map's side: 0 is a perfect map",
    ]
    if errors["emd_metres"] is not None:
        lines.append(f"on average, mass is {errors['emd_metres']:,.0f} m off")
    lines.append(
        f"cell by cell, without a blur: similarity {sharp['similarity']:.3f}, correlation "
        f"{sharp['pearson']:.3f}, divergence {sharp['kl']:.3f}"
    )
    return "\n".join(lines)

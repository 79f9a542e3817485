"""`sfumato heatmap`: from rows of (user, place) to a private map, its rehearsal, and drawing it again."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import demo, saved_map
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
from sfumato.errors import InvalidParameter, LedgerMismatch

if TYPE_CHECKING:
    from sfumato.heatmap import HeatmapRelease
    from sfumato.privacy import Guarded
    from sfumato.records import CellSums
    from sfumato.spaces import Area

app = typer.Typer(help="Private heatmaps: rows of (user, place) in, a private map out.", no_args_is_help=True)
app.command("draw")(saved_map.draw)
app.command("hotspots")(saved_map.hotspots)
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
    method: MethodOption = Way.pyramid,
    width: Width = 20,
    delta: Delta = "1e-6",
    users: Users = 200,
    top: Top = "0.01",
    weight: Weight = "",
    weight_step: WeightStep = "",
    weight_cap: WeightCap = 2**20,
    by: Annotated[
        str,
        typer.Option(
            help="Column of maps, e.g. image: one map for each value.",
            rich_help_panel="Rows",
            show_envvar=False,
        ),
    ] = "",
    values: Annotated[
        str,
        typer.Option(
            help="The public values of --by, with commas; {by} in --out names the file.",
            rich_help_panel="Rows",
            show_envvar=False,
        ),
    ] = "",
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
        bool, typer.Option("--dry-run", help="Check everything but the data, say the cost, read nothing.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Release a private map of a table.

    Every user has mass 1, however many rows; the area, the resolution and the colors are public. The ledger
    pays first. Nothing printed or written depends on the rows, except through what was paid for.
    """
    from fractions import Fraction

    from sfumato.heatmap import area_prices, check_outputs, find_area, price, release_sums
    from sfumato.privacy import AddRemoveUser, Ledger, PureDP, compose
    from sfumato.privacy.budget import at_most
    from sfumato.privacy.codec import encode
    from sfumato.privacy.exact import exact
    from sfumato.records import open_table, sum_cells

    hush = quiet or json
    cost = exact(epsilon, name="epsilon")
    if not cost > 0:
        raise InvalidParameter(f"epsilon must be above 0, got {epsilon}; nothing was charged")
    if not note.isprintable():
        raise InvalidParameter("a note must be printable on one line; nothing was charged")
    groups = _groups(by, values)
    targets = {group: _named(out, group) for group in groups}
    columns = named_columns(user, x, y, weight, weight_step, weight_cap, by, one_row_one_user)
    way = named_method(method, width=width, delta=delta, users=users, top=top)
    private = bounds == "private"
    area = named_area(
        outer if private else bounds, bounds_file, image, plane=plane, cells=cells, levels=levels
    )
    if private and over is not None:
        raise InvalidParameter(
            "an image lies under the area it shows, not one found in it: --over does not go "
            "with --bounds private; nothing was charged"
        )
    files = [path for paths in targets.values() for path in paths]
    check_outputs(files, area, over=over, h3_resolution=h3_resolution, overwrite=overwrite)
    keep_apart(files, [ledger, image, over, bounds_file], input)
    budget = Ledger(ledger)
    if budget.header.neighbors != AddRemoveUser():
        raise LedgerMismatch(
            f"{ledger} accounts for '{budget.header.neighbors}', a map for '{AddRemoveUser()}'; "
            "nothing was charged"
        )
    spent_on_bounds = cost * exact(bounds_share, name="bounds share") if private else Fraction(0)
    if private and not 0 < spent_on_bounds < cost:
        raise InvalidParameter(
            f"the bounds share must lie in (0, 1), got {bounds_share}; nothing was charged"
        )
    costs = [price(way, cost - spent_on_bounds, area, groups=len(groups))]
    if private:
        costs = [*area_prices(spent_on_bounds), *costs]
    budget.afford(*costs)
    if dry_run:
        left, whole = budget.statement().left, compose(costs)
        show(
            {"cost": encode(whole), "left": encode(left), "area": list(area.bounds)},
            f"would cost {whole}; {at_most(left)} left in {ledger}; {described(area)}; nothing was read or "
            "charged",
            json=json,
        )
        return

    table = open_table(
        input, engine=engine.value, connection=connection or None, delimiter=delimiter, columns=columns
    )

    def summed(where: Area) -> Guarded[CellSums]:
        return sum_cells(
            table,
            columns,
            where,
            source=budget.header.source,
            unit=budget.header.unit,
            groups=list(groups) if by else None,
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
    written = write_maps(
        maps, targets, over=over, h3_resolution=h3_resolution, overwrite=overwrite, hush=hush
    )
    _finish(maps[0], written, budget, json=json)


@app.command()
@sentences
def rehearse(
    input: Input,  # noqa: A002
    epsilon: Epsilon,
    out: Out,
    public: Annotated[
        bool, typer.Option("--public", help="The rows are public or made up; exact errors may be shown.")
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
    method: MethodOption = Way.pyramid,
    width: Width = 20,
    delta: Delta = "1e-6",
    users: Users = 200,
    top: Top = "0.01",
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
    from sfumato.heatmap import check_outputs, compare, rehearse_exactly
    from sfumato.records import open_table

    hush = quiet or json
    columns = named_columns(user, x, y, weight, weight_step, weight_cap, "", one_row_one_user)
    area = named_area(bounds, bounds_file, image, plane=plane, cells=cells, levels=levels)
    check_outputs(out, area, over=over, h3_resolution=h3_resolution, overwrite=overwrite)
    keep_apart(out, [image, over, bounds_file], input)
    say(f"rehearsing on {input}", quiet=hush)
    table = open_table(
        input, engine=engine.value, connection=connection or None, delimiter=delimiter, columns=columns
    )
    way = named_method(method, width=width, delta=delta, users=users, top=top)
    rehearsed, truth = rehearse_exactly(table, columns, area, public=public, epsilon=epsilon, method=way)
    errors = asdict(compare(truth, rehearsed.image(), area))
    written = write_maps(
        (rehearsed,), {"": out}, over=over, h3_resolution=h3_resolution, overwrite=overwrite, hush=hush
    )
    result = {"rehearsal": True, "statement": rehearsed.statement, "written": written, **errors}
    show(result, _error_lines(errors), json=json)


def _groups(by: str, values: str) -> tuple[str, ...]:
    if bool(by) != bool(values):
        raise InvalidParameter(
            "--by needs its public values in --values, and --values a column in --by; nothing was charged"
        )
    if not by:
        return ("",)
    groups = tuple(value.strip() for value in values.split(","))
    if len(set(groups)) < len(groups) or "" in groups:
        raise InvalidParameter(f"--values must differ and not be empty, got {values!r}; nothing was charged")
    return groups


def _named(out: list[Path], group: str) -> list[Path]:
    """Where a group's files go: {by} stands for its name."""
    if not group:
        return out
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in group)
    if any("{by}" not in path.name for path in out):
        raise InvalidParameter(
            "with --by every --out needs {by} in its name, e.g. map-{by}.png; nothing was charged"
        )
    return [path.with_name(path.name.replace("{by}", safe)) for path in out]


def _finish(one: HeatmapRelease, written: list[str], ledger: Any, *, json: bool) -> None:
    from sfumato.privacy.budget import at_most
    from sfumato.privacy.codec import encode

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


def _error_lines(errors: dict[str, Any]) -> str:
    lines = [
        f"similarity {errors['similarity']:.3f} and correlation {errors['pearson']:.3f}: 1 is a perfect map",
        f"divergence (kl) {errors['kl']:.3f}: 0 is a perfect map",
        f"earth mover's distance {errors['emd']:.4f} of the map's side: 0 is a perfect map",
    ]
    if errors["emd_metres"] is not None:
        lines.append(f"on average, mass is {errors['emd_metres']:,.0f} m off")
    return "\n".join(lines)

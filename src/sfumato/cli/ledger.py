"""`sfumato ledger`: make, show and verify privacy ledgers."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.console import Json, Quiet, fail, say, sentences, show
from sfumato.cli.endings import FAILED
from sfumato.errors import InvalidParameter, LedgerDamaged, LedgerMismatch

if TYPE_CHECKING:
    from sfumato.privacy import Loss, Neighbors, Release

app = typer.Typer(
    help="Make, show and verify privacy ledgers: who paid, how much is left.", no_args_is_help=True
)

File = Annotated[Path, typer.Argument(help="The ledger file.", show_default=False, readable=False)]


class Relation(StrEnum):
    """Names of neighbor relations on the command line."""

    add_remove = "add-remove"
    replace_ = "replace"
    moved_mass = "moved-mass"
    swapped_cells = "swapped-cells"
    flipped_edge = "flipped-edge"


class Trust(StrEnum):
    """Who adds the noise: a trusted collector, or each device before it sends."""

    central = "central"
    local = "local"


@app.command()
@sentences
def create(
    file: File,
    unit: Annotated[
        str,
        typer.Option(
            help="What is protected, e.g. user, household, user-day (which pays for maps of days only)."
        ),
    ],
    source: Annotated[str, typer.Option(help="Name of the data source this budget is for.")],
    epsilon: Annotated[str, typer.Option(help="Budget: total epsilon, e.g. 1 or 1/3.")] = "",
    delta: Annotated[
        str, typer.Option(help="Budget: total delta, e.g. 1e-6; needed for Gaussian noise.")
    ] = "0",
    rho: Annotated[
        str, typer.Option(help="Budget: total rho of zCDP, instead of epsilon and delta.")
    ] = "",
    neighbors: Annotated[
        Relation, typer.Option(help="Between which data sets nobody can tell.")
    ] = Relation.add_remove,
    radius: Annotated[str, typer.Option(help="Earth mover's distance, for moved-mass.")] = "",
    metric: Annotated[str, typer.Option(help="Name of the metric, for moved-mass.")] = "",
    upper: Annotated[str, typer.Option(help="Largest value of a cell, for swapped-cells.")] = "",
    model: Annotated[
        Trust, typer.Option(help="Who adds the noise; local pays for nothing that was gathered.")
    ] = Trust.central,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a new ledger with a privacy budget; an existing file is never touched."""
    from sfumato.privacy import Ledger

    budget = budget_of(epsilon, delta, rho)
    relation = _relation(neighbors, radius=radius, metric=metric, upper=upper)
    ledger = Ledger.create(
        file, budget, unit=unit, source=source, neighbors=relation, model=model.value
    )
    say(f"made {file} with {budget} for each {unit} of {source}", quiet=quiet or json)
    if json:
        show({"ledger": str(file), **ledger.statement().to_json()}, None, json=True)


@app.command("show")
@sentences
def show_(file: File, json: Json = False) -> None:
    """Show the budget, what is left, and every entry."""
    from sfumato.privacy import Ledger
    from sfumato.privacy.ledger import render_statement

    statement = Ledger(file).statement()
    table = None if json else render_statement(statement, file)
    show({"ledger": str(file), **statement.to_json()}, table, json=json)


@app.command()
@sentences
def verify(
    file: File,
    releases: Annotated[
        list[Path] | None, typer.Argument(help="More releases, as after --against.", hidden=True)
    ] = None,
    against: Annotated[
        list[Path] | None,
        typer.Option(help="Published release(s) (JSON) whose entries must be in the ledger."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check the hash chain, and that published releases were paid for; exit 1 if not.

    A copied, rolled back or wholly rewritten file cannot be detected from itself: keep published
    releases and check against them. What a release promises is checked; its values were drawn after
    the entry, and cannot be.
    """
    from sfumato.privacy.ledger import render_check, verify_ledger

    published = list(dict.fromkeys([*(against or []), *(releases or [])]))
    receipts = [(path, _receipts(path)) for path in published]
    try:
        found = verify_ledger(file, receipts)
    except (LedgerDamaged, LedgerMismatch) as problem:
        fail(str(problem), code=FAILED, json=json)
    if not quiet or json:
        show(found.to_json(), render_check(found), json=json)


def _receipts(path: Path) -> list[Release[Any]]:
    """The receipts in a published file: a release, a map made of one, or readings with one for each time."""
    from sfumato.heatmap import FORMAT as MAP
    from sfumato.heatmap import read_heatmap
    from sfumato.privacy import read_release
    from sfumato.sensing.release import FORMAT as READINGS
    from sfumato.sensing.release import read_readings

    try:
        with path.open(encoding="utf-8") as file:
            head = file.read(100)
    except (OSError, UnicodeDecodeError):
        head = ""
    if f'"{READINGS}"' in head:
        return [snapshot.release for snapshot in read_readings(path).snapshots]
    return [read_heatmap(path).receipt if f'"{MAP}"' in head else read_release(path)]


def budget_of(epsilon: str, delta: str, rho: str) -> Loss:
    """A budget or cost from what was asked for: epsilon and delta, or rho."""
    from sfumato.privacy import ZCDP, ApproxDP, PureDP

    if bool(epsilon) == bool(rho):
        raise InvalidParameter(
            "give the budget as --epsilon (with --delta for Gaussian noise) or as --rho, not both"
        )
    if rho:
        if delta != "0":
            raise InvalidParameter("--rho stands alone: zCDP implies a delta for every epsilon")
        return ZCDP(rho)
    loss = ApproxDP(epsilon, delta)
    return loss if loss.delta else PureDP(epsilon)


def _relation(name: Relation, *, radius: str, metric: str, upper: str) -> Neighbors:
    from sfumato.privacy import AddRemoveUser, FlippedEdge, MovedMass, ReplaceUser, SwappedCells

    if name is not Relation.moved_mass and (radius or metric):
        raise InvalidParameter("--radius and --metric go with --neighbors moved-mass")
    if name is Relation.moved_mass and not (radius and metric):
        raise InvalidParameter("--neighbors moved-mass needs --radius and --metric")
    if name is Relation.swapped_cells and not upper:
        raise InvalidParameter("--neighbors swapped-cells needs --upper")
    if name is not Relation.swapped_cells and upper:
        raise InvalidParameter("--upper goes with --neighbors swapped-cells")
    match name:
        case Relation.add_remove:
            return AddRemoveUser()
        case Relation.replace_:
            return ReplaceUser()
        case Relation.moved_mass:
            return MovedMass(radius, metric)
        case Relation.swapped_cells:
            return SwappedCells(upper)
        case Relation.flipped_edge:
            return FlippedEdge()

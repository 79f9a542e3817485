"""`sfumato ledger`: make, show, verify, move, close and convert privacy ledgers."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.console import Json, Quiet, fail, say, sentences, show
from sfumato.cli.endings import FAILED, LOW
from sfumato.errors import InvalidParameter, LedgerDamaged, LedgerMismatch

if TYPE_CHECKING:
    from sfumato.privacy import Loss, Neighbors, Release
    from sfumato.privacy.accounting import Model

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
    """Who adds the noise: a trusted collector, each device before it sends, or parties or devices in shares."""

    central = "central"
    local = "local"
    joint = "joint"
    shuffled = "shuffled"


@app.command()
@sentences
def create(
    file: File,
    unit: Annotated[
        str,
        typer.Option(
            help="What is protected, e.g. user, household, or user-day: then the budget is for each day, "
            "and pays for maps of days only."
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
        Trust,
        typer.Option(
            help="Who adds the noise; local pays for nothing that was gathered, joint for nothing but sums of "
            "several parties, shuffled for nothing but sums of devices behind a shuffler."
        ),
    ] = Trust.central,
    parties: Annotated[
        int | None, typer.Option(help="How many parties add shares of the noise, for joint.")
    ] = None,
    curious: Annotated[
        int | None,
        typer.Option(
            help="How many of them may pool what they know, for joint: 1, unless given; 0 protects against "
            "outsiders only. For shuffled: how many devices of a batch others may read; 0, unless given."
        ),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(help="How many devices a shuffler mixes at least, for shuffled."),
    ] = None,
    devices: Annotated[
        int | None,
        typer.Option(
            help="How many devices take part at most, for shuffled; as many as a batch, unless given.",
            min=2,
        ),
    ] = None,
    team: Annotated[
        list[str] | None,
        typer.Option(
            help="A sub-budget, NAME=EPSILON (or RHO; with its share of delta), again for each team."
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a new ledger with a privacy budget; an existing file is never touched."""
    from sfumato.privacy import Ledger

    budget = budget_of(epsilon, delta, rho)
    relation = _relation(neighbors, radius=radius, metric=metric, upper=upper)
    ledger = Ledger.create(
        file,
        budget,
        unit=unit,
        source=source,
        neighbors=relation,
        model=_model(model, parties=parties, curious=curious, batch=batch, devices=devices),
        teams=_teams(team or []),
    )
    say(f"made {file} with {budget} for each {unit} of {source}", quiet=quiet or json)
    if json:
        show({"ledger": str(file), **ledger.statement().to_json()}, None, json=True)


def _model(
    trust: Trust,
    *,
    parties: int | None,
    curious: int | None,
    batch: int | None,
    devices: int | None,
) -> Model:
    """The trust model that the options state; refused where some of them say nothing."""
    from sfumato.privacy import Joint, Shuffled

    own = {Trust.joint: {"parties", "curious"}, Trust.shuffled: {"batch", "devices", "curious"}}
    given = {"parties": parties, "curious": curious, "batch": batch, "devices": devices}
    for name in given:
        if given[name] is not None and name not in own.get(trust, ()):
            of = " and ".join(f"the {one.value} model" for one in own if name in own[one])
            raise InvalidParameter(
                f"`{name}` is of {of}, the model is {trust.value}; nothing was made"
            )
    if trust is Trust.joint:
        if parties is None:
            raise InvalidParameter(
                "the joint model needs the number of `parties`; nothing was made"
            )
        return Joint(parties, 1 if curious is None else curious)
    if trust is Trust.shuffled:
        if batch is None:
            raise InvalidParameter(
                "the shuffled model needs a `batch`, the fewest devices that are mixed; nothing was made"
            )
        return Shuffled(batch, devices or batch, curious or 0)
    return "local" if trust is Trust.local else "central"


@app.command("show")
@sentences
def show_(
    file: File,
    last: Annotated[
        int | None,
        typer.Option(
            help="The last entries only, read from the last checkpoint on: fast for a long ledger.",
            min=0,
        ),
    ] = None,
    fail_below: Annotated[
        str,
        typer.Option(
            help="End with 6 if less is left than this: epsilon, or rho where that is left."
        ),
    ] = "",
    team: Annotated[str, typer.Option(help="Whose budget --fail-below is about.")] = "",
    period: Annotated[
        str,
        typer.Option(
            help="Which period it is about, e.g. 2026-01-31; one not charged, by default."
        ),
    ] = "",
    json: Json = False,
) -> None:
    """Show the budget, what is left of it, of teams and of periods, and every entry."""
    from sfumato.privacy import Ledger
    from sfumato.privacy.ledger import render_statement
    from sfumato.privacy.runs import undelivered_runs

    ledger = Ledger(file)
    statement = ledger.statement() if last is None else ledger.recent(last)
    statement.left_of(team, period)  # refuses names that are none, also where no limit is given
    low = bool(fail_below) and statement.is_below(fail_below, team, period)
    waiting = undelivered_runs(ledger)
    table = None if json else render_statement(statement, file, undelivered=waiting)
    told = {"ledger": str(file), **statement.to_json()}
    show(told | {"undelivered": [one.to_json() for one in waiting]}, table, json=json)
    if low:
        raise typer.Exit(LOW)


@app.command()
@sentences
def move(
    file: File,
    to: Annotated[
        Path | None, typer.Argument(help="Where it goes; nothing, to say it is here now.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Move a ledger with the counts beside it; or say that this file, found elsewhere, is the ledger now.

    The file that was moved is closed and names its successor, so that it cannot be spent again. A
    copy is refused until one of the copies is said to be the ledger: say it of one only.
    """
    from sfumato.privacy import Ledger

    moved = Ledger(file).move(to)
    said = f"moved {file} to {to}" if to is not None else f"the ledger is {file} now"
    say(said, quiet=quiet or json)
    if json:
        show({"ledger": str(moved.path), **moved.recent().to_json()}, None, json=True)


@app.command()
@sentences
def close(
    file: File,
    note: Annotated[str, typer.Option(help="Why: a line for the ledger.")] = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Close a ledger for good: it can be read and verified, and pays for nothing any more."""
    from sfumato.privacy import Ledger

    ledger = Ledger(file)
    ledger.close(note)
    say(f"closed {file}: it pays for nothing any more", quiet=quiet or json)
    if json:
        show({"ledger": str(file), **ledger.recent().to_json()}, None, json=True)


@app.command()
@sentences
def convert(file: File, json: Json = False, quiet: Quiet = False) -> None:
    """Bring a ledger of format 1 to format 2, as its next charge would; entries keep their hashes."""
    from sfumato.privacy import Ledger

    ledger = Ledger(file)
    before = ledger.recent(0).format
    ledger.convert()
    said = f"{file} is of format 2" + (" already" if before == 2 else " now")
    say(said, quiet=quiet or json)
    if json:
        show({"ledger": str(file), **ledger.recent().to_json()}, None, json=True)


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


def _teams(words: list[str]) -> dict[str, str]:
    """Sub-budgets from words like red=1/2."""
    found = {}
    for word in words:
        name, equals, share = word.rpartition("=")
        if not (name and equals and share) or name in found:
            raise InvalidParameter(
                f"a team is NAME=EPSILON, each name once, got {word!r}; nothing was made"
            )
        found[name] = share
    return found


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

"""Price a release once, let the ledger charge it, and make maps of what it opened."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato.errors import BudgetExceeded, InvalidParameter, SolverFailed
from sfumato.heatmap.accuracy.noise_mark import EmptyMaps
from sfumato.heatmap.methods.protocol import MapEstimate, MapMethod, maps_of
from sfumato.heatmap.methods.registry import as_method
from sfumato.heatmap.methods.shuffled import method_inside
from sfumato.heatmap.private_map import HeatmapRelease
from sfumato.privacy import (
    UNITS,
    ZCDP,
    Bound,
    Guarded,
    Ledger,
    Loss,
    Mechanism,
    Noise,
    PureDP,
    Release,
)
from sfumato.privacy.accounting import Number, canonical, exact, parameters
from sfumato.privacy.ledger import Table
from sfumato.records import CellSums, Columns, Groups, about_group, bound_of_sums, names_of
from sfumato.spaces import Area

Method = str | MapMethod[Any]

# Some gigabytes of noise and a few minutes: what a machine can be asked for once a map is paid for.
MOST_DRAWS = 2**25
DEFAULT = "zoom"

SUMS_REQUEST = {"kind": "sums/1"}


@dataclass(frozen=True, slots=True)
class Price:
    """The mechanism of a map and what is charged for it: worked out once, before a row is read.

    `parameters` are those of the method, as its maps are saved with them.
    """

    mechanism: Mechanism[CellSums, Any]
    loss: Loss
    parameters: dict[str, Any]


def release_sums(
    guarded: Guarded[CellSums],
    area: Area,
    *,
    ledger: Ledger,
    epsilon: Number,
    method: Method = DEFAULT,
    groups: Groups = ("",),
    noise: Noise | None = None,
    area_cost: PureDP | None = None,
    columns: Columns | None = None,
    title: str = "",
    note: str = "",
    price: Price | None = None,
    team: str = "",
    once: str = "",
    other_table: bool = False,
) -> tuple[HeatmapRelease, ...]:
    """One private map for each group of guarded sums, as one release.

    It costs at most epsilon for each mass of UNITS by which the sums can move: once, unless users
    have mass per period or value. `area_cost` is what `find_area` was paid for the area, if it was asked,
    and `columns` what was counted: the maps say so. `price` is what was planned, if it was.

    Args:
        guarded: Sums of the groups on the grid of the area, one group after another.
        area: The public area.
        ledger: The ledger that pays.
        epsilon: What the maps may cost for each mass, above 0.
        method: A method, or its name.
        groups: The names of the groups, or the values, periods or pairs.
        noise: Where the noise comes from; the system, if none is given.
        area_cost: What finding the area cost, if it was found.
        columns: What was counted.
        title: What the maps are called.
        note: A line for the ledger.
        price: What was planned, if it was; else it is priced here.
        team: Whose sub-budget pays, in a ledger with teams.
        once: A key under which such sums are released once.
        other_table: Whether another table than before holds the same people.

    Returns:
        One map for each group, in order.

    Raises:
        BudgetExceeded: The ledger has not enough left; nothing was charged.
        ReleasedAlready: The key was used; nothing was charged again.
        InvalidParameter: The sums are not those of the groups and the area.
        SolverFailed: No map could be made of what was paid for; it is kept beside the ledger.

    """
    names = names_of(groups)
    if guarded.bound.size != len(names) * area.grid.size:
        raise InvalidParameter(
            f"sums of {len(names)} group(s) on {area.grid.side} x {area.grid.side} cells are wanted, "
            f"got {guarded.bound.size} entries; nothing was charged"
        )
    way = as_method(method)
    if price is None:
        price = priced(way, exact(epsilon, name="epsilon"), guarded.bound, area)
    pay = price.loss if isinstance(price.loss, PureDP) else None
    receipt = ledger.release(
        price.mechanism,
        guarded,
        noise=noise,
        pay=pay,
        note=note,
        team=team,
        other_table=other_table,
        request=SUMS_REQUEST,
        once=once,
    )
    try:
        made = maps_of_receipt(
            receipt,
            area,
            method=way,
            price=price,
            groups=groups,
            area_cost=area_cost,
            columns=columns,
            title=title,
        )
    except SolverFailed as problem:
        number = receipt.entry.number
        raise SolverFailed(
            f"{problem}; they are paid for: Ledger({str(ledger.path)!r}).recover({number})"
        ) from problem
    if not ledger.header.rehearsal:
        ledger.delivered(receipt.entry.number)
    return made


def maps_of_receipt(
    receipt: Release[Any],
    area: Area,
    *,
    method: MapMethod[Any],
    price: Price,
    groups: Groups,
    area_cost: PureDP | None = None,
    columns: Columns | None = None,
    title: str = "",
) -> tuple[HeatmapRelease, ...]:
    """The maps that are made of what was released: this costs nothing."""
    names = names_of(groups)
    counted = {} if columns is None else parameters(columns)
    nothing = EmptyMaps(method, price.mechanism, area)
    try:
        made: tuple[MapEstimate, ...] = maps_of(method, receipt.value, price.mechanism, area)
        return tuple(
            HeatmapRelease(
                tiles=one.tiles,
                area=area,
                method=method.name,
                parameters=dict(price.parameters),
                receipt=receipt,
                group=group,
                area_cost=area_cost,
                counted=counted | about_group(groups, number),
                title=title,
                posterior=one.posterior,
                noise_scale=one.noise_scale,
                nothing=nothing,
            )
            for number, (group, one) in enumerate(zip(names, made, strict=True))
        )
    except Exception as problem:
        said = str(problem) or type(problem).__name__
        raise SolverFailed(f"no map could be made of its counts ({said})") from problem


def price(method: Method, epsilon: Number, area: Area, *, groups: int = 1, masses: int = 1) -> Loss:
    """What a release will be charged, known before any row is read: epsilon for each mass a unit has.

    Args:
        method: A method, or its name.
        epsilon: What the maps may cost, above 0.
        area: The public area.
        groups: How many maps share the release.
        masses: How many masses of 1 one unit of the ledger can have.

    Returns:
        The loss that is charged.

    Raises:
        InvalidParameter: A parameter is out of range, or the map would draw too many numbers.

    """
    bound = bound_of_sums(area.grid, groups, masses=masses)
    return priced(as_method(method), exact(epsilon, name="epsilon"), bound, area).loss


def priced(method: MapMethod[Any], epsilon: Fraction, bound: Bound, area: Area) -> Price:
    """The mechanism and what is charged for it; refused when it could not be run after the charge."""
    # Each mass of UNITS pays epsilon: the noise of every map is then that of one map at epsilon.
    epsilon *= bound.required("l1", by="a map") / UNITS
    public = _public_parameters(method)
    mechanism = method.mechanism(epsilon, bound, area.grid)
    if mechanism.draws(bound) > MOST_DRAWS:
        raise InvalidParameter(
            f"a map may draw at most {MOST_DRAWS} numbers, this one could {mechanism.draws(bound)}; ask for "
            "fewer levels, maps or cells a level; nothing was charged"
        )
    cost = mechanism.cost(bound)
    if isinstance(cost, ZCDP):
        raise InvalidParameter(
            f"a map is asked for by epsilon: the mechanism of a method costs epsilon, or epsilon and delta, "
            f"that of {method.name} costs {cost}; nothing was charged"
        )
    if cost.epsilon > epsilon:
        raise InvalidParameter(
            f"a method costs at most the epsilon asked for, {PureDP(epsilon)}, {method.name} would cost "
            f"{cost}; nothing was charged"
        )
    return Price(mechanism, PureDP(epsilon) if isinstance(cost, PureDP) else cost, public)


def _public_parameters(method: MapMethod[Any]) -> dict[str, Any]:
    """The parameters of a method as its maps are saved with them; refused where they cannot be."""
    try:
        # A map with noise in shares is saved as one of the method inside: its guarantee says whose.
        found = parameters(method_inside(method))
        canonical(found)
    except Exception as problem:
        raise InvalidParameter(
            "a method is a frozen dataclass whose fields are public and can be saved as JSON, got "
            f"{type(method).__name__} ({problem}); nothing was charged"
        ) from problem
    return found


def check_affordable(
    budget: Ledger,
    costs: list[Loss],
    bound: Bound,
    epsilon: Number,
    *,
    team: str = "",
    table: Table | None = None,
    other_table: bool = False,
    what: str = "periods",
) -> None:
    """Refuse costs that the ledger would refuse, before any row is read."""
    try:
        budget.afford(*costs, bound=bound, team=team, table=table, other_table=other_table)
    except BudgetExceeded as problem:
        masses = int(bound.required("l1", by="a map") / UNITS)
        if masses == 1:
            raise
        raise BudgetExceeded(f"epsilon {epsilon} in each of {masses} {what}: {problem}") from None


def check_noise(noise: Noise | None, budget: Ledger) -> None:
    """Refuse noise that a real ledger would refuse, before any row is read or an area paid for."""
    if noise is not None and noise.known and not budget.header.rehearsal:
        raise InvalidParameter(
            "noise that can be drawn again is for rehearsals only; nothing was read or charged"
        )

"""`sfumato sense track`: sources followed through several rounds of readings, and what all rounds cost."""

from __future__ import annotations

import json as json_
from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sfumato.cli.chance import chance
from sfumato.cli.console import Json, Quiet, sentences, show, working
from sfumato.cli.sense_answer import seed_of
from sfumato.cli.sense_noisy import Noisy, in_time, joined, moments_of
from sfumato.cli.sense_outputs import check_outputs
from sfumato.errors import InvalidInput, InvalidParameter, NotComparable
from sfumato.files import write_file

if TYPE_CHECKING:
    from sfumato.privacy import Loss
    from sfumato.sensing import Readings, Site, Track

FORMAT = "sfumato-track/1"
DELTA = "1e-6"  # at which a rho is told as an epsilon
ROWS = 40
UNEVEN = 1.5  # times the shortest gap between rounds: longer ones are told
DOUBT = 0.1  # with one source fewer, readings as many times as likely: from here on it is told


@sentences
def track(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Noisy readings (.json) of one site, as `sense release` wrote them: of several "
            "times, in one file or in several.",
            show_default=False,
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="A new .json file for the track.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw it, on a line or in a plane: a .png file.")
    ] = None,
    count: Annotated[
        int, typer.Option(help="How many sources there are: it is not learned.", min=1)
    ] = 1,
    speed: Annotated[
        float | None,
        typer.Option(
            help="How far a source goes in a round, as a deviation; otherwise it is learned."
        ),
    ] = None,
    upper: Annotated[float, typer.Option(help="Largest mass of one source.")] = 1.0,
    seed: Annotated[
        int | None,
        typer.Option(help="Chance of the draws, for several sources; else that of the readings."),
    ] = None,
    without_suspects: Annotated[
        bool,
        typer.Option(
            "--without-suspects",
            help="Leave out sensors that the others contradict: dead or drifting ones.",
        ),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files of --out and --plot.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Follow sources that move: where each was in each round, and how sure that is.

    Costs nothing beyond what the rounds have cost; that is added up from their receipts, because
    whoever is followed is in all of them.
    """
    import numpy as np

    from sfumato.sensing import read_readings, suspects
    from sfumato.sensing import track as follow
    from sfumato.sensing.diagnostics import rows_without
    from sfumato.sensing.model import part_of_site
    from sfumato.sensing.model.operators import part_of

    hush = quiet or json
    check_outputs([out] if out else [], {".json"}, reads=files, overwrite=overwrite)
    check_outputs([plot] if plot else [], {".png"}, reads=files, overwrite=overwrite)
    read = [read_readings(path) for path in files]
    rounds = in_order(read)
    site = rounds[0].site
    if plot is not None:
        _drawable(site)
    values = np.array([one.values for one in rounds])
    sigmas = [one.sigma or 0.0 for one in rounds]
    rng = chance(seed_of(values) if seed is None else seed)
    with working(f"looking for a path through {len(rounds)} rounds", quiet=hush):
        operator = part_of_site(site, rounds[0].names)
        bad = suspects(operator, values, sigma=sigmas, upper=upper)
        if bad and without_suspects:
            rows = rows_without(operator, bad)
            operator, values = part_of(operator, rows), values[:, rows]
        found = follow(
            operator, values, sigma=sigmas, speed=speed, upper=upper, count=count, rng=rng
        )
    result = _result(found, rounds, losses_of(read), upper=upper)
    done = (
        "and was left out" if without_suspects else "and was used all the same: --without-suspects"
    )
    result |= {
        "suspects": [asdict(one) for one in bad],
        "left_out": without_suspects,
        "remarks": [*(f"{one.said} {done}" for one in bad), *uneven([one.time for one in rounds])],
    }
    if out is not None:
        write_file(out, json_.dumps(result, indent=1) + "\n", overwrite=overwrite)
    if plot is not None:
        write_file(plot, _draw(found, rounds, result), overwrite=overwrite)
    show(result, _told(result), json=json)


def in_order(read: list[Readings]) -> list[Noisy]:
    """One round for each time, in the order of the times: as dates, as numbers, or as they come.

    Readings without a time are rounds in the order of the files.
    """
    times = list(dict.fromkeys(snapshot.time for one in read for snapshot in one.snapshots))
    if times == [""]:
        if any(len(one.snapshots) > 1 for one in read):
            raise InvalidInput("a file has several readings without a time; nothing was followed")
        _differ(read)
        rounds = [joined([one], time="", average=False) for one in read]
    else:
        if "" in times:
            raise InvalidInput("some readings have a time and some have none; nothing was followed")
        rounds = [joined(read, time=time, average=False) for time in in_time(times)]
    if any(one.names != rounds[0].names for one in rounds):
        raise InvalidInput("other sensors were read at other times; nothing was followed")
    if len(rounds) < 2:
        raise InvalidInput(
            "one round is no track: give readings of several times; `sense recover` is for one"
        )
    return rounds


def _differ(read: list[Readings]) -> None:
    """Refuse readings of other sites, and the same reading twice."""
    if any(other.site.to_json() != read[0].site.to_json() for other in read[1:]):
        raise InvalidInput("the files are of different sites; nothing was followed")
    receipts = [
        (one.release.ledger, one.release.entry.hash) for other in read for one in other.snapshots
    ]
    if len(set(receipts)) < len(receipts):
        raise InvalidInput("a reading is there twice, with the same receipt; nothing was followed")


def losses_of(read: list[Readings]) -> list[Loss | None]:
    """What each round cost, by its receipts; None where they do not say one number.

    Devices that read at one time share one promise, so a time costs what its dearest receipt says.
    """
    times: dict[str, list[Loss]] = {}
    for number, snapshot in enumerate(snapshot for one in read for snapshot in one.snapshots):
        times.setdefault(snapshot.time or str(number), []).append(snapshot.guarantee.loss)
    return [dearest(losses) for losses in times.values()]


def dearest(losses: list[Loss]) -> Loss | None:
    """The loss of the least noise among those of one time: more noise costs no more than it.

    An epsilon with a delta is compared by the deviation it takes: neither number alone says which
    is dearer. None for losses of different kinds, and for such as no Gaussian noise has.
    """
    from sfumato.privacy import ZCDP, ApproxDP, gaussian_sigma

    different = list(dict.fromkeys(losses))
    if len(different) == 1:
        return different[0]
    if len({type(loss) for loss in different}) > 1:
        return None

    def noise(loss: Loss) -> float | Fraction:
        if isinstance(loss, ApproxDP):
            return gaussian_sigma(loss.epsilon, loss.delta)
        return -(loss.rho if isinstance(loss, ZCDP) else loss.epsilon)

    try:
        return min(different, key=noise)
    except InvalidParameter:  # an epsilon or a delta of 0
        return None


def cost_of(losses: Sequence[Loss | None]) -> tuple[Loss | None, str]:
    """What all rounds cost one source that was there all the time: as ledgers add it up, and in words.

    Rounds that all cost the same have a tighter statement too, which the words end with, rounded
    up.
    """
    from sfumato.privacy import ZCDP, ApproxDP, compose
    from sfumato.privacy.accounting import exact, plain
    from sfumato.sensing import cost_after

    head = f"{len(losses)} rounds together, for a source that was there in all: "
    known = [loss for loss in losses if loss is not None]
    if len(known) < len(losses):
        return None, f"{head}devices of one round promised in ways that one number does not bound"
    try:
        whole = compose(known)
    except (NotComparable, InvalidParameter):  # of different kinds, or with deltas that add up to 1
        return None, f"{head}their costs do not add up to a promise"
    words = str(whole)
    same = known[0]
    if isinstance(same, ZCDP | ApproxDP) and all(loss == same for loss in known):
        delta = same.delta if isinstance(same, ApproxDP) else exact(DELTA)
        (row,) = cost_after(same, [len(known)], delta=delta)
        words += f"; it is at most epsilon {plain(Fraction(row.epsilon))} at delta {plain(delta)}"
    return whole, head + words


def _result(
    found: Track, rounds: list[Noisy], losses: list[Loss | None], *, upper: float
) -> dict[str, Any]:
    from sfumato.privacy.accounting import encode
    from sfumato.sensing.recovery import place_of

    site = rounds[0].site
    cost, statement = cost_of(losses)
    path = []
    for number, one in enumerate(rounds):
        estimate = found.estimate(number)
        sources = [
            {"cell": int(cell), **place_of(site, place), "radius": float(radius)}
            for cell, place, radius in zip(
                found.cells[number], estimate.places, found.radii[number], strict=True
            )
        ]
        path.append({"round": number + 1, "time": one.time, "sources": sources})
    return {
        "format": FORMAT,
        "site": site.name,
        "rehearsal": any(one.rehearsal for one in rounds),
        "rounds": path,
        "probability": 0.9,
        "masses": found.masses.tolist(),
        "speed": found.speed,
        "rhat": found.rhat,
        "mixed": found.mixed,
        "fewer": found.fewer,
        "upper": upper,
        "cost": None if cost is None else encode(cost),
        "statement": statement,
    }


def _told(result: dict[str, Any]) -> Any:
    from rich.console import Group
    from rich.markup import escape
    from rich.table import Table

    count = len(result["masses"])
    masses = ", ".join(f"{mass:.3g}" for mass in result["masses"])
    head = (
        f"{result['site']}: {len(result['rounds'])} rounds, {count} source{'s' * (count > 1)} of mass "
        f"{masses}, moving about {result['speed']:.3g} in a round"
    )
    titles = [f"source {k + 1}" if count > 1 else "source" for k in range(count)]
    table = Table(
        "round", "time", *(column for title in titles for column in (title, "within, 90 %"))
    )
    for row in result["rounds"][:ROWS]:
        cells: list[str] = []
        for one in row["sources"]:
            coordinates = ", ".join(f"{one[axis]:.4g}" for axis in "xyz" if axis in one)
            cells += [escape(one.get("name", coordinates)), f"{one['radius']:.3g}"]
        table.add_row(str(row["round"]), escape(row["time"]), *cells)
    more = len(result["rounds"]) - ROWS
    rest = [f"and {more} more rounds"] if more > 0 else []
    doubts = (
        [] if result["mixed"] else ["the draws did NOT mix: this is one of several tracks that fit"]
    )
    doubts += map(escape, result["remarks"])
    return Group(escape(head), table, *rest, *doubts, *one_too_many(result), result["statement"])


def uneven(times: list[str]) -> list[str]:
    """That rounds are not evenly spaced, where their times say so: a step is a step to the track."""
    moments = moments_of(times) if all(times) else None
    gaps = (
        []
        if moments is None
        else [moments[after] - moments[before] for before, after in pairwise(times)]
    )
    if not gaps or max(gaps) <= UNEVEN * min(gaps):
        return []
    return ["rounds are not evenly spaced in time, and every step counts as one all the same"]


def one_too_many(result: dict[str, Any]) -> list[str]:
    """Whether the readings would rather have one source fewer, if they might: a sentence, or none.

    None either where the draws did not mix, since the number is made from them.
    """
    times, count = result["fewer"], len(result["masses"]) - 1
    if times is None or times < DOUBT or not result["mixed"]:
        return []
    few = f"{count} source{'s' * (count > 1)}"
    said = (
        f"if a source may have any mass up to {result['upper']:g}, with {few} the readings are about "
        f"{times:.2g} times as likely as with {count + 1}"
    )
    if times < 1:
        return [f"{said}: the weakest source may not be there"]
    return [f"{said}: {few} explain{'s' * (count == 1)} them better, try --count {count}"]


def _drawable(site: Site) -> None:
    from sfumato.spaces import Graph, Points

    space = site.operator.space
    if isinstance(space, Graph) or (isinstance(space, Points) and space.positions.shape[1] != 2):
        raise InvalidParameter(
            "a track is drawn on a line or in a plane; on a graph it is a table; nothing was drawn"
        )


def _draw(found: Track, rounds: list[Noisy], result: dict[str, Any]) -> bytes:
    import numpy as np

    from sfumato.figures import draw_line_track, draw_plane_track
    from sfumato.spaces import Line

    space = found.operator.space
    places = np.array([found.estimate(number).places for number in range(len(rounds))])
    common: dict[str, Any] = {
        "caption": f"{result['site']}: {result['statement']}"
        + ("" if found.mixed else "\nTHE DRAWS DID NOT MIX: this is one of several tracks that fit")
        + "".join(f"\n{remark}" for remark in result["remarks"]),
        "rehearsal": result["rehearsal"],
    }
    if isinstance(space, Line):
        times = [one.time for one in rounds]
        limits = (float(space.positions[0]), float(space.positions[-1]))
        return draw_line_track(places[:, :, 0], found.radii, times=times, limits=limits, **common)
    norm: Literal["l1", "euclidean"] = "l1" if space.metric.endswith("l1") else "euclidean"
    return draw_plane_track(
        places, found.radii, sensors=found.operator.sensors.positions, norm=norm, **common
    )

"""A recovery in words: what one can be sure of first, then R's line with its proof."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.sensing import Answer, SavedRecovery

ROWS = 20
MEMBERS = 12
TOO_WIDE = (
    "errors too wide to tell, or none at all: the readings do not tell these sources apart; the bands of "
    "bayes-median say what can be told"
)
HEAPS = 5  # of an answer's mass that are told by their places
CRUMB = 0.005  # of all mass: less is not told
FAR_BELOW = (
    0.5  # of the largest mass: bands held less often where all sources together were below it
)


def told(saved: SavedRecovery, result: dict[str, Any], *, remarks: list[str]) -> Any:
    """All that is printed of a recovery: text and tables, and what must be known of it."""
    from rich.console import Group

    answer = saved.answer
    least = answer is None or (answer.estimator == "least" and "field" not in answer.told)
    lines: list[Any] = []
    if answer is not None and not least:
        lines += [*_answered(saved, answer), f"R: {_status(saved, result)}"]
    else:
        what = (
            "R of the readings as released, without the fitted field: " if result["field"] else ""
        )
        lines += [
            f"{_escaped(saved.site.name)}: {what}{_status(saved, result)}",
            *_sources(saved.sources()),
        ]
    lines += [
        _escaped(line) for line in (*_communities(saved, result), *_distances(result, least=least))
    ]
    return Group(*lines, *map(_escaped, remarks))


def _answered(saved: SavedRecovery, answer: Answer) -> list[Any]:
    given = answer.told
    name = _escaped(saved.site.name)
    if answer.bands is None:
        rows = _with_errors(answer.sources(saved.site), given)
        count = f"{len(rows)} source{'s' * (len(rows) != 1)}"
        tried = ", ".join(f"{k}: {score:.4g}" for k, score in given.get("scores", {}).items())
        return [
            f"{name}: {count}, total mass {answer.estimate.masses.sum():.4g}, by {answer.estimator}",
            *_sources(rows),
            *([] if given.get("tells", True) else [TOO_WIDE]),
            *_held(given.get("at_upper", 0), saved.recovery.upper),
            *(
                [f"scores of the counts tried, the least wins: {tried}"]
                if len(given.get("scores", {})) > 1
                else []
            ),
            *(
                ["it did NOT come to rest: take it as a guess"]
                if not given.get("converged", True)
                else []
            ),
        ]
    likely = sorted(given["counts"].items(), key=lambda pair: -pair[1])
    many = ", ".join(f"{k} with {percent(p)}" for k, p in likely[:4] if p >= 0.01)
    low, high = given["total"]
    mass = f"{low:.4g}" if f"{low:.4g}" == f"{high:.4g}" else f"{low:.4g} to {high:.4g}"
    lines = [f"{name}: how many sources: {many}; total mass {mass} with {percent(given['level'])}"]
    if given["mixing"]["mixed"]:
        lines[0] += "; the draws mixed"
    else:
        lines.append(given["mixing"]["said"])
    lines += [given["doubt"]] if given.get("doubt") else []
    lines += _far_below(high, saved.recovery.upper)
    sure = [_escaped(sentence) for sentence in sure_of(saved, answer)]
    return [*lines, *sure, *map(_escaped, heaps_of(saved, answer))]


def _far_below(total: float, upper: float) -> list[str]:
    """That no source can be near the largest mass, of which beliefs about masses are a share."""
    if total >= FAR_BELOW * upper:
        return []
    return [
        f"all sources together are far below the largest mass allowed for one, {upper:g}: with an --upper "
        "nearer to what one can have, answers are better and hold more often"
    ]


def _held(count: int, upper: float) -> list[str]:
    """That masses would have been larger, had they been let."""
    if not count:
        return []
    what = "a mass is" if count == 1 else f"{count} masses are"
    return [f"{what} at the largest allowed, {upper:g}: give --upper if sources may be larger"]


def sure_of(saved: SavedRecovery, answer: Answer) -> list[str]:
    """One sentence for each band."""
    data = answer.to_json(saved.site).get("bands", [])
    if not data:
        return ["no place is sure to have a source near it: the readings tell too little"]
    from sfumato.figures import at_least

    rows = []
    for band in data[:ROWS]:
        where = (
            band["name"]
            if "name" in band
            else ", ".join(f"{band[axis]:.4g}" for axis in "xyz" if axis in band)
        )
        what = (
            f"a source within {band['radius']:.3g} of {where}"
            if band["radius"]
            else f"a source at {where}"
        )
        rows.append(f"  {what} with {at_least(band['probability'])}")
    if len(data) > ROWS:
        rows.append(f"  and {len(data) - ROWS} more places")
    return rows


def heaps_of(saved: SavedRecovery, answer: Answer) -> list[str]:
    """Where an answer has its mass: the largest heaps, one cell to each side of their largest source."""
    import numpy as np

    from sfumato.sensing.recovery import distances_between, place_of
    from sfumato.spaces import Graph

    found, space = answer.estimate, saved.site.operator.space
    places, masses = found.places, found.masses.copy()
    total, reach = float(masses.sum()), _spacing(space) * (1 + 1e-6)
    heaps: list[tuple[Any, float]] = []
    while len(heaps) < HEAPS and masses.max(initial=0) > 0:
        top = int(masses.argmax())
        mine = distances_between(space, places[[top]], places)[0] <= reach
        mass = float(masses[mine].sum())
        if mass < CRUMB * total:
            break
        heaps.append((masses[mine] @ places[mine] / mass if reach else places[top], mass))
        masses[mine] = 0
    if not heaps:
        return []
    if not isinstance(space, Graph):  # along a line as one reads it; nodes by their mass
        heaps.sort(key=lambda heap: tuple(np.asarray(heap[0])))
    rows = [f"{mass:.2g} at {_called(place_of(saved.site, at))}" for at, mass in heaps]
    rest = float(masses.sum())
    return [
        "its mass: "
        + ", ".join([*rows, *([f"{rest:.2g} elsewhere"] if rest >= CRUMB * total else [])])
    ]


def _spacing(space: Any) -> float:
    """How far neighboring cells are apart; 0 where they are places of their own, nodes or desks."""
    import numpy as np

    from sfumato.spaces import Grid, Line

    if isinstance(space, Line):
        return float(np.median(np.diff(space.positions))) if space.size > 1 else 0.0
    if isinstance(space, Grid):
        west, south, east, north = space.bounds
        return max(east - west, north - south) / float(space.side)
    return 0.0


def _called(place: dict[str, Any]) -> str:
    if "name" in place:
        return str(place["name"])
    numbers = ", ".join(f"{place[axis]:.4g}" for axis in "xyz" if axis in place)
    return f"({numbers})" if "y" in place else numbers


def percent(probability: float) -> str:
    """A probability for people; one that is not quite sure is never rounded to sure.

    >>> percent(0.912), percent(0.9999), percent(1.0)
    ('91 %', '>99 %', '>99 %')
    """
    if probability < 0.005:
        return "<1 %"
    return f"{100 * probability:.0f} %" if probability < 0.995 else ">99 %"


def _status(saved: SavedRecovery, result: dict[str, Any]) -> str:
    found = saved.recovery
    head: str = found.status
    if found.status == "optimal":
        cells = f"{len(found.support)} cell{'s' * (len(found.support) > 1)} with a source"
        head += f", {cells}, total mass {found.objective:.4g}, gap {found.gap:.1e}"
    head += f"; radius {found.radius:.4g}"
    if result["expected_noise"]:
        head += f", noise about {result['expected_noise']:.4g} (sigma {saved.sigma:.4g})"
    return head


def _with_errors(rows: list[dict[str, Any]], given: Any) -> list[dict[str, Any]]:
    """Sources with their standard errors, where the estimator has them."""
    places, masses = given.get("place_errors"), given.get("mass_errors")
    if places is None or masses is None:
        return rows
    return [
        {**row, **{f"error of {axis}": error for axis, error in zip("xyz", place, strict=False)},
         "error of mass": mass}
        for row, place, mass in zip(rows, places, masses, strict=True)
    ]  # fmt: skip


def _sources(sources: list[dict[str, Any]]) -> list[Any]:
    from rich.table import Table

    rows = sorted(sources, key=lambda row: -row["mass"])[:ROWS]
    if not rows:
        return []
    names = [
        key
        for key in rows[0]
        if key not in {"cell", "mass", "share"} and not key.startswith("error")
    ]
    errors = [key for key in rows[0] if key.startswith("error")]
    table = Table("cell", *names, "mass", "share", *errors)
    for row in rows:
        where = [
            _escaped(row[key]) if isinstance(row[key], str) else f"{row[key]:.4g}" for key in names
        ]
        more = [f"{row[key]:.2g}" for key in errors]
        table.add_row(str(row["cell"]), *where, f"{row['mass']:.4g}", f"{row['share']:.0%}", *more)
    return [table, *([f"and {len(sources) - len(rows)} more"] if len(sources) > len(rows) else [])]


def _communities(saved: SavedRecovery, result: dict[str, Any]) -> list[str]:
    best = result.get("community")
    if best is None:
        return []
    lines = []
    beliefs = None if saved.answer is None else saved.answer.told.get("communities")
    if beliefs is not None:
        said = ", ".join(f"{label} with {percent(p)}" for label, p in enumerate(beliefs))
        lines.append(f"community that holds the most mass: {said}")
    lines.append(
        f"{'R: ' if beliefs is not None else ''}community {best['label']} of {best['nodes']} nodes, "
        f"{max(best['shares']):.0%} of the mass: "
        + ", ".join(best["members"][:MEMBERS])
        + (", ..." if best["nodes"] > MEMBERS else "")
    )
    return lines


def _distances(result: dict[str, Any], *, least: bool) -> list[str]:
    answer = result["answer"] or {}
    off, by_r = answer.get("emd"), result.get("emd")
    what = "earth mover's distance to the true sources, both scaled to 1"
    if off is not None and not least:
        return [f"{what}: {off:.4g}{'' if by_r is None else f' (R: {by_r:.4g})'}"]
    return [] if by_r is None else [f"{what}: {by_r:.4g}"]


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)

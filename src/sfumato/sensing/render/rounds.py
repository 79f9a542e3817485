"""Rounds that were recovered one by one, in words: a table of times and places, and what they cost."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rich.markup import escape
from rich.table import Table

from sfumato.figures import at_least
from sfumato.sensing.model.site import Site
from sfumato.sensing.recovery.answer import place_of
from sfumato.sensing.render.words import listed, many, text_of
from sfumato.sensing.results.mass_by_place import ToldPlace, told_places
from sfumato.sensing.results.recovered_rounds import RecoveredRound, RecoveredRounds

MAX_ROWS = 40
MAX_PLACES = 4  # in one line
MAX_NAMES = 5  # of missing sensors
NOTHING = {
    "rely": "no answer",
    "care": "no answer",
    "nothing": "nothing can be told from the noise",
    "misfit": "the readings do not fit the site",
    "failed": "no answer could be proved",
}
"""What is said of a round without places, by its verdict: words, counts and the exit code follow that."""


def rounds_text(result: RecoveredRounds) -> str:
    """All of `rounds_lines` as plain text.

    Args:
        result: Recovered rounds.

    Returns:
        Several lines.
    """
    return text_of(rounds_lines(result))


def rounds_lines(result: RecoveredRounds) -> list[Any]:
    """All that is printed of recovered rounds: lines of text and a rich table.

    Args:
        result: Recovered rounds.

    Returns:
        Strings and a rich table, in order.
    """
    rounds = result.rounds
    table = Table("round", "time", "total mass", "where")
    for number, one in enumerate(rounds[:MAX_ROWS], 1):
        total = f"{one.total:.3g}" if one.total else ""
        table.add_row(str(number), escape(one.time), total, escape(round_words(one, result.site)))
    more = len(rounds) - MAX_ROWS
    told = sum(one.total > 0 for one in rounds)
    head = f"{result.site.name}: {many(len(rounds), 'round')}, {told} with an answer"
    for kind in ("nothing", "misfit", "failed"):
        count = sum(_kind(one) == kind and not one.total for one in rounds)
        head += f"; in {count} {NOTHING[kind]}" if count else ""
    return [
        head,
        table,
        *([f"and {more} more rounds: `out` has them all"] if more > 0 else []),
        *_gaps(result),
        *_contradicted(result),
        *_doubts(result),
        *result.remarks,
        result.statement,
    ]


def round_words(one: RecoveredRound, site: Site) -> str:
    """Where sources were in one round, or why nothing is told, in a line.

    Args:
        one: The round.
        site: Its site.

    Returns:
        The words.
    """
    told = () if one.recovery is None else told_places(one.recovery)
    if not told:
        return NOTHING[_kind(one)]
    # Bands in their order, the surest first; then the largest masses.
    ranked = sorted(told, key=lambda spot: -spot.mass if spot.radius is None else -float("inf"))
    words = [place_words(spot, site) for spot in ranked[:MAX_PLACES]]
    rest = len(told) - len(words)
    doubt = ["do not rely on this"] if _kind(one) == "misfit" else []
    return "; ".join([*doubt, *words, *([f"and {many(rest, 'more place')}"] if rest else [])])


def _kind(one: RecoveredRound) -> str:
    return "failed" if one.recovery is None else one.recovery.verdict.kind


def place_words(spot: ToldPlace, site: Site) -> str:
    """A place of a recovery in a few words: its mass, its band and the chance that it holds a source.

    Args:
        spot: The place.
        site: The site that it is in.

    Returns:
        The words.
    """
    if spot.place is None:
        return f"mass {spot.mass:.2g} elsewhere"
    place = place_of(site, spot.place)
    numbers = ", ".join(f"{place[axis]:.4g}" for axis in "xyz" if axis in place)
    where = str(place.get("name", numbers))
    if spot.radius is None or spot.probability is None:
        return f"mass {spot.mass:.2g} at {where}"
    near = f"within {spot.radius:.3g} of" if spot.radius else "at"
    return f"mass {spot.mass:.2g} {near} {where} ({at_least(spot.probability)})"


def missing_words(one: RecoveredRound) -> str:
    """Which sensors were not read in a round, in a few words; "" where none is missing."""
    if not one.missing:
        return ""
    names = list(one.missing[:MAX_NAMES])
    more = len(one.missing) - len(names)
    return f"without {listed([*names, *([f'{more} more'] if more else [])])}"


def _gaps(result: RecoveredRounds) -> list[str]:
    """That sensors were missing in some rounds, which were solved without them."""
    gaps = [one for one in result.rounds if one.missing]
    if not gaps:
        return []
    names = list(dict.fromkeys(name for one in gaps for name in one.missing))
    who = [*names[:MAX_NAMES], *([f"{len(names) - MAX_NAMES} more"] if names[MAX_NAMES:] else [])]
    return [
        f"in {len(gaps)} of {many(len(result.rounds), 'round')} sensors are missing ({listed(who)}): "
        "solved with those that were read"
    ]


def _contradicted(result: RecoveredRounds) -> list[str]:
    """Which sensors the others contradict, in how many rounds, and whether they were left out of these."""
    left, used = Counter[str](), Counter[str]()
    for one in result.rounds:
        if one.recovery is not None:
            told = one.recovery.diagnostics
            (used if told.field is None else left).update(bad.sensor for bad in told.faulty_sensors)
    fitted = any(
        one.recovery is not None and one.recovery.diagnostics.field is not None
        for one in result.rounds
    )
    lines = [
        f"contradicted by the others, and left out: {_named(left, len(result.rounds))}"
        if left
        else "no sensor is contradicted by the others in any round: none was left out"
    ]
    if used:
        who = _named(used, len(result.rounds))
        lines.append(
            f"contradicted by the others, and used all the same: {who}; `fit='sensors'` leaves them out"
        )
    return lines if fitted else lines[1:]


def _named(sensors: Counter[str], rounds: int) -> str:
    ranked = sensors.most_common()
    words = [f"sensor {name!r} in {count} of {rounds}" for name, count in ranked[:MAX_NAMES]]
    more = len(ranked) - MAX_NAMES
    return listed([*words, *([f"{more} more"] if more > 0 else [])]) + " rounds"


def _doubts(result: RecoveredRounds) -> list[str]:
    """How many rounds have a warning of their own."""
    lines = []
    found = [one.recovery for one in result.rounds if one.recovery is not None]
    misfits = result.misfits
    if misfits:
        lines.append(
            f"do not rely on {misfits} of {many(len(result.rounds), 'round')}: the readings do not fit what "
            "was found, or the site"
        )
    beliefs = [one.answer.beliefs for one in found if one.answer is not None]
    unmixed = sum(one is not None and not one.mixed for one in beliefs)
    if unmixed:
        lines.append(f"in {many(unmixed, 'round')} the draws did NOT mix: take these as guesses")
    return lines

"""A track in words: a table of rounds, what must be known of it, and what all rounds cost."""

from __future__ import annotations

from typing import Any

from rich.markup import escape
from rich.table import Table

from sfumato.sensing.render.words import text_of
from sfumato.sensing.results.track import TrackResult
from sfumato.sensing.results.verdict import UNJUDGED

MAX_ROWS = 40
DOUBT = 0.1  # with one source fewer, readings as many times as likely: from here on it is said


def track_text(result: TrackResult) -> str:
    """All of `track_lines` as plain text.

    Args:
        result: The track.

    Returns:
        Several lines.
    """
    return text_of(track_lines(result))


def track_lines(result: TrackResult) -> list[Any]:
    """All that is printed of a track: lines of text and a rich table.

    Args:
        result: The track.

    Returns:
        Strings and a rich table, in order.
    """
    count = len(result.masses)
    masses = ", ".join(f"{mass:.3g}" for mass in result.masses)
    head = (
        f"{result.site}: {len(result.rounds)} rounds, {count} source{'s' * (count > 1)} of mass "
        f"{masses}, moving about {result.speed:.3g} in a round"
    )
    titles = [f"source {k + 1}" if count > 1 else "source" for k in range(count)]
    table = Table(
        "round", "time", *(column for title in titles for column in (title, "within, 90 %"))
    )
    for number, one in enumerate(result.rounds[:MAX_ROWS], 1):
        cells: list[str] = []
        for source in one.sources:
            place = source.place
            coordinates = ", ".join(f"{place[axis]:.4g}" for axis in "xyz" if axis in place)
            cells += [escape(place.get("name", coordinates)), f"{source.radius:.3g}"]
        if not one.verdict.reliable:
            cells[-1] += ", do not rely on this"
        table.add_row(str(number), escape(one.time), *cells)
    more = len(result.rounds) - MAX_ROWS
    rest = [f"and {more} more rounds"] if more > 0 else []
    if not result.mixed:
        rest.append("the draws did NOT mix: this is one of several tracks that fit")
    lines = [head, table, *rest, *result.remarks, *one_too_many(result), result.statement]
    verdict = result.verdict
    if verdict is UNJUDGED:  # a file of before
        return lines
    return [f"verdict: {verdict.message}", *(f"  and {why}" for why in verdict.reasons), *lines]


def one_too_many(result: TrackResult) -> list[str]:
    """Whether the readings would rather have one source fewer, if they might: a sentence, or none.

    None either where the draws did not mix, since the number is made from them.
    """
    times, count = result.fewer, len(result.masses) - 1
    if times is None or times < DOUBT or not result.mixed or not count:
        return []  # of one source that is not there the verdict says that nothing can be told
    few = f"{count} source{'s' * (count > 1)}"
    told = (
        f"if a source may have any mass up to {result.max_mass:g}, with {few} the readings are about "
        f"{times:.2g} times as likely as with {count + 1}"
    )
    if times < 1:
        return [f"{told}: the weakest source may not be there"]
    return [f"{told}: {few} explain{'s' * (count == 1)} them better, try `count` {count}"]

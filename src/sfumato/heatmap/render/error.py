"""How far off a map is, in words: for the terminal, pictures, pages and tags."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sfumato.heatmap.accuracy.map_error import ErrorInterval, MapError

SILENT = "how far off this map is, its method does not say"


def error_lines(error: MapError) -> tuple[str, ...]:
    """All that is known of how far off a map is, a sentence to a line.

    Args:
        error: What the map says of itself.

    Returns:
        The expected distance, similarity and correlation, and what is certain where that says
        something.

    """
    if error.emd is None and error.certified is None:
        return (_silent(error),)
    found = []
    if error.emd is not None and error.similarity is not None and error.pearson is not None:
        found.append(distance_text(error))
        found.append(
            f"similarity {_interval(error.similarity)} and correlation {_interval(error.pearson)} "
            f"({error.coverage:.0%}), seen through a blur of {error.blur:.0%}: 1 is a perfect map"
        )
    else:
        unknown = "what to expect of this map, its method does not say"
        found.append(_silent(error) if error.unstated else unknown)
    if error.certified is not None:
        found.append(certified_text(error))
    return tuple(found)


def distance_text(error: MapError) -> str:
    """How far off mass is expected to be, in one sentence.

    >>> interval = ErrorInterval(212.3, 148.7, 290.2)
    >>> distance_text(MapError("m", interval, None, None, None, None))
    'on average mass is 210 m off (90%: 150 to 290)'
    """
    if error.emd is None:
        return _silent(error)
    value, low, high = error.emd.value, error.emd.low, error.emd.high
    unit, scale = _unit(error.unit, value)
    ends = f"{_number(low * scale)} to {_number(high * scale)}"
    return f"on average mass is {_number(value * scale)}{unit} off ({error.coverage:.0%}: {ends})"


def certified_text(error: MapError) -> str:
    """What is certain of the distance, in one sentence."""
    if error.certified is None:
        return f"nothing is certified: {error.uncertified}"
    unit, scale = _unit(error.unit, error.certified)
    said = (
        f"certified whatever the truth is, with {error.confidence:.0%}: mass is at most "
        f"{_number(error.certified * scale)}{unit} off"
    )
    if error.lower is None:
        return said
    unit, scale = _unit(error.unit, error.lower)
    return f"{said}; no method can promise every map less than {_number(error.lower * scale)}{unit}"


def errors_line(errors: Sequence[MapError], many: int | None = None) -> str:
    """How far off several maps of a release are, in one line.

    Args:
        errors: What the maps say of themselves, or some of them evenly taken.
        many: How many maps there are; as many as errors, if left out.

    Returns:
        The range of the expected distances, and of their intervals.

    """
    known = [one.emd for one in errors if one.emd is not None]
    if not known:
        return _silent(errors[0]) if errors else SILENT
    least, most = (pick(one.value for one in known) for pick in (min, max))
    low, high = min(one.low for one in known), max(one.high for one in known)
    unit, scale = _unit(errors[0].unit, most)
    values, ends = (
        f"{_number(pair[0] * scale)} to {_number(pair[1] * scale)}"
        for pair in ((least, most), (low, high))
    )
    looked = "" if many in (None, len(errors)) else f"; {len(errors)} of {many} maps looked at"
    return (
        f"on average mass is {values}{unit} off, by map (all {errors[0].coverage:.0%} intervals: "
        f"{ends}{looked})"
    )


def error_facts(error: MapError) -> list[tuple[str, str]]:
    """The same as names and values, for tables of pages and tags of files."""
    found = []
    if error.emd is None:
        found.append(("how far off", _unstated(error) or "the method does not say"))
    if error.emd is not None and error.similarity is not None and error.pearson is not None:
        found = [
            ("how far off", f"{distance_text(error)}, east-west and north-south added"),
            ("similarity to the truth", f"{_interval(error.similarity)} ({error.coverage:.0%})"),
            ("correlation with the truth", f"{_interval(error.pearson)} ({error.coverage:.0%})"),
        ]
    if error.certified is not None:
        found.append(("certified", certified_text(error)))
    return found


def _silent(error: MapError) -> str:
    """What is said instead of a distance."""
    return f"how far off this map is, is {_unstated(error)}" if error.unstated else SILENT


def _unstated(error: MapError) -> str:
    return f"not stated: {error.unstated}" if error.unstated else ""


def _interval(one: ErrorInterval) -> str:
    return f"{one.value:.2f} ({one.low:.2f} to {one.high:.2f})"


def _number(value: float) -> str:
    """Two digits that count, with commas: an interval has no more to say."""
    rounded = float(f"{value:.2g}")
    if rounded == 0:
        return "0"
    text = f"{rounded:,.{max(0, 1 - math.floor(math.log10(rounded)))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _unit(unit: str, value: float) -> tuple[str, float]:
    """The word for a unit after a number, and what to multiply the number with."""
    if unit == "m":
        return (" km", 0.001) if value >= 10_000 else (" m", 1.0)
    return (" px", 1.0) if unit == "px" else (" of the map's side", 1.0)

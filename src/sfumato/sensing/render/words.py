"""Numbers, lists and tables in words, as plain text and as HTML."""

from __future__ import annotations

import base64
import math
import re
from html import escape
from io import StringIO
from typing import Any


def many(count: int, what: str) -> str:
    """A number of things, in words that fit it.

    >>> many(1, "sensor"), many(1440, "reading")
    ('1 sensor', '1,440 readings')
    """
    return f"{count:,} {what}{'s' * (count != 1)}"


def listed(words: list[str], last: str = "and") -> str:
    """One, two and three; or the word before the last that is given."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def short(number: float) -> str:
    """Two digits."""
    return "no number" if math.isinf(number) else f"{number:.2g}"


def up(value: float, digits: int = 3) -> str:
    """A bound as people read it, never smaller than it is.

    >>> up(13.507), up(4.0), up(3203.5), up(3203.5, 5), up(2.4e-5)
    ('13.6', '4', '3,210', '3,203.5', '2.4e-05')
    """
    if not value > 0 or math.isinf(value):
        return f"{value:g}"
    unit = 10.0 ** (math.floor(math.log10(value)) + 1 - digits)
    # A bound that is a round number but for its last bits stays one.
    bound = math.ceil(value / unit * (1 - 1e-12)) * unit
    return f"{bound:,.0f}" if 10**digits <= bound < 1e6 else f"{bound:,.{digits}g}"


def aligned(rows: list[list[str]]) -> list[str]:
    """Rows as lines, in columns."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(wide) for cell, wide in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def plain(result: Any) -> Any:
    """The result as JSON can say it: what is not finite is null."""
    match result:
        case dict():
            return {name: plain(value) for name, value in result.items()}
        case list() | tuple():
            return [plain(value) for value in result]
        case float() if not math.isfinite(result):
            return None
        case _:
            return result


def percent(probability: float) -> str:
    """A probability for people; one that is not quite sure is never rounded to sure.

    Args:
        probability: In [0, 1].

    Returns:
        Whole per cent, or "<1 %" or ">99 %".

    >>> percent(0.912), percent(0.9999), percent(1.0)
    ('91 %', '>99 %', '>99 %')
    """
    if probability < 0.005:
        return "<1 %"
    return f"{100 * probability:.0f} %" if probability < 0.995 else ">99 %"


PLAIN = {
    "count": "number of sources",
    "estimator": "estimator",
    "fit": "a fit of the field",
    "fit='offset'": "a fit of the level",
    "fit='sensors'": "a fit of the sensors",
    "leave_out_faulty": "a track without suspects",
    "max_mass": "largest mass of a source",
    "max_sources": "largest number of sources",
    "radius": "radius",
}
"""What parameters are called on a picture, which neither a command nor a program reads."""


def without_parameters(text: str) -> str:
    """A text for a picture: parameters, which messages put between backticks, by what they mean.

    >>> without_parameters("with `max_mass` 2 R has 1 cell; `fit='sensors'` leaves it out")
    'with largest mass of a source 2 R has 1 cell; a fit of the sensors leaves it out'
    """
    return re.sub(r"`([^`]+)`", lambda found: PLAIN.get(found[1], found[1]), text)


def text_of(lines: list[Any]) -> str:
    """Lines and rich tables as plain text."""
    from rich.console import Console
    from rich.markup import escape as plain_markup

    out = StringIO()
    # Never into the notebook that asks: rich would print there, and the text would be empty.
    console = Console(
        file=out, width=200, highlight=False, emoji=False, no_color=True,
        force_jupyter=False, force_terminal=False,
    )  # fmt: skip
    for line in lines:
        console.print(plain_markup(line) if isinstance(line, str) else line, soft_wrap=True)
    return out.getvalue().rstrip("\n")


def page_of(text: str, picture: bytes | None = None) -> str:
    """A fragment of HTML: the text as it is, and a PNG picture below it."""
    shown = f'<pre style="overflow-x:auto">{escape(text)}</pre>'
    if picture is None:
        return shown
    data = base64.b64encode(picture).decode("ascii")
    said = 'alt="The same, drawn" style="max-width:100%"'
    return f'{shown}<img src="data:image/png;base64,{data}" {said}>'

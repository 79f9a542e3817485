"""What a person types or a file says, for a device: questions, places, bounds. Nothing heavy is imported."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import parse_json, read_bytes
from sfumato.heatmap.local.question import Bounds, Question

# Bytes of a question file.
MAX_QUESTION = 2**25


def read_question(path: str | Path) -> Question:
    """The question of a file.

    Args:
        path: The file.

    Returns:
        The question, whole and unchanged.

    Raises:
        InvalidInput: It is no question, was changed, or would tell more than it says.

    """
    undone = "nothing was charged"
    data = read_bytes(path, undone=undone, max_bytes=MAX_QUESTION)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not a question: it is no text; {undone}") from None
    return Question.from_json(parse_json(text, "a question", path=path, undone=undone))


def read_places(texts: Iterable[str]) -> list[tuple[float, float, int]]:
    """Places from text: "x,y", or "x,y,mass" with a whole number.

    Args:
        texts: One for each place.

    Returns:
        x, y and mass of each.

    Raises:
        InvalidInput: One is no place.

    """
    found = []
    for text in texts:
        parts = text.split(",")
        try:
            x, y = float(parts[0]), float(parts[1])
            mass = int(parts[2]) if len(parts) == 3 else 1
            if len(parts) > 3 or not (math.isfinite(x) and math.isfinite(y)):
                raise ValueError
        except (ValueError, IndexError):
            raise InvalidInput(
                "a place is x,y or x,y,mass; one is not; nothing was charged"
            ) from None
        found.append((x, y, mass))
    return found


def read_bounds(text: str) -> Bounds:
    """Bounds from text: low x, low y, high x, high y.

    Args:
        text: Four numbers with commas between them.

    Returns:
        The bounds.

    Raises:
        InvalidParameter: They are not four numbers that rise.

    """
    try:
        low_x, low_y, high_x, high_y = map(float, text.split(","))
        if not (
            all(map(math.isfinite, (low_x, low_y, high_x, high_y)))
            and low_x < high_x
            and low_y < high_y
        ):
            raise ValueError
    except ValueError:
        raise InvalidParameter(
            f"`bounds` are low x, low y, high x, high y, got {text!r}; no question was made"
        ) from None
    return low_x, low_y, high_x, high_y

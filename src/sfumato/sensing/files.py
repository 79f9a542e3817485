"""Files of the room: JSON read without surprises, and nothing written over by accident."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidInput


def read_json(path: str | Path, what: str) -> Any:
    """What a JSON file holds; a file that is not there, no text or no JSON is refused in one sentence."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as problem:
        raise InvalidInput(f"cannot read {path}: {problem.strerror}") from None
    except (ValueError, RecursionError):
        raise InvalidInput(f"{path} is not {what}: it is no JSON") from None


def write_text(path: str | Path, text: str, *, overwrite: bool = False, kept: str = "") -> None:
    """Write a text file, a new one unless told otherwise; `kept` is said of what could not be written."""
    try:
        with Path(path).open("w" if overwrite else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InvalidInput(f"{path} exists already and is kept; choose another file{kept}") from None
    except OSError as problem:
        raise InvalidInput(f"cannot write {path}: {problem.strerror}{kept}") from None

"""Files of the room: JSON read without surprises."""

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

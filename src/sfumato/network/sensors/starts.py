"""Whether a state folder has all ledgers of a device: it notes every start of its key.

A folder that missed a start, or is new though the key is not, may lack what another folder paid for in
the present window; so nothing is made before the next one.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sfumato.errors import InvalidInput
from sfumato.files import write_file
from sfumato.sensing.release import device_step, window_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def note_start(state: Path, device_key: Path, *, now_ms: int, window: timedelta) -> int:
    """Note the start that is next in the key file; from when on rounds may be made, in ms since 1970.

    It is noted before the key moves, so that a process which is killed between the two loses no window.
    """
    device, step = device_step(device_key)
    file = state / "start.json"
    before = _noted(file)
    if before is not None and _follows(before, device, step):
        begin = before[2]
    elif step == 0 and "~" not in device:  # a key that was never used, and replaces none
        begin = 0
    else:
        following = window_of(_EPOCH + timedelta(milliseconds=now_ms), window) + window
        begin = (following - _EPOCH) // timedelta(milliseconds=1)
    text = json.dumps({"device": device, "step": step, "begin": begin}) + "\n"
    write_file(file, text, overwrite=True, lost="nothing was started")
    return begin


def _follows(before: tuple[str, int, int], device: str, step: int) -> bool:
    known, last, _ = before
    if known == device:
        return last in (step - 1, step)  # the same: it was noted, and then the process was killed
    return known.partition("~")[0] == device.partition("~")[0] and step == 0  # a key was rotated


def _noted(file: Path) -> tuple[str, int, int] | None:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        return str(data["device"]), int(data["step"]), int(data["begin"])
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise InvalidInput(f"cannot read {file}: {problem.strerror}; nothing was started") from None
    except (KeyError, TypeError, ValueError):
        return None  # as if it was new: silent until the next window

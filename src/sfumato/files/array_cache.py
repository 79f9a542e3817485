"""Arrays of constants that take longer to make than to read: kept by an earlier process, to the bit."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import InvalidInput
from sfumato.files.atomic import write_file


def cached_array(
    folder: str | Path, name: str, made_of: bytes, make: Callable[[], FloatArray]
) -> FloatArray:
    """An array as an earlier process kept it, or made now and kept.

    A damaged file is made again; where nothing can be written each process makes its own, and nothing
    is said.

    Args:
        folder: Where arrays are kept; made if there is none.
        name: What the file is called, before a digest.
        made_of: All that decides the array.
        make: Makes it.

    Returns:
        The array.

    """
    file = Path(folder) / f"{name}-{hashlib.sha256(made_of).hexdigest()[:16]}.npy"
    with suppress(OSError, ValueError, EOFError):
        body = file.read_bytes()
        if hashlib.sha256(body[32:]).digest() == body[:32]:
            found: FloatArray = np.load(io.BytesIO(body[32:]), allow_pickle=False)
            return found
    made = make()
    with suppress(OSError, InvalidInput), io.BytesIO() as written:
        np.save(written, made)
        file.parent.mkdir(parents=True, exist_ok=True)
        body = written.getvalue()
        write_file(file, hashlib.sha256(body).digest() + body, overwrite=True)
    return made

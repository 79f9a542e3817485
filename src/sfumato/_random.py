"""Generators for synthetic data, simulations and posteriors. Never noise: that is `sfumato.privacy`."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato._types import FloatArray


def generator(seed: int | bytes | None = None) -> Any:
    """A NumPy generator: the same for the same seed or hash, otherwise another each time."""
    import numpy as np

    return np.random.default_rng(list(seed) if isinstance(seed, bytes) else seed)


def seed_of(readings: FloatArray) -> bytes:
    """A seed that is the same whenever the readings are: SHA-256 of their bytes."""
    import numpy as np

    return hashlib.sha256(np.asarray(readings, dtype="<f8").tobytes()).digest()

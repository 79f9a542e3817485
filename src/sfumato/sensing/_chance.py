"""Randomness for posteriors and synthetic data. Never noise: that is drawn in `sfumato.privacy`."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from sfumato._types import FloatArray


def generator(seed: int | bytes | None = None) -> Any:
    """A NumPy generator: the same for the same seed or hash, otherwise another each time."""
    return np.random.default_rng(list(seed) if isinstance(seed, bytes) else seed)


def seed_of(readings: FloatArray) -> bytes:
    """A seed that is the same whenever the readings are: SHA-256 of their bytes."""
    return hashlib.sha256(np.asarray(readings, dtype="<f8").tobytes()).digest()

"""Where made-up people and sources come from. Never noise: that is drawn in `sfumato.privacy`."""

from __future__ import annotations

from typing import Any


def chance(seed: int | bytes | None = None) -> Any:
    """A NumPy generator: the same for the same seed or hash, otherwise another each time."""
    import numpy as np

    return np.random.default_rng(list(seed) if isinstance(seed, bytes) else seed)

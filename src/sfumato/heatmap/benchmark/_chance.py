"""Randomness of made-up people and of methods under test. Never noise: that is drawn in `sfumato.privacy`."""

from __future__ import annotations

from typing import Any

import numpy as np


def generator(seed: bytes | None = None) -> Any:
    """A NumPy generator: the same for the same hash, otherwise another each time.

    Args:
        seed: A hash; without one the generator is another each time.

    Returns:
        A NumPy generator.
    """
    return np.random.default_rng(None if seed is None else list(seed))

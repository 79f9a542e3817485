"""The operating system's randomness, the same in every run of a test: a test that passed will pass again.

What a seeded source must not stand in for is marked `system`: the laws of the noise, and our own
audits.
"""

from __future__ import annotations

import os
import secrets
import uuid
from random import Random

import numpy as np
import numpy.typing as npt
import pytest

from sfumato.privacy.noise import system

Draws = npt.NDArray[np.int64]


def seed_system(patch: pytest.MonkeyPatch, seed: bytes) -> None:
    """Let everything the package asks of the system come from the seed, until the patch is undone."""
    unseeded = os.urandom
    source = Random(seed)  # noqa: S311 - the point is that it can be drawn again
    generator = np.random.default_rng
    rng = generator(list(seed))
    patch.setattr(os, "urandom", source.randbytes)
    # numba names the files of its cache so: what was compiled before must not decide what is drawn.
    patch.setattr(uuid, "uuid4", lambda: uuid.UUID(bytes=unseeded(16), version=4))
    patch.setattr(secrets, "token_bytes", lambda n=32: source.randbytes(n))
    patch.setattr(secrets, "randbits", source.getrandbits)
    patch.setattr(secrets, "randbelow", source.randrange)
    patch.setattr(
        np.random,
        "default_rng",
        lambda chosen=None: generator(source.getrandbits(128) if chosen is None else chosen),
    )
    patch.setattr(
        system, "_opendp_laplace", lambda scale: lambda zeros: discrete_laplace(scale, zeros, rng)
    )
    patch.setattr(
        system, "_opendp_gaussian", lambda sigma: lambda zeros: discrete_gaussian(sigma, zeros, rng)
    )


def discrete_laplace(scale: float, zeros: Draws, rng: np.random.Generator) -> Draws:
    """The difference of two geometric draws has the discrete Laplace law."""
    if scale == 0:
        return zeros
    stop = -np.expm1(-1 / scale)
    return rng.geometric(stop, zeros.size) - rng.geometric(stop, zeros.size)


def discrete_gaussian(sigma: float, zeros: Draws, rng: np.random.Generator) -> Draws:
    """Discrete Laplace draws, kept with the chance that makes them Gaussian [canonne20, alg. 3]."""
    if sigma == 0:
        return zeros
    scale, kept = np.floor(sigma) + 1, np.zeros(0, dtype=np.int64)
    while kept.size < zeros.size:
        drawn = discrete_laplace(scale, np.zeros(2 * zeros.size + 8, dtype=np.int64), rng)
        exponent = (np.abs(drawn) - sigma**2 / scale) ** 2 / (2 * sigma**2)
        kept = np.concatenate([kept, drawn[rng.random(drawn.size) < np.exp(-exponent)]])
    return kept[: zeros.size]

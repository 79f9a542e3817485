"""Noise from the system's randomness by OpenDP's exact samplers; no other module imports opendp."""

from __future__ import annotations

import os
import secrets
from bisect import bisect_left
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._types import IntArray
from sfumato.errors import InvalidParameter
from sfumato.privacy.accounting.numbers import Number
from sfumato.privacy.noise.laws import GaussianLaw, LaplaceLaw, RoundedGaussianLaw
from sfumato.privacy.noise.lookup import look_up
from sfumato.privacy.noise.tables import BITS, erf_at, sampler


class SystemNoise:
    """Exact noise for releases: nobody chose it, nobody can draw it again."""

    distance: Fraction | None = None
    known = False

    def laplace(self, scale: Number, size: int) -> IntArray:
        """Draws of `LaplaceLaw(scale)` by OpenDP [canonne20, alg. 2]."""
        return _draws(_opendp_laplace(float(LaplaceLaw(scale).scale)), size)

    def gaussian(self, sigma: Number, size: int) -> IntArray:
        """Draws of `GaussianLaw(sigma)` by OpenDP [canonne20, alg. 3]."""
        return _draws(_opendp_gaussian(float(GaussianLaw(sigma).sigma)), size)

    def rounded_gaussian(self, sigma: Number, size: int) -> IntArray:
        """Draws of `RoundedGaussianLaw(sigma)`, exactly: the table decides unless 127 bits cannot.

        127 random bits u stand for the reals [u, u + 1) / 2**127. Unless a threshold lies inside,
        all of them give the same draw; where one does, more bits are drawn until none does. It
        happens once in 2**113 draws.
        """
        law = RoundedGaussianLaw(sigma)
        _check(size)
        built, raw = sampler(law), os.urandom(16 * size)
        draws = look_up(raw, built)
        thresholds = built.tables[0].thresholds
        magnitudes = np.abs(draws)
        tops = np.frombuffer(raw, dtype=">u8").reshape(-1, 2)[:, 0] & np.uint64(2**63 - 1)
        # A tie agrees in the top half at least: only those few are looked at as whole integers.
        for i in np.flatnonzero(tops == _upper_halves(law)[magnitudes]):
            bits = int.from_bytes(raw[16 * i : 16 * i + 16], "big")
            sign, u, k = bits >> BITS, bits & ((1 << BITS) - 1), int(magnitudes[i])
            if k and u == thresholds[k - 1]:  # beyond the last, u can only equal it
                magnitude = refine(u, BITS, bisect_left(thresholds, u), law.sigma)
                draws[i] = -magnitude if sign else magnitude
        return draws

    def uniform(self, below: int, size: int) -> list[int]:
        """Integers from 0 to below - 1, exactly, by rejection."""
        if below < 1:
            raise InvalidParameter(f"integers below {below} do not exist; nothing was drawn")
        return [secrets.randbelow(below) for _ in range(size)]


@lru_cache(maxsize=64)
def _upper_halves(law: RoundedGaussianLaw) -> npt.NDArray[np.uint64]:
    """The upper 64 of the 127 bits of each threshold, 0 first."""
    return np.array([0, *(t >> 64 for t in sampler(law).tables[0].thresholds)], dtype=np.uint64)


def refine(u: int, bits: int, k: int, sigma: Fraction) -> int:
    """The magnitude, at least k, of the rounded Gaussian whose first bits are u; draws more as it must."""
    while True:
        u, bits = u << 64 | secrets.randbits(64), bits + 64
        while (threshold := erf_at(k, sigma, bits)) < u:
            k += 1
        if u < threshold:
            return k


def _check(size: int) -> None:
    if size < 0:
        raise InvalidParameter(
            f"the number of draws must be at least 0, got {size}; nothing was drawn"
        )


def _draws(measurement: Any, size: int) -> IntArray:
    _check(size)
    return np.array(measurement(np.zeros(size, dtype=np.int64)) if size else [], dtype=np.int64)


@lru_cache(maxsize=128)
def _opendp_laplace(scale: float) -> Any:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance

    _allow_contributed()
    return make_laplace(vector_domain(atom_domain(T="i64")), l1_distance(T="i64"), scale=scale)


@lru_cache(maxsize=128)
def _opendp_gaussian(sigma: float) -> Any:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance

    _allow_contributed()
    return make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="f64"), scale=sigma)


def _allow_contributed() -> None:
    """Opt in to what OpenDP calls contributed: both samplers are. Not by its prelude, 2 s of imports."""
    from opendp.mod import enable_features

    enable_features("contrib")

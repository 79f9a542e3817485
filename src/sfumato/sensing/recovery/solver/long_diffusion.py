"""Diffusion on a graph in the longest arithmetic there is, with a bound on its rounding: for proofs."""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse

from sfumato._types import LongArray
from sfumato.sensing.model.operators.protocol import Diffusion
from sfumato.sensing.recovery.solver.norms import LONG, LONG_EPS, length


def diffuse_long(diffusion: Diffusion, masses: LongArray) -> tuple[LongArray, float]:
    """exp(-rate L) times masses, and how far that may be from the truth in length.

    A Chebyshev series in S = L / half - 1, |S| <= 1, like that of the operator but in the longest
    arithmetic there is. Its coefficients c_k are 2 exp(-reach) I_k(reach), reach = rate half, of
    alternating sign; their sizes are a Skellam law: of total 1, with sum c_k k**2 = reach. They
    come from Miller's recurrence [abramowitz64, sec. 9.12]. A step S x rounds by at most (entries
    of a row + 4) eps |x|, and a rounding at step j reaches step k multiplied by at most k - j + 1
    (Chebyshev polynomials of the second kind), so (k**2 + k) / 2 in all.
    """
    half = float(diffusion.laplacian.diagonal().max())
    if half == 0:
        return masses, 0.0
    reach = LONG(diffusion.rate) * LONG(half)
    terms = 40 + math.ceil(12 * math.sqrt(reach))  # the law has standard deviation sqrt(reach)
    c = np.zeros(terms + 2, dtype=LONG)
    c[terms] = 1e-300
    for k in range(terms, 0, -1):
        c[k - 1] = c[k + 1] + 2 * k / reach * c[k]
        if c[k - 1] > 1e100:
            c /= c[k - 1]
    c[1:] *= 2
    c /= c.sum()
    c[1::2] *= -1
    shifted = diffusion.laplacian.astype(LONG) / LONG(half) - sparse.eye_array(
        masses.size, dtype=LONG
    )
    before, now = masses, np.asarray(shifted @ masses)
    out = c[0] * before + c[1] * now
    for k in range(2, terms):
        before, now = now, np.asarray(2 * (shifted @ now) - before)
        out += c[k] * now
    row = int(np.diff(diffusion.laplacian.indptr).max())
    each = 2 * (row + 4) * float(reach + np.sqrt(reach)) + 4 * terms
    return out, each * LONG_EPS * float(length(masses))

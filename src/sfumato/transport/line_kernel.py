"""The compiled sweep along a line: what crosses each gap and what that costs."""

from __future__ import annotations

import numpy as np

from sfumato._compiled import inner, njit

BLOCK = 64


@inner(inline="always")
def _add(high, low, x):
    """The sum high + low + x, the rounding error of the sum kept in low [knuth97, sec. 4.2.2]."""
    total = high + x
    part = total - high
    return total, low + ((high - (total - part)) + (x - part))


@njit
def cost(p, q, p_mass, q_mass, positions):
    """The sum of |excess to the left| times the gap, masses divided by p_mass and q_mass.

    Blocks of 64 cells are summed plainly, which a processor does fast; between blocks twice the
    digits are kept.
    """
    p_share = 1.0 / p_mass
    q_share = 1.0 / q_mass
    excess_high = excess_low = 0.0
    cost_high = cost_low = 0.0
    within = np.empty(BLOCK)
    gaps = p.size - 1
    for begin in range(0, gaps, BLOCK):
        count = min(BLOCK, gaps - begin)
        running = 0.0
        for k in range(count):
            running += p[begin + k] * p_share - q[begin + k] * q_share
            within[k] = running
        before = excess_high + excess_low
        part = 0.0
        for k in range(count):
            part += abs(before + within[k]) * (positions[begin + k + 1] - positions[begin + k])
        excess_high, excess_low = _add(excess_high, excess_low, running)
        cost_high, cost_low = _add(cost_high, cost_low, part)
    return cost_high + cost_low

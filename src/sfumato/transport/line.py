"""Earth mover's distance on a line: the area between two cumulative sums."""

from __future__ import annotations

import numpy as np

from sfumato._types import FloatArray
from sfumato.spaces import Line
from sfumato.transport.masses import difference, same_masses, weighed
from sfumato.transport.results import Transport


def emd_line(p: FloatArray, q: FloatArray, line: Line, *, normalize: bool, flow: bool) -> Transport:
    """What must cross each gap is the excess to its left; its size times the gap, summed, is the distance.

    The sweep keeps twice the digits between blocks of 64 cells. Rounding of shares and differences,
    of sums in a block, of gaps, products and pairwise masses stays below 256 * 2**-52 of mass times
    diameter.
    """
    from sfumato.transport.line_kernel import cost

    masses = weighed(p, name="p"), weighed(q, name="q")
    same_masses(*masses, cells=p.size, normalize=normalize)
    z = difference(p, q, normalize=normalize).excess if flow else None
    scales = masses if normalize else (1.0, 1.0)
    value = float(cost(p, q, *scales, line.positions))
    mass = max(masses[0] / scales[0], masses[1] / scales[1])
    apart = abs(masses[0] / scales[0] - masses[1] / scales[1])
    slack = (256 * 2**-52 * mass + apart) * line.diameter
    return Transport(
        value, max(0.0, value - slack), value + slack, None if z is None else np.cumsum(z)[:-1]
    )

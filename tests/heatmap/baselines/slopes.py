"""Slopes with an interval: how an error falls, and which laws that excludes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats
from tests.chance import LEVEL


def assert_slope(
    x: npt.ArrayLike, y: npt.ArrayLike, between: tuple[float, float], *, rivals: Sequence[float]
) -> None:
    """The slope of y over x lies between two numbers, by Student's interval at the suite's level.

    The interval must meet the range stated and must exclude every rival: a sample too small to do
    so fails.
    """
    fit = stats.linregress(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))
    reach = float(stats.t.isf(LEVEL / 2, np.size(x) - 2) * fit.stderr)
    low, high = fit.slope - reach, fit.slope + reach
    assert low <= between[1], f"a slope of {low:.3f} to {high:.3f} is not between {between}"
    assert high >= between[0], f"a slope of {low:.3f} to {high:.3f} is not between {between}"
    assert rivals, "a statistical assertion without a rival cannot fail"
    for rival in rivals:
        assert not low <= rival <= high, (
            f"a slope of {low:.3f} to {high:.3f} does not exclude {rival}"
        )

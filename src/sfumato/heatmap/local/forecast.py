"""What a local map will be worth, before anybody is asked: from the number of users and epsilon alone."""

from __future__ import annotations

import bisect
import math
from typing import Literal

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.heatmap.local.odds import odds_below
from sfumato.heatmap.local.results import Expected, LocalPlan
from sfumato.heatmap.local.rounds import design
from sfumato.privacy.accounting import Number

# Simulated local maps of 18 made-up cities of six kinds and of 8 real places, by what counts of the
# information: low, middle and high of the earth mover's distance (in sides) and of Similarity, both at a blur
# of 0.02. `python -m experiments.heatmaps.local_forecast` makes it, and holds other cities against it.
FORECAST_TABLE: tuple[tuple[float, tuple[float, float, float], tuple[float, float, float]], ...] = (
    (12.72, (0.0983, 0.2467, 0.5908), (0.0585, 0.2259, 0.792)),
    (49.15, (0.0754, 0.2223, 0.5908), (0.0742, 0.2986, 0.8429)),
    (190.0, (0.0392, 0.1465, 0.4041), (0.1914, 0.3929, 0.8429)),
    (734.4, (0.0127, 0.0959, 0.2705), (0.2725, 0.5309, 0.8429)),
    (2839.0, (0.0127, 0.0621, 0.1479), (0.3687, 0.6227, 0.9247)),
    (10970.0, (0.0127, 0.0388, 0.0896), (0.4653, 0.7286, 0.9247)),
    (42410.0, (0.0044, 0.023, 0.056), (0.6715, 0.838, 0.9289)),
    (163900.0, (0.0036, 0.0145, 0.0331), (0.7647, 0.8821, 0.9546)),
    (633700.0, (0.0036, 0.009, 0.0188), (0.8197, 0.9298, 0.9633)),
    (2449000.0, (0.0024, 0.0063, 0.0137), (0.8852, 0.9538, 0.9711)),
    (9468000.0, (0.0022, 0.005, 0.0068), (0.8852, 0.9538, 0.977)),
    (36600000.0, (0.0018, 0.0025, 0.0058), (0.9107, 0.9698, 0.9874)),
)
# Few users who say nearly all tell no more than they know: information counts as 1 / (1 / information +
# 1 / (0.6 users**1.9)), which brings simulated maps of 30 to 30,000 users near to one line.
KNOWN, KNOWN_POWER, FEWEST_USERS = 0.6, 1.9, 30
# A map of less than this Similarity, in the middle of its forecast, is hopeless: it shares less than
# half of its mass with the truth.
HOPELESS = 0.5


def plan_local(users: int, epsilon: Number, *, target: float | None = None) -> LocalPlan:
    """Forecast a local map; it reads nothing.

    Args:
        users: How many devices will answer.
        epsilon: What an answer may tell, above 0, at most 16.
        target: A Similarity that is wanted, in (0, 1): the least users for it are worked out.

    Returns:
        The plan.

    Raises:
        InvalidParameter: A number is out of range.

    """
    if target is not None and not 0 < target < 1:
        raise InvalidParameter(
            f"`target` is a Similarity in (0, 1), got {target}; nothing was planned"
        )
    plan = design(users, epsilon)
    each = _each(epsilon)
    wanted = None if target is None else _information(target)
    outputs = 8 * max(plan.cells, 4)
    return LocalPlan(
        design=plan,
        emd=_expected(users, each, 1),
        similarity=_expected(users, each, 2),
        hopeless_below=_users(_information(HOPELESS) or math.inf, each),
        target=target,
        required_users=None if wanted is None else _users(wanted, each),
        answer_bytes=150 + len(str(outputs)),
    )


def _expected(users: int, each: float, which: Literal[1, 2]) -> Expected | None:
    told = _told_by(users, each)
    if users < FEWEST_USERS or not FORECAST_TABLE[0][0] <= told <= FORECAST_TABLE[-1][0]:
        return None
    rows = [math.log(row[0]) for row in FORECAST_TABLE]
    low, middle, high = (
        float(np.interp(math.log(told), rows, [row[which][part] for row in FORECAST_TABLE]))
        for part in range(3)
    )
    return Expected(middle, low, high)


def told_by(users: int, epsilon: Number) -> float:
    """What counts of the information of so many users at an epsilon: all of it while they know much more.

    Args:
        users: How many devices answer.
        epsilon: What an answer may tell.

    Returns:
        The number by which `FORECAST_TABLE` is read.

    """
    return _told_by(users, _each(epsilon))


def _each(epsilon: Number) -> float:
    """The information of one answer."""
    odds = float(odds_below(epsilon))
    return (odds - 1) ** 2 / (4 * odds)


def _told_by(users: int, each: float) -> float:
    if not each:
        return 0.0
    known = KNOWN * math.pow(users, KNOWN_POWER)
    return 1 / (1 / (users * each) + 1 / known)


def _information(similarity: float) -> float | None:
    """The information at which the middle of Similarity reaches a number."""
    reached = [row[2][1] for row in FORECAST_TABLE]
    if similarity > reached[-1]:
        return None
    rows = [math.log(row[0]) for row in FORECAST_TABLE]
    return math.exp(float(np.interp(similarity, np.maximum.accumulate(reached), rows)))


def _users(information: float, each: float) -> int:
    """The least users whose information is so much, at most 2**60."""
    return bisect.bisect_left(
        range(2**60), True, lo=1, key=lambda users: _told_by(users, each) >= information
    )

"""What a local map will be worth, before anybody is asked: from the number of users and epsilon alone."""

from __future__ import annotations

import bisect
import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.heatmap.local.odds import odds_below
from sfumato.heatmap.local.rounds import Design, design
from sfumato.privacy.accounting import Number, plain, written

# Simulated local maps of nine made-up cities of three kinds, by information: the 5, 50 and 95 %
# quantiles of the earth mover's distance (in sides) and of Similarity at a blur of 0.02.
# `python -m experiments.heatmaps.local_forecast` makes it. These lines are from before the floor on
# information in the decoder was mended: the two remade since (81.5, 271.5) differ by less than 0.003.
FORECAST_TABLE: tuple[tuple[float, tuple[float, float, float], tuple[float, float, float]], ...] = (
    (10.9, (0.2038, 0.2556, 0.3724), (0.137, 0.178, 0.2442)),
    (27.2, (0.1533, 0.2364, 0.3448), (0.1654, 0.214, 0.4043)),
    (81.5, (0.1331, 0.1854, 0.2648), (0.2532, 0.3418, 0.4657)),
    (271.5, (0.0921, 0.136, 0.1897), (0.2838, 0.4617, 0.5293)),
    (1352.4, (0.0476, 0.0829, 0.1173), (0.4531, 0.5765, 0.7202)),
    (4143.3, (0.0339, 0.0548, 0.0782), (0.5796, 0.6619, 0.8016)),
    (13811.0, (0.0279, 0.0394, 0.0546), (0.6708, 0.776, 0.8345)),
    (51322.9, (0.0178, 0.026, 0.0356), (0.7828, 0.8545, 0.8899)),
    (226691.5, (0.0124, 0.0144, 0.0202), (0.8461, 0.9101, 0.9242)),
    (789247.0, (0.0074, 0.01, 0.0151), (0.8831, 0.9386, 0.9518)),
    (2196298.5, (0.0052, 0.007, 0.0117), (0.9128, 0.9533, 0.9644)),
    (7320994.9, (0.0038, 0.0051, 0.0092), (0.9216, 0.9688, 0.9725)),
)
# Few users who say nearly all tell no more than they know: information counts as 1 / (1 / information +
# 1 / (0.6 users**1.79)), fitted by eye to simulated maps of 30, 100 and 300 users, checked at 1,000 and 10,000
# (tests/heatmap/local/forecast_table.py prints them beside what is forecast).
KNOWN, KNOWN_POWER, FEWEST_USERS = 0.6, 1.79, 30
# A map of less than this Similarity, in the middle of its forecast, is hopeless: it shares less than
# half of its mass with the truth.
HOPELESS = 0.5


@dataclass(frozen=True, slots=True)
class Expected:
    """A number that a map will have: its middle, and where nine in ten simulated maps lay."""

    middle: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class LocalPlan:
    """What is asked of so many users at an epsilon, and what their map will be worth.

    Attributes:
        design: Rounds, cells and patches.
        emd: Earth mover's distance to the truth, in sides of the map; None for fewer or more than was
            simulated.
        similarity: The mass shared with the truth, both smoothed by 0.02 sides; None likewise.
        hopeless_below: With fewer users at this epsilon a map is hopeless.
        wanted: The Similarity that was wanted, if one was.
        required_users: The least users for it at this epsilon; None where no table reaches it.
        answer_bytes: About how long an answer is.
    """

    design: Design
    emd: Expected | None
    similarity: Expected | None
    hopeless_below: int
    wanted: float | None
    required_users: int | None
    answer_bytes: int

    @property
    def hopeless(self) -> bool:
        """Whether there are too few users for any map."""
        return self.design.users < self.hopeless_below

    def to_json(self) -> dict[str, Any]:
        """All of it; epsilon as an exact fraction."""
        plan = asdict(self.design)
        plan["epsilon"], plan["odds"] = written(self.design.epsilon), written(self.design.odds)
        plan["first_part"] = written(self.design.first_part)
        return {
            "design": plan,
            "rounds": 2 if self.design.cells else 1,
            "emd": None if self.emd is None else asdict(self.emd),
            "similarity": None if self.similarity is None else asdict(self.similarity),
            "hopeless": self.hopeless,
            "hopeless_below": self.hopeless_below,
            "wanted": self.wanted,
            "required_users": self.required_users,
            "answer_bytes": self.answer_bytes,
        }


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
    odds = float(odds_below(epsilon))
    each = (odds - 1) ** 2 / (4 * odds)
    wanted = None if target is None else _information(target)
    outputs = 8 * max(plan.cells, 4)
    return LocalPlan(
        design=plan,
        emd=_expected(users, each, 1),
        similarity=_expected(users, each, 2),
        hopeless_below=_users(_information(HOPELESS) or math.inf, each),
        wanted=target,
        required_users=None if wanted is None else _users(wanted, each),
        answer_bytes=150 + len(str(outputs)),
    )


def plan_text(plan: LocalPlan) -> str:
    """A plan in words.

    Args:
        plan: What `plan_local` returned.

    Returns:
        The lines, without a line end after the last.

    """
    asked, epsilon = plan.design, plain(plan.design.epsilon)
    lines = [
        f"{asked.users:,} devices, epsilon {epsilon} each, randomised on the device: nobody is trusted"
    ]
    if asked.cells:
        first = round(float(asked.first_part) * asked.users)
        lines.append(
            f"round 1: about {first:,} devices over {4**asked.first_level} cells; round 2: the others, once, "
            f"over {asked.cells} cells of about equal mass"
        )
    else:
        lines.append(f"one round: all devices over {4**asked.first_level} cells")
    if plan.emd is None or plan.similarity is None:
        lines.append(
            "how good the map will be is not known: so few, or so many, were not simulated"
        )
    else:
        lines.append(
            f"earth mover's distance {_told(plan.emd)} of a side, Similarity {_told(plan.similarity)} "
            "(nine in ten simulated cities)"
        )
    if plan.hopeless:
        lines.append(
            f"hopeless: below {plan.hopeless_below:,} devices at this epsilon a map shares less than "
            "half of its mass with the truth"
        )
    else:
        lines.append(f"hopeless below {plan.hopeless_below:,} devices at this epsilon")
    if plan.wanted is not None:
        lines.append(
            f"Similarity {plan.wanted:g} takes about {plan.required_users:,} devices"
            if plan.required_users is not None
            else f"Similarity {plan.wanted:g} is beyond what was simulated"
        )
    return "\n".join(lines)


def _told(one: Expected) -> str:
    return f"{one.middle:.2g} ({one.low:.2g} to {one.high:.2g})"


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


def _told_by(users: int, each: float) -> float:
    """What counts of the information of so many users, `each` of one."""
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

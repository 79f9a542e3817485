"""What a local map will be worth, before anybody is asked: from the number of users and epsilon alone."""

from __future__ import annotations

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
TABLE: tuple[tuple[float, tuple[float, float, float], tuple[float, float, float]], ...] = (
    (10.9, (0.1869, 0.2586, 0.371), (0.1243, 0.171, 0.2737)),
    (27.2, (0.1535, 0.2404, 0.3352), (0.1695, 0.2123, 0.3939)),
    (81.5, (0.1362, 0.1732, 0.2871), (0.2551, 0.3418, 0.4707)),
    (271.5, (0.0838, 0.1552, 0.2313), (0.3092, 0.462, 0.5878)),
    (1352.4, (0.0518, 0.0876, 0.1199), (0.4685, 0.5754, 0.7244)),
    (4143.3, (0.0384, 0.0574, 0.0755), (0.6, 0.6689, 0.7606)),
    (13811.0, (0.0251, 0.0383, 0.0498), (0.6816, 0.7666, 0.8357)),
    (51322.9, (0.0217, 0.0269, 0.0313), (0.7846, 0.8612, 0.8801)),
    (226691.5, (0.0117, 0.0152, 0.0201), (0.8407, 0.9138, 0.9292)),
    (789247.0, (0.0087, 0.0114, 0.0151), (0.8728, 0.9342, 0.9447)),
    (2196298.5, (0.0053, 0.0073, 0.0122), (0.9016, 0.9541, 0.9628)),
    (14641989.7, (0.0033, 0.0041, 0.0089), (0.9236, 0.9724, 0.9766)),
)
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
        emd: Earth mover's distance to the truth, in sides of the map.
        similarity: The mass shared with the truth, both smoothed by 0.02 sides.
        hopeless_below: With fewer users at this epsilon a map is hopeless.
        wanted: The Similarity that was wanted, if one was.
        required_users: The least users for it at this epsilon; None where no table reaches it.
        answer_bytes: About how long an answer is.
    """

    design: Design
    emd: Expected
    similarity: Expected
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
            "emd": asdict(self.emd),
            "similarity": asdict(self.similarity),
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
        emd=_expected(plan.information, 1),
        similarity=_expected(plan.information, 2),
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


def _expected(information: float, which: Literal[1, 2]) -> Expected:
    at = math.log(max(information, 1e-9))
    rows = [math.log(row[0]) for row in TABLE]
    low, middle, high = (
        float(np.interp(at, rows, [row[which][part] for row in TABLE])) for part in range(3)
    )
    return Expected(middle, low, high)


def _information(similarity: float) -> float | None:
    """The information at which the middle of Similarity reaches a number."""
    reached = [row[2][1] for row in TABLE]
    if similarity > reached[-1]:
        return None
    rows = [math.log(row[0]) for row in TABLE]
    return math.exp(float(np.interp(similarity, np.maximum.accumulate(reached), rows)))


def _users(information: float, each: float) -> int:
    return math.ceil(information / max(each, 1e-12))

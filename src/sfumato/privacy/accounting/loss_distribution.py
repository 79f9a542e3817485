"""Privacy loss distributions of fixed schedules, by dp-accounting: the only module that imports it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, assert_never

from sfumato.errors import InvalidParameter, NotComparable
from sfumato.privacy.accounting.losses import ZCDP, ApproxDP, PureDP
from sfumato.privacy.accounting.numbers import exact
from sfumato.privacy.ledger.guarded import Bound
from sfumato.privacy.mechanisms.discrete_gaussian import DiscreteGaussian
from sfumato.privacy.mechanisms.discrete_laplace import DiscreteLaplace
from sfumato.privacy.mechanisms.protocol import Mechanism
from sfumato.privacy.mechanisms.rounded_gaussian import RoundedGaussian


def compose_distributions(
    schedule: Iterable[tuple[Mechanism[Any, Any], Bound]], delta: float
) -> Fraction:
    """The epsilon of a schedule at delta, pessimistically discretised: an upper bound up to rounding."""
    steps = Counter(schedule)
    if not steps:
        raise InvalidParameter("a schedule needs at least one release, got none")
    relations = {bound.neighbors for _, bound in steps}
    if len(relations) > 1:
        raise NotComparable(
            f"a schedule has one neighbor relation, got {', '.join(map(str, relations))}"
        )
    total: Any = None
    for (mechanism, bound), times in steps.items():
        part = _distribution(mechanism, bound).self_compose(times)
        total = part if total is None else total.compose(part)
    epsilon = float(total.get_epsilon_for_delta(delta))
    if not math.isfinite(epsilon):
        raise NotComparable(
            f"delta {delta:g} is below what dp-accounting can resolve for this schedule"
        )
    return exact(epsilon)


def _distribution(mechanism: Mechanism[Any, Any], bound: Bound) -> Any:
    """The exact one where one number moves or the noise is Gaussian; otherwise the worst of its cost."""
    from dp_accounting.pld import privacy_loss_distribution as distributions
    from dp_accounting.pld.common import DifferentialPrivacyParameters

    match mechanism:
        case RoundedGaussian(sigma):
            moved = math.sqrt(bound.required("l2_squared", by="rounded Gaussian noise"))
            moved = math.nextafter(moved, math.inf)
            return distributions.from_gaussian_mechanism(float(sigma), sensitivity=moved)
        case DiscreteGaussian(sigma) if bound.entries == 1 and bound.linf is not None:
            return distributions.from_discrete_gaussian_mechanism(
                float(sigma), sensitivity=int(bound.linf)
            )
        case DiscreteLaplace(scale) if bound.entries == 1 and bound.l1 is not None:
            return distributions.from_discrete_laplace_mechanism(
                1 / float(scale), sensitivity=int(bound.l1)
            )
    match cost := mechanism.cost(bound):
        case PureDP(epsilon):
            return distributions.from_privacy_parameters(
                DifferentialPrivacyParameters(float(epsilon))
            )
        case ApproxDP(epsilon, delta):
            return distributions.from_privacy_parameters(
                DifferentialPrivacyParameters(float(epsilon), float(delta))
            )
        case ZCDP():
            raise NotComparable(
                f"{mechanism.name} on a vector has no known privacy loss distribution"
            )
        case _:
            assert_never(cost)

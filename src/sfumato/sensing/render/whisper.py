"""Where a whisper began, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.sensing.render.words import percent
from sfumato.sensing.results.whisper import (
    INDEPENDENT,
    SimulatedWhisper,
    WhisperCost,
    WhisperResult,
)
from sfumato.sensing.results.whisper_plan import WhisperPlan

if TYPE_CHECKING:
    from sfumato.sensing.whisper.answers import WhisperAnswers

MAX_NODES = 8  # that are named

LIMITS = (
    "nodes count as independent given the start; where it ran along edges they are not, and both the "
    "community and the set of nodes are less sure than said"
)
SIMULATED = (
    "probabilities are how often it would be so of whispers simulated as said; if it spread otherwise, "
    "they may be wrong"
)
UNSTATED = (
    "how far it goes was NOT stated: averaged over several chances or weights, and probabilities can be off "
    "by more than 5 points; state `chance` or `weight` if it is known"
)
OTHERWISE = (
    "it did NOT spread as said: so few or so many yes come in {:.1%} of whispers simulated so; do not rely "
    "on the answer"
)


def limits_text(result: WhisperResult) -> str:
    """What the probabilities of a start rest on, and whether it did spread so."""
    if result.spread.startswith(INDEPENDENT) and not result.spread.startswith(
        "independent-cascade"
    ):
        return LIMITS
    # The name alone is that of several models; one says its numbers.
    stated = "," in result.spread
    said = f"{result.spread}: {SIMULATED}" + ("" if stated else f"; {UNSTATED}")
    if result.implausible:
        said += f"; {OTHERWISE.format(result.plausible)}"
    return said


def whisper_price(planned: WhisperCost) -> str:
    """What a release of answers would cost.

    Args:
        planned: What `whisper_cost` found.

    Returns:
        One line.
    """
    often = f"each answer flipped with {percent(planned.flipped)}"
    return f"would cost {planned.cost} for each node, {often}; nothing was read or charged"


def answers_remark(released: WhisperAnswers) -> str:
    """How many answers were released, and what was promised.

    Args:
        released: What `release_whisper` released.

    Returns:
        One line.
    """
    return f"released {released.count} answers, {released.statement}"


def simulated_remark(made: SimulatedWhisper) -> str:
    """How many have heard a whisper that was made up.

    Args:
        made: What `simulate_whisper` made up.

    Returns:
        One line.
    """
    heard = f"{int(made.heard.sum())} of {made.graph.size} nodes"
    return f"made up a whisper that {heard} have heard"


def whisper_text(result: WhisperResult) -> str:
    """What is printed of the start of a whisper.

    Args:
        result: Where it began.

    Returns:
        Several lines.
    """
    size = len(result.probabilities)
    likely = sorted(result.communities, key=lambda one: -one.probability)
    where = ", ".join(
        f"{one.label} ({one.nodes} nodes) with {percent(one.probability)}" for one in likely
    )
    held = result.smallest
    first = ", ".join(f"{node} {percent(result.probabilities[node])}" for node in held[:MAX_NODES])
    lines = [
        f"{result.answered} of {size} nodes answered: {result.statement}",
        f"it began in community {where}",
        f"with {percent(result.share)} at one of {len(held)} node{'s' * (len(held) != 1)}: {first}"
        + (", ..." if len(held) > MAX_NODES else ""),
        result.limits,
    ]
    if result.start is not None:
        one = result.start
        lines.append(
            f"truly it began at {one.node} of community {one.community}: "
            f"{percent(one.probability)}, number {one.rank} of {size}, "
            f"{'in' if one.in_smallest else 'NOT in'} the set"
        )
    return "\n".join(lines)


def whisper_plan_text(plan: WhisperPlan) -> str:
    """What is printed of a plan that hides who began.

    Args:
        plan: The epsilon and what was proved of it.

    Returns:
        Several lines.
    """
    whom = "any two nodes" if plan.communities is None else "two nodes of one community"
    if plan.communities is not None:
        whom += f" of {plan.communities}"
    if plan.within is not None:
        whom += f" at most {plan.within} hop{'s' * (plan.within != 1)} apart"
    how = "attained by some answers" if plan.exact else "a bound: the true loss may be less"
    lines = [
        f"epsilon {float(plan.epsilon):.3g} for each answer, flipped with {percent(plan.flipped)}: each "
        "node's own answer is protected by it, however the whisper spread",
        f"who began it, among {whom}: loss {plan.loss:.4g} of {plan.target:g} allowed, {how} "
        f"(Pufferfish: it holds if the whisper spread as said: {plan.spread})",
        f"all {plan.pairs:,} pairs were looked at; the worst is {plan.worst[0]} and {plan.worst[1]}",
    ]
    if plan.next_epsilon is not None and plan.next_loss is not None:
        beyond = (
            f"at epsilon {float(plan.next_epsilon):.3g} no more than {plan.next_loss:.4g} is proved"
        )
        lines.append(beyond)
    return "\n".join([*lines, f"it rests on {plan.reason}" if not plan.exact else plan.reason])

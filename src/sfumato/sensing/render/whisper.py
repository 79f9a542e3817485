"""Where a whisper began, in words."""

from __future__ import annotations

from sfumato.sensing.render.words import percent
from sfumato.sensing.results.whisper import LIMITS, WhisperResult

MAX_NODES = 8  # that are named


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
        LIMITS,
    ]
    if result.start is not None:
        one = result.start
        lines.append(
            f"truly it began at {one.node} of community {one.community}: "
            f"{percent(one.probability)}, number {one.rank} of {size}, "
            f"{'in' if one.in_smallest else 'NOT in'} the set"
        )
    return "\n".join(lines)

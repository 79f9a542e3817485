"""Split a privacy budget over the levels of a pyramid."""

from __future__ import annotations

from fractions import Fraction

from sfumato._validate import whole
from sfumato.errors import InvalidParameter
from sfumato.spaces import MAX_LEVELS

# The decay that minimises the error of [ghazi23, footnote 5] as the levels grow.
DECAY = 2**-0.5


def first_level(width: int, levels: int) -> int:
    """The level at which a pyramid begins: the finest one with at most `width` cells.

    q = floor(log2(sqrt(width))), or the last level if that is coarser [ghazi23, sec. 4]; found in
    integers, since a double takes the root of 4**27 - 1 for 2**27.

    >>> [first_level(width, 8) for width in (1, 3, 4, 15, 16, 4**8, 4**20)]
    [0, 0, 1, 1, 2, 8, 8]
    """
    wide = whole("width", width, low=1)
    return min((wide.bit_length() - 1) // 2, whole("levels", levels, low=0, high=MAX_LEVELS))


def split_epsilon(
    epsilon: Fraction, levels: int, *, width: int, decay: float = DECAY
) -> dict[int, Fraction]:
    """Give most of epsilon to the level whose cells number about `width`: its share by level, to be spent.

    Level i from q = `first_level(width, levels)` on gets a share proportional to decay ** |i - q|;
    the shares add up to epsilon exactly [ghazi23, sec. 3.3 and 4].

    Args:
        epsilon: What all levels cost together, above 0.
        levels: The finest level, 0 to MAX_LEVELS.
        width: Cells kept at each level, at least 1.
        decay: The ratio of the shares of neighboring levels, in (0, 1].

    Returns:
        The share of each level from the first on; they add up to epsilon.

    Raises:
        InvalidParameter: A parameter is out of range.

    Example:
        >>> shares = split_epsilon(Fraction(1), 3, width=4, decay=0.5)
        >>> {level: str(share) for level, share in shares.items()}
        {1: '4/7', 2: '2/7', 3: '1/7'}

    """
    if epsilon <= 0:
        raise InvalidParameter(f"epsilon must be above 0, got {epsilon}; no budget was split")
    ratio = checked_decay(decay)
    q = first_level(width, levels)
    # Powers of the exact value of the double: no library of any machine rounds them.
    parts = {level: ratio ** abs(level - q) for level in range(q, levels + 1)}
    total = sum(parts.values())
    return {level: epsilon * part / total for level, part in parts.items()}


def checked_decay(decay: float) -> Fraction:
    """The decay as an exact fraction, when it lies in (0, 1]."""
    if not 0 < decay <= 1:
        raise InvalidParameter(f"decay must lie in (0, 1], got {decay}; no budget was split")
    return Fraction(decay)

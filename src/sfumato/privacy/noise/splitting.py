"""Integers as messages that add up to them, modulo a power of two: all but one are uniform.

docs/proofs/shuffled-sums.md says how many it takes.
"""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt

from sfumato._types import IntArray
from sfumato.errors import InvalidParameter

Words = npt.NDArray[np.uint64]
MOST_BITS = 62


def split_into_messages(values: IntArray, messages: int, *, bits: int) -> Words:
    """Each integer as messages, from the system's randomness: any of them but all are uniform.

    Args:
        values: A device's integers, with its shares of the noise [value].
        messages: How many messages each gives, 1 or more.
        bits: Messages are modulo 2**bits.

    Returns:
        Integers 0 .. 2**bits - 1, which add up to the values modulo 2**bits [message, value].

    Raises:
        InvalidParameter: A number is out of range.

    Example:
        >>> parts = split_into_messages(np.array([5, -3]), 4, bits=16)
        >>> parts.shape, add_messages(parts, bits=16).tolist()
        ((4, 2), [5, -3])

    """
    mask = _mask(bits)
    if type(messages) is not int or messages < 1:
        raise InvalidParameter(
            f"messages must be a whole number of at least 1, got {messages!r}; nothing was drawn"
        )
    found = np.empty((messages, values.size), dtype=np.uint64)
    drawn = os.urandom(8 * (messages - 1) * values.size)
    found[1:] = np.frombuffer(drawn, dtype=np.uint64).reshape(messages - 1, values.size)
    # Integers of 64 bits wrap, which is what sums modulo a power of two are.
    found[0] = values.astype(np.int64).view(np.uint64) - found[1:].sum(axis=0, dtype=np.uint64)
    return found & mask


def add_messages(messages: Words, *, bits: int) -> IntArray:
    """What messages add up to, as integers around 0.

    Args:
        messages: All messages of each sum, in any order [message, sum].
        bits: They are modulo 2**bits.

    Returns:
        The integers from -2**(bits - 1) to 2**(bits - 1) - 1 [sum].

    """
    return centred(messages.sum(axis=0, dtype=np.uint64), bits=bits)


def centred(sums: Words, *, bits: int) -> IntArray:
    """Sums modulo 2**bits as integers around 0: those from half of it on stand for negative ones.

    Args:
        sums: Sums of messages, which may have wrapped [sum].
        bits: They are modulo 2**bits.

    Returns:
        The integers from -2**(bits - 1) to 2**(bits - 1) - 1 [sum].

    """
    found = (sums & _mask(bits)).view(np.int64)
    return np.asarray(np.where(found >> (bits - 1) & 1, found - (1 << bits), found))


def _mask(bits: int) -> np.uint64:
    if type(bits) is not int or not 1 <= bits <= MOST_BITS:
        raise InvalidParameter(f"bits must be 1 to {MOST_BITS}, got {bits!r}; nothing was drawn")
    return np.uint64((1 << bits) - 1)

"""The search behind keyed draws: fixed depth, no branch on the value; compiled where draws are many."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from sfumato._types import IntArray
from sfumato.privacy.noise.tables import Sampler

SIGN = np.uint64(63)
REST = np.uint64(0x7FFFFFFFFFFFFFFF)
PAGE = 512  # words of memory
MANY = 2**14  # blocks; a device asks for fewer, and does not load a compiler for them


@lru_cache(maxsize=1)
def _compiled() -> Callable[..., IntArray]:
    # numba takes a third of a second to import, and 150 MB: not before it is worth it.
    from sfumato._compiled import njit

    @njit
    def draw(
        words: Any, high: Any, low: Any, starts: Any, halves: Any, weights: Any, signed: bool
    ) -> Any:
        blocks = weights.size
        count = words.shape[0] // blocks
        out = np.empty(count, dtype=np.int64)
        for i in range(count):
            total = np.int64(0)
            sign = np.int64(0)
            nonzero = np.int64(1)
            for j in range(blocks):
                h = words[i * blocks + j, 0]
                lo = words[i * blocks + j, 1]
                negative = np.int64(h >> SIGN)
                h = h & REST
                position = np.int64(0)
                step = halves[j]
                while step > 0:  # as many times for every value: the depth of table j
                    probe = starts[j] + position + step - 1
                    t = high[probe]
                    below = np.int64(t < h) | (np.int64(t == h) & np.int64(low[probe] <= lo))
                    position += step * below
                    step >>= 1
                if signed:
                    total += weights[j] * ((position ^ -negative) + negative)
                elif j == 0:
                    sign, nonzero = negative, position
                else:
                    total += weights[j] * position
            if not signed:
                total = nonzero * (((total + 1) ^ -sign) + sign)
            out[i] = total
        return out

    compiled: Callable[..., IntArray] = draw
    return compiled


@lru_cache(maxsize=64)
def _layout(sampler: Sampler) -> tuple[Any, ...]:
    """All tables of a sampler one after the other, equal ones once."""
    starts, halves, highs, lows = [], [], [], []
    seen: dict[int, int] = {}
    filled = 0
    for table in sampler.tables:
        high, low = table.arrays()
        if id(table) not in seen:
            seen[id(table)] = filled
            highs.append(high)
            lows.append(low)
            filled += high.size
        starts.append(seen[id(table)])
        halves.append((high.size + 1) // 2)
    integers = (np.array(a, dtype=np.int64) for a in (starts, halves, sampler.weights))
    # Upper and lower halves that began at the same place of a page would share lines of the cache,
    # which costs a tenth of the time of a draw: they lie in one array, a quarter of a page apart.
    start = -(-filled // PAGE) * PAGE + PAGE // 4
    words = np.empty(start + filled, dtype=np.uint64)
    high, low = words[:filled], words[start:]
    np.concatenate(highs, out=high)
    np.concatenate(lows, out=low)
    return (high, low, *integers, sampler.signed)


def _by_columns(
    words: Any, high: Any, low: Any, starts: Any, halves: Any, weights: Any, signed: bool
) -> IntArray:
    """The same search by NumPy, all draws in step: every one makes as many comparisons as any other."""
    blocks = weights.size
    total = np.zeros(words.shape[0] // blocks, dtype=np.int64)
    sign, nonzero = total, total
    for j in range(blocks):
        negative = (words[j::blocks, 0] >> SIGN).astype(np.int64)
        h, lo = words[j::blocks, 0] & REST, words[j::blocks, 1]
        position = np.zeros(total.size, dtype=np.int64)
        step = int(halves[j])
        while step > 0:
            probe = starts[j] + position + step - 1
            t = high[probe]
            position += step * ((t < h) | ((t == h) & (low[probe] <= lo)))
            step >>= 1
        if signed:
            total += weights[j] * ((position ^ -negative) + negative)
        elif j == 0:
            sign, nonzero = negative, position
        else:
            total += weights[j] * position
    return total if signed else nonzero * (((total + 1) ^ -sign) + sign)


def _search(blocks: int) -> Callable[..., IntArray]:
    """The compiled search where blocks are many, or where it is there already: few take it 1/30 of the time."""
    return _compiled() if blocks >= MANY or _compiled.cache_info().currsize else _by_columns


def look_up(raw: bytes, sampler: Sampler) -> IntArray:
    """Draws from 16-byte big-endian blocks, as many per draw as the sampler has tables.

    Args:
        raw: Random bytes, 16 for each table of each draw.
        sampler: The tables of a law.

    Returns:
        The draws.

    """
    words = np.frombuffer(raw, dtype=">u8").astype(np.uint64).reshape(-1, 2)
    return _search(words.shape[0])(words, *_layout(sampler))

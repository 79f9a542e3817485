"""The compiled recursion behind `reconstruct`: convex costs as sorted lists of pieces, merged upward.

A *piece* is a stretch of mass inside a cell over which the cost has one slope: a key, a length in
units and a content. The slope is the sum of +-2**-i over the levels, minus where the mass is still
below the count t of the cell around it, plus beyond. Since 2**-i exceeds the sum of all finer
weights, slopes compare like their strings of signs read as binary numbers, coarsest level first:
the key. No float enters before the very end.
"""

from __future__ import annotations

import numpy as np

from sfumato._compiled import njit

# Above every key: keys have one bit for each level. Every list of pieces ends in it.
END = 1 << 40
# No count lies above this (privacy clips there), so longer pieces are never used to their end.
# Four of them do not wrap.
LONGEST = (1 << 61) - 1


@njit
def solve(starts, codes, counts):
    """The mass of each cell that is its own, in units; cells of level k are starts[k]..starts[k + 1] - 1.

    A ValueError when the cells are no tree: codes increase in each level, each cell lies in one of
    the level above. Contents 0..n-1 are the cells; contents n.. are mixtures of up to four earlier
    ones in fixed proportion.
    """
    n = codes.size
    # A cell adds at most one piece: it cuts one in two, or lays one of its own at the end. Ends
    # come on top. A mixture takes the place of two pieces or more, so there are fewer than n of
    # them.
    room, mixtures = 2 * n, 0
    # One half is read while the other is written.
    keys, lengths = np.empty(2 * room, np.int64), np.empty(2 * room, np.int64)
    contents = np.empty(2 * room, np.int32)
    parts, shares, sizes = (
        np.empty((n, 4), np.int32),
        np.empty((n, 4), np.int64),
        np.empty(n, np.int8),
    )
    # Where the list of each cell begins.
    begin = np.empty(n, np.int64)

    last = starts.size - 2
    written = 0
    for level in range(last, -1, -1):
        bit = np.int64(1) << (last - level)
        written = room if level & 1 else 0
        child = starts[level + 1]
        children_end = starts[level + 2] if level < last else child
        before = np.int64(-1)
        for cell in range(starts[level], starts[level + 1]):
            code = codes[cell]
            if code <= before:
                raise ValueError
            before = code
            begin[cell] = written
            left = min(max(counts[cell], 0), LONGEST)
            first = child
            while child < children_end and codes[child] >> 2 == code:
                child += 1
            if child > first:
                a, b, c, d = begin[first], 0, 0, 0
                ka, kb, kc, kd = keys[a], END, END, END
                if child > first + 1:
                    b = begin[first + 1]
                    kb = keys[b]
                    if child > first + 2:
                        c = begin[first + 2]
                        kc = keys[c]
                        if child > first + 3:
                            d = begin[first + 3]
                            kd = keys[d]
                while True:
                    # The infimal convolution of convex costs: always the smallest slope next.
                    key = min(min(ka, kb), min(kc, kd))
                    if key == END:
                        break
                    length, content, found = np.int64(0), np.int64(0), 0
                    if ka == key:
                        length, content, found = lengths[a], np.int64(contents[a]), 1
                        parts[mixtures, 0], shares[mixtures, 0] = content, length
                        a += 1
                        ka = keys[a]
                    if kb == key:
                        content = np.int64(contents[b])
                        parts[mixtures, found], shares[mixtures, found] = content, lengths[b]
                        length += lengths[b]
                        found += 1
                        b += 1
                        kb = keys[b]
                    if kc == key:
                        content = np.int64(contents[c])
                        parts[mixtures, found], shares[mixtures, found] = content, lengths[c]
                        length += lengths[c]
                        found += 1
                        c += 1
                        kc = keys[c]
                    if kd == key:
                        content = np.int64(contents[d])
                        parts[mixtures, found], shares[mixtures, found] = content, lengths[d]
                        length += lengths[d]
                        found += 1
                        d += 1
                        kd = keys[d]
                    if found > 1:
                        # Tied pieces become one, to be cut as one: all give the same share of their
                        # length.
                        content, length = n + mixtures, min(length, LONGEST)
                        sizes[mixtures] = found
                        mixtures += 1
                    # |t - m| falls up to t and rises from there: cut the piece where t is reached.
                    below = min(length, left)
                    if below > 0:
                        keys[written], lengths[written], contents[written] = key, below, content
                        written += 1
                        left -= below
                    if below < length:
                        keys[written], lengths[written], contents[written] = (
                            key | bit,
                            length - below,
                            content,
                        )
                        written += 1
            if left > 0:
                # Beyond all pieces the cost below rises by all finer weights at once (a key of
                # ones) wherever in the cell the mass goes: it is the cell's own.
                keys[written], lengths[written], contents[written] = bit - 1, left, cell
                written += 1
            keys[written] = END
            written += 1
        if child < children_end:
            raise ValueError

    # At the top the slope is negative exactly before the cut: m = max(t, 0), the pieces without the
    # top bit.
    units = np.zeros(n + mixtures)
    for piece in range(written):
        if keys[piece] >> last == 0:
            units[contents[piece]] += lengths[piece]
    for mixture in range(mixtures - 1, -1, -1):
        given = units[n + mixture]
        if given > 0.0:
            total = 0.0
            for i in range(sizes[mixture]):
                total += shares[mixture, i]
            for i in range(sizes[mixture]):
                share = 1.0 * shares[mixture, i]
                # A mixture used whole gives its integers back; a share of one is the only rounding.
                units[parts[mixture, i]] += share if given == total else given * (share / total)
    return units[:n]


@njit
def pick(starts, first_level, units, codes):
    """The cells with mass: level, code and units of each."""
    count = 0
    for cell in range(units.size):
        if units[cell] > 0.0:
            count += 1
    levels, chosen, masses = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count)
    at = 0
    for level in range(starts.size - 1):
        for cell in range(starts[level], starts[level + 1]):
            if units[cell] > 0.0:
                levels[at], chosen[at], masses[at] = first_level + level, codes[cell], units[cell]
                at += 1
    return levels, chosen, masses

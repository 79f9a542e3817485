"""The compiled passes behind `posterior`: likelihoods up the tree of halves, masses down it.

A node is a cell or half a cell, at most two levels of halves to a level of cells; nodes are
numbered from the root, children after parents and next to each other: `first[n]` and `first[n] +
1`, or -1 where nothing below was counted. The likelihood of everything below a node, as a function
of its mass, is a table of its logarithm on points from `low` to `high`, denser towards `low`.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato._compiled import njit

# Points of a table, and bins of a share: a bin is at most 12 / 20 of a standard deviation wide.
POINTS, BINS = 20, 20
# Of `kind`: not counted, counted, known to be at most the value.
NONE, COUNT, CEILING = 0, 1, 2
LEAST = 1e-9  # users: no cell has less
TOTALS = 400  # points of the posterior of a whole map: 25 a deviation


@njit
def likelihood(n, x, kinds, values, scales, low, high, table, filled):
    """The logarithm of how likely the counts of node n and below it are, if its mass is x."""
    found = 0.0
    for at in range(kinds.shape[1]):
        away = (values[n, at] - x) / scales[n, at]
        if kinds[n, at] == COUNT:
            found -= abs(away)
        elif kinds[n, at] == CEILING:
            # The distribution function of Laplace noise.
            found += away - math.log(2.0) if away < 0 else math.log1p(-0.5 * math.exp(-away))
    if filled[n]:
        last = table.shape[1] - 1
        far = (x - low[n]) / (high[n] - low[n])
        at = 0 if far <= 0 else min(int(math.sqrt(far) * last), last - 1)
        here, there = (at / last) ** 2, ((at + 1) / last) ** 2
        found += table[n, at] + (table[n, at + 1] - table[n, at]) * (far - here) / (there - here)
    return found


@njit
def totals(root, tree, tables):
    """The posterior of the mass of a root, as points and weights; all masses were as likely before."""
    guess, spread, kinds, values, scales = tree[2:]
    low, high, table, filled = tables
    begin = max(0.0, guess[root] - 8 * spread[root])
    end = max(0.0, guess[root]) + 8 * spread[root]
    points, weights = np.empty(TOTALS), np.empty(TOTALS)
    top = -np.inf
    for at in range(TOTALS):
        points[at] = max(begin + (end - begin) * at / (TOTALS - 1), LEAST)
        weights[at] = likelihood(root, points[at], kinds, values, scales, low, high, table, filled)
        top = max(top, weights[at])
    weights = np.exp(weights - top)
    return points, weights / weights.sum()


@njit
def expect_totals(roots, tree, tables, mass):
    """The expected mass of each root."""
    for root in range(roots):
        points, weights = totals(root, tree, tables)
        mass[root] = np.sum(points * weights)


@njit
def window(m, a, b, guess, spread):
    """Where the share of the first child can lie, given the mass m of the parent: six deviations around."""
    weight = 1 / spread[a] ** 2 + 1 / spread[b] ** 2
    if weight <= 0:
        return 0.0, 1.0
    middle = (guess[a] / spread[a] ** 2 + (m - guess[b]) / spread[b] ** 2) / weight / m
    width = 1 / math.sqrt(weight) / m
    begin, end = min(max(middle - 6 * width, 0.0), 1.0), min(max(middle + 6 * width, 0.0), 1.0)
    if end - begin < 3 * width and end - begin < 1:
        # The middle lies outside: keep a stretch at the edge.
        if begin <= 0:
            end = min(1.0, 3 * width)
        elif end >= 1:
            begin = max(0.0, 1 - 3 * width)
    if end - begin < 1e-7:
        begin = min(begin, 1 - 1e-7)
        end = begin + 1e-7
    return begin, end


@njit
def logit(t):
    """Kept where the tables are."""
    t = min(max(t, 1e-9), 1 - 1e-9)
    return math.log(t / (1 - t))


@njit
def spot(center):
    """Between which two centers of the tables a center lies, and how far along."""
    place = min(max((logit(center) + 3.5) / 0.5, 0.0), 13.999999)
    return int(place), place - int(place)


@njit
def along(t):
    """Between which two logits of the tables a share lies, and how far along."""
    place = min(max((logit(t) + 18.0) / 0.1, 0.0), 359.999)
    return int(place), place - int(place)


@njit
def blend(table, c, more, k, r):
    """An entry of a table between centers and logits."""
    one = table[c, k] * (1 - r) + table[c, k + 1] * r
    two = table[c + 1, k] * (1 - r) + table[c + 1, k + 1] * r
    return one * (1 - more) + two * more


@njit
def weigh(begin, end, center, below, part, means, weights):
    """The prior weight of each bin between begin and end, and the mean share in it."""
    c, more = spot(center)
    # The mean of all shares: the center, as the tables have it between two of theirs.
    whole = (1 - more) / (1 + math.exp(3.5 - 0.5 * c)) + more / (1 + math.exp(3.5 - 0.5 * (c + 1)))
    before, before_part = 0.0, 0.0
    bins = means.size
    for edge in range(bins + 1):
        t = begin + (end - begin) * edge / bins
        now, now_part = 0.0, 0.0
        if t >= 1:
            now, now_part = 1.0, whole
        elif t > 0:
            k, r = along(t)
            now, now_part = blend(below, c, more, k, r), blend(part, c, more, k, r)
        if edge:
            weight = now - before
            start = begin + (end - begin) * (edge - 1) / bins
            weights[edge - 1] = max(weight, 0.0)
            means[edge - 1] = (
                min(max((now_part - before_part) / weight, start), t)
                if weight > 1e-290
                else (start + t) / 2
            )
        before, before_part = now, now_part


@njit
def class_of(mass, masses):
    """Which mixture of shapes a mass has."""
    found = 0
    while found < masses.size and mass > masses[found]:
        found += 1
    return found


@njit
def split(m, n, tree, tables, below, part, logs, means, weights):
    """The bins of the share of n's first child, when n has mass m: means, prior weights, log likelihoods.

    Returns the largest of the logarithms among bins that have weight.
    """
    first, center, guess, spread, kinds, values, scales = tree
    low, high, table, filled = tables
    a = first[n]
    b = a + 1
    begin, end = window(m, a, b, guess, spread)
    weigh(begin, end, center[n], below, part, means, weights)
    top = -1e300
    for q in range(logs.size):
        if weights[q] > 0:
            x = m * means[q]
            logs[q] = likelihood(
                a, x, kinds, values, scales, low, high, table, filled
            ) + likelihood(b, m - x, kinds, values, scales, low, high, table, filled)
            top = max(top, logs[q])
    return top


@njit
def settle(top, logs, means, weights):
    """Turn prior weights of bins into posterior ones, up to a factor; their total, and the mean share."""
    total, share = 0.0, 0.0
    for q in range(weights.size):
        if weights[q] > 0:
            weights[q] *= math.exp(logs[q] - top)
            total += weights[q]
            share += weights[q] * means[q]
    return total, share / total if total > 0 else 0.5


@njit
def upward(tree, tables, below, part, masses, bins):
    """Fill the tables of all nodes with children, from the last to the root."""
    first, kinds, values, scales = tree[0], tree[4], tree[5], tree[6]
    low, high, table, filled = tables
    logs, means, weights = np.empty(bins), np.empty(bins), np.empty(bins)
    for n in range(first.size - 1, -1, -1):
        if first[n] < 0:
            continue
        for k in range(table.shape[1]):
            m = low[n] + (high[n] - low[n]) * (k / (table.shape[1] - 1)) ** 2
            if m < LEAST:
                nothing = likelihood(first[n], 0.0, kinds, values, scales, low, high, table, filled)
                table[n, k] = nothing + likelihood(
                    first[n] + 1, 0.0, kinds, values, scales, low, high, table, filled
                )
                continue
            size = class_of(m, masses)
            top = split(m, n, tree, tables, below[size], part[size], logs, means, weights)
            total, _ = settle(top, logs, means, weights)
            table[n, k] = top + math.log(max(total, 1e-300))
        filled[n] = True


@njit
def expect(tree, tables, below, part, masses, mass, bins):
    """Each node's expected mass given its parent's, from mass[0] down."""
    first = tree[0]
    logs, means, weights = np.empty(bins), np.empty(bins), np.empty(bins)
    for n in range(first.size):
        if first[n] < 0:
            continue
        m = max(mass[n], LEAST)
        size = class_of(m, masses)
        top = split(m, n, tree, tables, below[size], part[size], logs, means, weights)
        _, share = settle(top, logs, means, weights)
        mass[first[n]], mass[first[n] + 1] = m * share, m * (1 - share)


@njit
def evidence(tree, tables, below, part, mass, found, bins):
    """How likely what is below each split is under every shape alone; `below` and `part` are by shape."""
    first = tree[0]
    logs, means, weights = np.empty(bins), np.empty(bins), np.empty(bins)
    for n in range(first.size):
        if first[n] < 0:
            continue
        m = max(mass[n], LEAST)
        for shape in range(below.shape[0]):
            top = split(m, n, tree, tables, below[shape], part[shape], logs, means, weights)
            total, _ = settle(top, logs, means, weights)
            found[n, shape] = top + math.log(max(total, 1e-300))


@njit
def uniform(seed, draw, at):
    """A number in (0, 1) that depends on nothing but its arguments: the finalizer of splitmix64."""
    x = (
        np.uint64(seed)
        + np.uint64(draw) * np.uint64(0x9E3779B97F4A7C15)
        + np.uint64(at) * np.uint64(0xD1B54A32D192ED03)
    )
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    return (float(x >> np.uint64(11)) + 0.5) / 9007199254740992.0


@njit
def uniforms(seed, draw, size):
    """So many of them."""
    found = np.empty(size)
    for at in range(size):
        found[at] = uniform(seed, draw, at)
    return found


@njit
def descend(tree, tables, below, part, masses, uniforms, mass, mean):
    """One map from the posterior, down from mass[0]; adds to `mean` what each node has given its parent."""
    first = tree[0]
    logs, means, weights = np.empty(BINS), np.empty(BINS), np.empty(BINS)
    for n in range(first.size):
        if first[n] < 0:
            continue
        m = max(mass[n], LEAST)
        size = class_of(m, masses)
        top = split(m, n, tree, tables, below[size], part[size], logs, means, weights)
        total, share = settle(top, logs, means, weights)
        mean[first[n]] += m * share
        mean[first[n] + 1] += m * (1 - share)
        chosen = pick(uniforms[n] * total, m, n, tree, below[size], weights, share)
        mass[first[n]], mass[first[n] + 1] = m * chosen, m * (1 - chosen)


@njit
def pick(left, m, n, tree, below, weights, share):
    """The share where the weights of the bins reach `left`; within a bin, as the prior lies there."""
    first, center, guess, spread = tree[:4]
    begin, end = window(m, first[n], first[n] + 1, guess, spread)
    for q in range(BINS):
        if weights[q] > 0:
            if left <= weights[q]:
                edges = begin + (end - begin) * q / BINS, begin + (end - begin) * (q + 1) / BINS
                low, high = (
                    weight_below(edges[0], center[n], below),
                    weight_below(edges[1], center[n], below),
                )
                found = share_at(low + (high - low) * left / weights[q], center[n], below)
                return min(max(found, edges[0]), edges[1])
            left -= weights[q]
    return share


@njit
def weight_below(t, center, below):
    """The distribution function of a share."""
    if t <= 0 or t >= 1:
        return 0.0 if t <= 0 else 1.0
    c, more = spot(center)
    k, r = along(t)
    return blend(below, c, more, k, r)


@njit
def agree(first, mean):
    """Scale the means of children so that they add up to their parent's, from the root down."""
    for n in range(first.size):
        if first[n] >= 0:
            total = mean[first[n]] + mean[first[n] + 1]
            factor = mean[n] / total if total > 0 else 0.0
            mean[first[n]] *= factor
            mean[first[n] + 1] *= factor


@njit
def scatter(mass, centers, below, masses, seed, draw, level, out):
    """Split each cell's mass into quarters by shares of the prior; three centers a cell, one a halving."""
    for cell in range(mass.size):
        m = max(mass[cell], LEAST)
        half = prior_share(
            m, centers[cell, 0], below, masses, uniform(seed, draw, (level << 40) + 4 * cell)
        )
        for side in range(2):
            part = m * half if side == 0 else m * (1 - half)
            u = uniform(seed, draw, (level << 40) + 4 * cell + 1 + side)
            share = prior_share(part, centers[cell, 1 + side], below, masses, u)
            out[4 * cell + 2 * side] = part * share
            out[4 * cell + 2 * side + 1] = part * (1 - share)


@njit
def prior_share(m, center, below, masses, u):
    """The share up to which the prior has u of its weight."""
    return share_at(u, center, below[class_of(m, masses)])


@njit
def share_at(u, center, below):
    """Where the distribution function of a share reaches u, searched in halves."""
    c, more = spot(center)
    lower, upper = 0, below.shape[1] - 1
    while upper - lower > 1:
        middle = (lower + upper) // 2
        if blend(below, c, more, middle, 0.0) < u:
            lower = middle
        else:
            upper = middle
    a, b = blend(below, c, more, lower, 0.0), blend(below, c, more, lower, 1.0)
    r = min(max((u - a) / (b - a), 0.0), 1.0) if b > a else 0.5
    return 1 / (1 + math.exp(18.0 - 0.1 * (lower + r)))

"""The compiled passes behind `posterior`: likelihoods up the tree of halves, masses down it.

A node is a cell or half a cell, at most two levels of halves to a level of cells; nodes are
numbered from the root, children after parents and next to each other: `first[n]` and `first[n] +
1`, or -1 where nothing below was counted. A center above 1 or below 0 gives all mass to the first
or to the second child: the other lies outside the bounds of the map. The likelihood of everything
below a node, as a function of its mass, is a table of its logarithm on points from `low` to `high`,
denser towards `low`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sfumato._compiled import inner, njit

# Points of a table, and bins of a share: a bin is at most 12 / 20 of a standard deviation wide.
POINTS: int = 20
BINS: int = 20
NONE, COUNT, CEILING = 0, 1, 2
LEAST = 1e-9  # users: no cell has less
TOTALS = 400  # points of the posterior of a whole map: 25 a deviation


@inner
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
def _totals(root, tree, tables, points, weights):
    guess, spread, kinds, values, scales = tree[2:]
    low, high, table, filled = tables
    begin = max(0.0, guess[root] - 8 * spread[root])
    end = max(0.0, guess[root]) + 8 * spread[root]
    top, whole, mean = -np.inf, 0.0, 0.0
    for at in range(points.size):
        points[at] = max(begin + (end - begin) * at / (points.size - 1), LEAST)
        weights[at] = likelihood(root, points[at], kinds, values, scales, low, high, table, filled)
        top = max(top, weights[at])
    for at in range(points.size):
        weights[at] = math.exp(weights[at] - top)
        whole += weights[at]
    for at in range(points.size):
        weights[at] /= whole
        mean += points[at] * weights[at]
    return mean


def totals(root: Any, tree: Any, tables: Any) -> Any:
    """The posterior of the mass of a root, as points and weights; all masses were as likely before."""
    points, weights = np.empty(TOTALS), np.empty(TOTALS)
    _totals(root, tree, tables, points, weights)
    return points, weights


def expect_totals(roots: Any, tree: Any, tables: Any, mass: Any) -> Any:
    """The expected mass of each root."""
    points, weights = np.empty(TOTALS), np.empty(TOTALS)
    for root in range(roots):
        mass[root] = _totals(root, tree, tables, points, weights)


@inner
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


@inner
def logit(t):
    """Kept where the tables are."""
    t = min(max(t, 1e-9), 1 - 1e-9)
    return math.log(t / (1 - t))


@inner
def spot(center):
    """Between which two centers of the tables a center lies, and how far along."""
    place = min(max((logit(center) + 3.5) / 0.5, 0.0), 13.999999)
    return int(place), place - int(place)


@inner
def along(t):
    """Between which two logits of the tables a share lies, and how far along."""
    place = min(max((logit(t) + 18.0) / 0.1, 0.0), 359.999)
    return int(place), place - int(place)


@inner
def blend(table, c, more, k, r):
    """An entry of a table between centers and logits."""
    one = table[c, k] * (1 - r) + table[c, k + 1] * r
    two = table[c + 1, k] * (1 - r) + table[c + 1, k + 1] * r
    return one * (1 - more) + two * more


@inner
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


@inner
def class_of(mass, masses):
    """Which mixture of shapes a mass has."""
    found = 0
    while found < masses.size and mass > masses[found]:
        found += 1
    return found


@inner
def split(m, n, tree, tables, below, part, logs, means, weights):
    """The bins of the share of n's first child, when n has mass m: their means and posterior weights.

    Weights are up to a factor, whose logarithm comes first; then their total and the mean share.
    """
    first, center, guess, spread, kinds, values, scales = tree
    low, high, table, filled = tables
    a = first[n]
    b = a + 1
    if center[n] > 1 or center[n] < 0:
        # The bounds leave one side only.
        share = 1.0 if center[n] > 1 else 0.0
        weights[:] = 0.0
        weights[0] = 1.0
        means[:] = share
        only = a if center[n] > 1 else b
        return likelihood(only, m, kinds, values, scales, low, high, table, filled), 1.0, share
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
    total, share = 0.0, 0.0
    for q in range(weights.size):
        if weights[q] > 0:
            weights[q] *= math.exp(logs[q] - top)
            total += weights[q]
            share += weights[q] * means[q]
    return top, total, share / total if total > 0 else 0.5


@njit
def _integrate(nodes, mass, which, tree, tables, below, part, space, logs, shares):
    first, kinds, values, scales = tree[0], tree[4], tree[5], tree[6]
    low, high, table, filled = tables
    for at in range(nodes.size):
        n, m = nodes[at], mass[at]
        if m < LEAST:
            a = first[n]
            nothing = likelihood(a, 0.0, kinds, values, scales, low, high, table, filled)
            logs[at] = nothing + likelihood(
                a + 1, 0.0, kinds, values, scales, low, high, table, filled
            )
            continue
        size = which[at]
        top, total, shares[at] = split(
            m, n, tree, tables, below[size], part[size], space[0], space[1], space[2]
        )
        logs[at] = top + math.log(max(total, 1e-300))


def integrate(nodes, mass, which, tree, tables, below, part, bins):
    """How likely what is below each of some nodes is, if it has this mass and its share this mixture.

    Logarithms, and the mean share of the first child.
    """
    logs, shares = np.empty(nodes.size), np.empty(nodes.size)
    space = np.empty((3, bins))
    _integrate(nodes, mass, which, tree, tables, below, part, space, logs, shares)
    return logs, shares


def generations(first):
    """The nodes that have children, those of one depth at a time, from the roots down."""
    born = np.zeros(first.size, dtype=np.bool_)
    born[first[first >= 0]] = born[first[first >= 0] + 1] = True
    now = np.flatnonzero(~born)
    while now.size:
        now = now[first[now] >= 0]
        yield now
        now = np.concatenate([first[now], first[now] + 1])


def upward(tree: Any, tables: Any, below: Any, part: Any, masses: Any, bins: Any) -> Any:
    """Fill the tables of all nodes with children, from the last to the root."""
    low, high, table, filled = tables
    points = table.shape[1]
    for nodes in reversed(list(generations(tree[0]))):
        mass = (
            low[nodes, None] + (high - low)[nodes, None] * (np.arange(points) / (points - 1)) ** 2
        )
        which = np.searchsorted(masses, mass.ravel())
        many = np.repeat(nodes, points)
        logs, _ = integrate(many, mass.ravel(), which, tree, tables, below, part, bins)
        table[nodes] = logs.reshape(mass.shape)
        filled[nodes] = True


def expect(tree: Any, tables: Any, below: Any, part: Any, masses: Any, mass: Any, bins: Any) -> Any:
    """Each node's expected mass given its parent's, from mass[0] down."""
    for nodes in generations(tree[0]):
        m = np.maximum(mass[nodes], LEAST)
        which = np.searchsorted(masses, m)
        _, share = integrate(nodes, m, which, tree, tables, below, part, bins)
        mass[tree[0][nodes]], mass[tree[0][nodes] + 1] = m * share, m * (1 - share)


def evidence(
    tree: Any, tables: Any, below: Any, part: Any, mass: Any, found: Any, bins: Any
) -> Any:
    """How likely what is below each split is under every shape alone; `below` and `part` are by shape."""
    nodes, shapes = np.flatnonzero(tree[0] >= 0), below.shape[0]
    m = np.repeat(np.maximum(mass[nodes], LEAST), shapes)
    which = np.tile(np.arange(shapes), nodes.size)
    logs, _ = integrate(np.repeat(nodes, shapes), m, which, tree, tables, below, part, bins)
    found[nodes] = logs.reshape(-1, shapes)


def uniform(seed, draw, at):
    """Numbers in (0, 1) that depend on nothing but the arguments: the finalizer of splitmix64."""
    start = np.uint64((seed + draw * 0x9E3779B97F4A7C15) % 2**64)
    x = start + at.astype(np.uint64) * np.uint64(0xD1B54A32D192ED03)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    return ((x >> np.uint64(11)).astype(np.float64) + 0.5) / 9007199254740992.0


def uniforms(seed: Any, draw: Any, size: Any) -> Any:
    """So many of them."""
    return uniform(seed, draw, np.arange(size))


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
        _, total, share = split(m, n, tree, tables, below[size], part[size], logs, means, weights)
        mean[first[n]] += m * share
        mean[first[n] + 1] += m * (1 - share)
        chosen = pick(uniforms[n] * total, m, n, tree, below[size], weights, share)
        mass[first[n]], mass[first[n] + 1] = m * chosen, m * (1 - chosen)


@inner
def pick(left, m, n, tree, below, weights, share):
    """The share where the weights of the bins reach `left`; within a bin, as the prior lies there."""
    first, center, guess, spread = tree[:4]
    if center[n] > 1 or center[n] < 0:
        return share
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


@inner
def weight_below(t, center, below):
    """The distribution function of a share."""
    if t <= 0 or t >= 1:
        return 0.0 if t <= 0 else 1.0
    c, more = spot(center)
    k, r = along(t)
    return blend(below, c, more, k, r)


def agree(first: Any, mean: Any) -> Any:
    """Scale the means of children so that they add up to their parent's, from the root down."""
    for nodes in generations(first):
        a = first[nodes]
        total = mean[a] + mean[a + 1]
        factor = np.where(total > 0, mean[nodes] / np.where(total > 0, total, 1.0), 0.0)
        mean[a] *= factor
        mean[a + 1] *= factor


@njit
def _scatter(mass, centers, below, masses, uniforms, out):
    for cell in range(mass.size):
        m = max(mass[cell], LEAST)
        half = prior_share(m, centers[cell, 0], below, masses, uniforms[0, cell])
        for side in range(2):
            part = m * half if side == 0 else m * (1 - half)
            u = uniforms[1 + side, cell]
            share = prior_share(part, centers[cell, 1 + side], below, masses, u)
            out[4 * cell + 2 * side] = part * share
            out[4 * cell + 2 * side + 1] = part * (1 - share)


def scatter(
    mass: Any, centers: Any, below: Any, masses: Any, seed: Any, draw: Any, level: Any, out: Any
) -> Any:
    """Split each cell's mass into quarters by shares of the prior; three centers a cell, one a halving."""
    at = (level << 40) + 4 * np.arange(mass.size) + np.arange(3)[:, None]
    _scatter(mass, centers, below, masses, uniform(seed, draw, at), out)


@inner
def prior_share(m, center, below, masses, u):
    """The share up to which the prior has u of its weight; all or nothing where the bounds say so."""
    if center > 1 or center < 0:
        return 1.0 if center > 1 else 0.0
    return share_at(u, center, below[class_of(m, masses)])


@inner
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

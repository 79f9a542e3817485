"""The compiled pass behind `posterior`: likelihoods up the tree of halves, masses down it.

A node is a cell or half a cell, at most two levels of halves to a level of cells; nodes are
numbered from the root, children after parents and next to each other: `first[n]` and `first[n] +
1`, or -1 where nothing below was counted. A center above 1 or below 0 gives all mass to the first
or to the second child: the other lies outside the bounds of the map. The likelihood of everything
below a node, as a function of its mass, is a table of its logarithm on points from `low` to `high`,
denser towards `low`.

What a first map waits for is the compiler, so there are two compiled functions, `_integrate` and
`_scatter`, of few arrays; the rest is NumPy's.

Long because both compiled functions share their inner ones, and a reader of one needs the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato._compiled import inner, njit
from sfumato._types import FloatArray, IntArray
from sfumato.heatmap.inference.cascade import MASSES, Shares
from sfumato.heatmap.inference.count_noise import FINENESS

# Points of a table, and bins of a share: a bin is at most 12 / 20 of a standard deviation wide.
POINTS: int = 20
NONE, COUNT, CEILING = 0, 1, 2
LEAST: float = 1e-9  # users: no cell has less
TOTALS = 400  # points of the posterior of a whole map: 25 a deviation
# The columns of `facts`: what is known of a node. From COUNTS on the kind, value and scale of each count.
CENTER, GUESS, SPREAD, LOW, HIGH, COUNTS = 0, 1, 2, 3, 4, 5
ITSELF = (
    -1
)  # in place of a mixture: how likely the counts of a node are, not the shares of its halves
# Of the finalizer of SplitMix64 [steele14].
STEP, FIRST, SECOND = (
    np.uint64(0xD1B54A32D192ED03),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)


@inner(error_model="numpy")
def known(n, x, facts, noise):
    """The logarithm of how likely the counts of node n itself are, if its mass is x."""
    found = 0.0
    for at in range(COUNTS, facts.shape[1], 3):
        kind = facts[n, at]
        if kind == NONE:
            continue
        away = (facts[n, at + 1] - x) / facts[n, at + 2]
        # What the law of the noise adds to that of Laplace noise: nothing where it is that.
        more = 0.0
        if noise.shape[1] > 0:
            t = math.log1p(abs(away)) * FINENESS
            k, row = min(math.floor(t), noise.shape[1] - 2), 0 if kind == COUNT else 1
            more = noise[row, k] + (noise[row, k + 1] - noise[row, k]) * (t - k)
        if kind == COUNT:
            found += more - abs(away)
        # The distribution function of the noise.
        elif away < 0:
            found += away - math.log(2.0) + more
        else:
            found += math.log1p(-0.5 * math.exp(more - away))
    return found


@inner(error_model="numpy")
def window(m, a, facts):
    """Where the share of the first child a can lie, given the mass m of the parent: six deviations around."""
    one, two = facts[a, SPREAD] * facts[a, SPREAD], facts[a + 1, SPREAD] * facts[a + 1, SPREAD]
    weight = 1 / one + 1 / two
    if weight <= 0:
        return 0.0, 1.0
    middle = (facts[a, GUESS] / one + (m - facts[a + 1, GUESS]) / two) / weight / m
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


@inner(error_model="numpy")
def place(t, start, step, most):
    """Between which two logits of a table that of t lies, and how far along."""
    t = min(max(t, 1e-9), 1 - 1e-9)
    found = min(max((math.log(t / (1 - t)) - start) / step, 0.0), most)
    return math.floor(found), found - math.floor(found)


@inner(error_model="numpy")
def blend(table, size, c, more, k, r):
    """An entry of a table of mixture `size`, between centers and between logits."""
    one = table[size, c, k] * (1 - r) + table[size, c, k + 1] * r
    two = table[size, c + 1, k] * (1 - r) + table[size, c + 1, k + 1] * r
    return one * (1 - more) + two * more


@inner(error_model="numpy")
def weigh(begin, end, size, center, below, part, reached, means, weights):
    """The prior weight of each bin between begin and end, its mean share, and the weight up to its ends."""
    c, more = place(center, -3.5, 0.5, 13.999999)
    # The mean of all shares: the center, as the tables have it between two of theirs.
    whole = (1 - more) / (1 + math.exp(3.5 - 0.5 * c)) + more / (1 + math.exp(3.5 - 0.5 * (c + 1)))
    before_part, start = 0.0, begin
    bins = means.size
    for edge in range(bins + 1):
        t = begin + (end - begin) * edge / bins
        now, now_part = 0.0, 0.0
        if t >= 1:
            now, now_part = 1.0, whole
        elif t > 0:
            k, r = place(t, -18.0, 0.1, 359.999)
            now = blend(below, size, c, more, k, r)
            now_part = blend(part, size, c, more, k, r)
        reached[edge] = now
        if edge:
            weight = now - reached[edge - 1]
            weights[edge - 1] = max(weight, 0.0)
            means[edge - 1] = (
                min(max((now_part - before_part) / weight, start), t)
                if weight > 1e-290
                else (start + t) / 2
            )
        before_part, start = now_part, t


@inner(error_model="numpy")
def share_at(u, size, c, more, below, reached):
    """Where the distribution function of a share reaches u, searched in halves of where it can."""
    slots = reached.shape[2] - 1
    slot = min(math.floor(u * slots), slots - 1)
    rows = (reached.shape[1] - 1) // (below.shape[1] - 1)
    row = c * rows + math.floor(more * rows)
    lower = max(min(reached[size, row, slot], reached[size, row + 1, slot]) - 2, 0)
    upper = max(reached[size, row, slot + 1], reached[size, row + 1, slot + 1]) + 1
    upper = min(upper, below.shape[2] - 1)
    one, two, less = below[size, c], below[size, c + 1], 1 - more
    while upper - lower > 1:
        middle = (lower + upper) >> 1
        if one[middle] * less + two[middle] * more < u:
            lower = middle
        else:
            upper = middle
    a = one[lower] * less + two[lower] * more
    b = one[lower + 1] * less + two[lower + 1] * more
    r = min(max((u - a) / (b - a), 0.0), 1.0) if b > a else 0.5
    return 1 / (1 + math.exp(18.0 - 0.1 * (lower + r)))


@njit(error_model="numpy")
def _integrate(
    nodes,
    mass,
    which,
    uniforms,
    first,
    facts,
    table,
    noise,
    below,
    part,
    slots,
    reached,
    means,
    weights,
    logs,
    out,
):
    """For each node: the logarithm of how likely it is, the mean share and a drawn share, into `out`."""
    for at in range(nodes.size):
        n, m, size = nodes[at], mass[at], which[at]
        a, children, bins, begin, end = first[n], 2, means.size, 0.0, 1.0
        center = facts[n, CENTER]
        alone = size >= 0 and (center > 1 or center < 0)
        if alone:
            # The bounds leave one side only.
            a, children, bins, means[0], weights[0] = a + (center < 0), 1, 1, 1.0, 1.0
        elif size >= 0 and m >= LEAST:
            begin, end = window(m, a, facts)
            weigh(begin, end, size, center, below, part, reached, means, weights)
        elif size >= 0:
            # Nobody is here, and nobody in either half.
            m, bins, means[0], weights[0] = 0.0, 1, 0.0, 1.0
        else:
            a, children, bins, means[0], weights[0] = n, 1, 1, 1.0, 1.0
        for child in range(children):
            node = a + child
            counted = first[node] >= 0
            low, wide = facts[node, LOW], facts[node, HIGH] - facts[node, LOW]
            for q in range(bins):
                if weights[q] > 0:
                    x = m * means[q]
                    if child:
                        x = m - x
                    found = known(node, x, facts, noise)
                    if counted:
                        # What its table says of what is below it, so far along.
                        far, last = (x - low) / wide, table.shape[1] - 1
                        row = 0 if far <= 0 else min(math.floor(math.sqrt(far) * last), last - 1)
                        here, there = row / last, (row + 1) / last
                        here, there = here * here, there * there
                        found += table[node, row] + (table[node, row + 1] - table[node, row]) * (
                            far - here
                        ) / (there - here)
                    logs[q] = logs[q] + found if child else found
        top, total, share = -1e300, 0.0, 0.0
        for q in range(bins):
            if weights[q] > 0:
                top = max(top, logs[q])
        for q in range(bins):
            if weights[q] > 0:
                weights[q] *= math.exp(logs[q] - top)
                total += weights[q]
                share += weights[q] * means[q]
        share = share / total if total > 0 else 0.5
        if alone:
            share = 1.0 if center > 1 else 0.0
        out[0, at], out[1, at] = top + math.log(max(total, 1e-300)), share
        if uniforms.size and alone:
            out[2, at] = share
        elif uniforms.size:
            # Where the weights of the bins reach the number; within a bin, as the prior lies there.
            left = uniforms[at] * total
            for q in range(bins):
                if weights[q] > 0:
                    if left <= weights[q]:
                        low, high = reached[q], reached[q + 1]
                        u = low + (high - low) * left / weights[q]
                        c, more = place(center, -3.5, 0.5, 13.999999)
                        share = share_at(u, size, c, more, below, slots)
                        share = max(share, begin + (end - begin) * q / bins)
                        share = min(share, begin + (end - begin) * (q + 1) / bins)
                        break
                    left -= weights[q]
            out[2, at] = share


@njit(error_model="numpy")
def _scatter(mass, starts, begin, least, centers, first, more, below, slots, out):
    """The quarters of each cell [map, quarter], by shares of the prior: a number for each of three halvings."""
    for cell in range(centers.shape[0]):
        for side in range(3):
            first[cell, side], more[cell, side] = place(centers[cell, side], -3.5, 0.5, 13.999999)
    for one in range(mass.shape[0]):
        few = least[one]
        for side in range(3):
            # One halving of all cells at a time: searches that need not wait for each other.
            a = 2 * max(side - 1, 0)  # where the half stands among the four quarters
            for cell in range(mass.shape[1]):
                at = 4 * cell + a
                m = max(mass[one, cell], LEAST) if side == 0 else out[one, at]
                center = centers[cell, side]
                if m <= few:
                    part = 0.5 * m  # next to nobody is here, and in either half
                elif center > 1 or center < 0:
                    part = m if center > 1 else 0.0  # the other half is outside the bounds
                else:
                    size = 0
                    for limit in MASSES:
                        size += m > limit
                    # As `hashed` does it.
                    x = starts[one] + np.uint64(begin + 4 * cell + side) * STEP
                    x = (x ^ (x >> np.uint64(30))) * FIRST
                    x = (x ^ (x >> np.uint64(27))) * SECOND
                    x = x ^ (x >> np.uint64(31))
                    u = (np.float64(x >> np.uint64(11)) + 0.5) / 9007199254740992.0
                    part = m * share_at(u, size, first[cell, side], more[cell, side], below, slots)
                out[one, at], out[one, at + (2 if side == 0 else 1)] = part, m - part


@dataclass(frozen=True, slots=True, eq=False)
class Nodes:
    """The nodes of a tree from the root on: first child, what is known of each, and its likelihoods.

    `noise` are the corrections of the law of the noise; `of_map` is the map of each node.
    """

    first: IntArray
    facts: FloatArray
    table: FloatArray
    noise: FloatArray
    of_map: IntArray

    def generations(self) -> Iterator[IntArray]:
        """The nodes that have children, those of one depth at a time, from the roots down."""
        born = np.zeros(self.first.size, dtype=np.bool_)
        born[self.first[self.first >= 0]] = born[self.first[self.first >= 0] + 1] = True
        now = np.flatnonzero(~born)
        while now.size:
            now = now[self.first[now] >= 0]
            yield now
            now = np.concatenate([self.first[now], self.first[now] + 1])


NOTHING = np.empty(0)
# The exponential of the C library, as compiled code has it; NumPy's own may differ in its last bit.
EXP = np.frompyfunc(math.exp, 1, 1)


def integrate(
    tree: Nodes,
    shares: Shares,
    nodes: IntArray,
    mass: FloatArray,
    which: IntArray,
    uniforms: FloatArray = NOTHING,
) -> FloatArray:
    """What is below each of some nodes [3, node], if it has this mass and its share this mixture.

    The logarithm of how likely it is, the mean share of the first child, and where there is a
    uniform number for each, a share drawn by it. In as many bins as a table has points.
    """
    out, bins = np.empty((3, nodes.size)), tree.table.shape[1]
    _integrate(
        nodes, mass, which, uniforms, tree.first, tree.facts, tree.table, tree.noise,
        shares.below, shares.part, shares.slots, np.empty(bins + 1), *np.empty((3, bins)), out,
    )  # fmt: skip
    return out


def totals(tree: Nodes, shares: Shares, roots: int) -> tuple[FloatArray, FloatArray]:
    """The posterior of the mass of each root, as points and weights; all masses were as likely before."""
    guess, spread = tree.facts[:roots, [GUESS]], tree.facts[:roots, [SPREAD]]
    begin, end = np.maximum(0.0, guess - 8 * spread), np.maximum(0.0, guess) + 8 * spread
    points = np.maximum(begin + (end - begin) * np.arange(TOTALS) / (TOTALS - 1), LEAST)
    nodes = np.repeat(np.arange(roots), TOTALS)
    itself = np.full(nodes.size, ITSELF)
    logs = integrate(tree, shares, nodes, points.ravel(), itself)[0].reshape(points.shape)
    weights = EXP(logs - logs.max(axis=1, keepdims=True)).astype(np.float64)
    return points, weights / np.cumsum(weights, axis=1)[:, -1:]


def upward(tree: Nodes, shares: Shares) -> None:
    """Fill the tables of all nodes with children, from the last to the root."""
    low, high, points = tree.facts[:, LOW], tree.facts[:, HIGH], tree.table.shape[1]
    for nodes in reversed(list(tree.generations())):
        steps = (np.arange(points) / (points - 1)) ** 2
        mass = low[nodes, None] + (high - low)[nodes, None] * steps
        many = np.repeat(nodes, points)
        which = shares.tables(mass.ravel(), tree.of_map[many])
        logs = integrate(tree, shares, many, mass.ravel(), which)[0]
        tree.table[nodes] = logs.reshape(mass.shape)


def expect(tree: Nodes, shares: Shares, roots: int) -> FloatArray:
    """The expected mass of each node, given the expected mass of its parent."""
    mass = np.zeros(tree.first.size)
    points, weights = totals(tree, shares, roots)
    mass[:roots] = np.cumsum(points * weights, axis=1)[:, -1]
    for nodes in tree.generations():
        m = np.maximum(mass[nodes], LEAST)
        share = integrate(tree, shares, nodes, m, shares.tables(m, tree.of_map[nodes]))[1]
        mass[tree.first[nodes]], mass[tree.first[nodes] + 1] = m * share, m * (1 - share)
    return mass


def evidence(tree: Nodes, by_shape: Shares, mass: FloatArray) -> FloatArray:
    """How likely what is below each split is under every shape alone [split, shape]."""
    nodes, shapes = np.flatnonzero(tree.first >= 0), len(by_shape.below)
    m = np.repeat(np.maximum(mass[nodes], LEAST), shapes)
    which = np.tile(np.arange(shapes), nodes.size)
    return integrate(tree, by_shape, np.repeat(nodes, shapes), m, which)[0].reshape(-1, shapes)


def descend(
    tree: Nodes, shares: Shares, roots: FloatArray, uniforms: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Draws from the posterior [draw, node], down from their totals, and what each node has given its parent.

    Totals [draw, root] are those of all maps of the tree.
    """
    mass = np.zeros((len(roots), tree.first.size))
    mean = np.zeros_like(mass)
    mass[:, : roots.shape[1]] = mean[:, : roots.shape[1]] = roots
    for nodes in tree.generations():
        m = np.maximum(mass[:, nodes], LEAST)
        many = np.tile(nodes, len(roots))
        which = shares.tables(m.ravel(), tree.of_map[many])
        found = integrate(tree, shares, many, m.ravel(), which, uniforms[:, nodes].ravel())
        for masses, share in ((mean, found[1]), (mass, found[2])):
            part = share.reshape(m.shape)
            masses[:, tree.first[nodes]] = m * part
            masses[:, tree.first[nodes] + 1] = m * (1 - part)
    return mass, mean


def agree(tree: Nodes, mean: FloatArray) -> None:
    """Scale the means of children so that they add up to their parent's, from the root down."""
    for nodes in tree.generations():
        a = tree.first[nodes]
        total = mean[a] + mean[a + 1]
        factor = np.where(total > 0, mean[nodes] / np.where(total > 0, total, 1.0), 0.0)
        mean[a] *= factor
        mean[a + 1] *= factor


def starts_of(seed: int, draws: IntArray) -> npt.NDArray[np.uint64]:
    """Where the numbers of each draw begin."""
    starts = [(seed + int(draw) * 0x9E3779B97F4A7C15) % 2**64 for draw in draws]
    return np.array(starts, dtype=np.uint64)


def uniform(seed: int, draws: IntArray, at: IntArray) -> FloatArray:
    """Numbers in (0, 1) that depend on nothing but the arguments [draw, ...]."""
    return hashed(starts_of(seed, draws).reshape(-1, *(1,) * at.ndim), at)


def hashed(starts: npt.NDArray[np.uint64], at: IntArray) -> FloatArray:
    """The finalizer of SplitMix64, for one start or several, of which each is broadcast to some places."""
    x = starts + at.astype(np.uint64) * STEP
    x = (x ^ (x >> np.uint64(30))) * FIRST
    x = (x ^ (x >> np.uint64(27))) * SECOND
    x = x ^ (x >> np.uint64(31))
    return ((x >> np.uint64(11)).astype(np.float64) + 0.5) / 9007199254740992.0


def scatter(
    mass: FloatArray,
    centers: FloatArray,
    shares: Shares,
    starts: npt.NDArray[np.uint64],
    level: int,
    least: FloatArray,
) -> FloatArray:
    """Split the cells of maps [map, cell] of a level into quarters by shares of the prior.

    Three centers a cell [cell, 3], one a halving; the numbers of map i are those of its start, and
    what is at most its `least` is halved evenly.
    """
    found = np.empty((len(mass), 4 * len(centers)))
    row, between = np.empty(centers.shape, dtype=np.int64), np.empty(centers.shape)
    _scatter(
        mass, starts, (level + 1) << 40, least, centers, row, between, shares.below, shares.narrow, found,
    )  # fmt: skip
    return found

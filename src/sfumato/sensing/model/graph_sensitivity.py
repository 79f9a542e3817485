"""How far readings of a diffusion on a graph move along an edge: exactly, or within proven bounds.

With v = e_i - e_j the change of all nodes is |exp(-tau L) v|, its square v' exp(-2 tau L) v: an
integral of exp(-2 tau x) over the spectral measure of L at v. Few steps of Lanczos from v give a
Gauss rule, which lies below the integral because even derivatives of exp(-2 tau x) are positive,
and a Gauss-Radau rule with a node at 0, the left end of the spectrum, which lies above it because
odd ones are negative [golub09, sec. 6.2]. k steps see only the nodes within k edges, so all edges
of a large graph can be bounded; then those with the largest bounds are bounded better, until the
best lower bound reaches every upper one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.changes import UNIT, Largest
from sfumato.sensing.model.graph_sensitivity_kernel import lanczos
from sfumato.sensing.model.operators.graph_diffusion import GraphDiffusion
from sfumato.sensing.model.operators.protocol import CHUNK

ROWS = (
    4_000_000_000  # multiplications that computing every row of the matrix may take: some seconds
)
BOUNDS = 4_000_000_000  # and that bounds on edges may take
LADDER = (2, 3, 4, 6, 8, 12, 16, 24)  # steps of Lanczos, one rung after the other
BATCHES = (2048, 2048, 2048, 256, 64, 16, 16, 16)  # edges at a time on each rung: balls grow
PROBES, PROBE = 8, 5
ROOM = 4096
CLOSED = 1e-9
"""Bounds this close, relatively, count as met: the answer is the upper one."""


@dataclass(frozen=True, slots=True, eq=False)
class _Rules:
    """Proven lower and upper bounds on v' exp(-2 tau L) v for some edges, and what they took."""

    lower: FloatArray
    upper: FloatArray
    work: int


def graph_changes(operator: GraphDiffusion, *, over_distance: bool) -> Largest:
    """The largest change along an edge, over its length or not; `exact` unless it is only a bound.

    Edges are enough, each with its own length even where the way around it is shorter: see
    `changes.pairs`.
    """
    lengths = operator.space.lengths if over_distance else np.ones(len(operator.space.edges))
    return by_rows(operator, lengths) if _few_rows(operator) else by_bounds(operator, lengths)


def weighted_changes(
    operator: GraphDiffusion, gains: FloatArray, *, over_distance: bool
) -> Largest:
    """The largest change along an edge of readings times their gains; refused where there are too many rows.

    Bounds of large graphs are of all nodes alike, and know no gains.
    """
    if not _few_rows(operator):
        raise InvalidParameter(
            f"noise for each sensor looks at every row of the operator, and {len(operator.sensors)} sensors on "
            f"{operator.space.size} nodes are too many; take one sigma for all; nothing was planned"
        )
    lengths = operator.space.lengths if over_distance else np.ones(len(operator.space.edges))
    return by_rows(operator, lengths, gains)


def _few_rows(operator: GraphDiffusion) -> bool:
    # The series of `diffuse` has about this many terms, each a product with the Laplacian.
    terms = 16 + 9 * math.sqrt(operator.rate * float(operator.laplacian.diagonal().max()))
    return terms * operator.laplacian.nnz * len(operator.sensors) <= ROWS


def by_rows(
    operator: GraphDiffusion, lengths: FloatArray, gains: FloatArray | None = None
) -> Largest:
    """The largest change along an edge from all rows of the matrix: what each sensor reads of every node."""
    begin, end = operator.space.edges.T
    sensors, off = len(operator.sensors), diffusion_error(operator)
    times = np.ones(sensors) if gains is None else gains
    squares, alone = np.zeros(begin.size), np.zeros(sensors)
    step = max(1, CHUNK // max(operator.space.size, begin.size))
    for low in range(0, sensors, step):
        chosen = operator.nodes[low : low + step]
        units = np.zeros((operator.space.size, chosen.size))
        units[chosen, np.arange(chosen.size)] = 1.0
        rows = operator.diffuse(
            units
        )  # exp(-tau L) is symmetric: the row of a sensor is its column
        some = times[low : low + step]
        sizes = np.abs(rows[begin] - rows[end]) * some
        squares += np.einsum("es,es->e", sizes, sizes)
        # Two entries of a row are each off by at most `off`.
        alone[low : low + step] = ((sizes + 2 * off * some) / lengths[:, np.newaxis]).max(axis=0)
    # All rows together are off by sqrt(sensors) off in the Frobenius norm, each times its gain, a
    # difference by sqrt 2 times that.
    rates = (np.sqrt(squares) + math.sqrt(2 * float(times @ times)) * off) / lengths
    at = int(rates.argmax())
    return Largest(
        float(rates[at]),
        alone,
        (int(begin[at]), int(end[at])),
        (sensors + 16) * 2 * UNIT,
        exact=True,
    )


def graph_l1_changes(operator: GraphDiffusion, *, over_distance: bool) -> float:
    """A bound on the largest change of all readings along an edge, in l1.

    Columns of exp(-tau L) are shares: two of them differ by at most 2 in l1, times the sensors on one node.
    """
    lengths = operator.space.lengths if over_distance else np.ones(len(operator.space.edges))
    sensors, counts = len(operator.sensors), np.bincount(operator.nodes)
    bound = 2.0 * int(counts.max()) / float(lengths.min()) * (1 + 4 * UNIT)
    if not _few_rows(operator):
        return bound
    begin, end = operator.space.edges.T
    sums = np.zeros(begin.size)
    step = max(1, CHUNK // max(operator.space.size, begin.size))
    for low in range(0, sensors, step):
        chosen = operator.nodes[low : low + step]
        units = np.zeros((operator.space.size, chosen.size))
        units[chosen, np.arange(chosen.size)] = 1.0
        rows = operator.diffuse(units)
        sums += np.abs(rows[begin] - rows[end]).sum(axis=1)
    # Two entries of each row are off by at most `diffusion_error`.
    off = 2 * sensors * diffusion_error(operator)
    rates = (sums * (1 + (sensors + 16) * 2 * UNIT) + off) / lengths
    return min(bound, float(rates.max()) * (1 + 4 * UNIT))


def by_bounds(operator: GraphDiffusion, lengths: FloatArray) -> Largest:
    """The largest change along an edge of a large graph: proven from above, `exact` where bounds meet.

    Bounds are for all nodes. Sensors on some of them read no more; several on one node count as
    often.
    """
    begin, end = operator.space.edges.T
    rung = np.full(begin.size, -1)
    lower, upper = np.zeros(begin.size), np.full(begin.size, np.inf)
    work = 0

    def climb(chosen: IntArray, level: int) -> None:
        nonlocal work
        found = _rules(operator, begin[chosen], end[chosen], LADDER[level])
        # |e_i - e_j|**2 = 2 is always a bound; where the recurrence broke down it is the only one.
        least = np.where(np.isfinite(found.lower), found.lower, 0.0)
        most = np.fmin(found.upper, 2.0)
        lower[chosen] = np.maximum(lower[chosen], np.sqrt(least) / lengths[chosen])
        upper[chosen] = np.minimum(upper[chosen], np.sqrt(most) / lengths[chosen])
        rung[chosen] = level
        work += found.work

    climb(np.arange(begin.size), 0)
    highest = 0
    while work <= BOUNDS:
        top = int(upper.argmax())
        level = int(rung[top]) + 1
        # Where the largest bound is met, or cannot be improved any more, improving others is of no
        # use.
        if upper[top] <= lower.max() * (1 + CLOSED) or level == len(LADDER):
            break
        if level > highest:
            # Edges that promise most are bounded well first: the lower bound they give spares the
            # others.
            highest = level
            promising = np.argsort(-lower, kind="stable")[:PROBES]
            climb(promising[rung[promising] < PROBE], PROBE)
        open_ = np.flatnonzero((upper > lower.max() * (1 + CLOSED)) & (rung < level))
        climb(open_[np.argsort(-upper[open_], kind="stable")[: BATCHES[level]]], level)
    counts = np.bincount(operator.nodes, minlength=operator.space.size)
    at = int(upper.argmax())
    largest = float(upper[at])
    closed = largest <= float(lower.max()) * (1 + 2 * CLOSED) and bool((counts == 1).all())
    at = int(lower.argmax()) if closed else at
    l2 = largest * math.sqrt(counts.max())
    alone = np.full(len(operator.sensors), largest)
    return Largest(l2, alone, (int(begin[at]), int(end[at])), 16 * UNIT, exact=closed)


def diffusion_error(operator: GraphDiffusion) -> float:
    """How far, in l2, `diffuse` may be from exp(-tau L) v for |v| = 1.

    The series is sum c_k T_k(S) v with S = L / h - 1 and z = tau h, where h lies between half the
    largest degree and the largest; sum |c_k| = 1 and sum |c_k| k**2 = z, for the |c_k| are a
    Skellam law, of variance z. Rows of |S| sum to at most |d / h - 1| + d / h <= 3, so a step of
    the recurrence, 2 S t - t' summed in any order over at most r entries of a row, rounds by at
    most 7 (r + 2) units. That reaches T_k multiplied by at most the steps in between (Chebyshev
    polynomials of the second kind): in sum by (k + 1)**2 / 2 <= k**2 + 1. S itself is off by at
    most 3 (r + 16) units, which T_k multiplies by at most k**2. Bessel functions are given to
    2**-46 of themselves.
    """
    laplacian = operator.laplacian
    z = operator.rate * float(laplacian.diagonal().max())
    entries = float(np.diff(laplacian.indptr).max())
    terms = 64 + 12 * math.sqrt(z)  # at most so many; those left out are below 1e-17 each
    rounding = (z + 1) * 7 * (entries + 2) + z * 3 * (entries + 16) + terms + 2
    return float(rounding * UNIT + 2.0**-46 + terms * 1e-17)


def _spread(operator: GraphDiffusion) -> float:
    """A bound on the norm of diag(entries of a row + 2) |L|: what a product L v rounds, in units."""
    magnitude = abs(operator.laplacian)
    weights = np.diff(magnitude.indptr) + 2.0
    rows = weights * np.asarray(magnitude.sum(axis=1))
    columns = np.asarray(magnitude.T @ weights)
    return math.sqrt(float(rows.max()) * float(columns.max()))  # |A|_2**2 <= |A|_1 |A|_inf


def _rules(operator: GraphDiffusion, begin: IntArray, end: IntArray, steps: int) -> _Rules:
    laplacian = operator.laplacian
    degrees = laplacian.diagonal()
    count = np.diff(laplacian.indptr)
    room = min(
        operator.space.size,
        max(ROOM if steps < 6 else operator.space.size, 2 * int(count.max()) + 2),
    )
    alphas, betas = np.zeros((begin.size, steps)), np.zeros((begin.size, steps))
    done = np.zeros(begin.size, np.int64)
    work = lanczos(
        laplacian.indptr, laplacian.indices, -laplacian.data, degrees,
        begin, end, steps, room, alphas, betas, done,
    )  # fmt: skip
    lower, upper = np.zeros(begin.size), np.full(begin.size, 2.0)
    time, norm, product = 2 * operator.rate, 2 * float(degrees.max()), _spread(operator)
    for k in np.unique(done[done > 0]).tolist():
        chosen = np.flatnonzero(done == k)
        a, b = alphas[chosen, :k], betas[chosen, :k]
        pivot = a[:, 0]
        for t in range(1, k):
            pivot = a[:, t] - b[:, t - 1] ** 2 / pivot
        # The last entry that makes the matrix singular puts a node at 0 [golub09, sec. 6.2].
        # Too large a pivot only raises the bound.
        last = b[:, k - 1] ** 2 / np.maximum(pivot, 1e-13 * norm)
        # With vectors orthogonal to rounding, T belongs to L + E with |E| <= this; pivots, and
        # eigenvalues of T, are those of a matrix as near. exp(-t L) then moves by at most t |E|:
        # nodes give way by |E|.
        off = UNIT * (
            8 * math.sqrt(k) * (product + (8 * k + 16) * norm) + 64 * (k + 1) * (norm + last)
        )
        with np.errstate(under="ignore"):
            lower[chosen] = 2 * _rule(a, b[:, : k - 1], time, off)
            extended = np.column_stack([a, last])
            upper[chosen] = np.minimum(2.0, 2 * _rule(extended, b, time, -off))
    return _Rules(lower, upper, int(work))


def _rule(diagonal: FloatArray, beside: FloatArray, time: float, off: FloatArray) -> FloatArray:
    """The (1, 1) entries of exp(-time (T + off)) for a stack of tridiagonal matrices T."""
    k = diagonal.shape[1]
    stack = np.zeros((len(diagonal), k, k))
    at = np.arange(k)
    stack[:, at, at] = diagonal
    stack[:, at[:-1], at[1:]] = stack[:, at[1:], at[:-1]] = beside
    nodes, vectors = np.linalg.eigh(stack)
    weights = np.square(vectors[:, 0, :])
    weights /= weights.sum(axis=1, keepdims=True)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray((weights * np.exp(-time * (nodes + off[:, np.newaxis]))).sum(axis=1))

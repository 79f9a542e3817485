"""What physics hides and what noise must hide: the spectrum of an operator, and what theorems say of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import svdvals
from scipy.sparse.linalg import LinearOperator, eigsh, svds

from sfumato._types import FloatArray, IntArray
from sfumato._validate import read_only, whole
from sfumato.privacy import MovedMass, SwappedCells
from sfumato.sensing.model.changes import pairs
from sfumato.sensing.model.connectivity import Connectivity, connectivity, laplacian_values, start
from sfumato.sensing.model.operators.protocol import CHUNK, Operator
from sfumato.sensing.model.sensitivity import sensitivity
from sfumato.spaces import Graph, Grid, Line

ALL = 20_000_000_000  # multiplications that all singular values may take
PAIRWISE = 4096  # cells of which every pair is compared
LEADING = 16  # singular values of an operator too large for all of them
DENSE = 2000  # nodes of a graph whose Laplacian is decomposed as a whole
LOST = 2.0**-50  # a singular value below this, times min(m, n), of the first is rounding
RESTRICTED = math.sqrt(2) - 1


@dataclass(frozen=True, slots=True)
class AlmostRankOne:
    """Lemmas 5 to 7 of the papers with the hypotheses they need [gilbert17, lem. 5-6; gilbert18, lem. 6-7].

    `step` is the largest change between cells one step apart, `tail` the sum of all singular values
    but the first, `uneven` the largest difference of the norms of adjacent columns (None on a graph
    too large to have them all), `share` that of the tail in the whole spectrum.

    `floor`: step >= sqrt(2) times the least singular value, which needs no more cells than sensors,
    and two cells; None if there are more, where the papers' lemma is false, or one. Tried on (e_i -
    e_j) / sqrt(2). `ceiling`: tail <= this, whatever the operator. With c a cell in the middle, M -
    M_c 1' has the column M_j - M_c, of norm <= slope distance(j, c), so by Weyl and Hoelder tail <=
    |M - M_c 1'|_tr <= sqrt(min(m, n - 1) sum distance(j, c)**2) slope; on a line also (n - 1)
    sqrt(n / 2) step, as a product of steps and a triangle of ones. `converse`: step <= this, 4
    max(tail, uneven), which needs entries >= 0; None if one is negative (or the spectrum is not
    whole), where the papers' converse is false ([u, -u] has rank 1, equal norms and a step of 2
    |u|).
    """

    step: float
    tail: float
    uneven: float | None
    share: float
    floor: float | None
    ceiling: float
    converse: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Conditioning:
    """The spectrum of an operator with what follows from it; `sentences` says it in plain words.

    `singular_values` decrease; all of them if `complete`, else the leading ones. `condition_number`
    is a lower bound where the least one drowns in rounding (below min(m, n) 2**-50 of the first) or
    was not computed; `rank` counts those that do not drown. `coherence` is the largest cosine
    between two columns, over all pairs if `coherence_complete`, else over adjacent cells, which
    bounds it from below.
    """

    shape: tuple[int, int]
    singular_values: FloatArray
    complete: bool
    condition_number: float
    rank: int
    coherence: float
    coherence_complete: bool
    unread: int
    almost_rank_one: AlmostRankOne
    connectivity: Connectivity | None

    @property
    def sparsity(self) -> int:
        """The largest number of sources k <= 1 / (3 coherence) of which Theorem 11 speaks."""
        if self.unread or self.coherence == 0:
            return 0 if self.unread else self.shape[1]
        return min(self.shape[1], math.floor(1 / (3 * self.coherence)))

    def coherence_speaks(self, sources: int) -> bool:
        """Whether Theorem 11 (Tropp) says anything about so many sources [gilbert18, thm. 11]."""
        return self.coherence_complete and whole("sources", sources, low=1) <= self.sparsity

    def isometry(self, sources: int) -> float:
        """A lower bound on the restricted isometry constant delta_2k of the normalised columns, k sources.

        Two columns with cosine c have a Gram matrix with eigenvalues 1 - c and 1 + c, so delta_2k
        >= delta_2 >= coherence; more columns than sensors are dependent, so delta_2k >= 1. Of n
        cells no more than n columns can be taken.
        """
        m, n = self.shape
        return 1.0 if self.unread or min(2 * sources, n) > m else self.coherence

    def isometry_speaks(self, sources: int) -> bool:
        """Whether Theorem 12 (Candes, delta_2k < sqrt(2) - 1) can say anything [gilbert18, thm. 12].

        False is proven; True means that this bound does not exclude it.
        """
        return self.isometry(whole("sources", sources, low=1)) < RESTRICTED

    def coherence_error(self, sources: int, radius: float) -> float:
        """How far R is from the sparsest explanation by Theorem 11 (Tropp), in l2; inf where it says nothing.

        sqrt(3/2) times R's radius, against the sparsest masses within radius / sqrt(1 + 6 k) of the readings
        [mcmillan18, thm. 8.2]. Of columns of equal length, in masses times that length.
        """
        return math.sqrt(1.5) * radius if self.coherence_speaks(sources) else math.inf

    def isometry_error(self, sources: int, radius: float) -> float:
        """How far R is from so many true sources by Theorem 12 (Candes), in l2; inf where it says nothing.

        C times R's radius, C = 4 sqrt(1 + d) / (1 - (1 + sqrt 2) d) at d = delta_2k, if the truth is within
        the radius [mcmillan18, thm. 8.3; candes08, thm. 1.2]. By Gershgorin's circles delta_2k is at most
        2k - 1 times the coherence. Of columns of equal length, in masses times that length.

        >>> from sfumato.sensing import linear
        >>> from sfumato.spaces import Line
        >>> found = conditioning(linear([[1, 0.2], [0, 0.96**0.5]], Line(2)))
        >>> round(found.isometry_error(1, 1.0), 2)  # 8.5 in the papers
        8.47
        """
        count = whole("sources", sources, low=1)
        most = (min(2 * count, self.shape[1]) - 1) * self.coherence
        if self.unread or not self.coherence_complete or most >= RESTRICTED:
            return math.inf
        return 4 * math.sqrt(1 + most) / (1 - (1 + math.sqrt(2)) * most) * radius

    @property
    def sentences(self) -> tuple[str, ...]:
        """What physics hides, what noise must hide, and what the classical theorems say, in plain words."""
        return tuple(_sentences(self))


def conditioning(operator: Operator) -> Conditioning:
    """Say how ill-conditioned an operator is, and whether that makes it easy to keep private.

    Args:
        operator: Maps masses to readings.

    Returns:
        Singular values, coherence, and how far readings of neighboring cells differ.

    >>> from sfumato.sensing import heat_line
    >>> found = conditioning(heat_line(sources=100, sensors=50, diffusion_time=0.05))
    >>> found.rank, found.coherence_speaks(1), found.isometry_speaks(1)
    (14, False, False)
    """
    m, n = operator.shape
    values, complete = _spectrum(operator)
    first, least = float(values[0]), float(values[-1])
    lost = LOST * min(m, n) * first
    columns = _columns(operator)
    step = sensitivity(operator, SwappedCells(1)).l2
    tail = float(values[1:].sum())
    nonnegative = columns.uneven is not None and not columns.signed
    graph = None
    if operator.diffusion is not None:
        graph = connectivity(
            operator.diffusion, values, step, symmetric=operator.symmetric, whole=n <= DENSE
        )
    return Conditioning(
        (m, n),
        read_only(values),
        complete,
        first / max(least, lost) if first else math.inf,
        int((values > lost).sum()),
        columns.coherence,
        columns.all_pairs,
        columns.unread,
        AlmostRankOne(
            step,
            tail,
            columns.uneven,
            tail / (tail + first) if first else 0.0,
            math.sqrt(2) * max(0.0, least - lost) if complete and 1 < n <= m else None,
            _ceiling(operator, step),
            4 * max(tail, columns.uneven or 0.0) if complete and nonnegative else None,
        ),
        graph,
    )


def _spectrum(operator: Operator) -> tuple[FloatArray, bool]:
    """Singular values from the largest, and whether they are all there are."""
    m, n = operator.shape
    diffusion = operator.diffusion if operator.symmetric else None
    if diffusion is not None and n <= DENSE:
        # From the Laplacian, so that even values that drown beside the first have all their digits.
        with np.errstate(under="ignore"):
            return np.exp(-diffusion.rate * laplacian_values(diffusion)), True
    if m * n * min(m, n) <= ALL and m * min(m, n) <= 8 * CHUNK:
        # A triangle of the transposed matrix, block by block, has its singular values, with no
        # square taken.
        triangle: FloatArray = np.zeros((0, m))
        for columns in _blocks(operator):
            triangle = np.asarray(np.linalg.qr(np.concatenate([triangle, columns.T]), mode="r"))
        return np.asarray(svdvals(triangle)), True
    count = min(LEADING, min(m, n) - 2)
    if operator.symmetric:
        even: Any = LinearOperator(
            (n, n), matvec=lambda f: operator.readings(f.ravel()), dtype=np.float64
        )
        found = eigsh(even, k=count, which="LA", v0=start(n), tol=1e-6, return_eigenvectors=False)
        return np.sort(np.asarray(found, dtype=np.float64))[::-1].copy(), False
    map_: Any = LinearOperator(
        (m, n), matvec=lambda f: operator.readings(f.ravel()), rmatvec=lambda z: operator.adjoint(z.ravel()),
        dtype=np.float64,
    )  # fmt: skip
    leading = svds(map_, k=count, v0=start(min(m, n)), return_singular_vectors=False)
    return np.sort(np.asarray(leading, dtype=np.float64))[::-1].copy(), False


def _blocks(operator: Operator) -> Iterator[FloatArray]:
    """All columns, some at a time."""
    n = operator.space.size
    if operator.holds_matrix:
        yield operator.dense()
        return
    for part in np.array_split(
        np.arange(n), max(1, math.ceil(n * operator.column_entries / CHUNK))
    ):
        yield operator.columns(part)


@dataclass(frozen=True, slots=True)
class _Columns:
    """What can be said of columns: cosines of pairs, norms of neighbors, zeros and signs."""

    coherence: float
    all_pairs: bool
    unread: int
    uneven: float | None
    signed: bool


def _columns(operator: Operator) -> _Columns:
    m, n = operator.shape
    if operator.costly_columns and n > PAIRWISE:
        # Some pairs of neighbors are enough to bound the coherence from below.
        begin, end = (cells[:64] for cells in next(pairs(operator.space, m))[:2])
        return _Columns(
            _cosine(operator.columns(begin), operator.columns(end)), False, 0, None, False
        )
    held = operator.dense() if operator.holds_matrix else None
    norms, signed = np.zeros(0), False

    def pick(cells: IntArray) -> FloatArray:
        return operator.columns(cells) if held is None else held[:, cells]

    for block in _blocks(operator):
        norms, signed = (
            np.append(norms, np.linalg.norm(block, axis=0)),
            signed or bool((block < 0).any()),
        )
    uneven, coherence, looked = 0.0, 0.0, 0
    for begin, end, _ in pairs(operator.space, m):
        uneven = max(uneven, float(np.abs(norms[begin] - norms[end]).max()))
        if n > PAIRWISE and looked < PAIRWISE:
            chosen = slice(0, PAIRWISE)
            coherence = max(coherence, _cosine(pick(begin[chosen]), pick(end[chosen])))
            looked += end.size
    all_pairs = n <= PAIRWISE and m * n <= 8 * CHUNK
    if all_pairs:
        units = np.concatenate(list(_blocks(operator)), axis=1) / np.where(norms > 0, norms, 1)
        for low in range(0, n, 512):
            cosines = np.abs(units[:, low : low + 512].T @ units[:, low:])
            np.fill_diagonal(cosines, 0.0)
            coherence = max(coherence, float(cosines.max()))
    return _Columns(min(1.0, coherence), all_pairs, int((norms == 0).sum()), uneven, signed)


def _cosine(one: FloatArray, other: FloatArray) -> float:
    """The largest cosine between columns of one and of the other."""
    sizes = np.linalg.norm(one, axis=0) * np.linalg.norm(other, axis=0)
    products = np.abs((one * other).sum(axis=0))
    return min(1.0, float((products / np.where(sizes > 0, sizes, 1)).max()))


def _ceiling(operator: Operator, step: float) -> float:
    m, n = operator.shape
    if n == 1:
        return 0.0
    space = operator.space
    even = isinstance(space, Graph) and bool((space.lengths == 1).all())
    slope = step if even else sensitivity(operator, MovedMass(1, space.metric)).l2
    match space:
        case Line():
            away = np.abs(space.positions - np.median(space.positions))
            away = np.abs(space.positions - space.positions[int(away.argmin())])
        case Grid():
            columns, rows = space.decode(np.arange(n))
            half = space.side // 2
            away = (
                np.abs(columns - half) * space.cell_width + np.abs(rows - half) * space.cell_height
            )
        case _:
            away = space.distances_from(0)
    general = math.sqrt(min(m, n - 1) * float(np.square(away).sum())) * slope
    return min(general, (n - 1) * math.sqrt(n / 2) * step) if isinstance(space, Line) else general


def _sentences(found: Conditioning) -> Iterator[str]:
    m, n = found.shape
    rank_one, graph = found.almost_rank_one, found.connectivity
    yield (
        f"Physics hides: of {min(m, n)} numbers that {m} readings of {n} cells could tell, "
        f"{'' if found.complete or found.rank < found.singular_values.size else 'at least '}{found.rank} are "
        f"above rounding; the condition number is "
        f"{'' if found.complete and found.rank == min(m, n) else 'at least '}{found.condition_number:.3g}."
    )
    yield (
        f"The first singular value is {1 - rank_one.share:.0%} of "
        f"{'the spectrum' if found.complete else 'the part of the spectrum that was computed'}."
    )
    yield (
        f"Noise must hide: one unit in the next cell moves the readings by up to {rank_one.step:.3g} in l2; "
        "a large condition number does not make that small."
    )
    if n == 1:
        yield "Lemma 5 (little noise needs bad conditioning) says nothing here: there is one cell."
    elif rank_one.floor is None:
        yield (
            "Lemma 5 (little noise needs bad conditioning) says nothing here: it needs no more cells than "
            "sensors, and all singular values."
        )
    else:
        yield f"Lemma 5: the step is at least {rank_one.floor:.3g}, from the least singular value."
    yield (
        f"Lemma 6: the singular values after the first sum to {rank_one.tail:.3g}, at most "
        f"{rank_one.ceiling:.3g}, from the step."
    )
    if rank_one.converse is None:
        yield "Its converse says nothing here: it needs entries that are never negative, and all values."
    else:
        yield f"Its converse: the step is at most {rank_one.converse:.3g}."
    if found.unread:
        yield f"{found.unread} cells are read by no sensor: no theorem of recovery covers them."
    at_least = "" if found.coherence_complete else "at least "
    yield (
        f"Coherence is {at_least}{found.coherence:.6g}: "
        + (
            f"Theorem 11 (Tropp) speaks of up to {found.sparsity} sources."
            if found.coherence_speaks(1)
            else "Theorem 11 (Tropp) says nothing, not even of one source."
        )
    )
    yield (
        f"The restricted isometry constant of two columns is at least {found.isometry(1):.6g}: "
        + (
            "Theorem 12 (Candes) is not excluded for one source."
            if found.isometry_speaks(1)
            else "Theorem 12 (Candes), which needs less than 0.414, says nothing."
        )
    )
    if graph is not None:
        yield graph.sentence

"""Block graphons: networks whose nodes are of k kinds, with one chance of an edge for each pair of kinds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato._validate import read_only, real_array
from sfumato.errors import InvalidParameter

# Sums of shares and mirrored entries that came from floating arithmetic differ by rounding, not by
# more.
SLIP = 1e-9  # that shares may miss 1 by, and chances their mirror image


@dataclass(frozen=True, init=False, eq=False)
class BlockGraphon:
    """A model of a network: block a holds shares[a] of the nodes; nodes of a and b meet with matrix[a, b].

    The matrix is symmetric with entries in [0, 1]. Shares are positive and sum to 1; equal if not
    given. This is the graphon W[B] that is constant on a k x k grid of rectangles [mcmillan18, def.
    4.2].

    >>> graphon = BlockGraphon([[0.5, 0.1], [0.1, 0.3]])
    >>> graphon.k, round(graphon.density, 3), graphon.probability(0.2, 0.9)
    (2, 0.25, 0.1)
    """

    matrix: FloatArray
    shares: FloatArray

    def __init__(self, matrix: npt.ArrayLike, shares: npt.ArrayLike | None = None) -> None:
        chances = _checked_matrix(matrix)
        k = len(chances)
        parts = np.full(k, 1 / k) if shares is None else _checked_shares(shares, k)
        object.__setattr__(self, "matrix", read_only(chances))
        object.__setattr__(self, "shares", read_only(parts))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BlockGraphon):
            return NotImplemented
        return np.array_equal(self.matrix, other.matrix) and np.array_equal(
            self.shares, other.shares
        )

    def __hash__(self) -> int:
        return hash((self.matrix.tobytes(), self.shares.tobytes()))

    def __reduce__(self) -> tuple[object, ...]:
        # Copies and unpickled models are born again, so that their arrays are read-only too.
        return BlockGraphon, (self.matrix, self.shares)

    @property
    def k(self) -> int:
        """How many blocks there are."""
        return len(self.matrix)

    @property
    def density(self) -> float:
        """The chance that two random nodes meet: the integral of the graphon."""
        return float(self.shares @ self.matrix @ self.shares)

    @cached_property
    def _ends(self) -> FloatArray:
        return np.cumsum(self.shares)[:-1]

    def block(self, position: npt.ArrayLike) -> IntArray:
        """The block at a position in [0, 1]; blocks lie side by side, each as wide as its share."""
        places = real_array("positions", position)
        if np.any(~((places >= 0) & (places <= 1))):
            raise InvalidParameter(
                f"positions must lie in [0, 1], got {position!r}; nothing was computed"
            )
        return np.searchsorted(self._ends, places, side="right").astype(np.int64)

    def probability(self, x: npt.ArrayLike, y: npt.ArrayLike) -> float | FloatArray:
        """The chance of an edge between nodes at positions x and y of [0, 1]: W(x, y)."""
        chances = self.matrix[self.block(x), self.block(y)]
        return float(chances) if np.ndim(chances) == 0 else chances


def norm(graphon: BlockGraphon) -> float:
    """How large a graphon is in L2: sqrt of the integral of W**2 [mcmillan18, sec. 4.1].

    >>> round(norm(BlockGraphon([[0.6, 0.0], [0.0, 0.8]])), 12)
    0.5
    """
    return float(np.sqrt(graphon.shares @ graphon.matrix**2 @ graphon.shares))


def _checked_matrix(matrix: npt.ArrayLike) -> FloatArray:
    chances = real_array("matrix", matrix)
    if chances.ndim != 2 or chances.shape[0] != chances.shape[1] or not chances.size:
        raise InvalidParameter(
            f"a block matrix must be k x k with k at least 1, got shape {chances.shape}; no model was built"
        )
    wrong = np.argwhere(~((chances >= 0) & (chances <= 1)))
    if wrong.size:
        a, b = wrong[0]
        raise InvalidParameter(
            f"chances of an edge must lie in [0, 1], got {chances[a, b]} at ({a}, {b}); no model was built"
        )
    uneven = np.argwhere(np.abs(chances - chances.T) > SLIP)
    if uneven.size:
        a, b = uneven[0]
        raise InvalidParameter(
            f"a block matrix must be symmetric, got {chances[a, b]} at ({a}, {b}) and {chances[b, a]} "
            f"at ({b}, {a}); no model was built"
        )
    return (chances + chances.T) / 2


def _checked_shares(shares: npt.ArrayLike, k: int) -> FloatArray:
    parts = real_array("shares", shares)
    if parts.shape != (k,):
        raise InvalidParameter(
            f"shares must be one number for each of {k} blocks, got shape {parts.shape}; no model was built"
        )
    if np.any(~(parts > 0)) or not abs(parts.sum() - 1) <= SLIP:
        raise InvalidParameter(
            f"shares must be positive and sum to 1, got {parts.tolist()}; no model was built"
        )
    return np.asarray(parts / parts.sum())

"""What bounds how wrong an answer in a plane or on a graph can be at worst: shares along a tree, with proofs.

The tree joins centers, which are the answer's places or stand for several of them, and hangs every cell on
the nearest center. No two cells are closer along it than in the space, so mass moved along it costs at least
the earth mover's distance; what it costs is bounded by linear programs. Nothing here searches: `tree_bound`
finds the proofs, `verify_tree` checks them. Proof: docs/proofs/certified-error.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato._validate import read_only
from sfumato.errors import InvalidParameter
from sfumato.sensing.recovery.certified_error import LaplaceNoise, laplace_from, laplace_json


@dataclass(frozen=True, slots=True, eq=False)
class TreeCertificate:
    """The answer's earth mover's distance to the truth is at most `bound`, with chance `level`.

    It holds whatever the sources are, if the operator and the noise are right and no cell holds more than
    the largest mass.

    Attributes:
        level: The chance, over the noise.
        bound: In the unit of the space, both scaled to mass 1.
        anywhere: Whether sources may stand anywhere in their cells; if not, at the cells' positions only.
        offset: Whether it holds for any offset that all readings have in common.
        centers: Places of the tree's nodes, one row each.
        parents: The node before each node but the first, in the order of `centers`: a smaller number.
        low: The smallest share of all mass behind each of these edges; 0 where nobody looked.
        high: The largest; 1 where nobody looked.
        signed: Edges, of which every combination of ways that mass goes was looked at by itself.
        largest: The most that mass costs to move, the same for all answers left out, for each combination.
        directions: Orthonormal combinations of readings that were looked at: sensors by directions.
        duals: What proves `high`, then `low`, then `largest`: a row of as many numbers for each.
        laplace: What the noise is if it is Laplace; None if it is Gaussian.
    """

    level: float
    bound: float
    anywhere: bool
    offset: bool
    centers: FloatArray
    parents: IntArray
    low: FloatArray
    high: FloatArray
    signed: IntArray
    largest: FloatArray
    directions: FloatArray
    duals: FloatArray
    laplace: LaplaceNoise | None = None

    def __post_init__(self) -> None:
        for name in ("parents", "signed"):
            object.__setattr__(self, name, read_only(np.array(getattr(self, name), dtype=np.int64)))
        for name in ("centers", "low", "high", "largest", "directions", "duals"):
            object.__setattr__(self, name, read_only(np.array(getattr(self, name), dtype=float)))
        edges = self.parents.size
        if not (
            self.centers.ndim == self.directions.ndim == self.duals.ndim == 2
            and self.centers.shape[0] == edges + 1
            and self.low.shape == self.high.shape == (edges,)
            and self.largest.shape == (2**self.signed.size,)
            and self.duals.shape == (2 * edges + self.largest.size, self.directions.shape[1])
        ):
            raise InvalidParameter(
                "a certificate has two shares and two proofs for each edge of its tree, and a proof for each "
                "way along the signed ones; nothing was certified"
            )

    def to_json(self) -> dict[str, Any]:
        """As it is saved and printed."""
        arrays = ("centers", "parents", "low", "high", "signed", "largest", "directions", "duals")
        return {
            "level": self.level,
            "bound": self.bound,
            "anywhere": self.anywhere,
            "offset": self.offset,
            **{name: getattr(self, name).tolist() for name in arrays},
            **laplace_json(self.laplace),
        }

    def summary(self) -> dict[str, Any]:
        """The same without the proofs."""
        return {n: v for n, v in self.to_json().items() if n not in ("directions", "duals")}

    @staticmethod
    def from_json(data: Any) -> TreeCertificate:
        """What a JSON object states."""
        numbers = {name: float(data[name]) for name in ("level", "bound")}
        return TreeCertificate(**{**data, **numbers, "laplace": laplace_from(data)})

"""What every space promises."""

from __future__ import annotations

from typing import Protocol

from sfumato._types import IntArray


class Space(Protocol):
    """Where mass lives: cells 0..size-1, how far apart they are, and which ones touch.

    Steps between neighbors realise the metric: the shortest walk from i to j is `distance(i, j)`
    long. So flow along neighbor steps is enough to compute an earth mover's distance.
    """

    @property
    def metric(self) -> str:
        """What a neighbor relation calls this distance."""
        ...

    @property
    def size(self) -> int:
        """How many cells there are."""
        ...

    @property
    def diameter(self) -> float:
        """The largest distance between two cells."""
        ...

    def distance(self, i: int, j: int, /) -> float:
        """How far cell j is from cell i."""
        ...

    def neighbors(self, i: int, /) -> IntArray:
        """The cells one step away from cell i, in increasing order."""
        ...

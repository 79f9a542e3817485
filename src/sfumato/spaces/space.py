"""What every space promises, so that nobody needs to ask which one it is."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from sfumato._types import FloatArray, IntArray


class Space(Protocol):
    """Where mass lives: cells 0..size-1, how far apart they are, and which ones touch.

    Steps between neighbors realise the metric: the shortest walk from i to j is `distance(i, j)`
    long. So flow along neighbor steps is enough to compute an earth mover's distance.

    A place is a row of coordinates: one number on a line, two on a grid, the number of a node on a
    graph. Places need not be those of cells.

    Attributes:
        kind: The name of this kind of space in files and options: "line", "grid", "graph", "points".
    """

    kind: ClassVar[str]

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

    def distances_from(self, i: int, /) -> FloatArray:
        """How far every cell is from cell i: [size]."""
        ...

    def places(self, cells: IntArray, /) -> FloatArray:
        """The coordinates of some cells: [cells, coordinates]."""
        ...

    def distances_between(self, places: FloatArray, others: FloatArray, /) -> FloatArray:
        """How far each of some places is from each of others: [places, others]."""
        ...

    def nearest_cells(self, places: FloatArray, /) -> IntArray:
        """The cell that each place is nearest to: [places]."""
        ...

    def describe(self) -> str:
        """The space in words, with its article: "a line of 4 cells, 1/4 apart"."""
        ...

    def to_json(self) -> dict[str, Any]:
        """What a file keeps of it: its kind and parameters; `space_from_json` takes it back."""
        ...

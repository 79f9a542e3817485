"""Where mass lives: Line, Grid and Graph; each is a metric with neighbors."""

from sfumato.spaces.graph import Graph
from sfumato.spaces.grid import Grid
from sfumato.spaces.line import Line
from sfumato.spaces.space import Space

__all__ = ["Graph", "Grid", "Line", "Space"]

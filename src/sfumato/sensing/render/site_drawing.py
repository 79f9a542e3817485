"""A site as pages draw it: where its cells and sensors are, and on a graph the edges between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.sensing.render.rounds_page import cell_places
from sfumato.spaces import Graph, Line

if TYPE_CHECKING:
    from sfumato.sensing.model.site import Site

VIEW = "sfumato-site-view/1"
DIGITS = 6


def site_view(site: Site) -> dict[str, Any]:
    """What a page needs to draw a site; places on a line have y 0, a graph is laid out.

    Args:
        site: A site on a line, in a plane, or on a graph.

    Returns:
        A JSON object of the format VIEW.

    Raises:
        InvalidParameter: The site has three coordinates.
    """
    space = site.operator.space
    cells = cell_places(site)
    at = np.asarray(site.sensors.positions, dtype=np.float64).reshape(len(site.sensors), -1)
    if isinstance(space, Graph):
        sensors = cells[at[:, 0].astype(np.int64)]
    else:
        sensors = np.column_stack([at[:, 0], at[:, 1] if at.shape[1] > 1 else np.zeros(len(at))])
    return {
        "format": VIEW,
        "kind": "graph"
        if isinstance(space, Graph)
        else "line"
        if isinstance(space, Line)
        else "plane",
        # Only a graph's cells are drawn one by one; of the others the box is enough.
        "nodes": cells.round(DIGITS).tolist() if isinstance(space, Graph) else [],
        "names": [site.cell(n) for n in range(space.size)] if isinstance(space, Graph) else [],
        "edges": [[int(a), int(b)] for a, b in space.edges] if isinstance(space, Graph) else [],
        "box": [*np.vstack([cells, sensors]).min(axis=0), *np.vstack([cells, sensors]).max(axis=0)],
        "sensors": [
            {"name": name, "x": float(x), "y": float(y)}
            for name, (x, y) in zip(site.sensors.names, sensors.round(DIGITS), strict=True)
        ],
    }

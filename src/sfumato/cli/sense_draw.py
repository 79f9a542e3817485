"""Pictures of recoveries, whatever space their sources live on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.cli.sense_files import numbers, read_rows
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from sfumato.sensing import SavedRecovery, Site
    from sfumato.spaces.space import FloatArray


_REMARKS = {
    "optimal": "",
    "zero": "nothing can be told from the noise",
    "infeasible": "no answer: the readings do not fit the site",
}


def draw(
    saved: SavedRecovery, truth: FloatArray | None, *, layout: Path | None = None, labels: Any = None
) -> bytes:
    """A picture of a recovery, whatever space its sources live on."""
    from sfumato.figures import draw_graph_recovery, draw_line_recovery, draw_plane_recovery
    from sfumato.spaces import Graph, Line

    found = saved.recovery
    space = found.operator.space
    common: dict[str, Any] = {
        "sources": truth,
        "readings": found.readings,
        "caption": f"{saved.site.name}{f', {saved.time}' if saved.time else ''}: {saved.statement}",
        "rehearsal": saved.rehearsal,
        "remark": _REMARKS[found.status],
    }
    match space:
        case Line():
            return draw_line_recovery(
                space,
                found.estimate,
                sensors=found.operator.sensors.positions[:, 0],
                sigma=saved.sigma or 0.0,
                fitted=found.operator.readings(found.estimate),
                **common,
            )
        case Graph():
            return draw_graph_recovery(
                space,
                found.estimate,
                labels=labels,
                positions=None if layout is None else _layout(layout, saved.site),
                sensors=found.operator.sensors.positions,
                names=None if saved.site.cells is None else saved.site.cells,
                **common,
            )
        case _:
            return draw_plane_recovery(
                space, found.estimate, sensors=found.operator.sensors.positions, **common
            )


def _layout(path: Path, site: Site) -> FloatArray:
    import numpy as np

    rows = read_rows(path)
    place = {
        str(row.get("node")): (x, y)
        for row, x, y in zip(rows, numbers(rows, "x", path), numbers(rows, "y", path), strict=True)
    }
    cells = [site.cell(i) for i in range(site.operator.space.size)]
    missing = [cell for cell in cells if cell not in place]
    if missing:
        raise InvalidInput(f"{path} has no place for node {missing[0]!r}; nothing was drawn")
    return np.array([place[cell] for cell in cells])

"""Places for sensors in words, as a table, and as a picture."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING, Any

from sfumato.errors import InvalidInput
from sfumato.sensing.tables import AXES

if TYPE_CHECKING:
    from sfumato.sensing.planning.placement import Placement, PlacementGain
    from sfumato.sensing.planning.ratio import Ratio
    from sfumato.sensing.results.plan import PlacementResult


def placement_text(result: PlacementResult) -> str:
    """Which candidates were chosen, at what noise, and what that gains.

    Args:
        result: What `plan_placement` chose.

    Returns:
        Three lines, and a fourth where the gain was simulated.
    """
    lines = [
        f"{len(result.chosen)} of {result.candidates} candidates: {', '.join(result.chosen)}",
        f"each adds noise of sigma {result.sigma:.4g}, spread out evenly it would be "
        f"{result.uniform_sigma:.4g}",
        result.message,
    ]
    return "\n".join([*lines, *([] if result.gain is None else [_gain(result.gain)])])


def placement_table(result: PlacementResult) -> bytes:
    """The chosen as `sense site --sensors` reads them: on a graph x is the name of a node.

    Args:
        result: What `plan_placement` chose; one read from JSON has no places.

    Returns:
        The bytes of a CSV file with columns sensor, x and perhaps y.

    Raises:
        InvalidInput: The result was read from JSON, or sensors have more than two coordinates.
    """
    found, ground = _placed(result), result.ground
    chosen = found.operator
    places: list[list[Any]] = chosen.sensors.positions.tolist()
    if chosen.nodes is not None and ground is not None:
        places = [[ground.cell(node)] for node in chosen.nodes.tolist()]
    if len(places[0]) > len(AXES):
        raise InvalidInput(
            f"a table of sensors has x and perhaps y, got {len(places[0])} coordinates; nothing was written"
        )
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["sensor", *AXES[: len(places[0])]])
    writer.writerows([name, *place] for name, place in zip(found.names, places, strict=True))
    return text.getvalue().encode()


def placement_picture(result: PlacementResult) -> bytes:
    """Candidates, the chosen, and as many spread out evenly.

    Args:
        result: What `plan_placement` chose; one read from JSON has no places.

    Returns:
        The bytes of a PNG file.

    Raises:
        InvalidInput: The result was read from JSON; nothing was drawn.
    """
    from sfumato.figures import draw_placement, graph_layout
    from sfumato.spaces import Graph

    found, caption = _placed(result), placement_text(result).splitlines()[-1]
    candidates = found.candidates
    if candidates.nodes is not None and isinstance(candidates.space, Graph):
        places = graph_layout(candidates.space)[candidates.nodes]
        caption += "\nx and y are of a drawing of the graph, by its edges alone"
    else:
        places = candidates.sensors.positions
    return draw_placement(
        places, chosen=places[found.chosen], uniform=places[found.uniform], caption=caption
    )


def _placed(result: PlacementResult) -> Placement:
    if result.placement is None:
        raise InvalidInput("a placement read from JSON has no places in it; nothing was drawn")
    return result.placement


def _gain(gain: PlacementGain) -> str:
    total = gain.trials + gain.failed
    failed = (
        f"; {gain.failed} of {total} had no proven answer and are left out" if gain.failed else ""
    )
    return (
        f"simulated, {gain.trials} times {gain.sources} source{'s' * (gain.sources > 1)}: the least mass is "
        f"off by {gain.chosen:.3g}, from evenly spread sensors by {gain.uniform:.3g}"
        f"{_compared(gain.ratio)}{failed}"
    )


def _compared(ratio: Ratio | None) -> str:
    if ratio is None:
        return ": nothing to gain"
    if not math.isfinite(ratio.high):
        return ": too few trials were wrong to compare them"
    said = f"; the ratio is {ratio.value:.2f} (95 %: {ratio.low:.2f} to {ratio.high:.2f})"
    return said if ratio.high < 1 or ratio.low > 1 else f"{said}: no gain beyond chance"

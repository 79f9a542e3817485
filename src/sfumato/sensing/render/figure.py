"""Pictures of recoveries, tracks and whispers, whatever space their sources live on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter
from sfumato.figures import (
    draw_graph_recovery,
    draw_line_recovery,
    draw_line_track,
    draw_plane_recovery,
    draw_plane_track,
)
from sfumato.sensing.recovery.answer import on_cells
from sfumato.sensing.recovery.community import communities
from sfumato.sensing.render.recovery import only_r
from sfumato.sensing.render.words import percent
from sfumato.sensing.tables import read_layout
from sfumato.spaces import Graph, Grid, Line, Points

if TYPE_CHECKING:
    from sfumato.sensing.results.recovery import RecoveryResult
    from sfumato.sensing.results.track import TrackResult
    from sfumato.sensing.results.whisper import WhisperResult

BANNERS = {
    "rely": "",
    "care": "",
    "nothing": "nothing can be told from the noise",
    "misfit": "do not rely on this: the readings do not fit",
}
UNFITTED = "with the fitted field there is no answer: this is R of the readings as released"


def draw_recovery(
    result: RecoveryResult,
    *,
    sources: FloatArray | None = None,
    layout: str | Path | Mapping[str, tuple[float, float]] | None = None,
    labels: npt.ArrayLike | None = None,
) -> bytes:
    """Draw a recovery: the answer in front, R behind, and the readings they explain.

    With a fitted field, sensors and readings are those of the field.

    Args:
        result: The recovery.
        sources: True masses of a simulation, one for each cell.
        layout: On a graph: where to draw the nodes, a table of node, x, y, or a mapping.
        labels: On a graph: the community of each node; without them as many as the result has.

    Returns:
        A PNG picture.
    """
    found, answer = result.certificate, result.answer
    unfitted = result.diagnostics.field is not None and answer is None
    seen = found if result.fitted is None or unfitted else result.fitted
    space = seen.operator.space
    beside = None if only_r(result) else answer
    banner = BANNERS[result.verdict.kind]
    common: dict[str, Any] = {
        "sources": sources,
        "readings": seen.readings,
        "caption": _caption(result),
        "rehearsal": result.rehearsal,
        "remark": UNFITTED if unfitted and result.verdict.reliable else banner,
        "bands": [(one.place, one.radius, one.probability) for one in result.regions],
    }
    if isinstance(space, Line):
        reads = None if answer is None else answer.expected
        return draw_line_recovery(
            space,
            found.estimate,
            sensors=seen.operator.sensors.positions[:, 0],
            sigma=result.sigma or 0.0,
            fitted=seen.operator.readings(seen.estimate) if reads is None else reads,
            answer=None
            if beside is None
            else (beside.estimate.places[:, 0], beside.estimate.masses),
            **common,
        )
    common |= {
        "sensors": seen.operator.sensors.positions,
        "answer": None if beside is None else on_cells(seen.operator, beside.estimate),
    }
    if isinstance(space, Graph):
        return draw_graph_recovery(
            space,
            found.estimate,
            labels=_labels(result, space) if labels is None else labels,
            positions=_positions(layout, tuple(map(result.site.cell, range(space.size)))),
            names=None if result.site.cells is None else result.site.cells,
            **common,
        )
    names = seen.operator.sensors.names
    suspected = {one.sensor for one in result.diagnostics.suspects}
    return draw_plane_recovery(
        space,
        found.estimate,
        suspects=[i for i, name in enumerate(names) if name in suspected],
        **common,
    )


def _labels(result: RecoveryResult, graph: Graph) -> IntArray | None:
    best = result.diagnostics.community
    return None if best is None else communities(graph, count=len(best.shares))


def _positions(
    layout: str | Path | Mapping[str, tuple[float, float]] | None, names: tuple[str, ...]
) -> FloatArray | None:
    if layout is None:
        return None
    if isinstance(layout, str | Path):
        return read_layout(Path(layout), names)
    return np.array([layout[name] for name in names], dtype=np.float64)


def _caption(result: RecoveryResult) -> str:
    when = f", {result.time}" if result.time else ""
    verdict = result.verdict
    said = "; and ".join([verdict.message, *verdict.reasons])
    text = f"{result.site.name}{when}: {result.statement}\nVerdict: {said}."
    answer, field = result.answer, result.diagnostics.field
    if answer is None or only_r(result):
        return text
    told = f"\nThe answer is that of {answer.estimator}"
    if answer.regions:
        told += "; each band is a statement of its own, that all hold together is less likely"
    if field is not None:
        told += f"; it rests on a fitted field: {'; '.join(field.messages) or 'nothing had to be changed'}"
    return f"{text}{told}."


def is_drawable(space: Line | Grid | Graph | Points) -> bool:
    """Whether a track has a picture: on a line or in a plane."""
    if isinstance(space, Graph):
        return False
    return not isinstance(space, Points) or space.positions.shape[1] == 2


def draw_track(result: TrackResult) -> bytes:
    """Draw a track on a line or in a plane.

    Args:
        result: A track as `track_sources` returns it, not one that was read from a file.

    Returns:
        A PNG picture.

    Raises:
        InvalidParameter: If sources are on a graph, or the track was read from a file.
    """
    found = result.track
    if found is None:
        raise InvalidParameter("a saved track has no posterior to draw; nothing was drawn")
    space = found.operator.space
    if not is_drawable(space):
        raise InvalidParameter(
            "a track is drawn on a line or in a plane; on a graph it is a table; nothing was drawn"
        )
    places = np.array([found.estimate(number).places for number in range(len(result.rounds))])
    unmixed = "\nTHE DRAWS DID NOT MIX: this is one of several tracks that fit"
    common: dict[str, Any] = {
        "caption": f"{result.site}: {result.statement}"
        + ("" if result.mixed else unmixed)
        + "".join(f"\n{remark}" for remark in result.remarks),
        "rehearsal": result.rehearsal,
    }
    if isinstance(space, Line):
        times = [one.time for one in result.rounds]
        limits = (float(space.positions[0]), float(space.positions[-1]))
        return draw_line_track(places[:, :, 0], found.radii, times=times, limits=limits, **common)
    norm: Literal["l1", "euclidean"] = "l1" if space.metric.endswith("l1") else "euclidean"
    return draw_plane_track(
        places, found.radii, sensors=found.operator.sensors.positions, norm=norm, **common
    )


def draw_whisper(
    result: WhisperResult, *, layout: str | Path | Mapping[str, tuple[float, float]] | None = None
) -> bytes:
    """Draw what nodes said through noise, and where it began.

    Args:
        result: A result as `find_whisper` returns it, not one that was read from a file.
        layout: Where to draw the nodes: a table of node, x, y, or a mapping.

    Returns:
        A PNG picture.

    Raises:
        InvalidParameter: If the result was read from a file.
    """
    from sfumato.sensing.results.whisper import LIMITS

    told, found = result.answers, result.posterior
    if told is None or found is None:
        raise InvalidParameter("a saved result has no graph to draw; nothing was drawn")
    asked = np.flatnonzero(told.answers >= 0)
    chosen = np.array([told.names.index(node) for node in result.smallest])
    truth = None
    if result.start is not None:
        truth = np.zeros(len(told.names))
        truth[told.names.index(result.start.node)] = 1
    return draw_graph_recovery(
        found.graph,
        found.nodes,
        labels=result.labels,
        readings=told.answers[asked],
        sensors=asked,
        sources=truth,
        positions=_positions(layout, told.names),
        names=told.names,
        held=(chosen, f"one of these {chosen.size}, {percent(result.share)}"),
        titles=("what nodes said, through noise", "where it began"),
        units=("no: 0, yes: 1", "probability"),
        said="start?",
        caption=f"{result.statement}\n{LIMITS}.",
        rehearsal=result.rehearsal,
    )

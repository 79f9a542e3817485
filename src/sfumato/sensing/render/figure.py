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
    Floor,
    draw_graph_recovery,
    draw_graph_track,
    draw_line_recovery,
    draw_line_track,
    draw_plane_recovery,
    draw_plane_track,
)
from sfumato.files import NO_PLAN, FloorPlan
from sfumato.sensing.model.operators.weighted import gains_of
from sfumato.sensing.recovery.answer import on_cells
from sfumato.sensing.recovery.community import communities
from sfumato.sensing.render.recovery import certified_lines, only_r
from sfumato.sensing.render.words import percent, without_parameters
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
    plan: FloorPlan = NO_PLAN,
) -> bytes:
    """Draw a recovery: the answer in front, R behind, and the readings they explain.

    With a fitted field, sensors and readings are those of the field.

    Args:
        result: The recovery.
        sources: True masses of a simulation, one for each cell.
        layout: On a graph: where to draw the nodes, a table of node, x, y, or a mapping.
        labels: On a graph: the community of each node; without them as many as the result has.
        plan: In a plane: a floor plan under it, from `read_floor_plan`.

    Returns:
        A PNG picture.

    Raises:
        InvalidParameter: If there is a floor plan and the sources are not in a plane.
    """
    found, answer = result.certificate, result.answer
    unfitted = result.diagnostics.field is not None and answer is None
    seen = found if result.fitted is None or unfitted else result.fitted
    space = seen.operator.space
    floor = floor_of(plan, space)
    beside = None if only_r(result) else answer
    banner = BANNERS[result.verdict.kind]
    unit = result.site.reading_unit
    # As sensors have them: without the gains that give each its own noise.
    scale = unit.size / gains_of(seen.operator)
    above = unit.name and result.site.level is not None
    named = f"{unit.name} above its level" if above else unit.name
    common: dict[str, Any] = {
        "sources": sources,
        "readings": scale * seen.readings,
        "caption": "\n".join(filter(None, (without_parameters(_caption(result)), plan.sentence))),
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
            sigma=scale * (result.sigma or 0.0),
            fitted=scale
            * np.asarray(seen.operator.readings(seen.estimate) if reads is None else reads),
            unit=named,
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
            positions=node_positions(layout, tuple(map(result.site.cell, range(space.size)))),
            names=None if result.site.cells is None else result.site.cells,
            units=(f"noisy reading, {named}" if named else "noisy reading", "mass"),
            **common,
        )
    names = seen.operator.sensors.names
    suspected = {one.sensor for one in result.diagnostics.suspects}
    return draw_plane_recovery(
        space,
        found.estimate,
        suspects=[i for i, name in enumerate(names) if name in suspected],
        floor=floor,
        unit=named,
        **common,
    )


def floor_of(plan: FloorPlan, space: Line | Grid | Graph | Points) -> Floor:
    """A floor plan as pictures take it; refused where places are not in a plane."""
    if plan.files and isinstance(space, Line | Graph):
        raise InvalidParameter(
            "a floor plan lies under pictures of a plane, and under the page of rounds of a line; "
            "nothing was drawn"
        )
    return Floor(plan.pixels, plan.bounds, plan.lines)


def _labels(result: RecoveryResult, graph: Graph) -> IntArray | None:
    best = result.diagnostics.community
    return None if best is None else communities(graph, count=len(best.shares))


def node_positions(
    layout: str | Path | Mapping[str, tuple[float, float]] | None, names: tuple[str, ...]
) -> FloatArray | None:
    """Where nodes are drawn, from a table or a mapping; None where nobody says."""
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
    for told in certified_lines(result):
        text += f"\n{told[0].upper()}{told[1:]}."
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
    """Whether a track has a picture: on a line, in a plane, on a graph, not in more coordinates."""
    return not isinstance(space, Points) or space.positions.shape[1] == 2


def draw_track(
    result: TrackResult,
    *,
    plan: FloorPlan = NO_PLAN,
    layout: str | Path | Mapping[str, tuple[float, float]] | None = None,
) -> bytes:
    """Draw a track on a line, in a plane or on a graph.

    Args:
        result: A track as `track_sources` returns it, not one that was read from a file.
        plan: In a plane: a floor plan under it, from `read_floor_plan`.
        layout: On a graph: where to draw the nodes, a table of node, x, y, or a mapping.

    Returns:
        A PNG picture.

    Raises:
        InvalidParameter: If the track was read from a file, places have more than two coordinates, or
            there is a floor plan and sources are not in a plane.
    """
    found = result.track
    if found is None:
        raise InvalidParameter("a saved track has no posterior to draw; nothing was drawn")
    space, sensors = found.operator.space, found.operator.sensors
    floor = floor_of(plan, space)
    if not is_drawable(space):
        raise InvalidParameter(
            "a track is drawn on a line, in a plane or on a graph; nothing was drawn"
        )
    verdict = result.verdict
    said = "; and ".join([verdict.message, *verdict.reasons])
    told = [f"{result.site}: {result.statement}", f"Verdict: {said}.", *result.remarks]
    lines = map(without_parameters, told)
    common: dict[str, Any] = {
        "caption": "\n".join([*lines, *filter(None, [plan.sentence])]),
        "rehearsal": result.rehearsal,
        "remark": BANNERS[verdict.kind],
        "times": [one.time for one in result.rounds],
    }
    if isinstance(space, Graph):
        names = result.cells or tuple(map(str, range(space.size)))
        return draw_graph_track(
            space,
            found.cells,
            found.chances,
            positions=node_positions(layout, names),
            names=names,
            sensors=sensors.positions[:, 0],
            **common,
        )
    places = np.array([found.estimate(number).places for number in range(len(result.rounds))])
    common["sensor_names"] = sensors.names
    if isinstance(space, Line):
        limits = (float(space.positions[0]), float(space.positions[-1]))
        return draw_line_track(
            places[:, :, 0],
            found.radii,
            limits=limits,
            sensors=sensors.positions[:, 0],
            **common,
        )
    norm: Literal["l1", "euclidean"] = "l1" if space.metric.endswith("l1") else "euclidean"
    return draw_plane_track(
        places,
        found.radii,
        sensors=sensors.positions,
        space=space,
        norm=norm,
        floor=floor,
        **common,
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
        positions=node_positions(layout, told.names),
        names=told.names,
        held=(chosen, f"one of these {chosen.size}, {percent(result.share)}"),
        titles=("what nodes said, through noise", "where it began"),
        units=("no: 0, yes: 1", "probability"),
        said="start?",
        truth="where it truly began",
        caption=f"{result.statement}\n{result.limits}.",
        rehearsal=result.rehearsal,
    )

"""Pictures of recoveries, whatever space their sources live on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.cli.sense_files import read_layout

if TYPE_CHECKING:
    from sfumato._types import FloatArray
    from sfumato.cli.sense_answer import Given
    from sfumato.sensing import SavedRecovery


_REMARKS = {
    "optimal": "",
    "zero": "nothing can be told from the noise",
    "infeasible": "no answer: the readings do not fit the site",
}


UNFITTED = "with the fitted field there is no answer: this is R of the readings as released"


def draw(
    saved: SavedRecovery,
    truth: FloatArray | None,
    *,
    layout: Path | None = None,
    labels: Any = None,
    given: Given | None = None,
) -> bytes:
    """A picture of a recovery, whatever space its sources live on.

    With what an estimator has `given`, its answer is in front and R behind; sensors and readings
    are then those it was made from, so of the fitted field if there is one.
    """
    from sfumato.figures import draw_graph_recovery, draw_line_recovery, draw_plane_recovery
    from sfumato.sensing.recovery import on_cells
    from sfumato.spaces import Graph, Line

    found = saved.recovery
    answer = saved.answer
    unfitted = given is not None and given.field is not None and answer is None
    seen = found if given is None or unfitted else given.found
    space = seen.operator.space
    beside = answer is not None and (
        answer.estimator != "least" or given is None or given.field is not None
    )
    common: dict[str, Any] = {
        "sources": truth,
        "readings": seen.readings,
        "caption": _caption(saved, beside=beside),
        "rehearsal": saved.rehearsal,
        "remark": UNFITTED if unfitted else "" if answer is not None else _REMARKS[seen.status],
        "bands": []
        if answer is None
        else [(b.place, b.radius, b.probability) for b in answer.bands or ()],
    }
    match space:
        case Line():
            reads = None if given is None or unfitted else given.reads
            return draw_line_recovery(
                space,
                found.estimate,
                sensors=seen.operator.sensors.positions[:, 0],
                sigma=saved.sigma or 0.0,
                fitted=seen.operator.readings(seen.estimate) if reads is None else reads,
                answer=(answer.estimate.places[:, 0], answer.estimate.masses)
                if answer and beside
                else None,
                **common,
            )
        case Graph():
            return draw_graph_recovery(
                space,
                found.estimate,
                labels=labels,
                positions=None
                if layout is None
                else read_layout(layout, tuple(map(saved.site.cell, range(space.size)))),
                sensors=seen.operator.sensors.positions,
                names=None if saved.site.cells is None else saved.site.cells,
                answer=on_cells(seen.operator, answer.estimate) if answer and beside else None,
                **common,
            )
        case _:
            return draw_plane_recovery(
                space,
                found.estimate,
                sensors=seen.operator.sensors.positions,
                answer=on_cells(seen.operator, answer.estimate) if answer and beside else None,
                **common,
            )


def _caption(saved: SavedRecovery, *, beside: bool) -> str:
    when = f", {saved.time}" if saved.time else ""
    text = f"{saved.site.name}{when}: {saved.statement}"
    answer = saved.answer
    if answer is None or not beside:
        return text
    field = answer.told.get("field")
    told = f"\nThe answer is that of {answer.estimator}"
    if answer.bands:
        told += "; each band is a statement of its own, that all hold together is less likely"
    if field is not None:
        told += "; it rests on a fitted field: " + (
            "; ".join(field["said"]) or "nothing had to be changed"
        )
    if not answer.told.get("mixing", {"mixed": True})["mixed"]:
        told += "; ITS DRAWS DID NOT MIX, take it as a guess"
    return f"{text}{told}."

"""The result of following sources through several rounds, in memory and in a file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import InvalidInput, SfumatoError
from sfumato.files import read_json, write_file
from sfumato.privacy import Loss
from sfumato.privacy.accounting import decode_loss, encode
from sfumato.sensing.results.diagnostics import suspects_from, suspects_json
from sfumato.sensing.results.verdict import UNJUDGED, Verdict

if TYPE_CHECKING:
    from sfumato.sensing.diagnostics.field_sensors import FaultySensor
    from sfumato.sensing.tracking.rounds import Track

FORMAT = "sfumato-track/1"
PROBABILITY = 0.9


@dataclass(frozen=True, slots=True)
class TrackedSource:
    """Where one source was in one round.

    Attributes:
        cell: The cell nearest to all of its posterior.
        place: Its coordinates x, y, z as far as there are, or its `name` on a graph.
        radius: How far around it the source is with 90 %.
    """

    cell: int
    place: dict[str, Any]
    radius: float


@dataclass(frozen=True, slots=True)
class TrackedRound:
    """One round: its time, "" where nobody said, every source in it, and whether to rely on that."""

    time: str
    sources: tuple[TrackedSource, ...]
    verdict: Verdict = UNJUDGED


@dataclass(frozen=True, slots=True)
class TrackResult:
    """Sources followed through rounds of readings, and what all rounds cost together.

    Attributes:
        site: The name of the site.
        rounds: Where every source was in each round.
        masses: The mass of each source.
        speed: How far a source goes in a round, as a deviation, in the unit of the space.
        rhat: Agreement of the chains of a sampled track; None where the answer is exact.
        mixed: Whether they agree.
        fewer: How many times likelier the readings are with one source fewer, for one source with none.
        max_mass: The largest mass that was considered.
        cost: What all rounds cost one source that was there all the time; None where no number bounds it.
        statement: The same in words.
        faulty_sensors: Sensors that the others contradict, in all rounds together or in single ones.
        left_out: Whether these were left out.
        remarks: What else must be known.
        rehearsal: Whether any readings came from a ledger for rehearsals.
        verdict: Whether to rely on the track, of all that was tested.
        track: The posterior itself, for pictures; not saved.
        cells: On a graph the names of its nodes, for pictures; not saved.
    """

    site: str
    rounds: tuple[TrackedRound, ...]
    masses: tuple[float, ...]
    speed: float
    rhat: float | None
    mixed: bool
    fewer: float | None
    max_mass: float
    cost: Loss | None
    statement: str
    faulty_sensors: tuple[FaultySensor, ...] = ()
    left_out: bool = False
    remarks: tuple[str, ...] = ()
    rehearsal: bool = False
    verdict: Verdict = UNJUDGED
    track: Track | None = None
    cells: tuple[str, ...] | None = None

    @property
    def misfits(self) -> int:
        """How many rounds have the verdict not to rely on them."""
        return sum(not one.verdict.reliable for one in self.rounds)

    def to_json(self) -> dict[str, Any]:
        """As `sense track` prints and saves it."""
        return {
            "format": FORMAT,
            "site": self.site,
            "rehearsal": self.rehearsal,
            "verdict": self.verdict.to_json(),
            "rounds": [
                {
                    "round": number,
                    "time": one.time,
                    "verdict": one.verdict.to_json(),
                    "sources": [
                        {"cell": source.cell, **source.place, "radius": source.radius}
                        for source in one.sources
                    ],
                }
                for number, one in enumerate(self.rounds, 1)
            ],
            "probability": PROBABILITY,
            "masses": list(self.masses),
            "speed": self.speed,
            "rhat": self.rhat,
            "mixed": self.mixed,
            "fewer": self.fewer,
            "upper": self.max_mass,
            "cost": None if self.cost is None else encode(self.cost),
            "statement": self.statement,
            "suspects": suspects_json(self.faulty_sensors),
            "left_out": self.left_out,
            "remarks": list(self.remarks),
        }

    @staticmethod
    def from_json(data: Any) -> TrackResult:
        """The track that a JSON object states.

        Raises:
            InvalidInput: If it is no whole track.
        """
        try:
            if not isinstance(data, dict) or data.get("format") != FORMAT:
                raise ValueError(f"its format is not {FORMAT}")
            return TrackResult(
                str(data["site"]),
                tuple(
                    TrackedRound(
                        str(one["time"]), tuple(map(_source, one["sources"])), _verdict(one)
                    )
                    for one in data["rounds"]
                ),
                tuple(map(float, data["masses"])),
                float(data["speed"]),
                None if data["rhat"] is None else float(data["rhat"]),
                bool(data["mixed"]),
                None if data["fewer"] is None else float(data["fewer"]),
                float(data["upper"]),
                None if data["cost"] is None else decode_loss(data["cost"]),
                str(data["statement"]),
                suspects_from(data["suspects"]),
                bool(data["left_out"]),
                tuple(map(str, data["remarks"])),
                bool(data["rehearsal"]),
                _verdict(data),
            )
        except KeyError as problem:
            raise InvalidInput(f"not a whole track: it has no {problem}") from None
        except (SfumatoError, AttributeError, TypeError, ValueError) as problem:
            raise InvalidInput(f"not a whole track: {problem}") from None

    def write(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Save as .json."""
        write_file(path, json.dumps(self.to_json(), indent=1) + "\n", overwrite=overwrite)

    def __str__(self) -> str:
        from sfumato.sensing.render.track import track_text

        return track_text(self)

    def _repr_html_(self) -> str:
        from sfumato.sensing.render.figure import draw_track, is_drawable
        from sfumato.sensing.render.words import page_of

        drawn = self.track is not None and is_drawable(self.track.operator.space)
        return page_of(str(self), draw_track(self) if drawn else None)


def _verdict(data: Any) -> Verdict:
    """That of a track or a round; a file of before has none."""
    return Verdict.from_json(data["verdict"]) if "verdict" in data else UNJUDGED


def _source(data: Any) -> TrackedSource:
    place = {name: data[name] for name in ("name", "x", "y", "z") if name in data}
    return TrackedSource(int(data["cell"]), place, float(data["radius"]))


def read_track(path: str | Path) -> TrackResult:
    """A track from a .json file of `TrackResult.write` or `sense track --out`.

    Args:
        path: The file.

    Returns:
        The track as it was saved.

    Raises:
        InvalidInput: If the file cannot be read or is no whole track.
    """
    data = read_json(path, "a whole track")
    try:
        return TrackResult.from_json(data)
    except InvalidInput as problem:
        raise InvalidInput(f"{path} is {problem}") from None

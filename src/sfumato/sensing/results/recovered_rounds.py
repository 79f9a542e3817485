"""The result of recovering every round of a file by itself, in memory and in a file."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.errors import InvalidInput, InvalidParameter, SfumatoError
from sfumato.files import read_json, write_file
from sfumato.privacy import Loss
from sfumato.privacy.accounting import decode_loss, encode
from sfumato.sensing.model.site import Site
from sfumato.sensing.recovery.answer import place_of
from sfumato.sensing.results.mass_by_place import told_places
from sfumato.sensing.results.recovery import FORMAT as ONE
from sfumato.sensing.results.recovery import RecoveryResult

FORMAT = "sfumato-recovered-rounds/1"


@dataclass(frozen=True, slots=True)
class RecoveredRound:
    """One round of readings, recovered by itself.

    Attributes:
        time: When it was read; "" where nobody said.
        recovery: What was recovered; None where no answer could be proved.
        missing: Sensors of the site that were not read in it: it was solved without them.
        failure: Why there is no recovery, or "".
    """

    time: str
    recovery: RecoveryResult | None
    missing: tuple[str, ...] = ()
    failure: str = ""

    @property
    def status(self) -> str:
        """That of R, or "failed"."""
        return "failed" if self.recovery is None else self.recovery.certificate.status

    @property
    def total(self) -> float:
        """The mass of the answer; 0 where there is none."""
        if self.recovery is None or self.recovery.answer is None:
            return 0.0
        return float(self.recovery.answer.estimate.masses.sum())


@dataclass(frozen=True, slots=True)
class RecoveredRounds:
    """Every round of readings of a site, each recovered as `recover_sources` would alone.

    Attributes:
        site: The site that was read.
        rounds: The rounds in the order of their times.
        cost: What all rounds cost one source that was there all the time; None where no number bounds
            it, or nothing was promised.
        statement: The same in words.
        rehearsal: Whether any readings came from a ledger for rehearsals.
        remarks: What else must be known of all rounds together.
    """

    site: Site
    rounds: tuple[RecoveredRound, ...]
    cost: Loss | None
    statement: str
    rehearsal: bool = False
    remarks: tuple[str, ...] = ()

    @property
    def misfits(self) -> int:
        """How many rounds have the verdict not to rely on them."""
        found = [one.recovery for one in self.rounds if one.recovery is not None]
        return sum(not one.verdict.reliable for one in found)

    def round_at(self, time: str) -> RecoveryResult:
        """The recovery of one time, as it is written.

        Raises:
            InvalidParameter: If there is none.
        """
        for one in self.rounds:
            if one.time == time and one.recovery is not None:
                return one.recovery
        raise InvalidParameter(f"there is no recovery at {time!r}; nothing was shown")

    def to_json(self) -> dict[str, Any]:
        """Everything, so that every round can be checked; the site is there once."""
        return self._json(whole=True)

    def summary(self) -> dict[str, Any]:
        """What `sense recover --each --json` prints: everything but proofs, readings and the whole site."""
        return self._json(whole=False)

    def _json(self, *, whole: bool) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "rehearsal": self.rehearsal,
            "statement": self.statement,
            "cost": None if self.cost is None else encode(self.cost),
            "remarks": list(self.remarks),
            "site": self.site.to_json() if whole else self.site.name,
            "rounds": [_round_json(one, whole=whole) for one in self.rounds],
        }

    @staticmethod
    def from_json(data: Any) -> RecoveredRounds:
        """The rounds that a JSON object states; nothing is recomputed or believed.

        Raises:
            InvalidInput: If it is not whole.
        """
        try:
            if not isinstance(data, dict) or data.get("format") != FORMAT:
                raise ValueError(f"its format is not {FORMAT}")
            site = Site.from_json(data["site"])
            return RecoveredRounds(
                site,
                tuple(_round(one, site) for one in data["rounds"]),
                None if data["cost"] is None else decode_loss(data["cost"]),
                str(data["statement"]),
                bool(data["rehearsal"]),
                tuple(map(str, data["remarks"])),
            )
        except KeyError as problem:
            raise InvalidInput(f"not whole recovered rounds: it has no {problem}") from None
        except (SfumatoError, AttributeError, TypeError, ValueError) as problem:
            raise InvalidInput(f"not whole recovered rounds: {problem}") from None

    def table(self) -> str:
        """Where sources were in each round, as CSV.

        A row for each place: its time, the status of R, its name or coordinates, its mass, and the
        band around it: a source is within `radius` with `probability`. A round of which nothing can
        be told has one row without a place; `missing` counts sensors that were not read.
        """
        space = self.site.operator.space
        axes = list(place_of(self.site, space.places(np.array([0]))[0]))
        text = io.StringIO()
        names = ["time", "status", *axes, "mass", "radius", "probability", "missing"]
        writer = csv.DictWriter(text, names, lineterminator="\n", restval="")
        writer.writeheader()
        for one in self.rounds:
            head = {"time": one.time, "status": one.status, "missing": len(one.missing)}
            told = () if one.recovery is None else told_places(one.recovery)
            for spot in told:
                place = {} if spot.place is None else place_of(self.site, spot.place)
                band = {"radius": spot.radius, "probability": spot.probability}
                writer.writerow({**head, **place, "mass": spot.mass, **band})
            if not told:
                writer.writerow(head)
        return text.getvalue()

    def write(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Save as .json (everything, so that it can be checked) or .csv (a row for each place)."""
        match Path(path).suffix:
            case ".json":
                text = json.dumps(self.to_json(), separators=(",", ":")) + "\n"
            case ".csv":
                text = self.table()
            case other:
                raise InvalidParameter(
                    f"recovered rounds are written as .json or .csv, got {other!r}; nothing was written"
                )
        write_file(path, text, overwrite=overwrite)

    def __str__(self) -> str:
        from sfumato.sensing.render.rounds import rounds_text

        return rounds_text(self)


def _round_json(one: RecoveredRound, *, whole: bool) -> dict[str, Any]:
    found = None
    if one.recovery is not None:
        found = one.recovery.to_json() if whole else one.recovery.summary()
        found = {name: value for name, value in found.items() if name not in ("format", "site")}
    return {
        "time": one.time,
        "missing": list(one.missing),
        "failure": one.failure,
        "recovery": found,
    }


def _round(data: Any, site: Site) -> RecoveredRound:
    found = data["recovery"]
    return RecoveredRound(
        str(data["time"]),
        None if found is None else RecoveryResult.from_json({**found, "format": ONE}, site),
        tuple(map(str, data["missing"])),
        str(data["failure"]),
    )


def read_recovered_rounds(path: str | Path) -> RecoveredRounds:
    """Recovered rounds from a .json file of `RecoveredRounds.write` or `sense recover --each --out`.

    Args:
        path: The file.

    Returns:
        The rounds as they were saved.

    Raises:
        InvalidInput: If the file cannot be read or is not whole.
    """
    data = read_json(path, "whole recovered rounds")
    try:
        return RecoveredRounds.from_json(data)
    except InvalidInput as problem:
        raise InvalidInput(f"{path} is {problem}") from None

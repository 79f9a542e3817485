"""A recovery in a file: whole in itself, so that anybody can check it again, or draw it."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfumato._validate import read_only
from sfumato.errors import InvalidInput, InvalidParameter, SfumatoError
from sfumato.files import read_json, write_file
from sfumato.sensing.model.site import Site, part_of_site
from sfumato.sensing.recovery.answer import Answer, place_of
from sfumato.sensing.recovery.certificate import Recovery
from sfumato.sensing.recovery.estimate import places_of

FORMAT = "sfumato-recovery/1"


@dataclass(frozen=True, slots=True)
class SavedRecovery:
    """A recovery with the site it is of, the sensors it is from, and what was promised for their readings.

    `recovery` is R's, with its proof, always of the site as stated and the readings as released.
    `answer` is what an estimator makes of them, perhaps of a field that was fitted; it has no
    proof.
    """

    site: Site
    names: tuple[str, ...]
    recovery: Recovery
    sigma: float | None
    statement: str
    rehearsal: bool = False
    time: str = ""
    averaged: bool = False
    answer: Answer | None = None

    def sources(self) -> list[dict[str, Any]]:
        """R's places with a source: cell, its name or coordinates, mass, and share of all mass."""
        found = self.recovery
        return [
            {
                "cell": int(cell),
                **self._place(int(cell)),
                "mass": float(found.estimate[cell]),
                "share": float(found.estimate[cell] / found.objective),
            }
            for cell in found.support
        ]

    def _place(self, cell: int) -> dict[str, Any]:
        return place_of(self.site, places_of(self.site.operator.space, np.array([cell]))[0])

    def to_json(self) -> dict[str, Any]:
        """Everything that a check needs; numbers as doubles, which JSON keeps to the bit."""
        found = self.recovery
        solved = found.status != "infeasible"
        return {
            "format": FORMAT,
            "rehearsal": self.rehearsal,
            "statement": self.statement,
            "status": found.status,
            "objective": found.objective if solved else None,
            "gap": found.gap if solved else None,
            "radius": found.radius,
            "upper": found.upper,
            "sigma": self.sigma,
            "time": self.time,
            "averaged": self.averaged,
            "sources": self.sources(),
            "readings": dict(zip(self.names, found.readings.tolist(), strict=True)),
            "dual": found.dual.tolist(),
            "answer": None if self.answer is None else self.answer.to_json(self.site),
            "site": self.site.to_json(),
        }

    @staticmethod
    def from_json(data: Any) -> SavedRecovery:
        """The recovery that a JSON object states; nothing is recomputed or believed."""
        try:
            if not isinstance(data, dict) or data.get("format") != FORMAT:
                raise ValueError(f"its format is not {FORMAT}")
            site = Site.from_json(data["site"])
            names = tuple(map(str, data["readings"]))
            estimate = np.zeros(site.operator.space.size)
            for source in data["sources"]:
                cell = source["cell"]
                if type(cell) is not int or not 0 <= cell < estimate.size or estimate[cell]:
                    raise ValueError(
                        f"its sources are in cells 0..{estimate.size - 1}, each given once"
                    )
                estimate[cell] = float(source["mass"])
            if data["status"] not in ("optimal", "infeasible", "zero"):
                raise ValueError(f"no status {data['status']!r}")
            recovery = Recovery(
                operator=part_of_site(site, names),
                readings=read_only(np.array(list(data["readings"].values()), dtype=np.float64)),
                radius=float(data["radius"]),
                upper=float(data["upper"]),
                status=data["status"],
                estimate=read_only(estimate),
                objective=np.inf if data["objective"] is None else float(data["objective"]),
                gap=np.inf if data["gap"] is None else float(data["gap"]),
                dual=read_only(np.array(data["dual"], dtype=np.float64)),
            )
            if recovery.dual.shape != recovery.readings.shape:
                raise ValueError("its dual vector is not one number for each sensor")
            return SavedRecovery(
                site=site,
                names=names,
                recovery=recovery,
                sigma=None if data["sigma"] is None else float(data["sigma"]),
                statement=str(data["statement"]),
                rehearsal=bool(data["rehearsal"]),
                time=str(data["time"]),
                averaged=bool(data["averaged"]),
                answer=None
                if data.get("answer") is None
                else Answer.from_json(data["answer"], site),
            )
        except KeyError as problem:
            raise InvalidInput(f"not a whole recovery: it has no {problem}") from None
        except (SfumatoError, AttributeError, TypeError, ValueError) as problem:
            raise InvalidInput(f"not a whole recovery: {problem}") from None

    def table(self) -> str:
        """The sources as CSV: the answer's, or R's where there is none."""
        rows = self.sources() if self.answer is None else self.answer.sources(self.site)
        text = io.StringIO()
        places = list(self._place(0))
        writer = csv.DictWriter(text, ["cell", *places, "mass", "share"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()

    def write(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Save as .json (everything, so that it can be checked) or .csv (the sources)."""
        match Path(path).suffix:
            case ".json":
                text = json.dumps(self.to_json(), indent=1) + "\n"
            case ".csv":
                text = self.table()
            case other:
                raise InvalidParameter(
                    f"a recovery is written as .json or .csv, got {other!r}; nothing was written"
                )
        write_file(path, text, overwrite=overwrite)


def read_recovery(path: str | Path) -> SavedRecovery:
    """A recovery saved as .json."""
    data = read_json(path, "a whole recovery")
    try:
        return SavedRecovery.from_json(data)
    except InvalidInput as problem:
        raise InvalidInput(f"{path} is {problem}") from None

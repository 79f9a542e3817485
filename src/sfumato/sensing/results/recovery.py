"""The result of a recovery, in memory and in a file: anybody can check it again, or draw it."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato._validate import read_only
from sfumato.errors import InvalidInput, InvalidParameter, SfumatoError
from sfumato.files import read_json, write_file
from sfumato.sensing.diagnostics.shared_level import SharedLevel
from sfumato.sensing.model.site import Site, part_of_site
from sfumato.sensing.recovery.answer import Answer, CredibleRegion, Estimate, place_of
from sfumato.sensing.recovery.ceiling import Ceiling
from sfumato.sensing.recovery.certificate import Recovery
from sfumato.sensing.recovery.certified_error import ErrorCertificate
from sfumato.sensing.recovery.certified_tree import TreeCertificate
from sfumato.sensing.results.diagnostics import (
    CommunityReport,
    FieldReport,
    MisfitReport,
    RecoveryDiagnostics,
    suspects_from,
    suspects_json,
)
from sfumato.sensing.results.verdict import Verdict, verdict_of

FORMAT = "sfumato-recovery/1"


@dataclass(frozen=True, slots=True)
class RecoveryResult:
    """Where sources are, from noisy readings of a site, with a proof that can be checked.

    Attributes:
        site: The site that was read.
        names: The sensors whose readings were used.
        certificate: R, the least mass that explains the readings as they were released, with its proof.
        sigma: Standard deviation of the noise of each reading; None if unknown.
        statement: What was promised for the readings.
        rehearsal: Whether the readings came from a ledger for rehearsals.
        time: When they were read; "" where nobody said, or where several times were averaged.
        averaged: Whether several times were averaged.
        answer: What the chosen estimator answers, perhaps of a fitted field; None where there is nothing
            to be told.
        diagnostics: The test of the physics, the fitted field, communities, remarks.
        fitted: R of the fitted field, for pictures; not saved.
    """

    site: Site
    names: tuple[str, ...]
    certificate: Recovery
    sigma: float | None
    statement: str
    rehearsal: bool = False
    time: str = ""
    averaged: bool = False
    answer: Answer | None = None
    diagnostics: RecoveryDiagnostics = field(default_factory=RecoveryDiagnostics)
    fitted: Recovery | None = None

    @property
    def estimate(self) -> Estimate:
        """Places and masses of the sources: the answer's, or R's where there is none."""
        if self.answer is not None:
            return self.answer.estimate
        found = self.certificate
        places = found.operator.space.places(found.support)
        return Estimate(found.operator, places, found.estimate[found.support])

    @property
    def regions(self) -> tuple[CredibleRegion, ...]:
        """Places that are sure to have a source near them."""
        return () if self.answer is None else self.answer.regions or ()

    @property
    def verdict(self) -> Verdict:
        """Whether to rely on it: one verdict, of all that was tested."""
        return self.diagnostics.verdict

    @property
    def expected_noise(self) -> float | None:
        """How far noise alone moves all readings together, about: sigma sqrt(sensors)."""
        return None if self.sigma is None else self.sigma * len(self.names) ** 0.5

    def sources(self) -> list[dict[str, Any]]:
        """The sources: cell, its name or coordinates, mass, and share of all mass.

        The answer's, as they are printed, or R's where there is none.
        """
        return self.least_mass_sources() if self.answer is None else self.answer.sources(self.site)

    def least_mass_sources(self) -> list[dict[str, Any]]:
        """R's sources, those of the certificate, whatever the estimator answers; as `sources`."""
        found = self.certificate
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
        return place_of(self.site, self.site.operator.space.places(np.array([cell]))[0])

    def to_json(self) -> dict[str, Any]:
        """Everything, so that it can be checked; numbers as doubles, which JSON keeps to the bit."""
        found, told = self.certificate, self.diagnostics
        solved = found.status != "infeasible"
        data = {
            "format": FORMAT,
            "rehearsal": self.rehearsal,
            "statement": self.statement,
            "verdict": told.verdict.to_json(),
            "status": found.status,
            "objective": found.objective if solved else None,
            "gap": found.gap if solved else None,
            "radius": found.radius,
            "upper": found.max_mass,
            "sigma": self.sigma,
            "time": self.time,
            "averaged": self.averaged,
            "sources": self.least_mass_sources(),
            "readings": dict(zip(self.names, found.readings.tolist(), strict=True)),
            "dual": found.dual.tolist(),
            "answer": self._answer(),
            "site": self.site.to_json(),
            "expected_noise": self.expected_noise,
        }
        if told.emd is not None:
            data["emd"] = told.emd
        data |= {
            "remarks": list(told.remarks),
            "misfit": None if told.misfit is None else told.misfit.to_json(),
            "field": None if told.field is None else told.field.to_json(),
            "suspects": suspects_json(told.suspects),
            "ceiling": None if told.ceiling is None else told.ceiling.to_json(),
            "shared_level": None if told.level is None else told.level.to_json(),
            "certified_error": None if told.error is None else told.error.to_json(),
        }
        if told.community is not None:
            data["community"] = told.community.to_json()
        return data

    def _answer(self) -> dict[str, Any] | None:
        if self.answer is None:
            return None
        data, told = self.answer.to_json(self.site), self.diagnostics
        if told.field is not None:
            data["field"] = told.field.to_json()
        if told.answer_emd is not None:
            data["emd"] = told.answer_emd
        return data

    def summary(self) -> dict[str, Any]:
        """What `sense recover --json` prints: everything but the proof, the readings and the whole site."""
        data = {**self.to_json(), "site": self.site.name}
        if self.diagnostics.error is not None:
            data["certified_error"] = self.diagnostics.error.summary()
        return {name: value for name, value in data.items() if name not in ("dual", "readings")}

    @staticmethod
    def from_json(data: Any, site: Site | None = None) -> RecoveryResult:
        """The result that a JSON object states, of its own site or of one that many share.

        Nothing is recomputed or believed.

        Raises:
            InvalidInput: If it is no whole result of a recovery.
        """
        try:
            return _result(data, site)
        except KeyError as problem:
            raise InvalidInput(f"not a whole recovery: it has no {problem}") from None
        except (SfumatoError, AttributeError, TypeError, ValueError) as problem:
            raise InvalidInput(f"not a whole recovery: {problem}") from None

    def table(self) -> str:
        """The sources as CSV: the answer's, or R's where there is none."""
        text = io.StringIO()
        places = list(self._place(0))
        writer = csv.DictWriter(text, ["cell", *places, "mass", "share"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.sources())
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

    def __str__(self) -> str:
        from sfumato.sensing.render.recovery import recovery_text

        return recovery_text(self)

    def _repr_html_(self) -> str:
        from sfumato.sensing.render.figure import draw_recovery
        from sfumato.sensing.render.words import page_of

        return page_of(str(self), draw_recovery(self))


def _result(data: Any, site: Site | None) -> RecoveryResult:
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ValueError(f"its format is not {FORMAT}")
    site = Site.from_json(data["site"]) if site is None else site
    names = tuple(map(str, data["readings"]))
    answer = data.get("answer")
    certificate = _certificate(data, site, names)
    answered = None if answer is None else Answer.from_json(answer, site)
    return RecoveryResult(
        site=site,
        names=names,
        certificate=certificate,
        sigma=None if data["sigma"] is None else float(data["sigma"]),
        statement=str(data["statement"]),
        rehearsal=bool(data["rehearsal"]),
        time=str(data["time"]),
        averaged=bool(data["averaged"]),
        answer=answered,
        diagnostics=_judged(_diagnostics(data, answer or {}), data, certificate, answered),
    )


def _certificate(data: Any, site: Site, names: tuple[str, ...]) -> Recovery:
    estimate = np.zeros(site.operator.space.size)
    for source in data["sources"]:
        cell = source["cell"]
        if type(cell) is not int or not 0 <= cell < estimate.size or estimate[cell]:
            raise ValueError(f"its sources are in cells 0..{estimate.size - 1}, each given once")
        estimate[cell] = float(source["mass"])
    if data["status"] not in ("optimal", "infeasible", "zero"):
        raise ValueError(f"no status {data['status']!r}")
    found = Recovery(
        operator=part_of_site(site, names),
        readings=read_only(np.array(list(data["readings"].values()), dtype=np.float64)),
        radius=float(data["radius"]),
        max_mass=float(data["upper"]),
        status=data["status"],
        estimate=read_only(estimate),
        objective=np.inf if data["objective"] is None else float(data["objective"]),
        gap=np.inf if data["gap"] is None else float(data["gap"]),
        dual=read_only(np.array(data["dual"], dtype=np.float64)),
    )
    if found.dual.shape != found.readings.shape:
        raise ValueError("its dual vector is not one number for each sensor")
    return found


def _diagnostics(data: Any, answer: Any) -> RecoveryDiagnostics:
    """Files of before have none of them but the field, which was kept with the answer."""
    fitted = data.get("field") or answer.get("field")
    tested, where = data.get("misfit"), data.get("community")
    return RecoveryDiagnostics(
        tuple(map(str, data.get("remarks", ()))),
        None if tested is None else MisfitReport.from_json(tested),
        None if fitted is None else FieldReport.from_json(fitted),
        None if where is None else CommunityReport.from_json(where),
        None if data.get("emd") is None else float(data["emd"]),
        None if answer.get("emd") is None else float(answer["emd"]),
        suspects_from(data.get("suspects", ())),
        None if data.get("ceiling") is None else Ceiling.from_json(data["ceiling"]),
        None if data.get("shared_level") is None else SharedLevel.from_json(data["shared_level"]),
        _error(data.get("certified_error")),
    )


def _error(data: Any) -> ErrorCertificate | TreeCertificate | None:
    """One on a line has cuts, one along a tree centers; files of before have none."""
    if data is None:
        return None
    return (TreeCertificate if "centers" in data else ErrorCertificate).from_json(data)


def _judged(
    told: RecoveryDiagnostics, data: Any, certificate: Recovery, answer: Answer | None
) -> RecoveryDiagnostics:
    """With the verdict that was saved; files of before have none, and get that of what they say."""
    stated = data.get("verdict")
    if stated is not None:
        return replace(told, verdict=Verdict.from_json(stated))
    return replace(told, verdict=verdict_of(certificate.status, answer, told))


def read_recovery(path: str | Path) -> RecoveryResult:
    """The result of a recovery, from a .json file of `RecoveryResult.write` or `sense recover --out`.

    Args:
        path: The file.

    Returns:
        The result as it was saved; `check_recovery` checks its proof.

    Raises:
        InvalidInput: If the file cannot be read or is no whole result.
    """
    data = read_json(path, "a whole recovery")
    try:
        return RecoveryResult.from_json(data)
    except InvalidInput as problem:
        raise InvalidInput(f"{path} is {problem}") from None

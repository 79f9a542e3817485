"""What describing a site, releasing readings and unsealing them return."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from sfumato.errors import InvalidInput
from sfumato.privacy import Ledger
from sfumato.privacy.accounting import decode_loss, encode
from sfumato.sensing.model.site import Site, read_site
from sfumato.sensing.release.noise_plan import SensorLoss
from sfumato.sensing.release.readings import Readings, read_readings

if TYPE_CHECKING:
    from sfumato._types import FloatArray


@dataclass(frozen=True, slots=True)
class SiteResult:
    """A site, the file it was saved in, if any, and whether the resolution of its sensors was said."""

    site: Site
    file: Path | None = None
    step_given: bool = field(default=True, compare=False)

    def to_json(self) -> dict[str, Any]:
        """The file (without one the site itself), and the hash of the set of sensors."""
        return {
            "site": self.site.to_json() if self.file is None else str(self.file),
            "set": self.site.sensors.digest,
        }

    @staticmethod
    def from_json(data: Any) -> SiteResult:
        """The site that was saved in the file named, or that is stated itself."""
        if isinstance(data["site"], dict):
            file, site = None, Site.from_json(data["site"])
        else:
            file, site = Path(data["site"]), read_site(data["site"])
        if site.sensors.digest != data["set"]:
            raise InvalidInput(f"{file or 'the site'} has other sensors than were described")
        return SiteResult(site, file)


@dataclass(frozen=True, slots=True)
class LedgerResult:
    """A ledger that was made for a site."""

    ledger: Ledger

    def to_json(self) -> dict[str, Any]:
        """The file, and what its header says: budget, unit, source, neighbors."""
        return {"ledger": str(self.ledger.path), **self.ledger.header.to_json()}

    @staticmethod
    def from_json(data: Any) -> LedgerResult:
        """The ledger in the file named."""
        return LedgerResult(Ledger(data["ledger"]))


@dataclass(frozen=True, slots=True, eq=False)
class SimulationResult:
    """A site, made-up sources on it, and what its sensors read of them without noise."""

    site: Site
    sources: FloatArray
    readings: FloatArray
    folder: Path | None = None

    FILES: ClassVar[tuple[str, ...]] = ("site.json", "readings.csv", "sources.csv")

    def to_json(self) -> dict[str, Any]:
        """The three files; without a folder what they would hold: the site, readings and sources in order."""
        if self.folder is None:
            return {
                "site": self.site.to_json(),
                "readings": self.readings.tolist(),
                "sources": self.sources.tolist(),
            }
        return {Path(name).stem: str(self.folder / name) for name in self.FILES}

    @staticmethod
    def from_json(data: Any) -> SimulationResult:
        """The simulation that was saved in the files named, or that is stated itself."""
        import numpy as np

        from sfumato.sensing.reading_tables import read_snapshots
        from sfumato.sensing.tables import read_sources

        if isinstance(data["site"], dict):
            made, read = Site.from_json(data["site"]), np.array(data["readings"], dtype=np.float64)
            sources = np.array(data["sources"], dtype=np.float64)
            if (read.size, sources.size) != made.operator.shape:
                raise InvalidInput(
                    "a simulation has a reading of each sensor and a mass of each cell"
                )
            return SimulationResult(made, sources, read)
        site = read_site(data["site"])
        ((_, values),) = read_snapshots(data["readings"], site)
        read = np.array([values[name] for name in site.sensors.names])
        folder = Path(data["site"]).parent
        return SimulationResult(site, read_sources(data["sources"], site), read, folder)


@dataclass(frozen=True, slots=True)
class ReleasePrice:
    """What one reading of all sensors would cost, and the noise it would get."""

    cost: SensorLoss
    sigma: float
    unit: str
    sensors: int = field(default=0, compare=False)
    weighted: bool = field(default=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Cost, deviation of the noise, and what is protected."""
        return {"cost": encode(self.cost), "sigma": self.sigma, "unit": self.unit}

    @staticmethod
    def from_json(data: Any) -> ReleasePrice:
        """The price that a JSON object states."""
        cost = decode_loss(data["cost"])
        if not isinstance(cost, SensorLoss):
            raise InvalidInput(f"noise of sensors costs rho or epsilon, got {cost}")
        return ReleasePrice(cost, float(data["sigma"]), str(data["unit"]))


@dataclass(frozen=True, slots=True)
class ReleaseResult:
    """Readings that were released, the files they were written to, and the ledgers that paid.

    Attributes:
        readings: The site and the noisy snapshots.
        sigma: Deviation of the noise on each reading, in the unit of the site's operator; over the gain of a
            sensor, where each has its own.
        written: Files, .json or .csv.
        ledgers: Files of the ledgers that paid.
        made_before: Whether all of it was paid for before, so that nothing was charged now.
    """

    readings: Readings
    sigma: float
    written: tuple[Path, ...] = ()
    ledgers: tuple[str, ...] = ()
    made_before: bool = False

    @property
    def sealed(self) -> bool:
        """Whether the holder of the master key can take the noise off."""
        return all(snapshot.seal is not None for snapshot in self.readings.snapshots)

    @property
    def missing(self) -> dict[str, int]:
        """In how many of the readings each sensor of the site is not, for those of which any is missing."""
        rounds = [set(snapshot.names) for snapshot in self.readings.snapshots]
        absent = {
            name: sum(name not in one for one in rounds)
            for name in self.readings.site.sensors.names
        }
        return {name: count for name, count in absent.items() if count}

    @property
    def statement(self) -> str:
        """What was promised, in a sentence."""
        from sfumato.sensing.render.release import statement

        return statement(self.readings.snapshots)

    def to_json(self) -> dict[str, Any]:
        """Files, number of readings, noise and promise; the readings themselves are in the files.

        Where none were written they are under "released", whole.
        """
        released = {} if self.written else {"released": self.readings.to_json()}
        return {
            "written": [str(path) for path in self.written],
            "readings": len(self.readings.snapshots),
            "sigma": self.sigma,
            "statement": self.statement,
            "sealed": self.sealed,
            "ledgers": list(self.ledgers),
            "made_before": self.made_before,
            **released,
        }

    @staticmethod
    def from_json(data: Any) -> ReleaseResult:
        """The release whose readings are in the first .json file that it names, or stated themselves.

        Readings that were written as .csv only are refused: such a file has no promise in it.
        """
        written = tuple(map(Path, data["written"]))
        whole = [path for path in written if path.suffix == ".json"]
        if whole:
            readings = read_readings(whole[0])
        elif "released" in data:
            readings = Readings.from_json(data["released"])
        elif written:
            raise InvalidInput("the readings were written as .csv only, which has no promise in it")
        else:
            raise InvalidInput("the readings are in no file, and not stated either")
        ledgers = tuple(map(str, data["ledgers"]))
        before = bool(data.get("made_before", False))
        return ReleaseResult(readings, float(data["sigma"]), written, ledgers, before)

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            f"<tr><td>{escape(line)}</td></tr>" for line in self.readings.table().splitlines()[:11]
        )
        return f"<p>{escape(self.statement)}</p><table>{rows}</table>"


@dataclass(frozen=True, slots=True)
class UnsealedResult:
    """Readings without their noise: private, for the holder of the master key."""

    rows: tuple[tuple[str, str, float], ...] = field(repr=False)
    written: Path | None = None

    def to_json(self) -> dict[str, Any]:
        """The readings, or the file they were written to."""
        if self.written is not None:
            return {"private": True, "written": str(self.written)}
        names = ("time", "sensor", "value")
        return {
            "private": True,
            "readings": [dict(zip(names, row, strict=True)) for row in self.rows],
        }

    @staticmethod
    def from_json(data: Any) -> UnsealedResult:
        """The readings that a JSON object, or the file it names, states."""
        if "written" not in data:
            return UnsealedResult(
                tuple((r["time"], r["sensor"], r["value"]) for r in data["readings"])
            )
        from sfumato.files import read_rows

        file = Path(data["written"])
        rows = tuple((row["time"], row["sensor"], float(row["value"])) for row in read_rows(file))
        return UnsealedResult(rows, file)

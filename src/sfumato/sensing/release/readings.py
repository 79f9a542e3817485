"""Releasing readings: quantise, pay, add noise. What comes out may be sent to anybody."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidInput, InvalidParameter, SfumatoError
from sfumato.files import read_json, write_file
from sfumato.privacy import REHEARSAL, Guarantee, Ledger, PureDP, Release, guard
from sfumato.privacy.ledger import release_from_json
from sfumato.privacy.runs import Run
from sfumato.sensing.model.operators.weighted import Weighted, gains_counted
from sfumato.sensing.model.site import Site
from sfumato.sensing.release.exact import ExactReadings, check_level, in_sources, named_numbers
from sfumato.sensing.release.keys import Device, MasterKey
from sfumato.sensing.release.noise_plan import (
    LARGEST_READING,
    Calibration,
    NoisePlan,
    SensorLoss,
    check_noise_plan,
    plan_noise,
)
from sfumato.sensing.release.seal import Seal, SealedNoise, Unsealed, law_of, seal, unseal

FORMAT = "sfumato-readings/1"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Noisy readings of some or all sensors of a site at one moment, with what was promised for them."""

    names: tuple[str, ...]
    release: Release[IntArray]
    seal: Seal | None = None
    time: str = ""

    def numbers(self) -> FloatArray:
        """The noisy readings in the order of the names, in the unit of the site's operator."""
        return self.release.numbers()

    @property
    def sigma(self) -> float:
        """The deviation of the noise on each reading, in the unit of the site's operator."""
        return math.ldexp(law_of(self.release).deviation, self.release.exponent)

    @property
    def guarantee(self) -> Guarantee:
        """What was promised."""
        return self.release.guarantee

    def to_json(self) -> dict[str, Any]:
        """Everything, with exact numbers as text."""
        return {
            "time": self.time,
            "names": list(self.names),
            "release": self.release.to_json(),
            "seal": None if self.seal is None else self.seal.to_json(),
        }

    @staticmethod
    def from_json(data: Any) -> Snapshot:
        """The snapshot that a JSON object states."""
        held = None if data["seal"] is None else Seal.from_json(data["seal"])
        found = Snapshot(
            tuple(map(str, data["names"])),
            release_from_json(data["release"]),
            held,
            str(data["time"]),
        )
        if len(set(found.names)) != len(found.names):
            raise InvalidInput("it reads a sensor twice")
        if np.shape(found.release.value) != (len(found.names),):
            raise InvalidInput("its readings are not one number for each name")
        return found


@dataclass(frozen=True, slots=True)
class Readings:
    """Snapshots of a site, as they are sent and kept: whole in itself, a collector needs nothing else."""

    site: Site
    snapshots: tuple[Snapshot, ...]

    def to_json(self) -> dict[str, Any]:
        """The site and every snapshot."""
        return {
            "format": FORMAT,
            "site": self.site.to_json(),
            "snapshots": [snapshot.to_json() for snapshot in self.snapshots],
        }

    @staticmethod
    def from_json(data: Any) -> Readings:
        """The readings that a JSON object states; each snapshot must promise for the sensors of the site."""
        try:
            if not isinstance(data, dict) or data.get("format") != FORMAT:
                raise ValueError(f"its format is not {FORMAT}")
            site = Site.from_json(data["site"])
            snapshots = tuple(map(Snapshot.from_json, data["snapshots"]))
            known, named = set(site.sensors.names), f"(set {site.sensors.digest[:16]})"
            if not snapshots or any(not known.issuperset(snapshot.names) for snapshot in snapshots):
                raise ValueError("it has no snapshot, or one of a sensor that the site has not")
            if any(not set(site.off).isdisjoint(snapshot.names) for snapshot in snapshots):
                raise ValueError("it has readings of a sensor that is switched off")
            if any(named not in snapshot.guarantee.unit for snapshot in snapshots):
                raise ValueError("its promise is for other sensors than those of its site")
            return Readings(site, snapshots)
        except KeyError as problem:
            raise InvalidInput(f"not a whole file of readings: it has no {problem}") from None
        except (SfumatoError, TypeError, ValueError, ArithmeticError) as problem:
            raise InvalidInput(f"not a whole file of readings: {problem}") from None

    def table(self) -> str:
        """The noisy readings as CSV: time (if any), sensor, its coordinates, value, sigma of the noise.

        Without gains: as the sensor has them, each with its own sigma.
        """
        gains = dict(zip(self.site.sensors.names, self.site.gains.tolist(), strict=True))
        places = dict(
            zip(self.site.sensors.names, self.site.sensors.positions.tolist(), strict=True)
        )
        timed = any(snapshot.time for snapshot in self.snapshots)
        count = self.site.sensors.positions.shape[1]
        axes = list("xyz"[:count]) if count <= 3 else [f"x{axis + 1}" for axis in range(count)]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*(["time"] if timed else []), "sensor", *axes, "value", "sigma"])
        for snapshot in self.snapshots:
            for name, value in zip(snapshot.names, snapshot.numbers().tolist(), strict=True):
                when = [snapshot.time] if timed else []
                writer.writerow(
                    [*when, name, *places[name], value / gains[name], snapshot.sigma / gains[name]]
                )
        return text.getvalue()

    def write(self, path: str | Path) -> None:
        """Save in a new file, .json (everything) or .csv (the numbers)."""
        match Path(path).suffix:
            case ".json":
                text = json.dumps(self.to_json(), indent=1) + "\n"
            case ".csv":
                text = self.table()
            case other:
                raise InvalidParameter(
                    f"readings are written as .json or .csv, got {other!r}; they were paid"
                )
        lost = "the readings were paid for, keep them"
        write_file(path, text, kept="write the readings elsewhere", lost=lost)


def read_readings(path: str | Path) -> Readings:
    """Readings saved as .json; each snapshot must promise for the sensors of the site beside it.

    Args:
        path: A .json file that `Readings.write` or `sfumato sense release` made.

    Returns:
        The site and its noisy snapshots.

    Raises:
        InvalidInput: The file cannot be read, or is not whole; nothing was recovered.
    """
    data = read_json(path, "a whole file of readings")
    try:
        return Readings.from_json(data)
    except InvalidInput as problem:
        raise InvalidInput(f"{path} is {problem}") from None


def plan(site: Site, loss: SensorLoss, *, calibration: Calibration = "analytic") -> NoisePlan:
    """How much noise the sensors of a site add so that one reading of all costs at most this loss.

    Args:
        site: The site; its step and what a source adds to a reading count.
        loss: What one reading of all sensors may cost: rho, epsilon and delta above 0, or epsilon alone, which
            takes Laplace noise of one scale.
        calibration: "analytic", the least noise, or "papers", the papers' formula, to reproduce them.

    Returns:
        The plan; `write` saves it for a device that cannot plan.

    Raises:
        InvalidParameter: No such noise can be drawn; nothing was planned.

    >>> from sfumato.privacy import ZCDP, MovedMass
    >>> from sfumato.sensing import heat_line
    >>> hall = Site("hall", heat_line(sources=100, sensors=50, diffusion_time=0.05), MovedMass("0.1", "line"))
    >>> round(plan(hall, ZCDP(1)).sigma, 3)
    0.961
    """
    from sfumato.sensing.model.sensitivity import l1_sensitivity, sensitivity

    found = sensitivity(site.operator, site.neighbors)
    if isinstance(loss, PureDP) and not isinstance(site.operator, Weighted):
        found = replace(found, l1=l1_sensitivity(site.operator, site.neighbors))
    made = plan_noise(
        site.sensors,
        found,
        loss,
        step=site.step_in_sources,
        calibration=calibration,
        gains=gains_counted(site.operator),
    )
    return replace(made, site=site.digest)


def release_snapshot(
    values: Mapping[str, float] | npt.ArrayLike,
    site: Site,
    noise_plan: NoisePlan,
    *,
    ledger: Ledger,
    device: Device | None = None,
    window: str = "",
    time: str = "",
    note: str = "",
    public: bool = False,
    run: Run | None = None,
    part: str = "",
) -> Snapshot:
    """Pay for one reading of each sensor, add the noise, and seal it if a device's key is given.

    Each device may release its own readings, and pays what all together cost, because the promise is made for
    the whole set. Which sensors send must not depend on what they read.

    Args:
        values: The readings of all sensors in their order, or of some by name, in the unit that the site says;
            with those of its running baseline, if it has one, under that name.
        site: The site.
        noise_plan: The noise, planned for this site.
        ledger: The ledger that pays, before any noise is drawn.
        device: A device whose keyed noise the holder of the master key can take off.
        window: The window of time that the promise is for, as `describe_window` says it; none for all time.
        time: When the readings were taken, as text.
        note: A line for the ledger.
        public: Whether the readings are public or made up; the ledger of a rehearsal takes no others, and no
            other ledger takes these.
        run: The request that this is a part of: what is drawn is then kept beside the ledger.
        part: Which part.

    Returns:
        Noisy readings in the unit of the site's operator, with what is promised.

    Raises:
        BudgetExceeded: The ledger has less left; nothing was charged.
        InvalidParameter: The plan is for another site, or a reading is no finite number; nothing was charged.
    """
    read = check_snapshot(values, site, noise_plan, time=time)
    names = read.names
    bound = noise_plan.bound(len(names), window=window)
    exponent, mechanism = noise_plan.exponent, noise_plan.mechanism
    source = REHEARSAL if public else site.name
    guarded = guard(
        quantise(
            in_sources(read.numbers, site, level=read.level, exponent=exponent, gains=read.gains),
            exponent,
        ),
        bound,
        source=source,
        exponent=exponent,
    )
    about = note or f"{len(names)} readings"
    stream = None if device is None else SealedNoise(device.noise)

    def snapshot(paid: Release[IntArray]) -> Snapshot:
        if device is None or stream is None:
            return Snapshot(names, paid, time=time)
        return Snapshot(names, paid, seal(_sealed(site, names, time), paid, stream, device), time)

    if run is None:
        return snapshot(ledger.release(mechanism, guarded, noise=stream, note=about))
    paid, told = run.release(
        ledger,
        mechanism,
        lambda: guarded,
        part=part,
        noise=stream,
        note=about,
        attach=lambda made: _beside(snapshot(made)),
    )
    return kept_snapshot(paid, told)


def kept_snapshot(paid: Release[IntArray], told: Any) -> Snapshot:
    """A snapshot from its release and what was kept beside it: a seal cannot be made again."""
    return Snapshot.from_json({**told, "release": paid.to_json()})


def _beside(made: Snapshot) -> dict[str, Any]:
    return {name: value for name, value in made.to_json().items() if name != "release"}


def check_snapshot(
    values: Mapping[str, float] | npt.ArrayLike, site: Site, noise_plan: NoisePlan, *, time: str
) -> ExactReadings:
    """The sensors and what they read; all that `release_snapshot` refuses of readings, nothing is charged."""
    if site.per_source is None:
        raise InvalidParameter(
            f"site {site.name!r} does not say what its sensors read: make it with a unit, and per_source, "
            "what a source of mass 1 adds to a reading where the operator is 1 (`sfumato "
            "sense site` takes both); nothing was charged"
        )
    check_noise_plan(noise_plan, site)
    if type(time) is not str or not time.isprintable():
        raise InvalidParameter(
            "a time must be text that is printable on one line; nothing was charged"
        )
    read = named_numbers(values, site)
    check_level(read, site, noise_plan.exponent)
    return read


def quantise(values: FloatArray, exponent: int) -> IntArray:
    """Readings in whole lattice units: to the nearest, so two of them differ by at most one unit more.

    Args:
        values: Readings in the unit of the operator, of any shape.
        exponent: A lattice unit is 2**exponent of that.

    Returns:
        Whole numbers of lattice units, of the same shape; what is too large is cut.

    >>> quantise(np.array([0.3, -0.3]), -2)
    array([ 1, -1])
    """
    # A reading too large for a double is cut like any other that is too large, and nobody is told.
    with np.errstate(over="ignore"):
        units = np.rint(np.ldexp(values, -exponent))
    return np.asarray(np.clip(units, -LARGEST_READING, LARGEST_READING).astype(np.int64))


def unseal_snapshot(snapshot: Snapshot, site: Site, master: MasterKey) -> Unsealed:
    """The readings of a snapshot without their noise, exactly, for the holder of the master key.

    Args:
        snapshot: Sealed readings of one time.
        site: The site that they are of.
        master: The master key of the device that sealed them.

    Returns:
        The quantised readings; `reveal` gives the numbers, which are private again.

    Raises:
        InvalidInput: The readings were not sealed, or under another key, or were changed since.
    """
    if snapshot.seal is None:
        raise InvalidInput(
            "these readings were not sealed: their noise is gone for good; nothing was unsealed"
        )
    about = _sealed(site, snapshot.names, snapshot.time)
    gain = dict(zip(site.sensors.names, site.gains.tolist(), strict=True))
    gains = np.array([gain[name] for name in snapshot.names])
    return unseal(
        snapshot.names,
        about,
        snapshot.release,
        snapshot.seal,
        master,
        gains=gains if isinstance(site.operator, Weighted) else None,
    )


def _sealed(site: Site, names: tuple[str, ...], time: str) -> list[Any]:
    """What a seal covers beside the release: the site, the sensors and the time."""
    return [site.digest, list(names), time]

"""What calibrating a site returns."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sfumato.files import decoding
from sfumato.sensing.diagnostics.calibration import Fitted
from sfumato.sensing.model.site import Site, read_site


@dataclass(frozen=True, slots=True)
class CalibrationResult:
    """A site with what was fitted in it, and how sure that is.

    Attributes:
        site: The site: its level, and where a volunteer stood in it, its diffusion time and `per_source`.
        gain: What a source of mass 1 adds to a reading where the operator is 1; None where nobody stood there.
        time: The diffusion time.
        beside: What a source adds to a sensor right where it stands.
        ambient: What sensors read on average where nobody is.
        offsets: How much more each sensor reads, with its standard error.
        deviation: The standard deviation of what is left: noise of sensors, and what is no heat.
        readings: How many readings there were.
        rounds: At how many times.
        file: The file that the site was saved in, if any.
        stuck: Sensors that read one and the same number each time, where others vary.
    """

    site: Site
    gain: Fitted | None
    time: Fitted | None
    beside: Fitted | None
    ambient: Fitted
    offsets: tuple[tuple[str, float, float], ...]
    deviation: float
    readings: int
    rounds: int
    file: Path | None = None
    stuck: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """All numbers, and the file (without one the site itself)."""
        numbers = {name: getattr(self, name) for name in ("gain", "time", "beside", "ambient")}
        return {
            "site": self.site.to_json() if self.file is None else str(self.file),
            **{name: None if one is None else asdict(one) for name, one in numbers.items()},
            "offsets": [
                {"sensor": name, "offset": value, "error": error}
                for name, value, error in self.offsets
            ],
            "deviation": self.deviation,
            "readings": self.readings,
            "rounds": self.rounds,
            "stuck": list(self.stuck),
        }

    @staticmethod
    def from_json(data: Any) -> CalibrationResult:
        """The calibration that a JSON object states."""
        with decoding("a whole calibration"):
            file = None if isinstance(data["site"], dict) else Path(data["site"])
            gain, time, beside = (
                None if data[name] is None else Fitted(**data[name])
                for name in ("gain", "time", "beside")
            )
            return CalibrationResult(
                Site.from_json(data["site"]) if file is None else read_site(file),
                gain,
                time,
                beside,
                Fitted(**data["ambient"]),
                tuple(
                    (str(one["sensor"]), float(one["offset"]), float(one["error"]))
                    for one in data["offsets"]
                ),
                float(data["deviation"]),
                int(data["readings"]),
                int(data["rounds"]),
                file,
                tuple(map(str, data.get("stuck", ()))),
            )

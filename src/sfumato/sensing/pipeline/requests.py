"""What was asked of the ledgers of a site, as it lies beside them until readings are delivered."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidInput, LedgerMismatch
from sfumato.files import decoding
from sfumato.privacy.accounting import canonical, decode_loss, encode
from sfumato.privacy.runs import Request
from sfumato.sensing.model.site import Site, read_site
from sfumato.sensing.pipeline.payer import Windows
from sfumato.sensing.release.noise_plan import Calibration, NoisePlan, SensorLoss
from sfumato.sensing.table_form import TableForm

READINGS = "readings/1"


@dataclass(frozen=True, slots=True, eq=False)
class ReadingsRequest:
    """A release of readings as it was asked for.

    Attributes:
        readings: Their file; None for a table in memory, which is not kept.
        site: The site.
        site_file: Its file, if it had one; else the site is kept whole.
        windows: Ledgers of windows of time that pay; None where it is one ledger.
        loss: What one reading costs; or `share`, or `noise_plan`.
        share: An equal share of the budget.
        calibration: How noise is planned.
        noise_plan: A plan that was given.
        device: The key file of the device, if noise is sealed.
        some: Whether readings are of some of the sensors.
        note: A line for the ledger.
        count: How many readings there are.
        outputs: Files to write.
        form: How a table of readings is read.
        times: The digest of the times of all readings (`digest_of`), which a table that is read again must
            have; "" in requests of versions that kept none.
    """

    readings: str | None
    site: Site
    site_file: str | None
    windows: Windows | None
    loss: SensorLoss | None
    share: int | None
    calibration: Calibration
    noise_plan: NoisePlan | None
    device: str | None
    some: bool
    note: str
    count: int
    outputs: tuple[Path, ...] = ()
    form: TableForm = field(default_factory=TableForm)
    times: str = ""
    timed: bool = False

    @property
    def request(self) -> Request:
        """As a ledger keeps it; names of files are whole, so that it can be finished from any folder."""
        windows = self.windows
        asked: dict[str, Any] = {
            "readings": _whole(self.readings),
            "site": self.site.to_json() if self.site_file is None else _whole(self.site_file),
            "digest": self.site.digest,
            "windows": None
            if windows is None
            else {
                "folder": _whole(str(windows.folder)),
                "budget": None if windows.budget is None else encode(windows.budget),
                "length": windows.length,
                **({"since": windows.since} if windows.since else {}),
                **({"until": windows.until} if windows.until else {}),
            },
            "loss": None if self.loss is None else encode(self.loss),
            "share": self.share,
            "calibration": self.calibration,
            "noise_plan": None if self.noise_plan is None else self.noise_plan.to_json(),
            "device": _whole(self.device),
            "some": self.some,
            "note": self.note,
            "count": self.count,
        }
        # Only what was said: a request of an older version is then the same as it was.
        form = self.form.to_json()
        if form:
            asked["form"] = {
                **form,
                **({"reference": _whole(self.form.reference)} if self.form.reference else {}),
            }
        # Times are not what makes a request another one: under a key of `once` it was the same before.
        delivery: dict[str, Any] = {
            "outputs": [_whole(str(path)) for path in self.outputs],
            **({"times": self.times} if self.times else {}),
        }
        # Readings from memory, or without times, may be others under the same words.
        telling = self.readings is not None and self.timed
        return Request(READINGS, "sense", asked, delivery, "readings", telling=telling)

    @staticmethod
    def from_json(asked: Mapping[str, Any], delivery: Mapping[str, Any]) -> ReadingsRequest:
        """What `request` says; refused where the site's file is another one now."""
        with decoding("a whole request", undone="nothing was released"):
            told, file = asked["windows"], asked["site"] if isinstance(asked["site"], str) else None
            site = Site.from_json(asked["site"]) if file is None else read_site(file)
            loss = None if asked["loss"] is None else decode_loss(asked["loss"])
            if not isinstance(loss, SensorLoss | None):
                raise InvalidInput(f"a reading costs no {loss}")
            found = ReadingsRequest(
                asked["readings"],
                site,
                file,
                None
                if told is None
                else Windows(
                    told["folder"],
                    None if told["budget"] is None else decode_loss(told["budget"]),
                    str(told["length"]),
                    str(told.get("since", "")),
                    str(told.get("until", "")),
                ),
                loss,
                asked["share"],
                asked["calibration"],
                None if asked["noise_plan"] is None else NoisePlan.from_json(asked["noise_plan"]),
                asked["device"],
                bool(asked["some"]),
                str(asked["note"]),
                int(asked["count"]),
                tuple(map(Path, delivery["outputs"])),
                TableForm.from_json(asked.get("form", {})),
                str(delivery.get("times", "")),
            )
        if site.digest != asked["digest"]:
            raise LedgerMismatch(f"{file} is another site than was released; nothing was released")
        return found


def digest_of(times: Iterable[str]) -> str:
    """What tells whether times are the same; they are not kept themselves."""
    return hashlib.sha256(canonical(list(times)).encode()).hexdigest()


def _whole(path: str | None) -> str | None:
    return None if path is None else os.path.abspath(path)

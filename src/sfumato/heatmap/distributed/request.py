"""What parties of a joint map must have in common, and its digest, which they compare before they charge."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sfumato import __version__
from sfumato.heatmap.distributed.parties import Parties
from sfumato.heatmap.methods.protocol import MapMethod
from sfumato.heatmap.pipeline.requests import HeatmapRequest
from sfumato.privacy import Ledger
from sfumato.privacy.accounting import canonical, encode, parameters

PROTOCOL = "joint/1"
FIELDS = (
    "protocol",
    "version",
    "parties",
    "number of curious parties",
    "area",
    "epsilon",
    "method",
    "unit",
    "measure",
)
"""What is compared, in the words of a message."""


@dataclass(frozen=True, slots=True)
class JointRequest:
    """What all parties ask for, alike; where their rows lie is their own.

    Attributes:
        told: Each of `FIELDS`, as JSON.

    """

    told: Mapping[str, Any] = field(repr=False)

    @property
    def digest(self) -> str:
        """The SHA-256 of all of it: people can compare it before the machines do."""
        return hashlib.sha256(canonical(dict(self.told)).encode()).hexdigest()

    def hashes(self) -> tuple[bytes, ...]:
        """The SHA-256 of each field, so that one can say in which two parties differ."""
        return tuple(
            hashlib.sha256(json.dumps(self.told[one], sort_keys=True).encode()).digest()
            for one in FIELDS
        )


def joint_request(
    asked: HeatmapRequest, method: MapMethod[Any], parties: Parties, ledger: Ledger
) -> JointRequest:
    """What a party asks the others for."""
    area = asked.request.asked["area"]
    told = {
        "protocol": PROTOCOL,
        "version": __version__,
        "parties": [
            [one.name, one.helper, print_]
            for one, print_ in zip(parties.parties, parties.fingerprints(), strict=True)
        ],
        "number of curious parties": parties.trust.curious,
        "area": area,
        "epsilon": str(asked.epsilon),
        "method": [method.name, json.loads(canonical(parameters(method)))],
        "unit": [ledger.header.unit, encode(ledger.header.neighbors)],
        "measure": asked.rows.columns.rows_per_user,
    }
    return JointRequest(told)

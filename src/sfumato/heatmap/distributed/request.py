"""What parties of a joint map must have in common, and its digest, which they compare before they charge."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sfumato import __version__
from sfumato.heatmap.distributed.parties import Parties
from sfumato.heatmap.methods.protocol import MapMethod
from sfumato.heatmap.pipeline.requests import HeatmapRequest
from sfumato.privacy import Ledger
from sfumato.privacy.accounting import canonical, encode, parameters
from sfumato.records import Columns

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
        terms: Each of `FIELDS`, as JSON.

    """

    terms: Mapping[str, Any] = field(repr=False)

    @property
    def digest(self) -> str:
        """The SHA-256 of all of it: people can compare it before the machines do."""
        return hashlib.sha256(canonical(dict(self.terms)).encode()).hexdigest()

    def hashes(self) -> tuple[bytes, ...]:
        """The SHA-256 of each field, so that one can say in which two parties differ."""
        return tuple(
            hashlib.sha256(json.dumps(self.terms[one], sort_keys=True).encode()).digest()
            for one in FIELDS
        )


def measure_of(columns: Columns) -> tuple[Any, ...]:
    """What rows count, whatever their columns are called: the same at all parties, or sums mean nothing."""
    step = None if columns.step is None else str(Fraction(columns.step))
    weighted = columns.weight is not None
    own = (step, columns.cap) if weighted else (None, None)
    return (columns.rows_per_user, weighted, *own, columns.user is None)


def joint_request(
    asked: HeatmapRequest,
    method: MapMethod[Any],
    parties: Parties,
    ledger: Ledger,
    *,
    measure: Sequence[Any],
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
        "measure": list(measure),
    }
    return JointRequest(told)

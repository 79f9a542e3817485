"""How a recovery is to be made: the estimator and what it is told, refused where options do not go together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from sfumato.errors import InvalidParameter
from sfumato.sensing.recovery.estimators.registry import (
    Estimator,
    estimator_named,
    estimator_names,
)

Unknown = Literal["offset", "time", "sensors"]
PAPERS = "papers"


@dataclass(frozen=True, slots=True)
class RecoveryOptions:
    """How to recover: the estimator and what it is told; refused at once where options do not go together.

    Attributes:
        estimator: The estimator that answers beside R.
        max_mass: The largest mass that one source may have.
        max_sources: The most sources to consider; None for the estimator's own limit.
        count: The number of sources, where it is known.
        seed: Seed of the estimator's draws; None for a hash of the readings.
        fit: What is not known of the field and is estimated too.
        radius: How far R may be from the readings; "papers" for sigma sqrt(m), None for the default.
        communities: On a graph: how many communities to look for; 1 for none.
        certify: Whether to bound how far the answer is from the truth at worst.
    """

    estimator: Estimator
    max_mass: float = 1.0
    max_sources: int | None = None
    count: int | None = None
    seed: int | None = None
    fit: tuple[Unknown, ...] = ()
    radius: float | Literal["papers"] | None = None
    communities: int = 2
    certify: bool = False

    def __post_init__(self) -> None:
        for one in self.fit:
            if one not in get_args(Unknown):
                raise InvalidParameter(
                    f"`fit` takes offset, time or sensors, got {one!r}; nothing was recovered"
                )
        takes = self.estimator.options
        if self.count is not None and "count" not in takes and not self.fit:
            counting = [
                n for n in sorted(estimator_names()) if "count" in estimator_named(n).options
            ]
            raise InvalidParameter(
                f"`count` goes with `estimator` {' or '.join(counting)}, or `fit`; nothing was recovered"
            )
        if self.count is not None and self.max_sources is not None:
            raise InvalidParameter(
                "`count` says how many there are, `max_sources` how many at most: give one; "
                "nothing was recovered"
            )
        if self.max_sources is not None and "max_sources" not in takes:
            raise InvalidParameter(
                f"`max_sources` goes with an estimator that counts sources, not with {self.estimator.name}; "
                "nothing was recovered"
            )

    @property
    def most(self) -> int | None:
        """The most sources to consider: as asked, or as many as a fit of an offset was told that there are.

        With more the answer would have other offsets than what was fitted allows.
        """
        told = "offset" in self.fit and "max_sources" in self.estimator.options
        return self.count if told and self.count is not None else self.max_sources

    def limit(self, noise: float | None) -> dict[str, Any]:
        """The radius of R as `recover` takes it: as asked, or as the noise says."""
        if self.radius is not None and self.radius != PAPERS:
            return {"radius": self.radius}
        if noise is None:
            raise InvalidParameter(
                "readings in a .csv need `noise`, or a `radius`; nothing was recovered"
            )
        return {"sigma": noise, "radius": self.radius}

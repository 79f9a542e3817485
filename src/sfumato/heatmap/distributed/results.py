"""What joint releases, plans and checks return, to JSON: the fields that `--json` prints are here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sfumato.heatmap.distributed.secure_sum import Traffic
from sfumato.heatmap.private_map import HeatmapRelease
from sfumato.heatmap.results import PlannedRelease, ReleaseResult
from sfumato.privacy import Joint
from sfumato.privacy.accounting import encode_model


@dataclass(frozen=True, slots=True)
class PlannedJoint:
    """A joint release that was checked at one party: nothing was read, nobody was asked.

    Attributes:
        release: What it would cost this party.
        digest: What all parties must have in common, as one hash.
        me: The name of this party.
        parties: The names of all.
        trust: How many there are, and how many may pool what they know.
        wrap_chance: How likely any sum leaves the field, at most.
        request: What the digest is of.
        resumes: The session that was charged and not finished, which would go on; "" if there is none.

    """

    release: PlannedRelease
    digest: str
    me: str
    parties: tuple[str, ...]
    trust: Joint
    wrap_chance: float
    request: Mapping[str, Any] = field(repr=False)
    resumes: str = ""

    def to_json(self) -> dict[str, Any]:
        """What `sfumato joint release --dry-run --json` prints."""
        return {
            **self.release.to_json(),
            "joint": {
                "digest": self.digest,
                "me": self.me,
                "parties": list(self.parties),
                "trust": encode_model(self.trust),
                "wrap_chance": self.wrap_chance,
                "request": dict(self.request),
                "resumes": self.resumes,
            },
        }


@dataclass(frozen=True, slots=True)
class JointResult:
    """What a joint release gave one party; the map is the same at all of them.

    Attributes:
        release: The map, what this party paid, what it has left, and the files that were written.
        digest: What all parties had in common.
        session: The name of the session, the same in all ledgers.
        me: The name of this party.
        parties: The names of all.
        rounds: How many secure sums there were.
        counts: How many counts were opened.
        traffic: Bytes that went to the others and came from them.
        wrap_chance: How likely any sum left the field, at most.
        resumed: Whether the session was begun before, and went on.

    """

    release: ReleaseResult
    digest: str
    session: str
    me: str
    parties: tuple[str, ...]
    rounds: int
    counts: int
    traffic: Traffic
    wrap_chance: float
    resumed: bool = False

    @property
    def map(self) -> HeatmapRelease:
        """The map."""
        return self.release.maps[0]

    def to_json(self) -> dict[str, Any]:
        """What `sfumato joint release --json` prints."""
        return {
            **self.release.to_json(),
            "joint": {
                "digest": self.digest,
                "session": self.session,
                "me": self.me,
                "parties": list(self.parties),
                "rounds": self.rounds,
                "counts": self.counts,
                "bytes_sent": self.traffic.sent,
                "bytes_received": self.traffic.received,
                "wrap_chance": self.wrap_chance,
                "resumed": self.resumed,
            },
        }


@dataclass(frozen=True, slots=True)
class CheckedSession:
    """One joint release as several ledgers and maps tell of it.

    Attributes:
        session: Its name.
        parties: How many took part, by what the entries say.
        ledgers: The ledgers that have it.
        maps: The maps of it.
        cost: What each party paid, in words.
        problems: Where they tell different stories.

    """

    session: str
    parties: int
    ledgers: tuple[str, ...]
    maps: tuple[str, ...]
    cost: str
    problems: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As it is printed."""
        return {
            "session": self.session,
            "parties": self.parties,
            "ledgers": list(self.ledgers),
            "maps": list(self.maps),
            "cost": self.cost,
            "problems": list(self.problems),
        }


@dataclass(frozen=True, slots=True)
class JointCheck:
    """Whether ledgers and maps of several parties tell of the same releases.

    Attributes:
        sessions: Each release that one of them tells of, in the order of their times.

    """

    sessions: tuple[CheckedSession, ...]

    @property
    def same(self) -> bool:
        """Whether all tell the same."""
        return not any(one.problems for one in self.sessions)

    def to_json(self) -> dict[str, Any]:
        """What `sfumato joint check --json` prints."""
        return {"same": self.same, "sessions": [one.to_json() for one in self.sessions]}

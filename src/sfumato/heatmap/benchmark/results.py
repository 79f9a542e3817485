"""What a comparison of methods says: scores, and maps of one sample to look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from sfumato._types import FloatArray

# Times are ratios to this method's, where it runs too.
BASE = "pyramid"


@dataclass(frozen=True, slots=True)
class Score:
    """One map compared with the truth; maps of one place and sample can be paired.

    `seconds` is what the release and its estimate took, drawing excluded.
    """

    source: str
    place: str
    sample: int
    users: int
    side: int
    epsilon: float
    method: str
    similarity: float
    pearson: float
    kl: float
    emd: float
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class SampleMaps:
    """Blurred maps of one sample of a source: the truth, and what every method made of it."""

    source: str
    place: str
    users: int
    epsilon: float
    truth: FloatArray
    maps: tuple[tuple[str, FloatArray], ...]


@dataclass(frozen=True, slots=True, eq=False)
class LeaderboardResult:
    """Scores of all methods on the same samples; the first method is compared with every other.

    Attributes:
        users: How many people are in a sample.
        methods: The methods in their order, those of users first.
        scores: One for each map that was compared with the truth.
        samples: Maps of one sample of each source; a result that was read from JSON has none.
        unchecked: The methods whose privacy nobody checked.
    """

    users: int
    methods: tuple[str, ...]
    scores: tuple[Score, ...]
    samples: tuple[SampleMaps, ...] = ()
    unchecked: tuple[str, ...] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        """Where samples were drawn from, in their order."""
        return tuple(dict.fromkeys(score.source for score in self.scores))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the tables must know."""
        from sfumato.heatmap.benchmark.render import UNCHECKED

        return tuple(UNCHECKED.format(name) for name in self.unchecked)

    def of(self, source: str) -> tuple[Score, ...]:
        """The scores of one source."""
        return tuple(score for score in self.scores if score.source == source)

    def to_json(self) -> dict[str, Any]:
        """Scores and what is made of them; maps are left out."""
        from sfumato.heatmap.benchmark.scoring import scores_json, times

        return {
            "simulation": True,
            "notes": list(self.notes),
            "unchecked": list(self.unchecked),
            "users": self.users,
            "methods": list(self.methods),
            "sources": {one: scores_json(self.of(one), self.methods[0]) for one in self.sources},
            "times": times(self.scores, BASE) if BASE in self.methods else {},
            "scores": [asdict(score) for score in self.scores],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LeaderboardResult:
        """The result that `to_json` wrote, without its maps."""
        names = [one.name for one in fields(Score)]
        return cls(
            data["users"],
            tuple(data["methods"]),
            tuple(Score(**{name: row[name] for name in names}) for row in data["scores"]),
            unchecked=tuple(data.get("unchecked", ())),
        )

    def __str__(self) -> str:
        from sfumato.heatmap.benchmark.render import leaderboard_words

        return leaderboard_words(self)

    def _repr_html_(self) -> str:
        from sfumato.heatmap.benchmark.render import leaderboard_html

        return leaderboard_html(self)

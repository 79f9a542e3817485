"""The auditor audited: how often it refutes what is true, and whether it catches what is not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
from scipy import stats

from sfumato._types import FloatArray
from sfumato.audit.catalogue.entries import RAPPOR_ONCE, Specimen, broken, private
from sfumato.audit.fixed.bound import lower_bound
from sfumato.audit.fixed.delta_profile import profile
from sfumato.audit.fixed.ratio import lower_limit, upper_limit
from sfumato.audit.sequential.budget import Budget
from sfumato.audit.sequential.refutation import refute
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.privacy.accounting import hockey_stick, max_divergence

Noise = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
Test = Literal["fixed", "sequential", "band"]
TESTS: tuple[Test, ...] = get_args(Test)
EPSILON = 1.0
RUNS: dict[Test, int] = {"fixed": 600, "sequential": 300, "band": 400}
"""Runs of one audit. A level holds for any number of them; few make many audits cheap."""
CONFIDENCE = 0.95
SURE = 0.95
"""Confidence of the limits of error rates."""
ALARM = 1e-6
"""How often it may be said of an auditor that keeps its levels that it does not, at most."""
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Where the band is compared with the true profile, in epsilons of the pair."""
GRID = 2.0**-20
"""Specimens with real outputs round them to this; no chance of theirs moves by more."""
NODES = 200
CAUGHT = (
    "HalfNoise",
    "NoisyHist2",
    "RNM3",
    "RNM4",
    "SVT5",
    "SVT6",
    "PrefixSum",
    "FloatLaplace",
    "FloatNormal",
)
BUDGET = 20_000
"""Broken specimens, and runs that are about ten times what catching any of them takes."""


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A private specimen of which all is known on its pair: the epsilon, and delta at every epsilon."""

    specimen: Specimen
    epsilon: float
    delta: Callable[[float], float]

    @property
    def name(self) -> str:
        """What the catalogue calls it."""
        return self.specimen.name


@dataclass(frozen=True, slots=True)
class Level:
    """How often one test was wrong about one mechanism: it may be so in a share `nominal` of audits.

    Attributes:
        test: fixed, sequential or band.
        mechanism: Its name in the catalogue.
        audits: How many.
        errors: How many were wrong.
        nominal: The share that may be.
    """

    test: Test
    mechanism: str
    audits: int
    errors: int
    nominal: float = 1 - CONFIDENCE

    @property
    def max_rate(self) -> float:
        """The error rate is at most this, with confidence SURE."""
        return upper_limit(self.errors, self.audits, level=1 - SURE)

    @property
    def shown(self) -> bool:
        """Whether these audits show that the error rate is at most nominal."""
        return self.max_rate <= self.nominal

    def above(self, level: float) -> bool:
        """Whether they show that it is more, unless with chance level."""
        return lower_limit(self.errors, self.audits, level=level) > self.nominal


@dataclass(frozen=True, slots=True)
class Catch:
    """Whether a broken mechanism was refuted, and with how many runs."""

    mechanism: str
    caught: bool
    runs: int


@dataclass(frozen=True, slots=True)
class SelfTest:
    """What the auditor's errors and catches were.

    It passes if no error rate is shown to be above nominal, which one that keeps its levels fails
    with chance at most ALARM, and if every broken mechanism was caught.

    Attributes:
        levels: Error rates of each test on each private mechanism.
        catches: Whether each broken mechanism was caught.
    """

    levels: tuple[Level, ...]
    catches: tuple[Catch, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing speaks against the auditor."""
        return not self.exceeded and all(one.caught for one in self.catches)

    @property
    def exceeded(self) -> tuple[Level, ...]:
        """Rows whose error rate is above nominal, all of them together wrong with chance at most ALARM."""
        return tuple(one for one in self.levels if one.above(ALARM / len(self.levels)))

    @property
    def noticed(self) -> float:
        """The least error rate, to a hundredth, that any one row would have given away in 99 of 100 tests."""
        audits = min((one.audits for one in self.levels), default=0)
        level = ALARM / max(1, len(self.levels))
        rates = np.linspace(0.01, 1.0, 100)
        counts = np.arange(audits + 1)
        rejected = counts[
            [lower_limit(int(k), audits, level=level) > 1 - CONFIDENCE for k in counts]
        ]
        if not rejected.size:
            return 1.0
        found = rates[stats.binom.sf(rejected[0] - 1, audits, rates) >= 0.99]
        return float(found[0]) if found.size else 1.0

    def table(self) -> list[list[str]]:
        """Error rates, one row for each test of each mechanism, under a row of headings."""
        rows = [
            [
                "mechanism",
                "test",
                "audits",
                "errors",
                f"{SURE:.0%} upper limit",
                "nominal",
                "at most nominal",
            ]
        ]
        for one in self.levels:
            word = "yes" if one.shown else "no" if one in self.exceeded else "not shown"
            rate, nominal = f"{one.max_rate:.2%}", f"{one.nominal:.0%}"
            rows.append(
                [one.mechanism, one.test, f"{one.audits:,}", str(one.errors), rate, nominal, word]
            )
        return rows

    def to_json(self) -> dict[str, Any]:
        """Whether it passed, and every row."""
        return {
            "passed": self.passed,
            "levels": [asdict(one) for one in self.levels],
            "catches": [asdict(one) for one in self.catches],
        }

    @staticmethod
    def from_json(data: Any) -> SelfTest:
        """The self-test that a JSON object states; whether it passed is computed from its rows.

        Raises:
            InvalidInput: If it states none.
        """
        try:
            return SelfTest(
                tuple(Level(**one) for one in data["levels"]),
                tuple(Catch(**one) for one in data["catches"]),
            )
        except (LookupError, TypeError) as problem:
            raise InvalidInput(f"not a whole self-test: {problem}") from None

    def __str__(self) -> str:
        """The self-test in words, one sentence a line."""
        from sfumato.audit.render.words import selftest_lines

        return "\n".join(selftest_lines(self))


def selftest(
    *, audits: int = 100, rng: np.random.Generator, watch: Callable[[str, int], None] | None = None
) -> SelfTest:
    """Check the auditor itself: how often it refutes what is true, and whether it catches what is not.

    Each of eight private mechanisms is audited so many times by each of three tests. An error is a
    lower bound above the pair's epsilon (fixed), a refutation of that epsilon (sequential), or a
    band that does not hold the whole profile of the pair (band). Broken mechanisms are audited once.

    Args:
        audits: Of each private mechanism by each test, at least 1.
        rng: Draws what the specimens give out, but for our own noise, which nobody can draw again.
        watch: Is told the mechanism, and how many audits are done.

    Returns:
        Error rates and catches.

    Raises:
        InvalidParameter: If audits is below 1.
    """
    if audits < 1:
        raise InvalidParameter(f"audits must be at least 1, got {audits}; nothing was run")
    levels = []
    done = 0
    for known in private_specimens(rng):
        for test in TESTS:
            levels.append(Level(test, known.name, audits, errors(known, test, audits, rng)))
            done += audits
            if watch is not None:
                watch(known.name, done)
    return SelfTest(tuple(levels), tuple(catch_all(rng)))


def errors(known: Known, test: Test, audits: int, rng: np.random.Generator) -> int:
    """How many of so many audits are wrong.

    Args:
        known: A private specimen with the truth about its pair.
        test: fixed, sequential or band.
        audits: At least 1.
        rng: Shuffles the inputs.

    Returns:
        From 0 to audits.
    """
    return sum(wrong(known, test, rng) for _ in range(audits))


def wrong(known: Known, test: Test, rng: np.random.Generator) -> bool:
    """Whether one audit says of a private specimen what is not so."""
    box, pair, runs = known.specimen.box, known.specimen.pair, RUNS[test]
    match test:
        case "fixed":
            found = lower_bound(box, pair, runs=runs, confidence=CONFIDENCE, rng=rng)
            return found.epsilon > known.epsilon
        case "sequential":
            claim = known.specimen.claim_of(known.epsilon)
            budget = Budget(runs, None)
            verdict = refute(box, claim, pairs=[pair], confidence=CONFIDENCE, budget=budget)
            return verdict.kind == "REFUTED"
        case "band":
            places = [share * known.epsilon for share in SHARES]
            band = profile(box, pair, epsilons=places, runs=runs, confidence=CONFIDENCE, rng=rng)
            return any(
                not low - GRID <= known.delta(at) <= high + GRID
                for at, low, high in zip(places, band.lower, band.upper, strict=True)
            )


def catch_all(rng: np.random.Generator, names: Sequence[str] = CAUGHT) -> Iterator[Catch]:
    """Audits of broken specimens, the pair known to be bad given, each within BUDGET runs.

    Args:
        rng: Draws what the specimens give out.
        names: Of the specimens to audit.

    Returns:
        One catch after another.
    """
    for specimen in broken(EPSILON, rng):
        if specimen.name in names:
            verdict = refute(
                specimen.box,
                specimen.claim,
                pairs=[specimen.pair],
                confidence=CONFIDENCE,
                budget=Budget(BUDGET, None),
            )
            yield Catch(specimen.name, verdict.kind == "REFUTED", verdict.runs)


def private_specimens(rng: np.random.Generator) -> tuple[Known, ...]:
    """Eight mechanisms that keep their claim, with the whole truth about their pairs.

    Args:
        rng: Draws what the specimens give out.

    Returns:
        The specimens with their true epsilon and delta.
    """
    named = {one.name: one for one in private(EPSILON, rng)}
    laplace = ("Laplace", "NoisyHist1", "OurLaplace")
    lawful = ("TruncGeom", "Response", "RNM1", "RNM2", "RapporOnce")
    return (
        *(Known(named[name], EPSILON, laplace_delta) for name in laplace),
        *(_of_laws(named[name], laws_of(named[name])) for name in lawful),
    )


def laplace_delta(epsilon: float) -> float:
    """Delta at epsilon of Laplace noise whose own epsilon is EPSILON: 1 - exp((epsilon - EPSILON) / 2).

    Of inputs 0 and 1 the second is more than e**epsilon times as likely above x = (1 +
    epsilon/EPSILON) / 2. Outputs are above it with chances 1 - exp(EPSILON (x - 1)) / 2 and
    exp(-EPSILON x) / 2. On the grid of the specimens it is this up to GRID.
    """
    return max(0.0, -math.expm1((epsilon - EPSILON) / 2))


def laws_of(specimen: Specimen) -> tuple[FloatArray, FloatArray]:
    """The chances of all outputs, or of all values of a sufficient statistic, on either input of the pair."""
    pair = specimen.pair
    if specimen.law is not None:
        return specimen.law(pair.first), specimen.law(pair.second)
    match specimen.name:
        case "RNM1":
            return largest_law(pair.first, laplace_noise), largest_law(pair.second, laplace_noise)
        case "RNM2":
            return largest_law(pair.first, exponential_noise), largest_law(
                pair.second, exponential_noise
            )
        case "RapporOnce":
            # Only the eight bits that differ tell; how many of either four are 1 is sufficient.
            low, high = (
                stats.binom.pmf(range(5), 4, p) for p in (RAPPOR_ONCE / 2, 1 - RAPPOR_ONCE / 2)
            )
            return np.outer(low, high).ravel(), np.outer(high, low).ravel()
        case _:
            raise InvalidParameter(
                f"the laws of {specimen.name} are not known; nothing was compared"
            )


def largest_law(data: FloatArray, noise: Noise) -> FloatArray:
    """The chances that each entry is the largest after noise of scale 2 / EPSILON.

    The integral of the density of one entry times the chance that all others are below it, between
    kinks by Gauss's rule, which has no error to speak of there: sums of exponentials.
    """
    scale = 2 / EPSILON
    kinks = np.unique(np.concatenate([data, [data.min() - 40 * scale, data.max() + 40 * scale]]))
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    chances = np.zeros(len(data))
    for low, high in pairwise(kinks.tolist()):
        places = low + (high - low) * (nodes + 1) / 2
        density, below = noise((places[:, None] - data) / scale)
        for entry in range(len(data)):
            others = np.delete(below, entry, axis=1).prod(axis=1)
            chances[entry] += (
                (high - low) / (2 * scale) * float(weights @ (density[:, entry] * others))
            )
    return np.asarray(chances / chances.sum())


def laplace_noise(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Density and distribution of Laplace noise of scale 1."""
    density = np.exp(-np.abs(z)) / 2
    return density, np.where(z < 0, density, 1 - density)


def exponential_noise(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Density and distribution of exponential noise of scale 1."""
    density = np.where(z < 0, 0.0, np.exp(-np.maximum(z, 0.0)))
    return density, np.where(z < 0, 0.0, 1 - density)


def _of_laws(specimen: Specimen, laws: tuple[FloatArray, FloatArray]) -> Known:
    orders = (laws, laws[::-1])
    epsilon = max(float(max_divergence(*order)) for order in orders)

    @cache
    def delta(at: float) -> float:
        return max(float(hockey_stick(*order, epsilon=at)) for order in orders)

    # What was rounded on the way here must not make a true claim a false one.
    return Known(specimen, epsilon * (1 + 1e-6), delta)

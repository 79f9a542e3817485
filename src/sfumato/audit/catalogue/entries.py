"""Correct and broken mechanisms, with what is claimed and what is true of them, to try an auditor on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.audit.boxes.box import Box, FunctionBox, Pair
from sfumato.audit.boxes.pairs import Histograms, Inputs, Numbers, Queries
from sfumato.audit.catalogue import specimens
from sfumato.privacy import (
    UNITS,
    AddRemoveUser,
    ApproxDP,
    Claim,
    DiscreteLaplace,
    PermuteAndFlip,
    PureDP,
    RandomisedResponse,
    SystemNoise,
)

RESPONSES = 6
RAPPOR_ONCE, RAPPOR = 0.95, 0.75
AGAIN = (0.45, 0.55)
RARE = 0.001


@dataclass(frozen=True, slots=True)
class Specimen:
    """A mechanism, the epsilon and delta its author claims, and the true epsilon at that delta.

    Attributes:
        name: In the catalogue.
        box: The mechanism.
        pair: Known to be bad, or the worst there is.
        inputs: What one knows without knowing it.
        claimed: The author's epsilon.
        true: The true epsilon at delta.
        delta: Claimed.
        law: Chances of the outputs on some data, where they are few.
    """

    name: str
    box: Box
    pair: Pair
    inputs: Inputs | Sequence[Pair]
    claimed: float
    true: float
    delta: float = 0.0
    law: Callable[[Any], npt.NDArray[np.float64]] | None = None

    @property
    def private(self) -> bool:
        """Whether the claim is true."""
        return self.true <= self.claimed

    @property
    def claim(self) -> Claim:
        """What the author claims."""
        return self.claim_of(self.claimed)

    def claim_of(self, epsilon: float) -> Claim:
        """The claim with another epsilon."""
        exact = Fraction(epsilon)
        loss = ApproxDP(exact, Fraction(self.delta)) if self.delta else PureDP(exact)
        return Claim(loss, AddRemoveUser())


def all_specimens(epsilon: float, rng: np.random.Generator) -> tuple[Specimen, ...]:
    """All specimens at one epsilon; the generator draws what they give out, except for our own noise.

    Args:
        epsilon: Claimed, above 0.
        rng: Draws what they give out.

    Returns:
        Private ones first, then broken ones.
    """
    return (*private(epsilon, rng), *broken(epsilon, rng))


def private(epsilon: float, rng: np.random.Generator) -> tuple[Specimen, ...]:
    """Specimens that keep their claim, ours at the end.

    Args:
        epsilon: Claimed, above 0.
        rng: Draws what they give out.

    Returns:
        Mechanisms whose claim is true.
    """
    five, ten = Queries(5), Queries(10)
    ones, flip = np.ones(5), _halves(10)
    bins = Pair(ones, ones - np.eye(5)[0], "one fewer")
    step, contrast = (
        Pair(0.0, 1.0, "0 and 1"),
        Pair(ones, 2 - 2 * np.eye(5)[0], "one down, the others up"),
    )
    geometric = partial(specimens.truncated_geometric_law, epsilon=epsilon, outputs=RESPONSES)
    response = partial(specimens.response_law, epsilon=epsilon, outputs=RESPONSES)
    either = (Pair(1.0, 2.0, "1 and 2"), Pair(0.0, 1.0, "0 and 1"), Pair(4.0, 5.0, "4 and 5"))
    once, again = _rappor(RAPPOR_ONCE, None, rng), _rappor(RAPPOR, AGAIN, rng)
    true_once = specimens.report_bits_epsilon(flipped=RAPPOR_ONCE, again=None)
    true_again = specimens.report_bits_epsilon(flipped=RAPPOR, again=AGAIN)
    additive, e = specimens.additive, epsilon
    return (
        Specimen("Laplace", _box(additive, rng, scale=1 / e), step, Numbers(), e, e),
        Specimen("TruncGeom", _lawful(geometric, rng), either[0], either, e, e, law=geometric),
        Specimen("Response", _lawful(response, rng), either[0], either, e, e, law=response),
        Specimen("NoisyHist1", _box(additive, rng, scale=1 / e), bins, Histograms(5), e, e),
        Specimen("RNM1", _max("laplace", value=False, epsilon=e, rng=rng), contrast, five, e, e),
        Specimen(
            "RNM2", _max("exponential", value=False, epsilon=e, rng=rng), contrast, five, e, e
        ),
        Specimen("SVT1", _svt(1, e, rng, threshold=0.5), flip, ten, e, e),
        Specimen("SVT2", _svt(2, e, rng), flip, ten, e, e),
        Specimen("RapporOnce", once, step, (step,), true_once, true_once),
        Specimen("Rappor", again, step, (step,), true_again, true_again),
        Specimen("LapParallel", _parallel(e, rng), step, Numbers(), e, e),
        Specimen("OurLaplace", function(laplace, e), step, Numbers(), e, e),
        Specimen(
            "OurResponse", function(response_of_ours, e), either[0], either, e, e, law=response
        ),
        Specimen("OurSelection", function(selection, e), contrast, five, e, e),
    )


def broken(epsilon: float, rng: np.random.Generator) -> tuple[Specimen, ...]:
    """Specimens whose claim is false.

    Args:
        epsilon: Claimed, above 0.
        rng: Draws what they give out.

    Returns:
        Mechanisms whose claim is false.
    """
    five, ten = Queries(5), Queries(10)
    ones, many = np.ones(5), np.ones(10)
    bins, step = Pair(ones, ones - np.eye(5)[0], "one fewer"), Pair(0.0, 1.0, "0 and 1")
    up, flip = Pair(2 * ones, ones, "all down"), _halves(10)
    apart = Pair(many, np.repeat([2.0, 0.0], 5), "half up, half down")
    additive, e, inf = specimens.additive, epsilon, math.inf
    # The author took the scale for the rate: right at epsilon 1, so there it is half of that.
    mistaken = e if e < 1 else 1 / (2 * e)
    rare = _box(specimens.rarely_honest, rng, epsilon=e, chance=RARE)
    delta = 1e-5
    sigma = 4 / e
    return (
        Specimen("HalfNoise", _box(additive, rng, scale=1 / (2 * e)), step, Numbers(), e, 2 * e),
        Specimen(
            "NoisyHist2", _box(additive, rng, scale=mistaken), bins, Histograms(5), e, 1 / mistaken
        ),
        Specimen("RNM3", _max("laplace", value=True, epsilon=e, rng=rng), up, five, e, inf),
        Specimen("RNM4", _max("exponential", value=True, epsilon=e, rng=rng), up, five, e, inf),
        Specimen("SVT3", _svt(3, e, rng), flip, ten, e, inf),
        Specimen("SVT4", _svt(4, e, rng), apart, ten, e, 1.75 * e),
        Specimen("SVT5", _svt(5, e, rng), apart, ten, e, inf),
        Specimen("SVT6", _svt(6, e, rng), flip, ten, e, inf),
        Specimen(
            "PrefixSum",
            _box(specimens.prefix_sums, rng, scale=1 / e),
            Pair(many, 0 * many, "all down"),
            ten,
            e,
            10 * e,
        ),
        Specimen("Rare", rare, step, Numbers(), e, inf),
        Specimen(
            "FloatLaplace", _box(specimens.float_laplace, rng, scale=1 / e), step, Numbers(), e, inf
        ),
        Specimen(
            "FloatNormal",
            _box(specimens.float_normal, rng, sigma=sigma),
            step,
            Numbers(),
            e,
            inf,
            delta,
        ),
    )


def laplace(data: float, runs: int, *, epsilon: float = 1.0) -> npt.NDArray[np.int64]:
    """Our Laplace noise on a number that a person changes by 1, in units of 2**-20: it keeps its epsilon.

    Args:
        data: A number.
        runs: How many outputs.
        epsilon: Above 0.

    Returns:
        Outputs in units of 2**-20.
    """
    return _ours(data, runs, Fraction(1) / Fraction(epsilon))


def half_noise(data: float, runs: int, *, epsilon: float = 1.0) -> npt.NDArray[np.int64]:
    """The same with half the noise: it does not keep its epsilon.

    Args:
        data: A number.
        runs: How many outputs.
        epsilon: Above 0.

    Returns:
        Outputs in units of 2**-20.
    """
    return _ours(data, runs, Fraction(1) / Fraction(2 * epsilon))


def response_of_ours(data: float, runs: int, *, epsilon: float = 1.0) -> npt.NDArray[np.int64]:
    """Our randomised response of one of six answers.

    Args:
        data: The true answer, from 0 to 5.
        runs: How many outputs.
        epsilon: Above 0.

    Returns:
        Answers from 0 to 5.
    """
    mechanism = RandomisedResponse(Fraction(epsilon), RESPONSES)
    return mechanism.sample(np.full(runs, int(data)), SystemNoise())


def selection(
    data: npt.NDArray[np.float64], runs: int, *, epsilon: float = 1.0
) -> list[npt.NDArray[np.int64]]:
    """Our choice of the best of some scores that a person changes by 1 each.

    Args:
        data: Scores.
        runs: How many outputs.
        epsilon: Above 0.

    Returns:
        Numbers of the chosen scores.
    """
    mechanism, noise = PermuteAndFlip(Fraction(2) / Fraction(epsilon)), SystemNoise()
    scores = np.asarray(data).astype(np.int64)
    return [mechanism.sample(scores, noise) for _ in range(runs)]


def function(drawn: Callable[..., Any], epsilon: float) -> FunctionBox:
    """A box of one of these functions at an epsilon."""
    return FunctionBox(partial(drawn, epsilon=epsilon), drawn.__name__)


def _ours(data: float, runs: int, scale: Fraction) -> npt.NDArray[np.int64]:
    units = np.full(runs, round(data * UNITS))
    return DiscreteLaplace(scale * UNITS).sample(units, SystemNoise())


def _box(drawn: Callable[..., Any], rng: np.random.Generator, **settings: Any) -> FunctionBox:
    return FunctionBox(partial(drawn, rng=rng, **settings), drawn.__name__)


def _lawful(law: Callable[[Any], npt.NDArray[np.float64]], rng: np.random.Generator) -> FunctionBox:
    def drawn(data: Any, runs: int) -> npt.NDArray[np.float64]:
        return specimens.from_law(law(data), runs, rng)

    return FunctionBox(drawn, "from_law")


def _max(noise: str, *, value: bool, epsilon: float, rng: np.random.Generator) -> FunctionBox:
    return _box(specimens.noisy_max, rng, epsilon=epsilon, noise=noise, value=value)


def _svt(
    variant: int, epsilon: float, rng: np.random.Generator, threshold: float = 1.0
) -> FunctionBox:
    return _box(specimens.sparse_vector, rng, epsilon=epsilon, variant=variant, threshold=threshold)


def _rappor(
    flipped: float, again: tuple[float, float] | None, rng: np.random.Generator
) -> FunctionBox:
    return _box(specimens.report_bits, rng, flipped=flipped, again=again)


def _parallel(epsilon: float, rng: np.random.Generator) -> FunctionBox:
    return _box(specimens.parallel, rng, scale=20 / epsilon, times=20)


def _halves(count: int) -> Pair:
    low = np.repeat([0.0, 1.0], count // 2)
    return Pair(low, 1 - low, "halves change places")

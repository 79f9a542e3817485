"""What few samples can show: risks that no estimator and no test gets below."""

from __future__ import annotations

import math

from sfumato.errors import InvalidParameter


def fano_error(points: int, kl: float, *, samples: int = 1) -> float:
    """The chance with which every estimator misses one of many parameters by half their least distance.

    max(0, 1 - (r KL + ln 2) / ln M) for M parameters that are pairwise at least a distance apart,
    and r samples; KL, in nats, is at least every divergence between two of their distributions. The
    expected error is at least half that distance times this [yu97, lem. 3]. The thesis [mcmillan18,
    lem. 3.2] prints epsilon for the distance, asks for disjoint balls where distances suffice, has
    1 for ln 2 and no r. Its theorem 8.7 takes the logarithm to base 2; with KL in nats the
    inequality is then false of many parameters, though not of the four it is used on.

    Args:
        points: How many parameters, at least 2.
        kl: The largest divergence between two of their distributions, in nats.
        samples: How many samples are seen.

    Returns:
        A lower bound on the probability, in [0, 1].

    Raises:
        InvalidParameter: A parameter is out of range.

    Example:
        >>> round(fano_error(16, math.log(2)), 9)
        0.5

    """
    _require(points >= 2, "points must be at least 2", points)
    _require(kl >= 0, "kl must be at least 0", kl)
    _require(samples >= 1, "samples must be at least 1", samples)
    return max(0.0, 1 - (samples * kl + math.log(2)) / math.log(points))


def least_samples(total_variation: float, affinity: float, *, error: float = 1 / 3) -> int:
    """How many samples any test needs to tell p from q with at most this error on either side.

    The smallest r at which both 1 - (1 - TV)**r and sqrt(1 - A**(2 r)), upper bounds of TV(P**r,
    Q**r), reach 1 - 2 error. [mcmillan18, cor. 3.4] has error 1/3, and prints 2r for the number of
    samples where r is meant. A is the Hellinger affinity; 1 - TV may stand for it, and then adds
    nothing.

    Args:
        total_variation: Total variation of one sample, in [0, 1].
        affinity: Hellinger affinity of one sample, in [0, 1].
        error: The error allowed on either side, in (0, 1/2).

    Returns:
        A lower bound on the number of samples.

    Raises:
        InvalidParameter: A parameter is out of range.

    Example:
        >>> least_samples(0.1, 0.9), least_samples(0.1, math.sqrt(0.99))
        (4, 12)

    """
    _require(
        0 < total_variation <= 1, "total_variation must be above 0 and at most 1", total_variation
    )
    _require(0 <= affinity < 1, "affinity must be at least 0 and below 1", affinity)
    _require(0 < error < 1 / 2, "error must be between 0 and 1/2", error)
    by_overlap = math.log(2 * error) / _log1m(total_variation)
    by_affinity = (
        math.log1p(-((1 - 2 * error) ** 2)) / (2 * math.log(affinity)) if affinity > 0 else 0.0
    )
    # A handful of roundings of 2**-53: rounded down by more, the answer never asks one sample too
    # many.
    return max(1, math.ceil(max(by_overlap, by_affinity) * (1 - 2**-48)))


def _log1m(x: float) -> float:
    return math.log1p(-x) if x < 1 else -math.inf


def _require(holds: bool, rule: str, value: object) -> None:
    if not holds:
        raise InvalidParameter(f"{rule}, got {value}")

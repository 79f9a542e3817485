"""Who takes part in a comparison: methods that charge a ledger, and functions of users.

Releases here are rehearsals with known noise, so that every number but the times can be reproduced.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import InvalidInput
from sfumato.heatmap.benchmark.places import digest, exact_counts
from sfumato.heatmap.methods.protocol import MapMethod
from sfumato.heatmap.methods.registry import registered_methods
from sfumato.heatmap.tiles import Tiles
from sfumato.privacy import REHEARSAL, KeyedNoise, Ledger
from sfumato.records import CellSums, guard_sums


class Contender(Protocol):
    """Anything that makes a map of public sums, under a name."""

    @property
    def name(self) -> str:
        """What tables call it."""

    def run(
        self,
        sums: CellSums,
        epsilon: float,
        *,
        trial: tuple[object, ...],
        chance: Callable[[bytes], np.random.Generator],
    ) -> tuple[FloatArray, float]:
        """Shares [row, column] with mass 1, and the seconds that the release and its estimate took.

        `trial` names the place and the sample, for randomness that is the same in every run;
        `chance` makes a generator of a hash.
        """


@dataclass(frozen=True, slots=True)
class BuiltinMethod:
    """A map method (anything with `mechanism` and `estimate`), run through a rehearsal ledger."""

    name: str
    method: MapMethod[Any]

    def run(
        self,
        sums: CellSums,
        epsilon: float,
        *,
        trial: tuple[object, ...],
        chance: Callable[[bytes], np.random.Generator],  # noqa: ARG002 - noise comes from a key
    ) -> tuple[FloatArray, float]:
        """What the method makes of the sums, with noise that is the same for the same trial."""
        # The same noise for the plain baseline and its thresholds: they differ in what is kept.
        label = "flat" if self.name.startswith(("laplace", "top")) else self.name
        noise = known_noise(label, *trial)
        begin = time.perf_counter()
        tiles = rehearse_sums(self.method, sums, epsilon, noise=noise)
        seconds = time.perf_counter() - begin
        return tiles.normalized().image(sums.grid.levels), seconds


@dataclass(frozen=True, slots=True)
class UserMethod:
    """A researcher's function of (counts, epsilon, rng); its privacy is not checked.

    `counts` are floats [row, column], row 0 at the lowest y, in users: everybody has mass 1 over
    all cells. It gives back an array of the same shape, none below 0; its scale does not matter.
    """

    name: str
    function: Callable[..., Any]

    def run(
        self,
        sums: CellSums,
        epsilon: float,
        *,
        trial: tuple[object, ...],
        chance: Callable[[bytes], np.random.Generator],
    ) -> tuple[FloatArray, float]:
        """What the function makes of the counts; its mistakes are one sentence."""
        counts, rng = exact_counts(sums), chance(digest(self.name, *trial))
        begin = time.perf_counter()
        shares = self._shares(counts, epsilon, rng=rng, where=trial[0])
        return shares, time.perf_counter() - begin

    def _shares(
        self, counts: FloatArray, epsilon: float, *, rng: np.random.Generator, where: object
    ) -> FloatArray:
        blame = f"{self.name} at epsilon {epsilon:g} on {where}"
        try:
            made = np.asarray(self.function(counts.copy(), epsilon, rng), dtype=np.float64)
        except Exception as problem:
            raise InvalidInput(
                f"{blame} failed: {type(problem).__name__}: {problem}; nothing was compared"
            ) from problem
        if made.shape != counts.shape:
            raise InvalidInput(
                f"{blame} must give back an array of shape {counts.shape}, got {made.shape}; nothing was "
                "compared"
            )
        if not (np.isfinite(made).all() and (made >= 0).all()):
            raise InvalidInput(
                f"{blame} must give back finite numbers, none below 0, and gave others; nothing was compared"
            )
        total = float(made.sum())
        # As for our own: where nothing is left, the even map.
        return made / total if total > 0 else np.full(counts.shape, 1 / counts.size)


def standard_methods(users: int) -> dict[str, MapMethod[Any]]:
    """Every registered map method by name, the default first, those of plugins last.

    Args:
        users: What the coarse method is told in public; no other is.

    Returns:
        Methods by name.

    >>> list(standard_methods(200))[:3]
    ['zoom', 'pyramid', 'privtree']
    """
    return {name: one.make(flags={"users": users}) for name, one in registered_methods().items()}


def known_noise(*words: object) -> KeyedNoise:
    """Noise for one rehearsal, from such a hash: fast, and the same every time.

    Args:
        *words: What the noise is for.

    Returns:
        Noise from a key that is their hash.
    """
    seed = digest(*words)
    return KeyedNoise(seed, epoch=seed[:12])


def rehearse_sums(
    method: MapMethod[Any], sums: CellSums, epsilon: float, *, noise: KeyedNoise
) -> Tiles:
    """One simulated release of public sums, through a ledger that holds just what it costs.

    Args:
        method: Any map method.
        sums: Sums of public rows.
        epsilon: What the map would cost, above 0.
        noise: The noise, as `known_noise` gives it.

    Returns:
        The estimate.

    Raises:
        InvalidParameter: For an epsilon that the method cannot take.
    """
    guarded = guard_sums(sums, source=REHEARSAL)
    mechanism = method.mechanism(Fraction(str(epsilon)), guarded.bound, sums.grid)
    ledger = Ledger.rehearsal(mechanism.cost(guarded.bound))
    return method.estimate(ledger.release(mechanism, guarded, noise=noise).value, sums.grid)[0]

"""Noise: draws per CPU second against OpenDP and numpy in one run, and what time says about a draw.

Prints Markdown; `make bench` keeps it in docs/reference/benchmarks.md.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

from sfumato.privacy import (
    UNITS,
    GaussianLaw,
    KeyedNoise,
    LaplaceLaw,
    RoundedGaussianLaw,
    SystemNoise,
)
from sfumato.privacy.noise import Law, Sampler, derive_key, keystream, look_up, sampler

DRAWS = 1_000_000
SLOW_DRAWS = 100_000
ROUNDS = 3
SINGLES = 20_000


def rate(draw: Callable[[int], Any], size: int) -> float:
    """Draws per CPU second, best of a few rounds after a warm-up."""
    draw(100)
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        draw(size)
        best = min(best, time.process_time() - start)
    return size / best


def speed() -> None:
    """Draws per CPU second of every source, beside OpenDP's."""
    keyed, system, rng = KeyedNoise(os.urandom(32)), SystemNoise(), np.random.default_rng()
    opendp_laplace = rate(lambda n: system.laplace(UNITS, n), SLOW_DRAWS)
    opendp_gaussian = rate(lambda n: system.gaussian(2**10, n), SLOW_DRAWS)
    rows: list[tuple[str, float, float | None, float | None]] = [
        (
            "numpy Laplace (float, unsafe)",
            rate(lambda n: rng.laplace(scale=UNITS, size=n), DRAWS),
            opendp_laplace,
            None,
        ),
        ("OpenDP Laplace, scale 2^20", opendp_laplace, opendp_laplace, None),
        (
            "keyed Laplace, scale 2^20",
            rate(lambda n: keyed.laplace(UNITS, n), DRAWS),
            opendp_laplace,
            8,
        ),
        (
            "numpy normal (float, unsafe)",
            rate(lambda n: rng.normal(scale=2**10, size=n), DRAWS),
            opendp_gaussian,
            None,
        ),
        ("OpenDP Gaussian, sigma 2^10", opendp_gaussian, opendp_gaussian, None),
        (
            "keyed Gaussian, sigma 2^10",
            rate(lambda n: keyed.gaussian(2**10, n), DRAWS),
            opendp_gaussian,
            40,
        ),
        (
            "keyed Gaussian, sigma 2^16 (two tables)",
            rate(lambda n: keyed.gaussian(2**16, n), DRAWS),
            opendp_gaussian,
            None,
        ),
        (
            "keyed rounded Gaussian, sigma 2^10",
            rate(lambda n: keyed.rounded_gaussian(2**10, n), DRAWS),
            None,
            None,
        ),
        (
            "system rounded Gaussian, sigma 2^10",
            rate(lambda n: system.rounded_gaussian(2**10, n), DRAWS),
            None,
            None,
        ),
    ]
    print("| source | million draws / CPU s | times OpenDP | asked for |")
    print("|---|---|---|---|")
    for name, found, peer, wanted in rows:
        ratio = "" if peer is None else f"{found / peer:.1f}"
        met = wanted is not None and peer is not None and found >= max(1e6, wanted * peer)
        goal = "" if wanted is None else f"{wanted:g}x and 1 M/s: {'met' if met else 'MISSED'}"
        print(f"| {name} | {found / 1e6:.3g} | {ratio} | {goal} |")


def tables() -> None:
    """Size, build time and distance of the tables."""
    print("| law | blocks | thresholds | KiB | build ms | log2 distance per draw |")
    print("|---|---|---|---|---|---|")
    laws: list[Law] = [
        *(LaplaceLaw(s) for s in (4, 2**10, 2**20, 2**30, 2**40)),
        *(GaussianLaw(s) for s in (4, 64, 2**10, 2**16, 2**30)),
        *(RoundedGaussianLaw(s) for s in (4, 64, 2**10, 2**12)),
    ]
    for law in laws:
        sampler.cache_clear()
        start = time.process_time()
        built = sampler(law)
        spent = 1000 * (time.process_time() - start)
        entries = sum({id(t): len(t.thresholds) for t in built.tables}.values())
        name = type(law).__name__.removesuffix("Law")
        parameter = float(law.scale if isinstance(law, LaplaceLaw) else law.sigma)
        distance = np.log2(float(built.distance * 2**100)) - 100
        shown = [
            f"{name} {parameter:g}",
            len(built.tables),
            entries,
            f"{entries / 64:.0f}",
            f"{spent:.0f}",
        ]
        print("|", *(f"{cell} |" for cell in shown), f"{distance:.1f} |")


def correlation(draw: Callable[[], int]) -> tuple[float, float]:
    """Correlation of |z| with the time of its draw, and median times of large |z| over small (quartiles)."""
    sizes, times = np.empty(SINGLES), np.empty(SINGLES)
    for _ in range(200):
        draw()
    for i in range(SINGLES):
        start = time.perf_counter_ns()
        z = draw()
        times[i] = time.perf_counter_ns() - start
        sizes[i] = abs(z)
    calm = times < np.quantile(times, 0.98)  # the rest are interruptions of the machine
    low, high = np.quantile(sizes, [0.25, 0.75])
    ratio = np.median(times[sizes >= high]) / np.median(times[sizes <= low])
    return float(np.corrcoef(sizes[calm], times[calm])[0, 1]), float(ratio)


def singles(law: Law) -> Callable[[], int]:
    """One draw at a time from blocks made beforehand, so that only the search is timed."""
    built = sampler(law)
    width = 16 * len(built.tables)
    blocks = len(built.tables) * (SINGLES + 300)
    pool = keystream(derive_key(bytes(32), law), os.urandom(12), first=0, blocks=blocks)
    places = iter(range(0, len(pool), width))

    def draw() -> int:
        at = next(places)
        return int(look_up(pool[at : at + width], built)[0])

    return draw


def loop(scale: float) -> Callable[[], int]:
    """A geometric variable by counting coins: the naive sampler, which tells everything."""
    import random

    coins, stay = random.SystemRandom(), float(np.exp(-1 / scale))

    def draw() -> int:
        k = 0
        while coins.random() < stay:
            k += 1
        return k

    return draw


def timing() -> None:
    """What the time of a single draw says about its size."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    laplace = dp.m.make_laplace(dp.atom_domain(T="i64"), dp.absolute_distance(T="i64"), scale=20.0)
    gaussian = dp.m.make_gaussian(
        dp.atom_domain(T="i64"), dp.absolute_distance(T="f64"), scale=20.0
    )
    cases: list[tuple[str, Callable[[], int]]] = [
        ("coins counted in a loop", loop(20)),
        ("OpenDP Laplace, scale 20", lambda: int(laplace(0))),
        ("OpenDP Gaussian, sigma 20", lambda: int(gaussian(0))),
        ("keyed Laplace, scale 20", singles(LaplaceLaw(20))),
        ("keyed Gaussian, sigma 20", singles(GaussianLaw(20))),
    ]
    print("| one draw at a time | correlation of size with time | median time, large / small |")
    print("|---|---|---|")
    for name, draw in cases:
        found, ratio = correlation(draw)
        print(f"| {name} | {found:+.3f} | {ratio:.3f} |")


def batches() -> None:
    """Large draws against small ones, a batch each: a search that stops early is faster on one of them."""
    law = GaussianLaw(64)
    built = sampler(law)
    raw = keystream(derive_key(bytes(32), law), os.urandom(12), first=0, blocks=400_000)
    z, blocks = np.abs(look_up(raw, built)), np.frombuffer(raw, dtype="V16")
    small, large = blocks[z < 16], blocks[z > 100]
    count = min(small.size, large.size)
    high, _ = built.tables[0].arrays()

    def numpy_search(data: bytes, _: Sampler) -> Any:
        return np.searchsorted(
            high, np.frombuffer(data, dtype=">u8").astype(np.uint64)[::2] & np.uint64(2**63 - 1)
        )

    print("| search | time of large draws / small draws |")
    print("|---|---|")
    for name, search in (("numpy.searchsorted", numpy_search), ("sfumato", look_up)):
        times: dict[str, list[float]] = {"small": [], "large": []}
        for _ in range(60):
            for kind, data in (
                ("small", small[:count].tobytes()),
                ("large", large[:count].tobytes()),
            ):
                start = time.perf_counter()
                search(data, built)
                times[kind].append(time.perf_counter() - start)
        print(f"| {name} | {np.median(times['large']) / np.median(times['small']):.3f} |")


def main() -> None:
    """All tables."""
    packages = ", ".join(
        f"{name} {version(name)}" for name in ("numpy", "numba", "opendp", "cryptography")
    )
    print("\n## Noise\n")
    print("`benchmarks/noise.py`, one run, one thread.", end=" ")
    print(f"{platform.machine()}, Python {platform.python_version()}, {packages}.\n")
    speed()
    print("\nTables of keyed noise:\n")
    tables()
    print("\nDoes the time of a draw tell its size?\n")
    timing()
    print()
    batches()


if __name__ == "__main__":
    main()

"""Keyed noise: the same integers everywhere, exactly removable, never the same block twice."""

from __future__ import annotations

import copy
import hashlib
import json
import multiprocessing
import pickle
import subprocess
import sys
import threading
from bisect import bisect_right
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter, NoiseExhausted, Unguarded
from sfumato.privacy import GaussianLaw, KeyedNoise, LaplaceLaw, RoundedGaussianLaw
from sfumato.privacy.noise import Law, keyed, keyed_draws, lookup
from sfumato.privacy.noise.keyed import COUNTERS, derive_key, keystream
from sfumato.privacy.noise.tables import MAX_DISTANCE, Sampler, erf_at, sampler

CONTRACT = Path(__file__).parent.parent.parent / "contracts" / "keyed-noise-v1.json"
KINDS: dict[str, Any] = {
    "laplace": LaplaceLaw,
    "gaussian": GaussianLaw,
    "rounded-gaussian": RoundedGaussianLaw,
}

LAWS: list[Law] = [
    LaplaceLaw(0.25), LaplaceLaw(4), LaplaceLaw(1000.5), LaplaceLaw(2**20), LaplaceLaw(2**40),
    GaussianLaw(0.25), GaussianLaw(4), GaussianLaw(2.5), GaussianLaw(1024), GaussianLaw(2**16),
    GaussianLaw(2**30),
    RoundedGaussianLaw(0.25), RoundedGaussianLaw(4), RoundedGaussianLaw(100.5),
]  # fmt: skip


def answers() -> list[dict[str, Any]]:
    return list(json.loads(CONTRACT.read_text())["answers"])


def table_hash(built: Sampler) -> str:
    """SHA-256 over all thresholds, 16 bytes each, tables in order."""
    return hashlib.sha256(
        b"".join(t.to_bytes(16, "big") for table in built.tables for t in table.thresholds)
    ).hexdigest()


@pytest.mark.golden
def test_known_answers() -> None:
    assert len(answers()) >= 12
    for answer in answers():
        if answer["law"] == "uniform":
            noise = KeyedNoise(
                bytes.fromhex(answer["key"]),
                context=answer["context"],
                epoch=bytes.fromhex(answer["epoch"]),
            )
            assert noise.uniform(int(answer["parameter"]), 16) == [
                int(draw) for draw in answer["draws"]
            ]
            continue
        law = KINDS[answer["law"]](Fraction(answer["parameter"]))
        master, epoch = bytes.fromhex(answer["key"]), bytes.fromhex(answer["epoch"])
        assert derive_key(master, law, context=answer["context"]).hex() == answer["derived_key"]
        assert table_hash(sampler(law)) == answer["tables_sha256"]
        drawn = keyed_draws(
            master, epoch, law, first=answer["first"], size=16, context=answer["context"]
        )
        assert drawn.tolist() == answer["draws"]


def slow_draw(built: Sampler, blocks: list[int]) -> int:
    """The contract in big integers: no numpy, no compiled search."""
    rest = (1 << 127) - 1
    values = [
        bisect_right(t.thresholds, b & rest) for t, b in zip(built.tables, blocks, strict=True)
    ]
    signs = [-1 if b >> 127 else 1 for b in blocks]
    if built.signed:
        return sum(w * s * v for w, s, v in zip(built.weights, signs, values, strict=True))
    magnitude = 1 + sum(w * v for w, v in zip(built.weights[1:], values[1:], strict=True))
    return signs[0] * values[0] * magnitude


@pytest.mark.reference
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_both_searches_equal_big_integers(
    law: Law, key: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    built, epoch, size = sampler(law), bytes(12), 2000
    raw = keystream(derive_key(key, law), epoch, first=0, blocks=size * len(built.tables))
    blocks = [int.from_bytes(raw[i : i + 16], "big") for i in range(0, len(raw), 16)]
    n = len(built.tables)
    slow = [slow_draw(built, blocks[i * n : i * n + n]) for i in range(size)]
    for search in (lookup._compiled(), lookup._by_columns):
        monkeypatch.setattr(lookup, "_search", lambda _, search=search: search)
        assert keyed_draws(key, epoch, law, first=0, size=size).tolist() == slow


@pytest.mark.reference
@pytest.mark.parametrize(
    "law", [LaplaceLaw(1000.5), GaussianLaw(2**16), RoundedGaussianLaw(4)], ids=str
)
def test_ties_with_a_threshold_are_searched_exactly(
    law: Law, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = sampler(law)
    rest, raw, slow = (1 << 127) - 1, b"", []
    for sign in (0, 1):
        for pick in range(50):
            for near in (-1, 0, 1):
                blocks = []
                for table in built.tables:
                    threshold = table.thresholds[pick * (len(table.thresholds) - 1) // 49]
                    blocks.append(sign << 127 | min(max(threshold + near, 0), rest))
                raw += b"".join(b.to_bytes(16, "big") for b in blocks)
                slow.append(slow_draw(built, blocks))
    for search in (lookup._compiled(), lookup._by_columns):
        monkeypatch.setattr(lookup, "_search", lambda _, search=search: search)
        assert lookup.look_up(raw, built).tolist() == slow


TWIN = r"""
#include <stdint.h>
#include <stdio.h>
#include "tables.h"
/* Reads 16-byte blocks, BLOCKS a draw; compares with every threshold: the same work for every value. */
static int64_t count(int table, uint64_t hi, uint64_t lo) {
  int64_t n = 0;
  for (int k = START[table]; k < START[table + 1]; k++)
    n += (T[k][0] < hi) | ((T[k][0] == hi) & (T[k][1] <= lo));
  return n;
}
int main(void) {
  unsigned char b[16];
  for (;;) {
    int64_t total = 0, sign = 0, nonzero = 1;
    for (int j = 0; j < BLOCKS; j++) {
      uint64_t hi = 0, lo = 0;
      if (fread(b, 1, 16, stdin) != 16) return 0;
      for (int i = 0; i < 8; i++) { hi = hi << 8 | b[i]; lo = lo << 8 | b[8 + i]; }
      int64_t s = (hi >> 63) ? -1 : 1;
      int64_t v = count(j, hi & 0x7FFFFFFFFFFFFFFFULL, lo);
      if (SIGNED) total += W[j] * s * v;
      else if (j == 0) { sign = s; nonzero = v; }
      else total += W[j] * v;
    }
    if (!SIGNED) total = nonzero * sign * (total + 1);
    printf("%lld\n", (long long)total);
  }
}
"""


@pytest.mark.reference
@pytest.mark.parametrize(
    "law", [LaplaceLaw(2**20), GaussianLaw(64), GaussianLaw(2**16), RoundedGaussianLaw(64)], ids=str
)
def test_a_device_in_c_draws_the_same_integers(law: Law, key: bytes, tmp_path: Path) -> None:
    built, size = sampler(law), 300
    starts = np.cumsum([0, *(len(t.thresholds) for t in built.tables)]).tolist()
    rows = ",".join(
        f"{{{t >> 64}u,{t & (2**64 - 1)}u}}" for table in built.tables for t in table.thresholds
    )
    lines = [
        f"#define BLOCKS {len(built.tables)}",
        f"#define SIGNED {int(built.signed)}",
        f"static const int START[] = {{{','.join(map(str, starts))}}};",
        f"static const int64_t W[] = {{{','.join(map(str, built.weights))}}};",
        f"static const uint64_t T[][2] = {{{rows}}};",
    ]
    (tmp_path / "tables.h").write_text("\n".join(lines).replace("u,", "ULL,").replace("u}", "ULL}"))
    (tmp_path / "twin.c").write_text(TWIN)
    subprocess.run(["gcc", "-O1", "-o", "twin", "twin.c"], cwd=tmp_path, check=True)
    raw = keystream(derive_key(key, law), bytes(12), first=0, blocks=size * len(built.tables))
    out = subprocess.run([tmp_path / "twin"], input=raw, capture_output=True, check=True).stdout
    assert keyed_draws(key, bytes(12), law, first=0, size=size).tolist() == [
        int(line) for line in out.split()
    ]


@pytest.mark.unit
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_tables_are_within_two_to_the_minus_100(law: Law) -> None:
    assert 0 < sampler(law).distance <= MAX_DISTANCE


@pytest.mark.reference
def test_the_distance_of_a_table_is_the_true_one() -> None:
    """Against 500-bit probabilities of the ideal law, computed by mpmath from the definition."""
    import mpmath

    laws: list[Law] = [GaussianLaw(3), LaplaceLaw(3)]
    for law in laws:
        built = sampler(law)
        with mpmath.workprec(500):
            if isinstance(law, GaussianLaw):
                ideal = [
                    (1 if k == 0 else 2) * mpmath.exp(-mpmath.mpf(k * k) / 18) for k in range(120)
                ]
                tables = [built.tables[0]]
                ideals = [[v / sum(ideal) for v in ideal]]
            else:
                q = mpmath.exp(-mpmath.mpf(1) / 3)
                zero = (1 - q) / (1 + q)
                tables = list(built.tables)
                ideals = [[zero, 1 - zero], [(1 - q) * q**k for k in range(1200)]]
            for table, shares in zip(tables, ideals, strict=True):
                ends = [0, *table.thresholds, 1 << 127]
                drawn = [mpmath.mpf(b - a) / 2**127 for a, b in pairwise(ends)]
                drawn += [mpmath.mpf(0)] * (len(shares) - len(drawn))
                true = sum(abs(a - b) for a, b in zip(drawn, shares, strict=True)) / 2
                stated = mpmath.mpf(table.distance.numerator) / table.distance.denominator
                assert true <= stated
                # What the bound adds for the weights' own error is at most 2**-128.
                assert stated <= true + mpmath.mpf(2) ** -127


@pytest.mark.reference
def test_the_rounded_table_is_erf() -> None:
    import mpmath

    for number in (1 / 64, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 1.0, 3.5, 7.99, 8.0, 8.5, 100.5):
        sigma = Fraction(number)
        thresholds = sampler(RoundedGaussianLaw(sigma)).tables[0].thresholds
        assert list(thresholds) == [erf_at(k, sigma, 127) for k in range(len(thresholds))]
        # A third way, by the integral of the density, where it is neither tiny nor close to 1.
        for k in range(0, len(thresholds), 1 + len(thresholds) // 7):
            with mpmath.workdps(30):
                top = (k + mpmath.mpf(0.5)) / mpmath.mpf(number)
                area = 2 * mpmath.quad(mpmath.npdf, [0, min(top, 12) / 2, min(top, 12)])
            assert thresholds[k] / 2**127 == pytest.approx(float(area), abs=1e-15)
        assert thresholds[-1] == 2**127 - 1


@pytest.mark.reference
def test_a_wide_gaussian_has_its_law_pointwise() -> None:
    """The sum of levels against the discrete Gaussian, pointwise, by exact convolution of the tables."""
    from sfumato.privacy.noise import tables

    sigma = Fraction(30)
    law = GaussianLaw(sigma)
    narrow, tables.WIDEST = tables.WIDEST, 12
    try:
        built = tables._gaussian(law)
    finally:
        tables.WIDEST = narrow
    assert len(built.tables) > 1
    shares: dict[int, Fraction] = {0: Fraction(1)}
    for table, weight in zip(built.tables, built.weights, strict=True):
        ends = [0, *table.thresholds, 1 << 127]
        half = [Fraction(b - a, 1 << 128) for a, b in pairwise(ends)]
        one = {0: 2 * half[0]} | {s * k: p for k, p in enumerate(half) if k for s in (1, -1)}
        nonzero = {k: p for k, p in one.items() if p > Fraction(1, 2**60)}
        added: dict[int, Fraction] = {}
        for z, p in shares.items():
            for k, q in nonzero.items():
                added[z + weight * k] = added.get(z + weight * k, Fraction(0)) + p * q
        shares = added
    support = np.arange(-200, 201)
    got = np.array([float(shares.get(int(k), Fraction(0))) for k in support])
    assert np.abs(got / law.pmf(support) - 1).max() < 1e-9


@pytest.mark.property
@given(first=st.integers(0, 5000), size=st.integers(0, 200))
def test_any_draw_can_be_reached_at_random(first: int, size: int) -> None:
    law, secret, epoch = LaplaceLaw(1000), bytes(range(32)), bytes(range(12))
    whole = keyed_draws(secret, epoch, law, first=0, size=5200)
    assert np.array_equal(
        keyed_draws(secret, epoch, law, first=first, size=size), whole[first : first + size]
    )


@pytest.mark.property
@given(readings=st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=50))
def test_the_holder_of_the_key_takes_the_noise_off_exactly(readings: list[int]) -> None:
    secret, law = bytes(range(32)), GaussianLaw(1024)
    noise = KeyedNoise(secret, context="sensor 7")
    epoch, first = noise.reserve(law, len(readings))
    sent = np.array(readings) + keyed_draws(
        secret, epoch, law, first=first, size=len(readings), context="sensor 7"
    )
    again = keyed_draws(
        secret, noise.epoch, law, first=first, size=len(readings), context="sensor 7"
    )
    assert (sent - again).tolist() == readings


@pytest.mark.unit
def test_no_counter_is_used_twice(key: bytes) -> None:
    noise = KeyedNoise(key, epoch=bytes(12))
    pieces = [noise.laplace(2**20, 10) for _ in range(20)]
    assert np.array_equal(
        np.concatenate(pieces), keyed_draws(key, bytes(12), LaplaceLaw(2**20), first=0, size=200)
    )
    assert len({tuple(noise.uniform(2**60, 4)) for _ in range(20)}) == 20


@pytest.mark.fault
def test_threads_do_not_share_a_counter(key: bytes) -> None:
    noise, law = KeyedNoise(key), LaplaceLaw(2**20)
    seen: list[tuple[bytes, int]] = []
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [
            threading.Thread(target=lambda: seen.extend(noise.reserve(law, 1) for _ in range(4000)))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(switch)
    assert len(set(seen)) == len(seen) == 32_000


@pytest.mark.unit
def test_another_parameter_is_another_stream(key: bytes) -> None:
    """With one block under two widths, y_1 / s_1 and y_2 / s_2 would be the same number."""
    a = keyed_draws(key, bytes(12), GaussianLaw(1000), first=0, size=2000)
    b = keyed_draws(key, bytes(12), GaussianLaw(1500), first=0, size=2000)
    # A correlation of 2,000 independent pairs passes 0.11 with probability 1e-6; one stream gives
    # above 0.99.
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.11
    keys = {derive_key(key, law, context=c) for law in LAWS for c in ("", "a")} | {
        derive_key(key, None)
    }
    assert len(keys) == 2 * len(LAWS) + 1


@pytest.mark.unit
def test_a_restart_is_a_new_stream(key: bytes) -> None:
    epochs = {KeyedNoise(key, boot=3).epoch for _ in range(50)}
    assert len(epochs) == 50
    assert all(epoch[:4] == (3).to_bytes(4, "big") for epoch in epochs)


def _forked(noise: KeyedNoise, pipe: Any) -> None:
    pipe.send((noise.laplace(2**20, 8).tolist(), noise.epoch))


@pytest.mark.fault
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_is_a_new_stream(key: bytes) -> None:
    noise = KeyedNoise(key)
    noise.laplace(2**20, 8)
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_forked, args=(noise, there))
    child.start()
    drawn, epoch = here.recv()
    child.join()
    assert epoch != noise.epoch
    assert drawn != noise.laplace(2**20, 8).tolist()


@pytest.mark.unit
def test_a_known_stream_does_not_survive_a_fork(key: bytes) -> None:
    noise = KeyedNoise(key, epoch=bytes(12))
    noise._forks -= 1
    with pytest.raises(NoiseExhausted, match="forked process"):
        noise.laplace(4, 1)


@pytest.mark.unit
def test_spent_counters_begin_a_new_epoch_or_refuse(key: bytes) -> None:
    law = GaussianLaw(4)
    noise = KeyedNoise(key)
    before = noise.epoch
    noise._used[law] = COUNTERS - 3
    noise.gaussian(4, 3)
    assert noise.epoch == before
    noise.gaussian(4, 1)
    assert noise.epoch != before
    known = KeyedNoise(key, epoch=bytes(12))
    known._used[law] = COUNTERS - 3
    with pytest.raises(NoiseExhausted, match="all counters"):
        known.gaussian(4, 4)
    with pytest.raises(NoiseExhausted, match="leave"):
        keyed_draws(key, bytes(12), law, first=COUNTERS, size=1)


@pytest.mark.unit
def test_a_stream_is_not_copied(key: bytes) -> None:
    noise = KeyedNoise(key)
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(Unguarded, match="would repeat"):
            attempt(noise)
    assert key.hex() not in repr(noise)


@pytest.mark.unit
def test_bad_keys_and_epochs_are_refused(key: bytes) -> None:
    with pytest.raises(InvalidParameter, match="32 bytes, got 5"):
        KeyedNoise(b"short")
    with pytest.raises(InvalidParameter, match="12 bytes, got 3"):
        KeyedNoise(key, epoch=b"abc").laplace(4, 1)
    with pytest.raises(InvalidParameter, match="at least 0, got -1"):
        KeyedNoise(key).laplace(4, -1)
    with pytest.raises(InvalidParameter, match="boot"):
        KeyedNoise(key, boot=-1)
    with pytest.raises(InvalidParameter, match="below"):
        KeyedNoise(key).uniform(0, 1)


@pytest.mark.unit
def test_few_draws_load_no_compiler_and_use_one_that_is_there() -> None:
    lookup._compiled.cache_clear()
    assert lookup._search(lookup.MANY - 1) is lookup._by_columns
    compiled = lookup._search(lookup.MANY)
    assert compiled is not lookup._by_columns
    assert lookup._search(1) is compiled


@pytest.mark.unit
def test_the_keyed_module_holds_no_float_and_no_branch_on_values() -> None:
    """The kernel's only loops are over draws, blocks and the fixed depth of a table."""
    import ast
    import inspect

    for search in (lookup._compiled, lookup._by_columns):
        tree = ast.parse(inspect.getsource(search))
        branches = [node for node in ast.walk(tree) if isinstance(node, ast.If | ast.IfExp)]
        names = {
            name.id
            for node in branches
            for name in ast.walk(node.test)
            if isinstance(name, ast.Name)
        }
        assert names <= {"signed", "j"}
        loops = [node for node in ast.walk(tree) if isinstance(node, ast.While)]
        assert [ast.unparse(node.test) for node in loops] == ["step > 0"]
    assert "float" not in inspect.getsource(keyed)

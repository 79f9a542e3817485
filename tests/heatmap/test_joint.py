"""Joint maps: parties in rounds, each with its own ledger; and inference by the law of their noise."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial
from pathlib import Path
from threading import Barrier, Lock
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats
from tests.chance import assert_law

from sfumato.errors import InvalidParameter, LedgerMismatch
from sfumato.heatmap import HeatmapRelease, read_heatmap, release_sums
from sfumato.heatmap.accuracy.noise_mark import EmptyMaps, SimulatedNoise
from sfumato.heatmap.inference.count_noise import LAPLACE, SharedCountNoise, count_noise
from sfumato.heatmap.inference.counts import NoisyCounts
from sfumato.heatmap.inference.known_sums import CountedSums
from sfumato.heatmap.inference.posterior import CountsPosterior
from sfumato.heatmap.methods import (
    JointMechanism,
    JointMethod,
    NoisyTree,
    PyramidMethod,
    ZoomMethod,
    ZoomTree,
    method_named,
)
from sfumato.privacy import REHEARSAL, UNITS, Joint, Ledger, PureDP, Release
from sfumato.privacy.noise import PolyaLaw, SharedNoise, SimulatedShares, VarianceGamma, draw_shares
from sfumato.records import CellSums, bound_of_sums, guard_sums
from sfumato.spaces import area_of_plane

AREA = area_of_plane((0.0, 0.0, 1.0, 1.0), 3)
TRUST = Joint(3)
HALF = Fraction(3, 2)


class Parties:
    """Three parties that add up in lockstep: what a session does, without its secrecy."""

    def __init__(self, trust: Joint) -> None:
        self.trust, self.rounds = trust, 0
        self.barrier, self.lock = Barrier(trust.parties), Lock()
        self.sum: Any = 0

    def opened(self, own: Any) -> Any:
        with self.lock:
            self.sum = self.sum + own
        self.barrier.wait()
        total = self.sum
        if self.barrier.wait() == 0:
            self.sum, self.rounds = 0, self.rounds + 1
        self.barrier.wait()
        return total


class Session(SharedNoise):
    """One party's end of it."""

    distance: Fraction | None = None
    known = False

    def __init__(self, parties: Parties) -> None:
        self._parties = parties

    @property
    def trust(self) -> Joint:
        return self._parties.trust

    def noisy_sum(self, values: Any, scales: Sequence[Fraction], which: Any, trust: Any) -> Any:
        return self._parties.opened(values + draw_shares(trust, scales, which))


def own_rows(party: int) -> CellSums:
    """A crowd of 200 at a place of each party, one row each."""
    code = (37 * party) % AREA.grid.size
    return CellSums(AREA.grid, np.array([code]), np.array([200 * UNITS]), 1, AREA)


def one_party(folder: Path, parties: Parties, mechanism: Any, party: int) -> Release[Any]:
    name = f"party{party}"
    ledger = Ledger.create(
        folder / f"{name}.ledger", 2, unit="user", source=name, model=parties.trust
    )
    own, pay = guard_sums(own_rows(party), source=name), PureDP(1)
    try:
        receipt = ledger.release(mechanism, own, noise=Session(parties), pay=pay)
    except BaseException:
        parties.barrier.abort()  # the others would wait for ever
        raise
    assert ledger.statement().left == PureDP(1)
    ledger.check(receipt)
    return receipt


@pytest.mark.unit
@pytest.mark.parametrize("method", [ZoomMethod(blur=0.1), PyramidMethod()])
def test_parties_release_one_map(method: Any, tmp_path: Path) -> None:
    parties, joint = Parties(TRUST), JointMethod(method, TRUST)
    mechanism = joint.mechanism(Fraction(1), bound_of_sums(AREA.grid), AREA.grid)
    with ThreadPoolExecutor(3) as pool:
        made = list(pool.map(partial(one_party, tmp_path, parties, mechanism), range(3)))
    told = [one.value.to_json() for one in made]
    assert told[0] == told[1] == told[2]
    # One secure sum a round, and everybody's people are in it.
    assert parties.rounds == len(told[0]["levels"])
    assert "joint model: 3 parties" in str(made[0].guarantee)
    assert joint.name == method.name
    (found,) = joint.maps(made[0].value, mechanism, AREA)
    assert abs(found.tiles.total - 600) < 300
    posterior = found.posterior
    assert posterior is not None
    assert posterior.counts is not None
    assert posterior.counts.law == SharedCountNoise(HALF)


@pytest.fixture(scope="module")
def joint_map() -> HeatmapRelease:
    everyone = CellSums(AREA.grid, np.array([5, 40]), np.array([300, 300]) * UNITS, 1, AREA)
    (made,) = release_sums(
        guard_sums(everyone, source=REHEARSAL),
        AREA,
        ledger=Ledger.rehearsal(PureDP(1), model=TRUST),
        epsilon=1,
        method=JointMethod(ZoomMethod(blur=0.1), TRUST),
        noise=SimulatedShares(TRUST),
    )
    return made


@pytest.mark.unit
def test_a_saved_joint_map_knows_its_law(joint_map: HeatmapRelease, tmp_path: Path) -> None:
    joint_map.write(tmp_path / "map.json")
    again = read_heatmap(tmp_path / "map.json")
    assert again.receipt.guarantee == joint_map.receipt.guarantee
    assert again.posterior is not None
    assert again.posterior.counts is not None
    assert again.posterior.counts.law == SharedCountNoise(HALF)
    assert again.statement == joint_map.statement
    nothing = EmptyMaps.of(again)
    assert nothing.mechanism == JointMechanism(
        ZoomMethod(blur=0.1).mechanism(Fraction(1), bound_of_sums(AREA.grid), AREA.grid), TRUST
    )
    # The entry says what was drawn: the mechanism inside, and for whom.
    told = joint_map.receipt.entry.parameters
    assert told["mechanism"]["name"] == "zoom/1"
    assert told["trust"] == {"kind": "joint", "parties": 3, "curious": 1}


@pytest.mark.unit
def test_a_joint_map_is_wider_than_a_central_one(joint_map: HeatmapRelease) -> None:
    known = joint_map.posterior
    assert known is not None
    assert known.counts is not None
    assert known.noise_scale == pytest.approx(
        math.sqrt(1.5) * float(np.median(known.counts.scales[known.counts.last]))
    )
    assert joint_map.noise.density > 0
    assert joint_map.band().high.sum() > joint_map.band().low.sum()
    assert joint_map.error().emd is not None
    assert joint_map.total().low is not None


@pytest.mark.unit
def test_only_methods_in_rounds_are_joint() -> None:
    flat = JointMethod(method_named("laplace"), TRUST)
    with pytest.raises(InvalidParameter, match="zoom and pyramid, got laplace"):
        flat.mechanism(Fraction(1), bound_of_sums(AREA.grid), AREA.grid)


@pytest.mark.unit
def test_a_central_ledger_pays_for_no_joint_map(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "city.ledger", 1, unit="user", source="city")
    with pytest.raises(LedgerMismatch, match="nothing was charged"):
        release_sums(
            guard_sums(own_rows(0), source="city"),
            AREA,
            ledger=ledger,
            epsilon=1,
            method=JointMethod(ZoomMethod(), TRUST),
            noise=Session(Parties(TRUST)),
        )
    assert ledger.statement().count == 0


@pytest.mark.unit
def test_trees_keep_the_shape_of_their_noise() -> None:
    zoom = ZoomTree(1, Fraction(64), (), shape=HALF)
    tree = NoisyTree(1, (), HALF)
    for made, kind in ((zoom, ZoomTree), (tree, NoisyTree)):
        told = json.loads(json.dumps(made.to_json()))
        assert kind.from_json(told).shape == HALF
        # What central releases keep is written as before.
        assert "shape" not in kind.from_json(told | {"shape": "1"}).to_json()


# the law at scale 1


@pytest.mark.unit
def test_two_laplace_draws_by_hand() -> None:
    """Shape 2 has the density (1 + x) exp(-x) / 4 and the tail (2 + x) exp(-x) / 4."""
    law, x = VarianceGamma(2.0), np.array([0.0, 0.3, 2.0, 30.0, 2000.0])
    assert np.allclose(law.log_density(x), np.log((1 + x) / 4) - x, atol=1e-12)
    assert np.allclose(law.log_upper(x[1:]), (np.log((2 + x) / 4) - x)[1:], atol=1e-4)
    assert np.allclose(law.log_upper(x[1:4]), (np.log((2 + x) / 4) - x)[1:4], atol=1e-10)
    assert float(law.upper(law.quantile(0.05))) == pytest.approx(0.05)
    assert VarianceGamma(1.0).quantile(0.05) == pytest.approx(math.log(10))
    noise = count_noise(Fraction(2))
    # At each point of the table, as the kernel adds it to -x and to -x - ln 2.
    at = np.expm1(np.array([0, 64, 128]) / 64)
    assert np.allclose(noise.corrections[0, [0, 64, 128]], np.log1p(at), atol=1e-9)
    assert np.allclose(noise.corrections[1, [64, 128]], np.log(1 + at[1:] / 2), atol=1e-9)
    assert count_noise(Fraction(1)) == LAPLACE
    assert LAPLACE.corrections.size == 0


@pytest.mark.reference
@pytest.mark.parametrize("shape", [HALF, Fraction(2), Fraction(10, 9)])
def test_bounds_by_the_law_are_above_their_integrals(shape: Fraction) -> None:
    noise, law = count_noise(shape), VarianceGamma(float(shape))
    k = np.array([0.1, 0.5, 0.9])
    s = np.linspace(0, 200, 100_001)
    upper = law.upper(s)
    hidden = np.array([(np.expm1(one * s) * upper).max() for one in k])
    kept = np.array([one * integrate.simpson(np.exp(one * s) * upper, x=s) for one in k])
    moment = np.array([2 * kept[i] + 1 for i in range(3)])
    for bound, true in ((noise.hidden_excess(k), hidden), (noise.kept_excess(k), kept)):
        assert (bound >= true * (1 - 1e-9)).all()
        assert (bound <= true * 1.02).all()
    assert (noise.log_moment(1, k) >= np.log(moment) - 1e-6).all()
    assert (noise.log_moment(1, k) <= LAPLACE.log_moment(2, k)).all()


@pytest.mark.statistical
@pytest.mark.parametrize("draws", ["law", "simulated"])
def test_simulations_draw_the_law(draws: str, rng: np.random.Generator) -> None:
    size, zero = 40_000, np.zeros(40_000, dtype=np.int64)
    if draws == "law":
        sample = np.rint(UNITS * count_noise(HALF).draw(rng, (size,))).astype(np.int64)
    else:
        sample = SimulatedNoise(3).noisy_sum(zero, [Fraction(UNITS)], zero, TRUST)
    assert_law(
        sample,
        PolyaLaw(UNITS, HALF).cdf,
        rivals=[
            PolyaLaw(UNITS, 1).cdf,
            lambda z: stats.laplace.cdf(z, scale=math.sqrt(1.5) * UNITS),
        ],
    )


# what inference makes of it


def one_count(law: Any, value: float = 1000.0, *, ceiling: bool = False) -> NoisyCounts:
    """The whole map, counted once with noise of scale 10; or also known to be below a value."""
    many = 2 if ceiling else 1
    return NoisyCounts(
        np.zeros(many, dtype=np.int64),
        np.zeros(many, dtype=np.int64),
        np.array([1000.0, value][:many]),
        np.full(many, 10.0),
        np.arange(many) == 1,
        law=law,
    )


@pytest.mark.reference
@pytest.mark.parametrize("shape", [HALF, Fraction(2)])
def test_the_posterior_of_one_count_is_its_law(shape: Fraction) -> None:
    law = VarianceGamma(float(shape))
    totals = CountsPosterior(one_count(count_noise(shape))).totals(999)
    for tail in (0.01, 0.2):  # at 0.05 the two laws cross
        found = (np.quantile(totals, 1 - tail) - 1000) / 10
        assert found == pytest.approx(law.quantile(tail), rel=0.02)
        # A posterior of Laplace noise of the same variance would not pass.
        rival = VarianceGamma(1.0).quantile(tail) * math.sqrt(shape)
        assert abs(rival / law.quantile(tail) - 1) > 0.02


@pytest.mark.reference
@pytest.mark.parametrize("value", [960.0, 1030.0])
def test_a_ceiling_is_believed_by_the_law(value: float) -> None:
    """The posterior of a count and a ceiling: density times distribution function, by quadrature."""
    totals = CountsPosterior(one_count(count_noise(HALF), value, ceiling=True)).totals(999)
    law, x = VarianceGamma(1.5), np.linspace(700, 1300, 60_001)
    weight = np.exp(law.log_density((1000 - x) / 10)) * law.upper(-(value - x) / 10)
    reached = np.cumsum(weight) / weight.sum()
    for share in (0.05, 0.5, 0.95):
        true = x[np.searchsorted(reached, share)]
        assert abs(float(np.quantile(totals, share)) - true) < 0.35


@pytest.mark.unit
def test_intervals_of_sums_are_of_the_law() -> None:
    law = count_noise(HALF)
    cells = np.zeros((1, 1), dtype=np.int64)
    sums = CountedSums(0, cells, np.array([1000.0]), np.array([10.0]), law)
    low, high = sums.limits(np.ones(1), np.ones(1), tail=0.01)
    far = VarianceGamma(1.5).quantile(0.01)
    assert [low, high] == pytest.approx([1000 - 10 * far, 1000 + 10 * far])
    # Laplace noise of this scale would be too narrow: 2 % of this noise is beyond its ends.
    narrow = CountedSums(0, cells, np.array([1000.0]), np.array([10.0]))
    assert narrow.limits(np.ones(1), np.ones(1), tail=0.01)[1] < high - 5


@pytest.mark.unit
def test_counts_say_their_shape_only_if_it_is_another() -> None:
    plain, shared = one_count(LAPLACE), one_count(count_noise(HALF))
    assert "shape" not in plain.to_json()
    assert shared.to_json()["shape"] == "3/2"
    assert NoisyCounts.from_json(shared.to_json()).law == shared.law
    assert NoisyCounts.from_json(plain.to_json()).law == LAPLACE
    assert shared.only(np.array([True])).law == shared.law
    with pytest.raises(ValueError, match="shape of its noise"):
        NoisyCounts.from_json(shared.to_json() | {"shape": "1/2"})

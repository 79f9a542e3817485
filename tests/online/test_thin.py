"""Two views of a release are as independent as stated, of the stated noise, and Gaussian releases only."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.chance import assert_law, assert_share

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.online.thinning import _fresh, _summed, dependence, thin
from sfumato.privacy import (
    REHEARSAL,
    ZCDP,
    AddRemoveUser,
    Bound,
    DiscreteGaussian,
    DiscreteLaplace,
    GaussianLaw,
    KeyedNoise,
    Ledger,
    Mechanism,
    PureDP,
    Release,
    RoundedGaussian,
    RoundedGaussianLaw,
    guard,
    read_release,
)

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
SIZE = 20_000
MASS = 100  # of every entry


def released(
    mechanism: Mechanism[IntArray, IntArray], size: int = 3, *, exponent: int = 0, mass: int = MASS
) -> Release[IntArray]:
    budget = PureDP(1000) if isinstance(mechanism, DiscreteLaplace) else ZCDP(1000)
    data = guard(
        np.full(size, mass), Bound(AddRemoveUser(), size, l1=1), source=REHEARSAL, exponent=exponent
    )
    return Ledger.rehearsal(budget, neighbors=AddRemoveUser()).release(mechanism, data)


def joint(law: GaussianLaw | RoundedGaussianLaw, *, bits: int, place: int) -> FloatArray:
    """The law of both views, in steps of 2**bits, of an entry at this place: all pairs of noise, summed."""
    reach = math.ceil(9 * law.deviation) + 4
    z = np.arange(-reach, reach + 1)
    mass = np.outer(law.pmf(z), _fresh(law).pmf(z))
    first, second = ((place + z[:, None] + sign * z[None, :]) >> bits for sign in (1, -1))
    low = min(first.min(), second.min())
    table = np.zeros((first.max() - low + 1, first.max() - low + 1))
    np.add.at(table, (first - low, np.minimum(second - low, table.shape[0] - 1)), mass)
    return table


def apart(table: FloatArray) -> float:
    """Total variation between a joint law and the product of its sides."""
    return float(np.abs(table - np.outer(table.sum(axis=1), table.sum(axis=0))).sum()) / 2


@pytest.mark.reference
@pytest.mark.parametrize("sigma", [0.4, 1, 2.5, 9])
def test_the_dependence_is_that_of_all_pairs(sigma: float) -> None:
    """Nine deviations leave out less than 1e-17 of the noise."""
    law = GaussianLaw(sigma)
    found = [apart(joint(law, bits=1, place=place)) for place in (0, 1)]
    assert max(found) == pytest.approx(dependence(law), rel=1e-9)
    # The lowest bit is shared: without dropping it the views are far from independent.
    assert apart(joint(law, bits=0, place=0)) == pytest.approx(dependence(law, bits=0), rel=1e-9)
    assert dependence(law, bits=0) > 4 * dependence(law) or sigma < 1
    for bits in (2, 3):
        worse = max(apart(joint(law, bits=bits, place=place)) for place in range(2**bits))
        assert worse <= dependence(law, bits=bits) * (1 + 1e-9)


@pytest.mark.reference
@pytest.mark.parametrize("sigma", [0.3, 1, 3])
def test_rounded_noise_has_at_most_the_dependence_stated(sigma: float) -> None:
    law = RoundedGaussianLaw(sigma)
    found = max(apart(joint(law, bits=1, place=place)) for place in (0, 1))
    assert found <= dependence(law)
    # And it is no idle statement: half of it would be wrong.
    assert found > dependence(law) / 2 or sigma < 1


@pytest.mark.unit
def test_the_sum_becomes_its_closed_form() -> None:
    for sigma in (4.0, 8.0, 30.0):
        assert _summed(sigma, 1) == pytest.approx(1 / (8 * math.pi * sigma**2), rel=1e-12)
        assert _summed(sigma, 0) == pytest.approx(0.5, rel=1e-12)
    assert dependence(GaussianLaw(2**30)) < 1e-19
    assert dependence(GaussianLaw("1/64")) == 0  # noise that is always 0 has nothing to share


@pytest.mark.statistical
def test_views_have_independent_noise_of_the_stated_size() -> None:
    """Steps of two: a view is below x - 1 or above x equally often, for noise of sqrt(2) sigma."""
    release = released(DiscreteGaussian(20), SIZE)
    views = thin(release)
    steps = np.floor(views.first / 2).astype(np.int64)
    law, thinner, wider = (GaussianLaw(20 * math.sqrt(times)) for times in (2, 1, 3))
    assert_law(
        steps,
        lambda k: law.cdf(2 * k + 1 - MASS),
        rivals=[lambda k: thinner.cdf(2 * k + 1 - MASS), lambda k: wider.cdf(2 * k + 1 - MASS)],
    )
    above = np.array([views.first > MASS, views.second > MASS])
    both = float(law.cdf(-1) + law.pmf(0)) ** 2  # steps of two that begin at x, or above
    # Views of y itself would be above x together more often, those of opposite noise never.
    assert_share(int(above.all(axis=0).sum()), SIZE, both, rivals=[both - 0.035, both + 0.035])
    assert views.sigma == pytest.approx(math.sqrt(2 * 400 + 1 / 4), rel=1e-12)
    assert views.dependence == dependence(GaussianLaw(20))


@pytest.mark.unit
@pytest.mark.parametrize("exponent", [-10, 0, 3])
@pytest.mark.parametrize("bits", [0, 1, 4])
def test_views_are_in_the_unit_of_the_release(exponent: int, bits: int) -> None:
    release = released(RoundedGaussian(50), 40, exponent=exponent)
    views = thin(release, bits=bits)
    unit = 2.0**exponent
    # y + w and y - w, each moved by at most half of 2**bits - 1 steps.
    mean = (views.first + views.second) / 2
    assert np.abs(mean - release.numbers()).max() <= (2**bits - 1) / 2 * unit
    assert np.abs(views.first - views.second).max() > 0
    assert views.sigma == pytest.approx(
        unit * math.sqrt(2 * (2500 + 1 / 12) + (4**bits - 1) / 12), rel=1e-12
    )
    low_bits = views.first / unit - (2**bits - 1) / 2
    assert (low_bits % 2**bits == 0).all()


@pytest.mark.unit
def test_views_are_fresh_each_time() -> None:
    release = released(DiscreteGaussian(1000), 10)
    assert (thin(release).first != thin(release).first).any()


@pytest.mark.statistical
def test_views_of_two_calls_share_the_noise_of_the_release() -> None:
    """Correlations of 1/2, 0 and sqrt(1/2) within six deviations, each at most 1 / sqrt(20,000)."""
    release = released(DiscreteGaussian(20), SIZE)
    once, again = thin(release), thin(release)
    limit = 6 / math.sqrt(SIZE)
    assert abs(np.corrcoef(once.first, once.second)[0, 1]) < limit
    assert abs(np.corrcoef(once.first, again.second)[0, 1] - 0.5) < limit
    # And so does the release itself, with every view.
    assert abs(np.corrcoef(release.value, once.second)[0, 1] - math.sqrt(0.5)) < limit


@pytest.mark.unit
@pytest.mark.parametrize(
    "change",
    [lambda values: values, lambda values: values * 0 + 7, np.sort, lambda values: values // 4],
)
def test_a_processed_release_is_refused(change: Any, tmp_path: Path) -> None:
    release = released(DiscreteGaussian(5)).then(change)
    with pytest.raises(InvalidParameter, match="as it came, this one was processed"):
        thin(release)
    release.write(tmp_path / "release.json")
    with pytest.raises(InvalidParameter, match="as it came, this one was processed"):
        thin(read_release(tmp_path / "release.json"))


@pytest.mark.unit
def test_known_noise_is_for_rehearsals() -> None:
    """With the very stream of the release w is its noise z, and the second view is exact."""
    data = guard(np.full(9, MASS), Bound(AddRemoveUser(), 9, l1=1), source=REHEARSAL)
    ledger = Ledger.rehearsal(ZCDP(1000), neighbors=AddRemoveUser())
    key, epoch = bytes(32), bytes(12)
    release = ledger.release(DiscreteGaussian(50), data, noise=KeyedNoise(key, epoch=epoch))
    views = thin(release, bits=0, noise=KeyedNoise(key, epoch=epoch))
    assert (views.second == MASS).all()
    assert views.rehearsal
    real = replace(release, rehearsal=False)
    with pytest.raises(InvalidParameter, match="known noise is for rehearsals"):
        thin(real, noise=KeyedNoise(key, epoch=epoch))
    assert not thin(real).rehearsal


@pytest.mark.unit
def test_laplace_noise_cannot_be_thinned() -> None:
    with pytest.raises(
        InvalidParameter, match=r"only Gaussian noise .* discrete-laplace/1; nothing was thinned"
    ):
        thin(released(DiscreteLaplace(5)))


@pytest.mark.unit
def test_what_is_no_plain_gaussian_release_is_refused() -> None:
    release = released(DiscreteGaussian(5))
    with pytest.raises(InvalidParameter, match="array of integers"):
        thin(replace(release, value=1.5))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="how wide"):
        thin(replace(release, entry=replace(release.entry, parameters={})))
    wrong: Any
    for wrong in (np.array([1, 2, 3]), None, thin(release)):
        with pytest.raises(
            InvalidParameter, match=f"only a release .* got {type(wrong).__name__}; nothing was"
        ):
            thin(wrong)
    for wrong in (-1, 21, 1.0, True):
        with pytest.raises(InvalidParameter, match="bits must be 0 to 20"):
            thin(release, bits=wrong)

"""Sums over features are those of the features written out, and tied ones are one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator

from sfumato._types import FloatArray
from sfumato.audit.boxes.samples import encoder_of
from sfumato.audit.fixed.features import Features, learn_alike, learn_features
from sfumato.audit.fixed.fitting import fit_scorers
from sfumato.audit.fixed.scorers import Logistic

SHARES = (0.1, 0.5, 0.9)


def mixed(rng: Generator, runs: int = 500) -> FloatArray:
    """Three columns of noise, the second often exactly 7, and the one that marks odd outputs."""
    rows = rng.normal(size=(runs, 3))
    rows[rng.random(runs) < 0.3, 1] = 7.0
    return encoder_of(rows)(rows)


@pytest.mark.property
@pytest.mark.parametrize("alike", [False, True])
def test_coded_rows_score_and_sum_as_if_written_out(rng: Generator, alike: bool) -> None:
    rows = mixed(rng)
    features: Features = (
        learn_alike(rows, SHARES)[0] if alike else learn_features(rows, shares=SHARES)
    )
    written, coded = features(rows), features.code(rows)
    assert written.shape == (500, features.used.size)
    weights, residuals = rng.normal(size=features.used.size), rng.normal(size=500)
    # Sizes and atoms are single floats: 24 bits of numbers up to about 5, some 20 or 500 of them in
    # a sum.
    assert coded.score(weights) == pytest.approx(written @ weights, abs=1e-4)
    assert coded.sums(residuals) == pytest.approx(residuals @ written, abs=1e-3)


@pytest.mark.unit
def test_no_feature_is_constant_or_there_twice(rng: Generator) -> None:
    rows = mixed(rng)
    rows[:, 2] = rows[:, 0]
    written = learn_features(rows, shares=SHARES)(rows)
    assert np.ptp(written, axis=0).min() > 0
    assert np.unique(written, axis=1).shape == written.shape


@pytest.mark.unit
def test_what_is_alike_has_the_same_steps_and_one_weight(rng: Generator) -> None:
    rows1, rows2 = (encoder_of(one)(one) for one in rng.laplace(size=(2, 400, 4)).round(3))
    features, tied = learn_alike(rows1, SHARES)
    # Four columns and three differences, a size and three steps each; the mark of odd outputs is
    # constant.
    assert tied.size == 7 * 4
    assert sorted(np.bincount(tied).tolist()) == [3] * 4 + [4] * 4
    assert features.cuts[0].tolist() == features.cuts[3].tolist() != features.cuts[5].tolist()
    found = next(one for one in fit_scorers(rows1, rows2) if one.name == "alike in all columns")
    assert isinstance(found, Logistic)
    # Whatever is the same function of every column does not mind their order, but for the
    # differences.
    turned = rows1[:, [3, 2, 1, 0, 4]]
    assert np.unique(found.weights[1:]).size <= 2 * (1 + 17)
    assert found.score(turned).shape == (400,)


@pytest.mark.unit
def test_words_have_no_size(rng: Generator) -> None:
    numbers = rng.normal(size=300).tolist()
    encoder = encoder_of(numbers)
    alone = learn_features(encoder(numbers), shares=SHARES)
    # So many different words that none of them is a value that repeats, and no quantile is free of
    # them.
    among = learn_features(
        encoder([*numbers, *(f"word {number}" for number in range(300))]), shares=SHARES
    )
    assert (among.low[0], among.high[0]) == (alone.low[0], alone.high[0])
    assert among.spread[0] == alone.spread[0]
    assert among.cuts[0].tolist() == alone.cuts[0].tolist()

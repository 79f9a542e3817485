"""What a plan says of local maps: against simulated ones of few users, and where nothing was simulated."""

from __future__ import annotations

import numpy as np
import pytest
from tests.heatmap.local.forecast_table import alike, made_up_city

from sfumato.heatmap.local import plan_local, plan_text, simulate_local_map

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("users", "epsilon"), [(60, "5"), (100, "10")])
def test_few_users_who_say_nearly_all_are_no_good_map(users: int, epsilon: str) -> None:
    """The middle of three made-up cities lies in what is said of nine in ten."""
    said = plan_local(users, epsilon)
    assert said.similarity is not None
    found = []
    for city in range(3):
        codes = made_up_city(city, users)
        found.append(
            alike(simulate_local_map(codes, epsilon, rng=np.random.default_rng(city)), codes)
        )
    assert said.similarity.low <= np.median(found) <= said.similarity.high


def test_more_epsilon_tells_no_more_than_users_know() -> None:
    for users in (30, 100, 300):
        high = plan_local(users, 16).similarity
        assert high is not None
        assert high.middle < 0.85
    assert plan_local(100, 16).hopeless_below > 30


@pytest.mark.parametrize(("users", "epsilon"), [(1, 16), (29, 5), (100, "0.1"), (10**9, 5)])
def test_what_was_not_simulated_is_not_forecast(users: int, epsilon: object) -> None:
    said = plan_local(users, str(epsilon))
    assert said.emd is None
    assert said.similarity is None
    assert said.to_json()["similarity"] is None
    assert "not known" in plan_text(said)


def test_the_least_users_for_a_similarity_reach_it_and_one_less_does_not() -> None:
    for epsilon in ("0.5", "2", "12"):
        needed = plan_local(1000, epsilon, target=0.8).required_users
        assert needed is not None
        at, before = (plan_local(users, epsilon).similarity for users in (needed, needed - 1))
        assert at is not None
        assert before is not None
        assert before.middle < 0.8 <= at.middle + 1e-12
    assert plan_local(1000, 1, target=0.99).required_users is None

"""What a plan says of local maps, against simulated ones it was not fitted to; what was not simulated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from experiments.heatmaps import local_forecast
from experiments.heatmaps.local_forecast import Score, clustered, fit, inside, scored

from sfumato.heatmap.local import FORECAST_TABLE, plan_local, plan_text, told_by

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("users", "epsilon"), [(60, 5.0), (300, 1.0), (300, 3.0), (1000, 0.5)])
def test_a_forecast_holds_other_cities_and_not_those_of_far_more_users(
    users: int, epsilon: float
) -> None:
    """Maps of four cities it was not fitted to; the forecast for 300 times the users holds few of them."""
    found = []
    for city in range(9, 13):
        codes = clustered(city, users)
        rng = np.random.default_rng([city, users])
        found.append(Score(users, epsilon, str(city), *scored(codes, epsilon, rng=rng)))
    *_, every = inside(found)
    assert min(map(float, every[2:])) >= 0.75
    *_, others = inside([one._replace(users=300 * users) for one in found])
    assert max(map(float, others[2:])) <= 0.5


def test_a_fit_is_as_wide_as_its_worst_cell_and_never_falls() -> None:
    """Made-up scores that get better with information; one cell has a city that is much worse."""
    scores = [
        Score(users, 1.0, str(city), 30 / users * (1 + city / 10), 1 - 20 / users * (1 + city / 10))
        for users in (100, 300, 1000, 3000, 10_000)
        for city in range(5)
    ]
    odd = Score(1000, 1.0, "odd", 0.2, 0.5)
    lines = fit([*scores, odd])
    told = np.array([line.information for line in lines])
    at = float(np.interp(np.log(told_by(1000, 1.0)), np.log(told), range(told.size)))
    near = lines[int(at)], lines[int(at) + 1]
    assert max(line.emd[2] for line in near) >= 0.2
    assert min(line.similarity[0] for line in near) <= 0.5
    assert min(line.similarity[0] for line in fit(scores) if line.information > 271) > 0.9
    middles = np.array([(line.emd[1], line.similarity[1]) for line in lines])
    assert (np.diff(middles[:, 0]) <= 0).all()
    assert (np.diff(middles[:, 1]) >= 0).all()


def test_files_of_scores_are_held_against_the_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the comparison with rivals writes them: ours count, others do not; four bad ones fail."""
    said = plan_local(1000, 1)
    assert said.emd is not None
    assert said.similarity is not None
    head = "users,epsilon,place,method,way,emd,similarity\n"
    good = f"1000,1.0,town 4,local,,{said.emd.middle},{said.similarity.middle}\n"
    (tmp_path / "good.csv").write_text(head + good + "1000,1.0,town 4,grid,2 0,0.9,0.1\n")
    assert local_forecast.main(["--check", "--known", str(tmp_path / "good.csv")]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["all", "1", "1.000", "1.000"]
    (tmp_path / "bad.csv").write_text(head + good + 4 * "1000,1.0,town 5,local,,0.9,0.1\n")
    assert local_forecast.main(["--check", "--known", str(tmp_path / "bad.csv")]) == 1


def test_a_table_is_made_from_maps_of_a_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(local_forecast, "CELLS", {100: (1.0, 5.0)})
    monkeypatch.setattr(local_forecast, "PEOPLE", 200)
    assert local_forecast.main(["--quick", "--scores", str(tmp_path / "scores.csv")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == local_forecast.KNOTS
    found = local_forecast.read_scores(tmp_path / "scores.csv")
    assert len(found) == 6
    assert {one.city for one in found} == {"town 0", "street 0", "gaze 0"}


def test_the_table_of_the_plan_rises() -> None:
    told, emd, similarity = (np.array(column) for column in zip(*FORECAST_TABLE, strict=True))
    assert (np.diff(told) > 0).all()
    assert (np.diff(emd, axis=0) <= 0).all()
    assert (np.diff(similarity, axis=0) >= 0).all()
    assert (np.diff(emd, axis=1) > 0).all()
    assert (np.diff(similarity, axis=1) > 0).all()


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
    assert plan_local(1000, 1, target=0.999).required_users is None

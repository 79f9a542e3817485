"""The table of estimators: a trial runs them all on the same readings; ratios and misses are right."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from experiments.sensors import doubts
from experiments.sensors.estimators import (
    ISSUE,
    OTHERS,
    SETTINGS,
    Row,
    Setting,
    Trial,
    calibration,
    run_trial,
    table,
)
from experiments.sensors.scenes import misfit_table


@pytest.mark.unit
def test_a_trial_scores_every_estimator() -> None:
    done = run_trial(ISSUE[0], 0)
    assert list(done.errors) == [
        "papers' noise, R", "R, papers' radius", "R", "off-grid", "mixture", "mixture, count known",
        "bayes-median", "bayes-median, masses known", "posterior mean",
    ]  # fmt: skip
    assert all(0 <= error < 1 for error in done.errors.values())
    assert run_trial(ISSUE[0], 0).errors == done.errors


@pytest.mark.unit
def test_the_settings_are_those_that_were_asked() -> None:
    assert [setting.sources for setting in ISSUE] == [1, 1, 2, 2, 4, 4, 8, 8]
    assert [setting.most_ratio for setting in ISSUE] == [1.15] * 4 + [0.7] * 4
    assert {setting.epsilon for setting in ISSUE} == {4.0}
    assert {setting.trials for setting in ISSUE} == {400}
    assert OTHERS[0].most_error == 0.025
    assert len({setting.name for setting in SETTINGS}) == len(SETTINGS)


def made_up(ratio: float, rng: np.random.Generator) -> Row:
    """Errors of R, and errors that are about so many times as large."""
    theirs = rng.uniform(0.05, 0.15, 200)
    ours = ratio * theirs * rng.uniform(0.9, 1.1, 200)
    trials = tuple(
        Trial({"R": r, "bayes-median": b}, (True, False))
        for r, b in zip(theirs.tolist(), ours.tolist(), strict=True)
    )
    return Row(Setting("made up", 1, most_ratio=1.15, most_error=0.1), trials)


@pytest.mark.unit
def test_ratios_have_intervals_and_misses_are_told(rng: np.random.Generator) -> None:
    """The deviation of a factor is 0.058, so the half width is 0.008 of the ratio."""
    good, bad = made_up(0.8, rng), made_up(1.3, rng)
    ratio, half = good.ratio("bayes-median")
    assert ratio == pytest.approx(0.8, abs=0.03)
    assert half == pytest.approx(0.008 * 0.8, rel=0.4)
    assert good.misses() == []
    assert [miss.split(":")[1].split()[0] for miss in bad.misses()] == ["ratio", "error"]
    lines = table([good, bad]).splitlines()
    assert "**" not in lines[2]
    assert "**" in lines[3]
    assert "50.0%" in calibration([good])


@pytest.mark.unit
def test_a_quick_table_of_scenes() -> None:
    lines = misfit_table(1).splitlines()
    assert len(lines) == 9
    assert lines[2].startswith("| all is well | 0% of 1")


TOLD = r"(?P<share>\d+)% of (?P<of>\d+) \(± (?P<error>\d+\.\d)%\)"
"""How a share is told, with the counts behind it and its standard error."""


@pytest.mark.unit
def test_quick_tables_of_doubts() -> None:
    """Each walk is in one row of its kind, and each band in one row of a number and in that of all."""
    walked = [line.split(" | ") for line in doubts.walk_table(1).splitlines()[2:]]
    walks = [int(line[3]) for line in walked]
    assert [sum(walks[:2]), sum(walks[2:])] == [1, 1]
    held = [line.split(" | ") for line in doubts.band_table(1).splitlines()[2:]]
    for column in (2, 4):  # a half for known masses, and a fifth
        told = [re.fullmatch(TOLD, line[column]) for line in held]
        bands = [int(one["of"]) if one else 0 for one in told]
        assert all(one or line[column] == "-" for one, line in zip(told, held, strict=True))
        assert sum(bands[:3]) == bands[3] > 0
        assert sum(bands[4:7]) == bands[7] > 0
        assert column != 2 or bands[7] == 4
        for one in filter(None, told):
            # The standard error of a share of 90 %, in percent.
            assert float(one["error"]) == pytest.approx(30 / math.sqrt(int(one["of"])), abs=0.05)
            assert 0 <= int(one["share"]) <= 100

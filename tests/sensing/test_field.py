"""Offset, diffusion time and bad sensors are found where they are, and mostly not where they are not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator
from tests.chance import assert_share

from sfumato.errors import InvalidParameter
from sfumato.sensing.diagnostics.field import _offset_error, _Scene, fit_field
from sfumato.sensing.diagnostics.field_offset import remove_offset, whitened
from sfumato.sensing.diagnostics.field_sensors import faulty_sensors
from sfumato.sensing.diagnostics.field_sparse import few_sources
from sfumato.sensing.model.operators.graph_diffusion import graph_diffusion
from sfumato.sensing.model.operators.heat_line import heat_line
from sfumato.sensing.model.operators.heat_plane import heat_plane
from sfumato.sensing.model.operators.matrix import linear
from sfumato.sensing.model.operators.protocol import part_of
from sfumato.sensing.planning.synthetic import block_graph, synthetic_sources
from sfumato.sensing.recovery.answer import Estimate
from sfumato.sensing.recovery.distance import emd_of
from sfumato.sensing.recovery.estimators.least_mass import recover
from sfumato.sensing.tracking.average import combine
from sfumato.spaces import Grid, Line

SIGMA = 0.066
HALL = heat_line(sources=100, sensors=50, diffusion_time=0.05)
TIMES = np.geomspace(0.0125, 0.2, 7).tolist()


@pytest.mark.property
def test_contrasts_are_white_and_know_no_offset(rng: np.random.Generator) -> None:
    graph, _ = block_graph([6, 6], inside=0.7, across=0.1, rng=rng)
    plane = heat_plane(sources=Grid(2), sensors=rng.random((5, 2)), diffusion_time=0.02)
    for operator in (HALL, plane, graph_diffusion(graph, 0.5), linear(rng.random((4, 9)), Line(9))):
        m, n = operator.shape
        turned = np.array([remove_offset(operator, unit)[1] for unit in np.eye(m)]).T
        assert turned @ turned.T == pytest.approx(np.eye(m - 1), abs=1e-14)
        assert turned @ np.ones(m) == pytest.approx(np.zeros(m - 1), abs=1e-13)
        rotated, _ = remove_offset(operator, np.zeros(m))
        assert rotated.columns(np.arange(n)) == pytest.approx(
            turned @ operator.columns(np.arange(n)), abs=1e-13
        )


@pytest.mark.reference
def test_a_large_operator_is_never_formed(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, _ = remove_offset(HALL, np.zeros(50))
    monkeypatch.setattr("sfumato.sensing.diagnostics.field_offset.LARGE", 0)
    lazy, _ = remove_offset(HALL, np.zeros(50))
    f, z = rng.random(100), rng.standard_normal(49)
    assert lazy.readings(f) == pytest.approx(whole.readings(f), abs=1e-12)
    assert lazy.adjoint(z) == pytest.approx(whole.adjoint(z), abs=1e-12)
    assert lazy.readings(f) @ z == pytest.approx(f @ lazy.adjoint(z), abs=1e-11)


@pytest.mark.unit
def test_whitening_makes_offset_and_noise_one() -> None:
    # Covariance sigma^2 I + offset^2 11' becomes sigma^2 I.
    turned = whitened(np.eye(5), 0.3, 0.7, np.ones(5))
    covariance = 0.09 * np.eye(5) + 0.49 * np.ones((5, 5))
    assert turned @ covariance @ turned.T == pytest.approx(0.09 * np.eye(5), abs=1e-14)
    assert whitened(np.eye(5), 0.3, np.inf, np.ones(5))[0] == pytest.approx(np.zeros(5))
    assert np.array_equal(whitened(np.eye(5), 0.3, 0.0, np.ones(5)), np.eye(5))


@pytest.mark.unit
def test_r_sees_through_an_offset_in_contrasts() -> None:
    truth = np.zeros(100)
    truth[30] = 1.0
    y = HALL.readings(truth) + 0.5
    seen = recover(*remove_offset(HALL, y), radius=0.1)
    assert emd_of(seen, truth) < 0.02
    assert (
        emd_of(recover(HALL, y, radius=0.1), truth) > 0.05
    )  # the rival: an offset taken for sources


@pytest.mark.statistical
def test_well_sensors_are_suspected_at_the_level_and_no_more(rng: np.random.Generator) -> None:
    trials, wrong, drifting = 400, 0, 0
    for _ in range(trials):
        y = HALL.readings(synthetic_sources(HALL.space, int(rng.integers(1, 9)), rng=rng))
        y += 3 + SIGMA * rng.standard_normal(50)
        wrong += bool(faulty_sensors(HALL, y, sigma=SIGMA, offset=True, level=0.4))
        rounds = HALL.readings(
            synthetic_sources(HALL.space, 2, rng=rng)
        ) + SIGMA * rng.standard_normal((4, 50))
        drifting += bool(faulty_sensors(HALL, rounds, sigma=SIGMA, level=0.4))
    # One free test of four has a quarter of the level: of 50 nearly independent sensors the largest is
    # beyond it 1 - (1 - 0.4 / 200)^50 = 0.095 of the time; tests of limits hold at far less than their
    # share. Of rounds three free tests of six have half of the level: 1 - (1 - 0.4 / 300)^150 = 0.181.
    assert_share(wrong, trials, 0.1, rivals=[0.005, 0.3])
    assert_share(drifting, trials, 0.18, rivals=[0.03, 0.4])


@pytest.mark.unit
def test_bad_sensors_are_found_one_after_another(rng: np.random.Generator) -> None:
    y = HALL.readings(synthetic_sources(HALL.space, 3, rng=rng)) + SIGMA * rng.standard_normal(50)
    y[[10, 11, 40]] += [1.0, 1.0, -0.8]  # 15 and 12 deviations
    found = faulty_sensors(HALL, y, sigma=SIGMA)
    assert {suspect.sensor for suspect in found} == {"10", "11", "40"}
    assert all(suspect.p_value < 0.01 and suspect.shows == "level" for suspect in found)
    off = {suspect.sensor: (suspect.off, suspect.off_error) for suspect in found}
    for sensor, true in {"10": 1.0, "11": 1.0, "40": -0.8}.items():
        assert abs(off[sensor][0] - true) < 5 * off[sensor][1] < 0.6
    assert (
        len(faulty_sensors(HALL, 10 * rng.standard_normal(50), sigma=SIGMA)) == 13
    )  # a quarter, and no more


@pytest.mark.unit
def test_rounds_show_what_one_cannot_off_drifting_and_dead(rng: np.random.Generator) -> None:
    scenes = np.array([HALL.readings(synthetic_sources(HALL.space, 2, rng=rng)) for _ in range(25)])
    rounds = scenes + SIGMA * rng.standard_normal(scenes.shape)
    at, number = np.arange(50) == 20, np.arange(25)[:, np.newaxis]
    off = rounds + np.where(at, 2 * SIGMA, 0.0)  # 2 deviations of one, 10 of the mean
    drift = rounds + np.where(
        at, SIGMA * (number - 12) / 3, 0.0
    )  # 12 of the slope, none of the mean
    stuck = rounds.copy()  # at its own mean, so neither mean nor slope shows anything
    stuck[:, 20] = scenes[:, 20].mean() + SIGMA * rng.standard_normal(25)
    dead = rounds.copy()
    dead[:, 20] = SIGMA * rng.standard_normal(25)
    for kind, values in (("level", off), ("drift", drift), ("loose", stuck), ("dead", dead)):
        (found,) = faulty_sensors(HALL, values, sigma=SIGMA)
        assert (found.sensor, found.shows) == ("20", kind)
        word = {
            "level": "reads +",
            "drift": "drifts by",
            "loose": "does not go along",
            "dead": "reads nothing but noise",
        }[kind]
        assert found.message.startswith(f"sensor '20' {word}")
    assert not faulty_sensors(HALL, off[0], sigma=SIGMA)
    assert not faulty_sensors(
        HALL, drift[8:16], sigma=SIGMA
    )  # a third of the rounds: 2.2 deviations of their slope


@pytest.mark.unit
def test_a_sensor_that_is_a_little_off_where_nothing_is_to_be_read_is_not_called_dead(
    rng: np.random.Generator,
) -> None:
    sharp = heat_line(sources=100, sensors=50, diffusion_time=0.002)
    found = []
    for _ in range(60):
        rounds = sharp.columns([80])[:, 0] + SIGMA * rng.standard_normal((24, 50))
        rounds[:, 5] += 1.2 * SIGMA
        found += [
            one.shows for one in faulty_sensors(sharp, rounds, sigma=SIGMA) if one.sensor == "5"
        ]
    assert len(found) > 30
    assert "dead" not in found


@pytest.mark.statistical
def test_what_a_bad_sensor_is_off_by_is_estimated_without_bias_and_as_well_as_said(
    rng: np.random.Generator,
) -> None:
    sigmas = SIGMA * np.array([1.0, 2.0, 1.0, 0.5, 1.5, 1.0])
    number = np.arange(6)
    off, drift = [], []
    trials = 1000
    for _ in range(trials):
        scene = HALL.readings(synthetic_sources(HALL.space, 3, rng=rng))
        rounds = scene + sigmas[:, np.newaxis] * rng.standard_normal((6, 50))
        rounds[:, 17] += 1.0 + 0.3 * number
        (found,) = faulty_sensors(HALL, rounds, sigma=sigmas, level=1e-6)
        assert found.drift is not None
        assert found.drift_error is not None
        weights = 1 / sigmas**2
        mean = 1.0 + 0.3 * float(weights @ number / weights.sum())
        off.append((found.off - mean) / found.off_error)
        drift.append((found.drift - 0.3) / found.drift_error)
    for scores in (np.array(off), np.array(drift)):
        # Standard normal: 68.3 % within one error; 85 or 52 % if errors are 1.43 times too large or
        # small.
        assert_share(int((np.abs(scores) < 1).sum()), trials, 0.683, rivals=[0.85, 0.52])
        assert_share(
            int((scores > 0).sum()), trials, 0.5, rivals=[0.34, 0.66]
        )  # a bias of 0.4 errors


@pytest.mark.unit
def test_of_two_sensors_beyond_doubles_the_worse_goes_first() -> None:
    y = np.zeros(50)
    y[[20, 21]] = [300.0, 1000.0]
    first, *_ = faulty_sensors(HALL, y, sigma=0.1)
    assert (first.sensor, first.p_value) == ("21", 0)
    first, *_ = faulty_sensors(HALL, np.vstack([y, -y, y, -y]), sigma=0.1)  # by its squares
    assert (first.sensor, first.shows) == ("21", "loose")


@pytest.mark.unit
def test_a_field_of_rounds_is_that_of_their_combination_without_a_drifting_sensor(
    rng: np.random.Generator,
) -> None:
    truth = np.zeros(100)
    truth[30] = 1.0
    sigmas = SIGMA * np.array([1.0, 2.0, 1.0, 0.5])
    rounds = HALL.readings(truth) + 0.2 + sigmas[:, np.newaxis] * rng.standard_normal((4, 50))
    rounds[:, 40] += 20 * SIGMA * np.array([-1.5, -0.5, 0.5, 1.5])
    found = fit_field(HALL, rounds, sigma=sigmas, offset=0.2)
    assert [(one.sensor, one.shows) for one in found.faulty_sensors] == [("40", "drift")]
    mean, sigma = combine(np.delete(rounds, 40, axis=1), sigmas)
    assert found.sigma == sigma
    assert found.readings + found.offset == pytest.approx(mean, rel=1e-14)
    assert emd_of(recover(found.operator, found.readings, sigma=sigma), truth) < 0.02


@pytest.mark.unit
def test_part_of_is_rows_of_the_whole(rng: np.random.Generator) -> None:
    graph, _ = block_graph([6, 6], inside=0.7, across=0.1, rng=rng)
    lazy = linear(aslinearoperator(rng.random((4, 9))), Line(9))
    for operator in (HALL, graph_diffusion(graph, 0.5), lazy):
        rows, cells = np.array([0, 2, 3]), np.arange(operator.shape[1])
        some = part_of(operator, rows)
        assert some.columns(cells) == pytest.approx(operator.columns(cells)[rows], abs=1e-15)
        assert some.sensors.names == ("0", "2", "3")
        assert part_of(operator, np.arange(operator.shape[0])) is operator


@pytest.mark.reference
def test_few_sources_are_the_best_of_all_pairs(rng: np.random.Generator) -> None:
    # On 20 cells a referee tries every pair; one source moving at a time found 11 of these 20.
    line = heat_line(sources=20, sensors=15, diffusion_time=0.02)
    rows, same = line.columns(np.arange(20)).T, 0
    for _ in range(20):
        wanted = line.readings(
            synthetic_sources(line.space, 2, rng=rng)
        ) + 0.1 * rng.standard_normal(15)
        pairs = [(i, j) for i in range(20) for j in range(i)]
        best = min(_square(rows[list(pair)], wanted) for pair in pairs)
        found = few_sources(rows, wanted, most=3, max_mass=10.0)
        assert found[2].square >= best * (1 - 1e-9)
        assert found[0].square >= found[1].square >= found[2].square >= found[3].square
        same += found[2].square <= best * (1 + 1e-9)
    assert same == 20


def _square(pair: np.ndarray, wanted: np.ndarray) -> float:
    """The square of two sources; masses below 0 count as none would: infinitely bad."""
    masses, *_ = np.linalg.lstsq(pair.T, wanted)
    left = wanted - masses @ pair
    return float(left @ left) if (masses >= 0).all() else np.inf


@pytest.mark.statistical
def test_the_time_of_one_source_lies_in_its_interval(rng: np.random.Generator) -> None:
    true, hits, sharper = HALL.with_time(0.03), 0, 0
    for _ in range(40):
        f = synthetic_sources(HALL.space, 1, rng=rng) * rng.uniform(0.5, 1)
        y = true.readings(f) + SIGMA * rng.standard_normal(50)
        found = fit_field(HALL, y, sigma=SIGMA, times=TIMES, sources=1)
        assert found.interval is not None
        low, high = found.interval
        hits += low <= 0.03 <= high
        sharper += low <= 0.045 <= high
        assert found.time_is_below is not None
        assert found.time_is_below >= 0.03
    # 0.995 by the chi-square law at 7.8; the rival, the time times 1.5, is far outside in most
    # draws.
    assert_share(hits, 40, 0.99, rivals=[0.35])
    assert sharper <= 10


@pytest.mark.statistical
def test_a_field_with_everything_wrong_is_mended(rng: np.random.Generator) -> None:
    true, before, after = HALL.with_time(0.025), 0.0, 0.0
    for _ in range(4):
        f = synthetic_sources(HALL.space, 1, rng=rng)
        y = true.readings(f) + 0.2 + SIGMA * rng.standard_normal(50)
        dead = int(np.argmax(y))
        y[dead] = 0.0
        found = fit_field(HALL, y, sigma=SIGMA, times=TIMES, offset=0.3)
        assert str(dead) in {suspect.sensor for suspect in found.faulty_sensors}
        assert abs(found.offset - 0.2) < 0.15  # its deviation is 0.02 over 30 draws
        assert str(dead) not in found.operator.sensors.names
        assert len(found.readings) == found.operator.shape[0] == 50 - len(found.faulty_sensors)
        assert any("promise of privacy was weaker" in line for line in found.messages)
        before += _distance(HALL, y, f)
        after += _distance(found.operator, found.readings, f)
    assert after < before / 2  # 0.0075 against 0.052 in 30 draws


def _distance(operator: object, y: np.ndarray, truth: np.ndarray) -> float:
    """Of the recovery, or of sources spread evenly where there is none."""
    seen = recover(operator, y, sigma=SIGMA)  # type: ignore[arg-type]
    if seen.status == "optimal":
        return emd_of(seen, truth)
    return emd_of(Estimate(HALL, HALL.space.places(np.arange(100)), np.ones(100)), truth)


@pytest.mark.unit
def test_a_graph_has_a_rate_and_a_matrix_has_none(rng: np.random.Generator) -> None:
    graph, _ = block_graph([15, 15], inside=0.4, across=0.05, rng=rng)
    stated = graph_diffusion(graph, 1.0)
    y = graph_diffusion(graph, 0.3).columns([4])[:, 0] + 0.01 * rng.standard_normal(30)
    found = fit_field(stated, y, sigma=0.01, times=[0.1, 0.2, 0.4, 0.8], sources=1)
    assert found.time == pytest.approx(0.3, rel=0.2)
    assert found.operator.space is graph
    square = linear(np.eye(3), Line(3))
    with pytest.raises(InvalidParameter, match="no diffusion time"):
        fit_field(square, [1, 0, 0], sigma=0.1, times=[1, 2])
    plain = fit_field(square, [1.0, 0, 0], sigma=0.1)
    assert (plain.time, plain.interval, plain.offset, plain.sources) == (None, None, 0.0, 1)


@pytest.mark.unit
def test_without_sources_no_time_is_told_and_a_graph_has_a_rate(rng: np.random.Generator) -> None:
    found = fit_field(HALL, np.zeros(50), sigma=SIGMA, times=[0.02, 0.03])
    assert (found.sources, found.time, found.interval) == (0, None, None)
    assert found.operator.time == 0.05
    assert found.messages[1] == (
        "no source stands out from the noise, so the diffusion time cannot be told; the stated 0.05 stays"
    )
    # Times below the stated one that cannot be told are no reason to doubt the promise.
    assert not any("weaker" in line or "0 sources" in line for line in found.messages)
    graph, _ = block_graph([15, 15], inside=0.4, across=0.05, rng=rng)
    y = graph_diffusion(graph, 0.3).columns([4])[:, 0] + 0.01 * rng.standard_normal(30)
    said = fit_field(
        graph_diffusion(graph, 1.0), y, sigma=0.01, times=[0.28, 0.32], sources=1
    ).messages
    assert said[1].startswith("the rate is 0.28 to ")
    assert "the end of the rates tried" in said[2]
    assert not any("diffusion time" in line for line in said)


@pytest.mark.reference
@pytest.mark.parametrize("offset", [0.3, np.inf])
def test_an_offset_has_the_error_of_least_squares(offset: float) -> None:
    y = HALL.columns([30])[:, 0] + 0.2
    found = fit_field(HALL, y, sigma=SIGMA, offset=offset, sources=1)
    columns = np.column_stack([HALL.columns([30]), np.ones(50)]) / SIGMA
    columns = np.vstack(
        [columns, [[0, 1 / offset]]]
    )  # what is known of the offset is one more reading
    assert found.offset_error == pytest.approx(
        np.linalg.inv(columns.T @ columns)[1, 1] ** 0.5, rel=1e-9
    )
    assert found.messages[1].startswith(f"all readings share an offset of {found.offset:.3g} ± ")
    known = SIGMA / (50 + (SIGMA / offset) ** 2) ** 0.5  # sources of which all were known
    assert found.offset_error > 1.1 * known
    empty = fit_field(HALL, np.full(50, 0.2), sigma=SIGMA, offset=offset)
    assert empty.sources == 0
    assert empty.offset_error == pytest.approx(known, rel=1e-12)
    assert fit_field(HALL, y, sigma=SIGMA).offset_error == 0
    # One that cannot be told from a source is as unsure as before.
    alike = np.column_stack([np.ones(4), [0.0, 2.0, 0.0, 2.0]])
    four = part_of(HALL, np.arange(4))
    one = _Scene(four, np.ones((1, 4)), np.array([SIGMA]), np.ones(4), SIGMA, 1.0, offset, 2)
    assert _offset_error(one, alike) == offset


@pytest.mark.unit
@pytest.mark.parametrize("offset", [0.0, 0.3, np.inf])
def test_sensors_out_of_reach_are_refused_in_our_words(offset: float) -> None:
    far = heat_line(sources=20, sensors=np.array([50.0, 60.0]), diffusion_time=0.05)
    for times in (None, [0.02, 0.1]):
        with pytest.raises(
            InvalidParameter, match="in reach of a source, got 2 that read 0 of all 20 cells"
        ):
            fit_field(far, [0.1, 0.2], sigma=0.1, offset=offset, times=times)
    # At the longest time tried they are in reach; at the least they read nothing, which is no
    # mistake.
    found = fit_field(far, [0.1, 0.2], sigma=0.1, offset=offset, times=[1e-3, 1e3])
    assert (found.sources, found.interval) == (0, None)
    # Two that differ and share an offset: neither is the bad one, and no sensor would be left to
    # compare.
    near = heat_line(sources=20, sensors=np.array([-0.9, 1.9]), diffusion_time=0.05)
    assert not offset or len(fit_field(near, [0.0, 9.0], sigma=0.1, offset=offset).readings) == 2


@pytest.mark.unit
def test_what_cannot_be_fitted_is_refused() -> None:
    y = np.zeros(50)
    with pytest.raises(InvalidParameter, match="2 or more"):
        fit_field(HALL, y, sigma=1.0, times=[0.05])
    with pytest.raises(InvalidParameter, match="offset must be"):
        fit_field(HALL, y, sigma=1.0, offset=-1.0)
    with pytest.raises(InvalidParameter, match="`max_mass` must be"):
        fit_field(HALL, y, sigma=1.0, max_mass=0.0)
    with pytest.raises(InvalidParameter, match="level must be"):
        faulty_sensors(HALL, y, sigma=1.0, level=1.0)
    one = heat_line(sources=20, sensors=np.array([0.5]), diffusion_time=0.05)
    with pytest.raises(InvalidParameter, match=r"2 sensors or more .* no field was fitted"):
        fit_field(one, [0.0], sigma=1.0, offset=1.0)
    with pytest.raises(InvalidParameter, match="2 sensors"):
        remove_offset(linear([[1.0, 2.0]], Line(2)), [1.0])

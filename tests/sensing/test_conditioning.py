"""The spectrum is right, inequalities hold where they speak, lemmas are silent where they are false."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest

from sfumato.privacy import SwappedCells
from sfumato.sensing.diagnostics.conditioning import Conditioning, conditioning
from sfumato.sensing.model.operators.graph_diffusion import graph_diffusion
from sfumato.sensing.model.operators.heat_line import heat_line
from sfumato.sensing.model.operators.heat_plane import heat_plane
from sfumato.sensing.model.operators.matrix import linear
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.model.sensitivity import sensitivity
from sfumato.sensing.recovery.estimators.least_mass import recover
from sfumato.spaces import Graph, Grid, Line, Points

module: Any = sys.modules[conditioning.__module__]  # the package has a function of the same name


def ring(nodes: int) -> Graph:
    return Graph([(i, (i + 1) % nodes) for i in range(nodes)])


def samples(rng: np.random.Generator) -> list[Operator]:
    return [
        heat_line(sources=100, sensors=50, diffusion_time=0.05),
        heat_line(sources=30, sensors=60, diffusion_time=0.001),
        heat_plane(sources=Grid(3), sensors=rng.random((20, 2)), diffusion_time=0.01),
        heat_plane(sources=rng.random((15, 2)), sensors=rng.random((20, 2)), diffusion_time=0.01),
        graph_diffusion(ring(12), 0.4),
        graph_diffusion(ring(12), 0.4, sensors=[1, 2, 5]),
        linear(rng.random((5, 9)), Line(9)),
        linear(rng.normal(size=(12, 9)), Line.at(np.cumsum(rng.random(9)))),
    ]


def matrix_of(operator: Operator) -> np.ndarray:
    return operator.columns(np.arange(operator.shape[1]))


@pytest.mark.reference
def test_the_spectrum_is_that_of_the_matrix(rng: np.random.Generator) -> None:
    for operator in samples(rng):
        found, wanted = conditioning(operator), np.linalg.svd(matrix_of(operator), compute_uv=False)
        assert found.complete
        assert found.shape == operator.shape
        # Both are off by some units of the first value: m + n roundings of 2**-53.
        np.testing.assert_allclose(
            found.singular_values, wanted, rtol=0, atol=200 * 2**-52 * wanted[0]
        )
        assert not found.singular_values.flags.writeable
        lost = 2.0**-50 * min(operator.shape) * wanted[0]
        assert found.rank == (found.singular_values > lost).sum()
        assert found.condition_number == pytest.approx(wanted[0] / max(wanted[-1], lost), rel=1e-6)


@pytest.mark.reference
def test_coherence_is_the_largest_cosine(rng: np.random.Generator) -> None:
    for operator in samples(rng):
        units = matrix_of(operator) / np.linalg.norm(matrix_of(operator), axis=0)
        cosines = np.abs(units.T @ units) - np.eye(operator.shape[1])
        found = conditioning(operator)
        assert found.coherence == pytest.approx(cosines.max(), rel=1e-12)
        # The isometry constant of the worst two columns is what is claimed to bound it.
        i, j = np.unravel_index(cosines.argmax(), cosines.shape)
        values = np.linalg.eigvalsh(units[:, [i, j]].T @ units[:, [i, j]])
        assert np.abs(values - 1).max() == pytest.approx(found.isometry(1), rel=1e-9)


@pytest.mark.property
def test_the_lemmas_hold_where_they_speak(rng: np.random.Generator) -> None:
    spoken = [0, 0]
    for operator in samples(rng):
        lemma = conditioning(operator).almost_rank_one
        matrix, (m, n) = matrix_of(operator), operator.shape
        step = sensitivity(operator, SwappedCells(1)).l2
        values = np.linalg.svd(matrix, compute_uv=False)
        assert lemma.step == step
        assert lemma.tail == pytest.approx(values[1:].sum(), rel=1e-9)
        assert lemma.share == pytest.approx(values[1:].sum() / values.sum(), rel=1e-9)
        assert lemma.tail <= lemma.ceiling
        assert (lemma.floor is None) == (n > m)
        assert (lemma.converse is None) == bool((matrix < 0).any())
        if lemma.floor is not None:
            spoken[0] += 1
            assert lemma.floor <= step
            assert lemma.floor == pytest.approx(math.sqrt(2) * values[-1], rel=1e-6, abs=1e-11)
        if lemma.converse is not None:
            spoken[1] += 1
            assert step <= lemma.converse
    assert min(spoken) >= 3, "a lemma was hardly tried"


@pytest.mark.property
def test_the_ceiling_holds_for_matrices_of_all_kinds(rng: np.random.Generator) -> None:
    closest = 0.0
    for _ in range(40):
        m, n = int(rng.integers(1, 8)), int(rng.integers(2, 12))
        smooth = np.cumsum(rng.normal(size=(m, n)), axis=1)
        for space in (Line(n), Points(rng.random((n, 3)))):
            lemma = conditioning(linear(smooth, space)).almost_rank_one
            assert lemma.tail <= lemma.ceiling * (1 + 1e-12)
            closest = max(closest, lemma.tail / lemma.ceiling)
    assert closest > 0.2, "the bound is so far off that nothing could break it"


@pytest.mark.unit
def test_lemma_5_is_false_with_more_cells_than_sensors() -> None:
    # Columns on half a circle: condition number 1, yet steps of 0.0044, far below 1 / (kappa sqrt
    # n).
    angles = np.pi * np.arange(100) / 100
    found = conditioning(linear(np.stack([np.cos(angles), np.sin(angles)]), Line(100)))
    scaled = found.almost_rank_one.step / found.singular_values[0]
    assert found.condition_number == pytest.approx(1, rel=1e-9)
    assert scaled == pytest.approx(0.0044, abs=5e-5)
    assert scaled < 1 / (found.condition_number * math.sqrt(100))
    assert found.almost_rank_one.floor is None
    assert any(
        "says nothing here: it needs no more cells than sensors" in s for s in found.sentences
    )


@pytest.mark.unit
def test_the_converse_is_false_with_signs() -> None:
    found = conditioning(linear([[1, -1], [2, -2]], Line(2)))
    lemma = found.almost_rank_one
    assert (found.rank, lemma.uneven) == (1, 0.0)
    assert lemma.tail < 1e-15
    assert lemma.step == pytest.approx(2 * math.sqrt(5), rel=1e-12)
    assert lemma.converse is None
    assert any("converse says nothing" in s for s in found.sentences)


@pytest.mark.unit
def test_ill_conditioned_is_not_easily_private() -> None:
    # The papers' example: kappa is 1 / rho, yet the first coordinate needs considerable noise.
    found = conditioning(linear([[1, 0], [0, 1e-6]], Line(2)))
    assert found.condition_number == pytest.approx(1e6)
    assert found.almost_rank_one.step == pytest.approx(1, rel=1e-9)


@pytest.mark.unit
def test_theorems_speak_of_incoherent_columns_only() -> None:
    clear = conditioning(linear(np.eye(8), Line(8)))
    assert (clear.coherence, clear.sparsity, clear.condition_number) == (0.0, 8, 1.0)
    assert clear.coherence_speaks(8)
    assert clear.isometry_speaks(4)
    assert clear.isometry_speaks(5)  # there are no ten columns, and all eight are orthogonal
    assert conditioning(linear(np.eye(3), Line(3))).isometry(2) == 0
    wide = conditioning(linear(np.column_stack([np.eye(8), np.ones(8), np.arange(8)]), Line(10)))
    assert wide.isometry(5) == 1  # ten columns of eight numbers are dependent
    assert wide.isometry(4) == wide.coherence
    cosine = 0.1
    pair = conditioning(linear([[1, cosine], [0, math.sqrt(1 - cosine**2)]], Line(2)))
    assert pair.coherence == pytest.approx(cosine)
    assert pair.sparsity == 2  # no more than there are cells
    heat = conditioning(heat_line(sources=100, sensors=50, diffusion_time=0.05))
    assert heat.sparsity == 0
    assert not heat.coherence_speaks(1)
    assert not heat.isometry_speaks(1)
    assert any("Theorem 11 (Tropp) says nothing" in s for s in heat.sentences)
    assert any(
        "Theorem 12 (Candes), which needs less than 0.414, says nothing" in s
        for s in heat.sentences
    )


@pytest.mark.unit
@pytest.mark.parametrize(("cosine", "sources"), [(0.33, 1), (0.34, 0), (0.11, 3)])
def test_sparsity_is_a_third_over_coherence(cosine: float, sources: int) -> None:
    rows = np.eye(5)
    rows[:2, 1] = cosine, math.sqrt(1 - cosine**2)
    found = conditioning(linear(rows, Line(5)))
    assert found.sparsity == sources
    assert found.coherence_speaks(max(1, sources)) == (sources > 0)
    assert not found.coherence_speaks(sources + 1)


@pytest.mark.unit
def test_cells_that_nobody_reads() -> None:
    found = conditioning(linear([[1, 0, 0], [0, 1, 0], [0, 0, 0]], Line(3)))
    assert found.unread == 1
    assert not found.coherence_speaks(1)
    assert not found.isometry_speaks(1)
    assert found.rank == 2
    assert any("1 cells are read by no sensor" in s for s in found.sentences)


@pytest.mark.reference
def test_connectivity_and_lemma_18() -> None:
    # A ring of n has s_2 = 2 - 2 cos(2 pi / n).
    found = conditioning(graph_diffusion(ring(12), 0.4)).connectivity
    assert found is not None
    assert found.algebraic == pytest.approx(2 - 2 * math.cos(2 * math.pi / 12), rel=1e-12)
    assert found.orthogonality == pytest.approx(
        math.sqrt(2) * math.exp(-0.4 * found.algebraic), rel=1e-12
    )
    # Pairs of eigenvalues 2 - 2 cos(2 pi k / 12): an edge has 2 s_k / 12 in each, s_6 / 12 in the
    # single one.
    alone = [2 - 2 * math.cos(2 * math.pi * k / 12) for k in range(1, 7)]
    share = [math.sqrt((2 if k < 6 else 1) * s / 12) for k, s in enumerate(alone, 1)]
    wanted = sum(math.exp(-0.4 * s) * part for s, part in zip(alone, share, strict=True))
    assert found.lemma == pytest.approx(wanted, rel=1e-9)
    assert found.step <= found.bound == min(found.lemma or 0, found.orthogonality)
    star = conditioning(graph_diffusion(Graph([(0, i) for i in range(1, 16)]), 0.05)).connectivity
    assert star is not None
    assert (round(star.bound, 3), round(star.step, 3)) == (1.345, 1.03)
    assert conditioning(heat_line(sources=3, sensors=3, diffusion_time=1)).connectivity is None


@pytest.mark.unit
def test_small_singular_values_of_a_graph_keep_their_digits() -> None:
    n, rate = 10, 5.0
    found = conditioning(graph_diffusion(Graph([(i, j) for i in range(n) for j in range(i)]), rate))
    np.testing.assert_allclose(found.singular_values[1:], math.exp(-rate * n), rtol=1e-10)
    assert found.rank == 1


@pytest.mark.reference
def test_large_operators_give_their_leading_values(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    operators: list[Operator] = [
        graph_diffusion(ring(90), 0.7),
        graph_diffusion(ring(90), 0.7, sensors=np.arange(0, 90, 2)),
        heat_plane(sources=Grid(3), sensors=rng.random((40, 2)), diffusion_time=0.001),
    ]
    whole: list[Conditioning] = [conditioning(operator) for operator in operators]
    for name, value in {"ALL": 0, "PAIRWISE": 8, "DENSE": 8}.items():
        monkeypatch.setattr(module, name, value)
    for operator, full in zip(operators, whole, strict=True):
        found = conditioning(operator)
        count = found.singular_values.size
        assert not found.complete
        assert count == module.LEADING
        # Squares are decomposed, to a tolerance of 1e-6 of an eigenvalue on graphs.
        np.testing.assert_allclose(found.singular_values, full.singular_values[:count], rtol=1e-5)
        assert found.condition_number <= full.condition_number * (1 + 1e-5)
        assert found.rank <= full.rank
        assert not found.coherence_complete
        assert found.coherence <= full.coherence * (1 + 1e-12)
        assert not found.coherence_speaks(1)
        assert found.almost_rank_one.converse is None
        assert any("at least" in s for s in found.sentences)
        if full.connectivity is not None and found.connectivity is not None:
            assert found.connectivity.algebraic == pytest.approx(
                full.connectivity.algebraic, rel=1e-3
            )


@pytest.mark.reference
def test_many_cells_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    operator = heat_line(sources=700, sensors=20, diffusion_time=0.01)
    full = conditioning(operator)
    monkeypatch.setattr(module, "CHUNK", 1000)
    monkeypatch.setattr(module, "PAIRWISE", 16)
    found = conditioning(operator)
    np.testing.assert_allclose(
        found.singular_values, full.singular_values, atol=1e-13 * full.singular_values[0], rtol=0
    )
    assert found.almost_rank_one.uneven == pytest.approx(full.almost_rank_one.uneven, rel=1e-9)


@pytest.mark.unit
def test_sentences_say_what_hides_what() -> None:
    said: Any = conditioning(graph_diffusion(ring(12), 0.4)).sentences
    assert said[0].startswith(
        "Physics hides: of 12 numbers that 12 readings of 12 cells could tell, 12 are above"
    )
    assert "the condition number is 4.95" in said[0]
    assert said[2].startswith(
        "Noise must hide: one unit in the next cell moves the readings by up to "
    )
    assert said[-1].startswith("The graph's algebraic connectivity is 0.2679; by Lemma 18 (orth")
    assert all(sentence.endswith(".") for sentence in said)


@pytest.mark.unit
def test_one_cell_and_one_sensor() -> None:
    for operator in (linear([[2]], Line(1)), graph_diffusion(Graph([], nodes=1), 1)):
        found = conditioning(operator)
        assert found.condition_number == 1
        assert (found.almost_rank_one.tail, found.almost_rank_one.ceiling) == (0, 0)
        assert found.almost_rank_one.step == 0
        assert found.almost_rank_one.floor is None, (
            "sqrt(2) times the one singular value is above a step of 0"
        )
        assert any(s.endswith("says nothing here: there is one cell.") for s in found.sentences)
    nothing = conditioning(linear([[0, 0]], Line(2)))
    assert nothing.condition_number == math.inf
    assert (nothing.rank, nothing.unread) == (0, 2)


def test_values_of_the_classical_guarantees_hold_where_they_speak(rng: np.random.Generator) -> None:
    """Columns that are nearly orthogonal: R is as near as stated; of heat both theorems say nothing."""
    columns = np.linalg.qr(rng.standard_normal((40, 40)))[0][:, :12] + 0.004
    matrix = linear(columns / np.linalg.norm(columns, axis=0), Line(12))
    found = conditioning(matrix)
    truth = np.zeros(12)
    truth[[2, 9]] = 0.5, 0.8
    noise = rng.standard_normal(40)
    radius = 0.1
    y = matrix.readings(truth) + radius * noise / np.linalg.norm(noise)
    answer = recover(matrix, y, radius=radius * (1 + 1e-9)).estimate
    most = found.isometry_error(2, radius)
    assert np.linalg.norm(answer - truth) <= most < 10 * radius
    assert found.coherence_error(2, radius) == pytest.approx(1.5**0.5 * radius)
    heat = conditioning(heat_line(sources=100, sensors=50, diffusion_time=0.05))
    assert heat.isometry_error(1, radius) == heat.coherence_error(1, radius) == math.inf

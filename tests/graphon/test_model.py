"""A block graphon is what it says: values checked against integrals, wrong ones refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.graphon.model import BlockGraphon, norm

pytestmark = pytest.mark.unit

THREE = BlockGraphon([[0.5, 0.1, 0.0], [0.1, 0.9, 0.2], [0.0, 0.2, 0.4]], [0.5, 0.3, 0.2])


def test_shares_are_equal_unless_given() -> None:
    assert BlockGraphon(np.eye(4)).shares.tolist() == [0.25] * 4
    assert THREE.shares.tolist() == [0.5, 0.3, 0.2]
    assert THREE.k == 3


def test_density_and_norm_are_integrals() -> None:
    # All block ends are multiples of 1/10, so the midpoints of 10 x 10 squares integrate exactly.
    x = (np.arange(10) + 0.5) / 10
    values = np.asarray(THREE.probability(x[:, None], x[None, :]))
    assert values.shape == (10, 10)
    assert THREE.density == pytest.approx(values.mean(), rel=1e-14)
    assert norm(THREE) == pytest.approx(np.sqrt((values**2).mean()), rel=1e-14)
    assert norm(THREE) > THREE.density  # Jensen, strict unless constant


def test_blocks_lie_side_by_side() -> None:
    assert THREE.block([0.0, 0.49, 0.5, 0.79, 0.81, 1.0]).tolist() == [0, 0, 1, 1, 2, 2]
    assert THREE.probability(0.1, 0.6) == 0.1
    with pytest.raises(InvalidParameter, match=r"positions must lie in \[0, 1\]"):
        THREE.block(1.5)


def test_arrays_are_locked_and_copies_too() -> None:
    given = np.array([[0.5]])
    graphon = BlockGraphon(given)
    given[0, 0] = 0.1
    assert graphon.matrix[0, 0] == 0.5
    again = pickle.loads(pickle.dumps(THREE))  # noqa: S301 - our own
    assert again == THREE
    assert hash(again) == hash(THREE)
    assert again != graphon
    for array in (again.matrix, again.shares):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize(
    ("matrix", "shares", "rule"),
    [
        ([[0.1, 0.2]], None, "must be k x k"),
        (np.zeros((0, 0)), None, "k at least 1"),
        ([[1.5]], None, r"lie in \[0, 1\], got 1.5 at \(0, 0\)"),
        ([[np.nan]], None, r"lie in \[0, 1\], got nan"),
        ([[0.1, 0.2], [0.3, 0.1]], None, "must be symmetric"),
        ([[0.1]], [0.5, 0.5], "each of 1 blocks"),
        (np.eye(2), [0.5, 0.6], "sum to 1"),
        (np.eye(2), [1.0, 0.0], "must be positive"),
        (np.eye(2), [np.nan, 1.0], "must be positive"),
    ],
)
def test_what_is_no_model_is_refused(matrix: object, shares: object, rule: str) -> None:
    with pytest.raises(InvalidParameter, match=rule):
        BlockGraphon(matrix, shares)  # type: ignore[arg-type]


def test_rounding_is_no_asymmetry() -> None:
    matrix = np.array([[0.1, 0.3], [0.3 + 1e-12, 0.2]])
    assert np.array_equal(BlockGraphon(matrix).matrix, BlockGraphon(matrix).matrix.T)

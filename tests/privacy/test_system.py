"""System noise: nobody chose it, nobody can draw it again."""

from __future__ import annotations

import multiprocessing
from typing import Any

import pytest

from sfumato.errors import InvalidParameter
from sfumato.privacy import SystemNoise

pytestmark = pytest.mark.system


def _drawn(pipe: Any) -> None:
    noise = SystemNoise()
    pipe.send(
        [
            noise.laplace(2**40, 8).tolist(),
            noise.gaussian(2**30, 8).tolist(),
            noise.rounded_gaussian(2**12, 8).tolist(),
            noise.uniform(2**60, 8),
        ]
    )


@pytest.mark.fault
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_two_forks_differ() -> None:
    """Threat S5: a child that inherits the state of a generator would repeat its parent."""
    SystemNoise().laplace(2**40, 8)  # so that there is a state to inherit
    seen = []
    for _ in range(2):
        here, there = multiprocessing.Pipe()
        child = multiprocessing.get_context("fork").Process(target=_drawn, args=(there,))
        child.start()
        seen.append(here.recv())
        child.join()
    for a, b in zip(*seen, strict=True):
        # Eight draws from at least 2**12 values each: equal by chance once in 2**80.
        assert a != b


@pytest.mark.unit
def test_sizes_and_bounds() -> None:
    noise = SystemNoise()
    assert noise.distance is None
    assert not noise.known
    assert noise.laplace(4, 0).shape == (0,)
    assert noise.rounded_gaussian(4, 0).shape == (0,)
    assert noise.uniform(1, 3) == [0, 0, 0]
    with pytest.raises(InvalidParameter, match="at least 0, got -1"):
        noise.laplace(4, -1)
    with pytest.raises(InvalidParameter, match="at least 0, got -1"):
        noise.rounded_gaussian(4, -1)
    with pytest.raises(InvalidParameter, match="do not exist"):
        noise.uniform(0, 1)

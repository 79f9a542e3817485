"""The protocol of noise: two sources behind it, `SystemNoise` for releases and `KeyedNoise` for sensors."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

from sfumato._types import IntArray
from sfumato.privacy.accounting.numbers import Number


class Noise(Protocol):
    """A source of integer noise. Parameters are doubles held as fractions; sizes are public."""

    @property
    def distance(self) -> Fraction | None:
        """Statistical distance of one draw to its law; None when it has exactly that law."""

    @property
    def known(self) -> bool:
        """Whether somebody chose the stream, so that it can come again: good for rehearsals only."""

    def laplace(self, scale: Number, size: int) -> IntArray:
        """Draws of `LaplaceLaw(scale)`."""

    def gaussian(self, sigma: Number, size: int) -> IntArray:
        """Draws of `GaussianLaw(sigma)`, the discrete Gaussian."""

    def rounded_gaussian(self, sigma: Number, size: int) -> IntArray:
        """Draws of `RoundedGaussianLaw(sigma)`, a continuous Gaussian rounded to integers."""

    def uniform(self, below: int, size: int) -> list[int]:
        """Integers from 0 to below - 1, all equally likely."""

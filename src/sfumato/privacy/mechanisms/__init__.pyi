from .discrete_gaussian import DiscreteGaussian
from .discrete_laplace import DiscreteLaplace
from .permute_and_flip import PermuteAndFlip
from .protocol import Mechanism
from .randomised_response import RandomisedResponse
from .rounded_gaussian import RoundedGaussian
from .shared_laplace import SharedLaplace, noisy_sum

__all__ = [
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Mechanism",
    "PermuteAndFlip",
    "RandomisedResponse",
    "RoundedGaussian",
    "SharedLaplace",
    "noisy_sum",
]

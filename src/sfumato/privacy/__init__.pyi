from .accounting.calibration import gaussian_sigma, laplace_scale
from .accounting.composition import compose
from .accounting.conversion import as_approx
from .accounting.guarantee import Claim, GaussianDP, Guarantee, RandomApproxDP, RandomPureDP
from .accounting.losses import ZCDP, ApproxDP, Loss, PureDP
from .accounting.neighbors import (
    AddRemoveUser,
    FlippedEdge,
    MovedMass,
    Neighbors,
    ReplaceUser,
    SwappedCells,
)
from .accounting.trust import Joint, Shuffled
from .ledger.guarded import REHEARSAL, UNITS, Bound, Guarded, guard, histogram
from .ledger.ledger import Ledger
from .ledger.release import Release, read_release
from .mechanisms.discrete_gaussian import DiscreteGaussian
from .mechanisms.discrete_laplace import DiscreteLaplace
from .mechanisms.permute_and_flip import PermuteAndFlip
from .mechanisms.protocol import Mechanism
from .mechanisms.randomised_response import RandomisedResponse
from .mechanisms.rounded_gaussian import RoundedGaussian
from .mechanisms.shared_laplace import SharedLaplace
from .noise.keyed import KeyedNoise
from .noise.laws import GaussianLaw, LaplaceLaw, RoundedGaussianLaw
from .noise.protocol import Noise
from .noise.system import SystemNoise

__all__ = [
    "REHEARSAL",
    "UNITS",
    "ZCDP",
    "AddRemoveUser",
    "ApproxDP",
    "Bound",
    "Claim",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "FlippedEdge",
    "GaussianDP",
    "GaussianLaw",
    "Guarantee",
    "Guarded",
    "Joint",
    "KeyedNoise",
    "LaplaceLaw",
    "Ledger",
    "Loss",
    "Mechanism",
    "MovedMass",
    "Neighbors",
    "Noise",
    "PermuteAndFlip",
    "PureDP",
    "RandomApproxDP",
    "RandomPureDP",
    "RandomisedResponse",
    "Release",
    "ReplaceUser",
    "RoundedGaussian",
    "RoundedGaussianLaw",
    "SharedLaplace",
    "Shuffled",
    "SwappedCells",
    "SystemNoise",
    "as_approx",
    "compose",
    "gaussian_sigma",
    "guard",
    "histogram",
    "laplace_scale",
    "read_release",
]

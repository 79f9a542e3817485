from .accounting.calibration import gaussian_delta, gaussian_sigma, laplace_scale
from .accounting.composition import advanced, compose, consequence, group, parallel, pld, replaced
from .accounting.concentration import (
    bernstein_tail,
    fano_error,
    hoeffding_tail,
    le_cam_risk,
    least_samples,
    overlap_from_affinity,
    overlap_from_total_variation,
)
from .accounting.conversion import as_approx, as_zcdp, rho_within
from .accounting.divergences import (
    approximate_max_divergence,
    hockey_stick,
    kl_divergence,
    max_divergence,
    renyi_divergence,
    total_variation,
)
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
from .accounting.profile import privacy_profile
from .accounting.units import Clock
from .ledger.budget import Spent
from .ledger.guarded import REHEARSAL, UNITS, Bound, Guarded, guard, histogram
from .ledger.ledger import Ledger
from .ledger.release import Entry, Release, read_release
from .ledger.statement import LedgerStatement
from .mechanisms.additive import (
    DiscreteGaussian,
    DiscreteLaplace,
    Mechanism,
    PermuteAndFlip,
    RandomisedResponse,
    RoundedGaussian,
)
from .noise.keyed import KeyedNoise, keyed_draws
from .noise.laws import GaussianLaw, LaplaceLaw, Law, RoundedGaussianLaw
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
    "Clock",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Entry",
    "FlippedEdge",
    "GaussianDP",
    "GaussianLaw",
    "Guarantee",
    "Guarded",
    "KeyedNoise",
    "LaplaceLaw",
    "Law",
    "Ledger",
    "LedgerStatement",
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
    "Spent",
    "SwappedCells",
    "SystemNoise",
    "advanced",
    "approximate_max_divergence",
    "as_approx",
    "as_zcdp",
    "bernstein_tail",
    "compose",
    "consequence",
    "fano_error",
    "gaussian_delta",
    "gaussian_sigma",
    "group",
    "guard",
    "histogram",
    "hockey_stick",
    "hoeffding_tail",
    "keyed_draws",
    "kl_divergence",
    "laplace_scale",
    "le_cam_risk",
    "least_samples",
    "max_divergence",
    "overlap_from_affinity",
    "overlap_from_total_variation",
    "parallel",
    "pld",
    "privacy_profile",
    "read_release",
    "renyi_divergence",
    "replaced",
    "rho_within",
    "total_variation",
]

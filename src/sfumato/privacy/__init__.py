"""Guarantees and neighbor relations, composition, calibration, noise, mechanisms, Guarded and the Ledger."""

from sfumato.privacy.budget import Spent
from sfumato.privacy.calibration import gaussian_delta, gaussian_sigma, laplace_scale
from sfumato.privacy.composition import advanced, compose, consequence, group, parallel, pld, replaced
from sfumato.privacy.concentration import (
    bernstein_tail,
    fano_error,
    hoeffding_tail,
    le_cam_risk,
    least_samples,
    overlap_from_affinity,
    overlap_from_total_variation,
)
from sfumato.privacy.conversion import as_approx, as_zcdp, rho_within
from sfumato.privacy.divergences import (
    approximate_max_divergence,
    hockey_stick,
    kl_divergence,
    max_divergence,
    renyi_divergence,
    total_variation,
)
from sfumato.privacy.guarantee import Claim, GaussianDP, Guarantee, RandomApproxDP, RandomPureDP
from sfumato.privacy.guarded import REHEARSAL, Bound, Guarded, guard, histogram
from sfumato.privacy.keyed import KeyedNoise, keyed_draws
from sfumato.privacy.laws import GaussianLaw, LaplaceLaw, Law, RoundedGaussianLaw
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.losses import ZCDP, ApproxDP, Loss, PureDP
from sfumato.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Mechanism,
    PermuteAndFlip,
    RandomisedResponse,
    RoundedGaussian,
)
from sfumato.privacy.neighbors import (
    AddRemoveUser,
    FlippedEdge,
    MovedMass,
    Neighbors,
    ReplaceUser,
    SwappedCells,
)
from sfumato.privacy.noise import Noise
from sfumato.privacy.profile import privacy_profile
from sfumato.privacy.release import Entry, Release, read_release
from sfumato.privacy.statement import Statement
from sfumato.privacy.system import SystemNoise
from sfumato.privacy.units import Clock

UNITS = 2**20
"""Indivisible units of mass that every user owns."""

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
    "Statement",
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

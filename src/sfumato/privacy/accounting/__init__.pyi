from .calibration import gaussian_delta, gaussian_sigma, laplace_scale
from .codec import (
    LOSSES,
    canonical,
    decode_guarantee,
    decode_loss,
    decode_neighbors,
    encode,
    encode_guarantee,
    parameters,
)
from .composition import advanced, compose, consequence, group, parallel, pld, replaced
from .concentration import (
    fano_error,
    least_samples,
)
from .conversion import as_approx, as_zcdp, rho_within
from .divergences import (
    approximate_max_divergence,
    hockey_stick,
    kl_divergence,
    max_divergence,
    renyi_divergence,
    total_variation,
)
from .guarantee import Claim, GaussianDP, Guarantee, Model, RandomApproxDP, RandomPureDP
from .losses import ZCDP, ApproxDP, Loss, PureDP, nonnegative, positive, probability
from .neighbors import AddRemoveUser, FlippedEdge, MovedMass, Neighbors, ReplaceUser, SwappedCells
from .numbers import WORKING, Number, double_above, exact, plain, real, sqrt_above, up
from .profile import privacy_profile
from .units import Clock, ValueColumns, period_of

__all__ = [
    "LOSSES",
    "WORKING",
    "ZCDP",
    "AddRemoveUser",
    "ApproxDP",
    "Claim",
    "Clock",
    "FlippedEdge",
    "GaussianDP",
    "Guarantee",
    "Loss",
    "Model",
    "MovedMass",
    "Neighbors",
    "Number",
    "PureDP",
    "RandomApproxDP",
    "RandomPureDP",
    "ReplaceUser",
    "SwappedCells",
    "ValueColumns",
    "advanced",
    "approximate_max_divergence",
    "as_approx",
    "as_zcdp",
    "canonical",
    "compose",
    "consequence",
    "decode_guarantee",
    "decode_loss",
    "decode_neighbors",
    "double_above",
    "encode",
    "encode_guarantee",
    "exact",
    "fano_error",
    "gaussian_delta",
    "gaussian_sigma",
    "group",
    "hockey_stick",
    "kl_divergence",
    "laplace_scale",
    "least_samples",
    "max_divergence",
    "nonnegative",
    "parallel",
    "parameters",
    "period_of",
    "plain",
    "pld",
    "positive",
    "privacy_profile",
    "probability",
    "real",
    "renyi_divergence",
    "replaced",
    "rho_within",
    "sqrt_above",
    "total_variation",
    "up",
]

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
from .concentration import fano_error
from .guarantee import Model
from .losses import nonnegative, positive, probability
from .numbers import WORKING, Number, double_above, exact, plain, real, sqrt_above, up
from .units import period_of

__all__ = [
    "LOSSES",
    "WORKING",
    "Model",
    "Number",
    "canonical",
    "decode_guarantee",
    "decode_loss",
    "decode_neighbors",
    "double_above",
    "encode",
    "encode_guarantee",
    "exact",
    "fano_error",
    "nonnegative",
    "parameters",
    "period_of",
    "plain",
    "positive",
    "probability",
    "real",
    "sqrt_above",
    "up",
]

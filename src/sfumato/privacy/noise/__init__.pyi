from .keyed import EPOCH_BYTES, KEY_BYTES, KeyedNoise, derive_key, keyed_draws, keystream
from .laws import LARGEST_ROUNDED, GaussianLaw, LaplaceLaw, Law, RoundedGaussianLaw
from .lookup import look_up
from .polya_law import PolyaLaw
from .protocol import Noise
from .shares import (
    SharedNoise,
    SimulatedShares,
    draw_polya,
    draw_shares,
    field_bits,
    from_field,
    to_field,
    wrap_chance,
)
from .splitting import MOST_BITS, add_messages, centred, split_into_messages
from .system import SystemNoise
from .tables import Sampler, sampler
from .variance_gamma import VarianceGamma

__all__ = [
    "EPOCH_BYTES",
    "KEY_BYTES",
    "LARGEST_ROUNDED",
    "MOST_BITS",
    "GaussianLaw",
    "KeyedNoise",
    "LaplaceLaw",
    "Law",
    "Noise",
    "PolyaLaw",
    "RoundedGaussianLaw",
    "Sampler",
    "SharedNoise",
    "SimulatedShares",
    "SystemNoise",
    "VarianceGamma",
    "add_messages",
    "centred",
    "derive_key",
    "draw_polya",
    "draw_shares",
    "field_bits",
    "from_field",
    "keyed_draws",
    "keystream",
    "look_up",
    "sampler",
    "split_into_messages",
    "to_field",
    "wrap_chance",
]

from .keyed import EPOCH_BYTES, KEY_BYTES, KeyedNoise, derive_key, keyed_draws, keystream
from .laws import LARGEST_ROUNDED, GaussianLaw, LaplaceLaw, Law, RoundedGaussianLaw
from .lookup import look_up
from .protocol import Noise
from .system import SystemNoise
from .tables import Sampler, sampler

__all__ = [
    "EPOCH_BYTES",
    "KEY_BYTES",
    "LARGEST_ROUNDED",
    "GaussianLaw",
    "KeyedNoise",
    "LaplaceLaw",
    "Law",
    "Noise",
    "RoundedGaussianLaw",
    "Sampler",
    "SystemNoise",
    "derive_key",
    "keyed_draws",
    "keystream",
    "look_up",
    "sampler",
]

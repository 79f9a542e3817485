from .keyed import EPOCH_BYTES, KEY_BYTES, derive_key, keystream
from .laws import LARGEST_ROUNDED, LaplaceLaw
from .lookup import look_up
from .tables import Sampler, sampler

__all__ = [
    "EPOCH_BYTES",
    "KEY_BYTES",
    "LARGEST_ROUNDED",
    "LaplaceLaw",
    "Sampler",
    "derive_key",
    "keystream",
    "look_up",
    "sampler",
]

from .conditioning import Conditioning
from .field import fit_field
from .field_sensors import FaultySensor, suspects
from .fitted_field import Field
from .misfit import Misfit
from .mixing import Mixing
from .resolution import Resolution

__all__ = [
    "Conditioning",
    "FaultySensor",
    "Field",
    "Misfit",
    "Mixing",
    "Resolution",
    "fit_field",
    "suspects",
]

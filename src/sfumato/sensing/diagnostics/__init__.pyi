from .conditioning import Conditioning
from .field import fit_field
from .field_sensors import FaultySensor, faulty_sensors
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
    "faulty_sensors",
    "fit_field",
]

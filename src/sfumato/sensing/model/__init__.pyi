from .changes import Largest
from .sensitivity import Sensitivity, per_sensor_loss
from .sensors import Sensors
from .site import Site, read_site

__all__ = [
    "Largest",
    "Sensitivity",
    "Sensors",
    "Site",
    "per_sensor_loss",
    "read_site",
]

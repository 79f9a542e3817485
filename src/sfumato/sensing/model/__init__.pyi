from .changes import Largest
from .sensitivity import Sensitivity, per_sensor_loss
from .sensors import Sensors
from .site import Site, part_of_site, read_site

__all__ = [
    "Largest",
    "Sensitivity",
    "Sensors",
    "Site",
    "part_of_site",
    "per_sensor_loss",
    "read_site",
]

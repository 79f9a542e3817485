from .payer import Windows
from .plan import plan_placement, plan_sensors
from .release import (
    make_device_key,
    make_master_key,
    price_release,
    release_readings,
    unseal_readings,
)
from .site import describe_site, open_ledger, simulate_site

__all__ = [
    "Windows",
    "describe_site",
    "make_device_key",
    "make_master_key",
    "open_ledger",
    "plan_placement",
    "plan_sensors",
    "price_release",
    "release_readings",
    "simulate_site",
    "unseal_readings",
]

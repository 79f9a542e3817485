from .keys import (
    Device,
    MasterKey,
    is_locked,
    new_master_key,
    read_master_key,
    write_device_key,
    write_master_key,
)
from .noise_plan import Calibration, NoisePlan, plan_noise, read_noise_plan, unit_of
from .readings import (
    FORMAT,
    Readings,
    Snapshot,
    plan,
    quantise,
    read_readings,
    release_snapshot,
    unseal_snapshot,
)
from .rounds import (
    DAY,
    RoundsCost,
    best_guess,
    cost_after,
)
from .seal import Seal, Unsealed
from .windows import window_ledger

__all__ = [
    "DAY",
    "FORMAT",
    "Calibration",
    "Device",
    "MasterKey",
    "NoisePlan",
    "Readings",
    "RoundsCost",
    "Seal",
    "Snapshot",
    "Unsealed",
    "best_guess",
    "cost_after",
    "is_locked",
    "new_master_key",
    "plan",
    "plan_noise",
    "quantise",
    "read_master_key",
    "read_noise_plan",
    "read_readings",
    "release_snapshot",
    "unit_of",
    "unseal_snapshot",
    "window_ledger",
    "write_device_key",
    "write_master_key",
]

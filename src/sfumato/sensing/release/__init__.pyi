from .keys import (
    Device,
    MasterKey,
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
    one_sensor_loss,
    share_of,
)
from .seal import Seal, Unsealed
from .windows import describe_window, parse_window, window_ledger, window_of

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
    "describe_window",
    "new_master_key",
    "one_sensor_loss",
    "parse_window",
    "plan",
    "plan_noise",
    "quantise",
    "read_master_key",
    "read_noise_plan",
    "read_readings",
    "release_snapshot",
    "share_of",
    "unit_of",
    "unseal_snapshot",
    "window_ledger",
    "window_of",
    "write_device_key",
    "write_master_key",
]

from .check_keys import CheckKeys, check_keys_of, read_check_keys, write_check_keys
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
    share_of,
)
from .seal import Seal, Unsealed
from .windows import describe_window, parse_window, window_ledger, window_of, window_start

__all__ = [
    "DAY",
    "FORMAT",
    "Calibration",
    "CheckKeys",
    "Device",
    "MasterKey",
    "NoisePlan",
    "Readings",
    "RoundsCost",
    "Seal",
    "Snapshot",
    "Unsealed",
    "best_guess",
    "check_keys_of",
    "cost_after",
    "describe_window",
    "is_locked",
    "new_master_key",
    "parse_window",
    "plan",
    "plan_noise",
    "quantise",
    "read_check_keys",
    "read_master_key",
    "read_noise_plan",
    "read_readings",
    "release_snapshot",
    "share_of",
    "unit_of",
    "unseal_snapshot",
    "window_ledger",
    "window_of",
    "window_start",
    "write_check_keys",
    "write_device_key",
    "write_master_key",
]

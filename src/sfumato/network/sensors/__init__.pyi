from .config import InputConfig, SensorConfig, read_sensor_config
from .daemon import SensorRun, keep_rounds, run_sensor
from .microcontroller import (
    DeviceLattice,
    DeviceTable,
    device_lattice,
    device_table,
    write_device_table,
)
from .plan import SensorPlan, describe_sensor, plan_sensor
from .render import plan_lines, run_line, table_lines, unsealed_lines
from .schedule import Schedule, SystemClock
from .sensor import Sensor, checked

__all__ = [
    "DeviceLattice",
    "DeviceTable",
    "InputConfig",
    "Schedule",
    "Sensor",
    "SensorConfig",
    "SensorPlan",
    "SensorRun",
    "SystemClock",
    "checked",
    "describe_sensor",
    "device_lattice",
    "device_table",
    "keep_rounds",
    "plan_lines",
    "plan_sensor",
    "read_sensor_config",
    "run_line",
    "run_sensor",
    "table_lines",
    "unsealed_lines",
    "write_device_table",
]

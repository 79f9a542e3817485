"""Sensors that add noise before they send: operators, sensitivity, release, recovery, unsealing, limits."""

from sfumato.sensing.bregman import BregmanPath, bregman
from sfumato.sensing.build import graph_diffusion, heat_line, heat_plane, linear
from sfumato.sensing.check import Check, check
from sfumato.sensing.community import CommunityAnswer, communities, community_of
from sfumato.sensing.conditioning import Conditioning, conditioning
from sfumato.sensing.distance import emd_of
from sfumato.sensing.keys import (
    Device,
    MasterKey,
    new_master_key,
    read_master_key,
    write_device_key,
    write_master_key,
)
from sfumato.sensing.limits import (
    Asymptotic,
    LowerBound,
    RecoveryBound,
    papers_radius_coverage,
    private_recovery_bound,
    recovery_bound,
    recovery_lower_bound,
    tables,
    two_point_lower_bound,
)
from sfumato.sensing.operators import GraphDiffusion, HeatLine, HeatPlane, Matrix, Operator
from sfumato.sensing.plan import NoisePlan, plan_noise, unit_of
from sfumato.sensing.readings import Readings, Snapshot, plan, read_readings, release, unseal_snapshot
from sfumato.sensing.recover import recover
from sfumato.sensing.recovery import Recovery
from sfumato.sensing.saved_recovery import SavedRecovery, read_recovery
from sfumato.sensing.seal import Seal, Unsealed
from sfumato.sensing.sensitivity import Sensitivity, per_sensor_loss, sensitivity
from sfumato.sensing.sensors import Sensors
from sfumato.sensing.simulate import block_graph, made_up_sources
from sfumato.sensing.site import Site, read_site
from sfumato.sensing.windows import describe_window, parse_window, window_ledger, window_of

__all__ = [
    "Asymptotic",
    "BregmanPath",
    "Check",
    "CommunityAnswer",
    "Conditioning",
    "Device",
    "GraphDiffusion",
    "HeatLine",
    "HeatPlane",
    "LowerBound",
    "MasterKey",
    "Matrix",
    "NoisePlan",
    "Operator",
    "Readings",
    "Recovery",
    "RecoveryBound",
    "SavedRecovery",
    "Seal",
    "Sensitivity",
    "Sensors",
    "Site",
    "Snapshot",
    "Unsealed",
    "block_graph",
    "bregman",
    "check",
    "communities",
    "community_of",
    "conditioning",
    "describe_window",
    "emd_of",
    "graph_diffusion",
    "heat_line",
    "heat_plane",
    "linear",
    "made_up_sources",
    "new_master_key",
    "papers_radius_coverage",
    "parse_window",
    "per_sensor_loss",
    "plan",
    "plan_noise",
    "private_recovery_bound",
    "read_master_key",
    "read_readings",
    "read_recovery",
    "read_site",
    "recover",
    "recovery_bound",
    "recovery_lower_bound",
    "release",
    "sensitivity",
    "tables",
    "two_point_lower_bound",
    "unit_of",
    "unseal_snapshot",
    "window_ledger",
    "window_of",
    "write_device_key",
    "write_master_key",
]

"""Sensors that add noise before they send: operators, sensitivity, release, recovery, unsealing, limits."""

from sfumato.sensing.answer import Answer
from sfumato.sensing.bands import Band, bands, community_beliefs
from sfumato.sensing.bayes_median import bayes_median
from sfumato.sensing.bregman import BregmanPath, bregman
from sfumato.sensing.build import graph_diffusion, heat_line, heat_plane, linear
from sfumato.sensing.check import Check, check
from sfumato.sensing.combine import combine
from sfumato.sensing.community import CommunityAnswer, communities, community_of
from sfumato.sensing.conditioning import Conditioning, conditioning
from sfumato.sensing.design import Curve, Design, error_curve
from sfumato.sensing.distance import emd_of
from sfumato.sensing.estimate import Estimate
from sfumato.sensing.field import Field, fit_field
from sfumato.sensing.field_sensors import Suspect, suspects, without_offset
from sfumato.sensing.forecast import ErrorForecast, ErrorRatio, RecoveryForecast, Scene, forecast_recovery
from sfumato.sensing.keys import (
    Device,
    MasterKey,
    new_master_key,
    read_master_key,
    write_device_key,
    write_master_key,
)
from sfumato.sensing.limits import (
    LowerBound,
    RecoveryBound,
    papers_radius_coverage,
    private_recovery_bound,
    recovery_bound,
    recovery_lower_bound,
    two_point_lower_bound,
)
from sfumato.sensing.misfit import Misfit, misfit
from sfumato.sensing.mixing import Mixing
from sfumato.sensing.mixture import Mixture, mixture
from sfumato.sensing.need import Need, needed
from sfumato.sensing.off_grid import OffGrid, off_grid
from sfumato.sensing.operators import GraphDiffusion, HeatLine, HeatPlane, Matrix, Operator
from sfumato.sensing.papers_bounds import PapersBounds, papers_bounds
from sfumato.sensing.papers_tables import Asymptotic, tables
from sfumato.sensing.placement import Placement, PlacementGain, place_sensors, simulated_gain
from sfumato.sensing.plan import NoisePlan, plan_noise, unit_of
from sfumato.sensing.posterior import Posterior, posterior
from sfumato.sensing.ratio import Ratio
from sfumato.sensing.readings import Readings, Snapshot, plan, read_readings, release, unseal_snapshot
from sfumato.sensing.recover import recover
from sfumato.sensing.recovery import Recovery
from sfumato.sensing.resolution import Resolution, resolution
from sfumato.sensing.rounds import RoundsCost, RoundsNoise, cost_after, noise_for
from sfumato.sensing.saved_recovery import SavedRecovery, read_recovery
from sfumato.sensing.seal import Seal, Unsealed
from sfumato.sensing.sensitivity import Sensitivity, per_sensor_loss, sensitivity
from sfumato.sensing.sensors import Sensors
from sfumato.sensing.simulate import block_graph, made_up_site, made_up_sources
from sfumato.sensing.site import Site, read_site
from sfumato.sensing.track import Track, track
from sfumato.sensing.whisper import (
    Spread,
    WhisperPosterior,
    start_loss,
    whisper_cascade,
    whisper_posterior,
    whisper_release,
    whisper_spread,
)
from sfumato.sensing.windows import describe_window, parse_window, window_ledger, window_of

__all__ = [
    "Answer",
    "Asymptotic",
    "Band",
    "BregmanPath",
    "Check",
    "CommunityAnswer",
    "Conditioning",
    "Curve",
    "Design",
    "Device",
    "ErrorForecast",
    "ErrorRatio",
    "Estimate",
    "Field",
    "GraphDiffusion",
    "HeatLine",
    "HeatPlane",
    "LowerBound",
    "MasterKey",
    "Matrix",
    "Misfit",
    "Mixing",
    "Mixture",
    "Need",
    "NoisePlan",
    "OffGrid",
    "Operator",
    "PapersBounds",
    "Placement",
    "PlacementGain",
    "Posterior",
    "Ratio",
    "Readings",
    "Recovery",
    "RecoveryBound",
    "RecoveryForecast",
    "Resolution",
    "RoundsCost",
    "RoundsNoise",
    "SavedRecovery",
    "Scene",
    "Seal",
    "Sensitivity",
    "Sensors",
    "Site",
    "Snapshot",
    "Spread",
    "Suspect",
    "Track",
    "Unsealed",
    "WhisperPosterior",
    "bands",
    "bayes_median",
    "block_graph",
    "bregman",
    "check",
    "combine",
    "communities",
    "community_beliefs",
    "community_of",
    "conditioning",
    "cost_after",
    "describe_window",
    "emd_of",
    "error_curve",
    "fit_field",
    "forecast_recovery",
    "graph_diffusion",
    "heat_line",
    "heat_plane",
    "linear",
    "made_up_site",
    "made_up_sources",
    "misfit",
    "mixture",
    "needed",
    "new_master_key",
    "noise_for",
    "off_grid",
    "papers_bounds",
    "papers_radius_coverage",
    "parse_window",
    "per_sensor_loss",
    "place_sensors",
    "plan",
    "plan_noise",
    "posterior",
    "private_recovery_bound",
    "read_master_key",
    "read_readings",
    "read_recovery",
    "read_site",
    "recover",
    "recovery_bound",
    "recovery_lower_bound",
    "release",
    "resolution",
    "sensitivity",
    "simulated_gain",
    "start_loss",
    "suspects",
    "tables",
    "track",
    "two_point_lower_bound",
    "unit_of",
    "unseal_snapshot",
    "whisper_cascade",
    "whisper_posterior",
    "whisper_release",
    "whisper_spread",
    "window_ledger",
    "window_of",
    "without_offset",
    "write_device_key",
    "write_master_key",
]

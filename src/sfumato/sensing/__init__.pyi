from .diagnostics.conditioning import conditioning
from .diagnostics.field import fit_field
from .diagnostics.misfit import misfit
from .diagnostics.resolution import resolution
from .model.operators.graph_diffusion import GraphDiffusion, graph_diffusion
from .model.operators.heat_line import HeatLine, heat_line
from .model.operators.heat_plane import HeatPlane, heat_plane
from .model.operators.matrix import Matrix, linear
from .model.operators.protocol import Operator
from .model.operators.registry import register_operator
from .model.sensitivity import Sensitivity, per_sensor_loss, sensitivity
from .model.sensors import Sensors
from .model.site import Site, read_site
from .pipeline.check import check_recovery
from .pipeline.recover import recover_sources
from .pipeline.release import release_readings
from .pipeline.track import track_sources
from .pipeline.whisper import find_whisper, release_whisper
from .planning.design import Curve, Design, error_curve
from .planning.forecast import ErrorForecast, ErrorRatio, RecoveryForecast, Scene, forecast_recovery
from .planning.limits import (
    LowerBound,
    RecoveryBound,
    papers_radius_coverage,
    private_recovery_bound,
    recovery_bound,
    recovery_lower_bound,
    two_point_lower_bound,
)
from .planning.papers_bounds import PapersBounds, papers_bounds
from .planning.papers_tables import Asymptotic
from .planning.placement import Placement, PlacementGain, place_sensors, simulated_gain
from .planning.ratio import Ratio
from .planning.requirement import Requirement, required
from .planning.synthetic import block_graph, synthetic_site, synthetic_sources
from .recovery.answer import Answer, CredibleRegion
from .recovery.certificate import Recovery
from .recovery.distance import emd_of
from .recovery.estimate import Estimate
from .recovery.estimators.bayes_median import bayes_median
from .recovery.estimators.least_mass import recover
from .recovery.estimators.mixture import mixture
from .recovery.estimators.off_grid import off_grid
from .recovery.estimators.posterior import posterior
from .recovery.estimators.registry import Estimator, RecoveryProblem, register_estimator
from .recovery.verify import check
from .release.keys import (
    Device,
    MasterKey,
    new_master_key,
    read_master_key,
    write_device_key,
    write_master_key,
)
from .release.noise_plan import NoisePlan, plan_noise, unit_of
from .release.readings import (
    Readings,
    Snapshot,
    plan,
    read_readings,
    release_snapshot,
    unseal_snapshot,
)
from .release.rounds import RoundsCost, RoundsNoise, cost_after, noise_for
from .release.seal import Seal, Unsealed
from .release.windows import describe_window, parse_window, window_ledger, window_of
from .results.check import CheckResult
from .results.recovery import RecoveryResult, read_recovery
from .results.track import TrackResult, read_track
from .results.whisper import WhisperResult

__all__ = [
    "Answer",
    "Asymptotic",
    "CheckResult",
    "CredibleRegion",
    "Curve",
    "Design",
    "Device",
    "ErrorForecast",
    "ErrorRatio",
    "Estimate",
    "Estimator",
    "GraphDiffusion",
    "HeatLine",
    "HeatPlane",
    "LowerBound",
    "MasterKey",
    "Matrix",
    "NoisePlan",
    "Operator",
    "PapersBounds",
    "Placement",
    "PlacementGain",
    "Ratio",
    "Readings",
    "Recovery",
    "RecoveryBound",
    "RecoveryForecast",
    "RecoveryProblem",
    "RecoveryResult",
    "Requirement",
    "RoundsCost",
    "RoundsNoise",
    "Scene",
    "Seal",
    "Sensitivity",
    "Sensors",
    "Site",
    "Snapshot",
    "TrackResult",
    "Unsealed",
    "WhisperResult",
    "bayes_median",
    "block_graph",
    "check",
    "check_recovery",
    "conditioning",
    "cost_after",
    "describe_window",
    "emd_of",
    "error_curve",
    "find_whisper",
    "fit_field",
    "forecast_recovery",
    "graph_diffusion",
    "heat_line",
    "heat_plane",
    "linear",
    "misfit",
    "mixture",
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
    "read_track",
    "recover",
    "recover_sources",
    "recovery_bound",
    "recovery_lower_bound",
    "register_estimator",
    "register_operator",
    "release_readings",
    "release_snapshot",
    "release_whisper",
    "required",
    "resolution",
    "sensitivity",
    "simulated_gain",
    "synthetic_site",
    "synthetic_sources",
    "track_sources",
    "two_point_lower_bound",
    "unit_of",
    "unseal_snapshot",
    "window_ledger",
    "window_of",
    "write_device_key",
    "write_master_key",
]

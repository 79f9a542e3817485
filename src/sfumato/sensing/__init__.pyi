from .diagnostics.conditioning import Conditioning, conditioning
from .diagnostics.field import fit_field
from .diagnostics.field_sensors import FaultySensor, remove_offset, suspects
from .diagnostics.fitted_field import Field
from .diagnostics.misfit import Misfit, misfit
from .diagnostics.mixing import Mixing
from .diagnostics.resolution import Resolution, resolution
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
from .recovery.community import CommunityAnswer, communities, community_of
from .recovery.distance import emd_of
from .recovery.estimate import Estimate
from .recovery.estimators.bayes_median import bayes_median
from .recovery.estimators.credible import bands, community_beliefs
from .recovery.estimators.least_mass import recover
from .recovery.estimators.mixture import Mixture, mixture
from .recovery.estimators.off_grid import OffGrid, off_grid
from .recovery.estimators.posterior import posterior
from .recovery.estimators.source_posterior import SourcePosterior
from .recovery.verify import Check, check
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
from .results.recovery import RecoveryResult, read_recovery
from .tracking.average import combine
from .tracking.rounds import Track, track
from .whisper.answers import whisper_release
from .whisper.posterior import WhisperPosterior, start_loss, whisper_posterior
from .whisper.spread import Spread, whisper_cascade, whisper_spread

__all__ = [
    "Answer",
    "Asymptotic",
    "Check",
    "CommunityAnswer",
    "Conditioning",
    "CredibleRegion",
    "Curve",
    "Design",
    "Device",
    "ErrorForecast",
    "ErrorRatio",
    "Estimate",
    "FaultySensor",
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
    "NoisePlan",
    "OffGrid",
    "Operator",
    "PapersBounds",
    "Placement",
    "PlacementGain",
    "Ratio",
    "Readings",
    "Recovery",
    "RecoveryBound",
    "RecoveryForecast",
    "RecoveryResult",
    "Requirement",
    "Resolution",
    "RoundsCost",
    "RoundsNoise",
    "Scene",
    "Seal",
    "Sensitivity",
    "Sensors",
    "Site",
    "Snapshot",
    "SourcePosterior",
    "Spread",
    "Track",
    "Unsealed",
    "WhisperPosterior",
    "bands",
    "bayes_median",
    "block_graph",
    "check",
    "check_recovery",
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
    "recover",
    "recover_sources",
    "recovery_bound",
    "recovery_lower_bound",
    "register_operator",
    "release_readings",
    "release_snapshot",
    "remove_offset",
    "required",
    "resolution",
    "sensitivity",
    "simulated_gain",
    "start_loss",
    "suspects",
    "synthetic_site",
    "synthetic_sources",
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
    "write_device_key",
    "write_master_key",
]

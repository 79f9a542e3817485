from .diagnostics.conditioning import conditioning
from .diagnostics.misfit import misfit
from .diagnostics.resolution import resolution
from .model.operators.graph_diffusion import graph_diffusion
from .model.operators.heat_line import heat_line
from .model.operators.heat_plane import heat_plane
from .model.operators.matrix import linear
from .model.operators.protocol import Operator
from .model.operators.registry import register_operator
from .model.sensitivity import sensitivity
from .model.sensors import Sensors
from .model.site import Site, read_site
from .pipeline.calibrate import calibrate_site
from .pipeline.check import check_recovery
from .pipeline.keys import unseal_readings
from .pipeline.plan import plan_placement, plan_sensors
from .pipeline.recover import recover_sources
from .pipeline.recover_each import recover_rounds
from .pipeline.release import release_readings
from .pipeline.resume import resume_readings
from .pipeline.site import describe_site, open_ledger, simulate_site
from .pipeline.track import track_sources
from .pipeline.whisper import find_whisper
from .recovery.certificate import Recovery
from .recovery.distance import emd_of
from .recovery.estimators.bayes_median import bayes_median
from .recovery.estimators.least_mass import recover
from .recovery.estimators.mixture import mixture
from .recovery.estimators.off_grid import off_grid
from .recovery.estimators.posterior import posterior
from .recovery.estimators.registry import register_estimator
from .recovery.verify import check
from .release.noise_plan import NoisePlan
from .release.readings import Readings, plan, read_readings, release_snapshot
from .results.recovery import RecoveryResult, read_recovery
from .table_form import Columns

__all__ = [
    "Columns",
    "NoisePlan",
    "Operator",
    "Readings",
    "Recovery",
    "RecoveryResult",
    "Sensors",
    "Site",
    "bayes_median",
    "calibrate_site",
    "check",
    "check_recovery",
    "conditioning",
    "describe_site",
    "emd_of",
    "find_whisper",
    "graph_diffusion",
    "heat_line",
    "heat_plane",
    "linear",
    "misfit",
    "mixture",
    "off_grid",
    "open_ledger",
    "plan",
    "plan_placement",
    "plan_sensors",
    "posterior",
    "read_readings",
    "read_recovery",
    "read_site",
    "recover",
    "recover_rounds",
    "recover_sources",
    "register_estimator",
    "register_operator",
    "release_readings",
    "release_snapshot",
    "resolution",
    "resume_readings",
    "sensitivity",
    "simulate_site",
    "track_sources",
    "unseal_readings",
]

from .calibrate import calibrate_site
from .check import check_recovery
from .inputs import true_sources
from .keys import (
    last_steps,
    list_keys,
    make_check_keys,
    make_device_key,
    make_master_key,
    note_unsealing,
    retire_device_key,
    rotate_device_key,
    unseal_readings,
)
from .live import LiveReading, LiveRecovery, LiveRound, epsilon_after
from .payer import Windows
from .plan import plan_placement, plan_sensors
from .recover import recover_sources
from .recover_each import recover_rounds
from .release import check_note, price_release, release_readings
from .resume import resume_readings
from .site import describe_site, open_ledger, simulate_site, site_from_template
from .track import track_sources
from .whisper import (
    find_whisper,
    plan_whisper,
    release_whisper,
    simulate_whisper,
    whisper_cost,
)

__all__ = [
    "LiveReading",
    "LiveRecovery",
    "LiveRound",
    "Windows",
    "calibrate_site",
    "check_note",
    "check_recovery",
    "describe_site",
    "epsilon_after",
    "find_whisper",
    "last_steps",
    "list_keys",
    "make_check_keys",
    "make_device_key",
    "make_master_key",
    "note_unsealing",
    "open_ledger",
    "plan_placement",
    "plan_sensors",
    "plan_whisper",
    "price_release",
    "recover_rounds",
    "recover_sources",
    "release_readings",
    "release_whisper",
    "resume_readings",
    "retire_device_key",
    "rotate_device_key",
    "simulate_site",
    "simulate_whisper",
    "site_from_template",
    "track_sources",
    "true_sources",
    "unseal_readings",
    "whisper_cost",
]

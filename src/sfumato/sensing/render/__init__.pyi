from .calibration import calibration_lines
from .figure import draw_recovery, draw_track, draw_whisper
from .keys import key_lines
from .placement import placement_picture, placement_table, placement_text
from .plan import plan_text
from .plan_curves import page_sections, picture, spectrum
from .recovery import recovery_lines, recovery_text
from .release import (
    ledger_remark,
    price,
    release_remark,
    simulation_remark,
    site_remarks,
    unsealed,
)
from .rounds import place_words, round_words, rounds_lines, rounds_text
from .rounds_page import draw_rounds
from .site_drawing import site_view
from .track import track_lines, track_text
from .whisper import (
    answers_remark,
    simulated_remark,
    whisper_plan_text,
    whisper_price,
    whisper_text,
)
from .words import percent

__all__ = [
    "answers_remark",
    "calibration_lines",
    "draw_recovery",
    "draw_rounds",
    "draw_track",
    "draw_whisper",
    "key_lines",
    "ledger_remark",
    "page_sections",
    "percent",
    "picture",
    "place_words",
    "placement_picture",
    "placement_table",
    "placement_text",
    "plan_text",
    "price",
    "recovery_lines",
    "recovery_text",
    "release_remark",
    "round_words",
    "rounds_lines",
    "rounds_text",
    "simulated_remark",
    "simulation_remark",
    "site_remarks",
    "site_view",
    "spectrum",
    "track_lines",
    "track_text",
    "unsealed",
    "whisper_plan_text",
    "whisper_price",
    "whisper_text",
]

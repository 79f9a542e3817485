from .channels import (
    Channel,
    DiskChannel,
    KaryResponse,
    LocalHashing,
    PrivacyCheck,
    SubsetSelection,
    UnaryEncoding,
    assert_private,
)
from .collect import AnswerDesk, Collector, Tally, read_answers
from .decoder import GAUSSIAN, Evidence, decode
from .device import Answer, LocalAnswer, RandomBytes, answer, report_of
from .device_input import read_bounds, read_places, read_question
from .forecast import FORECAST_TABLE, plan_local, told_by
from .maps import LocalMap, ask_next, decode_answers
from .odds import Report, odds_below
from .pipeline import ask_first, collect_answers, gather_answers, serve_answers
from .poisoning import PoisoningBound, poisoning_bound
from .question import FINEST_CELL, Question
from .render import collected_text, plan_text
from .results import Collected, LocalPlan
from .rounds import (
    Design,
    design,
    disk_area_channel,
    disk_channel,
    disk_rows,
    evidence_of,
    first_question,
    leaf_of_cells,
    next_question,
    patch_channel,
)
from .server import answer_server
from .simulate import simulate_local_map, simulate_reports

__all__ = [
    "FINEST_CELL",
    "FORECAST_TABLE",
    "GAUSSIAN",
    "Answer",
    "AnswerDesk",
    "Channel",
    "Collected",
    "Collector",
    "Design",
    "DiskChannel",
    "Evidence",
    "KaryResponse",
    "LocalAnswer",
    "LocalHashing",
    "LocalMap",
    "LocalPlan",
    "PoisoningBound",
    "PrivacyCheck",
    "Question",
    "RandomBytes",
    "Report",
    "SubsetSelection",
    "Tally",
    "UnaryEncoding",
    "answer",
    "answer_server",
    "ask_first",
    "ask_next",
    "assert_private",
    "collect_answers",
    "collected_text",
    "decode",
    "decode_answers",
    "design",
    "disk_area_channel",
    "disk_channel",
    "disk_rows",
    "evidence_of",
    "first_question",
    "gather_answers",
    "leaf_of_cells",
    "next_question",
    "odds_below",
    "patch_channel",
    "plan_local",
    "plan_text",
    "poisoning_bound",
    "read_answers",
    "read_bounds",
    "read_places",
    "read_question",
    "report_of",
    "serve_answers",
    "simulate_local_map",
    "simulate_reports",
    "told_by",
]

from .device import Answer, LocalAnswer, RandomBytes, answer, report_of
from .channels import (
    Channel,
    DiskChannel,
    KaryResponse,
    LocalHashing,
    PrivacyCheck,
    SubsetSelection,
    UnaryEncoding,
    assert_private,
    odds_below,
)
from .decoder import Evidence, decode
from .rounds import (
    Design,
    design,
    disk_area_channel,
    disk_channel,
    evidence_of,
    first_question,
    next_question,
    patch_channel,
)
from .question import Question
from .simulate import simulate_local_map, simulate_reports

__all__ = [
    "Answer",
    "Channel",
    "Design",
    "DiskChannel",
    "Evidence",
    "KaryResponse",
    "LocalAnswer",
    "LocalHashing",
    "PrivacyCheck",
    "Question",
    "RandomBytes",
    "SubsetSelection",
    "UnaryEncoding",
    "answer",
    "assert_private",
    "decode",
    "design",
    "disk_area_channel",
    "disk_channel",
    "evidence_of",
    "first_question",
    "next_question",
    "odds_below",
    "patch_channel",
    "report_of",
    "simulate_local_map",
    "simulate_reports",
]

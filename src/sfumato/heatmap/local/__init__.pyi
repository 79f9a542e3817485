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
from .design import (
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
    "Channel",
    "Design",
    "DiskChannel",
    "Evidence",
    "KaryResponse",
    "LocalHashing",
    "PrivacyCheck",
    "Question",
    "SubsetSelection",
    "UnaryEncoding",
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
    "simulate_local_map",
    "simulate_reports",
]

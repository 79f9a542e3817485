from .collecting import collect_shuffled
from .device import Device
from .plan import ShufflePlan, read_plan
from .planning import plan_shuffled
from .render import shuffled_text
from .results import ModelNoise, PlannedShuffle, ShuffledResult
from .rounds import Round, mix
from .sealing import Keys, PublicKeys, make_keys
from .sending import SentReports, send_reports
from .session import OpenedRound, ShuffleSession
from .shuffler import Shuffler

__all__ = [
    "Device",
    "Keys",
    "ModelNoise",
    "OpenedRound",
    "PlannedShuffle",
    "PublicKeys",
    "Round",
    "SentReports",
    "ShufflePlan",
    "ShuffleSession",
    "ShuffledResult",
    "Shuffler",
    "collect_shuffled",
    "make_keys",
    "mix",
    "plan_shuffled",
    "read_plan",
    "send_reports",
    "shuffled_text",
]

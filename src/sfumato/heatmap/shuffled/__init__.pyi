from .collecting import collect_shuffled
from .device import Device, parse_place, read_token
from .plan import ShufflePlan, read_plan
from .planning import plan_shuffled
from .render import shuffled_text
from .results import ModelNoise, PlannedShuffle, ShuffledResult
from .rounds import Round, added_up, mix
from .sealing import Keys, PublicKeys, make_keys
from .sending import SentReports, devices_of_rows, send_reports
from .session import OpenedRound, ShuffleSession
from .shuffler import Shuffler, read_enrolled
from .wire import parse_address

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
    "added_up",
    "collect_shuffled",
    "devices_of_rows",
    "make_keys",
    "mix",
    "parse_address",
    "parse_place",
    "plan_shuffled",
    "read_enrolled",
    "read_plan",
    "read_token",
    "send_reports",
    "shuffled_text",
]

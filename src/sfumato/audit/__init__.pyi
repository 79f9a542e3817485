from .allowance import allowed_deltas
from .assertion import assert_claim, assert_private
from .boxes.box import Box, CommandBox, FunctionBox, Pair, SampleBox, function_box, read_samples
from .boxes.pairs import Histograms, Inputs, Lists, Numbers, Queries
from .catalogue.entries import Specimen, all_specimens
from .catalogue.self_test import SelfTest, selftest
from .claims import EpsilonDelta, above, implied
from .fixed.bound import LowerBound, lower_bound
from .fixed.delta_profile import DeltaBand, profile
from .property_testing.certificate import certify
from .property_testing.limits import (
    RunsNeeded,
    distinguishing_bound,
    parameter_distance,
    queries_with_specification,
    queries_without_information,
)
from .replayed import enough_runs, replay
from .results import Event, Replay, Verdict, Witness
from .saved import SavedVerdict, can_replay, read_verdict
from .sequential.bet import Budget, Look
from .sequential.refutation import refute

__all__ = [
    "Box",
    "Budget",
    "CommandBox",
    "DeltaBand",
    "EpsilonDelta",
    "Event",
    "FunctionBox",
    "Histograms",
    "Inputs",
    "Lists",
    "Look",
    "LowerBound",
    "Numbers",
    "Pair",
    "Queries",
    "Replay",
    "RunsNeeded",
    "SampleBox",
    "SavedVerdict",
    "SelfTest",
    "Specimen",
    "Verdict",
    "Witness",
    "above",
    "all_specimens",
    "allowed_deltas",
    "assert_claim",
    "assert_private",
    "can_replay",
    "certify",
    "distinguishing_bound",
    "enough_runs",
    "function_box",
    "implied",
    "lower_bound",
    "parameter_distance",
    "profile",
    "queries_with_specification",
    "queries_without_information",
    "read_samples",
    "read_verdict",
    "refute",
    "replay",
    "selftest",
]

"""Audit somebody's privacy claim, by runs alone: refute it, bound it, certify it, or say why nobody can."""

from sfumato.audit.assertion import assert_claim, assert_private
from sfumato.audit.bet import Budget, Look
from sfumato.audit.bound import LowerBound, lower_bound
from sfumato.audit.boxes import Box, CommandBox, FunctionBox, Pair, SampleBox, function_box, read_samples
from sfumato.audit.catalogue import Specimen, catalogue
from sfumato.audit.certify import certify
from sfumato.audit.claims import Statement, implied
from sfumato.audit.limits import (
    RunsNeeded,
    distinguishing_bound,
    parameter_distance,
    queries_with_specification,
    queries_without_information,
)
from sfumato.audit.pairs import Histograms, Inputs, Lists, Numbers, Queries
from sfumato.audit.profile import Band, profile
from sfumato.audit.refute import refute
from sfumato.audit.replay import replay
from sfumato.audit.saved import SavedVerdict, read_verdict
from sfumato.audit.selftest import SelfTest, selftest
from sfumato.audit.verdict import Event, Replay, Verdict, Witness

__all__ = [
    "Band",
    "Box",
    "Budget",
    "CommandBox",
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
    "Statement",
    "Verdict",
    "Witness",
    "assert_claim",
    "assert_private",
    "catalogue",
    "certify",
    "distinguishing_bound",
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

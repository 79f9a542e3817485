from .assertion import assert_claim, assert_private
from .boxes.box import Box, CommandBox, FunctionBox, Pair, SampleBox
from .boxes.pairs import Histograms, Inputs, Lists, Numbers, Queries
from .catalogue.self_test import SelfTest, selftest
from .claims import EpsilonDelta, implied, is_random, parse_claim
from .codec import read_verdict
from .confidence import check_confidence
from .fixed.bound import lower_bound
from .fixed.delta_profile import profile
from .pipeline import CertificateOptions, audit_claim, plan_audit, replay_verdict
from .property_testing.certificate import certify
from .results import AuditPlan, AuditResult, ReplayResult
from .sequential.bet import Look
from .sequential.budget import Budget
from .sequential.refutation import refute
from .verdict import CONFIDENCE, DeltaBand, Event, LowerBound, Replay, Verdict, Witness

__all__ = [
    "CONFIDENCE",
    "AuditPlan",
    "AuditResult",
    "Box",
    "Budget",
    "CertificateOptions",
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
    "ReplayResult",
    "SampleBox",
    "SelfTest",
    "Verdict",
    "Witness",
    "assert_claim",
    "assert_private",
    "audit_claim",
    "certify",
    "check_confidence",
    "implied",
    "is_random",
    "lower_bound",
    "parse_claim",
    "plan_audit",
    "profile",
    "read_verdict",
    "refute",
    "replay_verdict",
    "selftest",
]

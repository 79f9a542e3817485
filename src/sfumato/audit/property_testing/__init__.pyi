from .certificate import certify
from .limits import (
    RequiredRuns,
    boundary_pair,
    distinguishing_bound,
    nearest_far_pair,
    queries_with_specification,
    queries_without_information,
    rare_output_bound,
    two_point_bound,
)
from .repetition import random_plan
from .testers import (
    THIRD,
    Decision,
    approx_samples,
    approx_test,
    counts_of,
    identity_samples,
    identity_test,
    specified_pure_samples,
    specified_pure_test,
    spread_of,
)

__all__ = [
    "THIRD",
    "Decision",
    "RequiredRuns",
    "approx_samples",
    "approx_test",
    "boundary_pair",
    "certify",
    "counts_of",
    "distinguishing_bound",
    "identity_samples",
    "identity_test",
    "nearest_far_pair",
    "queries_with_specification",
    "queries_without_information",
    "random_plan",
    "rare_output_bound",
    "specified_pure_samples",
    "specified_pure_test",
    "spread_of",
    "two_point_bound",
]

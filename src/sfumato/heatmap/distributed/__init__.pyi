from .certificates import MadeCertificates, make_certificates
from .check import check_joint
from .demo import DemoParty, JointDemo, run_joint_demo
from .joint_plan import JointPlan
from .parties import Parties, Party, read_parties
from .release import check_joint_release, plan_joint, release_joint
from .render import joint_text
from .results import CheckedSession, JointCheck, JointResult, PlannedJoint
from .secure_sum import MODULUS, PartySums, SecureSums, Traffic

__all__ = [
    "MODULUS",
    "CheckedSession",
    "DemoParty",
    "JointCheck",
    "JointDemo",
    "JointPlan",
    "JointResult",
    "MadeCertificates",
    "Parties",
    "Party",
    "PartySums",
    "PlannedJoint",
    "SecureSums",
    "Traffic",
    "check_joint",
    "check_joint_release",
    "joint_text",
    "make_certificates",
    "plan_joint",
    "read_parties",
    "release_joint",
    "run_joint_demo",
]

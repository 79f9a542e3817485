from .audit_page import write_audit_report
from .demo import run_demo
from .leaderboard_page import check_leaderboard_path, write_leaderboard
from .page import Section, write_report
from .plan_page import check_plan_path, write_plan
from .results import DemoResult

__all__ = [
    "DemoResult",
    "Section",
    "check_leaderboard_path",
    "check_plan_path",
    "run_demo",
    "write_audit_report",
    "write_leaderboard",
    "write_plan",
    "write_report",
]

from .kept import KeptRun, kept_runs, ledger_files
from .results import ResumeResult, render_resumed
from .resume import resume_runs
from .run import Request, Run
from .undelivered import Undelivered, check_repeat, undelivered_runs
from .unkept import Unkept

__all__ = [
    "KeptRun",
    "Request",
    "ResumeResult",
    "Run",
    "Undelivered",
    "Unkept",
    "check_repeat",
    "kept_runs",
    "ledger_files",
    "render_resumed",
    "resume_runs",
    "undelivered_runs",
]

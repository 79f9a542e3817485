from .bounds import normalized_error, tree_bound
from .distance import emd, emd_norm, solve_on
from .mass_files import Masses
from .pipeline import SpaceName, check_space_options, compare_masses
from .points import cheapest_plan, emd_apart, emd_euclidean
from .render import draw_emd, render_emd
from .results import EmdResult, GridFlow, Plan, Transport

__all__ = [
    "EmdResult",
    "GridFlow",
    "Masses",
    "Plan",
    "SpaceName",
    "Transport",
    "cheapest_plan",
    "check_space_options",
    "compare_masses",
    "draw_emd",
    "emd",
    "emd_apart",
    "emd_euclidean",
    "emd_norm",
    "normalized_error",
    "render_emd",
    "solve_on",
    "tree_bound",
]

from .placement import placement_picture, placement_table, placement_text
from .plan import plan_lines, plan_text
from .plan_curves import page_sections, picture, spectrum
from .release import (
    ledger_remark,
    price,
    release_remark,
    simulation_remark,
    site_remarks,
    statement,
    unsealed,
)
from .words import aligned, listed, many, plain, short, up

__all__ = [
    "aligned",
    "ledger_remark",
    "listed",
    "many",
    "page_sections",
    "picture",
    "placement_picture",
    "placement_table",
    "placement_text",
    "plain",
    "plan_lines",
    "plan_text",
    "price",
    "release_remark",
    "short",
    "simulation_remark",
    "site_remarks",
    "spectrum",
    "statement",
    "unsealed",
    "up",
]

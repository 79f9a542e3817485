"""A plan of a map as a file: its picture, or a page around it."""

from __future__ import annotations

import os
from pathlib import Path

from sfumato.errors import ExistsAlready, InvalidParameter
from sfumato.files import write_file
from sfumato.heatmap import HeatmapPlan
from sfumato.report.page import Section, write_report

SUFFIXES = (".html", ".png")


def check_plan_path(path: str | Path, *, overwrite: bool = False) -> None:
    """Refuse a file that `write_plan` could not write, before there is a plan.

    Args:
        path: The file: .html for a page, .png for a picture.
        overwrite: Whether a file of that name may be replaced.

    Raises:
        InvalidParameter: For another suffix, a missing or read-only folder, or a file that stays.
    """
    out = Path(path)
    if out.suffix.lower() not in SUFFIXES:
        raise InvalidParameter(
            f"plans end in one of {', '.join(SUFFIXES)}, got {out}; nothing was written"
        )
    if not out.parent.is_dir() or not os.access(out.parent, os.W_OK):
        raise InvalidParameter(
            f"the folder of {out} must be there to write to; nothing was written"
        )
    if out.is_dir() or (os.path.lexists(out) and not overwrite):
        raise ExistsAlready(f"{out} exists already and is kept; nothing was written")


def write_plan(plan: HeatmapPlan, path: str | Path, *, overwrite: bool = False) -> None:
    """Save a plan: a picture of what more would buy (.png), or a page with it (.html).

    Args:
        plan: What `sfumato.heatmap.plan_heatmap` returned.
        path: The file: .html for a page, .png for a picture.
        overwrite: Whether a file of that name may be replaced.

    Raises:
        InvalidParameter: For another suffix, a missing or read-only folder, or a file that stays.
    """
    check_plan_path(path, overwrite=overwrite)
    picture = plan.picture()
    if Path(path).suffix.lower() == ".png":
        write_file(path, picture, overwrite=overwrite)
        return
    caption, holds_for = plan.caption, plan.holds_for
    write_report(
        path,
        "How good will the map be?",
        sections=[
            Section("Forecast", "\n\n".join(line for line in str(plan).splitlines() if line)),
            Section("What more would buy", caption, picture=picture, description=caption),
            Section("What it holds for", holds_for[0].upper() + holds_for[1:]),
        ],
        overwrite=overwrite,
    )

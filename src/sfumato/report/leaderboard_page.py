"""A leaderboard as a page: ranking, pictures, means, and the first method against every other."""

from __future__ import annotations

import os
from pathlib import Path

from sfumato.errors import ExistsAlready, InvalidInput, InvalidParameter
from sfumato.heatmap.benchmark import (
    BASE,
    SIGNS,
    LeaderboardResult,
    about,
    first_table,
    mean_table,
    paired_comparisons,
    sample_caption,
    sample_picture,
    sign_table,
    tally,
    tally_table,
)
from sfumato.report.page import Section, write_report

WHAT_WAS_RUN = (
    "All methods on the same samples, 256 x 256 cells, each person with mass 1. Similarity and Pearson grow "
    "towards 1, KL(true || estimate) and EMD (l1, in sides of the map) fall towards 0, all of maps blurred by "
    "0.02 sides; ± is half of a 95 % t interval over the runs. Everything is simulated on public or made-up "
    "rows: nothing here was released, and nobody was protected. The coarse method is told the number of "
    "people, the gaussian one has a delta of 1e-6."
)


def check_leaderboard_path(path: str | Path, *, overwrite: bool = False) -> None:
    """Refuse a file that `write_leaderboard` could not write, before minutes of work.

    Args:
        path: The page, .html.
        overwrite: Whether a file of that name may be replaced.

    Raises:
        InvalidParameter: For another suffix, or a file that stays.
        InvalidInput: For a folder that is not there.
    """
    out = Path(path)
    if out.suffix != ".html":
        raise InvalidParameter(f"the leaderboard is a page, .html, got {out}; nothing was run")
    if os.path.lexists(out) and not overwrite:
        raise ExistsAlready(f"{out} exists; say `overwrite` to replace it; nothing was run")
    if not out.parent.is_dir():
        raise InvalidInput(f"there is no folder {out.parent}; nothing was run")


def write_leaderboard(
    result: LeaderboardResult, path: str | Path, *, overwrite: bool = False
) -> None:
    """Save a leaderboard as one self-contained page.

    Args:
        result: What `sfumato.heatmap.benchmark.run_leaderboard` returned.
        path: The page, .html.
        overwrite: Whether a file of that name may be replaced.
    """
    first = result.methods[0]
    pictures = {sample.source: sample for sample in result.samples}
    sections = [Section("What was run", "\n\n".join([WHAT_WAS_RUN, *result.notes]))]
    for source in result.sources:
        scores = result.of(source)
        sections += [
            Section(about(result, source), "", table=first_table(scores, BASE)),
            Section(f"{first} against the others", SIGNS, table=tally_table(scores, first)),
        ]
        if sample := pictures.get(source):
            caption = sample_caption(sample)
            sections.append(
                Section("Pictures", caption, picture=sample_picture(sample), description=caption)
            )
        sections.append(Section("Means", "", table=mean_table(scores)))
        for rival in result.methods[1:]:
            pairs = paired_comparisons(scores, first, rival)
            sections.append(
                Section(f"{first} against {rival}", str(tally(pairs)), table=sign_table(pairs))
            )
    write_report(path, "Leaderboard of private heatmaps", sections=sections, overwrite=overwrite)

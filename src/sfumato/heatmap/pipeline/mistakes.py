"""What can be told wrong of a release from its words alone: all of it at once, and before anything heavy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from sfumato.errors import InvalidParameter, Mistakes
from sfumato.heatmap.export.formats import check_place, format_of
from sfumato.heatmap.export.output_names import (
    COMPARISONS,
    Outputs,
    check_output,
    files_of,
    paths_of,
)
from sfumato.heatmap.measure import HIGHEST_COVERAGE
from sfumato.heatmap.methods.registry import check_method_name
from sfumato.heatmap.pipeline.options import (
    HeatmapOptions,
    area_of,
    check_options,
    check_public,
    is_private,
    rows_of,
)
from sfumato.privacy import Ledger
from sfumato.privacy.accounting import Number, exact
from sfumato.records import Columns, Pairs, Periods, names_of
from sfumato.spaces import Area

if TYPE_CHECKING:
    from sfumato.heatmap.pipeline.charging import Method
    from sfumato.records import Groups


def check_release(
    source: Any,
    columns: Columns | None = None,
    area: Area | Sequence[float] | None = None,
    *,
    ledger: Ledger | str | Path | None,
    epsilon: Number | None,
    method: Method = "zoom",
    groups: Groups = None,
    outputs: Outputs = (),
    note: str = "",
    once: str = "",
    public: bool = False,
    **options: Unpack[HeatmapOptions],
) -> None:
    """Refuse what is wrong in the words of a release, all mistakes in one error; `plan_release` begins so.

    Neither the rows nor an image is opened, and what the release would cost is not asked: it
    loads nothing of what reads rows, makes maps or draws.

    Args:
        source: As for `release_heatmap`; it is not opened.
        columns: As for `release_heatmap`.
        area: As for `release_heatmap`.
        ledger: The ledger that would pay, or its path; None if another has refused it.
        epsilon: What the maps may cost, above 0; None if another has refused it.
        method: A method, or its name.
        groups: Public values of the column `by`, or periods.
        outputs: Files that would be written.
        note: A line for the ledger.
        once: A key under which the request is released once: its files may be there.
        public: Whether rows are public or made up.
        **options: As for `release_heatmap`.

    Raises:
        InvalidParameter: A parameter is wrong; where several are, the message numbers them.
        SfumatoError: Only this is wrong: a file or the ledger is missing, or a file exists.

    """
    mistakes = Mistakes()
    with mistakes.noted():
        if not note.isprintable():
            raise InvalidParameter("a note must be printable on one line; nothing was charged")
    if ledger is not None:
        with mistakes.noted():
            check_public(ledger, public=public)
            if not isinstance(ledger, Ledger):
                Ledger(ledger)
    _note_words(mistakes, source, columns, area, epsilon, method, groups, outputs, once, options)
    mistakes.tell()


def check_rehearsal(
    source: Any,
    columns: Columns | None = None,
    area: Area | Sequence[float] | None = None,
    *,
    public: bool,
    epsilon: Number | None,
    method: Method = "zoom",
    groups: Groups = None,
    outputs: Outputs = (),
    **options: Unpack[HeatmapOptions],
) -> None:
    """Refuse what is wrong in the words of a rehearsal, all mistakes in one error, as `check_release` does.

    Args:
        source: As for `rehearse_heatmap`; it is not opened.
        columns: As for `rehearse_heatmap`.
        area: As for `rehearse_heatmap`.
        public: Whether the rows were said to be public.
        epsilon: What a release would cost, above 0; None if another has refused it.
        method: A method, or its name.
        groups: Public values, periods or pairs.
        outputs: Files that would be written.
        **options: As for `rehearse_heatmap`.

    Raises:
        InvalidParameter: A parameter is wrong; where several are, the message numbers them.
        SfumatoError: Only this is wrong: a file exists.

    """
    mistakes = Mistakes()
    with mistakes.noted():
        if not public:
            raise InvalidParameter(
                "a rehearsal shows exact numbers of its rows: it takes rows that are public or made up, "
                "said aloud by `public=True`; nothing was read"
            )
    with mistakes.noted():
        if is_private(options):
            raise InvalidParameter(
                "the rows of a rehearsal are public, and so are its bounds: `bounds='private'` does not go "
                "with it; nothing was read"
            )
    _note_words(mistakes, source, columns, area, epsilon, method, groups, outputs, "", options)
    mistakes.tell()


def check_comparison(
    a: Any,
    b: Any,
    *,
    zones: Any = None,
    coverage: float = 0.9,
    over: Any = None,
    outline: Any = None,
    outputs: Outputs = (),
    overwrite: bool = False,
) -> None:
    """Refuse what is wrong in the words of a comparison, all mistakes in one error; no map is opened.

    Args:
        a: The map before, as for `compare_maps`.
        b: The map after.
        zones: The zones, as for `compare_maps`.
        coverage: The chance that an interval holds.
        over: The public image under the difference.
        outline: The public file of lines over it.
        outputs: Files that would be written.
        overwrite: Whether files that exist are replaced.

    Raises:
        InvalidParameter: A parameter is wrong; where several are, the message numbers them.
        SfumatoError: Only this is wrong: a file exists.

    """
    mistakes = Mistakes()
    read = [one for one in (a, b, zones, over, outline) if isinstance(one, str | Path)]
    for path in paths_of(outputs):
        with mistakes.noted():
            check_output(path, COMPARISONS, read, what="comparisons", overwrite=overwrite)
    with mistakes.noted():
        if not 0 < coverage <= HIGHEST_COVERAGE:
            raise InvalidParameter(
                f"coverage must lie in (0, {HIGHEST_COVERAGE}], got {coverage}; nothing was compared"
            )
    mistakes.tell()


def _note_words(
    mistakes: Mistakes,
    source: Any,
    columns: Columns | None,
    area: Area | Sequence[float] | None,
    epsilon: Number | None,
    method: Method,
    groups: Groups,
    outputs: Outputs,
    once: str,
    options: HeatmapOptions,
) -> None:
    """What is wrong with words that releases and rehearsals have alike."""
    with mistakes.noted():
        check_options(options, columns, area)
    with mistakes.noted():
        _check_epsilon(epsilon)
    with mistakes.noted():
        if isinstance(method, str):
            check_method_name(method)
    with mistakes.noted():
        rows_of(source, columns, options)
    if not (options.get("image") or options.get("crs")):
        # An image is opened by what draws, and a reference system by a package of its own.
        with mistakes.noted():
            area_of(area, options)
    for path in paths_of(outputs):
        with mistakes.noted():
            format_of(path)
            first = _one_file(path, groups)
            check_place(first, overwrite=bool(once) or options.get("overwrite", False))


def _check_epsilon(epsilon: Number | None) -> None:
    if epsilon is not None and not exact(epsilon, name="epsilon") > 0:
        raise InvalidParameter(f"epsilon must be above 0, got {epsilon}; nothing was charged")


def _one_file(path: Path, groups: Groups) -> Path:
    """The file of the first group: its folder is that of all."""
    film = path.suffix.lower() == ".html" and "{by}" not in path.name
    if groups is None or (film and isinstance(groups, Periods)):
        return path
    names = names_of(groups)
    first: dict[str, str] = {"by": names[0] if names else ""}
    if isinstance(groups, Pairs):
        first |= {one["by"]: one["name"] for one in groups.about(0)}
    return files_of([path], first)[0]

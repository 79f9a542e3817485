"""Replay at the door: how far one user of a public table moves the sums that a ledger would open."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Unpack

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.files import scratch_folder
from sfumato.heatmap.pipeline.options import (
    HeatmapOptions,
    area_of,
    check_options,
    open_rows,
    rows_of,
    stated_groups,
)
from sfumato.heatmap.replay_results import Neighbor, ReplayResult
from sfumato.privacy import UNITS
from sfumato.records import (
    CellSums,
    Columns,
    Groups,
    in_table,
    neighbor_files,
    sum_public_cells,
    whole_parts,
)
from sfumato.spaces import Area


def replay_release(
    source: str,
    columns: Columns | None = None,
    area: Area | Sequence[float] | None = None,
    *,
    public: bool,
    rng: np.random.Generator,
    neighbors: int = 20,
    groups: Groups = None,
    watch: Callable[[str], None] | None = None,
    **options: Unpack[HeatmapOptions],
) -> ReplayResult:
    """Take users out of a public table, one at a time, and see how far the sums of a release move.

    Copies without a user are made by Python alone, in the format of the file, so that what an
    engine makes of quotes, encodings, collations and types is held against another reader. It shows
    that a way from rows to the ledger breaks its bound; that none was found is no proof.

    Args:
        source: A CSV, NDJSON or Parquet file, or FILE::TABLE of SQLite or DuckDB, of public or
            synthetic rows.
        columns: What its columns mean; a column must say whose row it is.
        area: Where mass is summed.
        public: Said aloud: exact numbers of the rows are returned.
        rng: Chooses the users.
        neighbors: How many users are taken out, at most.
        groups: The public groups or periods, as for a release.
        watch: Told of each user before they are taken out.
        **options: Rows and area in words, as for `release_heatmap`, if not by `columns` and `area`.

    Returns:
        The neighbors tried, with how far the sums moved in masses of 1, and whether all held.

    Raises:
        InvalidParameter: The rows were not said to be public, or no column says whose they are.
        InvalidInput: The file could not be read; nothing was counted.

    """
    if not public:
        raise InvalidParameter(
            "a replay shows exact numbers of its rows: it takes rows that are public or made up, said aloud "
            "by `public=True`; nothing was read"
        )
    check_options(options, columns, area)
    groups = stated_groups(groups, columns, options)
    rows, where = rows_of(source, columns, options), area_of(area, options)
    user, asked = rows.columns.user, rows.columns
    if user is None:
        raise InvalidParameter(
            "a replay takes users out: a column must say whose row it is; nothing was read"
        )
    asked = in_table(groups, asked)
    counted = 0

    def choose(users: list[Hashable]) -> list[Hashable]:
        nonlocal counted
        counted = len(users)
        return [users[place] for place in rng.permutation(counted)[:neighbors]]

    def summed(path: str) -> CellSums:
        table = open_rows(replace(rows, source=path, columns=asked), where)
        return sum_public_cells(table, asked, where, groups=groups)

    whole = summed(source)
    folder, remove = scratch_folder()
    try:
        found = []
        for who, path in neighbor_files(
            source, user, folder, choose=choose, delimiter=rows.delimiter
        ):
            if watch is not None:
                watch(who)
            found.append(_moved(who, whole, summed(path)))
    finally:
        remove()
    masses = math.prod(one.count for one in whole_parts(groups))
    return ReplayResult(source, rows.engine, counted, masses, tuple(found))


def _moved(user: str, one: CellSums, other: CellSums) -> Neighbor:
    codes = np.union1d(one.codes, other.codes)
    moved = np.zeros(codes.size, dtype=np.int64)
    moved[np.searchsorted(codes, one.codes)] += one.units
    moved[np.searchsorted(codes, other.codes)] -= other.units
    share, rose = np.abs(moved) / UNITS, np.maximum(-moved, 0) / UNITS
    return Neighbor(
        user,
        float(share.sum()),
        math.sqrt(float((share**2).sum())),
        float(share.max(initial=0)),
        float(rose.sum()),
    )

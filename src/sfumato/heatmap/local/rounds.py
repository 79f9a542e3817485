"""How a local map is asked for: from the number of users and epsilon alone, in two rounds.

What n reports at odds E can tell of all directions of a map together is about n (E - 1)**2 / (4 E), the
`information`, as long as that is less than the users know; it can be laid on many cells or on few.
The first part of the users answers over a coarse grid by subset selection; the rest over cells of
about equal posterior mass, through small patches.
"""

from __future__ import annotations

import hashlib
import heapq
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato._random import generator
from sfumato._types import BoolArray, FloatArray, IntArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.heatmap.inference import CountsPosterior
from sfumato.heatmap.local.channels import Channel, DiskChannel, KaryResponse, SubsetSelection
from sfumato.heatmap.local.decoder import Evidence
from sfumato.heatmap.local.odds import Report, odds_below
from sfumato.heatmap.local.question import FINEST_CELL, Bounds, Question
from sfumato.privacy.accounting import Number, exact
from sfumato.spaces import Grid

# The part of the users who answer first. Found, with the numbers of cells below, on made-up cities
# (docs/proofs/local-channels.md says what is proved and what was tried).
FIRST_PART = Fraction(1, 5)
# Below so much information there is no second round: all answer over 4 x 4 cells, or 2 x 2.
ONE_ROUND, FEWEST = 150.0, 30.0
FINE_FIRST = 20_000.0
CELLS_AT, CELLS_POWER, MOST_CELLS = (272.0, 24.0), 0.34, 512
# Patches of the second question are of two cells: a little of the information of narrow directions
# of the map goes to wide ones.
PATCH = 2
# As many outputs as this times the cells: enough that no direction is left out by chance.
OUTPUTS_PER_CELL = 8
# Subsets that stand for all of their size where expected information is worked out.
FAMILY = 2048


@dataclass(frozen=True, slots=True)
class Design:
    """What is asked of so many users at an epsilon.

    Attributes:
        users: How many devices there are.
        epsilon: What an answer may tell.
        odds: e**epsilon, rounded down.
        information: What all reports can tell, summed over all directions of a map, of users who know
            as much.
        first_part: Which part of the users answers first; 1 where there is one round.
        first_level: Cells of the first question are those of this level.
        cells: How many cells the second question has; 0 where there is none.
        patch: How many cells a patch of it has.
    """

    users: int
    epsilon: Fraction
    odds: Fraction
    information: float
    first_part: Fraction
    first_level: int
    cells: int
    patch: int


def design(users: int, epsilon: Number) -> Design:
    """The questions for so many users at an epsilon; it reads nothing else.

    Args:
        users: How many devices will answer, at least 1.
        epsilon: What an answer may tell, above 0, at most 16.

    Returns:
        Rounds, cells and patches.

    Raises:
        InvalidParameter: A number is out of range.

    Example:
        >>> found = design(10_000, 1)
        >>> found.first_level, found.cells, round(found.information)
        (2, 52, 2715)

    """
    if users < 1:
        raise InvalidParameter(f"users must be at least 1, got {users}; nothing was planned")
    odds = odds_below(epsilon)
    value = float(odds)
    information = users * (value - 1) ** 2 / (4 * value)
    if information < ONE_ROUND:
        level = 1 if information < FEWEST else 2
        whole, cells = Fraction(1), 0
    else:
        level = 2 if information < FINE_FIRST else 3
        whole, (at, few) = FIRST_PART, CELLS_AT
        cells = int(min(MOST_CELLS, max(16, few * (information / at) ** CELLS_POWER)))
    return Design(
        users=users,
        epsilon=exact(epsilon, name="epsilon"),
        odds=odds,
        information=information,
        first_part=whole,
        first_level=level,
        cells=cells - cells % 3 + 1 if cells else 0,  # a split makes three more of one
        patch=PATCH,
    )


def first_question(plan: Design, *, bounds: Bounds, campaign: str) -> Question:
    """The question of round 1: subset selection over a coarse grid.

    Args:
        plan: The design.
        bounds: Low x, low y, high x, high y of the square of cells.
        campaign: A name that no other campaign with these devices has.

    Returns:
        The question.

    """
    cells = tuple((plan.first_level, code) for code in range(4**plan.first_level))
    return Question(
        campaign=campaign,
        round=1,
        users=plan.users,
        epsilon=plan.epsilon,
        bounds=bounds,
        cells=cells,
        part=(Fraction(0), plan.first_part),
        channel=SubsetSelection(len(cells), _best_size(len(cells), plan.odds), plan.odds),
    )


def next_question(plan: Design, first: Question, posterior: CountsPosterior) -> Question:
    """The question of round 2: cells of about equal posterior mass, through patches.

    Args:
        plan: The design.
        first: The question of round 1.
        posterior: What its answers said.

    Returns:
        The question.

    Raises:
        InvalidParameter: The design has one round.

    """
    if not plan.cells:
        raise InvalidParameter("this design has one round; no further question was made")
    cells = equal_cells(posterior, plan.cells)
    seed = hashlib.sha256(f"sfumato.local.patches|{first.digest}".encode()).digest()
    channel = patch_channel(cells, plan.odds, patch=plan.patch, rng=generator(seed))
    return Question(
        campaign=first.campaign,
        round=2,
        users=plan.users,
        epsilon=plan.epsilon,
        bounds=first.bounds,
        cells=cells,
        part=(plan.first_part, Fraction(1)),
        channel=channel,
    )


def equal_cells(posterior: CountsPosterior, count: int) -> tuple[tuple[int, int], ...]:
    """Cells of about equal posterior mass, in Z-order: the heaviest is split until there are so many."""
    means: dict[int, FloatArray] = {}

    def weighed(level: int, code: int) -> tuple[float, int, int]:
        if level not in means:
            means[level] = posterior.means(level)
        return -float(means[level][code]), level, code

    waiting = [weighed(1, code) for code in range(4)]
    heapq.heapify(waiting)
    finest: list[tuple[int, int]] = []
    while waiting and len(waiting) + len(finest) < count:
        _, level, code = heapq.heappop(waiting)
        if level == FINEST_CELL:
            finest.append((level, code))
            continue
        for child in range(4 * code, 4 * code + 4):
            heapq.heappush(waiting, weighed(level + 1, child))
    found = finest + [(level, code) for _, level, code in waiting]
    return tuple(sorted(found, key=lambda one: one[1] << 2 * (FINEST_CELL - one[0])))


def patch_channel(
    cells: Iterable[tuple[int, int]], odds: Fraction, *, patch: int, rng: np.random.Generator
) -> DiskChannel:
    """A disk channel whose outputs are colorings: each colors the cells in patches, and a color is told.

    A coloring has about odds + 1 colors. Its patches are the cells nearest to random centers, about
    `patch` cells each, which take colors in turn; with one cell a patch it is subset selection by
    a public family, with one patch a color it tells a disk around the true cell.

    Args:
        cells: Level and Z-order code of each cell.
        odds: How much likelier the color of the true cell is told.
        patch: How many cells a patch has, at least 1.
        rng: Draws centers and colors; public, for it sees no data.

    Returns:
        The channel.

    """
    centers = cell_centers(cells)
    count = len(centers)
    colors = max(2, min(count, round(odds + 1)))
    patches = max(colors, min(count, round(count / patch)))
    colorings = -(-OUTPUTS_PER_CELL * count // colors)
    near = np.empty((count, colorings), dtype=np.int64)
    for number in range(colorings):
        chosen = rng.choice(count, patches, replace=False)
        gaps = ((centers[:, None] - centers[None, chosen]) ** 2).sum(axis=2)
        color = rng.permutation(np.arange(patches) % colors)
        near[:, number] = number * colors + color[gaps.argmin(axis=1)]
    outputs = colorings * colors
    return DiskChannel(outputs, tuple(map(tuple, near.tolist())), odds)


def disk_channel(cells: Iterable[tuple[int, int]], odds: Fraction, *, size: int) -> DiskChannel:
    """A disk channel with an output at each cell: the `size` nearest ones of a cell are likelier.

    Args:
        cells: Level and Z-order code of each cell.
        odds: How much likelier they are.
        size: How many outputs are near a cell.

    Returns:
        The channel.

    """
    centers = cell_centers(cells)
    gaps = ((centers[:, None] - centers[None]) ** 2).sum(axis=2)
    near = np.sort(np.argsort(gaps, axis=1, kind="stable")[:, :size], axis=1)
    return DiskChannel(len(centers), tuple(map(tuple, near.tolist())), odds)


def disk_area_channel(level: int, odds: Fraction, *, radius: int) -> DiskChannel:
    """The disk area mechanism: a grid of a level, outputs on one wider by the radius all round [du24].

    Cells are in Z-order; outputs row by row. An output is near a cell if their centers are at most
    `radius` cells apart.

    Args:
        level: The grid has 2**level cells a side.
        odds: How much likelier outputs in the disk are.
        radius: In cells, at least 0.

    Returns:
        The channel.

    """
    side = 1 << level
    wide = side + 2 * radius
    columns, rows = Grid(level).decode(np.arange(side * side))
    y, x = np.mgrid[-radius : radius + 1, -radius : radius + 1]
    disk = x**2 + y**2 <= radius**2
    steps = (y[disk] * wide + x[disk]).astype(np.int64)
    start = (np.asarray(rows) + radius) * wide + np.asarray(columns) + radius
    near = np.sort(start[:, None] + steps[None], axis=1)
    return DiskChannel(wide * wide, tuple(map(tuple, near.tolist())), odds)


def evidence_of(question: Question, reports: Mapping[Report, int]) -> Evidence:
    """Reports of a question with how often each came, as evidence.

    Args:
        question: What was asked.
        reports: How often each distinct report came.

    Returns:
        The evidence.

    Raises:
        InvalidInput: One is no report of the question's channel.

    """
    channel = question.channel
    levels, codes = (np.array(one, dtype=np.int64) for one in zip(*question.cells, strict=True))
    if isinstance(channel, DiskChannel):
        family = disk_rows(channel)
        counts = np.zeros(channel.outputs)
        for report, count in reports.items():
            if len(report) != 1 or not 0 <= report[0] < channel.outputs:
                raise InvalidInput(f"{str(report)[:60]} is no report of this question")
            counts[report[0]] += count
        return Evidence(
            levels, codes, family, counts, float(channel.odds), family, whole_family=True
        )
    likely = np.zeros((len(reports), channel.cells), dtype=np.bool_)
    for at, report in enumerate(reports):
        likely[at, list(channel.likely(report))] = True
    counts = np.array(list(reports.values()), dtype=np.float64)
    match channel:
        case SubsetSelection():
            sizes = (channel.size, channel.size)
        case KaryResponse():
            sizes = (1, 1)
        case _:
            sizes = (0, channel.cells)
    return Evidence(
        levels, codes, likely, counts, float(channel.odds), family_of(channel), sizes=sizes
    )


def disk_rows(channel: DiskChannel) -> BoolArray:
    """Which cells each output makes likelier [output, cell].

    Args:
        channel: The channel.

    Returns:
        True where an output is likelier from a cell than from others.

    """
    found = np.zeros((channel.outputs, channel.cells), dtype=np.bool_)
    for cell, near in enumerate(channel.near):
        found[list(near), cell] = True
    return found


def family_of(channel: Channel) -> BoolArray:
    """Reports that stand for all of a channel [report, cell], for expected information.

    All of them where they are few; else random sets of the size that its reports usually have, in
    all cyclic shifts, so that each cell is in equally many.
    """
    cells = channel.cells
    if isinstance(channel, DiskChannel):
        return disk_rows(channel)
    match channel:
        case SubsetSelection():
            size = channel.size
        case KaryResponse():
            size = 1
        case _:
            size = _best_size(cells, channel.odds)
    if size == 1:
        return np.eye(cells, dtype=np.bool_)
    rng = generator(hashlib.sha256(f"sfumato.local.family|{cells}|{size}".encode()).digest())
    shifts = (np.arange(cells)[:, None] + np.arange(cells)[None]) % cells
    found = []
    for _ in range(max(1, FAMILY // cells)):
        base = np.zeros(cells, dtype=np.bool_)
        base[rng.choice(cells, size, replace=False)] = True
        found.append(base[shifts])
    return np.concatenate(found)


def cell_centers(cells: Iterable[tuple[int, int]]) -> FloatArray:
    """The middle of each cell in sides of the square [cell, 2]: x, y."""
    found = np.array(list(cells), dtype=np.int64)
    levels, codes = found[:, 0], found[:, 1]
    out = np.empty(found.shape)
    for level in np.unique(levels).tolist():
        here = levels == level
        columns, rows = Grid(level).decode(codes[here])
        out[here, 0], out[here, 1] = (columns + 0.5) / 2**level, (rows + 0.5) / 2**level
    return out


def _best_size(cells: int, odds: Fraction) -> int:
    """The size of subsets that tells most: cells / (odds + 1), rounded, at least 1."""
    return max(1, min(cells - 1, math.floor(Fraction(cells) / (odds + 1) + Fraction(1, 2))))


def leaf_of_cells(cells: Iterable[tuple[int, int]], level: int) -> IntArray:
    """The number of the cell that each cell of a fine level lies in, by Z-order code.

    Args:
        cells: Level and code of each cell.
        level: The fine level.

    Returns:
        A number for each of its cells; -1 where none covers it.

    """
    found = np.full(4**level, -1, dtype=np.int64)
    for number, (at, code) in enumerate(cells):
        wide = 4 ** (level - at)
        found[code * wide : (code + 1) * wide] = number
    return found

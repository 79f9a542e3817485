"""What a device may send: channels over cells, with exact probabilities. Nothing here needs NumPy.

Every channel is of one form. A report makes some cells likelier, by the same odds: its probability from
a cell among them is `odds` times that from any other. Odds are a fraction at or below e**epsilon, so
that each report tells at most epsilon of any two cells.
Proof: docs/proofs/local-channels.md
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from sfumato.errors import InvalidParameter
from sfumato.heatmap.local.odds import (
    MAX_REPORTS,
    Report,
    Uniform,
    check_cell,
    check_cells,
    check_channel,
    no_report,
)
from sfumato.privacy.accounting import Number, exact, exp_below

# Above so many probabilities a channel is not checked by writing them all down.
MAX_CHECKED = 2**22


@dataclass(frozen=True, slots=True)
class SubsetSelection:
    """A report is a set of `size` cells, which has the true cell in it with raised odds [ye18].

    Privacy: PureDP(ln odds), local, for a replaced user. Proof: docs/proofs/local-channels.md
    """

    cells: int
    size: int
    odds: Fraction
    kind: ClassVar[str] = "subset-selection"

    def __post_init__(self) -> None:
        check_channel(self.cells, self.odds)
        if not 1 <= self.size < self.cells:
            raise InvalidParameter(
                f"a subset has 1 to {self.cells - 1} cells, got {self.size}; no channel was made"
            )

    def sample(self, cell: int, noise: Uniform) -> Report:
        """First whether the true cell is in, then the others by drawing without replacement."""
        check_cell(cell, self.cells)
        with_truth = self.size * self.odds.numerator
        without = (self.cells - self.size) * self.odds.denominator
        chosen = [cell] if noise.uniform(with_truth + without, 1)[0] < with_truth else []
        others = [one for one in range(self.cells) if one != cell]
        while len(chosen) < self.size:
            at = noise.uniform(len(others), 1)[0]
            chosen.append(others[at])
            others[at] = others[-1]  # the last takes its place
            others.pop()
        return tuple(sorted(chosen))

    def likely(self, report: Report) -> frozenset[int]:
        """The subset itself."""
        found = frozenset(report)
        if len(report) != self.size or len(found) != self.size or list(report) != sorted(report):
            raise no_report(report, f"{self.size} different cells, in order")
        check_cells(report, self.cells)
        return found

    def probability(self, report: Report, cell: int) -> Fraction:
        """Odds or 1, over their sum over all subsets."""
        weight = self.odds if cell in self.likely(report) else Fraction(1)
        with_cell = math.comb(self.cells - 1, self.size - 1)
        return weight / (self.odds * with_cell + math.comb(self.cells - 1, self.size))

    def reports(self) -> Iterator[Report]:
        """All subsets of the size."""
        return itertools.combinations(range(self.cells), self.size)

    def to_json(self) -> dict[str, Any]:
        """Size and odds."""
        return {"kind": self.kind, "cells": self.cells, "size": self.size, "odds": str(self.odds)}


@dataclass(frozen=True, slots=True)
class DiskChannel:
    """A report is one of `outputs`; those near the true cell are likelier, equally many for each cell.

    `near[c]` are the outputs whose disk or patch has cell c in it. One disk a report, on a grid that
    is wider than the map by its radius, is the disk area mechanism [du24]; patches that together are
    the best size for epsilon, however small each is, tell more where epsilon is low.

    Privacy: PureDP(ln odds), local, for a replaced user. Proof: docs/proofs/local-channels.md
    """

    outputs: int
    near: tuple[tuple[int, ...], ...]
    odds: Fraction
    kind: ClassVar[str] = "disk"

    def __post_init__(self) -> None:
        check_channel(len(self.near), self.odds)
        if self.outputs > MAX_REPORTS:
            raise InvalidParameter(
                f"a disk channel has at most {MAX_REPORTS} outputs, got {self.outputs}; no channel was made"
            )
        sizes = {len(one) for one in self.near}
        if len(sizes) != 1 or not 1 <= min(sizes) <= self.outputs:
            raise InvalidParameter(
                "every cell of a disk channel has equally many likelier outputs, got "
                f"{sorted(sizes)[:4]} of {self.outputs}; no channel was made"
            )
        for one in self.near:
            if list(one) != sorted(set(one)) or one[0] < 0 or one[-1] >= self.outputs:
                raise InvalidParameter(
                    f"likelier outputs are different ones of 0..{self.outputs - 1}, in order; no "
                    "channel was made"
                )

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return len(self.near)

    def sample(self, cell: int, noise: Uniform) -> Report:
        """One integer: the first part of its range are the likelier outputs, the rest the others."""
        check_cell(cell, self.cells)
        near, high, low = self.near[cell], self.odds.numerator, self.odds.denominator
        drawn = noise.uniform(len(near) * high + (self.outputs - len(near)) * low, 1)[0]
        if drawn < len(near) * high:
            return (near[drawn // high],)
        # The n-th of the outputs that are not near: one more for each near one at or below it.
        found = (drawn - len(near) * high) // low
        for one in near:
            if one > found:
                break
            found += 1
        return (found,)

    def likely(self, report: Report) -> frozenset[int]:
        """The cells in whose disk the output lies."""
        if len(report) != 1 or not 0 <= report[0] < self.outputs:
            raise no_report(report, f"one integer below {self.outputs}")
        return frozenset(c for c, near in enumerate(self.near) if report[0] in near)

    def probability(self, report: Report, cell: int) -> Fraction:
        """Odds or 1, over their sum over all outputs."""
        near = self.near[cell]
        weight = self.odds if report[0] in near else Fraction(1)
        return weight / (self.odds * len(near) + self.outputs - len(near))

    def reports(self) -> Iterator[Report]:
        """All outputs."""
        return ((one,) for one in range(self.outputs))

    def to_json(self) -> dict[str, Any]:
        """The likelier outputs of each cell, and odds."""
        near = [list(one) for one in self.near]
        return {"kind": self.kind, "outputs": self.outputs, "near": near, "odds": str(self.odds)}


@dataclass(frozen=True, slots=True)
class KaryResponse:
    """K-ary randomised response: the true cell with raised odds, or any other [kairouz16].

    Privacy: PureDP(ln odds), local, for a replaced user. Proof: docs/proofs/local-channels.md
    """

    cells: int
    odds: Fraction
    kind: ClassVar[str] = "k-ary-response"

    def __post_init__(self) -> None:
        check_channel(self.cells, self.odds)

    def sample(self, cell: int, noise: Uniform) -> Report:
        """One integer: the truth first, then the other cells in order."""
        check_cell(cell, self.cells)
        high, low = self.odds.numerator, self.odds.denominator
        drawn = noise.uniform(high + (self.cells - 1) * low, 1)[0]
        if drawn < high:
            return (cell,)
        other = (drawn - high) // low
        return (other + (other >= cell),)

    def likely(self, report: Report) -> frozenset[int]:
        """The cell that was said."""
        if len(report) != 1 or not 0 <= report[0] < self.cells:
            raise no_report(report, f"one cell below {self.cells}")
        return frozenset(report)

    def probability(self, report: Report, cell: int) -> Fraction:
        """Odds or 1, over their sum."""
        return (self.odds if report == (cell,) else Fraction(1)) / (self.odds + self.cells - 1)

    def reports(self) -> Iterator[Report]:
        """All cells."""
        return ((one,) for one in range(self.cells))

    def to_json(self) -> dict[str, Any]:
        """Cells and odds."""
        return {"kind": self.kind, "cells": self.cells, "odds": str(self.odds)}


# Affine hashes modulo a prime above any number of cells that is asked about.
PRIME = 8191


@dataclass(frozen=True, slots=True)
class LocalHashing:
    """A report is a hash function and a bucket: randomised response over buckets [wang17, sec. 4.4].

    Hash functions are c -> ((a c + b) mod 8191) mod buckets, a from 1; the device draws one of
    `functions`, the same for all data.

    Privacy: PureDP(ln odds), local, for a replaced user. Proof: docs/proofs/local-channels.md
    """

    cells: int
    buckets: int
    functions: int
    odds: Fraction
    kind: ClassVar[str] = "local-hashing"

    def __post_init__(self) -> None:
        check_channel(self.cells, self.odds)
        if not 2 <= self.buckets <= self.cells or not 1 <= self.functions <= MAX_REPORTS:
            raise InvalidParameter(
                f"local hashing has 2 to {self.cells} buckets and 1 to {MAX_REPORTS} functions, got "
                f"{self.buckets} and {self.functions}; no channel was made"
            )

    def bucket(self, function: int, cell: int) -> int:
        """Where a hash function puts a cell."""
        # Numbers of functions are spread over both parameters by a step that has no common factor.
        at = function * 7_368_787 % ((PRIME - 1) * PRIME)
        a, b = 1 + at // PRIME, at % PRIME
        return (a * cell + b) % PRIME % self.buckets

    def sample(self, cell: int, noise: Uniform) -> Report:
        """One integer for the function, one for the bucket."""
        check_cell(cell, self.cells)
        function = noise.uniform(self.functions, 1)[0]
        inner = KaryResponse(self.buckets, self.odds)
        return (function, *inner.sample(self.bucket(function, cell), noise))

    def likely(self, report: Report) -> frozenset[int]:
        """The cells that the function puts in the bucket."""
        if (
            len(report) != 2
            or not 0 <= report[0] < self.functions
            or not 0 <= report[1] < self.buckets
        ):
            raise no_report(report, "a function and a bucket")
        return frozenset(c for c in range(self.cells) if self.bucket(report[0], c) == report[1])

    def probability(self, report: Report, cell: int) -> Fraction:
        """Odds or 1, over their sum, for each function alike."""
        weight = self.odds if self.bucket(report[0], cell) == report[1] else Fraction(1)
        return weight / ((self.odds + self.buckets - 1) * self.functions)

    def reports(self) -> Iterator[Report]:
        """All functions with all buckets."""
        return itertools.product(range(self.functions), range(self.buckets))

    def to_json(self) -> dict[str, Any]:
        """Buckets, functions and odds."""
        return {
            "kind": self.kind,
            "cells": self.cells,
            "buckets": self.buckets,
            "functions": self.functions,
            "odds": str(self.odds),
        }


@dataclass(frozen=True, slots=True)
class UnaryEncoding:
    """A report is a set of cells: the true one by a fair coin, any other with chance 1 / (odds + 1) [wang17].

    Privacy: PureDP(ln odds), local, for a replaced user. Proof: docs/proofs/local-channels.md
    """

    cells: int
    odds: Fraction
    kind: ClassVar[str] = "unary-encoding"

    def __post_init__(self) -> None:
        check_channel(self.cells, self.odds)

    def sample(self, cell: int, noise: Uniform) -> Report:
        """A coin for each cell, in order."""
        check_cell(cell, self.cells)
        high, low = self.odds.numerator, self.odds.denominator
        drawn = noise.uniform(2 * (high + low), self.cells)
        return tuple(c for c, u in enumerate(drawn) if u < (high + low if c == cell else 2 * low))

    def likely(self, report: Report) -> frozenset[int]:
        """The cells in the report."""
        if list(report) != sorted(set(report)):
            raise no_report(report, "different cells, in order")
        check_cells(report, self.cells)
        return frozenset(report)

    def probability(self, report: Report, cell: int) -> Fraction:
        """The product over cells."""
        chance, other = 1 / (self.odds + 1), len(report) - (cell in report)
        return Fraction(1, 2) * chance**other * (1 - chance) ** (self.cells - 1 - other)

    def reports(self) -> Iterator[Report]:
        """All sets of cells."""
        for size in range(self.cells + 1):
            yield from itertools.combinations(range(self.cells), size)

    def to_json(self) -> dict[str, Any]:
        """Cells and odds."""
        return {"kind": self.kind, "cells": self.cells, "odds": str(self.odds)}


# Closed: what decides privacy is not for plugins. All have `kind`, `cells` and `odds`; `sample` draws
# one report of a cell from exact integers, `likely` are the cells that a report makes likelier,
# `probability` is exact, `reports` are all there are.
Channel = SubsetSelection | DiskChannel | KaryResponse | LocalHashing | UnaryEncoding


@dataclass(frozen=True, slots=True)
class PrivacyCheck:
    """What an exact check of a channel found: every probability was written down as a fraction.

    Attributes:
        reports: How many different reports there are.
        largest_ratio: The largest ratio of the probabilities of one report from two cells.
        odds: What the channel says of it.
    """

    reports: int
    largest_ratio: Fraction
    odds: Fraction


def assert_private(channel: Channel, epsilon: Number) -> PrivacyCheck:
    """Write down every probability of a channel and check it, exactly.

    Rows must add up to 1; no report may be more than e**epsilon times as likely from one cell as from
    another.

    Args:
        channel: A channel of few enough cells that its matrix has at most 4 million entries.
        epsilon: What it is said to keep.

    Returns:
        How many reports there are, and the largest ratio.

    Raises:
        InvalidParameter: The channel is too large, its rows do not add up to 1, or it tells more.

    """
    sums = [Fraction(0)] * channel.cells
    largest, count = Fraction(0), 0
    for report in channel.reports():
        count += 1
        if count * channel.cells > MAX_CHECKED:
            raise InvalidParameter(
                f"a channel is checked whole up to {MAX_CHECKED} probabilities, this one has more; "
                "nothing was checked"
            )
        row = [channel.probability(report, cell) for cell in range(channel.cells)]
        sums = [total + one for total, one in zip(sums, row, strict=True)]
        if min(row) <= 0 < max(row):
            raise InvalidParameter(
                f"report {report} is impossible from some cell: it is not private"
            )
        largest = max(largest, max(row) / min(row))
    if any(total != 1 for total in sums):
        raise InvalidParameter("the probabilities of a cell's reports do not add up to 1")
    if largest > exp_below(exact(epsilon, name="epsilon")):
        raise InvalidParameter(
            f"a report is {float(largest):.6g} times as likely from one cell as from another, more than "
            f"e**{epsilon}: the channel is not private"
        )
    return PrivacyCheck(count, largest, channel.odds)

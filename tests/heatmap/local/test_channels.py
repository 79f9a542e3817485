"""Channels of local maps: exact privacy, exact laws of what is sampled, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.heatmap.local import (
    Channel,
    DiskChannel,
    KaryResponse,
    LocalHashing,
    Report,
    SubsetSelection,
    UnaryEncoding,
    assert_private,
    disk_area_channel,
    disk_channel,
    odds_below,
    patch_channel,
)
from sfumato.heatmap.local.question import channel_from_json

pytestmark = pytest.mark.unit

LEVEL_1 = [(1, code) for code in range(4)]
LEAVES = [(1, 0), (1, 1), (1, 2), *((2, 12 + child) for child in range(4))]


def channels(odds: Fraction) -> Iterator[Channel]:
    yield SubsetSelection(7, 2, odds)
    yield disk_channel(LEAVES, odds, size=3)
    yield disk_area_channel(2, odds, radius=1)
    yield patch_channel(LEAVES, odds, patch=2, rng=np.random.default_rng(1))
    yield KaryResponse(5, odds)
    yield LocalHashing(6, 3, 20, odds)
    yield UnaryEncoding(6, odds)


@pytest.mark.parametrize("epsilon", ["0.1", "1", "5"])
def test_no_report_tells_more_than_epsilon_of_any_two_cells(epsilon: str) -> None:
    for channel in channels(odds_below(epsilon)):
        found = assert_private(channel, epsilon)
        assert found.largest_ratio == channel.odds  # and no less: nothing is given away


class Scripted:
    """Integers that take every value in turn: a walk through all that a sampler can draw."""

    def __init__(self, script: list[int]) -> None:
        self.script, self.ranges = script, list[int]()

    def uniform(self, below: int, size: int) -> list[int]:
        out = []
        for _ in range(size):
            at = len(self.ranges)
            if at == len(self.script):
                self.script.append(0)
            self.ranges.append(below)
            out.append(self.script[at])
        return out


def exact_law(channel: Channel, cell: int) -> dict[tuple[int, ...], Fraction]:
    """The law of what is sampled, from every sequence of integers that can be drawn."""
    law: dict[tuple[int, ...], Fraction] = {}
    script: list[int] = []
    while True:
        walk = Scripted(script)
        report = channel.sample(cell, walk)
        chance = Fraction(1)
        for below in walk.ranges:
            chance /= below
        law[report] = law.get(report, Fraction(0)) + chance
        while script and script[-1] == walk.ranges[len(script) - 1] - 1:
            script.pop()
        if not script:
            return law
        script[-1] += 1


def test_what_is_sampled_has_exactly_the_law_that_is_checked() -> None:
    small: list[Channel] = [
        SubsetSelection(5, 2, Fraction(3, 2)),
        disk_channel(LEVEL_1, Fraction(5, 2), size=2),
        disk_area_channel(1, Fraction(3), radius=1),
        KaryResponse(4, Fraction(7, 2)),
        LocalHashing(4, 2, 3, Fraction(2)),
        UnaryEncoding(3, Fraction(3)),
    ]
    for channel in small:
        for cell in range(channel.cells):
            law = exact_law(channel, cell)
            assert law == {r: channel.probability(r, cell) for r in channel.reports()}
            for report in law:
                weights = [channel.probability(report, c) for c in range(channel.cells)]
                likely = {c for c, w in enumerate(weights) if w == max(weights) != min(weights)}
                if likely:
                    assert channel.likely(report) == likely


def test_odds_are_below_e_to_the_epsilon_by_little() -> None:
    assert odds_below("1e-9") == 1
    for epsilon in ("0.5", 2, "16"):
        found, real = odds_below(epsilon), np.exp(float(epsilon))
        assert real * (1 - 2**-15) < found <= real


def test_disk_area_has_whole_disks_at_the_edges_too() -> None:
    channel = disk_area_channel(2, Fraction(3), radius=2)
    assert channel.outputs == 8 * 8
    assert {len(near) for near in channel.near} == {13}


def test_a_channel_is_what_its_file_says() -> None:
    for channel in channels(odds_below(2)):
        assert channel_from_json(channel.to_json()) == channel
    for broken in (None, {}, {"kind": "truth", "cells": 4}, {"kind": "k-ary-response", "cells": 4}):
        with pytest.raises(InvalidInput, match="no channel"):
            channel_from_json(broken)


def test_what_is_no_report_is_refused() -> None:
    with pytest.raises(InvalidInput):
        SubsetSelection(5, 2, Fraction(2)).likely((3, 3))
    with pytest.raises(InvalidInput):
        KaryResponse(5, Fraction(2)).likely((5,))
    with pytest.raises(InvalidInput):
        disk_channel(LEVEL_1, Fraction(2), size=1).likely((-1,))
    with pytest.raises(InvalidParameter, match="equally many"):
        DiskChannel(4, ((0,), (1, 2)), Fraction(2))
    with pytest.raises(InvalidParameter, match="epsilon"):
        odds_below(0)
    with pytest.raises(InvalidParameter, match="not private"):
        assert_private(KaryResponse(5, Fraction(3)), 1)


class TooOften(KaryResponse):
    """A saboteur: it sends the true cell a little more often than its odds allow."""

    def probability(self, report: Report, cell: int) -> Fraction:
        more = Fraction(1, 10**9)
        likely = report == (cell,)
        return super().probability(report, cell) + (more if likely else -more / (self.cells - 1))


def test_a_channel_that_sends_the_true_cell_a_little_too_often_is_caught() -> None:
    odds = Fraction(2_718_281_828, 10**9)  # below e by two billionths of it
    assert assert_private(KaryResponse(5, odds), 1).largest_ratio == odds
    with pytest.raises(InvalidParameter, match="not private"):
        assert_private(TooOften(5, odds), 1)

"""The mechanisms of the package as black boxes, with pairs that are hard on them and with broken twins."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy.typing as npt
import pytest
from tests.audit.curious import seen_rounds, seen_sums, seen_zooms
from tests.audit.flat_rows import many, map_by_map, maps, one_by_one, shape_by_shape, shapes, zooms
from tests.audit.session import ForgetfulParties, seen_session
from tests.audit.twins import (
    BusiestFirst,
    ClippedNoise,
    ExactChoice,
    ExactPrices,
    FromOneCell,
    Noiseless,
)

from sfumato.audit.assertion import assert_claim
from sfumato.audit.boxes.box import FunctionBox, Pair
from sfumato.audit.claims import implied
from sfumato.audit.sequential.power import excluded_epsilon
from sfumato.audit.verdict import Verdict
from sfumato.graphon import FlippedDyads
from sfumato.heatmap.local import KaryResponse, LocalAnswer, odds_below
from sfumato.heatmap.methods import (
    JointMechanism,
    PrivateBounds,
    Pyramid,
    ShuffledMechanism,
    Zoom,
)
from sfumato.heatmap.methods.baselines import (
    AdaptiveGrid,
    FlatGaussian,
    FlatLaplace,
    HierarchyLaplace,
    PrivTree,
)
from sfumato.privacy import (
    UNITS,
    ZCDP,
    AddRemoveUser,
    ApproxDP,
    Bound,
    Claim,
    DiscreteGaussian,
    DiscreteLaplace,
    FlippedEdge,
    Guarantee,
    Joint,
    Mechanism,
    Noise,
    PermuteAndFlip,
    RandomisedResponse,
    ReplaceUser,
    RoundedGaussian,
    SharedLaplace,
    Shuffled,
)
from sfumato.privacy.ledger.guarded import LARGEST
from sfumato.privacy.noise import lookup
from sfumato.records import bound_of_sums
from sfumato.spaces import Grid

Rows = npt.NDArray[Any]
Pairs = Callable[[Any, int], Rows]
Drawn = Callable[[Any, Any, int, Noise], Rows]

# As in a process that has drawn much noise: audits draw little, ten thousand times.
lookup._compiled()

U = UNITS
ACCOUNT = math.log(4)
"""Nats: what is lost where the bet that wins holds a quarter of the bankroll."""
FAST, SLOW = 14_000, 2_500
"""Runs of an audit, where one call gives many and where each takes a millisecond (`breach` says what for)."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A mechanism gone wrong in one way, and a pair that shows it."""

    name: str
    mechanism: Any
    pair: Pair


@dataclass(frozen=True, slots=True)
class Ours:
    """A mechanism, what its data may change by, pairs of data, and the same mechanism gone wrong."""

    name: str
    mechanism: Mechanism[Any, Any]
    bound: Bound
    draw: Drawn
    pairs: tuple[Pair, ...]
    broken: tuple[Broken, ...]
    runs: int = FAST

    @property
    def claim(self) -> Claim:
        """What it says it costs itself."""
        return Claim(self.mechanism.cost(self.bound), self.bound.neighbors)

    def box(self, noise: Noise, mechanism: Any = None) -> FunctionBox:
        """The mechanism, or a broken one in its place."""
        drawn = self.mechanism if mechanism is None else mechanism

        def run(data: Any, runs: int) -> npt.NDArray[Any]:
            return self.draw(drawn, data, runs, noise)

        return FunctionBox(run, self.name)


def breach(verdict: Verdict, *, mass: float = 0.5) -> float:
    """How many times the epsilon claimed a breach must be for one pair's audit to show it, with chance 90 %.

    By an event of this mass on one input, at the delta where it is seen best. With a flake rate of
    1e-6 and epsilon 1 it is 1.3 for 14,000 runs, 1.9 for 2,500, 2.5 for 1,200; with mass 0.1 it is
    1.9 for 14,000.
    """
    needed = -math.log1p(-verdict.confidence) + ACCOUNT
    found = [
        excluded_epsilon(one, verdict.runs // 2, needed, mass) / one.epsilon
        for one in implied(verdict.claim)
    ]
    return min(found)


def claimed(guarantee: Guarantee) -> Claim:
    """The guarantee that a release states, as somebody who doubts it would."""
    return Claim(guarantee.loss, guarantee.neighbors)


def audited(draw: Pairs, pair: Pair, guarantee: Guarantee, *, runs: int) -> Verdict:
    """A release at its own guarantee; what breaks epsilon 3 times over on an event of mass 1/2 would show."""
    verdict = assert_claim(
        FunctionBox(draw, pair.name), claimed(guarantee), pairs=[pair], runs=runs
    )
    assert verdict.kind == "NOT_REFUTED"
    assert breach(verdict) <= 3
    return verdict


def refuted(draw: Pairs, pair: Pair, guarantee: Guarantee, *, runs: int) -> None:
    with pytest.raises(AssertionError, match="does not keep"):
        assert_claim(FunctionBox(draw, pair.name), claimed(guarantee), pairs=[pair], runs=runs)


ALONE = Pair([0], [1], "nobody, then one alone")
CROWD = Pair([7, 1000, 0], [7, 1001, 0], "one more in a crowd")
TOP = Pair([LARGEST - 1], [LARGEST], "at the upper end")
BOTTOM = Pair([-LARGEST], [1 - LARGEST], "at the lower end")
MOVED = Pair([1, 0], [0, 1], "one moves")
JOINED = Pair([0, 0, 0], [0, 1, 0], "no edge, then one")
EMPTY = Pair([0] * 4, [0, 0, 0, U], "an empty map, then one alone")
SHARED = Pair([0, 5 * U, 0, 0], [U // 4, 5 * U + U // 4, U // 4, U // 4], "one in every cell")
BUSY = Pair([300 * U, 300 * U, U, U], [300 * U, 300 * U, U, 2 * U], "one more beside a crowd")
CUT = Pair([4 * U, 0, 0, 0], [5 * U, 0, 0, 0], "one more where cells are cut")
SPLIT = Pair([15 * U, 0, 0, 0], [16 * U, 0, 0, 0], "one more where a cell can pay for its split")
SCORED = Pair([0, 0, 0], [1, 0, 0], "nobody, then one alone")
CHOSEN = Pair([1, 0, 0], [0, 1, 0], "one moves")

ADDED, REPLACED = (
    Bound(AddRemoveUser(), 3, l1=1),
    Bound(ReplaceUser(), 2, l1=2, l2_squared=2, linf=1),
)
PROMISE = ApproxDP(1, "1e-2")
CELLS = bound_of_sums(Grid(1))

GAUSSIAN_MOVED = DiscreteGaussian.within(ZCDP("1/2"), REPLACED)
ROUNDED = RoundedGaussian.within(PROMISE, ADDED)
ROUNDED_MOVED = RoundedGaussian.within(PROMISE, REPLACED)
FLAT_GAUSSIAN = FlatGaussian.within(PROMISE, CELLS, level=1)
PYRAMID = Pyramid((Fraction(2 * U), Fraction(2 * U)), 0, 2)
TREE = PrivTree(1, scale=2 * U, leaf_scale=2 * U)
GRIDS = AdaptiveGrid(1, total_scale=4 * U, first_scale=4 * U, second_scale=2 * U)
ZOOM = Zoom(1, part_scale=64 * U, first_level=0)
CUT_GRIDS = FromOneCell(1, total_scale=4 * U, first_scale=4 * U, second_scale=2 * U, fine=1)

HALF = "half the noise"
ELSEWHERE = Pair([5, 0, 0, 0], [0, 0, 0, 5], "a user who is elsewhere")
OURS = (
    Ours(
        "discrete-laplace",
        DiscreteLaplace(1),
        ADDED,
        many,
        (ALONE, CROWD, TOP, BOTTOM),
        (
            Broken(HALF, DiscreteLaplace("1/2"), CROWD),
            Broken("clipped at the end by the value", ClippedNoise(Fraction(1)), TOP),
        ),
    ),
    Ours(
        "discrete-laplace, replaced",
        DiscreteLaplace(2),
        REPLACED,
        many,
        (MOVED,),
        (Broken("a replacement counted once", DiscreteLaplace(1), MOVED),),
    ),
    Ours(
        "discrete-gaussian",
        DiscreteGaussian(1),
        ADDED,
        many,
        (ALONE, TOP),
        (Broken(HALF, DiscreteGaussian("1/2"), ALONE),),
    ),
    Ours(
        "discrete-gaussian, replaced",
        GAUSSIAN_MOVED,
        REPLACED,
        many,
        (MOVED,),
        (Broken(HALF, DiscreteGaussian(GAUSSIAN_MOVED.sigma / 2), MOVED),),
    ),
    Ours(
        "rounded-gaussian",
        ROUNDED,
        ADDED,
        many,
        (ALONE, BOTTOM),
        (Broken(HALF, RoundedGaussian(ROUNDED.sigma / 2), ALONE),),
    ),
    Ours(
        "rounded-gaussian, replaced",
        ROUNDED_MOVED,
        REPLACED,
        many,
        (MOVED,),
        (Broken("a replacement counted once", RoundedGaussian(ROUNDED.sigma / 2), MOVED),),
    ),
    Ours(
        "randomised-response",
        RandomisedResponse(1, 4),
        Bound(ReplaceUser(), 1, l1=3, entries=1),
        many,
        (Pair([0], [3], "another answer"), Pair([9], [1], "an answer that is none")),
        (Broken("twice the epsilon", RandomisedResponse(2, 4), Pair([0], [3], "another answer")),),
    ),
    Ours(
        "randomised-response, two answers",
        RandomisedResponse("1/2", 2),
        Bound(ReplaceUser(), 2, l1=2, entries=2),
        many,
        (Pair([0, 0], [1, 1], "both answers"),),
        (
            Broken(
                "one entry counted", RandomisedResponse(1, 2), Pair([0, 0], [1, 1], "both answers")
            ),
        ),
    ),
    Ours(
        "local-answer",
        LocalAnswer(KaryResponse(4, odds_below(1)), Fraction(1)),
        Bound(ReplaceUser(), 4, linf=5, model="local"),
        one_by_one,
        (ELSEWHERE, Pair([0, 0, 0, 0], [0, 5, 0, 0], "a place, or none in the map")),
        (
            Broken(
                "twice the epsilon",
                LocalAnswer(KaryResponse(4, odds_below(2)), Fraction(2)),
                ELSEWHERE,
            ),
        ),
    ),
    Ours(
        "flipped-dyads",
        FlippedDyads(1),
        Bound(FlippedEdge(), 3, l1=1, entries=1),
        many,
        (JOINED, Pair([1, 1, 0], [1, 0, 0], "one edge of two is taken")),
        (Broken("twice the epsilon", FlippedDyads(2), JOINED),),
    ),
    Ours(
        "permute-and-flip",
        PermuteAndFlip(2),
        Bound(AddRemoveUser(), 3, l1=2, linf=1),
        one_by_one,
        (SCORED, CHOSEN),
        (Broken("half the scale", PermuteAndFlip(1), CHOSEN),),
    ),
    Ours(
        "flat-laplace",
        FlatLaplace(1, U),
        CELLS,
        maps,
        (EMPTY, SHARED),
        (Broken(HALF, FlatLaplace(1, U // 2), EMPTY),),
    ),
    Ours(
        "flat-gaussian",
        FLAT_GAUSSIAN,
        CELLS,
        maps,
        (EMPTY,),
        (
            Broken(
                "a third of the noise",
                FlatGaussian(1, FLAT_GAUSSIAN.sigma / 3, promise=PROMISE),
                EMPTY,
            ),
        ),
    ),
    Ours(
        "hierarchy",
        HierarchyLaplace(0, 1, scale=2 * U),
        CELLS,
        maps,
        (EMPTY, SHARED),
        (Broken("levels not counted", HierarchyLaplace(0, 1, scale=U), EMPTY),),
    ),
    Ours(
        "pyramid",
        PYRAMID,
        CELLS,
        maps,
        (EMPTY, BUSY),
        (
            Broken("levels not counted", Pyramid((Fraction(U), Fraction(U)), 0, 2), EMPTY),
            Broken("cells chosen by exact counts", ExactChoice(PYRAMID), EMPTY),
            Broken("cells in the order of users", BusiestFirst(PYRAMID), EMPTY),
        ),
    ),
    Ours(
        "privtree",
        TREE,
        CELLS,
        shapes,
        (EMPTY, BUSY),
        (
            Broken(
                "a quarter of the noise on leaves",
                PrivTree(1, scale=2 * U, leaf_scale=U // 2),
                EMPTY,
            ),
            Broken("a threshold without noise", Noiseless(TREE, TREE.scale), EMPTY),
        ),
    ),
    Ours(
        "adaptive-grid",
        GRIDS,
        CELLS,
        map_by_map,
        (EMPTY,),
        (Broken("a total without noise", Noiseless(GRIDS, GRIDS.total_scale), EMPTY),),
        SLOW,
    ),
    Ours(
        "adaptive-grid, cut",
        CUT_GRIDS,
        CELLS,
        shape_by_shape,
        (CUT,),
        (Broken("cut by exact counts", Noiseless(CUT_GRIDS, CUT_GRIDS.first_scale), CUT),),
        SLOW,
    ),
    Ours(
        "strips",
        PrivateBounds(Fraction(2 * U)),
        CELLS,
        map_by_map,
        (EMPTY,),
        (Broken("a quarter of the noise", PrivateBounds(Fraction(U, 2)), EMPTY),),
        SLOW,
    ),
    Ours(
        "zoom",
        ZOOM,
        CELLS,
        zooms,
        (SPLIT,),
        (
            Broken("a quarter of the noise", Zoom(1, part_scale=16 * U, first_level=0), SPLIT),
            Broken(
                "a split priced by exact counts",
                ExactPrices(1, part_scale=64 * U, first_level=0),
                SPLIT,
            ),
        ),
        SLOW,
    ),
    Ours(
        "shared-laplace, seen by one of two parties",
        SharedLaplace(1, Joint(2, 1)),
        ADDED,
        seen_sums,
        (ALONE, CROWD),
        (
            Broken("shares for outsiders only", SharedLaplace(1, Joint(2, 0)), ALONE),
            Broken(HALF, SharedLaplace("1/2", Joint(2, 1)), CROWD),
        ),
    ),
    Ours(
        "shared-laplace, a session that went on, seen by one of three parties",
        SharedLaplace(1, Joint(3, 1)),
        ADDED,
        seen_session,
        (ALONE,),
        (Broken("lost receipts", ForgetfulParties(1, Joint(3, 1)), ALONE),),
        SLOW,
    ),
    Ours(
        "joint, a zoom seen by one of three parties",
        JointMechanism(ZOOM, Joint(3, 1)),
        CELLS,
        seen_zooms,
        (SPLIT,),
        (
            Broken(
                "a quarter of the noise",
                JointMechanism(Zoom(1, part_scale=16 * U, first_level=0), Joint(3, 1)),
                SPLIT,
            ),
        ),
        SLOW,
    ),
    Ours(
        "shuffled, a pyramid seen by the adder and one of four devices",
        ShuffledMechanism(PYRAMID, Shuffled(4, curious=1), U, 256, 8),
        CELLS,
        seen_rounds,
        (EMPTY,),
        (
            Broken(
                "a quarter of the noise",
                ShuffledMechanism(
                    Pyramid((Fraction(U, 2), Fraction(U, 2)), 0, 2),
                    Shuffled(4, curious=1),
                    U,
                    256,
                    8,
                ),
                EMPTY,
            ),
        ),
        SLOW,
    ),
)

"""The test of one pair of inputs that suits a claim: which algorithm, how many runs, what they say."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato._types import FloatArray
from sfumato.audit.boxes.box import Box, Pair
from sfumato.audit.boxes.tallies import Table, Tallies
from sfumato.audit.claims import (
    EpsilonDelta,
    decidable_statement,
    require_countable,
    require_verifiable,
    traits_of,
)
from sfumato.audit.property_testing.testers import (
    Decision,
    approx_samples,
    approx_test,
    laws_are_private,
    specified_approx_samples,
    specified_approx_test,
    specified_pure_samples,
    specified_pure_test,
)
from sfumato.audit.verdict import Kind, Verdict
from sfumato.errors import InvalidParameter, Unverifiable
from sfumato.privacy import Claim

Specification = Callable[[Any], Sequence[float] | FloatArray]


@dataclass(frozen=True, slots=True)
class PairTester:
    """The test of one pair that suits a claim: Algorithm 4 without a specification, else 6 if it is pure.

    An approximate claim with one is given to algorithm 5, or to 4, which looks at the stated laws
    only to see that they keep the claim: whichever takes fewer runs.
    """

    claim: Claim
    statement: EpsilonDelta
    proximity: float
    outputs: int | Sequence[Any]
    specification: Specification | None

    @property
    def size(self) -> int:
        """How many outputs there are."""
        return self.outputs if isinstance(self.outputs, int) else len(self.outputs)

    @property
    def pure(self) -> bool:
        """Whether the claim is pure, so that proximity is in epsilon."""
        return traits_of(self.claim.loss).pure

    @property
    def name(self) -> str:
        """Which algorithm of the thesis it is."""
        if self.specification is None:
            return "algorithm 4 in both orders, without information"
        return f"algorithm {'6' if self.pure else '5, or 4 if cheaper'}, with stated laws"

    def tallies(self, box: Box) -> Tallies:
        """Counts runs of a box for this test."""
        return Tallies(box, self.outputs, stated=self.specification is not None)

    def laws(self, pair: Pair) -> tuple[FloatArray, FloatArray]:
        """What is stated of a pair."""
        if self.specification is None:
            raise InvalidParameter("nothing is stated of this box; nothing was run")
        first, second = (
            np.asarray(self.specification(data), dtype=np.float64)
            for data in (pair.first, pair.second)
        )
        if first.shape != (self.size,) or second.shape != (self.size,):
            raise InvalidParameter(
                f"a specification gives a mass for each of {self.size} outputs, got shapes {first.shape} and "
                f"{second.shape}; nothing was run"
            )
        if self.pure and not min(first.min(), second.min()) > 0:
            raise Unverifiable(
                "a pure claim is verified only where every output has a stated mass above 0 "
                f"[mcmillan18, thm. 10.12], got 0 for pair {pair.name!r}; nothing was run"
            )
        return first, second

    def stated_private(self, pair: Pair) -> bool:
        """Whether what is stated of a pair keeps the claim; true where nothing is."""
        if self.specification is None:
            return True
        return laws_are_private(
            self.laws(pair), epsilon=self.statement.epsilon, delta=self.statement.delta
        )

    def samples(self, error: float, pairs: int, pair: Pair | None) -> int:
        """Runs of each input for one test; without a pair, for laws that are even."""
        epsilon = self.statement.epsilon
        rates = {"proximity": self.proximity, "error": error}
        if self.pure:
            min_mass = 1 / self.size if pair is None else float(np.min(self.laws(pair)))
            return specified_pure_samples(self.size, min_mass, **rates, pairs=pairs)
        blind = approx_samples(self.size, epsilon, **rates, pairs=pairs)
        if self.specification is None:
            return blind
        return min(blind, specified_approx_samples(self.size, epsilon, **rates, pairs=pairs))

    def uses_laws(self, error: float, pairs: int) -> bool:
        """Whether a test compares runs with the stated laws: then it may reject these, not the claim."""
        if self.specification is None or self.pure:
            return self.specification is not None
        rates = {"proximity": self.proximity, "error": error}
        size, epsilon = self.size, self.statement.epsilon
        blind = approx_samples(size, epsilon, **rates, pairs=pairs)
        return blind > specified_approx_samples(size, epsilon, **rates, pairs=pairs)

    def decide(self, pair: Pair, table: Table, error: float, pairs: int) -> Decision:
        """What the test says of the counts of a pair."""
        epsilon, delta = self.statement.epsilon, self.statement.delta
        first, second = table.counts
        if table.strange:
            return Decision(False, math.inf, 0.0, 0.0)
        if self.pure:
            laws = self.laws(pair)
            return specified_pure_test(
                first, second, laws=laws, epsilon=epsilon, proximity=self.proximity
            )
        if not self.uses_laws(error, pairs):
            return approx_test(
                first,
                second,
                outputs=self.size,
                epsilon=epsilon,
                delta=delta,
                error=error,
                pairs=pairs,
            )
        return specified_approx_test(
            first,
            second,
            laws=self.laws(pair),
            epsilon=epsilon,
            delta=delta,
            error=error,
            pairs=pairs,
        )

    def verdict(self, kind: Kind, runs: int, *notes: str) -> Verdict:
        """A verdict whose confidence and time are filled in at the end."""
        return Verdict(
            kind, self.claim, 0.0, runs, 0.0, proximity=self.proximity, notes=(self.name, *notes)
        )


def tester_for(
    claim: Claim,
    outputs: int | Sequence[Any],
    proximity: float,
    specification: Specification | None,
) -> PairTester:
    """The test that suits a claim; claims that none can verify are refused."""
    require_countable(claim.loss)
    if specification is None:
        require_verifiable(claim.loss)
    elif isinstance(outputs, int):
        raise InvalidParameter(
            "a specification needs a list of outputs, not their number; nothing was run"
        )
    statement = decidable_statement(claim.loss)
    tester = PairTester(claim, statement, proximity, outputs, specification)
    if tester.size < 1 or not 0 < proximity < math.inf:
        raise InvalidParameter(
            f"outputs must be at least 1 and proximity above 0, got {tester.size} and {proximity}; "
            "nothing was run"
        )
    return tester

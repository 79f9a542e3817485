"""We audit ourselves: blocks of a private network keep what was paid for them, and a broken twin does not."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.audit.ours import breach

from sfumato.audit.assertion import assert_claim
from sfumato.audit.boxes.box import FunctionBox, Pair
from sfumato.graphon import Network, private_blocks
from sfumato.privacy import Claim, FlippedEdge, KeyedNoise, Ledger, Noise, PureDP
from sfumato.privacy.mechanisms import DiscreteLaplace

pytestmark = pytest.mark.statistical

EPSILON, RUNS = 1, 1_200
PATH = [(0, 1), (1, 2)]
PAIRS = [
    Pair(PATH, [*PATH, (2, 3)], "a path grows"),
    Pair([], [(0, 3)], "no edge, then one"),
]


def released(noise: Noise) -> Any:
    """All that comes out for two blocks of four nodes: flipped dyads, blocks and noisy counts.

    Half of epsilon is for the counts, so that either part would show if it were broken.
    """

    def run(edges: list[tuple[int, int]], runs: int) -> npt.NDArray[np.int64]:
        rows = np.full((runs, 13), -99)
        for row in rows:
            ledger = Ledger.rehearsal(PureDP(EPSILON), unit="edge", neighbors=FlippedEdge())
            found = private_blocks(
                Network(4, np.array(edges, dtype=np.int64).reshape(-1, 2)), 2,
                epsilon=EPSILON, ledger=ledger, noise=noise, labels_share=Fraction(1, 2),
            )  # fmt: skip
            told, counts = (one.value for one in found.releases)
            row[:6], row[6:10], row[10 : 10 + counts.size] = told, found.estimate.labels, counts
        return rows

    return FunctionBox(run, "blocks of a network")


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_blocks_keep_what_was_paid_for_them(pair: Pair, key: bytes) -> None:
    claim = Claim(PureDP(EPSILON), FlippedEdge())
    verdict = assert_claim(released(KeyedNoise(key)), claim, pairs=[pair], runs=RUNS)
    assert verdict.kind == "NOT_REFUTED"
    assert breach(verdict) <= 3


def test_counts_without_noise_are_refuted(key: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiscreteLaplace, "sample", lambda self, values, noise: np.array(values))
    claim = Claim(PureDP(EPSILON), FlippedEdge())
    with pytest.raises(AssertionError, match="does not keep"):
        assert_claim(released(KeyedNoise(key)), claim, pairs=[PAIRS[1]], runs=RUNS)

"""Private blocks: the flips have their exact chance, both releases are paid, and all else is arithmetic."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats
from scipy.optimize import linear_sum_assignment
from tests.chance import LEVEL, assert_share

from sfumato._types import IntArray
from sfumato.errors import BudgetExceeded, InvalidParameter, LedgerMismatch
from sfumato.graphon import release
from sfumato.graphon.estimation.estimators import block_counts
from sfumato.graphon.flipped_dyads import FlippedDyads
from sfumato.graphon.model import BlockGraphon
from sfumato.graphon.network import Network
from sfumato.graphon.release import (
    _reason,
    blocks_in,
    estimate_from_counts,
    guard_dyads,
    noise_edge,
    private_blocks,
    response_signal,
    square,
)
from sfumato.graphon.sample import sample_graph
from sfumato.privacy import (
    AddRemoveUser,
    Bound,
    FlippedEdge,
    Ledger,
    PureDP,
    ReplaceUser,
    SystemNoise,
)

FOUR = BlockGraphon(np.full((4, 4), 0.02) + 0.18 * np.eye(4))
ONE_EDGE = Bound(FlippedEdge(), 100, l1=1, unit="edge")


def ledger(epsilon: int = 100) -> Ledger:
    return Ledger.rehearsal(PureDP(epsilon), unit="edge", neighbors=FlippedEdge())


def flipped(network: Network, epsilon: float, rng: np.random.Generator) -> IntArray:
    """Flips from a simulation's generator: many networks, nobody's."""
    dyads = np.zeros(network.dyads, dtype=np.int64)
    low, high = network.edges.T
    dyads[high * (high - 1) // 2 + low] = 1
    return np.asarray(dyads ^ (rng.random(dyads.size) < 1 / (1 + math.exp(epsilon))))


def accuracy(labels: IntArray, true: IntArray) -> float:
    """The share of nodes in the right block, blocks renamed as they fit best."""
    k = int(max(labels.max(), true.max())) + 1
    table = np.zeros((k, k))
    np.add.at(table, (labels, true), 1)
    return float(table[linear_sum_assignment(-table)].sum() / true.size)


# --- the flips ---


@pytest.mark.unit
@pytest.mark.parametrize("epsilon", ["1/1000", "0.1", "1", "1.9", "7", "20"])
def test_a_flip_is_as_likely_as_epsilon_asks_or_more(epsilon: str) -> None:
    mechanism = FlippedDyads(epsilon)
    with localcontext(prec=60):
        asked = Decimal(mechanism.epsilon.numerator) / Decimal(mechanism.epsilon.denominator)
        wanted = 1 / (1 + asked.exp())
        found = Decimal(mechanism.flip.numerator) / Decimal(mechanism.flip.denominator)
        assert wanted <= found <= wanted + Decimal(2) ** -32 * Decimal("1.001")
        truth, flip = mechanism.law
        assert truth + flip == 1
        assert truth >= flip
        # The loss of one dyad, both ways, is the log of this: at most epsilon, and not much less.
        assert (
            Decimal(truth.numerator) / Decimal(flip.numerator)
        ).ln() <= asked or flip == Fraction(1, 2)


@pytest.mark.statistical
@pytest.mark.system
def test_flips_have_their_chance() -> None:
    mechanism = FlippedDyads(1)
    dyads = np.arange(120_000) % 2
    answers = mechanism.sample(dyads, SystemNoise())
    for truth in (0, 1):
        hits = int(np.count_nonzero((answers != dyads)[dyads == truth]))
        assert_share(hits, 60_000, float(mechanism.flip), rivals=[0.25, 1 / (1 + math.exp(0.9))])


class Words:
    """Noise that answers given numbers, to see what is made of each."""

    distance = None
    known = True

    def __init__(self, words: list[int]) -> None:
        self.words = words

    def uniform(self, below: int, size: int) -> list[int]:
        assert below == 2**320
        padded = self.words + [0] * (10 * size - len(self.words))
        rows = [padded[10 * i : 10 * i + 10] for i in range(size)]
        return [int.from_bytes(b"".join(w.to_bytes(4, "big") for w in row), "big") for row in rows]


@pytest.mark.unit
def test_a_dyad_is_flipped_exactly_below_the_threshold() -> None:
    mechanism = FlippedDyads("1.5")
    limit = int(mechanism.flip * 2**32)
    words = [0, limit - 1, limit, 2**32 - 1] * 3
    dyads = np.array([0, 0, 0, 0, 1, 1, 1, 1, 7, -1, 7, 0])  # what is no dyad counts as not joined
    answers = mechanism.sample(dyads, Words(words))  # type: ignore[arg-type]
    assert answers.tolist() == [1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0]


@pytest.mark.unit
def test_flips_hide_one_edge_and_nothing_else() -> None:
    mechanism = FlippedDyads("1/2")
    assert mechanism.cost(ONE_EDGE) == PureDP("1/2")
    assert mechanism.draws(ONE_EDGE) == 10
    for other in (
        Bound(AddRemoveUser(), 4, l1=1),
        Bound(ReplaceUser(), 4, l1=1),
        Bound(FlippedEdge(), 4, l1=2, unit="edge"),
    ):
        with pytest.raises(InvalidParameter, match="nothing was charged"):
            mechanism.cost(other)
    for wrong in (0, -1, 21):
        with pytest.raises(InvalidParameter, match="epsilon"):
            FlippedDyads(wrong)


# --- the release ---


@pytest.mark.unit
def test_one_edge_moves_each_guarded_vector_by_one(rng: np.random.Generator) -> None:
    network = sample_graph(FOUR, 30, rng).network
    fewer = Network(30, network.edges[1:])
    labels = rng.integers(4, size=30)
    counts = [block_counts(one, labels, 4)[0][np.triu_indices(4)] for one in (network, fewer)]
    assert np.abs(counts[0] - counts[1]).sum() == 1
    assert "435 private entries" in repr(guard_dyads(network, "test"))


@pytest.mark.unit
def test_epsilon_is_paid_to_the_last_part(rng: np.random.Generator) -> None:
    network = sample_graph(FOUR, 60, rng).network
    paying = ledger(3)
    out = private_blocks(network, 2, epsilon="1.3", ledger=paying)
    costs = [one.guarantee.loss for one in out.releases]
    assert costs == [PureDP(Fraction(13, 10) * Fraction(19, 20)), PureDP(Fraction(13, 10) / 20)]
    assert paying.statement().left == PureDP("1.7")
    assert [entry.mechanism for entry in paying.statement().entries] == [
        "flipped-dyads/1",
        "discrete-laplace/1",
    ]
    with pytest.raises(BudgetExceeded, match="nothing was released"):
        private_blocks(
            network, 2, epsilon="1.75", ledger=paying
        )  # the first part alone could be paid
    assert paying.statement().left == PureDP("1.7")


@pytest.mark.unit
def test_a_ledger_of_another_relation_or_unit_refuses(rng: np.random.Generator) -> None:
    network = sample_graph(FOUR, 20, rng).network
    for wrong in (
        Ledger.rehearsal(PureDP(9), unit="user", neighbors=FlippedEdge()),
        Ledger.rehearsal(PureDP(9), unit="edge"),
    ):
        with pytest.raises(LedgerMismatch, match="nothing was charged"):
            private_blocks(network, 2, epsilon=1, ledger=wrong)
        assert wrong.statement().left == PureDP(9)
    for k, share in ((0, Fraction(1, 2)), (21, Fraction(1, 2)), (2, Fraction(1))):
        with pytest.raises(InvalidParameter):
            private_blocks(network, k, epsilon=1, ledger=ledger(), labels_share=share)


@pytest.mark.unit
def test_all_that_is_said_is_arithmetic_on_the_releases(rng: np.random.Generator) -> None:
    """Whoever has the two releases can compute the rest: so the rest costs nothing."""
    network = sample_graph(FOUR, 200, rng).network
    out = private_blocks(network, 4, epsilon=3, ledger=ledger())
    told, counted = out.releases
    seen = blocks_in(told.value, 200, 4)
    again = estimate_from_counts(seen.labels, counted.value)
    assert np.array_equal(again.labels, out.estimate.labels)
    assert again.graphon == out.estimate.graphon
    assert seen.strengths == out.strengths
    # and the flipped network is not the true one, nor are the counts
    assert np.count_nonzero(square(told.value, 200) != network.adjacency.toarray()) > 0
    true, _ = block_counts(network, seen.labels, int(seen.labels.max()) + 1)
    assert not np.array_equal(true[np.triu_indices(len(true))], counted.value)


@pytest.mark.statistical
def test_blocks_are_found_at_two_and_not_at_a_half(rng: np.random.Generator) -> None:
    """Study section 5: accuracies .28 at 1/2, .88 at 1.5, .99 at 2, 1 at 3; by now better, or said."""
    drawn = sample_graph(FOUR, 800, rng)
    found = {
        epsilon: private_blocks(drawn.network, 4, epsilon=epsilon, ledger=ledger())
        for epsilon in ("0.5", "1.5", "2", "3")
    }
    assert found["0.5"].hopeless
    assert found["0.5"].estimate.graphon.k == 1
    assert "even blocks of density 0.06" in found["0.5"].reason
    assert "however clear, do not: a signal of 0.8" in found["0.5"].reason
    for epsilon, least in (("1.5", 0.95), ("2", 0.985), ("3", 0.999)):
        out = found[epsilon]
        assert not out.hopeless
        assert "3 directions rise" in out.reason
        assert accuracy(out.estimate.labels, drawn.labels) >= least
    # Means of 20,000 pairs, with Laplace noise of scale 1 / 0.15 on each: 6 deviations of both
    # together.
    inside = np.sort(np.diag(found["3"].estimate.graphon.matrix))
    assert np.all(np.abs(inside - 0.2) < 6 * (math.sqrt(0.16 / 17_000) + 7 * 1.42 / 17_000))


@pytest.mark.statistical
def test_the_number_of_blocks_can_be_read_off_the_release(rng: np.random.Generator) -> None:
    drawn = sample_graph(FOUR, 500, rng)
    out = private_blocks(drawn.network, None, epsilon=4, ledger=ledger())
    assert out.estimate.graphon.k == 4
    assert accuracy(out.estimate.labels, drawn.labels) > 0.99
    one = private_blocks(drawn.network, 1, epsilon=1, ledger=ledger())
    assert (one.hopeless, one.estimate.graphon.k) == (False, 1)
    assert one.estimate.graphon.density == pytest.approx(drawn.network.density, rel=0.01)


@pytest.mark.statistical
def test_chance_alone_rises_above_the_noise_once_in_20(rng: np.random.Generator) -> None:
    """Networks without blocks are nearly always called hopeless; the bare edge 2 sqrt(n v) is not enough."""
    trials, above, bare = 300, 0, 0
    for _ in range(trials):
        dyads = (rng.random(60 * 59 // 2) < 0.3).astype(np.int64)
        matrix = square(dyads, 60)
        centred = matrix - dyads.mean()
        np.fill_diagonal(centred, 0)
        largest = np.abs(np.linalg.eigvalsh(centred)).max()
        above += largest > noise_edge(matrix)
        bare += largest > 2 * math.sqrt(60 * 0.21)
    assert stats.binomtest(above, trials, 0.05, alternative="greater").pvalue > LEVEL
    assert stats.binomtest(above, trials, 0.15, alternative="less").pvalue < LEVEL
    assert bare > above


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("n", "density", "trials"), [(100, 0.03, 120), (100, 0.98, 120), (400, 0.01, 40)]
)
def test_few_edges_rise_above_the_noise_as_seldom(
    n: int, density: float, trials: int, rng: np.random.Generator
) -> None:
    """Without what few edges add to the semicircle, most networks without blocks would show some."""
    above = bare = 0
    for _ in range(trials):
        matrix = square((rng.random(n * (n - 1) // 2) < density).astype(np.int64), n)
        centred = matrix - matrix.sum() / (n * (n - 1))
        np.fill_diagonal(centred, 0)
        largest = np.abs(np.linalg.eigvalsh(centred)).max()
        above += largest > noise_edge(matrix)
        bare += largest > math.sqrt(n * density * (1 - density)) * (2 + 1.454 * n ** (-2 / 3))
    assert stats.binomtest(above, trials, 0.05, alternative="greater").pvalue > LEVEL
    assert stats.binomtest(bare, trials, 0.05, alternative="greater").pvalue < LEVEL


@pytest.mark.statistical
def test_sparse_blocks_are_still_found(rng: np.random.Generator) -> None:
    """Degree 8 inside, none between: a signal of sqrt(8), seen at (x + 1/x) / 2.2 = 1.45 of the edge."""
    drawn = sample_graph(BlockGraphon(0.04 * np.eye(2)), 400, rng, labels=np.arange(400) % 2)
    dyads = flipped(drawn.network, 20, rng)
    for k in (2, None):
        seen = blocks_in(dyads, 400, k)
        assert seen.directions == 1
        assert accuracy(seen.labels, drawn.labels) > 0.9


@pytest.mark.statistical
def test_uneven_blocks_stand_out_further_than_even_ones_can(rng: np.random.Generator) -> None:
    """204 of 800 nodes all know each other, density 0.065: two even blocks would stay hidden at 1/2."""
    labels = (np.arange(800) >= 204).astype(np.int64)
    drawn = sample_graph(BlockGraphon([[1, 0], [0, 0]]), 800, rng, labels=labels)
    assert drawn.network.density == pytest.approx(0.065, abs=0.001)
    assert response_signal(800, 2, density=0.065, epsilon=0.475) < 1
    out = private_blocks(drawn.network, 2, epsilon="0.5", ledger=ledger())
    assert not out.hopeless
    assert accuracy(out.estimate.labels, labels) > 0.99


@pytest.mark.statistical
@pytest.mark.parametrize("matrix", [[[0.6, 0.1], [0.1, 0.1]], [[0.3, 0.3], [0.3, 0.02]]])
def test_two_blocks_have_two_directions_where_degrees_differ(
    matrix: list[list[float]], rng: np.random.Generator
) -> None:
    drawn = sample_graph(BlockGraphon(matrix), 800, rng)
    dyads = flipped(drawn.network, 3.8, rng)
    found = blocks_in(dyads, 800, None)
    assert found.directions == 2, "one more than blocks of equal degree have"
    assert int(found.labels.max()) + 1 == 2
    for seen in (found, blocks_in(dyads, 800, 2)):
        assert accuracy(seen.labels, drawn.labels) > 0.99


@pytest.mark.unit
@pytest.mark.parametrize("epsilon", [1, 20])
@pytest.mark.parametrize("joined", [[], [(0, 1)], np.column_stack(np.triu_indices(100, 1))])
def test_no_edge_one_or_all_are_released_as_any_others(epsilon: int, joined: npt.ArrayLike) -> None:
    paying, network = ledger(), Network(100, joined)
    out = private_blocks(network, None, epsilon=epsilon, ledger=paying)
    assert paying.statement().left == PureDP(100 - epsilon)
    # 4,950 dyads, Laplace noise of scale 20 at epsilon 1: 30 scales are passed once in 10**13
    # times.
    assert abs(out.estimate.graphon.density - network.density) < 30 * 20 / 4950 + 0.01


@pytest.mark.unit
def test_nothing_is_charged_if_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    def short(n: int) -> None:
        raise MemoryError(f"no room for {n} nodes")

    monkeypatch.setattr(release, "_fits", short)
    paying = ledger()
    with pytest.raises(MemoryError):
        private_blocks(Network(10, [(0, 1)]), 2, epsilon=1, ledger=paying)
    assert paying.statement().left == PureDP(100)


@pytest.mark.statistical
def test_a_signal_has_the_eigenvalue_that_theory_says(rng: np.random.Generator) -> None:
    """A signal of x deviations is seen at (x + 1/x) / 2 of its edge [benaychgeorges11, thm. 2.1]."""
    n, epsilon = 800, 1.0
    clearest = BlockGraphon(0.2 * np.eye(2))
    drawn = sample_graph(clearest, n, rng, labels=np.arange(n) % 2)
    x = response_signal(n, 2, density=0.1, epsilon=epsilon)
    seen = blocks_in(flipped(drawn.network, epsilon, rng), n, 2)
    # The edge holds a quantile more than 2 sqrt(n v), 1 + 1.454 n**(-2/3) / 2; what few edges add
    # is 1e-3 here. Deviations are about n**-1/2.
    wanted = (x + 1 / x) / 2 / (1 + 1.454 * n ** (-2 / 3) / 2)
    assert x > 2
    assert seen.strengths[0] == pytest.approx(wanted, rel=4 / math.sqrt(n))
    assert accuracy(seen.labels, drawn.labels) > 0.9
    assert response_signal(n, 2, density=0.1, epsilon=0.2) < 1
    assert blocks_in(flipped(drawn.network, 0.2, rng), n, 2).labels.max() == 0


@pytest.mark.unit
def test_stars_are_no_blocks() -> None:
    """Few edges, and one node with most of them: beyond the semicircle, but not beyond a star."""
    star = np.zeros((100, 100))
    star[0, 1:20] = star[1:20, 0] = 1
    density = star.sum() / 9900
    assert math.sqrt(19) > 2 * math.sqrt(100 * density * (1 - density))
    dyads = star[np.tril_indices(100, -1)].astype(np.int64)
    assert np.array_equal(square(dyads, 100), star)
    seen = blocks_in(dyads, 100, 2)
    assert seen.labels.max() == 0
    assert seen.strengths[0] > 0.95, (
        "it is near the edge, so without the rule for stars it would be above"
    )


@pytest.mark.unit
def test_signals_grow_with_nodes_and_epsilon() -> None:
    base = response_signal(500, 4, density=0.05, epsilon=1)
    assert response_signal(1000, 4, density=0.05, epsilon=1) > base
    assert response_signal(500, 4, density=0.05, epsilon=2) > base
    assert response_signal(500, 1, density=0.05, epsilon=2) == pytest.approx(0, abs=1e-12)
    assert response_signal(500, 2, density=0.9, epsilon=2) > 0  # inside cannot be more than 1


@pytest.mark.unit
def test_words_of_a_release_warn_and_do_not_contradict_themselves() -> None:
    """Fewer directions than blocks: some blocks are chance. Hopeless is said plainly."""
    few = _reason(600, 3, 1, flip=0.12, released=np.array([5000]))
    assert few.endswith("of the 2 that 3 even blocks have, so some of these blocks may be chance")
    assert "chance" not in _reason(600, 3, 2, flip=0.12, released=np.array([5000]))
    for flip, words in (
        (0.45, "however clear, do not"),
        (0.12, "these are fainter, or there are none"),
    ):
        said = _reason(600, 3, 0, flip=flip, released=np.array([9000]))
        assert words in said
        assert "dyad" not in said
        assert "clear enough" not in said


@pytest.mark.unit
@pytest.mark.parametrize("changed", [{"epsilon": -1.0}, {"epsilon": math.nan}, {"density": 1.5}])
def test_a_signal_of_nonsense_is_refused(changed: dict[str, float]) -> None:
    with pytest.raises(InvalidParameter, match=r"epsilon at least 0, got .*nothing was computed"):
        response_signal(500, 4, **{"density": 0.05, "epsilon": 1.0, **changed})

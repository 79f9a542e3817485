"""Where a whisper began: against Bayes by hand, calibrated under its model, paid for, and lost by degrees."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from scipy.linalg import expm
from tests.chance import LEVEL, assert_share

from sfumato._types import FloatArray, IntArray
from sfumato.errors import BudgetExceeded, InvalidInput, InvalidParameter, LedgerMismatch
from sfumato.privacy import AddRemoveUser, Ledger, Neighbors, PureDP, ReplaceUser
from sfumato.privacy.accounting import group
from sfumato.sensing.planning.synthetic import block_graph
from sfumato.sensing.whisper import (
    Spread,
    WhisperAnswers,
    start_loss,
    whisper_cascade,
    whisper_posterior,
    whisper_release,
    whisper_spread,
)
from sfumato.sensing.whisper.answers import merged_answers
from sfumato.spaces import Graph

ROADS = Path(__file__).resolve().parents[3] / "shared/data/graphs/minnesota_road_edges.csv"
KITE = Graph([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)])
SPREAD = Spread(0.6, 3.0)


def heard_by_hand(graph: Graph, spread: Spread) -> FloatArray:
    chances = 1 - np.exp(-spread.strength * expm(-spread.rate * graph.laplacian().toarray()))
    np.fill_diagonal(chances, 1.0)
    return np.asarray(chances)


def bayes_by_hand(answers: list[int], heard: FloatArray, epsilon: float) -> FloatArray:
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    out = np.ones(len(heard))
    for start in range(len(heard)):
        for node, answer in enumerate(answers):
            yes = truth * heard[node, start] + (1 - truth) * (1 - heard[node, start])
            out[start] *= {1: yes, 0: 1 - yes, -1: 1.0}[answer]
    return out


def noisy(bits: IntArray, epsilon: float, rng: np.random.Generator) -> IntArray:
    return np.where(rng.random(bits.size) < 1 / (1 + math.exp(epsilon)), 1 - bits, bits)


@pytest.mark.reference
@pytest.mark.parametrize("answers", [[1, 1, 0, 0, 1], [0, 0, 0, 0, 0], [-1, 1, -1, 0, 1]])
def test_the_posterior_is_that_of_bayes(answers: list[int]) -> None:
    """Doubles on both sides; chances differ by the Chebyshev series, cut at 1e-17."""
    wide = Spread(2.0, 1.0)
    one, other = (
        bayes_by_hand(answers, heard_by_hand(KITE, model), 1.5) for model in (SPREAD, wide)
    )
    found = whisper_posterior(KITE, answers, epsilon=1.5, spread=SPREAD, labels=[0, 0, 0, 1, 1])
    assert found.nodes == pytest.approx(one / one.sum(), abs=1e-10)
    assert found.community is not None
    assert found.community.shares[1] == pytest.approx((one / one.sum())[3:].sum(), abs=1e-10)
    own = whisper_posterior(KITE, answers, epsilon=1.5, spread=heard_by_hand(KITE, SPREAD))
    assert own.nodes == pytest.approx(found.nodes, abs=1e-10)
    both = whisper_posterior(
        KITE, answers, epsilon=1.5, spread=[SPREAD, wide], prior=[1, 2, 3, 4, 0]
    )
    prior = np.array([1, 2, 3, 4, 0])
    weights = np.array([one @ prior, other @ prior])
    assert both.weights == pytest.approx(weights / weights.sum(), abs=1e-10)
    assert both.nodes == pytest.approx((one + other) * prior / weights.sum(), abs=1e-10)
    assert both.nodes[4] == 0


@pytest.mark.unit
def test_without_noise_and_without_answers() -> None:
    silent = whisper_posterior(KITE, [-1] * 5, epsilon=1)
    assert silent.nodes == pytest.approx([0.2] * 5, abs=1e-12)
    assert len(silent.spreads) == silent.weights.size == 15
    plain = whisper_posterior(KITE, [0, 0, 0, 0, 1], epsilon=math.inf, spread=SPREAD)
    assert plain.most_likely == 4  # the only node that has heard, and the start has
    assert plain.nodes[4] > 1 - 1e-9
    # What the model calls impossible is unlikely, not an error.
    nobody = whisper_posterior(KITE, [0] * 5, epsilon=math.inf, spread=SPREAD)
    assert nobody.nodes.sum() == pytest.approx(1)


@pytest.mark.unit
def test_the_smallest_set_holds_its_share_and_no_node_too_many() -> None:
    found = whisper_posterior(KITE, [1, 1, 1, 0, 0], epsilon=1, spread=SPREAD)
    for share in (0.1, 0.5, 0.9, 0.999):
        chosen = found.smallest(share)
        assert found.nodes[chosen].sum() >= share - 1e-12
        assert found.nodes[chosen[:-1]].sum() < share
        assert chosen.size == min(
            size
            for size in range(1, 6)
            for some in itertools.combinations(range(5), size)
            if found.nodes[list(some)].sum() >= share - 1e-12
        )
    with pytest.raises(InvalidParameter, match="share must lie"):
        found.smallest(1.0)


@pytest.mark.statistical
def test_the_posterior_is_as_sure_as_it_may_be(rng: np.random.Generator) -> None:
    """Under its model a set with probability P holds the start in a share P of draws, whatever the graph.

    The rival says 0.3 more or less. A saboteur who takes epsilon for three times what it is, is
    caught.
    """
    graph, _ = block_graph([40, 40], inside=0.2, across=0.01, rng=rng)
    heard, trials = heard_by_hand(graph, Spread(0.4, 30.0)), 250
    right = {1.0: 0, 3.0: 0}
    said = {1.0: 0.0, 3.0: 0.0}
    for _ in range(trials):
        start = int(rng.integers(graph.size))
        answers = noisy((rng.random(graph.size) < heard[:, start]).astype(np.int64), 1.0, rng)
        for epsilon in right:
            found = whisper_posterior(graph, answers, epsilon=epsilon, spread=heard)
            chosen = found.smallest(0.5)
            right[epsilon] += start in chosen
            said[epsilon] += float(found.nodes[chosen].sum()) / trials
    assert_share(right[1.0], trials, said[1.0], rivals=[said[1.0] - 0.3, said[1.0] + 0.3])
    with pytest.raises(AssertionError):
        assert_share(right[3.0], trials, said[3.0], rivals=[0.01])


@pytest.mark.statistical
def test_the_community_is_found_and_noise_costs(rng: np.random.Generator) -> None:
    """Two communities: right at epsilon 2 nearly always, at 0.01 a coin; without noise always as good."""
    graph, labels = block_graph([60, 60], inside=0.15, across=0.005, rng=rng)
    heard = heard_by_hand(graph, Spread(0.3, 40.0))
    right = dict.fromkeys((0.01, 2.0, math.inf), 0)
    for _ in range(60):
        start = int(rng.integers(graph.size))
        bits = (rng.random(graph.size) < heard[:, start]).astype(np.int64)
        for epsilon in right:
            answers = bits if math.isinf(epsilon) else noisy(bits, epsilon, rng)
            found = whisper_posterior(graph, answers, epsilon=epsilon, spread=heard, labels=labels)
            assert found.community is not None
            right[epsilon] += found.community.label == labels[start]
    assert_share(right[math.inf], 60, 0.999, rivals=[0.5])
    assert_share(right[2.0], 60, 0.98, rivals=[0.5])
    assert_share(right[0.01], 60, 0.5, rivals=[0.98])


@pytest.mark.statistical
def test_a_release_is_paid_for_and_flipped_by_its_law(tmp_path: Path) -> None:
    ledger = Ledger.create(
        tmp_path / "whisper.ledger",
        PureDP(3),
        unit="node",
        source="club",
        neighbors=ReplaceUser(),
    )
    bits = np.arange(4000) % 2
    told = whisper_release(bits, 1, ledger=ledger)
    assert told.guarantee.loss == PureDP(1)
    assert (
        str(told.guarantee) == "epsilon 1 for each node (one user's data replaced), central model"
    )
    assert ledger.statement().spent.epsilon == 1
    kept, half = math.e / (1 + math.e), 0.5
    for bit in (0, 1):
        mine = bits == bit
        assert_share(int((told.value[mine] == bit).sum()), 2000, kept, rivals=[half, 0.9])
    with pytest.raises(BudgetExceeded):
        whisper_release([1], "5/2", ledger=ledger)
    assert whisper_release([1], 2, ledger=ledger).value.shape == (1,)
    # Where a start changes k bits, a group of k is what is promised.
    assert group(told.guarantee.loss, 40) == PureDP(40)


@pytest.mark.unit
def test_the_local_model_is_for_a_node_alone(tmp_path: Path) -> None:
    """Whoever holds several bits is trusted with them, and a receipt must not say otherwise."""
    own = Ledger.create(
        tmp_path / "own",
        PureDP(3),
        unit="node",
        source="ann",
        neighbors=ReplaceUser(),
        model="local",
    )
    with pytest.raises(
        LedgerMismatch, match=r"is of the local model.*this was gathered.*nothing was charged"
    ):
        whisper_release([0, 1], 1, ledger=own)
    assert own.statement().spent.epsilon == 0
    assert str(whisper_release([1], 1, ledger=own).guarantee).endswith("local model")


@pytest.mark.reference
def test_what_all_answers_tell_of_one_node_is_as_stated() -> None:
    """Two cliques of five, one of which has heard it whole: the odds of node 3 go from 1 to e**10."""
    truth = math.e / (1 + math.e)
    said = np.repeat([1, 0], 5)  # the answers that speak most for the first
    first, second = (np.where(said == bits, truth, 1 - truth).prod() for bits in (said, 1 - said))
    assert math.log(first / second) == pytest.approx(10)
    assert "by up to e**10" in " ".join(str(whisper_release.__doc__).split())
    assert round(100 * truth) == 73
    assert "true in 73 of 100" in str(whisper_release.__doc__)


@pytest.mark.unit
def test_what_cannot_be_released_is_not_charged(tmp_path: Path) -> None:
    ledger = Ledger.create(
        tmp_path / "a", PureDP(3), unit="node", source="club", neighbors=ReplaceUser()
    )
    for heard in ([2, 0], [[0, 1]], [], [0.0, 1.0], [-1]):
        with pytest.raises(InvalidParameter, match="heard must be 0 or 1"):
            whisper_release(heard, 1, ledger=ledger)
    assert ledger.statement().spent.epsilon == 0
    others: list[tuple[str, Neighbors]] = [("user", ReplaceUser()), ("node", AddRemoveUser())]
    for number, (unit, relation) in enumerate(others):
        other = Ledger.create(
            tmp_path / f"{number}", PureDP(3), unit=unit, source="club", neighbors=relation
        )
        with pytest.raises(LedgerMismatch):
            whisper_release([0, 1], 1, ledger=other)


@pytest.mark.reference
def test_start_loss_is_the_largest_over_all_answers() -> None:
    heard = heard_by_hand(KITE, SPREAD)
    for starts in ((0, 1), (0, 4), (2, 2)):
        worst = 0.0
        for answers in itertools.product((0, 1), repeat=5):
            likely = bayes_by_hand(list(answers), heard, 1.0)
            worst = max(worst, abs(math.log(likely[starts[0]] / likely[starts[1]])))
        found = start_loss(KITE, starts, epsilon=1, spread=SPREAD)
        # The model's chances stop 1e-12 short of 1, and the mechanism's e is rounded down to 64
        # bits.
        assert found == pytest.approx(worst, abs=1e-10)
        assert start_loss(KITE, starts, epsilon=1, spread=heard) == pytest.approx(worst, abs=1e-10)
        assert found <= 5


@pytest.mark.reference
def test_start_loss_is_a_bound_where_noise_is_next_to_none() -> None:
    own = np.eye(5)  # only the start has heard: two nodes tell two starts apart
    for epsilon in (1, 30, 60, 128):
        assert start_loss(KITE, (0, 1), epsilon=epsilon, spread=own) == pytest.approx(
            2 * epsilon, rel=1e-12
        )
    assert start_loss(KITE, (0, 1), epsilon=math.inf, spread=own) == math.inf
    assert start_loss(KITE, (2, 2), epsilon=math.inf, spread=own) == 0
    # Chances that nobody rules out: by hand, a no of node 0 and a yes of node 1 speak for the
    # second.
    some = np.full((5, 5), 0.5)
    some[0, :2], some[1, :2] = (0.75, 0.25), (0.25, 0.625)
    assert start_loss(KITE, (0, 1), epsilon=math.inf, spread=some) == pytest.approx(
        math.log(3 * 2.5)
    )
    # What both starts rule out is no answer, and bounds nothing.
    some[4, :2] = 0.0
    assert start_loss(KITE, (0, 1), epsilon=math.inf, spread=some) == pytest.approx(
        math.log(3 * 2.5)
    )
    # Heat far away is less than its rounding: whatever it is, the bound holds.
    path = Graph([(i, i + 1) for i in range(39)])
    exact = heard_by_hand(path, Spread(0.01, 1.0))
    for epsilon in (1, 60):
        lie = 1 / (1 + math.exp(epsilon))
        likely = [lie + (1 - 2 * lie) * chance[:, [0, 39]] for chance in (exact, 1 - exact)]
        worst = max(
            np.maximum(*(np.log(one[:, a] / one[:, 1 - a]) for one in likely)).sum() for a in (0, 1)
        )
        loss = start_loss(path, (0, 39), epsilon=epsilon, spread=Spread(0.01, 1.0))
        assert worst - 1e-6 <= loss <= 40 * epsilon


@pytest.mark.unit
def test_chances_may_be_nested_lists() -> None:
    heard = heard_by_hand(KITE, SPREAD)
    answers = [1, 1, 0, 0, 1]
    mine = whisper_posterior(KITE, answers, epsilon=1, spread=heard.tolist())
    assert (
        mine.nodes.tolist()
        == whisper_posterior(KITE, answers, epsilon=1, spread=heard).nodes.tolist()
    )
    loss = start_loss(KITE, (0, 4), epsilon=1, spread=heard.tolist())
    assert loss == start_loss(KITE, (0, 4), epsilon=1, spread=heard)


@pytest.mark.statistical
def test_draws_have_the_law_they_state(rng: np.random.Generator) -> None:
    path = Graph([(0, 1), (1, 2), (2, 3)])
    spread = np.array([whisper_spread(path, 1, spread=SPREAD, rng=rng) for _ in range(700)])
    chances = heard_by_hand(path, SPREAD)[:, 1].tolist()
    assert spread[:, 1].all()
    for node in (0, 2, 3):
        assert_share(int(spread[:, node].sum()), 700, chances[node], rivals=[chances[node] + 0.2])
    cascade = np.array([whisper_cascade(path, 0, chance=0.7, rng=rng) for _ in range(700)])
    assert (
        np.diff(cascade, axis=1) <= 0
    ).all()  # along a path nobody hears it before the one who tells
    for node in (1, 2, 3):
        assert_share(
            int(cascade[:, node].sum()), 700, 0.7**node, rivals=[0.7**node - 0.2, 0.7**node + 0.2]
        )
    assert whisper_cascade(path, 0, chance=1.0, rng=rng, hops=2).tolist() == [1, 1, 1, 0]


@pytest.mark.unit
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: whisper_posterior(KITE, [1, 0], epsilon=1), "answers must be"),
        (lambda: whisper_posterior(KITE, [2] * 5, epsilon=1), "answers must be"),
        (lambda: whisper_posterior(KITE, [1.0] * 5, epsilon=1), "answers must be"),
        (lambda: whisper_posterior(KITE, [1] * 5, epsilon=0), "epsilon"),
        (lambda: whisper_posterior(KITE, [1] * 5, epsilon=1, spread=[]), "at least one model"),
        (lambda: whisper_posterior(KITE, [1] * 5, epsilon=1, spread=np.ones((5, 4))), "5 by 5"),
        (
            lambda: whisper_posterior(KITE, [1] * 5, epsilon=1, spread=np.full((5, 5), 2.0)),
            "5 by 5",
        ),
        (
            lambda: whisper_posterior(KITE, [1] * 5, epsilon=1, spread=[[1, 0], [1]]),
            "spread must be",
        ),
        (
            lambda: whisper_posterior(KITE, [1] * 5, epsilon=1, spread=cast(Any, [SPREAD, 0.5])),
            "spread must be",
        ),
        (lambda: whisper_posterior(KITE, [1] * 5, epsilon=1, spread="far"), "spread must be"),
        (
            lambda: start_loss(KITE, (0, 1), epsilon=1, spread=cast(Any, [SPREAD] * 2)),
            "spread must be",
        ),
        (lambda: start_loss(KITE, (0, 1), epsilon=1, spread=[[0.5]]), "5 by 5"),
        (lambda: whisper_posterior(KITE, [1] * 5, epsilon=1, prior=[0] * 5), "prior must be"),
        (
            lambda: whisper_posterior(KITE, [1] * 5, epsilon=1, prior=[1, -1, 1, 1, 1]),
            "prior must be",
        ),
        (
            lambda: whisper_posterior(Graph([(0, 1)], nodes=3), [1] * 3, epsilon=1),
            "must be connected",
        ),
        (lambda: Spread(0, 1), "rate must lie"),
        (lambda: Spread(1, math.nan), "strength must lie"),
        (lambda: start_loss(KITE, (0, 5), epsilon=1, spread=SPREAD), "start must be"),
        (
            lambda: whisper_cascade(KITE, 0, chance=2, rng=np.random.Generator(np.random.PCG64(1))),
            "probab",
        ),
    ],
)
def test_a_bad_question_gets_one_sentence(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        call()


@pytest.mark.skipif(not ROADS.exists(), reason="the roads of Minnesota are not on this machine")
@pytest.mark.unit
def test_a_whisper_on_the_roads_of_minnesota(rng: np.random.Generator) -> None:
    ends = np.loadtxt(ROADS, delimiter=",", skiprows=1, usecols=(0, 1)).astype(np.int64)
    whole = Graph(np.unique(np.sort(ends, axis=1), axis=0))
    parts = whole.components()
    inside = parts == np.bincount(parts).argmax()
    number = np.cumsum(inside) - 1
    graph = Graph(number[whole.edges[inside[whole.edges].all(axis=1)]])
    assert graph.size == 2640
    model = Spread(3.0, 600.0)
    answers = noisy(whisper_spread(graph, 1000, spread=model, rng=rng), 3.0, rng)
    found = whisper_posterior(graph, answers, epsilon=Fraction(3), spread=model)
    # The set misses with a chance of 1e-6: that of a false alarm.
    assert 1000 in found.smallest(1 - LEVEL)
    assert found.smallest(0.9).size < 264


@pytest.mark.unit
def test_answers_of_files_are_merged_by_name() -> None:
    def file(names: str, node: int, *, bit: int) -> WhisperAnswers:
        book = Ledger.rehearsal(PureDP(60), unit="node", neighbors=ReplaceUser())
        paid = whisper_release([bit], 60, ledger=book)  # flipped with a chance of 1e-26
        said = np.full(3, -1)
        said[node] = paid.value[0]
        return WhisperAnswers(Graph([(0, 1), (1, 2)]), tuple(names), said, Fraction(60), (paid,))

    one = file("abc", 2, bit=1)
    other = file("cba", 2, bit=0)
    both = merged_answers([("one", one), ("other", other)])
    assert both.answers.tolist() == [0, -1, 1]
    assert both.receipts == (one.receipts[0], other.receipts[0])
    assert both.statement == one.statement == str(one.receipts[0].guarantee)
    # As many edges, and the same numbers, but of other nodes.
    turned = file("acb", 0, bit=0)
    with pytest.raises(
        InvalidInput, match="one graph, turned has another than one; nothing was computed"
    ):
        merged_answers([("one", one), ("turned", turned)])

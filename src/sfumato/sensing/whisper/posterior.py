"""In which community a whisper began, from who says through noise that they heard it.

The papers leave it open: there a node holds its probability of knowing, not a yes or no [gilbert18,
sec. 5].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from sfumato._types import FloatArray, IntArray
from sfumato._validate import read_only, real_array, whole
from sfumato.errors import InvalidParameter
from sfumato.privacy import RandomisedResponse
from sfumato.sensing.model.graph_sensitivity import diffusion_error
from sfumato.sensing.model.operators.graph_diffusion import graph_diffusion
from sfumato.sensing.recovery.community import CommunityAnswer, community_of
from sfumato.sensing.whisper.answers import NO, SILENT, YES
from sfumato.sensing.whisper.spread import Spread, unheard
from sfumato.spaces import Graph

LEAST = 1e-12
"""A model's chance is taken to be at least so far from 0 and 1: what it calls impossible may happen."""
RATES = (2.0, 8.0, 32.0)
STRENGTHS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
CHUNK = 1 << 20  # chances that are held at a time


@dataclass(frozen=True, slots=True, eq=False)
class WhisperPosterior:
    """Where a whisper began: a probability for each node, and for each community if there are labels.

    `weights` are the posterior probabilities of the `spreads` averaged over. Computed from released
    answers alone: it costs no privacy.
    """

    graph: Graph
    nodes: FloatArray
    community: CommunityAnswer | None
    spreads: tuple[Spread, ...]
    weights: FloatArray

    @property
    def most_likely(self) -> int:
        """The likeliest start; of several, the first."""
        return int(np.argmax(self.nodes))

    def smallest(self, share: float = 0.9) -> IntArray:
        """The fewest nodes that hold the start with at least this probability, the likeliest first."""
        if not 0 < share < 1:
            raise InvalidParameter(f"share must lie in (0, 1), got {share}; nothing was computed")
        order = np.argsort(-self.nodes, kind="stable")
        reached = np.cumsum(self.nodes[order])
        return np.asarray(order[: int(np.searchsorted(reached, share * reached[-1])) + 1])


def whisper_posterior(
    graph: Graph,
    answers: npt.ArrayLike,
    *,
    epsilon: Fraction | float | str,
    spread: Spread | Sequence[Spread] | npt.ArrayLike | None = None,
    labels: npt.ArrayLike | None = None,
    prior: npt.ArrayLike | None = None,
) -> WhisperPosterior:
    """The exact posterior over the node a whisper began at, given what each node said through its noise.

    P(yes at v | start s) = q + (p - q) h_vs with h the chance of having heard, p and q those of
    telling the truth and of a lie [warner65]; log-likelihoods are sums over nodes, n**2 terms for
    each model. `answers` are 1, 0, or -1 where there is none; epsilon math.inf stands for answers
    without noise. `spread` is one model, several (all as likely beforehand), or a square array h of
    one's own; without it the averaged models have rate r / (mean degree), r = 2, 8, 32, and
    strength 1/16, 1/8, 1/4, 1/2, 1 of the nodes. `prior` is a weight for each node, the same for
    all unless given. On 2,640 nodes: about 4 s for those 15 models, 1 s for one.

    Limits. There is one start. Nodes count as independent given it; a whisper that runs along edges
    reaches nodes together, so that the posterior is too sure of itself. For cascades on 500 nodes
    in two communities, at epsilon 1 and 2, the community named was right in 0.63 to 0.75 of draws
    where it said 0.78 to 0.92, and the set said to hold the start with 0.9 held it in 0.62 to 0.75
    (docs/reference/scenes.md). `cascade_posterior` is for those.

    Args:
        graph: A connected graph.
        answers: 1, 0 or -1 (none) for each node.
        epsilon: Of the noise of each answer; inf for none.
        spread: One model, several, chances of one's own, or None for 15 models.
        labels: The community of each node; None for no communities.
        prior: A weight for each node; None for all the same.

    Returns:
        Probabilities of nodes, communities and models.

    Raises:
        InvalidParameter: If a parameter has the wrong shape or range.

    >>> path = Graph([(0, 1), (1, 2), (2, 3)])
    >>> found = whisper_posterior(path, [1, 1, 0, 0], epsilon=2, spread=Spread(0.5, 2), labels=[0, 0, 1, 1])
    >>> found.most_likely, found.community.shares.round(2)
    (0, array([0.98, 0.02]))
    """
    said = checked_answers(answers, graph.size)
    start = _prior(prior, graph.size)
    truth, lie = response_law(epsilon)
    # P(answer) = base + slope E with E = 1 - h, the chance of not having heard: one logarithm for
    # either.
    base = np.where(said == YES, truth, lie)
    slope = np.where(said == YES, -1.0, 1.0) * (truth - lie)
    asked = np.flatnonzero(said != SILENT)
    spreads = _spreads(graph, spread)
    if spreads is None:
        silent = 1 - _chances(spread, graph.size)[asked]
        rows = _log_likelihood(silent, base[asked], slope[asked])[np.newaxis]
    else:
        rows = _log_likelihoods(graph, spreads, asked, base[asked], slope[asked])
    with np.errstate(divide="ignore"):
        joint = rows + np.log(start)
    weights = np.exp(logsumexp(joint, axis=1) - logsumexp(joint))
    nodes = np.exp(logsumexp(joint, axis=0) - logsumexp(joint))
    nodes /= nodes.sum()
    community = None if labels is None else community_of(nodes, labels)
    return WhisperPosterior(graph, read_only(nodes), community, spreads or (), read_only(weights))


def start_loss(
    graph: Graph,
    starts: tuple[int, int],
    *,
    epsilon: Fraction | float | str,
    spread: Spread | npt.ArrayLike,
) -> float:
    """How much the odds between two starts can grow by all answers together, at most: e to this power.

    The sum over nodes of the largest ln P(answer | one start) / P(answer | other), for the worse of
    both directions: some answers attain it. At most n epsilon, and small where both starts reach
    the same people; without noise (epsilon math.inf) infinite where one start allows what the other
    rules out. Chances are taken as they are here, 0 and 1 too; how far heat may be off (`diffusion_error`)
    counts against the bound. A promise about who began it as far as this model of the spread is true, no
    further [kifer14, def. 3.4].

    Args:
        graph: A connected graph.
        starts: The two nodes.
        epsilon: Of the noise of each answer; inf for none.
        spread: How a whisper spreads, or a square array of chances of having heard.

    Returns:
        A bound on the logarithm of the odds.

    >>> pair = Graph([(0, 1), (1, 2), (0, 2)])
    >>> round(start_loss(pair, (0, 1), epsilon=1, spread=Spread(5, 30)), 3)
    0.0
    """
    nodes = np.array([whole("start", node, low=0, high=graph.size - 1) for node in starts])
    truth, lie = response_law(epsilon)
    if isinstance(spread, Spread):
        diffusion = graph_diffusion(graph, spread.rate)
        heat, off = diffusion.columns(nodes), diffusion_error(diffusion)
        # What a start makes likeliest, and least likely: (heard, not heard) each.
        most, least = (
            _heard_or_not(
                np.maximum(heat + s * off, 0),
                np.maximum(heat - s * off, 0),
                nodes,
                spread.strength,
            )
            for s in (1, -1)
        )
    else:
        chances = _chances(spread, graph.size)[:, nodes]
        most = least = np.stack([chances, 1 - chances])
    if nodes[0] == nodes[1]:
        return 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        # Yes and no, each as a sum of what is not negative: at epsilon 60, 1 - P(yes) would be
        # rounding.
        above, below = (np.log(lie + (truth - lie) * chances) for chances in (most, least))
        odds = above - below[..., ::-1]
    # What a start rules out is no answer of its own: nothing against nothing is not to be feared.
    odds[np.isneginf(above)] = -math.inf
    # Where a yes speaks for one start, a no speaks for the other: the worst answers all speak for
    # the same.
    return float(odds.max(axis=0).sum(axis=0).max())


def _heard_or_not(
    likelier: FloatArray, rarer: FloatArray, starts: IntArray, strength: float
) -> FloatArray:
    """The chances of having heard by one heat, and of not having heard by another; starts have."""
    both = np.stack([-np.expm1(-strength * likelier), unheard(rarer, strength)])
    both[:, starts, (0, 1)] = [[1.0], [0.0]]
    return both


def _log_likelihoods(
    graph: Graph, spreads: tuple[Spread, ...], asked: IntArray, base: FloatArray, slope: FloatArray
) -> FloatArray:
    """One row for each model, one column for each start."""
    out = np.empty((len(spreads), graph.size))
    wide = max(1, CHUNK // max(1, asked.size))
    for rate in {spread.rate for spread in spreads}:
        operator = graph_diffusion(graph, rate)
        for begin in range(0, graph.size, wide):
            starts = np.arange(begin, min(begin + wide, graph.size))
            heat = operator.columns(starts)[asked]
            own = asked[:, np.newaxis] == starts
            for row, spread in enumerate(spreads):
                if spread.rate == rate:
                    silent = unheard(heat, spread.strength)
                    silent[own] = 0.0
                    out[row, starts] = _log_likelihood(silent, base, slope)
    return out


def _log_likelihood(silent: FloatArray, base: FloatArray, slope: FloatArray) -> FloatArray:
    chances = np.clip(silent, LEAST, 1 - LEAST, out=silent)
    chances *= slope[:, np.newaxis]
    chances += base[:, np.newaxis]
    return np.asarray(np.log(chances, out=chances).sum(axis=0))


def response_law(epsilon: Fraction | float | str) -> tuple[float, float]:
    """The chances of the truth and of a lie, as the mechanism has them."""
    if isinstance(epsilon, float) and math.isinf(epsilon) and epsilon > 0:
        return 1.0, 0.0
    truth, lie = RandomisedResponse(epsilon).law
    return float(truth), float(lie)


def _spreads(
    graph: Graph, spread: Spread | Sequence[Spread] | npt.ArrayLike | None
) -> tuple[Spread, ...] | None:
    """The models to average over; None for chances of one's own."""
    if spread is None:
        degree = max(1.0, 2 * len(graph.edges) / graph.size)
        return tuple(
            Spread(rate / degree, share * graph.size) for rate in RATES for share in STRENGTHS
        )
    if isinstance(spread, Spread):
        return (spread,)
    if isinstance(spread, Sequence) and not isinstance(spread, str):
        if not spread:
            raise InvalidParameter("there must be at least one model of the spread, got none")
        models = tuple(one for one in spread if isinstance(one, Spread))
        if len(models) == len(spread):
            return models
    return None


def checked_answers(answers: npt.ArrayLike, size: int) -> IntArray:
    """1, 0 or -1 for each node, or refused."""
    said = np.asarray(answers)
    if (
        said.shape != (size,)
        or said.dtype.kind not in "biu"
        or not np.isin(said, (YES, NO, SILENT)).all()
    ):
        raise InvalidParameter(
            f"answers must be 1, 0 or -1 (none) for each of {size} nodes, got shape {said.shape} and type "
            f"{said.dtype}; nothing was computed"
        )
    return said.astype(np.int64)


def _prior(prior: npt.ArrayLike | None, size: int) -> FloatArray:
    weights = np.ones(size) if prior is None else real_array("prior", prior)
    if (
        weights.shape != (size,)
        or not (np.isfinite(weights) & (weights >= 0)).all()
        or not weights.any()
    ):
        raise InvalidParameter(
            f"prior must be a weight of at least 0, not all 0, for each of {size} nodes; nothing was computed"
        )
    return np.asarray(weights / weights.sum())


def _chances(heard: object, size: int) -> FloatArray:
    try:
        chances = np.array(heard)
    except ValueError:  # uneven rows
        chances = np.array(None)
    if chances.dtype.kind not in "biuf":
        raise InvalidParameter(
            f"spread must be a Spread, or {size} by {size} chances of having heard (whisper_posterior takes "
            f"several Spreads as well), got {type(heard).__name__}; nothing was computed"
        )
    if chances.shape != (size, size) or not ((chances >= 0) & (chances <= 1)).all():
        raise InvalidParameter(
            f"chances of having heard must be {size} by {size} probabilities, got shape {chances.shape}; "
            "nothing was computed"
        )
    return chances.astype(np.float64)

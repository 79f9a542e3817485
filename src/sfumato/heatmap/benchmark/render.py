"""The words, tables and pictures of a leaderboard; tables are rows of words, heads first."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from sfumato.figures import draw_small_maps
from sfumato.heatmap.analysis.quality import METRICS
from sfumato.heatmap.benchmark.results import BASE, LeaderboardResult, SampleMaps, Score
from sfumato.heatmap.benchmark.scoring import (
    PairedComparison,
    best_means,
    epsilons_of,
    mean_of,
    methods_of,
    paired_comparisons,
    tally,
    times,
)
from sfumato.heatmap.benchmark.tables import aligned
from sfumato.heatmap.measure import amount_of

HEADS = {"similarity": "Similarity ↑", "pearson": "Pearson ↑", "kl": "KL ↓", "emd": "EMD ↓"}
SIGNS = (
    "Better (+), worse (-) or open (0): the 95 % t interval of the mean paired difference lies above 0, "
    "below it, or holds it. There is no correction for many comparisons: where two methods are alike, about "
    "one sign in twenty is chance. Samples of one place count as runs of their own. Differences are turned "
    "so that above 0 is better; × is the ratio of the means."
)
UNCHECKED = "{}: its privacy was not checked; see sfumato audit"


def leaderboard_words(result: LeaderboardResult) -> str:
    """All tables as a terminal shows them, and the notes."""
    parts = []
    for source in result.sources:
        scores = result.of(source)
        parts += [
            about(result, source),
            aligned(mean_table(scores)),
            aligned(first_table(scores, BASE)),
            aligned(tally_table(scores, result.methods[0])),
        ]
    return "\n\n".join([*parts, *result.notes])


def leaderboard_html(result: LeaderboardResult) -> str:
    """The same tables in a notebook."""
    return f"<pre>{escape(leaderboard_words(result))}</pre>"


def about(result: LeaderboardResult, source: str) -> str:
    """What was run on one source.

    Args:
        result: The leaderboard.
        source: One of its sources.

    Returns:
        A line.
    """
    scores = result.of(source)
    runs = len(scores) // len(methods_of(scores)) // len(epsilons_of(scores))
    return f"{source}: {amount_of(runs, 'runs')} of {result.users} people at each epsilon"


def sample_caption(sample: SampleMaps) -> str:
    """What the picture of a sample shows.

    Args:
        sample: Maps of one sample.

    Returns:
        A sentence.
    """
    of_what = f"{sample.users} people of {sample.place} at epsilon {sample.epsilon:g}"
    return f"{of_what}: the truth, and what each method makes of it"


def sample_picture(sample: SampleMaps) -> bytes:
    """A PNG of the truth and every method's map.

    Args:
        sample: Maps of one sample.

    Returns:
        The bytes of a PNG file.
    """
    # The rows are public, so their peak may set the scale.
    return draw_small_maps(
        [("the truth", sample.truth), *sample.maps],
        top=float(sample.truth.max()),
        caption="Simulated; " + sample_caption(sample),
    )


def mean_table(scores: Sequence[Score]) -> list[list[str]]:
    """Means with intervals for each epsilon and method.

    Args:
        scores: What was measured, of one source.

    Returns:
        Rows of words, heads first.
    """
    rows = [["epsilon", "method", *HEADS.values()]]
    for epsilon in epsilons_of(scores):
        for name in methods_of(scores):
            cells = [
                str(mean_of(scores, name, epsilon=epsilon, metric=metric)) for metric in METRICS
            ]
            rows.append([f"{epsilon:g}", name, *cells])
    return rows


def sign_table(comparisons: Sequence[PairedComparison]) -> list[list[str]]:
    """One rival: a line for each metric, a column for each epsilon.

    Args:
        comparisons: With one rival.

    Returns:
        Rows of words, heads first.
    """
    epsilons = sorted({one.epsilon for one in comparisons})
    rows = [["metric", *(f"epsilon {epsilon:g}" for epsilon in epsilons)]]
    for metric in METRICS:
        cells = {one.epsilon: str(one) for one in comparisons if one.metric == metric}
        rows.append([HEADS[metric], *(cells[epsilon] for epsilon in epsilons)])
    return rows


def tally_table(scores: Sequence[Score], method: str) -> list[list[str]]:
    """A method against every other: signs of each metric from small epsilon to large, and their counts.

    Args:
        scores: What was measured, of one source.
        method: The method that is compared with every other.

    Returns:
        Rows of words, heads first.
    """
    rows = [[f"{method} against", *METRICS, "better", "open", "worse"]]
    for rival in methods_of(scores):
        if rival != method:
            found = paired_comparisons(scores, method, rival)
            counts = tally(found)
            signs = [
                "".join(one.sign for one in found if one.metric == metric) for metric in METRICS
            ]
            rows.append([rival, *signs, str(counts.better), str(counts.open), str(counts.worse)])
    return rows


def first_table(scores: Sequence[Score], base: str) -> list[list[str]]:
    """Each method: how often its mean is the best of all, and its time.

    Args:
        scores: What was measured, of one source.
        base: The method whose time is 1.

    Returns:
        Rows of words, heads first.
    """
    won, cells = best_means(scores), len(METRICS) * len(epsilons_of(scores))
    timed = times(scores, base) if base in won else {}
    head = ["method", "best mean", *([f"time, {base} = 1"] if timed else [])]
    return [
        head,
        *(
            [name, f"{count} of {cells}", *([f"{timed[name]:.1f}"] if timed else [])]
            for name, count in won.items()
        ),
    ]

"""Mixing models without tuning: regret and CPU time beside river's EWARegressor in one run, one thread.

Prints Markdown. Experts are models that say what they will lose, so that both mixtures see the same
losses; regret is what the mean prediction lost above the best expert.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.online import StreamMixture, fair_coins, hedge_rate, leader_killer, one_good

FloatArray = npt.NDArray[np.float64]
ROUNDS, COUNT = 3000, 8


class Expert:
    """A model that says what the round it is asked about will cost it."""

    def __init__(self, place: int) -> None:
        self.place = place

    def learn_one(self, x: FloatArray, y: float) -> None:
        """Nothing to learn."""

    def predict_one(self, x: FloatArray) -> float:
        """Its loss in this round."""
        return float(x[self.place])


def itself(y_true: float, y_pred: float) -> float:  # noqa: ARG001 - river's form of a loss
    """The loss of a prediction: the prediction."""
    return y_pred


def streams(rng: np.random.Generator) -> Iterator[tuple[str, FloatArray]]:
    """Losses, rounds by experts: the three sequences of the issue, and one of them in another unit."""
    killer, even, good = (
        make(ROUNDS, COUNT, rng=rng) for make in (leader_killer, fair_coins, one_good)
    )
    yield "follow-the-leader killer", killer
    yield "iid 1/2", even
    yield "one good", good
    yield "iid 1/2, times 1e6", 1e6 * even


def measured(make: Callable[[], Any], losses: FloatArray) -> tuple[float, float]:
    """Regret of a mixture's predictions, and CPU microseconds of one round, predicting and learning."""
    mixture, paid = make(), 0.0
    start = time.process_time()
    for row in losses:
        paid += mixture.predict_one(row)
        mixture.learn_one(row, 0.0)
    spent = time.process_time() - start
    return paid - float(losses.sum(axis=0).min()), 1e6 * spent / len(losses)


def main() -> None:
    """One table; sequences come from a seed nobody chose: the bytes of the name of this file."""
    rng = np.random.default_rng(list(b"benchmarks/online.py"))
    ensemble = import_module("river.ensemble")

    def theirs(rate: float) -> Any:
        made = ensemble.EWARegressor(experts(), loss=itself, learning_rate=rate)
        # Its weights begin at 1 each rather than 1 in all, which would count against it in the
        # first round.
        made.weights = [1 / COUNT] * COUNT
        return made

    def experts() -> list[Expert]:
        return [Expert(place) for place in range(COUNT)]

    print("\n## Online learning\n")
    print(
        f"`benchmarks/online.py`, one run, one thread, CPU time; river {version('river')}; {COUNT} experts, "
        f"{ROUNDS} rounds. Formula: the rate sqrt(2 ln N / L*), which nobody knows beforehand; it is not the "
        "best rate in hindsight.\n"
    )
    print(
        "| losses | regret, ours | bound | river, default 0.5 | river, formula | ours / formula | asked for "
        "| microseconds a round, ours | river |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name, losses in streams(rng):
        mixtures: list[StreamMixture] = []

        def ours(kept: list[StreamMixture] = mixtures) -> StreamMixture:
            kept.append(StreamMixture(experts(), loss=itself))
            return kept[-1]

        unit, best = float(losses.max()), float(losses.sum(axis=0).min())
        found, spent = measured(ours, losses)
        untuned = theirs(0.5)
        default, their_time = measured(lambda kept=untuned: kept, losses)  # type: ignore[misc]
        # With all weights 0 it predicts 0 for ever, which no mixture of its experts is.
        against = f"{default:.4g}" if sum(untuned.weights) else "all its weights are 0"
        rate = hedge_rate(best / unit, count=COUNT) / unit
        mark, _ = measured(lambda rate=rate: theirs(rate), losses)  # type: ignore[misc]
        met = "1.1: met" if found <= 1.1 * mark else "1.1: MISSED"
        print(
            f"| {name} | {found:.4g} | {mixtures[0].chooser.bound:.4g} | {against} | {mark:.4g} "
            f"| {found / mark:.2f} | {met} | {spent:.0f} | {their_time:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()

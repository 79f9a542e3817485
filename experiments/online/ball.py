"""Theorem 12.4 on balls: regret over bound by dimension, and the leader without noise beside it."""

from __future__ import annotations

import math

import numpy as np
from experiments.online.ball_leader import (
    ball_best_loss,
    ball_excess,
    ball_play,
    gaussian_first_order_bound,
    gaussian_regret_bound,
    tuned_sigma,
)
from experiments.online.protocol import FloatArray, generator
from experiments.sensors.points import Part, Point, Table, exact_point


def run(*, quick: bool) -> Part:
    """Losses within 45 degrees of the axis on which the centre lies."""
    rounds = 200 if quick else 2000
    found: list[Point] = []
    rows: Table = [
        ["dimension", "best loss", "regret", "bound", "closed bound", "leader without noise"]
    ]
    for dimension in (2, 8, 32, 128):
        losses = cone(rounds, dimension)
        center = np.zeros(dimension)
        center[0] = math.sqrt(2)
        best = ball_best_loss(losses, center=center, radius=1.0)
        unit = ball_excess(1.0, dimension=dimension, radius=1.0)
        sigma = tuned_sigma(best, unit_ahead=unit, longest=1.0, rounds=rounds)
        lost, quiet = (
            float(np.sum(ball_play(losses, one, center=center, radius=1.0) * losses)) - best
            for one in (sigma, 1e-6)
        )
        most = losses @ center + np.linalg.norm(losses, axis=1)
        bound = gaussian_regret_bound(
            sigma, best_loss=best, ahead=sigma * unit, longest=1.0, max_total=float(most.sum())
        )
        closed = gaussian_first_order_bound(
            best, unit_ahead=unit, longest=1.0, rounds=rounds, largest=float(most.max())
        )
        for series, value in (
            ("regret", lost),
            ("bound", bound),
            ("closed", closed),
            ("leader", quiet),
        ):
            found.append(exact_point("ball", series, "dimension", dimension, value))
        rows.append(
            [str(dimension), *(f"{value:.4g}" for value in (best, lost, bound, closed, quiet))]
        )
    text = "On a ball the leader needs no noise when losses are never negative; the theorem is true, and large."
    return Part("ball", "Gaussian noise on a ball", text, tuple(found), (("", rows),))


def cone(rounds: int, dimension: int) -> FloatArray:
    """Losses of length at most 1, most of them near 45 degrees from the first axis."""
    rng = generator("cone", rounds, dimension)
    across = rng.normal(size=(rounds, dimension - 1))
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    angle = math.pi / 4 * rng.random((rounds, 1)) ** 0.2
    losses: FloatArray = rng.random((rounds, 1)) * np.hstack(
        [np.cos(angle), np.sin(angle) * across]
    )
    return losses

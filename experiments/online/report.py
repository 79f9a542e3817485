"""All online experiments: python -m experiments.online --out FOLDER [--quick]."""

from __future__ import annotations

from experiments.campaign import Campaign
from experiments.online import ball, matrices, radius, regrets, steps

CAMPAIGN = Campaign(
    "online",
    "Perturbed leaders: Part V again",
    "The perturbed leaders of Part V",
    (regrets.run, steps.run, ball.run, matrices.run, radius.run),
)

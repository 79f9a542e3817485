"""All graphon experiments: python -m experiments.graphon --out FOLDER [--quick]."""

from __future__ import annotations

from experiments.campaign import Campaign
from experiments.graphon import distances, errors, places, private, sources

CAMPAIGN = Campaign(
    "graphon",
    "Block graphons: Part II again",
    "The distances and limits of Part II",
    (distances.run, errors.run, places.run, private.run, sources.run),
)

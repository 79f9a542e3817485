"""All audit experiments: python -m experiments.audit --out FOLDER [--quick]."""

from __future__ import annotations

from experiments.audit import counterexamples, queries, rates
from experiments.campaign import Campaign

CAMPAIGN = Campaign(
    "audit",
    "Testing for privacy: Part IV again",
    "The testers and limits of Part IV",
    (counterexamples.run, rates.run, queries.run),
)

"""The four measures by which maps are compared, forecast and ranked."""

from __future__ import annotations

from typing import Literal

Metric = Literal["similarity", "pearson", "kl", "emd"]

METRICS: tuple[Metric, ...] = ("similarity", "pearson", "kl", "emd")
# Whether a metric grows or falls as the map gets better.
GROWS: dict[str, float] = {"similarity": 1.0, "pearson": 1.0, "kl": -1.0, "emd": -1.0}

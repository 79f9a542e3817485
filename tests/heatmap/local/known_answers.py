"""Make the known answers of local maps, from bytes that a hash gives.

python -m tests.heatmap.local.known_answers > contracts/local-answers-v1.json
"""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.heatmap.local import (
    Question,
    RandomBytes,
    SubsetSelection,
    disk_channel,
    odds_below,
    patch_channel,
    report_of,
)
from sfumato.heatmap.local.channels import Channel
from sfumato.heatmap.local.question import lot

LEAVES = ((1, 0), (1, 1), (1, 2), *((2, 12 + child) for child in range(4)))


def main() -> dict[str, Any]:
    """All of the contract."""
    channels: list[Channel] = [
        SubsetSelection(16, 2, odds_below(2)),
        disk_channel(LEAVES, odds_below("0.5"), size=3),
        patch_channel(LEAVES, odds_below(1), patch=2, rng=np.random.default_rng(1)),
    ]
    answers = []
    for number, channel in enumerate(channels):
        for turn in range(6):
            stream = hashlib.shake_256(f"known answer {number} {turn}".encode()).digest(64)
            masses = [0] * channel.cells
            if turn:
                masses[turn % channel.cells] = turn
                masses[0] += turn == 5
            used = 0

            def read(size: int, stream: bytes = stream) -> bytes:
                nonlocal used
                used += size
                return stream[used - size : used]

            report = report_of(channel, masses, RandomBytes(read))
            answers.append(
                {
                    "channel": channel.to_json(),
                    "masses": masses,
                    "bytes": stream[:used].hex(),
                    "report": list(report),
                }
            )
    question = Question(
        campaign="known",
        round=2,
        users=1000,
        epsilon=Fraction(1, 2),
        bounds=(-10.0, 40.0, 10.0, 50.0),
        cells=LEAVES,
        part=(Fraction(1, 5), Fraction(1)),
        channel=channels[1],
    )
    places = [(-10, 40), (9.9, 41), (-0.1, 49.9), (0, 45), (10, 50), (5, 47.5), (11, 45)]
    cells = [{"question": 0, "place": list(p), "cell": question.cell_of(*p)} for p in places]
    lots = [
        {"campaign": "known", "device": d, "lot": str(lot("known", d))} for d in ("a", "b", "é")
    ]
    return {
        "format": "sfumato-local-answers/1",
        "answers": answers,
        "questions": [question.to_json()],
        "cells": cells,
        "lots": lots,
    }


if __name__ == "__main__":
    print(json.dumps(main(), indent=1))

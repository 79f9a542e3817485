"""A device that seals until it is killed: run as a script, it says which draws it used."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from sfumato.privacy import RoundedGaussianLaw
from sfumato.sensing.release.keys import Device

LAWS = (RoundedGaussianLaw(64), RoundedGaussianLaw(65))


def seal(path: Path, count: int) -> None:
    """Seal so many times, forking half way: a line for every run of draws, whole as soon as it is written."""
    device = Device(path)
    for i in range(count):
        if i == count // 2:
            child = os.fork()
            if child:
                os.waitpid(child, 0)
        law = LAWS[i % 2]
        _, epoch, first = device.noise.numbered(law, 3)
        line = {
            "step": device.step,
            "law": str(law.sigma),
            "epoch": epoch.hex(),
            "first": first,
            "size": 3,
        }
        os.write(1, (json.dumps(line) + "\n").encode())


if __name__ == "__main__":
    if name := os.environ.get("SFUMATO_SABOTEUR"):
        from tests.saboteurs import SABOTEURS  # half the package: only where one strikes

        SABOTEURS[name].strike()
    seal(Path(sys.argv[1]), int(sys.argv[2]))

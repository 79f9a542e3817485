"""The contract of seals: a device made from the page alone is accepted, and gives the known answers."""

from __future__ import annotations

import copy
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.sensing import seal_answers, stranger

from sfumato.errors import InvalidInput
from sfumato.privacy import GaussianLaw, RoundedGaussianLaw
from sfumato.privacy.noise import keyed_draws
from sfumato.sensing.model.site import Site
from sfumato.sensing.release.keys import MasterKey
from sfumato.sensing.release.readings import Snapshot, unseal_snapshot

CONTRACT = Path(__file__).parents[2] / "contracts" / "seals-v1.json"
KNOWN: list[dict[str, Any]] = json.loads(CONTRACT.read_text(encoding="utf-8"))["answers"]


def built(answer: dict[str, Any]) -> dict[str, Any]:
    """The snapshot of an answer, built by the stranger from what goes into it."""
    blank, where = copy.deepcopy(answer["snapshot"]), dict(answer["snapshot"]["seal"])
    del blank["seal"], blank["release"]["value"], where["code"], where["key_id"]
    return stranger.sealed(
        answer["units"],
        answer["site"],
        blank,
        master=bytes.fromhex(answer["master_key"]),
        where=where,
    )


def unsealed(answer: dict[str, Any], snapshot: dict[str, Any]) -> list[int]:
    """What the package takes the noise off to, in lattice units."""
    site, master = Site.from_json(answer["site"]), MasterKey(bytes.fromhex(answer["master_key"]))
    found = unseal_snapshot(Snapshot.from_json(snapshot), site, master)
    return [int(unit) for unit in np.ldexp(found.reveal(), -snapshot["release"]["exponent"])]


@pytest.mark.golden
def test_a_device_built_from_the_page_gives_the_known_seals() -> None:
    laws = {answer["snapshot"]["release"]["entry"]["mechanism"] for answer in KNOWN}
    assert laws == {"rounded-gaussian/1", "discrete-gaussian/1"}
    assert any(answer["snapshot"]["seal"]["step"] > 0 for answer in KNOWN)
    assert all(answer["snapshot"]["seal"]["first"] > 0 for answer in KNOWN)
    for answer in KNOWN:
        assert stranger.site_digest(answer["site"]) == answer["site_digest"]
        assert built(answer) == answer["snapshot"]


@pytest.mark.golden
def test_the_package_takes_the_noise_off_the_known_seals() -> None:
    for answer in KNOWN:
        assert Site.from_json(answer["site"]).digest == answer["site_digest"]
        assert Site.from_json(answer["site"]).to_json() == answer["site"]
        assert unsealed(answer, answer["snapshot"]) == answer["units"]


@pytest.mark.reference
def test_what_the_package_seals_today_is_what_the_page_says() -> None:
    for answer in seal_answers.answers():
        assert built(answer) == answer["snapshot"]
        assert unsealed(answer, built(answer)) == answer["units"]


@pytest.mark.unit
def test_a_code_without_the_site_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the page said once: [NAMES,TIME,RELEASE,...]. A device built from it was refused."""
    assert "[SITE,NAMES,TIME,RELEASE,[KEY_ID,DEVICE,STEP,EPOCH,FIRST]]" in stranger.PAGE
    monkeypatch.setattr(stranger, "PAGE", stranger.PAGE.replace("[SITE,NAMES", "[NAMES"))
    for answer in KNOWN:
        with pytest.raises(
            InvalidInput, match="changed since they were sealed; nothing was unsealed"
        ):
            unsealed(answer, built(answer))


@pytest.mark.reference
@pytest.mark.parametrize("sigma", [0.25, 4, 2.5, 300, 2**16])
def test_the_strangers_noise_is_the_packages(sigma: float, key: bytes) -> None:
    epoch = bytes(range(12))
    for law, ours in (("gaussian", GaussianLaw), ("rounded-gaussian", RoundedGaussianLaw)):
        if law == "rounded-gaussian" and sigma > 2**12:
            continue
        drawn = stranger.draws(key, epoch, law, sigma=Fraction(sigma), first=5, size=20)
        assert keyed_draws(key, epoch, ours(sigma), first=5, size=20).tolist() == drawn

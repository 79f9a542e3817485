"""The sensors of the demo: a corridor and a network, made up, read privately, and recovered from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import InvalidInput
from sfumato.files import write_file

if TYPE_CHECKING:
    import numpy as np

    from sfumato._types import FloatArray, IntArray
    from sfumato.report import Section
    from sfumato.sensing import Site
    from sfumato.sensing.release import Snapshot

LINE = "demo corridor (synthetic)"
GRAPH = "demo network (synthetic)"
DELTA = "1e-6"
FILES = ("corridor.json", "corridor.png", "network.json", "network.png")


def sensors(out: Path, *, rng: np.random.Generator) -> tuple[list[Section], dict[str, Any]]:
    """Release and recover both; the sections of the report, and what goes into the JSON result."""
    corridor, one = _corridor(out, rng)
    network, two = _network(out, rng)
    return [corridor, network], {"corridor": one, "network": two}


def keep_others(out: Path) -> None:
    """Refuse a folder whose ledgers are not of a demo."""
    from sfumato.privacy import Ledger

    for name, source in (("corridor.ledger", LINE), ("network.ledger", GRAPH)):
        file = out / name
        if file.exists() and Ledger(file).header.source != source:
            raise InvalidInput(
                f"{file} accounts for another source and is kept; choose another `out`"
            )


def _corridor(out: Path, rng: np.random.Generator) -> tuple[Section, dict[str, Any]]:
    from sfumato.privacy import MovedMass
    from sfumato.report import Section
    from sfumato.sensing import emd_of, heat_line
    from sfumato.sensing.planning import synthetic_site

    operator = heat_line(sources=100, sensors=50, diffusion_time=0.01)
    site = synthetic_site(LINE, operator, MovedMass("1/100", "line"))
    truth, snapshot = _read(out / "corridor.ledger", site, sources=2, epsilon="2", rng=rng)
    saved, picture = _recovered(site, snapshot, truth)
    saved.write(out / "corridor.json", overwrite=True)
    write_file(out / "corridor.png", picture, overwrite=True)
    off = emd_of(saved.certificate, truth) if saved.certificate.status == "optimal" else None
    told = (
        "nothing could be told from the noise"
        if off is None
        else f"the mass is off by {off:.3f} on average"
    )
    return (
        Section(
            "Where the heat came from",
            "Two people in a corridor of length 1, 50 sensors, each of which adds its noise before it sends. "
            f"What the collector recovers is the least heat that explains what it got: {told}.\n\n"
            f"{snapshot.guarantee}.",
            picture=picture,
            description="Recovered heat sources on a line above the noisy readings",
        ),
        {"statement": str(snapshot.guarantee), "status": saved.certificate.status, "emd": off},
    )


def _network(out: Path, rng: np.random.Generator) -> tuple[Section, dict[str, Any]]:
    from sfumato.privacy import MovedMass
    from sfumato.report import Section
    from sfumato.sensing import graph_diffusion
    from sfumato.sensing.planning import block_graph, synthetic_site
    from sfumato.sensing.recovery import community_of

    graph, labels = block_graph([100, 100], inside=0.2, across=0.002, rng=rng)
    site = synthetic_site(GRAPH, graph_diffusion(graph, 0.5), MovedMass("1/8", "graph"))
    truth, snapshot = _read(out / "network.ledger", site, sources=1, epsilon="4", rng=rng)
    saved, picture = _recovered(site, snapshot, truth, labels)
    saved.write(out / "network.json", overwrite=True)
    write_file(out / "network.png", picture, overwrite=True)
    right = None
    told = "nothing could be told from the noise"
    if saved.certificate.status == "optimal":
        answer = community_of(saved.certificate.estimate, labels)
        right = bool(answer.label == labels[truth.argmax()])
        told = f"{max(answer.shares):.0%} of the recovered mass is in the {'right' if right else 'wrong'} one"
    return (
        Section(
            "Who started the rumour",
            "One of 200 people in two communities told a rumour, which spread along friendships. Everybody "
            f"says how much of it they heard, with noise. Which community it came from: {told}.\n\n"
            f"{snapshot.guarantee}.",
            picture=picture,
            description="A network of two communities with the recovered source",
        ),
        {
            "statement": str(snapshot.guarantee),
            "status": saved.certificate.status,
            "right_community": right,
        },
    )


def _read(
    file: Path, site: Site, *, sources: int, epsilon: str, rng: np.random.Generator
) -> tuple[FloatArray, Snapshot]:
    from sfumato.privacy import ApproxDP, Ledger
    from sfumato.sensing import plan, release_snapshot
    from sfumato.sensing.planning import synthetic_sources
    from sfumato.sensing.release import unit_of

    truth = synthetic_sources(site.operator.space, sources, rng=rng)
    file.unlink(missing_ok=True)
    promise = ApproxDP(epsilon, DELTA)
    book = Ledger.create(
        file,
        promise,
        unit=unit_of(site.sensors),
        source=site.name,
        neighbors=site.neighbors,
        model="local",
    )
    readings = site.operator.readings(truth)
    return truth, release_snapshot(
        readings, site, plan(site, promise), ledger=book, note="the demo's readings"
    )


def _recovered(
    site: Site, snapshot: Snapshot, truth: FloatArray, labels: IntArray | None = None
) -> tuple[Any, bytes]:
    from sfumato.sensing import RecoveryResult, recover
    from sfumato.sensing.render import draw_recovery

    found = recover(site.operator, snapshot.numbers(), sigma=snapshot.sigma)
    saved = RecoveryResult(site, snapshot.names, found, snapshot.sigma, str(snapshot.guarantee))
    return saved, draw_recovery(saved, sources=truth, labels=labels)

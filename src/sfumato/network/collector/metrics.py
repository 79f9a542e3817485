"""Metrics of a collector as Prometheus reads them: text format 0.0.4, nothing of what was recovered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sfumato.network.collector.state import CollectorState


def prometheus(state: CollectorState) -> str:
    """The metrics of a network.

    Args:
        state: What the collector knows.

    Returns:
        Lines of text, each metric with its help and its type.
    """
    site = {"site": state.site}
    lines: list[str] = []
    for name, kind, text, samples in _metrics(state):
        lines.append(f"# HELP sfumato_{name} {text}")
        lines.append(f"# TYPE sfumato_{name} {kind}")
        for labels, value in samples:
            told = ",".join(f'{key}="{_escaped(one)}"' for key, one in {**site, **labels}.items())
            lines.append(f"sfumato_{name}{{{told}}} {value:g}" if value != value // 1 else
                         f"sfumato_{name}{{{told}}} {int(value)}")  # fmt: skip
    return "\n".join(lines) + "\n"


_Samples = Iterable[tuple[dict[str, str], float]]


def _metrics(state: CollectorState) -> Iterator[tuple[str, str, str, _Samples]]:
    yield "connected", "gauge", "Whether the broker is there.", [({}, float(state.connected))]
    yield (
        "packets_accepted_total",
        "counter",
        "Packets that were checked and kept.",
        [({"device": one.name}, one.accepted) for one in state.devices],
    )
    yield (
        "packets_refused_total",
        "counter",
        "Packets that were refused, by reason; late ones were kept.",
        [({"reason": why}, count) for why, count in sorted(state.refused.items())],
    )
    yield (
        "rounds_total",
        "counter",
        "Rounds by what came of them.",
        [({"state": how}, count) for how, count in sorted(state.rounds.items())],
    )
    yield (
        "rounds_open",
        "gauge",
        "Rounds that wait for sensors, or to be recovered.",
        [({}, state.waiting)],
    )
    yield "queue_packets", "gauge", "Packets that wait to be kept.", [({}, state.queue[0])]
    yield "queue_limit", "gauge", "Packets that may wait.", [({}, state.queue[1])]
    yield (
        "store_failing",
        "gauge",
        "Whether the store cannot be written.",
        [({}, float(bool(state.store_problem)))],
    )
    yield "sensors", "gauge", "Sensors of the site.", [({}, state.sensors)]
    missing = 0 if state.last is None else len(state.last.missing)
    yield "sensors_missing", "gauge", "Sensors that the last round lacks.", [({}, missing)]
    yield (
        "device_faulty",
        "gauge",
        "Whether the others contradict a sensor of the device.",
        [({"device": one.name}, float(bool(one.faulty))) for one in state.devices],
    )
    promise = state.promise
    if promise is not None:
        kind = {"kind": promise.kind}
        yield (
            "privacy_cost_of_a_round",
            "gauge",
            "What a round costs, as devices state it.",
            [(kind, promise.cost)],
        )
        yield (
            "privacy_left",
            "gauge",
            "The least that a device has left in its window.",
            [(kind, promise.left)],
        )
        yield (
            "privacy_epsilon_spent",
            "gauge",
            "Epsilon of the rounds seen in this window.",
            [({}, promise.epsilon_spent)],
        )


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

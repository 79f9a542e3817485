"""What a collector shows in a terminal: the last rounds, and how the network is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group
from rich.markup import escape
from rich.table import Table

from sfumato.network.collector.config import NetworkConfig
from sfumato.network.collector.gate import MEANINGS, Refusal
from sfumato.network.collector.recoveries import Recovered
from sfumato.network.collector.state import CollectorState
from sfumato.sensing import Site
from sfumato.sensing.render import round_words

SHOWN = 8
"""Rounds in the live table."""
MAX_NAMES = 4
HARMLESS: set[Refusal] = {"resent", "late"}


def live_view(
    site: Site,
    rounds: Sequence[Recovered],
    state: CollectorState,
    truths: dict[str, str] | None = None,
) -> Any:
    """The last rounds as a table, and the network in a few lines; for rich.

    Args:
        site: The site.
        rounds: What came of rounds, the last ones last.
        state: The network now.
        truths: Where the source really was, by time, in a demonstration; None elsewhere.

    Returns:
        What rich prints.
    """
    columns = ["round", "sensors", "total mass", "where"]
    table = Table(*columns, *(["truth"] if truths is not None else []), title=escape(site.name))
    for done in rounds[-SHOWN:]:
        table.add_row(*_row(site, done, truths))
    return Group(table, *map(escape, state_lines(state)))


def round_sentence(site: Site, done: Recovered) -> str:
    """A round in one line, where there is no terminal to redraw.

    Args:
        site: The site.
        done: What came of the round.

    Returns:
        The line.
    """
    time, sensors, mass, where, *_ = _row(site, done, None, plain=True)
    return f"{time}  {sensors} sensors  {f'mass {mass}  ' if mass else ''}{where}"


def state_lines(state: CollectorState) -> list[str]:
    """How the network is: rounds, packets, what is refused, who is faulty or missing, and the promise.

    Args:
        state: The network.

    Returns:
        A line for each.
    """
    told = ", ".join(f"{count} {how}" for how, count in state.rounds.items() if count) or "none yet"
    lines = [
        f"rounds: {told}; packets: {state.accepted} accepted, {state.queue[0]} waiting"
        + ("" if state.connected else "; NO BROKER: trying again")
    ]
    if state.store_problem:
        lines.append(f"NOTHING CAN BE KEPT: {state.store_problem}; packets wait at the broker")
    for why, count in sorted(state.refused.items(), key=lambda one: -one[1]):
        if why not in HARMLESS:
            who = [one.name for one in state.devices if one.refused.get(why)]
            named = f" ({_few(who)})" if who else ""
            lines.append(f"refused: {count} {MEANINGS[why]}{named}")  # type: ignore[index]
    late = state.refused.get("late", 0)
    if late:
        lines.append(f"late: {late} packets were kept, but their rounds were solved without them")
    if state.last is not None and state.last.missing:
        lines.append(f"missing in the last round: {_few(state.last.missing)}; solved without")
    silent = [one.name for one in state.devices if not one.accepted and not one.revoked]
    if silent and state.accepted:
        lines.append(f"never heard: {_few(silent)}")
    lines += [f"LOOK AT: {said}" for one in state.devices for said in one.faulty]
    if state.promise is not None:
        lines.append(promise_words(state))
    return lines


def network_lines(config: NetworkConfig) -> list[str]:
    """What a network's file asks for, where nothing is collected yet.

    Args:
        config: The network.

    Returns:
        Sensors and broker, whether codes are checked, and how rounds are recovered: a line for each.
    """
    host, port = config.broker.address
    codes = (
        "codes are checked"
        if config.check_keys is not None
        else "codes are NOT checked: say check_keys, or anybody at the broker can send for a sensor"
    )
    return [
        f"{config.site.name}: {len(config.site.sensors)} sensors of {len(config.places())} devices, "
        f"a round every {config.period_ms / 1000:g} s, from {host}:{port}"
        + (" by TLS" if config.broker.is_tls else ""),
        codes,
        f"each round by {config.estimator}"
        + (f", followed through {config.track} rounds" if config.track else ""),
    ]


def promise_words(state: CollectorState) -> str:
    """What a round costs, what is left, and what all rounds of the window cost somebody who stays.

    Args:
        state: The network.

    Returns:
        A sentence.
    """
    told = state.promise
    if told is None:
        return "nothing was promised yet"
    delta = f", delta {told.delta:.2g}" if told.delta else ""
    when = f" {told.window}" if told.window else ""
    rehearsal = "REHEARSAL, nobody is protected; " if told.rehearsal else ""
    return (
        f"{rehearsal}a round costs {told.kind} {told.cost:.4g}{delta}, {told.left:.4g} left{when}; "
        f"{told.rounds} rounds together at most epsilon {told.epsilon_spent:.4g} at delta "
        f"{told.spent_delta:.2g} for who was there in all"
    )


def _row(
    site: Site, done: Recovered, truths: dict[str, str] | None, *, plain: bool = False
) -> list[str]:
    sensors = f"{len(done.closed.packets)}/{len(site.sensors)}"
    mass = f"{done.found.total:.2f}" if done.found is not None and done.found.total else ""
    where = done.problem if done.found is None else round_words(done.found, site)
    moved = _moved(done)
    where = f"{where}; {moved}" if moved else where
    time = done.closed.time.partition("T")[2] if not plain else done.closed.time
    row = [time, sensors, mass, where if plain else escape(where)]
    return row if truths is None else [*row, truths.get(done.closed.time, "")]


def _moved(done: Recovered) -> str:
    """Where the track has its sources now."""
    if (
        done.track is None
        or not done.track.verdict.reliable
        or done.track.verdict.kind == "nothing"
    ):
        return ""
    told = []
    for one in done.track.rounds[-1].sources:
        numbers = ", ".join(f"{one.place[axis]:.3g}" for axis in "xyz" if axis in one.place)
        told.append(f"{one.place.get('name', numbers)} ± {one.radius:.2g}")
    return f"followed to {' and '.join(told)}"


def _few(names: Sequence[str]) -> str:
    more = len(names) - MAX_NAMES
    return ", ".join([*names[:MAX_NAMES], *([f"{more} more"] if more > 0 else [])])

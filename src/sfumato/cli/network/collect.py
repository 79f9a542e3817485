"""`sfumato collect`: the collector of a network of sensors, until it is stopped."""

from __future__ import annotations

import json as json_
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.console import Json, Quiet, say, sentences, show
from sfumato.cli.endings import stopped_by_signals

if TYPE_CHECKING:
    from sfumato.network import Walker
    from sfumato.network.collector import Collector, LastRounds, Recovered
    from sfumato.sensing import Site


@sentences
def collect(
    network: Annotated[
        Path,
        typer.Argument(
            help="network.toml: site, period, broker, check keys, store and outputs.",
            show_default=False,
        ),
    ],
    rounds: Annotated[
        int | None, typer.Option(help="Stop after so many rounds; else it goes on.", min=1)
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Check every file and open the store; connect to nothing."),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Collect the packets of sensors, recover every round, and follow what moves, until it is stopped.

    Packets are checked, kept, and only then acknowledged: whatever ends the collector, no accepted round
    is lost. Rounds are solved with the sensors that are there. It costs nothing: the sensors paid. With
    --json every round is a line of JSON on stdout. The file is read again when it changes: devices,
    check keys and revocations.
    """
    from sfumato.network.collector import (
        Collector,
        LastRounds,
        network_lines,
        read_network,
        round_line,
        run_collector,
        state_lines,
    )

    config = read_network(network)
    if dry_run:
        made = Collector(config, threads=False)
        made.close()
        show(made.state.to_json(), network_lines(config), json=json)
        return
    last = LastRounds()
    stop = threading.Event()
    with stopped_by_signals(stop.set), _shown(config.site, last, json=json) as shown:
        state = run_collector(
            config,
            stop=stop,
            file=network,
            outputs=[last, *([_Printed(round_line)] if json else [])],
            shown=shown,
            watch=lambda told: say(told, quiet=quiet),
            rounds=rounds,
        )
    for line in state_lines(state):
        say(line, quiet=quiet)


class _Printed:
    """Every round as a line of JSON on stdout."""

    def __init__(self, line: Callable[[Any], dict[str, Any]]) -> None:
        self._line = line

    def round(self, done: Any, _: Any) -> None:
        print(json_.dumps(self._line(done)), flush=True)  # noqa: T201

    def close(self) -> None:
        """Stdout stays."""


@contextmanager
def _shown(site: Site, last: LastRounds, *, json: bool) -> Iterator[Callable[[Collector], None]]:
    """A table that is redrawn on a terminal; elsewhere a line for each round."""
    from sfumato.network.collector import live_view, round_sentence

    if json:
        yield lambda _: None
        return
    if not sys.stdout.isatty():
        told = 0

        def lines(_: Collector) -> None:
            nonlocal told
            for done in list(last.rounds)[len(last.rounds) - (last.fresh - told) :]:
                print(round_sentence(site, done), flush=True)  # noqa: T201
            told = last.fresh

        yield lines
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(), auto_refresh=False) as live:
        drawn = -1

        def draw(collector: Collector) -> None:
            nonlocal drawn
            if last.fresh != drawn:
                drawn = last.fresh
                live.update(live_view(site, list(last.rounds), collector.state), refresh=True)

        yield draw


@contextmanager
def demo_shown(
    *, quiet: bool
) -> Iterator[Callable[[Collector, list[Recovered], Walker], None] | None]:
    """As for `collect`, with a column of where the source really is."""
    from sfumato.network.collector import live_view, round_sentence

    if quiet:
        yield None
        return
    drawn = 0
    if not sys.stdout.isatty():

        def lines(collector: Collector, rounds: list[Recovered], walker: Walker) -> None:
            nonlocal drawn
            for done in rounds[drawn:]:
                _, truth = walker.truth(done.closed.time)
                told = round_sentence(collector.config.site, done)
                print(f"{told}  (truth {truth})", flush=True)  # noqa: T201
            drawn = len(rounds)

        yield lines
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(), auto_refresh=False) as live:

        def draw(collector: Collector, rounds: list[Recovered], walker: Walker) -> None:
            nonlocal drawn
            if len(rounds) == drawn:
                return
            drawn = len(rounds)
            last = rounds[-12:]
            truths = {done.closed.time: walker.truth(done.closed.time)[1] for done in last}
            view = live_view(collector.config.site, last, collector.state, truths)
            live.update(view, refresh=True)

        yield draw

"""The page under load: its start, 50 viewers of a live network, memory over 10,000 requests.

Prints Markdown; `make bench` keeps it in docs/reference/benchmarks.md. The server is `sfumato serve` in a
process of its own; collector and viewers are this one, so that both ends of an event have one clock.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from sfumato.network.collector import CollectorState
from sfumato.privacy import MovedMass
from sfumato.sensing import heat_plane
from sfumato.sensing.pipeline import recover_sources
from sfumato.sensing.planning import synthetic_site
from sfumato.sensing.results import RecoveredRound
from sfumato.spaces import Grid

STARTS, VIEWERS, REQUESTS, PACE = 5, 50, 10_000, 0.25
ASKED_START, ASKED_LATENCY = 1.5, 50.0
PAGES = ("/", "/maps.json", "/ledger", "/plan.json?epsilon=1&users=500", "/sources", "/nothing")


@contextmanager
def served(folder: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The page in a process of its own, and its port, which it prints before it answers."""
    command = [sys.executable, "-m", "sfumato", "serve", str(folder), "--port", "0", "--quiet"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:  # noqa: S603
        try:
            yield server, _port(server.stderr)
        finally:
            server.terminate()


def _port(said: IO[str] | None) -> int:
    assert said is not None  # noqa: S101 - a pipe was asked for
    for line in said:
        if found := re.search(r"http://127\.0\.0\.1:(\d+)/", line):
            return int(found[1])
    raise RuntimeError("the page did not say where it is")


async def asked(port: int, *paths: str) -> int:
    """How many bytes came of these addresses, one after the other on one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    got = 0
    for path in paths:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = re.search(r"content-length: (\d+)", head)
        assert length is not None, head  # noqa: S101
        got += len(await reader.readexactly(int(length[1])))
    writer.close()
    await writer.wait_closed()
    return got


def start(folder: Path) -> float:
    """Seconds from the command to the first whole page."""
    began = time.monotonic()
    with served(folder) as (_, port):
        asyncio.run(asked(port, "/"))
        return time.monotonic() - began


def state() -> dict[str, object]:
    """What a collector of 64 sensors on a floor says after a round."""
    places = [[(x + 0.5) / 8, (y + 0.5) / 8] for x in range(8) for y in range(8)]
    floor = heat_plane(sources=Grid(4), sensors=places, diffusion_time=0.01)
    site = synthetic_site("floor", floor, MovedMass("1", floor.space.metric))
    found = recover_sources(floor.columns([21])[:, 0], site=site, noise=0.01, estimator="least")
    return CollectorState(
        site="floor", sensors=64, connected=True, accepted=64, refused={}, rounds={"recovered": 1},
        waiting=0, queue=(0, 100), store_problem="", last=RecoveredRound("2026-01-01", found),
        track=None, devices=(), promise=None,
    ).to_json()  # fmt: skip


async def watched(port: int, seconds: float) -> tuple[list[float], int, int]:
    """Milliseconds from a collector's word to a viewer, of each event and viewer; bytes; connections."""
    said, late, connections = state(), list[float](), 0
    stop = asyncio.Event()

    async def collector(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        number = 0
        while not stop.is_set():
            number += 1
            last = said["last"] if isinstance(said["last"], dict) else {}
            told = said | {"last": last | {"time": f"{number}"}, "sent": time.monotonic()}
            writer.write(f"event: state\nid: {number}\ndata: {json.dumps(told)}\n\n".encode())
            await writer.drain()
            await asyncio.sleep(PACE)
        writer.close()

    async def viewer(at: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
        ask = f"GET /sources/events?port={at} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"
        writer.write(ask.encode())
        joined = time.monotonic()
        while True:
            line = await reader.readline()
            if line.startswith(b"data: {") and b'"sent"' in line:
                now, sent = time.monotonic(), json.loads(line[6:])["sent"]
                if sent > joined:  # not what was kept for who comes late
                    late.append(1000 * (now - sent))

    server = await asyncio.start_server(collector, "127.0.0.1", 0)
    at = server.sockets[0].getsockname()[1]
    viewers = [asyncio.create_task(viewer(at)) for _ in range(VIEWERS)]
    await asyncio.sleep(seconds)
    stop.set()
    for one in viewers:
        one.cancel()
    await asyncio.gather(*viewers, return_exceptions=True)
    await asyncio.sleep(2 * PACE)  # the collector ends
    server.close()
    return late, len(json.dumps(said)), connections


def memory(server: subprocess.Popen[str]) -> float:
    """Resident megabytes of the server, by the kernel of Linux."""
    status = Path(f"/proc/{server.pid}/status").read_text("utf-8")
    found = re.search(r"VmRSS:\s+(\d+)", status)
    assert found is not None  # noqa: S101
    return int(found[1]) / 1024


def main() -> None:
    """Three tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30, help="how long viewers watch")
    seconds = parser.parse_args().seconds
    print("\n## The page\n")
    print("`benchmarks/page.py`, one run, wall-clock times.\n")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "desk"
        starts = sorted(start(folder) for _ in range(STARTS))
        median = statistics.median(starts)
        print("| `sfumato serve`, from the command to its first page | s | asked for |")
        print("|---|---:|---|")
        print(f"| median of {STARTS} | {median:.2f} | {_met(median, ASKED_START)} |")
        print(f"| slowest | {starts[-1]:.2f} | |\n")
        with served(folder) as (_, port):
            late, size, connections = asyncio.run(watched(port, seconds))
        late.sort()
        median, worst = statistics.median(late), late[int(0.99 * len(late))]
        print(
            f"| {VIEWERS} viewers of a network for {seconds:g} s, an event of {size:,} bytes every "
            f"{1000 * PACE:g} ms | | asked for |"
        )
        print("|---|---:|---|")
        print(f"| events that came | {len(late):,} | |")
        print(
            f"| from the collector to a viewer, median, ms | {median:.1f} | {_met(median, ASKED_LATENCY)} |"
        )
        print(f"| 99th percentile, ms | {worst:.1f} | |")
        print(f"| connections to the collector | {connections} | 1 |\n")
        print("| requests so far | memory of the server, MB |")
        print("|---:|---:|")
        with served(folder) as (server, port):
            part = REQUESTS // 10
            for number in range(11):
                if number:
                    asyncio.run(asked(port, *(PAGES[i % len(PAGES)] for i in range(part))))
                if number in (0, 1, 2, 5, 10):
                    print(f"| {number * part:,} | {memory(server):.1f} |")


def _met(found: float, limit: float) -> str:
    return f"{limit:g}: {'met' if found <= limit else 'MISSED'}"


if __name__ == "__main__":
    main()

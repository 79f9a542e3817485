"""Three parties on one machine, each a process of its own: what a user would type, and one map."""

from __future__ import annotations

import shlex
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from sfumato.errors import ExistsAlready, SessionStopped
from sfumato.files import write_file
from sfumato.heatmap.benchmark.synthetic_city import write_city
from sfumato.heatmap.distributed.certificates import make_certificates
from sfumato.heatmap.distributed.check import check_joint
from sfumato.heatmap.distributed.results import JointCheck
from sfumato.heatmap.distributed.secure_sum import check_packages
from sfumato.heatmap.export.archive import read_heatmap
from sfumato.privacy import Joint, Ledger, PureDP
from sfumato.privacy.accounting import Number

Watch = Callable[[str], None]
NAMES = ("ticino", "uri", "vaud")
BOUNDS = (11.2, 43.74, 11.32, 43.81)
USERS = 1000


@dataclass(frozen=True, slots=True)
class DemoParty:
    """One party of the demo.

    Attributes:
        folder: Where its rows (NAME.parquet), its ledger (NAME.ledger) and parties.toml are.
        name: What it is called.
        number: Its number, from 1.
        bounds: The area of the map.
        outputs: The files that it is to write.

    """

    folder: Path
    name: str
    number: int
    bounds: tuple[float, float, float, float]
    outputs: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class JointDemo:
    """What the demo made.

    Attributes:
        folder: Where everything is.
        picture: The map as a picture.
        statement: What is promised.
        parties: What the command of each party printed, by its name.
        check: Whether their ledgers and maps tell the same story.

    """

    folder: str
    picture: str
    statement: str
    parties: dict[str, str]
    check: JointCheck

    def to_json(self) -> dict[str, Any]:
        """What `sfumato joint demo --json` prints."""
        return {
            "folder": self.folder,
            "picture": self.picture,
            "statement": self.statement,
            "parties": self.parties,
            "check": self.check.to_json(),
        }


def run_joint_demo(
    folder: str | Path,
    *,
    command: Callable[[DemoParty], list[str]],
    epsilon: Number = 1,
    users: int = USERS,
    watch: Watch | None = None,
) -> JointDemo:
    """Make up three parties' people and release one map of them, on loopback with TLS.

    Args:
        folder: Where everything goes; it must not be there.
        command: The words of the command line that a party is started by.
        epsilon: What the map costs each party.
        users: How many people each party has.
        watch: Told of each step, of the parties' own too.

    Returns:
        The map and the check of the parties' ledgers.

    Raises:
        ExistsAlready: The folder is there.
        MissingPackage: MPyC is not installed.
        SessionStopped: A party stopped.

    """
    say, place = watch or (lambda _: None), Path(folder)
    check_packages()
    if place.exists():
        raise ExistsAlready(f"{place} exists and is kept; nothing was made")
    place.mkdir(parents=True)
    make_certificates(place / "certificates", NAMES)
    write_file(place / "parties.toml", _parties_text())
    commands = []
    for number, name in enumerate(NAMES, 1):
        write_city(place / f"{name}.parquet", users=users, family="town", bounds=_part(number))
        Ledger.create(
            place / f"{name}.ledger",
            PureDP(epsilon),
            unit="user",
            source=name,
            model=Joint(len(NAMES)),
        )
        files = [place / f"{name}.json", *([place / f"{name}.png"] if number == 1 else [])]
        commands.append(command(DemoParty(place, name, number, BOUNDS, tuple(files))))
        say(f"{name}: {shlex.join(['sfumato', *commands[-1]])}")
    told = _run(commands, say)
    files = [place / f"{name}{end}" for name in NAMES for end in (".ledger", ".json")]
    statement = read_heatmap(place / f"{NAMES[0]}.json").statement
    picture = place / f"{NAMES[0]}.png"
    printed = dict(zip(NAMES, told, strict=True))
    return JointDemo(str(place), str(picture), statement, printed, check_joint(files))


def _run(commands: list[list[str]], say: Watch) -> list[str]:
    """Run all parties side by side; what each printed."""
    found: list[bytes] = [b""] * len(commands)
    with ExitStack() as stack:
        running = []
        for command in commands:
            party = subprocess.Popen(  # noqa: S603 - this interpreter, and words made here
                [sys.executable, "-m", "sfumato", *command],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            stack.callback(_end, party)
            running.append(party)
        last = [""] * len(commands)

        def listen(at: int) -> None:
            for line in running[at].stderr or ():
                last[at] = line.decode(errors="replace").rstrip()
                say(f"{NAMES[at]} | {last[at]}")

        def collect(at: int) -> None:
            pipe = running[at].stdout
            found[at] = b"" if pipe is None else pipe.read()

        threads = [Thread(target=work, args=(at,)) for at in range(3) for work in (listen, collect)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        codes = [party.wait() for party in running]
    for name, code, line in zip(NAMES, codes, last, strict=True):
        if code:
            raise SessionStopped(f"{name} ended with exit code {code}: {line}")
    return [one.decode(errors="replace").rstrip() for one in found]


def _end(party: subprocess.Popen[bytes]) -> None:
    if party.poll() is None:
        party.terminate()
    party.wait()
    for pipe in (party.stdout, party.stderr):
        if pipe is not None:
            pipe.close()


def _part(number: int) -> tuple[float, float, float, float]:
    """Where a party's people are: three overlapping parts of the area."""
    west, south, east, north = BOUNDS
    step = (east - west) / 6
    return west + (number - 1) * step, south, west + (number + 3) * step, north


def _parties_text() -> str:
    parties = "".join(
        f'\n[[party]]\nname = "{name}"\naddress = "127.0.0.1:{port}"\n'
        for name, port in zip(NAMES, _free_ports(len(NAMES)), strict=True)
    )
    return f'curious = 1\ncertificates = "certificates"\n{parties}'


def _free_ports(many: int) -> list[int]:
    with ExitStack() as stack:
        found = []
        for _ in range(many):
            one = stack.enter_context(socket.socket())
            one.bind(("127.0.0.1", 0))
            found.append(int(one.getsockname()[1]))
        return found

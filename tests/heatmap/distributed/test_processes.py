"""Secure sums between real processes with TLS on loopback: one session of three for all tests here."""

from __future__ import annotations

import datetime
import hashlib
import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.heatmap.distributed.in_threads import NAMES, charged, counts_of, plan_of

from sfumato.errors import InvalidInput, MissingPackage, SessionStopped
from sfumato.heatmap.distributed import (
    MODULUS,
    SecureSums,
    _secure_sum_child,
    make_certificates,
    read_parties,
)
from sfumato.heatmap.distributed._secure_sum_child import GOODBYE, Exchange, NoPickle, Stopped
from sfumato.heatmap.distributed.certificates import fingerprint

WAIT = 600.0  # seconds; only a broken test waits so long


def free_ports(many: int) -> list[int]:
    with ExitStack() as stack:
        made = [stack.enter_context(socket.socket()) for _ in range(many)]
        for one in made:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in made]


def write_parties(folder: Path) -> None:
    make_certificates(folder / "certificates", NAMES)
    (folder / "parties.toml").write_text(
        "".join(
            f'[[party]]\nname = "{name}"\naddress = "127.0.0.1:{port}"\n'
            for name, port in zip(NAMES, free_ports(3), strict=True)
        )
    )


def at_once(work: Callable[[int], Any], parties: int = 3) -> list[Any]:
    with ThreadPoolExecutor(parties) as pool:
        return list(pool.map(work, range(parties)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("parties")
    write_parties(made)
    return made


@pytest.fixture(scope="module")
def ends(folder: Path) -> Iterator[list[SecureSums]]:
    """Three processes that are connected with each other."""
    parties = read_parties(folder / "parties.toml")
    with ExitStack() as stack:
        made = [SecureSums(parties, me, timeout=WAIT) for me in range(3)]
        for one in made:
            stack.callback(one.close)
        at_once(lambda me: made[me].__enter__())
        yield made


@pytest.mark.reference
def test_sums_are_those_of_plain_addition(ends: list[SecureSums], rng: np.random.Generator) -> None:
    own = rng.integers(-(2**55), 2**55, (3, 200))
    own[:, 0], own[:, 1] = (-1, 0, 1), (-(2**58), -1, 0)
    found = at_once(lambda me: ends[me].sum(own[me]))
    for one in found:
        assert (one == own.sum(axis=0)).all()
    # A sum beyond half the field wraps: it is off by the modulus, and nobody learns more.
    wrapped = at_once(lambda me: ends[me].sum(np.array([2**59])))
    assert [int(one[0]) for one in wrapped] == [3 * 2**59 - MODULUS] * 3


@pytest.mark.reference
def test_what_parties_tell_reaches_all(ends: list[SecureSums]) -> None:
    before = [one.traffic for one in ends]
    found = at_once(lambda me: ends[me].tell(np.array([me, 10 + me])))
    for one in found:
        assert one.tolist() == [[0, 10], [1, 11], [2, 12]]
    for one, was in zip(ends, before, strict=True):
        assert one.traffic.sent > was.sent
        assert one.traffic.received > was.received


@pytest.mark.reference
def test_parties_in_processes_release_one_map(ends: list[SecureSums], folder: Path) -> None:
    made = at_once(lambda me: plan_of(folder, me, budget=3).run(sums=nullcontext(ends[me])))
    assert counts_of(made[0]) == counts_of(made[1]) == counts_of(made[2])
    assert charged(folder) == [1, 1, 1]
    assert len({one.session for one in made}) == 1
    # Shares of 8 bytes to two others, and of the sum to one: each count is sent thrice, with headers.
    assert all(one.traffic.sent >= 3 * 8 * one.counts for one in made)


@pytest.mark.fault
def test_a_killed_process_stops_the_others(ends: list[SecureSums], folder: Path) -> None:
    """The last test here: the session is over after it."""

    def party(me: int) -> str:
        if me == 1:
            child = ends[1]._child
            assert child is not None
            os.kill(child.pid, signal.SIGKILL)
            child.wait()
        try:
            plan_of(folder, me, budget=3).run(sums=nullcontext(ends[me]))
        except SessionStopped as problem:
            return str(problem)
        return "went on"

    said = at_once(party)
    assert said[0] == said[2] == "uri stopped; nothing was charged"
    assert said[1].startswith("the process that adds up has ended")
    for one in (ends[0], ends[2]):
        one._child.wait(WAIT)  # type: ignore[union-attr]
        assert one._last_words() == "", "the process that adds up ended in a mistake"
    assert charged(folder) == [1, 1, 1], "a party was charged for nothing"


@pytest.mark.fault
def test_who_has_another_certificate_is_refused(folder: Path, tmp_path: Path) -> None:
    """Somebody else answers where a party should: its certificate is its own, and of the same name."""
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    false = tmp_path / "false"
    make_certificates(false / "certificates", NAMES)
    shutil.copy(folder / "parties.toml", false)
    stranger = SecureSums(read_parties(false / "parties.toml"), 1, timeout=WAIT)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(stranger.__enter__)
        with (
            pytest.raises(SessionStopped, match="has no certificate of uri"),
            SecureSums(read_parties(folder / "parties.toml"), 0, timeout=WAIT),
        ):
            pass
        assert stranger._child is not None
        stranger._child.kill()
        with pytest.raises(SessionStopped):
            waiting.result()


class Transport:
    """A connection with somebody who has a certificate of a name."""

    def __init__(self, name: str) -> None:
        self.name, self.aborted, self.lines = name, False, b""

    def get_extra_info(self, what: str) -> Any:
        assert what == "ssl_object"
        return SimpleNamespace(getpeercert=lambda binary_form: self.name.encode() * binary_form)

    def abort(self) -> None:
        self.aborted = True


class Inner:
    """MPyC's own connection, as far as it is asked."""

    def __init__(self, mpc: Any, peer: int | None) -> None:
        self.mpc, self.peer_pid, self.bytes = mpc, peer, bytearray()
        self.buffers: dict[int, Any] = {}
        self.transport, self.nbytes_sent = None, 0

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.peer_pid = int.from_bytes(data[:2], "little")
        self.mpc.parties[self.peer_pid].protocol = self


def exchange(peer: int | None) -> tuple[Exchange, Any]:
    mpc = SimpleNamespace(pid=2, parties=[SimpleNamespace(protocol=None) for _ in NAMES])
    # A certificate is known by its bytes, here those of a name.
    prints = [{"fingerprint": hashlib.sha256(name.encode()).hexdigest()} for name in NAMES]
    config = {"parties": prints}
    child: Any = SimpleNamespace(mpc=mpc, exchanger=Inner, names=list(NAMES), config=config)
    return Exchange(child, peer), mpc


@pytest.mark.unit
@pytest.mark.parametrize(
    ("peer", "name", "said", "kept"),
    [
        (None, "ticino", 0, True),
        (None, "uri", 0, False),
        (None, "stranger", 0, False),
        (0, "uri", None, False),
    ],
)
def test_each_end_is_held_to_its_very_certificate(
    peer: int | None, name: str, said: int | None, kept: bool
) -> None:
    made, mpc = exchange(peer)
    transport = Transport(name)
    made.connection_made(transport)
    if said is not None and not transport.aborted:
        made.data_received(said.to_bytes(2, "little"))
    assert transport.aborted is not kept
    assert (mpc.parties[0].protocol is made) is kept


@pytest.mark.unit
@pytest.mark.parametrize(
    ("last", "blamed"), [(None, 0), (1, 1), (2, 0)], ids=["none", "uri", "this one"]
)
def test_a_party_that_leaves_says_because_of_whom(last: int | None, blamed: int) -> None:
    """One party stops, a second leaves because of it: the third names the first, and never itself."""
    made, _ = exchange(0)
    stopped: list[Any] = []
    vars(made.child)["stop"] = stopped.append
    if last is not None:
        made.inner.buffers[GOODBYE] = last.to_bytes(2, "little")
    made.connection_lost(None)
    assert not stopped, "nothing was expected of it any more"
    made.inner.receive = lambda _: None
    made.receive(5)
    assert [one.party for one in stopped] == [blamed]


@pytest.mark.unit
def test_a_file_of_two_certificates_or_of_an_authority_is_none_of_a_party(
    folder: Path, tmp_path: Path
) -> None:
    """What TLS takes from such a file would speak for a second party."""
    own, other = (folder / "certificates" / f"{name}.crt" for name in ("uri", "vaud"))
    two = tmp_path / "uri.crt"
    two.write_bytes(own.read_bytes() + other.read_bytes())
    with pytest.raises(InvalidInput, match="is no certificate that can be read"):
        fingerprint(two, "uri")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "uri")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("uri")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    two.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    with pytest.raises(InvalidInput, match="can sign other certificates"):
        fingerprint(two, "uri")


@pytest.mark.unit
def test_nothing_is_unpickled() -> None:
    """Sums go on in processes whose MPyC has this in the place of pickle, as the tests above do."""
    with pytest.raises(Stopped, match="no bytes of the field"):
        NoPickle().loads(b"")
    source = Path(_secure_sum_child.__file__).read_text()
    assert "mpyc.runtime.pickle = NoPickle()" in source
    assert "mpc.options.no_prss and mpc.options.mix32_64bit" in source


@pytest.mark.unit
def test_mpyc_is_an_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingPackage, match=r"pip install 'sfumato\[joint\]'"):
        plan_of(folder, 0, budget=3).run()

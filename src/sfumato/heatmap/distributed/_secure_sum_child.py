"""The process that adds up between parties, by MPyC, which reads the command line when it is imported.

It is started as a script, and speaks with its parent over pipes: a line of JSON, then as many integers of
64 bits as the line says. It is never imported by the package. What reaches it has its noise already.

MPyC shares inputs by Shamir's scheme and opens sums of them. Connections are made here, so that each
end is held to its very certificate, and a wait has an end. Shares travel as bytes of the field: nothing
that a peer sends is unpickled, and MPyC has no pickle here that could.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import signal
import ssl
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

if TYPE_CHECKING:
    from sfumato._types import IntArray

GOODBYE = 2**62
"""The label of the last message to a peer: which party it stopped for."""
AGAIN = 0.1
"""Seconds between two attempts to connect."""


class Stopped(Exception):
    """The computation ends: `party` is the number of who stopped it, or -1."""

    def __init__(self, message: str, party: int = -1) -> None:
        super().__init__(message)
        self.party = party


class NoPickle:
    """What stands where MPyC has pickle: whoever reads one of these runs what its sender wrote."""

    def __getattr__(self, name: str) -> Any:
        raise Stopped(f"a message that is no bytes of the field ({name})")


class Exchange(asyncio.Protocol):
    """MPyC's connection with one peer, held to the certificate of its other end.

    It stands where MPyC's own would, and hands messages on to it.
    """

    def __init__(self, child: Child, peer: int | None = None) -> None:
        self.child, self.mpc = child, child.mpc
        self.inner = child.exchanger(child.mpc, peer)
        self.received, self.lost, self.allowed = 0, False, -1

    @property
    def peer(self) -> int | None:
        """The number of the other end, as soon as it is known."""
        found: int | None = self.inner.peer_pid
        return found

    @property
    def nbytes_sent(self) -> int:
        """As MPyC counts them, before TLS."""
        return int(self.inner.nbytes_sent)

    def connection_made(self, transport: Any) -> None:
        """Whose certificate it is, before a byte is believed."""
        certificate = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        # By its own bytes: what another certificate signs, or says of its name, counts for nothing.
        print_ = hashlib.sha256(certificate or b"").hexdigest()
        prints = [one["fingerprint"] for one in self.child.config["parties"]]
        self.allowed = prints.index(print_) if print_ in prints else -1
        self.inner.transport = transport
        if self.allowed < 0 or self.peer not in (None, self.allowed):
            transport.abort()
            return
        self.inner.connection_made(transport)
        self._stand_in()

    def data_received(self, data: bytes) -> None:
        """Messages; the first of one who connects says its number, which must be its certificate's."""
        self.received += len(data)
        if self.peer is None:
            said = (bytes(self.inner.bytes) + data)[:2]
            if len(said) == 2:
                number = int.from_bytes(said, "little")
                if number != self.allowed or self.mpc.parties[number].protocol is not None:
                    self.inner.transport.abort()
                    return
        self.inner.data_received(data)
        self._stand_in()

    def _stand_in(self) -> None:
        if self.peer is not None and self.mpc.parties[self.peer].protocol is self.inner:
            self.mpc.parties[self.peer].protocol = self

    def send(self, pc: int, payload: bytes) -> None:
        """A message to the peer."""
        self.inner.send(pc, payload)

    def close(self) -> None:
        """End the connection, when what was written is gone."""
        self.inner.transport.close()

    def receive(self, pc: int) -> Any:
        """What the peer sent, or a promise of it; none where it is gone."""
        if self.lost and pc not in self.inner.buffers:
            self.blame()
        return self.inner.receive(pc)

    def connection_lost(self, exc: BaseException | None) -> None:  # noqa: ARG002 - asyncio's
        """The peer is gone: whatever still waits for it ends."""
        self.lost = True
        if any(isinstance(one, asyncio.Future) for one in self.inner.buffers.values()):
            self.blame()

    def blame(self) -> None:
        """End, and say who is to blame: the peer, or whom it named in its last message."""
        if self.peer is None:
            return
        said = self.inner.buffers.get(GOODBYE)
        named = int.from_bytes(said, "little") if isinstance(said, bytes) else self.peer
        known = named < len(self.child.names) and named != self.mpc.pid
        self.child.stop(Stopped("lost", named if known else self.peer))


class Child:
    """One party of the computation."""

    def __init__(
        self, mpc: Any, exchanger: Any, config: dict[str, Any], say: Callable[..., None]
    ) -> None:
        self.mpc, self.exchanger, self.config, self.say = mpc, exchanger, config, say
        self.names: list[str] = [one["name"] for one in config["parties"]]
        self.field = mpc.SecFld(modulus=config["modulus"])
        self.broken: asyncio.Future[None] = mpc._loop.create_future()

    def stop(self, why: Stopped) -> None:
        """End what is going on."""
        if not self.broken.done():
            self.broken.set_exception(why)

    def exchanges(self) -> list[Exchange]:
        """The connections there are."""
        return [
            one.protocol
            for one in self.mpc.parties
            if one.pid != self.mpc.pid and isinstance(one.protocol, Exchange)
        ]

    async def within(self, work: Any) -> Any:
        """What comes of it, unless a party is lost or the time is up."""
        task = asyncio.ensure_future(work)
        done, _ = await asyncio.wait(
            {task, self.broken},
            timeout=self.config["timeout"],
            return_when=asyncio.FIRST_COMPLETED,
        )
        if task in done:
            return task.result()
        task.cancel()
        if self.broken in done:
            self.broken.result()
        raise Stopped("late")

    def missing(self) -> list[int]:
        """The parties that are not connected."""
        return [
            one.pid for one in self.mpc.parties if one.pid != self.mpc.pid and one.protocol is None
        ]

    async def connect(self) -> None:
        """Connections with all parties: to those after this one, from those before."""
        loop, me = self.mpc._loop, self.mpc.pid
        for one in self.mpc.parties:
            one.protocol = loop.create_future() if one.pid == me else None
        server = None
        if me:
            host, port = self.config["listen"]
            try:
                server = await loop.create_server(
                    partial(Exchange, self), host, port, ssl=self._context(server=True)
                )
            except OSError as problem:
                raise Stopped(f"cannot listen: {problem}", me) from problem
        self.say(waiting=self.missing())
        for at in range(me + 1, len(self.names)):
            await self._connect_to(at)
            self.say(waiting=self.missing())
        while self.missing():
            before = self.missing()
            await asyncio.sleep(AGAIN / 2)
            if self.missing() != before:
                self.say(waiting=self.missing())
        if server is not None:
            server.close()

    async def _connect_to(self, at: int) -> None:
        peer, context = self.config["parties"][at], self._context(server=False)
        while True:
            try:
                _, made = await self.mpc._loop.create_connection(
                    partial(Exchange, self, at),
                    peer["host"],
                    peer["port"],
                    ssl=context,
                    server_hostname=peer["name"],
                )
            except ssl.SSLCertVerificationError as problem:
                raise Stopped(f"certificate: {problem.verify_message}", at) from problem
            except OSError:
                await asyncio.sleep(AGAIN)
                continue
            if made.allowed == at:
                return
            raise Stopped("certificate: it is of another party", at)

    def _context(self, *, server: bool) -> ssl.SSLContext:
        found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
        found.minimum_version = ssl.TLSVersion.TLSv1_3
        found.load_cert_chain(self.config["certificate"], self.config["key"])
        for one in self.config["parties"]:
            found.load_verify_locations(one["certificate"])
        found.verify_mode = ssl.CERT_REQUIRED
        return found

    async def tell(self, values: IntArray) -> IntArray:
        """What each party tells all: inputs that are opened one by one."""
        shared = self.mpc.input(self._array(values))
        return np.concatenate([_integers(await self.mpc.output(one)) for one in shared])

    async def sum(self, values: IntArray) -> IntArray:
        """The sum of all parties' values, and nothing else, opened to all."""
        first, *others = self.mpc.input(self._array(values))
        total = first
        for one in others:
            total = total + one
        return _integers(await self.mpc.output(total))

    def _array(self, values: IntArray) -> Any:
        return self.field.array(values.astype(object))

    def traffic(self) -> dict[str, int]:
        """Bytes so far, before TLS."""
        return {
            "sent": sum(one.nbytes_sent for one in self.exchanges()),
            "received": sum(one.received for one in self.exchanges()),
        }

    async def leave(self, because: int) -> None:
        """Say goodbye, and wait until what was written is gone."""
        for one in self.exchanges():
            if not one.lost:
                one.send(GOODBYE, because.to_bytes(2, "little"))
                one.close()
        for _ in range(100):
            if all(one.lost for one in self.exchanges()):
                return
            await asyncio.sleep(0.01)


def _integers(found: Any) -> IntArray:
    return np.array([int(one) for one in np.asarray(found.value).ravel()], dtype=np.int64)


async def serve(child: Child, pipe: BinaryIO) -> None:
    """Do what the parent asks for until it closes the pipe."""
    say, loop = child.say, asyncio.get_running_loop()
    because = child.mpc.pid
    try:
        while True:
            line = await loop.run_in_executor(None, pipe.readline)
            if not line:
                break
            asked = json.loads(line)
            count = asked.get("count", 0)
            data = await loop.run_in_executor(None, pipe.read, 8 * count)
            values = np.frombuffer(data, dtype=np.int64)
            match asked["do"]:
                case "connect":
                    await child.within(child.connect())
                    say(done=True)
                case "tell":
                    say(await child.within(child.tell(values)), done=True, **child.traffic())
                case "sum":
                    say(await child.within(child.sum(values)), done=True, **child.traffic())
                case _:
                    break
    except Stopped as why:
        late = str(why) == "late" and child.missing()
        because = why.party if why.party >= 0 else because
        say(stopped=str(why), party=why.party, missing=child.missing() if late else [])
    finally:
        await child.leave(because)


def main() -> None:
    """Standard output is the parent's; whatever else is printed goes to standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it too, and says goodbye
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def say(values: IntArray | None = None, **told: Any) -> None:
        count = 0 if values is None else values.size
        out.write(json.dumps({**told, "count": count}).encode() + b"\n")
        if values is not None:
            out.write(values.tobytes())
        out.flush()

    pipe = sys.stdin.buffer
    config = json.loads(pipe.readline())
    me, many = config["me"], len(config["parties"])
    # No keys for pseudorandom sharing, which sums do not need; bytes of the field, and no pickles.
    sys.argv = [sys.argv[0], f"-M{many}", f"-I{me}", "--no-prss", "--mix32-64bit"]
    logging.disable(logging.INFO)
    import mpyc.runtime
    from mpyc.asyncoro import MessageExchanger

    mpc = mpyc.runtime.mpc
    mpyc.runtime.pickle = NoPickle()
    try:
        if not (mpc.options.no_prss and mpc.options.mix32_64bit):
            raise RuntimeError("this MPyC does not send plain bytes")
        mpc._loop.run_until_complete(serve(Child(mpc, MessageExchanger, config, say), pipe))
    except BrokenPipeError:
        pass
    except Exception as problem:  # the parent must hear of it, whatever it was
        say(stopped=f"{type(problem).__name__}: {problem}", party=me, missing=[])
    out.close()
    os._exit(0)  # a thread may still wait for the pipe


if __name__ == "__main__":
    main()

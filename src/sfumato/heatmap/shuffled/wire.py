"""One question and one answer a connection: a line of JSON, and bytes."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

from sfumato.errors import InvalidParameter, SessionStopped

MOST_HEADER = 2**12
POLL_SECONDS, RETRY_SECONDS = 20.0, 5.0
"""How long the shuffler holds a question for the next round back, and who is sent away waits."""
_CHUNK = 2**20


def parse_address(address: str) -> tuple[str, int]:
    """Host and port of an address.

    Args:
        address: HOST:PORT; an IPv6 host has brackets.

    Returns:
        The host without brackets, and the port.

    Raises:
        InvalidParameter: It is none.

    """
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and int(port) < 2**16):
        raise InvalidParameter(f"an address is HOST:PORT, got {address!r}; nothing was sent")
    return host.strip("[]"), int(port)


def frame(header: dict[str, Any], body: bytes = b"") -> bytes:
    """A header that says how many bytes follow, and these."""
    return json.dumps({**header, "size": len(body)}).encode() + b"\n" + body


def ask(
    address: tuple[str, int], header: dict[str, Any], body: bytes = b"", *, timeout: float
) -> tuple[dict[str, Any], bytes]:
    """Ask the shuffler something; SessionStopped where it does not answer or refuses."""
    try:
        with (
            socket.create_connection(address, timeout=timeout) as connection,
            connection.makefile("rb") as answer,
        ):
            connection.sendall(frame(header, body))
            told = json.loads(answer.readline(MOST_HEADER))
            found = answer.read(int(told["size"]))
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise SessionStopped(
            f"the shuffler at {address[0]}:{address[1]} does not answer ({type(problem).__name__})"
        ) from problem
    if "refused" in told:
        raise SessionStopped(f"the shuffler refuses: {told['refused']}")
    if len(found) != told["size"]:
        raise SessionStopped("the shuffler broke off in the middle of an answer")
    return told, found


async def read_header(reader: asyncio.StreamReader, *, timeout: float) -> dict[str, Any]:
    """The header of a question; ValueError where it is none."""
    line = await asyncio.wait_for(reader.readline(), timeout)
    told = json.loads(line[:MOST_HEADER])
    if not isinstance(told, dict) or type(told.get("size")) is not int or told["size"] < 0:
        raise ValueError("no header")
    return told


async def write_frame(
    writer: asyncio.StreamWriter, header: dict[str, Any], body: bytes | bytearray
) -> None:
    """An answer, in pieces: bodies are large."""
    writer.write(json.dumps({**header, "size": len(body)}).encode() + b"\n")
    for at in range(0, len(body), _CHUNK):
        writer.write(body[at : at + _CHUNK])
        await writer.drain()
    await writer.drain()

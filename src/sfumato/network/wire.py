"""The packet of a sensor: noisy readings, their lattice, what they cost and two codes, in a few bytes.

docs/reference/wire.md is the contract, byte by byte; contracts/wire-v1.json has known answers. Every
field has a fixed width but the device's name, which is public: the size of a packet says nothing of
what was read. All numbers are big endian.

Long because bytes, codes and rules are one contract, which is read as a whole.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import struct
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from sfumato.errors import InvalidInput, InvalidParameter

VERSION = 1
MAGIC = b"SF"
MAX_DEVICE_BYTES = 64
MAX_READINGS = 1024
CODE_BYTES = 16
MAX_BYTES = 147 + MAX_DEVICE_BYTES + 10 * MAX_READINGS
"""No packet is longer: a receiver drops more before it looks at it."""

MAX_LOSS = 1e6
MIN_DELTA = 1e-300
"""What lies beyond them promises nothing, and no accounting can add it up."""

LawName = Literal["rounded-gaussian", "gaussian", "laplace"]
LossKind = Literal["epsilon", "rho"]
Status = Literal["read", "held", "none"]

_HEAD = struct.Struct(">2sBB8s16s12sIQIBBhdBB2xII4dB")
_COUNT = struct.Struct(">H")
_READING = struct.Struct(">Hq")
_LAWS: dict[int, LawName] = {1: "rounded-gaussian", 2: "gaussian", 3: "laplace"}
_LOSSES: dict[int, LossKind] = {1: "epsilon", 2: "rho"}
_STATUSES: dict[int, Status] = {0: "read", 1: "held", 2: "none"}
_REHEARSAL = 1
_DIGITS = frozenset("0123456789abcdef")
_MAX_ROUND = 253402300799999  # the last millisecond of the year 9999
_MAX_MINUTE = _MAX_ROUND // 60000


@dataclass(frozen=True, slots=True)
class WireLoss:
    """A loss as packets state it: epsilon and delta, or rho with delta 0; both doubles.

    A cost is rounded up, what is left is rounded down.
    """

    kind: LossKind
    amount: float
    delta: float = 0.0


@dataclass(frozen=True, slots=True)
class WireWindow:
    """The window of time whose budget paid: when it began and how long it is, in minutes."""

    start: int
    length: int

    @property
    def began(self) -> datetime:
        """When it began, in UTC."""
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(minutes=self.start)


@dataclass(frozen=True, slots=True)
class Packet:
    """One round of a device: what it sends, and nothing that a collector may not know.

    Attributes:
        key_id: The public id of the master key, 16 hexadecimal digits.
        device: The name of the device, as its key file has it.
        site: The first 32 hexadecimal digits of the site's digest.
        epoch: Which run of the device's stream the noise is of: 12 bytes, of which 4 are the step.
        first: The number of its first draw; the noise of reading j is draw first + j.
        round_ms: The round that it belongs to, in milliseconds since 1970, UTC.
        period_ms: How far apart the rounds of this device are.
        law: The law of the noise.
        sigma: Its parameter, in lattice units: of a Laplace law its scale.
        exponent: Readings are whole multiples of 2**exponent of the unit of the site's operator.
        cost: What this round cost, for all sensors of the site together.
        left: What is left in the window after it.
        window: The window whose budget paid; None for one budget for all time.
        sensors: Places of the sensors in the site's list, the first is 0.
        values: Their noisy readings in lattice units.
        masked_status: Whether it was read or is a dummy, masked: `status_of` tells the key holder.
        rehearsal: Whether it protects nobody.
        code: For the key holder: nobody without the device's key can make it.
        check: For the collector, by the check key of the device.
    """

    key_id: str
    device: str
    site: str
    epoch: bytes
    first: int
    round_ms: int
    period_ms: int
    law: LawName
    sigma: float
    exponent: int
    cost: WireLoss
    left: WireLoss
    window: WireWindow | None
    sensors: tuple[int, ...]
    values: tuple[int, ...]
    masked_status: int = 0
    rehearsal: bool = False
    code: bytes = bytes(CODE_BYTES)
    check: bytes = bytes(CODE_BYTES)

    def __post_init__(self) -> None:
        _check(self)

    @property
    def step(self) -> int:
        """The start of the device that sealed it: the first four bytes of the epoch."""
        return int.from_bytes(self.epoch[:4], "big")

    @property
    def moment(self) -> datetime:
        """The round's time, in UTC."""
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=self.round_ms)

    @property
    def deviation(self) -> float:
        """The deviation of the noise, in the unit of the site's operator."""
        return _deviation(self.law, self.sigma, self.exponent)

    def numbers(self) -> tuple[float, ...]:
        """The noisy readings in the unit of the site's operator."""
        return tuple(math.ldexp(value, self.exponent) for value in self.values)

    def to_json(self) -> dict[str, Any]:
        """The packet in words, and whole under `payload`, as hexadecimal digits."""
        said = asdict(self) | {"epoch": self.epoch.hex(), "step": self.step}
        for name in ("masked_status", "code", "check"):
            del said[name]
        return said | {
            "time": self.moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "payload": encode(self).hex(),
        }

    @staticmethod
    def from_json(data: Any) -> Packet:
        """The packet under `payload`; what stands beside it is not read."""
        try:
            payload = bytes.fromhex(data["payload"])
        except (KeyError, TypeError, ValueError):
            raise InvalidInput(
                "a line of packets has the packet under payload, in hexadecimal digits; it was not read"
            ) from None
        return decode(payload)


def encode(packet: Packet) -> bytes:
    """The bytes that are sent.

    Args:
        packet: The packet, with its codes.

    Returns:
        The payload of one message; its length follows from the device's name and the number of sensors.
    """
    window = packet.window or WireWindow(0, 0)
    name = packet.device.encode()
    head = _HEAD.pack(
        MAGIC,
        VERSION,
        _REHEARSAL if packet.rehearsal else 0,
        bytes.fromhex(packet.key_id),
        bytes.fromhex(packet.site),
        packet.epoch,
        packet.first,
        packet.round_ms,
        packet.period_ms,
        _number(_LAWS, packet.law),
        packet.masked_status,
        packet.exponent,
        packet.sigma,
        _number(_LOSSES, packet.cost.kind),
        _number(_LOSSES, packet.left.kind),
        window.start,
        window.length,
        packet.cost.amount,
        packet.cost.delta,
        packet.left.amount,
        packet.left.delta,
        len(name),
    )
    readings = b"".join(
        _READING.pack(sensor, value)
        for sensor, value in zip(packet.sensors, packet.values, strict=True)
    )
    count = _COUNT.pack(len(packet.values))
    return head + name + count + readings + packet.code + packet.check


def decode(payload: bytes) -> Packet:
    """The packet that some bytes are; whatever is no packet of this version is refused.

    Args:
        payload: What came; anybody may have sent it.

    Returns:
        The packet. That its form is right says nothing of who sent it: `is_checked` does.

    Raises:
        InvalidInput: It is not a whole packet; the message says which rule it breaks and quotes nothing.
    """
    if len(payload) > MAX_BYTES or len(payload) < _HEAD.size + _COUNT.size + 2 * CODE_BYTES:
        raise _refused(f"it has {len(payload)} bytes")
    (
        magic, version, flags, key_id, site, epoch, first, round_ms, period_ms, law, status, exponent,
        sigma, cost_kind, left_kind, start, length, *losses, name_length,
    ) = _HEAD.unpack_from(payload)  # fmt: skip
    if magic != MAGIC or version != VERSION:
        raise _refused(f"it does not begin with {MAGIC.decode()} and version {VERSION}")
    if flags & ~_REHEARSAL or payload[70:72] != b"\0\0" or (start and not length):
        raise _refused("what is reserved is not 0")
    if law not in _LAWS or cost_kind not in _LOSSES or left_kind not in _LOSSES:
        raise _refused("its law or its loss is unknown")
    at = _HEAD.size + name_length
    if len(payload) < at + _COUNT.size:
        raise _refused("it ends within a field")
    (count,) = _COUNT.unpack_from(payload, at)
    end = at + _COUNT.size + count * _READING.size
    if len(payload) != end + 2 * CODE_BYTES:
        raise _refused("its length is not that of its readings")
    read = tuple(_READING.iter_unpack(payload[at + _COUNT.size : end]))
    try:
        return Packet(
            key_id.hex(),
            payload[_HEAD.size : at].decode(),
            site.hex(),
            epoch,
            first,
            round_ms,
            period_ms,
            _LAWS[law],
            sigma,
            exponent,
            WireLoss(_LOSSES[cost_kind], losses[0], losses[1]),
            WireLoss(_LOSSES[left_kind], losses[2], losses[3]),
            WireWindow(start, length) if length else None,
            tuple(sensor for sensor, _ in read),
            tuple(value for _, value in read),
            status,
            bool(flags & _REHEARSAL),
            payload[end : end + CODE_BYTES],
            payload[end + CODE_BYTES :],
        )
    except UnicodeDecodeError:
        raise _refused("its device has no name in UTF-8") from None
    except InvalidParameter as problem:
        raise _refused(str(problem)) from None


def sealed(
    packet: Packet, sign: Callable[[bytes], str], *, check_key: bytes, status: Status
) -> Packet:
    """The packet with its status masked and both codes, as a device sends it.

    Args:
        packet: The packet; its codes and its masked status are replaced.
        sign: HMAC-SHA256 under the code key of the packet's step, in hexadecimal digits: `Device.sign`.
        check_key: The check key of the device.
        status: Whether the values were read, are the last ones held, or there were none.

    Returns:
        The packet to send.
    """
    masked = _number(_STATUSES, status) ^ bytes.fromhex(sign(_mask_message(packet)))[0]
    blank = replace(packet, masked_status=masked)
    code = bytes.fromhex(sign(_code_message(encode(blank))))[:CODE_BYTES]
    coded = replace(blank, code=code)
    return replace(coded, check=_check_code(encode(coded), check_key))


def is_checked(packet: Packet, check_key: bytes) -> bool:
    """Whether a packet was made by who holds a device's check key, and is as it was sent.

    Args:
        packet: A decoded packet.
        check_key: The check key of the device that it names.

    Returns:
        True if its check code is right.
    """
    return hmac.compare_digest(_check_code(encode(packet), check_key), packet.check)


def is_signed(packet: Packet, sign: Callable[[bytes], str]) -> bool:
    """Whether a packet was sealed by the device itself: for the key holder, who can compute its code.

    Args:
        packet: A decoded packet.
        sign: HMAC-SHA256 under the code key of the packet's step, in hexadecimal digits.

    Returns:
        True if its code is right.
    """
    right = bytes.fromhex(sign(_code_message(encode(packet))))[:CODE_BYTES]
    return hmac.compare_digest(right, packet.code)


def status_of(packet: Packet, sign: Callable[[bytes], str]) -> Status:
    """Whether a packet was read or is a dummy: for the key holder.

    Args:
        packet: A packet that `is_signed`.
        sign: HMAC-SHA256 under the code key of the packet's step, in hexadecimal digits.

    Returns:
        "read", "held" (the last reading once more) or "none" (there was none to hold).

    Raises:
        InvalidInput: It is none of them.
    """
    number = packet.masked_status ^ bytes.fromhex(sign(_mask_message(packet)))[0]
    if number not in _STATUSES:
        raise InvalidInput("the status of a packet is unknown; nothing was unsealed")
    return _STATUSES[number]


def _mask_message(packet: Packet) -> bytes:
    return b"sfumato.wire.v1|status|" + packet.epoch + packet.first.to_bytes(4, "big")


def _code_message(payload: bytes) -> bytes:
    return b"sfumato.wire.v1|code|" + payload[: -2 * CODE_BYTES]


def _check_code(payload: bytes, key: bytes) -> bytes:
    message = b"sfumato.wire.v1|check|" + payload[:-CODE_BYTES]
    return hmac.digest(key, message, hashlib.sha256)[:CODE_BYTES]


def _check(packet: Packet) -> None:
    """Refuse what no device sends; values are not quoted."""
    name = packet.device.encode(errors="replace")
    rules = {
        "a key id has 16 hexadecimal digits": _is_hex(packet.key_id, 8),
        "a site has 32 hexadecimal digits": _is_hex(packet.site, 16),
        "an epoch has 12 bytes": len(packet.epoch) == 12,
        "a device's name is printable and has 1 to 64 bytes": (
            packet.device.isprintable() and 0 < len(name) <= MAX_DEVICE_BYTES
        ),
        "a first draw lies in 0..2**32 - 1": 0 <= packet.first < 2**32,
        "a round lies in 1970..9999": 0 <= packet.round_ms <= _MAX_ROUND,
        "a period has 1 ms or more": 0 < packet.period_ms < 2**32,
        "sigma is a finite number above 0": 0 < packet.sigma < math.inf,
        "an exponent lies in -1100..400": -1100 <= packet.exponent <= 400,
        "a deviation lies in 1e-150..1e150": _is_deviation(
            packet.law, packet.sigma, packet.exponent
        ),
        "a loss lies in 0..1e6, a delta is 0 or 1e-300..1": (
            _is_loss(packet.cost) and _is_loss(packet.left)
        ),
        "a window lies in 1970..9999": packet.window is None or _is_window(packet.window),
        "there are 1 to 1024 readings of different sensors": (
            0 < len(packet.sensors) <= MAX_READINGS
            and len(set(packet.sensors)) == len(packet.sensors) == len(packet.values)
            and min(packet.sensors) >= 0
            and max(packet.sensors) < 2**16
        ),
        "a reading lies within 2**62 lattice units": all(
            abs(one) <= 2**62 for one in packet.values
        ),
        "a status is one byte": 0 <= packet.masked_status < 256,
        "codes have 16 bytes": len(packet.code) == len(packet.check) == CODE_BYTES,
    }
    for rule, holds in rules.items():
        if not holds:
            raise InvalidParameter(f"{rule}, this packet's does not; nothing was sent or taken")


def _deviation(law: LawName, sigma: float, exponent: int) -> float:
    """Of a discrete Laplace law of scale t it is sqrt(2 q) / (1 - q), q = exp(-1 / t)."""
    wide = math.sqrt(0.5) / math.sinh(0.5 / sigma) if law == "laplace" else sigma
    return math.ldexp(wide, exponent)


def _is_deviation(law: LawName, sigma: float, exponent: int) -> bool:
    try:
        return 1e-150 <= _deviation(law, sigma, exponent) <= 1e150  # its square is a number too
    except (OverflowError, ZeroDivisionError):
        return False


def _is_hex(text: str, size: int) -> bool:
    return len(text) == 2 * size and _DIGITS.issuperset(text)


def _is_loss(loss: WireLoss) -> bool:
    return (
        0 <= loss.amount <= MAX_LOSS
        and (loss.delta == 0 or MIN_DELTA <= loss.delta < 1)
        and (loss.kind != "rho" or not loss.delta)
    )


def _is_window(window: WireWindow) -> bool:
    return 0 <= window.start <= _MAX_MINUTE and 0 < window.length < 2**32


def _number(names: dict[int, Any], name: str) -> int:
    return next(number for number, one in names.items() if one == name)


def _refused(why: str) -> InvalidInput:
    return InvalidInput(f"not a packet of version {VERSION}: {why}")

"""The wire format: what is sent is what is read, its size says nothing, and what is no packet is refused."""

from __future__ import annotations

import random
import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.network import (
    MAX_BYTES,
    Packet,
    WireLoss,
    WireWindow,
    decode,
    device_of,
    encode,
    is_checked,
    is_signed,
    readings_topic,
    sealed,
    status_of,
)
from sfumato.network.wire import Status
from sfumato.sensing.release.keys import mac

CHECK = bytes(range(32, 64))
CODE = bytes(range(64, 96))
PLAIN = Packet(
    key_id="7d7683c82dcb29a6",
    device="door",
    site="00112233445566778899aabbccddeeff",
    epoch=bytes([0, 0, 0, 3, *range(8)]),
    first=7,
    round_ms=1795000000000,
    period_ms=1000,
    law="gaussian",
    sigma=300.5,
    exponent=-12,
    cost=WireLoss("rho", 0.01),
    left=WireLoss("epsilon", 1.5, 1e-6),
    window=WireWindow(29916000, 1440),
    sensors=(0, 5),
    values=(-3, 2**48),
)


def sign(message: bytes) -> str:
    return mac(CODE, message)


def made(packet: Packet = PLAIN, status: Status = "read") -> Packet:
    return sealed(packet, sign, check_key=CHECK, status=status)


@pytest.mark.unit
def test_a_packet_comes_back_as_it_was_sent() -> None:
    packet = made()
    assert decode(encode(packet)) == packet
    assert Packet.from_json(packet.to_json()) == packet
    assert packet.step == 3
    assert packet.numbers() == (-3 / 4096, 2.0**36)
    assert packet.to_json()["time"] == "2026-11-18T11:06:40.000Z"


@given(
    values=st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=64),
    status=st.sampled_from(["read", "held", "none"]),
)
@pytest.mark.property
def test_its_size_depends_on_the_name_and_the_number_of_sensors_alone(
    values: list[int], status: Status
) -> None:
    one = made(replace(PLAIN, sensors=tuple(range(len(values))), values=tuple(values)), status)
    assert len(encode(one)) == 147 + len("door") + 10 * len(values)
    assert decode(encode(one)) == one


@pytest.mark.unit
def test_the_key_holder_alone_tells_a_dummy() -> None:
    for status in ("read", "held", "none"):
        assert status_of(made(status=status), sign) == status
    # To others the byte is as good as random: two packets of one status differ in it.
    masked = {made(replace(PLAIN, first=n)).masked_status for n in range(40)}
    assert len(masked) > 20


@pytest.mark.unit
def test_every_flipped_bit_is_noticed_by_collector_and_key_holder() -> None:
    packet = made()
    assert is_checked(packet, CHECK)
    assert is_signed(packet, sign)
    assert not is_checked(packet, CODE)
    payload = encode(packet)
    for at in range(8 * len(payload)):
        changed = bytearray(payload)
        changed[at // 8] ^= 1 << at % 8
        try:
            found = decode(bytes(changed))
        except InvalidInput:
            continue
        assert not is_checked(found, CHECK)
        # The check code itself is of no concern to the key holder.
        assert is_signed(found, sign) == (at // 8 >= len(payload) - 16)


@pytest.mark.unit
def test_who_holds_the_check_key_cannot_make_the_other_code() -> None:
    forged = sealed(
        replace(PLAIN, values=(0, 0)), lambda m: mac(CHECK, m), check_key=CHECK, status="read"
    )
    assert is_checked(forged, CHECK)
    assert not is_signed(forged, sign)


@pytest.mark.fault
def test_malformed_payloads_are_refused_and_nothing_else(key: bytes) -> None:
    chance, whole = random.Random(key), encode(made())  # noqa: S311 - noise for a fuzz, not for anybody
    accepted = 0
    for _ in range(20_000):
        kind = chance.randrange(4)
        if kind == 0:
            payload = chance.randbytes(chance.randrange(400))
        elif kind == 1:
            payload = whole[: chance.randrange(len(whole))]
        elif kind == 2:
            changed = bytearray(whole)
            for _ in range(chance.randrange(1, 5)):
                changed[chance.randrange(len(whole))] = chance.randrange(256)
            payload = bytes(changed)
        else:
            payload = whole + chance.randbytes(chance.randrange(1, 50))
        try:
            packet = decode(payload)
        except InvalidInput:
            continue
        assert encode(packet) == payload  # one spelling for each packet
        accepted += 1
    assert accepted  # a change within a number is a packet, if not one of the device's
    with pytest.raises(InvalidInput, match="bytes"):
        decode(bytes(MAX_BYTES + 1))


@pytest.mark.unit
@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("sigma", float("nan"), "sigma is a finite number above 0"),
        ("sigma", float("inf"), "sigma is a finite number above 0"),
        ("exponent", 401, "an exponent lies in"),
        ("exponent", -600, "a deviation lies in"),
        ("sigma", 1e300, "a deviation lies in"),
        ("cost", WireLoss("rho", -1.0), "a loss lies in"),
        ("cost", WireLoss("rho", 1.1e6), "a loss lies in"),
        ("left", WireLoss("epsilon", 1.0, 1e-301), "a loss lies in"),
        ("cost", WireLoss("rho", 1.0, 0.5), "a loss lies in"),
        ("sensors", (3, 3), "readings of different sensors"),
        ("device", "", "a device's name"),
        ("device", "a\n", "a device's name"),
        ("device", "ü" * 33, "a device's name"),
        ("epoch", bytes(11), "an epoch has 12 bytes"),
        ("values", (2**63, 0), "a reading lies within"),
        ("round_ms", 2**60, "a round lies in 1970..9999"),
        ("key_id", "7D7683c82dcb29a6", "a key id has 16"),
    ],
)
def test_what_no_device_sends_cannot_be_made(field: str, value: object, rule: str) -> None:
    with pytest.raises(InvalidParameter, match=rule):
        replace(PLAIN, **{field: value})  # type: ignore[arg-type]


@pytest.mark.unit
def test_what_a_packet_cannot_say_is_refused_when_it_comes() -> None:
    payload = bytearray(encode(made()))
    struct.pack_into(">d", payload, 60, float("nan"))
    with pytest.raises(InvalidInput, match="sigma is a finite number"):
        decode(bytes(payload))


@pytest.mark.unit
def test_topics_name_the_device() -> None:
    for device in ("door", "Tür 🚪", "a/b", "door~2", "+#$%"):
        topic = readings_topic("hall", device)
        assert topic.count("/") == 4
        assert not set("+#") & set(topic)
        assert device_of(topic) == device
    for other in ("sfumato/1/hall/%64oor/readings", "sfumato/1/hall//readings", "sfumato/1/a"):
        assert device_of(other) is None
    assert device_of("sfumato/1/hall/door/other") is None
    assert device_of("sfumato/2/hall/door/readings") is None

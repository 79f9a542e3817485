"""A packet encoder in MicroPython: keyed noise, a packet, and its codes, from docs/reference/wire.md.

It is not a whole sensor: whoever calls it must store the next step of the key and the epoch before the
first draw, count draws and rounds so that they are never used twice, also over a loss of power, and send no
more rounds in a window than the plan has. It refuses draws beyond the counters of one epoch.

Needs hashlib.sha256, and cryptolib.aes where there is one; else AES is computed here. The table of the
noise is a file that `sfumato sensor table` writes. Integers only: nothing here is a float but what a packet
says of sigma and of losses, which the caller packs into its head.
"""

import hashlib

try:
    from cryptolib import aes as _chip
except ImportError:
    _chip = None


def hmac(key, message):
    """HMAC-SHA256 of a key of at most 64 bytes."""
    key = key + bytes(64 - len(key))
    inner = hashlib.sha256(bytes(b ^ 0x36 for b in key) + message).digest()
    return hashlib.sha256(bytes(b ^ 0x5C for b in key) + inner).digest()


def hkdf(key, info):
    """HKDF-SHA256 without salt, 32 bytes."""
    return hmac(hmac(bytes(32), key), info.encode() + b"\x01")


class Aes:
    """AES-256, encryption of single blocks; the chip's own where there is one."""

    def __init__(self, key):
        """Expand the key."""
        self._own = None if _chip is None else _chip(key, 1)
        if self._own is None:
            self._box = _sbox()
            self._words = _expanded(key, self._box)

    def block(self, data):
        """Sixteen bytes, encrypted."""
        if self._own is not None:
            return self._own.encrypt(data)
        box, words = self._box, self._words
        s = [a ^ b for a, b in zip(data, words)]
        for r in range(1, 15):
            t = [box[s[(i + 4 * (i % 4)) % 16]] for i in range(16)]
            if r < 14:
                s = []
                for c in range(0, 16, 4):
                    for i in range(4):
                        a, b = t[c + i], t[c + (i + 1) % 4]
                        s.append(
                            _twice(a) ^ _twice(b) ^ b ^ t[c + (i + 2) % 4] ^ t[c + (i + 3) % 4]
                        )
            else:
                s = t
            s = [a ^ b for a, b in zip(s, words[16 * r : 16 * r + 16])]
        return bytes(s)


def _twice(a):
    return (a << 1 ^ (a >> 7) * 0x11B) & 0xFF


def _sbox():
    """By the powers of 3, which are all numbers of the field but 0."""
    power, log, x = [0] * 256, [0] * 256, 1
    for i in range(255):
        power[i], log[x] = x, i
        x ^= _twice(x)
    box = bytearray(256)
    for x in range(256):
        inverse = power[(255 - log[x]) % 255] if x else 0
        r = inverse
        for i in range(1, 5):
            r ^= (inverse << i | inverse >> (8 - i)) & 0xFF
        box[x] = r ^ 0x63
    return box


def _expanded(key, box):
    words, rc = bytearray(key), 1
    for i in range(32, 240, 4):
        t = words[i - 4 : i]
        if i % 32 == 0:
            t = bytearray((box[t[1]] ^ rc, box[t[2]], box[t[3]], box[t[0]]))
            rc = _twice(rc)
        elif i % 32 == 16:
            t = bytearray(box[b] for b in t)
        words += bytes(a ^ b for a, b in zip(t, words[i - 32 : i - 28]))
    return words


def _number(data):
    """Sixteen bytes as one number: some builds of MicroPython read no more than eight."""
    return int.from_bytes(data[:8], "big") << 64 | int.from_bytes(data[8:], "big")


class Table:
    """The thresholds of a law, and the multiplier of each block of a draw."""

    def __init__(self, data):
        """From the bytes of the file."""
        blocks = int.from_bytes(data[:4], "big")
        self.multipliers = [
            int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(blocks)
        ]
        at = 4 + 4 * blocks
        self.size = int.from_bytes(data[at : at + 4], "big")
        self._data, self._at = data, at + 4
        if len(data) != self._at + 16 * self.size:
            raise ValueError("not a whole table")

    def value(self, u):
        """How many thresholds are at or below u, by a search of fixed depth."""
        low, step = 0, 1
        while step <= self.size:
            step *= 2
        while step > 1:
            step //= 2
            at = low + step
            if at <= self.size:
                here = self._at + 16 * (at - 1)
                if _number(self._data[here : here + 16]) <= u:
                    low = at
        return low


def draw(cipher, table, epoch, n):
    """Draw number n of an epoch."""
    total, blocks = 0, len(table.multipliers)
    for i in range(blocks):
        block = _number(cipher.block(epoch + (n * blocks + i).to_bytes(4, "big")))
        value = table.value(block & ((1 << 127) - 1)) * table.multipliers[i]
        total += -value if block >> 127 else value
    return total


def unit_of(count, multiplier, shift, zero, limit):
    """The lattice unit of a whole count of a sensor; the four numbers are those of `sensor table`."""
    near = (count * multiplier - zero + (1 << (shift - 1))) >> shift
    return max(-limit, min(limit, near))


def packet(head, step_key, check_key, law, table, readings):
    """The bytes to send; `head` is the first 113 bytes and the name, the status in it not yet masked.

    `law` is LAW|NUMERATOR/DENOMINATOR, `readings` are pairs of a sensor's place and its lattice integer.
    """
    mac = hkdf(step_key, "sfumato.seal.v1|mac")
    cipher = Aes(hkdf(hkdf(step_key, "sfumato.seal.v1|noise"), "sfumato.noise.v1||" + law))
    epoch, first = head[28:40], int.from_bytes(head[40:44], "big")
    if (first + len(readings)) * len(table.multipliers) > 1 << 32:  # a block would come again
        raise ValueError("the draws of this epoch are used up")
    out = bytearray(head)
    out[57] ^= hmac(mac, b"sfumato.wire.v1|status|" + head[28:44])[0]
    out += len(readings).to_bytes(2, "big")
    for j, (sensor, unit) in enumerate(readings):
        value = (unit + draw(cipher, table, epoch, first + j)) & ((1 << 64) - 1)
        out += sensor.to_bytes(2, "big") + (value >> 32).to_bytes(4, "big")
        out += (value & 0xFFFFFFFF).to_bytes(4, "big")
    out += hmac(mac, b"sfumato.wire.v1|code|" + bytes(out))[:16]
    out += hmac(check_key, b"sfumato.wire.v1|check|" + bytes(out))[:16]
    return bytes(out)

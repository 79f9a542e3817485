"""A device and a receiver made from docs/reference/keyed-noise.md alone: nothing of the package is imported.

Only hashing, HMAC and AES come from libraries. What a code covers is read from the page itself, so
a page that leaves something out makes a device that is refused.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

PAGE = (Path(__file__).parents[2] / "docs/reference/keyed-noise.md").read_text(encoding="utf-8")
BITS = 384
CUT = 1 << 224
GUARD = 128  # bits below the last one, so that floors come out right


def expand(key: bytes, info: str) -> bytes:
    """HKDF-SHA256 without a salt, one block of output [rfc 5869]."""
    inner = hmac.new(bytes(32), key, hashlib.sha256).digest()
    return hmac.new(inner, info.encode("ascii") + b"\x01", hashlib.sha256).digest()


# --- noise


def e_to_minus(x: Fraction) -> int:
    """floor(2**384 e**-x): a Taylor series of x / 2**k, squared k times."""
    halvings = max(0, math.ceil(x)).bit_length() + 8
    bits = BITS + GUARD + 2 * halvings
    small = (x.numerator << bits) // (x.denominator << halvings)
    total, term, n = 1 << bits, 1 << bits, 0
    while term:
        n += 1
        term = term * small // (n << bits)
        total += -term if n % 2 else term
    for _ in range(halvings):
        total = total * total >> bits
    return total >> (bits - BITS)


class ErfTable(Sequence[int]):
    """The thresholds floor(2**127 erf((k + 1/2) / (sigma sqrt 2))), each computed when it is looked at.

    erf(x) = 2 / sqrt(pi) * sum of (-1)**n x**(2n + 1) / (n! (2n + 1)); terms reach e**(x**2), hence
    the bits. The table ends with the first that is at least 2**127 - 1.
    """

    def __init__(self, sigma: Fraction) -> None:
        self.sigma, self.bits = sigma, 127 + GUARD + 400
        # sqrt(2 / pi) = (2 / sqrt pi) / sqrt 2
        self.scale = math.isqrt((2 << 3 * self.bits) // pi(self.bits))
        self.length = 10**9
        self.length = bisect_left(self, 2**127 - 1) + 1

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, k: Any) -> Any:
        one, z = 1 << self.bits, (2 * k + 1) / (2 * self.sigma)
        if z > 14:  # 1 - erf is below e**(-z**2 / 2) < 2**-141
            return 2**127 - 1
        square = z.numerator**2 * one // (2 * z.denominator**2)
        power, total, n = one, 0, 0
        while power // (2 * n + 1):
            total += (-power if n % 2 else power) // (2 * n + 1)
            n += 1
            power = power * square // (n * one)
        return z.numerator * self.scale * total // (z.denominator * one) >> (self.bits - 127)


def pi(bits: int) -> int:
    """floor-ish 2**bits pi, by Machin's formula."""

    def arctan(inverse: int) -> int:
        term, total, n = (1 << (bits + 32)) // inverse, 0, 0
        while term:
            total += (-term if n % 2 else term) // (2 * n + 1)
            term //= inverse * inverse
            n += 1
        return total

    return (16 * arctan(5) - 4 * arctan(239)) >> 32


def table(weights: list[int]) -> list[int]:
    whole, so_far, found = sum(weights), 0, []
    for weight in weights[:-1]:
        so_far += weight
        found.append((so_far << 127) // whole)
    return found


def gaussian_tables(sigma: Fraction) -> tuple[list[Sequence[int]], list[int]]:
    """The tables and multipliers of the discrete Gaussian."""
    rest, factors = sigma**2 / 2048**2, []
    while rest > 1:
        k = min(256, math.isqrt(math.floor(rest)) + 1)
        factors.append(k)
        rest /= k**2
    spread = 1
    for k in reversed(factors):
        spread = 1 + k**2 * spread
    base = sigma**2 / spread
    p, c, x = e_to_minus(1 / (2 * base)), e_to_minus(1 / base), 1 << BITS
    weights = [x]
    while True:
        x, p = x * p >> BITS, p * c >> BITS
        if x < CUT:
            break
        weights.append(2 * x)
    one = table(weights)
    multipliers = [math.prod(factors[:i]) for i in range(len(factors) + 1)]
    return [one] * len(multipliers), multipliers


def draws(
    key: bytes, epoch: bytes, law: str, *, sigma: Fraction, first: int, size: int
) -> list[int]:
    """Draws first, first + 1, ... of one law, with an empty context."""
    up = float(sigma)
    sigma = Fraction(up if Fraction(up) >= sigma else math.nextafter(up, math.inf))
    if law == "gaussian":
        tables, multipliers = gaussian_tables(sigma)
    else:
        tables, multipliers = [ErfTable(sigma)], [1]
    name = f"sfumato.noise.v1||{law}|{sigma.numerator}/{sigma.denominator}"
    aes = Cipher(algorithms.AES256(expand(key, name)), modes.ECB()).encryptor()  # noqa: S305 - single blocks
    found = []
    for n in range(first, first + size):
        total = 0
        for i, (thresholds, multiplier) in enumerate(zip(tables, multipliers, strict=True)):
            block = int.from_bytes(
                aes.update(epoch + (n * len(tables) + i).to_bytes(4, "big")), "big"
            )
            value = bisect_right(thresholds, block % 2**127)  # how many are at or below it
            total += (-1 if block >> 127 else 1) * multiplier * value
        found.append(total)
    return found


# --- seals


def spelled(data: Any) -> str:
    """JSON with the page's one spelling: keys sorted, no spaces, ASCII."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def line_of_page(start: str) -> list[Any]:
    """The list of names on the page that begins so, e.g. what a code is over."""
    (line,) = re.findall(rf"^\[{start}.*\]$", PAGE, re.MULTILINE)
    return list(json.loads(re.sub(r"[A-Z_]+", lambda word: f'"{word[0]}"', line)))


def filled(names: list[Any], words: dict[str, Any]) -> list[Any]:
    return [filled(name, words) if isinstance(name, list) else words[name] for name in names]


def site_digest(site: dict[str, Any]) -> str:
    """SHA-256 of what the promise rests on."""
    words = {name.upper(): part for name, part in site.items()}
    told = [[name, site[name]] for name in ("unit", "per_source", "largest") if name in site]
    parts = [*filled(line_of_page("OPERATOR"), words), *told]
    return hashlib.sha256(spelled(parts).encode("ascii")).hexdigest()


def keys_of(master: bytes, device: str, step: int) -> tuple[bytes, bytes]:
    """The noise key and the code key of a device at a step."""
    key = expand(master, f"sfumato.seal.v1|device|{device.encode().hex()}")
    for _ in range(step):
        key = expand(key, "sfumato.seal.v1|step")
    return expand(key, "sfumato.seal.v1|noise"), expand(key, "sfumato.seal.v1|mac")


def law_of(release: dict[str, Any]) -> tuple[str, Fraction]:
    entry = release["entry"]
    law = {"rounded-gaussian/1": "rounded-gaussian", "discrete-gaussian/1": "gaussian"}[
        entry["mechanism"]
    ]
    return law, Fraction(entry["parameters"]["sigma"])


def sealed(
    units: list[int],
    site: dict[str, Any],
    blank: dict[str, Any],
    *,
    master: bytes,
    where: dict[str, Any],
) -> dict[str, Any]:
    """A whole snapshot: noise on the readings' lattice integers, and its seal.

    `blank` is the snapshot without values and seal, `where` says device, step, epoch and first
    draw.
    """
    noise_key, code_key = keys_of(master, where["device"], where["step"])
    law, sigma = law_of(blank["release"])
    epoch = bytes.fromhex(where["epoch"])
    noise = draws(noise_key, epoch, law, sigma=sigma, first=where["first"], size=len(units))
    release = {
        **blank["release"],
        "value": [unit + draw for unit, draw in zip(units, noise, strict=True)],
    }
    seal = {
        "key_id": hashlib.sha256(expand(master, "sfumato.seal.v1|id")).hexdigest()[:16],
        **where,
    }
    words = {
        "SITE": site_digest(site),
        "NAMES": blank["names"],
        "TIME": blank["time"],
        "RELEASE": release,
        **{name.upper(): part for name, part in seal.items()},
    }
    message = spelled(filled(line_of_page("(?:SITE|NAMES)"), words)).encode("ascii")
    code = hmac.new(code_key, message, hashlib.sha256).hexdigest()
    return {**blank, "release": release, "seal": {**seal, "code": code}}

"""Keyed noise: whoever holds the key can draw it again and take it off exactly; nobody else can.

A draw is a pure function of (key, epoch, counter). The format is version 1 of a contract with other
devices: docs/reference/keyed-noise.md, with known answers in contracts/keyed-noise-v1.json.
"""

from __future__ import annotations

import os
import threading
from fractions import Fraction
from typing import NoReturn, assert_never

import numpy as np

from sfumato._types import IntArray
from sfumato.errors import InvalidParameter, NoiseExhausted, Unguarded
from sfumato.privacy.accounting.numbers import Number
from sfumato.privacy.noise.laws import GaussianLaw, LaplaceLaw, Law, RoundedGaussianLaw
from sfumato.privacy.noise.lookup import look_up
from sfumato.privacy.noise.tables import MAX_DISTANCE, sampler

KEY_BYTES = 32
EPOCH_BYTES = 12
BLOCK = 16
COUNTERS = 2**32  # blocks under one key and epoch
CHUNK = 2**16  # blocks expanded at a time
UNIFORM_BLOCKS = 4  # 512 bits: an integer below 2**340 is uniform within 2**-172


_forks = 0  # how many forks lie between this process and the one that started


def _forked() -> None:
    global _forks  # a child must know itself from its parent, whatever its process number
    _forks += 1


os.register_at_fork(after_in_child=_forked)


def keyed_draws(
    key: bytes, epoch: bytes, law: Law, *, first: int, size: int, context: str = ""
) -> IntArray:
    """Draws first .. first + size - 1 of a law under a key and epoch: the same integers everywhere.

    Args:
        key: 32 bytes.
        epoch: 12 bytes, as the stream that drew them names it.
        law: The law of the draws.
        first: The number of the first draw, at least 0.
        size: How many draws.
        context: What the stream was made for; another context is another stream.

    Returns:
        The integers, [size].

    Raises:
        InvalidParameter: The key or the epoch has another length.
        NoiseExhausted: The draws leave the counters of one epoch.

    """
    built = sampler(law)
    blocks = len(built.tables)
    derived = derive_key(key, law, context=context)
    out = np.empty(size, dtype=np.int64)
    per_chunk = max(1, CHUNK // blocks)
    for start in range(0, size, per_chunk):
        count = min(per_chunk, size - start)
        raw = keystream(derived, epoch, first=(first + start) * blocks, blocks=count * blocks)
        out[start : start + count] = look_up(raw, built)
    return out


def derive_key(key: bytes, law: Law | None, *, context: str = "") -> bytes:
    """The AES-256 key of one law: HKDF-SHA256, so that no two parameters ever share a block of the stream.

    Two widths on one block would give x away as (s_2 y_1 - s_1 y_2) / (s_2 - s_1). The stream
    without a law is the uniform one.

    Args:
        key: 32 bytes.
        law: The law, or None for the uniform stream.
        context: What the stream is made for.

    Returns:
        32 bytes.

    Raises:
        InvalidParameter: The key has another length.

    """
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    if len(key) != KEY_BYTES:
        raise InvalidParameter(
            f"a noise key has {KEY_BYTES} bytes, got {len(key)}; nothing was drawn"
        )
    match law:
        case LaplaceLaw(scale):
            name, parameter = "laplace", scale
        case GaussianLaw(sigma):
            name, parameter = "gaussian", sigma
        case RoundedGaussianLaw(sigma):
            name, parameter = "rounded-gaussian", sigma
        case None:
            name, parameter = "uniform", Fraction(0)
        case _:
            assert_never(law)
    words = [
        "sfumato.noise.v1",
        context.encode().hex(),
        name,
        f"{parameter.numerator}/{parameter.denominator}",
    ]
    return HKDF(SHA256(), KEY_BYTES, salt=None, info="|".join(words).encode()).derive(key)


def keystream(key: bytes, epoch: bytes, *, first: int, blocks: int) -> bytes:
    """Blocks of AES-256-CTR: block n is AES(key, epoch[12 bytes] || n[4 bytes, big endian]).

    Args:
        key: The derived key, 32 bytes.
        epoch: 12 bytes.
        first: The number of the first block.
        blocks: How many blocks.

    Returns:
        16 bytes for each block.

    Raises:
        InvalidParameter: The epoch has another length.
        NoiseExhausted: The blocks leave the counters of one epoch.

    """
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import AES
    from cryptography.hazmat.primitives.ciphers.modes import CTR

    if len(epoch) != EPOCH_BYTES:
        raise InvalidParameter(
            f"an epoch has {EPOCH_BYTES} bytes, got {len(epoch)}; nothing was drawn"
        )
    if first < 0 or first + blocks > COUNTERS:
        raise NoiseExhausted(
            f"counters {first}..{first + blocks} leave 0..{COUNTERS} of one epoch; nothing was drawn"
        )
    encryptor = Cipher(AES(key), CTR(epoch + first.to_bytes(4, "big"))).encryptor()
    return encryptor.update(bytes(BLOCK * blocks))


class KeyedNoise:
    """A keyed stream that goes forward only: no counter is used twice, not after a crash, a fork or a copy.

    Its epoch is a 4-byte boot counter and 8 random bytes, fresh at the start, after a fork, and
    when its counters run out. Naming the epoch yourself makes the stream `known`: the same integers
    each time, for rehearsals and golden tests, refused by a ledger that spends a real budget.
    """

    def __init__(
        self, key: bytes, *, context: str = "", boot: int = 0, epoch: bytes | None = None
    ) -> None:
        if not 0 <= boot < 2**32:
            raise InvalidParameter(f"boot must be a 32-bit counter, got {boot}; nothing was drawn")
        self._key, self._context, self._boot = bytes(key), context, boot
        self._lock, self._lock_forks = threading.Lock(), _forks
        self.known = epoch is not None
        self._uniform_key = derive_key(self._key, None, context=context)
        self._start(epoch)

    def _start(self, epoch: bytes | None) -> None:
        self.epoch = (
            self._boot.to_bytes(4, "big") + os.urandom(8) if epoch is None else bytes(epoch)
        )
        self._used: dict[Law | None, int] = {}
        self._forks = _forks

    @property
    def distance(self) -> Fraction:
        """Every table is within this of its law; `sampler` refuses any that is not."""
        return MAX_DISTANCE

    def laplace(self, scale: Number, size: int) -> IntArray:
        """The next draws of `LaplaceLaw(scale)`."""
        return self._next(LaplaceLaw(scale), size)

    def gaussian(self, sigma: Number, size: int) -> IntArray:
        """The next draws of `GaussianLaw(sigma)`."""
        return self._next(GaussianLaw(sigma), size)

    def rounded_gaussian(self, sigma: Number, size: int) -> IntArray:
        """The next draws of `RoundedGaussianLaw(sigma)`."""
        return self._next(RoundedGaussianLaw(sigma), size)

    def uniform(self, below: int, size: int) -> list[int]:
        """The next integers below a bound: floor(u below / 2**512), u of four blocks; no rejection."""
        if not 1 <= below <= 2**340:
            raise InvalidParameter(
                f"keyed integers lie below 1..2**340, got {below}; nothing was drawn"
            )
        epoch, first = self._take(None, size, UNIFORM_BLOCKS)
        raw = keystream(
            self._uniform_key, epoch, first=first * UNIFORM_BLOCKS, blocks=size * UNIFORM_BLOCKS
        )
        width = BLOCK * UNIFORM_BLOCKS
        return [
            int.from_bytes(raw[i : i + width], "big") * below >> 8 * width
            for i in range(0, len(raw), width)
        ]

    def reserve(self, law: Law, size: int) -> tuple[bytes, int]:
        """Mark the next draws of a law as used: their epoch and the number of the first."""
        return self._take(law, size, len(sampler(law).tables))

    def numbered(self, law: Law, size: int) -> tuple[IntArray, bytes, int]:
        """The next draws of a law, with their epoch and the number of the first, to draw them again."""
        epoch, first = self.reserve(law, size)
        draws = keyed_draws(self._key, epoch, law, first=first, size=size, context=self._context)
        return draws, epoch, first

    def _next(self, law: Law, size: int) -> IntArray:
        return self.numbered(law, size)[0]

    def _take(self, law: Law | None, size: int, blocks: int) -> tuple[bytes, int]:
        if (
            self._lock_forks != _forks
        ):  # a thread of the parent may hold it, and is not in this child
            self._lock, self._lock_forks = threading.Lock(), _forks
        with self._lock:
            return self._take_alone(law, size, blocks)

    def _take_alone(self, law: Law | None, size: int, blocks: int) -> tuple[bytes, int]:
        if size < 0:
            raise InvalidParameter(
                f"the number of draws must be at least 0, got {size}; nothing was drawn"
            )
        if _forks != self._forks:
            self._renew("a forked process would repeat the stream of its parent")
        if (self._used.get(law, 0) + size) * blocks > COUNTERS:
            if size * blocks > COUNTERS:
                raise NoiseExhausted(
                    f"{size} draws do not fit into one epoch of {COUNTERS} blocks; nothing was drawn"
                )
            self._renew("all counters of this epoch are used")
        first = self._used.get(law, 0)
        self._used[law] = first + size
        return self.epoch, first

    def _renew(self, reason: str) -> None:
        if self.known:
            raise NoiseExhausted(
                f"{reason}, and a known epoch cannot be renewed; nothing was drawn"
            )
        self._start(None)

    def __repr__(self) -> str:
        return f"KeyedNoise(epoch {self.epoch.hex()}, known={self.known})"

    def _refuse(self, *_: object) -> NoReturn:
        raise Unguarded("a copy of a keyed stream would repeat it; make a new one from the key")

    __reduce_ex__ = __copy__ = __deepcopy__ = _refuse

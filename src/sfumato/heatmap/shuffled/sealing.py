"""Keys of the shuffler and of the adder: reports are sealed to the one, messages in them to the other."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from sfumato.errors import ExistsAlready, InvalidInput
from sfumato.files import write_file

SEED, PUBLIC, OVERHEAD = 32, 64, 48
"""Bytes of a seed, of both public keys, and that a seal adds."""
_NONCE = bytes(12)  # every seal has a key of its own


@dataclass(frozen=True, slots=True)
class PublicKeys:
    """What others need of somebody's keys.

    Attributes:
        sealing: An X25519 key.
        signing: An Ed25519 key.

    """

    sealing: bytes
    signing: bytes

    def __post_init__(self) -> None:
        if not len(self.sealing) == len(self.signing) == PUBLIC // 2:
            raise InvalidInput("public keys are 32 bytes each; nothing was read")

    def __str__(self) -> str:
        return (self.sealing + self.signing).hex()

    @classmethod
    def from_text(cls, text: str) -> PublicKeys:
        """The keys that 128 hexadecimal digits stand for."""
        try:
            data = bytes.fromhex(text.strip())
        except ValueError:
            data = b""
        if len(data) != PUBLIC:
            raise InvalidInput(
                f"public keys are {2 * PUBLIC} hexadecimal digits, got {text[:40]!r}; nothing was read"
            )
        return cls(data[: PUBLIC // 2], data[PUBLIC // 2 :])

    def verify(self, message: bytes, signature: bytes) -> bool:
        """Whether the holder of the keys signed a message."""
        try:
            Ed25519PublicKey.from_public_bytes(self.signing).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True


class Keys:
    """Somebody's own keys, made of one seed."""

    def __init__(self, seed: bytes) -> None:
        if len(seed) != SEED:
            raise InvalidInput(f"a key is {SEED} bytes, got {len(seed)}; nothing was read")
        self._sealing = X25519PrivateKey.from_private_bytes(_derived(seed, b"seal"))
        self._signing = Ed25519PrivateKey.from_private_bytes(_derived(seed, b"sign"))
        self.public = PublicKeys(
            self._sealing.public_key().public_bytes_raw(),
            self._signing.public_key().public_bytes_raw(),
        )

    @classmethod
    def read(cls, path: str | Path) -> Keys:
        """The keys of a file that `make_keys` wrote; InvalidInput where it is none."""
        try:
            return cls(bytes.fromhex(Path(path).read_text(encoding="ascii").strip()))
        except (OSError, ValueError) as problem:
            raise InvalidInput(
                f"{path} is no key that can be read ({type(problem).__name__}): make one with sfumato shuffle "
                "keys; nothing was done"
            ) from problem

    def sign(self, message: bytes) -> bytes:
        """64 bytes by which others know whose message it is."""
        return self._signing.sign(message)

    def unseal(self, sealed: bytes, context: bytes) -> bytes | None:
        """What was sealed to these keys for a context; None for anything else."""
        try:
            shared = self._sealing.exchange(X25519PublicKey.from_public_bytes(sealed[:32]))
            key = _shared_key(shared, sealed[:32], self.public.sealing)
            return ChaCha20Poly1305(key).decrypt(_NONCE, sealed[32:], context)
        except (InvalidTag, ValueError):
            return None


def seal(message: bytes, to: PublicKeys, *, context: bytes) -> bytes:
    """A message that only the holder of keys can read; nothing in it says who sealed it."""
    own = X25519PrivateKey.generate()
    first = own.public_key().public_bytes_raw()
    shared = own.exchange(X25519PublicKey.from_public_bytes(to.sealing))
    key = _shared_key(shared, first, to.sealing)
    return first + ChaCha20Poly1305(key).encrypt(_NONCE, message, context)


def make_keys(path: str | Path) -> PublicKeys:
    """Make keys: a file for nobody else, and beside it one for the plan.

    Args:
        path: The file of the private key, NAME.key; the public ones go to NAME.pub.

    Returns:
        The public keys.

    Raises:
        ExistsAlready: One of the files is there; nothing was made.
        InvalidInput: The name does not end in .key.

    """
    file = Path(path)
    if file.suffix != ".key":
        raise InvalidInput(f"a key goes to a file NAME.key, got {file.name}; nothing was made")
    for one in (file, file.with_suffix(".pub")):
        if one.exists():
            raise ExistsAlready(f"{one} exists and is kept; nothing was made")
    seed = os.urandom(SEED)
    public = Keys(seed).public
    write_file(file, f"{seed.hex()}\n", private=True)
    write_file(file.with_suffix(".pub"), f"{public}\n")
    return public


def _derived(seed: bytes, use: bytes) -> bytes:
    return hashlib.blake2b(seed, digest_size=32, person=b"sfumato " + use).digest()


def _shared_key(shared: bytes, first: bytes, to: bytes) -> bytes:
    return hashlib.blake2b(shared + first + to, digest_size=32, person=b"sfumato shuffle").digest()

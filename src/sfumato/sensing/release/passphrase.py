"""A master key that its file gives to nobody without a passphrase: scrypt, then AES-256-GCM."""

from __future__ import annotations

import math
import secrets
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.privacy.accounting import canonical

LOCKED_FORMAT = "sfumato-master-key/2"
COST, BLOCK, LANES = 2**17, 8, 1  # 128 MB and some tenths of a second for each guess
MOST = 2**20  # a file must not make whoever opens it spend more than a gigabyte


def locked_key(key: bytes, name: str, passphrase: str) -> dict[str, Any]:
    """What the file of a key holds: the key under a key that takes the passphrase and time to find."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if not passphrase:
        raise InvalidParameter("a passphrase must not be empty; no key was made")
    salt, nonce = secrets.token_bytes(16), secrets.token_bytes(12)
    head = {
        "format": LOCKED_FORMAT,
        "id": name,
        "scrypt": {"n": COST, "r": BLOCK, "p": LANES, "salt": salt.hex()},
    }
    sealed = AESGCM(_stretched(passphrase, head["scrypt"])).encrypt(nonce, key, _about(head))
    return {**head, "nonce": nonce.hex(), "key": sealed.hex()}


def unlocked_key(data: dict[str, Any], passphrase: str | None, path: str | Path) -> bytes:
    """The key in such a file; a wrong passphrase and a changed file look alike."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if passphrase is None:
        raise InvalidInput(
            f"{path} is locked: it opens with its `passphrase`; nothing was unsealed"
        )
    cost = data["scrypt"]
    work = [int(cost[name]) for name in ("n", "r", "p")]
    if min(work) < 1 or math.prod(work) > MOST * BLOCK:
        raise ValueError("it asks for no work, or too much")
    head = {name: data[name] for name in ("format", "id", "scrypt")}
    try:
        sealed, nonce = bytes.fromhex(data["key"]), bytes.fromhex(data["nonce"])
        return AESGCM(_stretched(passphrase, cost)).decrypt(nonce, sealed, _about(head))
    except InvalidTag:
        raise InvalidInput(
            f"{path} does not open with this passphrase, or was changed; nothing was unsealed"
        ) from None


def _stretched(passphrase: str, cost: Any) -> bytes:
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    salt = bytes.fromhex(cost["salt"])
    made = Scrypt(salt, 32, n=int(cost["n"]), r=int(cost["r"]), p=int(cost["p"]))
    return made.derive(passphrase.encode())


def _about(head: dict[str, Any]) -> bytes:
    return canonical(head).encode()

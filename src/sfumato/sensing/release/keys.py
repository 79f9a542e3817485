"""Keys: a master key from which every device's key follows, and a ratchet that forgets the past.

    master --HKDF(device name)--> step 0 --HKDF--> step 1 --HKDF--> step 2 ...
                                    |                |
                                    noise, mac       noise, mac
           --HKDF(device name)--> check key

A device moves one step forward whenever it starts, and its file holds only the step to come: who
takes the file can remove no noise that was added before. Who holds the master key can walk to any
step. The check key stays the same: it is for a collector, which can tell with it who sent a packet,
and take no noise off.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from sfumato.errors import InvalidInput, InvalidParameter, NoiseExhausted, Unguarded
from sfumato.files import check_private, read_json, remove_drafts, write_file
from sfumato.privacy import KeyedNoise
from sfumato.privacy.noise import KEY_BYTES
from sfumato.sensing.release.passphrase import LOCKED_FORMAT, locked_key, unlocked_key

MASTER_FORMAT = "sfumato-master-key/1"
DEVICE_FORMAT = "sfumato-device-key/1"
MAX_STEPS = (
    2**22
)  # below the four bytes that a step has in the epoch; walking there takes half a minute
STRIDE = 2**10  # steps between the keys that are remembered while unsealing


@dataclass(frozen=True, slots=True)
class MasterKey:
    """The key of whoever may remove the noise. Keep it off the devices; `id` is public and names it."""

    key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if type(self.key) is not bytes or len(self.key) != KEY_BYTES:
            raise InvalidParameter(f"a master key is {KEY_BYTES} bytes, got something else")

    @property
    def id(self) -> str:
        """A public name of the key, from which it cannot be found."""
        return hashlib.sha256(_derive(self.key, "id")).hexdigest()[:16]

    def device(self, name: str, *, step: int = 0) -> bytes:
        """The key of a device at a step of its ratchet."""
        if not name or not name.isprintable():
            raise InvalidParameter(f"a device's name must be printable and not empty, got {name!r}")
        if not 0 <= step <= MAX_STEPS:
            raise InvalidParameter(
                f"a device's step lies in 0..{MAX_STEPS}, got {step}; rotate its key"
            )
        first = _derive(self.key, f"device|{name.encode().hex()}")
        return _walk(_milestone(first, step // STRIDE), step % STRIDE)

    def check_key(self, name: str) -> bytes:
        """The check key of a device: with it a collector tells its packets, and takes no noise off."""
        return _derive(self.key, f"check|{name.encode().hex()}")


def new_master_key() -> MasterKey:
    """A fresh master key of the system's randomness.

    Returns:
        The key, in memory only: `write_master_key` keeps it.
    """
    return MasterKey(secrets.token_bytes(KEY_BYTES))


def write_master_key(path: str | Path, master: MasterKey, *, passphrase: str | None = None) -> None:
    """Keep a master key in a new file that only its owner may read.

    Args:
        path: The new file.
        master: The key.
        passphrase: Without it the file is of no use to anybody; None for a file that holds the key itself.

    Raises:
        InvalidInput: The file exists already, or cannot be written; no key was made.
        InvalidParameter: The passphrase is empty.
    """
    held: dict[str, Any] = {"format": MASTER_FORMAT, "id": master.id, "key": master.key.hex()}
    if passphrase is not None:
        held = locked_key(master.key, master.id, passphrase)
    _write_new(Path(path), held)


def is_locked(path: str | Path) -> bool:
    """Whether the file of a master key asks for a passphrase.

    Args:
        path: The file.

    Returns:
        True if it does.

    Raises:
        InvalidInput: The file cannot be read.
    """
    data = read_json(path, "a master key")
    return isinstance(data, dict) and data.get("format") == LOCKED_FORMAT


def read_master_key(path: str | Path, *, passphrase: str | None = None) -> MasterKey:
    """A master key from its file.

    Args:
        path: The file that `write_master_key` wrote.
        passphrase: That of a file which was locked with one.

    Returns:
        The key.

    Raises:
        InvalidInput: The file cannot be read, is not a whole master key, or the passphrase is missing or
            another; nothing was unsealed.
    """
    locked = is_locked(path)
    data = _read(Path(path), LOCKED_FORMAT if locked else MASTER_FORMAT, "a master key")
    try:
        key = unlocked_key(data, passphrase, path) if locked else bytes.fromhex(data["key"])
        master = MasterKey(key)
    except InvalidInput:
        raise
    except (KeyError, TypeError, ValueError):
        raise InvalidInput(f"{path} is not a whole master key; nothing was unsealed") from None
    if master.id != data.get("id"):
        raise InvalidInput(
            f"{path} is not a whole master key: its id is another's; nothing was unsealed"
        )
    return master


def write_device_key(path: str | Path, master: MasterKey, name: str) -> None:
    """The file for a device, from the master key: made once, then only the device moves it forward.

    A second file for the same device would begin at step 0 again; its epochs still differ by 64
    random bits.

    Args:
        path: A new file that only its owner may read.
        master: The master key.
        name: What the device is called: printable and not empty; each one has its own name.

    Raises:
        InvalidInput: The file exists already, or cannot be written; no key was made.
        InvalidParameter: The name is empty or not printable.
    """
    check = master.check_key(name).hex()
    _write_new(Path(path), _device_json(master.id, name, 0, master.device(name), check))


def device_step(path: str | Path) -> tuple[str, int]:
    """The name of a device and the step that it will take next, from its key file, which stays as it is.

    Args:
        path: The key file of the device.

    Returns:
        The name, and the step.

    Raises:
        InvalidInput: It is not a device key.
    """
    data = _read(Path(path), DEVICE_FORMAT, "a device key")
    try:
        return str(data["device"]), int(data["step"])
    except (KeyError, TypeError, ValueError):
        raise InvalidInput(f"{path} is not a whole device key; nothing was done") from None


class Device:
    """A device that seals: a keyed stream which never repeats, from a file that only moves forward.

    Opening it takes one step of the ratchet and waits until the disk holds the next one, before any
    noise is drawn. So no two runs share a step, unless an old copy of the file is put back; then 64
    fresh random bits of the epoch keep their streams apart. A live copy of a running machine is not
    covered: it would draw the same noise twice (docs/threat-model.md).
    """

    def __init__(self, path: str | Path) -> None:
        # Behind a link, the file itself must move forward, not the link.
        self.path = Path(path).resolve()
        with _locked(self.path, str(path)) as data:
            try:
                self.key_id, self.name, self.step = (
                    str(data["id"]),
                    str(data["device"]),
                    int(data["step"]),
                )
                key, check = bytes.fromhex(data["key"]), str(data.get("check", ""))
                if len(key) != KEY_BYTES or self.step < 0:
                    raise ValueError
                if check and len(bytes.fromhex(check)) != KEY_BYTES:
                    raise ValueError
            except (KeyError, TypeError, ValueError):
                raise InvalidInput(
                    f"{path} is not a whole device key; nothing was sealed"
                ) from None
            if self.step > MAX_STEPS:
                raise NoiseExhausted(
                    f"{path} has started {self.step} times, as often as a key may; rotate it: "
                    "make a new device key; nothing was sealed"
                )
            after = _device_json(self.key_id, self.name, self.step + 1, _next_step(key), check)
            _replace(self.path, after)
        self.noise = KeyedNoise(noise_key(key), boot=self.step)
        self._mac = mac_key(key)
        self._check = bytes.fromhex(check)

    def sign(self, message: bytes) -> str:
        """The message's authenticity code under this step's key."""
        return mac(self._mac, message)

    @property
    def check_key(self) -> bytes:
        """The key of codes that a collector checks; refused where the file is from before there was one."""
        if not self._check:
            raise InvalidInput(
                f"{self.path} is from before devices had a check key, so nobody could check its packets; "
                "rotate its key; nothing was sealed"
            )
        return self._check

    def __repr__(self) -> str:
        return f"Device({self.name!r}, key {self.key_id}, step {self.step})"

    def _refuse(self, *_: object) -> NoReturn:
        raise Unguarded("a copy of a device would repeat its noise; open its file again")

    __reduce_ex__ = __copy__ = __deepcopy__ = _refuse


def noise_key(step_key: bytes) -> bytes:
    """The key of the noise at a step."""
    return _derive(step_key, "noise")


def mac_key(step_key: bytes) -> bytes:
    """The key of authenticity codes at a step; another one than the noise's."""
    return _derive(step_key, "mac")


def mac(key: bytes, message: bytes) -> str:
    """HMAC-SHA256 as text."""
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.hmac import HMAC

    code = HMAC(key, SHA256())
    code.update(message)
    return code.finalize().hex()


def _next_step(key: bytes) -> bytes:
    return _derive(key, "step")


def _walk(key: bytes, steps: int) -> bytes:
    for _ in range(steps):
        key = _next_step(key)
    return key


def _milestone(first: bytes, number: int) -> bytes:
    """The key STRIDE * number steps on; remembered, so that many readings are not walked to one by one."""
    passed = _milestones.setdefault(first, [first])
    while len(passed) <= number:
        passed.append(_walk(passed[-1], STRIDE))
    return passed[number]


_milestones: dict[bytes, list[bytes]] = {}


def _derive(key: bytes, purpose: str) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), KEY_BYTES, salt=None, info=f"sfumato.seal.v1|{purpose}".encode()).derive(
        key
    )


def _device_json(key_id: str, name: str, step: int, key: bytes, check: str) -> dict[str, Any]:
    held = {"format": DEVICE_FORMAT, "id": key_id, "device": name, "step": step, "key": key.hex()}
    return held | ({"check": check} if check else {})


def _read(path: Path, form: str, what: str) -> dict[str, Any]:
    data = read_json(path, what)
    if not isinstance(data, dict) or data.get("format") != form:
        raise InvalidInput(f"{path} is not {what} ({form})")
    check_private(path)
    return data


def _write_new(path: Path, data: dict[str, Any]) -> None:
    write_file(
        path, _text(data), private=True, kept="write the key elsewhere", lost="no key was made"
    )


def _replace(path: Path, data: dict[str, Any]) -> None:
    write_file(path, _text(data), overwrite=True, private=True, lost="nothing was sealed")


def _text(data: dict[str, Any]) -> str:
    return json.dumps(data, indent=1) + "\n"


@contextmanager
def _locked(path: Path, called: str) -> Iterator[dict[str, Any]]:
    """The device's file, to ourselves: a second process waits, and then sees what we wrote."""
    handle = _lock(path, called)
    try:
        yield _read(Path(called), DEVICE_FORMAT, "a device key")
    finally:
        os.close(handle)


def _lock(path: Path, called: str) -> int:
    import fcntl

    try:
        while True:
            handle = os.open(path, os.O_RDONLY)
            fcntl.flock(handle, fcntl.LOCK_EX)
            # Whoever waited holds the lock of a file that was replaced meanwhile: look again.
            if os.fstat(handle).st_ino != os.stat(path).st_ino:
                os.close(handle)
                continue
            # Under the lock every draft is of a start that was killed: no old key stays behind in
            # one.
            remove_drafts(path)
            if os.stat(path).st_nlink > 1:
                os.close(handle)
                raise InvalidInput(
                    f"{called} has a second name, which would keep its old key; remove it; nothing was sealed"
                )
            return handle
    except OSError as problem:
        raise InvalidInput(
            f"cannot read {called}: {problem.strerror}; nothing was sealed"
        ) from None

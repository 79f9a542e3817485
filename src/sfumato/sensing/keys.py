"""Keys: a master key from which every device's key follows, and a ratchet that forgets the past.

    master --HKDF(device name)--> step 0 --HKDF--> step 1 --HKDF--> step 2 ...
                                    |                |
                                    noise, mac       noise, mac

A device moves one step forward whenever it starts, and its file holds only the step to come: who takes the
file can remove no noise that was added before. Who holds the master key can walk to any step.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from sfumato.errors import InvalidInput, InvalidParameter, NoiseExhausted, Unguarded
from sfumato.privacy import KeyedNoise
from sfumato.privacy.keyed import KEY_BYTES

MASTER_FORMAT = "sfumato-master-key/1"
DEVICE_FORMAT = "sfumato-device-key/1"
LAST_STEP = 2**32 - 1  # the step is the first four bytes of the epoch
MOST_STEPS = 2**22  # an unsealing walks the ratchet from step 0: a second or so for a hundred thousand


@dataclass(frozen=True, slots=True)
class MasterKey:
    """The key of whoever may remove the noise. Keep it off the devices; `id` is public and names it."""

    key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.key) != KEY_BYTES:
            raise InvalidParameter(f"a master key has {KEY_BYTES} bytes, got {len(self.key)}")

    @property
    def id(self) -> str:
        """A public name of the key, from which it cannot be found."""
        return hashlib.sha256(_derive(self.key, "id")).hexdigest()[:16]

    def device(self, name: str, *, step: int = 0) -> bytes:
        """The key of a device at a step of its ratchet."""
        if not name or not name.isprintable():
            raise InvalidParameter(f"a device's name must be printable and not empty, got {name!r}")
        if not 0 <= step <= MOST_STEPS:
            raise InvalidParameter(f"a device's step lies in 0..{MOST_STEPS}, got {step}; rotate its key")
        key = _derive(self.key, f"device|{name.encode().hex()}")
        for _ in range(step):
            key = _next_step(key)
        return key


def new_master_key() -> MasterKey:
    """A fresh master key of the system's randomness."""
    return MasterKey(secrets.token_bytes(KEY_BYTES))


def write_master_key(path: str | Path, master: MasterKey) -> None:
    """Keep a master key in a new file that only its owner may read."""
    _write_new(Path(path), {"format": MASTER_FORMAT, "id": master.id, "key": master.key.hex()})


def read_master_key(path: str | Path) -> MasterKey:
    """A master key from its file."""
    data = _read(Path(path), MASTER_FORMAT, "a master key")
    try:
        master = MasterKey(bytes.fromhex(data["key"]))
    except (KeyError, TypeError, ValueError):
        raise InvalidInput(f"{path} is not a whole master key; nothing was unsealed") from None
    if master.id != data.get("id"):
        raise InvalidInput(f"{path} is not a whole master key: its id is another's; nothing was unsealed")
    return master


def write_device_key(path: str | Path, master: MasterKey, name: str) -> None:
    """The file for a device, from the master key: made once, then only the device moves it forward.

    A second file for the same device would begin at step 0 again; its epochs still differ by 64 random bits.
    """
    _write_new(Path(path), _device_json(master.id, name, 0, master.device(name)))


class Device:
    """A device that seals: a keyed stream which never repeats, from a file that only moves forward.

    Opening it takes one step of the ratchet and waits until the disk holds the next one, before any noise is
    drawn. So no two runs share a step, unless an old copy of the file is put back; then 64 fresh random bits
    of the epoch keep their streams apart. A live copy of a running machine is not covered: it would draw the
    same noise twice (docs/threat-model.md).
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        with _locked(self.path) as data:
            try:
                self.key_id, self.name, self.step = str(data["id"]), str(data["device"]), int(data["step"])
                key = bytes.fromhex(data["key"])
                if len(key) != KEY_BYTES or not 0 <= self.step <= LAST_STEP:
                    raise ValueError
            except (KeyError, TypeError, ValueError):
                raise InvalidInput(f"{path} is not a whole device key; nothing was sealed") from None
            if self.step > MOST_STEPS:
                raise NoiseExhausted(
                    f"{path} has started {self.step} times, as often as a key may; rotate it: "
                    "make a new device key; nothing was sealed"
                )
            _replace(self.path, _device_json(self.key_id, self.name, self.step + 1, _next_step(key)))
        self.noise = KeyedNoise(noise_key(key), boot=self.step)
        self._mac = mac_key(key)

    def sign(self, message: bytes) -> str:
        """The message's authenticity code under this step's key."""
        return mac(self._mac, message)

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


def _derive(key: bytes, purpose: str) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), KEY_BYTES, salt=None, info=f"sfumato.seal.v1|{purpose}".encode()).derive(key)


def _device_json(key_id: str, name: str, step: int, key: bytes) -> dict[str, Any]:
    return {"format": DEVICE_FORMAT, "id": key_id, "device": name, "step": step, "key": key.hex()}


def _read(path: Path, form: str, what: str) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise InvalidInput(f"cannot read {path}: {problem.strerror}") from None
    except ValueError:
        data = None
    if not isinstance(data, dict) or data.get("format") != form:
        raise InvalidInput(f"{path} is not {what} ({form})")
    return data


def _write_new(path: Path, data: dict[str, Any]) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InvalidInput(f"{path} exists already and is kept; write the key elsewhere") from None
    except OSError as problem:
        raise InvalidInput(f"cannot write {path}: {problem.strerror}; no key was made") from None
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        _write_through(file, data)
    _sync_folder(path.parent)


def _replace(path: Path, data: dict[str, Any]) -> None:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    try:
        with os.fdopen(
            os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as file:
            _write_through(file, data)
        draft.replace(path)
        _sync_folder(path.parent)
    except OSError as problem:
        raise InvalidInput(f"cannot write {path}: {problem.strerror}; nothing was sealed") from None
    finally:
        with suppress(OSError):
            draft.unlink()


def _write_through(file: Any, data: dict[str, Any]) -> None:
    file.write(json.dumps(data, indent=1) + "\n")
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _locked(path: Path) -> Iterator[dict[str, Any]]:
    """The device's file, to ourselves: a second process waits, and then sees what we wrote."""
    import fcntl

    while True:
        try:
            handle = os.open(path, os.O_RDONLY)
        except OSError as problem:
            raise InvalidInput(f"cannot read {path}: {problem.strerror}; nothing was sealed") from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            # Whoever waited holds the lock of a file that was replaced meanwhile: look again.
            if os.fstat(handle).st_ino != os.stat(path).st_ino:
                continue
            yield _read(path, DEVICE_FORMAT, "a device key")
            return
        finally:
            os.close(handle)

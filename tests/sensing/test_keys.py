"""Keys: derived, not stored; a ratchet that only goes forward; and no draw that is used twice."""

from __future__ import annotations

import copy
import errno
import json
import multiprocessing
import os
import pickle
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import InvalidInput, InvalidParameter, NoiseExhausted, Unguarded
from sfumato.files import leftovers
from sfumato.sensing.release.check_keys import check_keys_of, read_check_keys, write_check_keys
from sfumato.sensing.release.keys import (
    MAX_STEPS,
    STRIDE,
    Device,
    MasterKey,
    _milestones,
    _next_step,
    new_master_key,
    noise_key,
    read_master_key,
    write_device_key,
    write_master_key,
)

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def master(key: bytes) -> MasterKey:
    return MasterKey(key)


@pytest.mark.unit
def test_a_master_key_comes_back_from_its_file_which_only_its_owner_reads(tmp_path: Path) -> None:
    master = new_master_key()
    write_master_key(tmp_path / "m.key", master)
    assert read_master_key(tmp_path / "m.key") == master
    assert stat.S_IMODE((tmp_path / "m.key").stat().st_mode) == 0o600
    with pytest.raises(InvalidInput, match="exists already and is kept"):
        write_master_key(tmp_path / "m.key", master)


@pytest.mark.unit
def test_no_repr_tells_a_key(master: MasterKey, tmp_path: Path) -> None:
    write_device_key(tmp_path / "d.key", master, "door")
    device = Device(tmp_path / "d.key")
    shown = repr(master) + repr(device) + repr(device.noise)
    for secret in (master.key, master.device("door"), master.device("door", step=1)):
        assert secret.hex() not in shown
        assert repr(secret)[2:-1] not in shown  # as a dataclass would show bytes


@pytest.mark.golden
def test_the_derivation_is_a_contract() -> None:
    # HKDF-SHA256 by hand (RFC 5869 with no salt), so that a device in another language can do the
    # same.
    import hashlib
    import hmac

    def hkdf(key: bytes, purpose: str) -> bytes:
        inner = hmac.new(bytes(32), key, hashlib.sha256).digest()
        return hmac.new(
            inner, f"sfumato.seal.v1|{purpose}".encode() + b"\x01", hashlib.sha256
        ).digest()

    key = bytes(range(32))
    zero = hkdf(key, "device|" + b"door".hex())
    assert MasterKey(key).device("door") == zero
    assert MasterKey(key).device("door", step=2) == hkdf(hkdf(zero, "step"), "step")
    assert noise_key(zero) == hkdf(zero, "noise")
    assert MasterKey(key).id == hashlib.sha256(hkdf(key, "id")).hexdigest()[:16]


@pytest.mark.unit
def test_each_start_takes_one_step_and_leaves_only_the_next(
    master: MasterKey, tmp_path: Path
) -> None:
    path = tmp_path / "d.key"
    write_device_key(path, master, "door")
    for step in range(3):
        assert Device(path).step == step
        left = json.loads(path.read_text())
        assert (left["step"], left["key"]) == (step + 1, master.device("door", step=step + 1).hex())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.fault
def test_what_a_crash_leaves_is_gone_after_the_next_start(
    master: MasterKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "d.key"
    write_device_key(path, master, "door")
    with monkeypatch.context() as patch:

        def killed(*_: object) -> None:
            raise KeyboardInterrupt

        patch.setattr(Path, "replace", killed)
        patch.setattr("sfumato.files.leftovers.remove", leftovers._forget)
        with pytest.raises(KeyboardInterrupt):
            Device(path)
    assert len(list(tmp_path.iterdir())) == 2  # the draft of step 1 is there, as after kill -9
    others = [tmp_path / ".d.key.mine.part", tmp_path / f".other.key.{'0' * 32}.part"]
    for other in others:
        other.touch()
    assert Device(path).step == 0
    Device(path)
    assert sorted(tmp_path.iterdir()) == sorted([path, *others])
    assert master.device("door", step=1).hex() not in path.read_text()


@pytest.mark.unit
def test_a_key_behind_a_link_moves_forward_itself(master: MasterKey, tmp_path: Path) -> None:
    path, link = tmp_path / "d.key", tmp_path / "link.key"
    write_device_key(path, master, "door")
    link.symlink_to(path)
    assert [Device(link).step, Device(path).step, Device(link).step] == [0, 1, 2]
    assert link.is_symlink()
    os.link(path, tmp_path / "second.key")
    with pytest.raises(InvalidInput, match="second name"):
        Device(path)


@pytest.mark.unit
def test_far_steps_are_walked_once(master: MasterKey) -> None:
    step = 3 * STRIDE + 5
    key = master.device("far")
    for _ in range(step):
        key = _next_step(key)
    assert master.device("far", step=step) == key
    assert master.device("far", step=STRIDE) == _milestones[master.device("far")][1]


@pytest.mark.fault
def test_a_fork_while_another_thread_draws_does_not_hang(master: MasterKey, tmp_path: Path) -> None:
    write_device_key(tmp_path / "d.key", master, "door")
    noise = Device(tmp_path / "d.key").noise
    noise._lock.acquire()  # as a thread does that is drawing at the moment of the fork
    child = os.fork()
    if not child:
        noise.gaussian(10, 1)
        os._exit(7)
    noise._lock.release()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.unit
def test_the_epoch_names_the_step(master: MasterKey, tmp_path: Path) -> None:
    write_device_key(tmp_path / "d.key", master, "door")
    Device(tmp_path / "d.key")
    assert Device(tmp_path / "d.key").noise.epoch[:4] == b"\0\0\0\1"


@pytest.mark.unit
def test_devices_and_masters_do_not_share_keys(master: MasterKey) -> None:
    other = MasterKey(bytes(reversed(master.key)))
    keys = {
        m.device(name, step=step) for m in (master, other) for name in ("a", "b") for step in (0, 1)
    }
    assert len(keys) == 8
    assert master.id != other.id


@pytest.mark.unit
def test_a_device_is_not_copied(master: MasterKey, tmp_path: Path) -> None:
    write_device_key(tmp_path / "d.key", master, "door")
    device = Device(tmp_path / "d.key")
    for copier in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(Unguarded, match="would repeat its noise"):
            copier(device)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is not a device key"),
        ("[]", "is not a device key"),
        ('{"format": "sfumato-master-key/1"}', "is not a device key"),
        ('{"format": "sfumato-device-key/1"}', "not a whole device key"),
        (
            '{"format": "sfumato-device-key/1", "id": "a", "device": "d", "step": -1, "key": "'
            + "0" * 64
            + '"}',
            "not a whole device key",
        ),
        (
            '{"format": "sfumato-device-key/1", "id": "a", "device": "d", "step": 1, "key": "00"}',
            "not a whole device key",
        ),
    ],
)
def test_a_damaged_device_key_is_refused_and_kept(
    content: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "d.key"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(InvalidInput, match=message):
        Device(path)
    assert path.read_text() == content


@pytest.mark.unit
def test_other_refusals(master: MasterKey, tmp_path: Path) -> None:
    for wrong in (b"short", "x" * 32):
        with pytest.raises(InvalidParameter, match="32 bytes"):
            MasterKey(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="printable"):
        master.device("")
    with pytest.raises(InvalidParameter, match="rotate"):
        master.device("door", step=MAX_STEPS + 1)
    with pytest.raises(InvalidInput, match="No such file"):
        read_master_key(tmp_path / "none")
    with pytest.raises(InvalidInput, match="No such file"):
        Device(tmp_path / "none")
    damaged = {"format": "sfumato-master-key/1", "id": "0" * 16, "key": master.key.hex()}
    (tmp_path / "m.key").touch(mode=0o600)
    (tmp_path / "m.key").write_text(json.dumps(damaged))
    with pytest.raises(InvalidInput, match="its id is another's"):
        read_master_key(tmp_path / "m.key")
    worn = {"format": "sfumato-device-key/1", "id": "a", "device": "d", "step": MAX_STEPS + 1}
    (tmp_path / "d.key").touch(mode=0o600)
    (tmp_path / "d.key").write_text(json.dumps({**worn, "key": master.key.hex()}))
    with pytest.raises(NoiseExhausted, match="rotate"):
        Device(tmp_path / "d.key")


@pytest.mark.unit
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o602])
def test_a_key_that_others_may_open_is_refused(
    mode: int, master: MasterKey, tmp_path: Path
) -> None:
    """And the device's does not move forward."""
    paths = [tmp_path / name for name in ("m.key", "d.key", "c.key")]
    write_master_key(paths[0], master)
    write_device_key(paths[1], master, "door")
    write_check_keys(paths[2], check_keys_of(master, ["door"]))
    readers: tuple[Callable[[Path], object], ...] = (read_master_key, Device, read_check_keys)
    for path, read in zip(paths, readers, strict=True):
        assert path.stat().st_mode & 0o777 == 0o600
        before = path.read_text()
        path.chmod(mode)
        with pytest.raises(InvalidInput, match=f"the mode {mode:04o}.*chmod 600.*nothing was done"):
            read(path)
        assert path.read_text() == before
        path.chmod(0o600)
        read(path)


@pytest.mark.unit
def test_a_check_key_is_the_devices_and_stays(master: MasterKey, tmp_path: Path) -> None:
    write_device_key(tmp_path / "d.key", master, "door")
    first, second = Device(tmp_path / "d.key"), Device(tmp_path / "d.key")
    assert first.check_key == second.check_key == master.check_key("door")
    assert master.check_key("door") != master.check_key("door~2")
    write_check_keys(tmp_path / "c.key", check_keys_of(master, ["door", "Tür"]))
    found = read_check_keys(tmp_path / "c.key")
    assert found.devices == {name: master.check_key(name) for name in ("door", "Tür")}
    assert found.key_id == master.id
    assert master.check_key("door").hex() not in repr(found)
    old = json.loads((tmp_path / "d.key").read_text())
    del old["check"]
    (tmp_path / "d.key").write_text(json.dumps(old))
    with pytest.raises(InvalidInput, match=r"before devices had a check key.*nothing was sealed"):
        Device(tmp_path / "d.key").check_key  # noqa: B018


def _start(path: Path, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.sensing.seal_worker", str(path), str(count)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def _used(lines: list[str]) -> list[tuple[Any, ...]]:
    """Every single draw as (step, law, epoch, number); a line cut by the kill is not one."""
    used = []
    for line in lines:
        if line.endswith("\n"):
            said = json.loads(line)
            where = said["step"], said["law"], said["epoch"]
            used += [(*where, said["first"] + i) for i in range(said["size"])]
    return used


@pytest.mark.fault
def test_no_draw_is_used_twice_after_kill_restart_fork_and_a_restored_file(
    master: MasterKey, tmp_path: Path
) -> None:
    path, backup = tmp_path / "d.key", tmp_path / "backup"
    write_device_key(path, master, "door")
    shutil.copy(path, backup)
    used: list[tuple[Any, ...]] = []
    for life in range(6):
        if life in (2, 4):
            shutil.copy(backup, path)  # a snapshot of the disk is put back: the step repeats
        endless = life % 2 == 1
        with _start(path, 10**9 if endless else 20) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(15 if endless else 1)]
            if endless:
                process.send_signal(signal.SIGKILL)
            used += _used(lines + process.stdout.readlines())
    steps = [use[0] for use in used]
    assert len(used) > 300
    assert max(steps) >= 1
    # Put back twice, so step 0 was walked three times: only the random part of the epoch kept them
    # apart.
    assert len({use[2] for use in used if use[0] == 0}) >= 3
    assert len(set(used)) == len(used)
    # A changed width never shares a block either: it is another key (tests/privacy/test_keyed.py).
    assert len({use[1] for use in used}) == 2


def _open(path: str, queue: Any) -> None:
    queue.put(Device(path).step)


@pytest.mark.fault
def test_processes_that_race_get_different_steps(master: MasterKey, tmp_path: Path) -> None:
    write_device_key(tmp_path / "d.key", master, "door")
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    racers = [
        context.Process(target=_open, args=(str(tmp_path / "d.key"), queue)) for _ in range(4)
    ]
    for racer in racers:
        racer.start()
    steps = sorted(queue.get(timeout=600) for _ in racers)
    for racer in racers:
        racer.join()
    assert steps == [0, 1, 2, 3]


@pytest.mark.fault
def test_a_device_that_cannot_write_its_step_does_not_seal(
    master: MasterKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "d.key"
    write_device_key(path, master, "door")
    before = path.read_text()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InvalidInput, match=r"No space left.*no key was made"):
        write_device_key(tmp_path / "other.key", master, "window")
    with pytest.raises(InvalidInput, match=r"No space left.*nothing was sealed"):
        Device(path)
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]

"""Keys over their lives: one name once, rotated, retired, locked; and a log of every unsealing."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sfumato.errors import ExistsAlready, InvalidInput, InvalidParameter
from sfumato.privacy import ZCDP
from sfumato.sensing import describe_site, heat_line, open_ledger, release_readings
from sfumato.sensing.pipeline import (
    list_keys,
    make_device_key,
    make_master_key,
    retire_device_key,
    rotate_device_key,
    unseal_readings,
)
from sfumato.sensing.release import Device, MasterKey, Readings, is_locked, read_master_key
from sfumato.sensing.release.key_log import KeyLog
from sfumato.sensing.release.keys import MASTER_FORMAT, write_device_key
from sfumato.sensing.results import KeyListing

pytestmark = pytest.mark.unit

LINE = heat_line(sources=20, sensors=4, diffusion_time=0.02)
WORDS = "correct horse"
HALL = describe_site("hall", operator=LINE, radius="1/10", unit="mass", per_source=1).site
VALUES = dict(zip(HALL.sensors.names, LINE.columns([7])[:, 0].tolist(), strict=True))


@pytest.fixture
def master(tmp_path: Path) -> Path:
    make_master_key(tmp_path / "m.key")
    return tmp_path / "m.key"


def sealed(folder: Path, device: Path) -> Readings:
    book = folder / "hall.ledger"
    if not book.exists():
        open_ledger(HALL, book, ZCDP(100))
    return release_readings(VALUES, HALL, ledger=book, loss=ZCDP(1), device=device).readings


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_two_keys_of_one_name_are_refused(master: Path, tmp_path: Path) -> None:
    make_device_key(master, tmp_path / "a.key", name="door")
    before = sorted(tmp_path.iterdir()), Path(f"{master}.log").read_text()
    with pytest.raises(ExistsAlready, match=r"'door' has a key .* no key was made"):
        make_device_key(master, tmp_path / "b.key", name="door")
    with pytest.raises(InvalidParameter, match="those of rotated keys"):
        make_device_key(master, tmp_path / "b.key", name="door~2")
    with pytest.raises(ExistsAlready, match="exists already"):
        make_device_key(master, tmp_path / "a.key", name="window")
    assert (sorted(tmp_path.iterdir()), Path(f"{master}.log").read_text()) == before


def test_all_files_of_keys_are_their_owners_alone(master: Path, tmp_path: Path) -> None:
    make_device_key(master, tmp_path / "a.key", name="door")
    rotate_device_key(master, tmp_path / "b.key", name="door")
    make_master_key(tmp_path / "locked.key", passphrase=WORDS)
    assert {mode(path) for path in tmp_path.iterdir()} == {0o600}


def test_a_rotated_key_is_another_and_what_the_old_one_sealed_still_opens(
    master: Path, tmp_path: Path
) -> None:
    make_device_key(master, tmp_path / "a.key", name="door")
    old = sealed(tmp_path, tmp_path / "a.key")
    made = rotate_device_key(master, tmp_path / "b.key", name="door", replaced=tmp_path / "a.key")
    assert made.device == "door~2"
    new = sealed(tmp_path, tmp_path / "b.key")
    values = [row[2] for row in unseal_readings(old, master).rows]
    assert [row[2] for row in unseal_readings(new, master).rows] == values
    # The old file was said to have ended: what a thief seals with it from now on is refused.
    late = sealed(tmp_path, tmp_path / "a.key")
    with pytest.raises(InvalidInput, match=r"at its step 1, but was rotated at step 0; nothing"):
        unseal_readings(late, master)
    again = rotate_device_key(master, tmp_path / "c.key", name="door")
    assert again.device == "door~3"
    assert [(one.name, one.status) for one in list_keys(master).devices] == [
        ("door", "rotated"),
        ("door~2", "rotated"),
        ("door~3", "in use"),
    ]


def test_a_retired_name_is_not_given_again(master: Path, tmp_path: Path) -> None:
    make_device_key(master, tmp_path / "a.key", name="door")
    first = sealed(tmp_path, tmp_path / "a.key")
    with pytest.raises(InvalidInput, match="'window' is not in the log"):
        retire_device_key(master, name="window")
    make_device_key(master, tmp_path / "b.key", name="window")
    with pytest.raises(InvalidInput, match="is the key of 'window', not of 'door'"):
        retire_device_key(master, name="door", replaced=tmp_path / "b.key")
    found = retire_device_key(master, name="door", replaced=tmp_path / "a.key")
    assert [(one.name, one.status, one.last_step) for one in found.devices] == [
        ("door", "retired", 0),
        ("window", "in use", None),
    ]
    with pytest.raises(ExistsAlready):
        make_device_key(master, tmp_path / "c.key", name="door")
    with pytest.raises(InvalidInput, match="'door' was retired"):
        rotate_device_key(master, tmp_path / "c.key", name="door")
    unseal_readings(first, master)
    with pytest.raises(InvalidInput, match="was retired at step 0"):
        unseal_readings(sealed(tmp_path, tmp_path / "a.key"), master)


@pytest.mark.parametrize("verb", ["rotate", "retire"])
def test_the_last_step_is_that_of_the_key_that_ends(
    master: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """Another process rotates the key just before this one has the log."""
    old, other = tmp_path / "door.key", tmp_path / "other.key"
    make_device_key(master, old, name="door")
    held = KeyLog.held

    @contextmanager
    def late(log: KeyLog) -> Iterator[None]:
        monkeypatch.setattr(KeyLog, "held", held)
        rotate_device_key(master, other, name="door", replaced=old)
        with log.held():
            yield

    def end() -> None:
        if verb == "rotate":
            rotate_device_key(master, tmp_path / "new.key", name="door", replaced=old)
        else:
            retire_device_key(master, name="door", replaced=old)

    monkeypatch.setattr(KeyLog, "held", late)
    with pytest.raises(InvalidInput, match="is the key of 'door', not of 'door~2'; nothing was"):
        end()
    assert {one.name: one.status for one in KeyLog(master).devices().values()} == {
        "door": "rotated",
        "door~2": "in use",
    }


def test_every_unsealing_is_in_the_log_before_it_happens(
    master: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_device_key(master, tmp_path / "a.key", name="door")
    sealed(tmp_path, tmp_path / "a.key").write(tmp_path / "r.json")
    unseal_readings(tmp_path / "r.json", master, out=tmp_path / "exact.csv")
    unseal_readings(tmp_path / "r.json", master)
    first, second = list_keys(master).unsealings
    assert (first.more["out"], second.more["out"]) == (str(tmp_path / "exact.csv"), "")
    assert first.more["readings"] == str(tmp_path / "r.json")
    assert first.more["sha256"] == second.more["sha256"]
    assert first.by
    assert first.time.endswith("Z")
    text = Path(f"{master}.log").read_text()
    assert not any(str(value) in text for value in VALUES.values())
    # What is refused is not in the log, and what cannot be logged is not unsealed.
    with pytest.raises(ExistsAlready):
        unseal_readings(tmp_path / "r.json", master, out=tmp_path / "exact.csv")
    assert len(list_keys(master).unsealings) == 2
    Path(f"{master}.log").unlink()
    Path(f"{master}.log").mkdir()
    with pytest.raises(InvalidInput, match="cannot"):
        unseal_readings(tmp_path / "r.json", master)


def test_a_log_that_is_none_is_refused(master: Path, tmp_path: Path) -> None:
    make_device_key(master, tmp_path / "a.key", name="door")
    log = Path(f"{master}.log")
    assert [json.loads(line)["device"] for line in log.read_text().splitlines()] == ["door"]
    log.write_text("nothing of the kind\n")
    with pytest.raises(InvalidInput, match="is not a log of a key"):
        list_keys(master)
    with pytest.raises(InvalidInput, match="is not a log of a key"):
        make_device_key(master, tmp_path / "b.key", name="window")
    assert not (tmp_path / "b.key").exists()


def test_a_locked_key_opens_with_its_passphrase_only(tmp_path: Path) -> None:
    path = tmp_path / "m.key"
    made = make_master_key(path, passphrase=WORDS)
    assert is_locked(path)
    assert read_master_key(path, passphrase=WORDS).id == made.id
    with pytest.raises(InvalidInput, match=r"is locked: it opens with its `passphrase`"):
        read_master_key(path)
    with pytest.raises(InvalidInput, match="does not open with this passphrase, or was changed"):
        read_master_key(path, passphrase=WORDS[:-1])
    held = json.loads(path.read_text())
    assert read_master_key(path, passphrase=WORDS).key.hex() not in path.read_text()
    path.write_text(json.dumps({**held, "id": "0" * 16}))
    with pytest.raises(InvalidInput, match="or was changed"):
        read_master_key(path, passphrase=WORDS)
    for work in ({"n": 2**30}, {"n": -2, "r": -4}, {"r": -1, "p": -1}, {"p": 0}):
        path.write_text(json.dumps({**held, "scrypt": {**held["scrypt"], **work}}))
        with pytest.raises(InvalidInput, match="is not a whole master key"):
            read_master_key(path, passphrase=WORDS)
    with pytest.raises(InvalidParameter, match="must not be empty"):
        make_master_key(tmp_path / "none.key", passphrase="")
    assert not (tmp_path / "none.key").exists()


def test_a_key_from_before_there_was_a_log_still_works(tmp_path: Path, key: bytes) -> None:
    path, old = tmp_path / "m.key", MasterKey(key)
    path.touch(mode=0o600)
    path.write_text(json.dumps({"format": MASTER_FORMAT, "id": old.id, "key": key.hex()}))
    write_device_key(tmp_path / "a.key", old, "door")
    assert list_keys(path).devices == ()
    assert len(unseal_readings(sealed(tmp_path, tmp_path / "a.key"), path).rows) == 4
    assert Device(tmp_path / "a.key").step == 1


def test_a_list_comes_back_from_its_json(master: Path, tmp_path: Path) -> None:
    make_device_key(master, tmp_path / "a.key", name="door")
    rotate_device_key(master, tmp_path / "b.key", name="door")
    found = list_keys(master)
    assert KeyListing.from_json(json.loads(json.dumps(found.to_json()))) == found

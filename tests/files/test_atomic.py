"""A file is there whole or not at all, goes through nobody's link, and leaves nothing beside it."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path
from typing import Any, NoReturn

import pytest
from tests.broken_disk import fill

from sfumato.errors import InvalidInput
from sfumato.files import atomic, check_writable, remove_drafts, whole_file, write_file, write_table
from sfumato.heatmap.export.formats import save
from sfumato.sensing.release import Device, new_master_key, write_device_key

pytestmark = pytest.mark.unit


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# links


def test_a_link_planted_at_a_foreseeable_name_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    result = tmp_path / "map.json"
    planted = tmp_path / f".map.json.{os.getpid()}.part"
    planted.symlink_to(victim)
    save(result, b"a map", overwrite=False)
    assert victim.read_text() == "mine", "a link was followed"
    assert result.read_text() == "a map"
    assert planted.is_symlink()
    assert names(tmp_path) == [planted.name, "map.json", "victim"]


def test_a_link_planted_beside_a_key_is_not_followed(tmp_path: Path) -> None:
    victim, key = tmp_path / "victim", tmp_path / "d.key"
    victim.write_text("mine")
    write_device_key(key, new_master_key(), "door")
    (tmp_path / ".d.key.next").symlink_to(victim)
    assert Device(key).step == 0
    assert victim.read_text() == "mine"
    assert not key.is_symlink()


@pytest.mark.parametrize("target", ["there", "nowhere"])
def test_a_result_that_is_a_link_is_kept_or_gives_way_itself(tmp_path: Path, target: str) -> None:
    other, link = tmp_path / target, tmp_path / "map.json"
    if target == "there":
        other.write_text("mine")
    link.symlink_to(other)
    with pytest.raises(InvalidInput, match="exists already and is kept; choose another file"):
        write_file(link, "new")
    with pytest.raises(InvalidInput, match="exists already and is kept; nothing was run"):
        check_writable(link, lost="nothing was run")
    assert link.is_symlink()
    write_file(link, "new", overwrite=True)
    assert (link.read_text(), link.is_symlink()) == ("new", False)
    assert other.exists() == (target == "there")
    assert names(tmp_path) == sorted(
        {"map.json", other.name} if target == "there" else {"map.json"}
    )
    if target == "there":
        assert other.read_text() == "mine"


@pytest.mark.parametrize("what", ["device", "pipe", "folder", "link to a device"])
def test_what_is_no_ordinary_file_never_gives_way(tmp_path: Path, what: str) -> None:
    path = tmp_path / "out.png"
    match what:
        case "device":
            path = Path(os.devnull)
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case _:
            path.symlink_to(os.devnull)
    before = path.lstat()
    said = r"^cannot write .*(no ordinary file|Is a directory)$"
    with pytest.raises(InvalidInput, match=said):
        write_file(path, "x", overwrite=True)
    with pytest.raises(InvalidInput, match=said):
        check_writable(path, overwrite=True)
    assert (path.lstat().st_ino, path.lstat().st_mode) == (before.st_ino, before.st_mode)


# drafts


@pytest.mark.system
def test_a_draft_is_beside_its_result_new_and_of_a_name_nobody_foresees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[tuple[Path, int]] = []
    true = os.open

    def watched(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if flags & os.O_CREAT:
            opened.append((Path(path), flags))
        return true(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", watched)
    for _ in range(2):
        write_file(tmp_path / "a.txt", "a", overwrite=True)
    (one, flags), (two, _) = opened
    assert flags & os.O_EXCL
    assert flags & os.O_NOFOLLOW
    assert one.parent == two.parent == tmp_path
    assert one.name != two.name
    assert len(one.name) == len(".a.txt..part") + 32
    assert names(tmp_path) == ["a.txt"]


def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"

    def fail(*, overwrite: bool) -> NoReturn:
        with whole_file(path, overwrite=overwrite) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail(overwrite=False)
    assert names(tmp_path) == []
    write_file(path, "old")
    with pytest.raises(KeyboardInterrupt):
        fail(overwrite=True)
    assert names(tmp_path) == ["a.txt"]
    assert path.read_text() == "old"


def test_a_disk_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    write_file(path, "old")
    fill(monkeypatch)
    with pytest.raises(
        InvalidInput, match=r"^cannot write .*: No space left on device; it is paid$"
    ):
        write_file(path, "new", overwrite=True, lost="it is paid")
    assert names(tmp_path) == ["a.txt"]
    assert path.read_text() == "old"


def test_what_is_written_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    sync, publish = os.fsync, atomic._publish

    def watched(handle: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        sync(handle)

    def named(draft: Path, target: Path, *, overwrite: bool) -> None:
        assert draft.read_text() == "new"
        steps.append("name")
        publish(draft, target, overwrite=overwrite)

    monkeypatch.setattr(os, "fsync", watched)
    monkeypatch.setattr(atomic, "_publish", named)
    write_file(tmp_path / "a.txt", "new")
    assert steps == ["file", "name", "folder"]


def test_only_drafts_of_the_file_itself_are_removed(tmp_path: Path) -> None:
    kept = [
        f".b.key.{'0' * 32}.part",
        f".a.key.{'x' * 32}.part",
        ".a.key.part",
        "a.key",
        f".a.key.{'0' * 32}",
    ]
    for name in [*kept, f".a.key.{'0' * 32}.part"]:
        (tmp_path / name).touch()
    remove_drafts(tmp_path / "a.key")
    assert names(tmp_path) == sorted(kept)


# exclusive


def test_a_file_that_exists_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_file(path, "old")
    with pytest.raises(
        InvalidInput, match=r"a\.txt exists already and is kept; write it elsewhere$"
    ):
        write_file(path, "new", kept="write it elsewhere")
    assert path.read_text() == "old"


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_comes_meanwhile_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    if not links:
        monkeypatch.setattr(os, "link", without_links)
    path = tmp_path / "a.txt"

    def write() -> None:
        with whole_file(path) as file:
            file.write(b"new")
            path.write_text("theirs")

    with pytest.raises(InvalidInput, match="exists already"):
        write()
    assert path.read_text() == "theirs"
    assert names(tmp_path) == ["a.txt"]


def without_links(*_: Any, **__: Any) -> NoReturn:
    raise PermissionError(errno.EPERM, "Operation not permitted")


def test_a_disk_without_second_names_is_written_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", without_links)
    path = tmp_path / "a.txt"
    write_file(path, "new")
    assert path.read_text() == "new"
    assert names(tmp_path) == ["a.txt"]
    monkeypatch.setattr(Path, "replace", without_links)
    with pytest.raises(InvalidInput, match="Operation not permitted"):
        write_file(tmp_path / "b.txt", "new")
    assert names(tmp_path) == ["a.txt"]


# who may read


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002, 0o000])
def test_a_new_file_may_be_read_by_whom_the_umask_lets(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        (tmp_path / "plain").open("w").close()
        for overwrite in (False, True):
            path = tmp_path / f"ours-{overwrite}"
            write_file(path, "x", overwrite=overwrite)
            assert mode(path) == mode(tmp_path / "plain")
            write_file(tmp_path / f"private-{overwrite}", "x", private=True, overwrite=overwrite)
            assert mode(tmp_path / f"private-{overwrite}") == 0o600
    finally:
        os.umask(before)


@pytest.mark.parametrize("bits", [0o600, 0o640, 0o666, 0o755])
def test_a_file_that_gives_way_leaves_who_may_read_it(tmp_path: Path, bits: int) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    path.chmod(bits)
    write_file(path, "new", overwrite=True)
    assert (path.read_text(), mode(path)) == ("new", bits)
    write_file(path, "new", overwrite=True, private=True)
    assert mode(path) == 0o600


def test_a_draft_is_never_more_open_than_its_result(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    path.chmod(0o600)
    with whole_file(path, overwrite=True) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600


def test_a_file_that_may_not_be_written_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everything
    with pytest.raises(InvalidInput, match="Permission denied"):
        write_file(path, "new", overwrite=True)
    assert path.read_text() == "old"


# names and places


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    for act in (lambda path: write_file(path, "x"), check_writable):
        with pytest.raises(InvalidInput, match=r"cannot write .*: No such file or directory"):
            act(tmp_path / "no" / "a.txt")


def test_a_folder_behind_a_link_is_the_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    write_file(tmp_path / "link" / "a.txt", "x")
    assert names(tmp_path / "real") == ["a.txt"]


@pytest.mark.parametrize("name", ["a" * 255, "ü" * 127, "a b\n'$(c)", "-"])
def test_any_name_a_file_may_have(tmp_path: Path, name: str) -> None:
    write_file(tmp_path / name, "x")
    assert names(tmp_path) == [name]


def test_a_bare_name_is_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check_writable("a.txt")
    assert names(tmp_path) == []
    write_file("a.txt", "ü")
    assert (tmp_path / "a.txt").read_bytes() == "ü".encode()


def test_another_thread_may_write(tmp_path: Path) -> None:
    thread = threading.Thread(target=write_file, args=(tmp_path / "a.txt", b"x"))
    thread.start()
    thread.join()
    assert names(tmp_path) == ["a.txt"]


def test_a_table_has_plain_line_ends_and_quotes(tmp_path: Path) -> None:
    write_table(tmp_path / "a.csv", ["node", "said"], [(1, "a,b"), (2, 'c"\nd')], private=True)
    assert (tmp_path / "a.csv").read_bytes() == b'node,said\n1,"a,b"\n2,"c""\nd"\n'
    assert mode(tmp_path / "a.csv") == 0o600

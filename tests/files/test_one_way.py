"""No room writes a file but through `files`: the source is read for any other way."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

HOUSE = Path(__file__).parents[2] / "src" / "sfumato"
WRITING = {
    "write_text",
    "write_bytes",
    "touch",
    "symlink_to",
    "hardlink_to",
    "mkstemp",
    "mkdtemp",
    "mktemp",
}
TEMPORARY = {"NamedTemporaryFile", "TemporaryFile", "TemporaryDirectory", "SpooledTemporaryFile"}
OF_OS = {"replace", "rename", "renames", "link", "symlink", "mkfifo", "truncate", "write"}
COPYING = {"copyfile", "copy", "copy2", "move"}
SAVING = {
    "savefig",
    "save",
    "savez",
    "savez_compressed",
    "savetxt",
    "write_table",
    "to_csv",
    "to_parquet",
}


def writes(source: str) -> list[str]:
    """Calls by which a file may come to be, or to change."""
    found = []
    tree = ast.parse(source)
    # A buffer is no file: names that are made by BytesIO or are what `whole_file` gives.
    buffers = {
        name.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and "BytesIO(" in ast.unparse(node.value)
        for name in node.targets
        if isinstance(name, ast.Name)
    } | {
        item.optional_vars.id
        for node in ast.walk(tree)
        if isinstance(node, ast.With)
        for item in node.items
        if isinstance(item.optional_vars, ast.Name)
        and "whole_file(" in ast.unparse(item.context_expr)
    }
    homes = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in {"os", "shutil", "sqlite3"}
        for alias in node.names
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Attribute(owner, name):
                of = ast.unparse(owner)
            case ast.Name(name):
                of = homes.get(name, "")
            case _:
                continue
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        modes = [
            one.value
            for one in given
            if isinstance(one, ast.Constant) and isinstance(one.value, str)
        ]
        said = ast.unparse(node)
        held = any(isinstance(one, ast.Name) and one.id in buffers for one in given)
        opens = any(one.strip("rbt") in {"w", "x", "a", "+", "w+", "x+", "a+"} for one in modes)
        if (
            name in WRITING | TEMPORARY
            or (of == "os" and name in OF_OS)
            or (of == "os" and name == "open" and "O_RDONLY" not in said and "devnull" not in said)
            or (of != "os" and name == "open" and opens)
            or (of and name in SAVING and not held)
            or (of == "shutil" and name in COPYING)
            or (
                of == "sqlite3"
                and name == "connect"
                and ":memory:" not in modes
                and "mode=ro" not in said
            )
        ):
            found.append(said[:60])
    return found


# A ledger is appended to in place, under its lock; its drafts are named, and removed, by `files`, but
# have the owner and the rights of the one before. SQLite opens a file only to roll back a journal of
# the first versions. What is kept beside a ledger is appended to in place as well.
OF_A_LEDGER = {
    "book.py": {
        "os.link(draft, path)",
        "os.link(draft, new)",
        "os.replace(draft, real)",
    },
    "disk.py": {
        "os.open(real, mode | os.O_CLOEXEC | os.O_NOFOLLOW)",
        "os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_C",
        "open(handle, 'wb')",
    },
    "format1.py": {"sqlite3.connect(f'{real.as_uri()}?mode=rw', uri=True)"},
    "store.py": {
        "os.open(path, flags | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOL",
        "os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)",
    },
}
# Neighbors of public rows are made in a scratch folder, under one name, and give way to the next.
OF_NEIGHBORS = {
    "pq.write_table(table.filter(pa.array([who != one for who in "
}  # into a file that is there whole

# What a process of ours says last: a file without a name, which ends with both.
OF_A_CHILD = {"tempfile.TemporaryFile()"}

# The rounds of a network are in a database, which knows how to be killed.
OF_A_STORE = {"sqlite3.connect(self.path, check_same_thread=False, isolatio"}


def test_every_file_is_written_in_one_room() -> None:
    judged = sorted(set(HOUSE.rglob("*.py")) - set((HOUSE / "files").iterdir()))
    assert len(judged) > 100
    found = {str(file.relative_to(HOUSE)): writes(file.read_text()) for file in judged}
    for file, lines in OF_A_LEDGER.items():
        assert set(found.pop(f"privacy/ledger/storage/{file}")) == lines
    assert set(found.pop("records/without_user.py")) <= OF_NEIGHBORS
    assert set(found.pop("heatmap/distributed/secure_sum.py")) == OF_A_CHILD
    assert set(found.pop("network/collector/store.py")) == OF_A_STORE
    assert not {file: lines for file, lines in found.items() if lines}


@pytest.mark.parametrize(
    "line",
    [
        "path.write_text('x')",
        "Path('a').write_bytes(b'x')",
        "path.open('w')",
        "open(path, 'xb')",
        "path.open(mode='a')",
        "os.open(path, os.O_WRONLY | os.O_CREAT)",
        "os.replace(a, b)",
        "os.link(a, b)",
        "tempfile.mkdtemp()",
        "tempfile.NamedTemporaryFile()",
        "figure.savefig(path)",
        "image.save(path, format='PNG')",
        "pq.write_table(table, path)",
        "np.savetxt(path, x)",
        "shutil.copyfile(a, b)",
        "shutil.copy(a, b)",
        "shutil.copy2(a, b)",
        "shutil.move(a, b)",
        "from shutil import move\nmove(a, b)",
        "from os import replace\nreplace(a, b)",
        "sqlite3.connect(path)",
        "sqlite3.connect(f'file:{path}?mode=rw', uri=True)",
    ],
)
def test_another_way_is_seen(line: str) -> None:
    assert writes(line)


@pytest.mark.parametrize(
    "line",
    [
        "path.open(encoding='utf-8')",
        "path.open('rb')",
        "os.open(folder, os.O_RDONLY)",
        "out = io.BytesIO()\nfigure.savefig(out, format='png')",
        "with whole_file(path) as file:\n    pq.write_table(table, file)",
        "text.replace('a', 'w')",
        "write_file(path, data)",
        "sqlite3.connect(':memory:', isolation_level=None)",
        "sqlite3.connect(f'file:{path}?mode=ro', uri=True)",
        "grid.copy()",
        "from copy import copy\ncopy(a)",
    ],
)
def test_reading_and_buffers_are_left_alone(line: str) -> None:
    assert not writes(line)

"""No room writes a file but through `files`: the source is read for any other way."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

HOUSE = Path(__file__).parents[2] / "src" / "sfumato"
WRITING = {"write_text", "write_bytes", "touch", "symlink_to", "hardlink_to", "mkstemp", "mkdtemp", "mktemp"}
TEMPORARY = {"NamedTemporaryFile", "TemporaryFile", "TemporaryDirectory", "SpooledTemporaryFile"}
OF_OS = {"replace", "rename", "renames", "link", "symlink", "mkfifo", "truncate", "write"}
SAVING = {"savefig", "save", "savez", "savez_compressed", "savetxt", "write_table", "to_csv", "to_parquet"}


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
        if isinstance(item.optional_vars, ast.Name) and "whole_file(" in ast.unparse(item.context_expr)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Attribute(owner, name):
                of = ast.unparse(owner)
            case ast.Name(name):
                of = ""
            case _:
                continue
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        modes = [one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        said = ast.unparse(node)
        held = any(isinstance(one, ast.Name) and one.id in buffers for one in given)
        opens = any(one.strip("rbt") in {"w", "x", "a", "+", "w+", "x+", "a+"} for one in modes)
        if (
            name in WRITING | TEMPORARY
            or (of == "os" and name in OF_OS)
            or (of == "os" and name == "open" and "O_RDONLY" not in said and "devnull" not in said)
            or (of != "os" and name == "open" and opens)
            or (of and name in SAVING and not held)
        ):
            found.append(f"line {node.lineno}: {said[:80]}")
    return found


def test_every_file_is_written_in_one_room() -> None:
    # A ledger is put in its place by its own room, under its own lock.
    others = {HOUSE / "privacy" / "ledger_file.py", *(HOUSE / "files").iterdir()}
    judged = sorted(set(HOUSE.rglob("*.py")) - others)
    assert len(judged) > 100
    found = {str(file.relative_to(HOUSE)): writes(file.read_text()) for file in judged}
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
    ],
)
def test_reading_and_buffers_are_left_alone(line: str) -> None:
    assert not writes(line)

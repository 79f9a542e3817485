"""The reference pages, made of the code itself when the site is built: nothing of them is committed.

`pages()` gives the command line's page from its own help, the library's from signatures and
docstrings, and the list of files from the first lines of modules. `docs/order.py` hands them to
mkdocs. `python docs/make_reference.py` writes the table of folders into explain/architecture.md,
which a test compares with a fresh one.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, UnionType
from typing import Any, is_typeddict

import typer

DOCS = Path(__file__).parent
HOUSE = DOCS.parent / "src" / "sfumato"
WIDTH = 100
GENERATED = ("reference/cli.md", "reference/api.md", "reference/modules.md")
SECTIONS = ("Args", "Attributes", "Returns", "Yields", "Raises")


def rooms() -> list[str]:
    """Every folder of the package that exports names, the package itself first."""
    folders = sorted(stub.parent.relative_to(HOUSE) for stub in HOUSE.rglob("__init__.pyi"))
    return [".".join(("sfumato", *folder.parts)) for folder in folders]


def pages() -> dict[str, str]:
    """Every generated page, by its place below docs/."""
    made = (command_page(), library_page(), modules_page())
    return dict(zip(GENERATED, made, strict=True))


# -- files and folders


def promise(file: Path) -> str:
    """The first line of a module's docstring."""
    return (ast.get_docstring(ast.parse(file.read_text("utf-8"))) or "").partition("\n")[0]


def folder_table() -> str:
    """One row for each folder of the package: what is in it, and how many files."""
    rows = ["| folder | files | what is there |", "|---|---|---|"]
    for init in sorted(HOUSE.rglob("__init__.py"), key=lambda file: file.parent):
        name = init.parent.relative_to(HOUSE.parent).as_posix()
        count = len([file for file in init.parent.glob("*.py") if file.name != "__init__.py"])
        rows.append(f"| `{name}/` | {count} | {escaped(promise(init))} |")
    return "\n".join(rows)


def modules_page() -> str:
    """Every file of the package with the first line of its docstring."""
    parts = ["# Files", "Every file of the package, by folder."]
    for init in sorted(HOUSE.rglob("__init__.py"), key=lambda file: file.parent):
        files = sorted(file for file in init.parent.glob("*.py") if file.name != "__init__.py")
        rows = [f"| `{file.name}` | {escaped(promise(file))} |" for file in files]
        parts += [
            f"## `{init.parent.relative_to(HOUSE.parent).as_posix()}/`",
            escaped(promise(init)),
        ]
        if rows:
            parts.append("\n".join(["| file | what is there |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def with_folder_table(page: str) -> str:
    """The page on architecture with a fresh table of folders between its marks."""
    begin, end = "<!-- folders: made by docs/make_reference.py -->\n", "\n<!-- end of folders -->"
    before, _, rest = page.partition(begin)
    return before + begin + folder_table() + end + rest.partition(end)[2]


# -- the command line


def command_page() -> str:
    """The page of `sfumato`: each command with its arguments and options."""
    from sfumato.cli.main import app

    root = typer.main.get_command(app)
    context = typer.Context(root, info_name="sfumato", **root.context_settings)
    return "\n\n".join(["# Command line", *_command(root, context)]) + "\n"


def _command(command: Any, context: Any) -> Iterator[str]:
    from sfumato.cli.listed import list_names

    list_names(command)
    yield f"## `{context.command_path}`"
    yield escaped(inspect.cleandoc(command.help or ""))
    hidden = {f"[{parameter.name}]..." for parameter in command.params if parameter.hidden}
    pieces = [piece for piece in command.collect_usage_pieces(context) if piece not in hidden]
    usage = " ".join([context.command_path, *pieces])
    yield f"```text\n{usage}\n```"
    rows = [row for parameter in command.params if (row := _row(parameter, context))]
    if rows:
        yield "\n".join(
            ["| parameter | meaning | default | variable |", "|---|---|---|---|", *rows]
        )
    if command.epilog:
        yield escaped(command.epilog)
    for name, below in getattr(command, "commands", {}).items():
        yield from _command(below, typer.Context(below, info_name=name, parent=context))


def _row(parameter: Any, context: Any) -> str:
    """One line of a table, from what the help says of a parameter; nothing for a hidden one."""
    if parameter.hidden:
        return ""
    spelling, said = parameter.get_help_record(context)
    meaning, *rest = re.split(r"\s+\[(?=(?:env var|default|required|x>|x<)[^\]]*\]$)", said)
    extras = rest[0].removesuffix("]").split("; ") if rest else []
    facts = dict(extra.partition(": ")[::2] for extra in extras)
    name, _, kind = spelling.partition(" <")
    if "|" in kind:
        meaning += (
            " One of "
            + ", ".join(f"`{choice}`" for choice in kind.removesuffix(">").split("|"))
            + "."
        )
    elif kind.startswith("list["):
        name += f" <{kind[5:-2].lower()}>"
        meaning += " May be given more than once."
    elif kind:
        name += f" <{kind}"
    default = "required" if "required" in facts or parameter.required else facts.get("default", "")
    variable = f"`{facts['env var']}`" if "env var" in facts else ""
    shown = f"`{default}`" if default and default != "required" else default
    return f"| `{name}` | {escaped(meaning)} | {shown} | {variable} |"


# -- the library


def library_page() -> str:
    """The page of the library: every public name with its signature and docstring."""
    parts = ["# Library"]
    for room in rooms():
        module = importlib.import_module(room)
        parts += [f"## `{room}`", escaped(inspect.cleandoc(module.__doc__ or ""))]
        for name in sorted(module.__all__, key=str.lower):
            parts += _name(name, module)
    errors = importlib.import_module("sfumato.errors")
    parts += ["## `sfumato.errors`", *prose(errors.__doc__ or "")]
    return "\n\n".join(parts) + "\n"


def _name(name: str, module: ModuleType) -> Iterator[str]:
    value = getattr(module, name)
    yield f"### `{name}`"
    if inspect.isclass(value) and value.__module__ != "builtins":
        yield from _class(name, value)
    elif inspect.isroutine(value):
        yield code(f"{name}{signature(value)}")
        yield from prose(value.__doc__ or "")
    else:
        yield from _constant(name, value, module)


def _class(name: str, value: type) -> Iterator[str]:
    if getattr(value, "_is_protocol", False):
        yield code(f"class {name}(Protocol)")
    elif is_typeddict(value):
        fields = "".join(f"\n    {key}: {kind}" for key, kind in _annotations(value).items())
        yield code(f"class {name}(TypedDict):{fields}")
    elif issubclass(value, Exception):
        yield code(f"class {name}({value.__bases__[0].__name__})")
    else:
        yield code(f"class {name}{signature(value, returns=False)}")
    yield from prose(value.__doc__ or "")
    public = {key: member for key, member in vars(value).items() if not key.startswith("_")}
    for key, member in public.items():
        if isinstance(member, property):
            yield code(f"{name}.{key}")
            yield from prose(member.__doc__ or "")
            continue
        bare = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        if inspect.isfunction(bare):
            first = 0 if isinstance(member, staticmethod) else 1
            yield code(f"{name}.{key}{signature(bare, skip=first)}")
            yield from prose(bare.__doc__ or "")


def _annotations(value: type) -> dict[str, str]:
    return {
        key: str(getattr(kind, "__forward_arg__", kind))
        for key, kind in value.__annotations__.items()
    }


def _constant(name: str, value: Any, module: ModuleType) -> Iterator[str]:
    union = value.__args__ if isinstance(value, UnionType) else ()
    yield code(f"{name} = {' | '.join(part.__name__ for part in union) if union else repr(value)}")
    statements = _statements(_home(name, module))
    for before, after in itertools.pairwise(statements):
        match before, after:
            case ast.Assign(targets=[ast.Name(id)]), ast.Expr(ast.Constant(str(text))) if (
                id == name
            ):
                yield from prose(text)


def _home(name: str, module: ModuleType) -> ModuleType:
    """The module that a folder's stub takes a name from."""
    stub = Path(str(module.__file__)).with_suffix(".pyi")
    if stub.exists():
        for node in ast.parse(stub.read_text("utf-8")).body:
            if isinstance(node, ast.ImportFrom) and name in {alias.name for alias in node.names}:
                return importlib.import_module(f"{module.__name__}.{node.module}")
    return module


def _statements(module: ModuleType) -> list[ast.stmt]:
    return ast.parse(inspect.getsource(module)).body


class Written(str):
    """An annotation as the source has it, without quotes round it."""

    __slots__ = ()
    __repr__ = str.__str__


def signature(function: Callable[..., Any], *, skip: int = 0, returns: bool = True) -> str:
    """How to call a function, one parameter a line where a single line would be too long."""
    found = inspect.signature(function)
    parameters = [
        parameter.replace(annotation=_written(parameter.annotation))
        for parameter in list(found.parameters.values())[skip:]
    ]
    end = _written(found.return_annotation) if returns else inspect.Signature.empty
    whole = str(inspect.Signature(parameters, return_annotation=end))
    if len(whole) + len(function.__name__) <= WIDTH:
        return whole
    opening, _, rest = whole.partition("(")
    inside, closing, tail = rest.rpartition(") ->") if ") ->" in rest else rest.rpartition(")")
    lines = re.split(r", (?=\*|/|\w+:)", inside)
    return f"{opening}(\n    " + ",\n    ".join(lines) + f",\n{closing}{tail}"


def _written(annotation: Any) -> Any:
    return Written(annotation) if isinstance(annotation, str) else annotation


def prose(docstring: str) -> Iterator[str]:
    """A docstring as Markdown: paragraphs, tables, drawings and examples."""
    for block in re.split(r"\n\s*\n", inspect.cleandoc(docstring)):
        title, _, below = block.partition(":\n")
        if title in SECTIONS:
            yield from section(title, below)
        elif block.startswith(">>>"):
            yield code(block)
        elif block.startswith(" "):
            yield f"```text\n{block}\n```"
        elif block.startswith("|"):
            yield block
        elif block:
            yield linked(escaped(block))


def section(title: str, below: str) -> Iterator[str]:
    """A part of a Google-style docstring: a list for parameters and errors, a sentence otherwise."""
    text = inspect.cleandoc(below)
    if title in {"Returns", "Yields"}:
        yield f"**{title}:** {linked(escaped(' '.join(text.split())))}"
        return
    entries = [" ".join(entry.split()) for entry in re.split(r"\n(?=\S)", text)]
    named = [entry.partition(": ") for entry in entries]
    rows = [f"- `{name}`: {linked(escaped(meaning))}" for name, _, meaning in named]
    yield f"**{title}:**\n\n" + "\n".join(rows)


def code(text: str) -> str:
    """A block of Python."""
    return f"```python\n{text}\n```"


def escaped(text: str) -> str:
    """Text whose stars, underscores, bars and angles are what they look like; code in backticks stays."""
    parts = re.split(r"(`[^`]*`)", text)
    plain = (re.sub(r"([*_|])", r"\\\1", part).replace("<", "&lt;") for part in parts[::2])
    return "".join(part for pair in zip(plain, [*parts[1::2], ""], strict=True) for part in pair)


def linked(text: str) -> str:
    """Pages of this site that a docstring names become links."""
    return re.sub(r"\bdocs/([a-z/-]+\.md)\b", r"[docs/\1](../\1)", text)


if __name__ == "__main__":
    page = DOCS / "explain" / "architecture.md"
    page.write_text(with_folder_table(page.read_text("utf-8")), encoding="utf-8")

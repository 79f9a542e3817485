"""The house keeps its plan: who may import whom, names and lengths of files, where chance comes from."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

HOUSE = Path(__file__).parent.parent / "src" / "sfumato"
FILES = sorted(HOUSE.rglob("*.py"))

# The doors of ARCHITECTURE. A room may also import itself and errors.
CAPABILITIES = {"heatmap", "sensing", "audit", "online", "graphon"}
GROUND = {"spaces", "files", "transport", "privacy", "records", "figures"}
DOORS: dict[str, set[str]] = {
    "errors": set(),
    "_types": set(),
    "_validate": set(),
    "_registry": set(),
    "_compiled": set(),
    "_process": set(),
    "_random": set(),
    "spaces": set(),
    "files": {"spaces"},
    "privacy": {"files"},  # a release is saved
    "transport": {"spaces", "figures"},
    "figures": {"spaces"},
    "records": {"spaces", "files", "privacy"},  # what engines spill is removed
    "heatmap": {"spaces", "files", "transport", "privacy", "records", "figures"},
    "sensing": {"spaces", "files", "transport", "privacy", "figures"},
    "online": {"spaces", "files", "transport", "privacy", "figures"},
    "graphon": {"spaces", "files", "transport", "privacy", "figures"},
    "audit": {"files", "privacy", "figures"},
    "report": CAPABILITIES | {"files", "figures", "privacy"},
    "network": {"spaces", "files", "privacy", "sensing", "figures"},
    "cli": GROUND | CAPABILITIES | {"report", "web", "network"},
    "web": GROUND | CAPABILITIES | {"report", "cli"},
    "widget": {"heatmap", "sensing", "web"},
}
FRONT_DOORS = {"cli", "web"}
# What every room may import, and what nobody needs a door for.
OPEN = {
    "sfumato.errors",
    "sfumato._types",
    "sfumato._validate",
    "sfumato._registry",
    "sfumato._compiled",
    "sfumato._process",
    "sfumato._random",
}
BANNED_NAMES = {"utils", "common", "helpers", "core"}


def module_path(file: Path) -> tuple[str, ...]:
    """The dotted path of a file inside the house: spaces/line.py is ("spaces", "line").

    `__main__` is the house's own, as `__init__` is.
    """
    parts = file.relative_to(HOUSE).with_suffix("").parts
    return parts[:-1] if parts[-1] in ("__init__", "__main__") else parts


def imported(tree: ast.AST, package: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Every import below tree, in full: `from . import a` in package b is ("sfumato", "b", "a")."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                yield from (tuple(alias.name.split(".")) for alias in names)
            case ast.ImportFrom(module, names, level):
                above = ("sfumato", *package)[: len(package) + 2 - level] if level else ()
                base = above + tuple(module.split(".") if module else ())
                yield from ((*base, alias.name) for alias in names)
            case ast.Call(
                ast.Name(name) | ast.Attribute(attr=name), [ast.Constant(str(target)), *_]
            ) if name in {"import_module", "__import__"}:
                yield tuple(target.split("."))


def wrong_doors(source: str, path: tuple[str, ...], *, is_package: bool = False) -> list[str]:
    """What source, as the module at path, imports against the plan."""
    room, package = path[0], path if is_package else path[:-1]
    wrong = []
    for target in imported(ast.parse(source), package):
        if target[0] != "sfumato" or target == ("sfumato", "__version__"):
            continue
        other, name = target[1] if len(target) > 1 else "", ".".join(target)
        if other in {
            room,
            "errors",
            "_types",
            "_validate",
            "_registry",
            "_compiled",
            "_process",
            "_random",
        }:
            continue
        if other not in DOORS:  # the house itself, or a name it re-exports: a way round the table
            if room not in FRONT_DOORS:
                wrong.append(f"{room} imports {name}: name the room it comes from")
        elif other not in DOORS.get(room, set()):
            wrong.append(f"{room} imports {name}: there is no door from {room} to {other}")
        elif any(part.startswith("_") and not part.endswith("__") for part in target):
            wrong.append(f"{room} imports {name}: that is private to {other}")
    return wrong


def exported(package: tuple[str, ...]) -> set[str]:
    """The names a folder's door has, from the `__all__` of its stub; none where there is no stub."""
    stub = HOUSE.joinpath(*package[1:]) / "__init__.pyi"
    if not stub.exists():
        return set()
    return next(
        set(ast.literal_eval(node.value))
        for node in ast.parse(stub.read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )


def past_doors(source: str, room: str) -> list[str]:
    """What source imports of other rooms that is in no folder's `__all__`."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [
                a.name for a in node.names if a.name.startswith("sfumato.") and a.name not in OPEN
            ]
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("sfumato."):
            continue
        module = str(node.module)
        if module in OPEN or module.split(".")[1] in {room, *FRONT_DOORS}:
            continue
        package = tuple(module.split("."))
        for alias in node.names:
            folder = HOUSE.joinpath(*package[1:], alias.name)
            if alias.name not in exported(package) and not (folder / "__init__.py").exists():
                found.append(f"{module}.{alias.name}")
    return found


def eager_rooms(source: str) -> list[str]:
    """Rooms that sfumato/__init__.py would load at once, rather than in a function or for type checkers."""
    statements = [
        node for node in ast.parse(source).body if isinstance(node, (ast.Import, ast.ImportFrom))
    ]
    targets = [target for node in statements for target in imported(node, ())]
    return [".".join(t) for t in targets if t[0] == "sfumato" and t[1:2] != ("errors",)]


def foreign_chance(source: str) -> list[str]:
    """Randomness that is not our noise; only a parameter's annotation may say np.random.Generator."""
    tree = ast.parse(source)
    found = [
        ".".join(t) for t in imported(tree, ()) if t[0] == "random" or t[:2] == ("numpy", "random")
    ]
    nodes = list(ast.walk(tree))
    imports = [alias for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    numpy = {"np", "numpy"} | {alias.asname for alias in imports if alias.name == "numpy"}
    annotations = [
        node.annotation for node in nodes if isinstance(node, ast.arg) and node.annotation
    ]
    allowed = {
        node.value
        for annotation in annotations
        for node in ast.walk(annotation)
        if isinstance(node, ast.Attribute) and node.attr == "Generator"
    }
    for node in nodes:
        if isinstance(node, ast.Attribute) and node not in allowed:
            of_numpy = isinstance(node.value, ast.Name) and node.value.id in numpy
            # scipy's rvs draws from numpy.random
            if node.attr == "rvs" or (node.attr == "random" and of_numpy):
                found.append(f"{ast.unparse(node)} in line {node.lineno}")
    return found


def test_every_room_is_in_the_plan() -> None:
    rooms = {module_path(file)[0] for file in FILES if module_path(file)}
    assert rooms
    assert rooms <= DOORS.keys()


def test_rooms_import_only_through_their_doors() -> None:
    inside = [file for file in FILES if module_path(file)]
    wrong = {
        str(file.relative_to(HOUSE)): wrong_doors(
            file.read_text(), module_path(file), is_package=file.name == "__init__.py"
        )
        for file in inside
    }
    assert not {file: lines for file, lines in wrong.items() if lines}


def test_rooms_import_only_what_others_export() -> None:
    found = {str(file.relative_to(HOUSE)): past_doors(file.read_text(), module_path(file)[0])
             for file in FILES if module_path(file)}  # fmt: skip
    assert not {file: names for file, names in found.items() if names}


def test_experiments_and_benchmarks_use_public_names() -> None:
    top = HOUSE.parent.parent
    files = [
        file
        for name in ("experiments", "benchmarks", "docs")
        for file in (top / name).rglob("*.py")
    ]
    found = {str(file.relative_to(top)): past_doors(file.read_text(), "") for file in files}
    assert len(files) > 50
    assert not {file: names for file, names in found.items() if names}


def test_no_module_is_hidden_by_a_name_of_its_folder() -> None:
    for stub in HOUSE.rglob("__init__.pyi"):
        package = ("sfumato", *stub.parent.relative_to(HOUSE).parts)
        modules = {file.stem for file in stub.parent.glob("*.py")} | {
            one.name for one in stub.parent.iterdir() if (one / "__init__.py").exists()
        }
        assert not exported(package) & modules, ".".join(package)


def test_the_package_itself_loads_no_room() -> None:
    assert not eager_rooms((HOUSE / "__init__.py").read_text())


def test_no_drawer_for_leftovers() -> None:
    named = [
        file for file in FILES if {part.strip("_") for part in module_path(file)} & BANNED_NAMES
    ]
    assert not named


def test_long_files_explain_themselves() -> None:
    long = [file for file in FILES if too_long(file.read_text())]
    assert not long


def too_long(source: str) -> bool:
    docstring = ast.get_docstring(ast.parse(source)) or ""
    explained = any(line.startswith("Long because") for line in docstring.splitlines())
    return len(source.splitlines()) > 400 and not explained


def test_threads_that_import_at_once_do_not_meet_half_of_scipy() -> None:
    """The full name locks scipy.spatial.distance, then waits for scipy.spatial, which waits for it.

    One of two threads then gets a half-made module and an ImportError; with `from scipy.spatial
    import distance` none does.
    """
    whole = ("scipy", "spatial", "distance")
    found = [
        str(file.relative_to(HOUSE))
        for file in FILES
        if any(t[:3] == whole and len(t) > 3 for t in imported(ast.parse(file.read_text()), ()))
    ]
    assert not found


def test_chance_comes_from_our_noise_alone() -> None:
    # Made-up people and sources are nobody's data. Everything else draws from a Noise.
    judged = [file for file in FILES if module_path(file) != ("_random",)]
    found = {str(file.relative_to(HOUSE)): foreign_chance(file.read_text()) for file in judged}
    assert not {file: lines for file, lines in found.items() if lines}


@pytest.mark.parametrize(
    ("room", "line"),
    [
        ("privacy", "import sfumato.heatmap"),
        ("privacy", "import sfumato.heatmap as x"),
        ("privacy", "from sfumato import heatmap"),
        ("privacy", "from sfumato.heatmap import release"),
        ("privacy", "from ..heatmap import release"),
        ("privacy", "from .. import heatmap"),
        ("privacy", "def f():\n    from sfumato.spaces import Grid"),
        ("privacy", "if TYPE_CHECKING:\n    from sfumato.spaces import Grid"),
        ("privacy", "importlib.import_module('sfumato.spaces')"),
        ("privacy", "__import__('sfumato.spaces')"),
        ("heatmap", "from sfumato.sensing import recover"),
        ("heatmap", "import sfumato"),
        ("heatmap", "from sfumato import Ledger"),
        ("heatmap", "from sfumato import *"),
        ("heatmap", "from sfumato.privacy._ledger import Ledger"),
        ("heatmap", "from sfumato.privacy import _open"),
        ("report", "from sfumato.records import Columns"),
        ("report", "from sfumato.cli import main"),
        ("cli", "from sfumato.privacy._ledger import Ledger"),
        ("errors", "from sfumato.spaces import Grid"),
    ],
)
def test_a_wrong_door_is_seen(room: str, line: str) -> None:
    path = (room,) if room == "errors" else (room, "module")
    assert wrong_doors(line, path)


@pytest.mark.parametrize(
    ("room", "line"),
    [
        ("privacy", "import numpy as np\nfrom fractions import Fraction"),
        ("privacy", "from sfumato.errors import InvalidParameter"),
        ("privacy", "from sfumato.privacy._ledger import Ledger"),
        (
            "privacy",
            "from . import _ledger\nfrom ._ledger import Ledger\nfrom ..errors import LedgerBusy",
        ),
        ("privacy", "from sfumato import __version__, errors"),
        ("heatmap", "from sfumato.privacy import Ledger\nfrom ..spaces import Grid"),
        ("cli", "import sfumato\nfrom sfumato import Ledger, web\nfrom sfumato.report import page"),
    ],
)
def test_a_right_door_is_open(room: str, line: str) -> None:
    assert not wrong_doors(line, (room, "module"))


@pytest.mark.parametrize(
    "line",
    [
        "from sfumato.privacy.ledger.guarded import Guarded",
        "from sfumato.privacy import no_such_name",
        "from sfumato.privacy.ledger import file",
        "import sfumato.privacy.ledger.file",
    ],
)
def test_a_name_past_the_doors_is_seen(line: str) -> None:
    assert past_doors(line, "heatmap")
    assert not past_doors(
        "from sfumato.privacy import Ledger\nfrom sfumato.privacy import accounting", ""
    )


def test_relative_imports_of_a_package_start_at_itself() -> None:
    assert not wrong_doors("from .heatmap import x", ("privacy",), is_package=True)
    assert wrong_doors("from ..heatmap import x", ("privacy",), is_package=True)
    assert wrong_doors("from ...heatmap import x", ("privacy", "noise"), is_package=True)


def test_an_eager_room_is_seen() -> None:
    assert eager_rooms("from sfumato.privacy import Ledger")
    assert eager_rooms("from .privacy import Ledger")
    assert not eager_rooms("def __getattr__(name):\n    from sfumato.privacy import Ledger")


def test_an_unexplained_long_file_is_seen() -> None:
    assert too_long('"""Promise."""\n' + "x = 1\n" * 400)
    assert not too_long('"""Promise.\n\nLong because it is one table.\n"""\n' + "x = 1\n" * 400)
    assert not too_long('"""Promise."""\n' + "x = 1\n" * 399)


@pytest.mark.parametrize(
    "source",
    [
        "import random",
        "from random import gauss",
        "import numpy.random",
        "from numpy import random",
        "from numpy.random import Generator",
        "importlib.import_module('numpy.random')",
        "import numpy as np\nnp.random.default_rng()",
        "import numpy as np\nx = np.random.Generator(bits)",
        "import numpy\nnumpy.random.normal()",
        "import numpy as n\ndef f(rng=n.random.default_rng()): ...",
        "import numpy as np\ndef f(rng: np.random.RandomState): ...",
        "from scipy import stats\nstats.laplace.rvs(size=3)",
    ],
)
def test_foreign_chance_is_seen(source: str) -> None:
    assert foreign_chance(source)


def test_a_generator_may_be_a_parameter() -> None:
    assert not foreign_chance("import numpy as np\ndef f(*, rng: np.random.Generator | None): ...")

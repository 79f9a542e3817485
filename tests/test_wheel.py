"""The package from outside: the wheel is built, installed into an empty environment, and draws a map there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import matplotlib
import pytest

from sfumato._compiled import cache_folder

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parent.parent
DATA = (".pyi", ".js", ".css", ".html", ".json", "py.typed")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (found,) = folder.glob("sfumato-*.whl")
    return found


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel and nothing else of ours; the libraries are those of this one."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "--disable-pip-version-check",
        "install",
    ]
    offline = ["--quiet", "--no-deps", "--no-index", "--no-compile", str(wheel)]
    subprocess.run([*pip, *offline], check=True, env=outside(folder))
    (site,) = folder.glob("lib/python*/site-packages")
    # A folder named so is searched, but the .pth files in it, one of which names our source, are not read.
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def outside(environment: Path) -> dict[str, str]:
    """Variables of somebody who has never been in this folder."""
    ours = ("SFUMATO_", "NUMBA_", "XDG_", "PYTHONPATH", "VIRTUAL_ENV")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    path = os.pathsep.join([str(environment / "bin"), os.environ["PATH"]])
    # The list of fonts is this machine's: matplotlib would make it anew in a new home.
    fonts = matplotlib.get_configdir()
    # Machine code is that of this user, found by what the kernels say: tests/test_first_use.py is of the first.
    kept = str(Path(cache_folder()).parents[1])
    here = {"HOME": str(environment), "PATH": path, "MPLCONFIGDIR": fonts}
    return plain | here | {"XDG_CACHE_HOME": kept}


def test_the_wheel_holds_what_the_package_reads_and_nothing_else(wheel: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "src"
    files = [file for file in (source / "sfumato").rglob("*") if file.is_file()]
    ours = {
        file.relative_to(source).as_posix() for file in files if file.parent.name != "__pycache__"
    }
    assert {name for name in ours if name.endswith((".py", *DATA))} <= inside
    for kind in DATA:
        assert any(name.endswith(kind) for name in inside), kind
    others = {name for name in inside - ours if ".dist-info/" not in name}
    assert not others
    assert not [
        name for name in inside if "shared" in name.split("/") or name.startswith(("tests", "docs"))
    ]


def test_the_first_map_of_the_readme_is_drawn_from_the_wheel(
    environment: Path, tmp_path: Path
) -> None:
    env = outside(environment)

    def run(*words: str) -> str:
        done = subprocess.run(
            words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = run("python", "-c", "import sfumato.heatmap; print(sfumato.heatmap.__file__)")
    assert Path(where.strip()).is_relative_to(environment.resolve())
    assert str(ROOT) not in run("python", "-c", "import sys; print(sys.path)").replace(
        sysconfig.get_path("purelib"), ""
    )
    run("sfumato", "heatmap", "city", "checkins.parquet", "--users", "5000", "--quiet")
    budget = ["--epsilon", "2", "--unit", "user", "--source", "city"]
    run("sfumato", "ledger", "create", "city.ledger", *budget)
    places = ["--user", "user", "--x", "lon", "--y", "lat", "--bounds", "11.20,43.74,11.32,43.81"]
    paid = ["--epsilon", "1", "--ledger", "city.ledger"]
    outs = ["--out", "map.png", "--out", "map.html", "--out", "map.json", "--quiet"]
    said = run("sfumato", "heatmap", "release", "checkins.parquet", *places, *paid, *outs)
    assert said.splitlines()[:2] == [
        "epsilon 1 for each user (one user added or removed), central model",
        "left in city.ledger: epsilon 1",
    ]
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert json.loads((tmp_path / "map.json").read_text("utf-8"))
    assert "<script" in (tmp_path / "map.html").read_text("utf-8")
    checked = run("sfumato", "ledger", "verify", "city.ledger", "--against", "map.json")
    assert "1 release(s) paid for" in checked

"""Machine code that is kept amiss, or by another numba: compiled again, and never in the way of a release."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.test_first_use import DISTANCE, ROOT, distance, environment, run

pytestmark = pytest.mark.fault


def test_a_damaged_file_of_machine_code_is_compiled_and_kept_again(tmp_path: Path) -> None:
    """A file that was cut raised after the charge, and one with other bytes was run."""
    env = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    far, _, first = distance(ROOT / "src", **env)
    for kind in ("nbc", "nbi"):
        (kept,) = (tmp_path / "cache").rglob(f"*.{kind}")
        whole = kept.read_bytes()
        middle = len(whole) // 2
        for damaged in (whole[:middle], whole[:middle] + bytes(64) + whole[middle + 64 :]):
            kept.write_bytes(damaged)
            assert distance(ROOT / "src", **env)[::2] == [far, first]
            assert distance(ROOT / "src", **env)[::2] == [far, "0"]


OTHERS = {
    "of a full disk": "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (99, 99))",
    "before 0.62": """
import types, numba.core, numba.core.caching as parts
numba.core.caching = types.SimpleNamespace(**vars(parts))
numba.core.caching._UserProvidedCacheLocator = parts.UserProvidedCacheLocator
del numba.core.caching.UserProvidedCacheLocator
""",
    "to come": """
import types, numba.core, numba.misc, numba.core.caching
numba.core.caching = types.SimpleNamespace()
sys.modules["numba.misc.appdirs"] = None
if hasattr(numba.misc, "appdirs"): del numba.misc.appdirs
""",
    "of another type": """
from numba.core.types import float32
from sfumato.transport import line_kernel
made = line_kernel.cost.compiled
load = made._cache._load_overload
def other(sig, context):
    found = load(sig, context)
    return found and found._replace(signature=found.signature.replace(args=(float32,)))
made._cache._load_overload = other
""",
}


@pytest.mark.parametrize("which", OTHERS)
def test_another_numba_or_what_it_kept_amiss_stops_nothing(which: str, tmp_path: Path) -> None:
    """A numba before 0.62 raised after the charge: it has the same parts by other names."""

    def once() -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", f"import sys\n{OTHERS[which]}\n{DISTANCE}"],
            env=environment(ROOT / "src", HOME=str(tmp_path)),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    far, where, first = once()
    assert int(first) >= 1
    assert Path(where).is_relative_to(tmp_path)
    files = list(tmp_path.rglob("*.nbc"))
    assert bool(files) == (which != "of a full disk")
    again, _, compiled = once()
    assert again == far
    assert (compiled == "0") == (which in ("before 0.62", "to come"))


@pytest.mark.parametrize(
    ("version", "all_of_it"), [("version_info.short", False), ("(9, 9)", True)]
)
def test_of_a_numba_that_was_not_tried_all_is_loaded(
    version: str, all_of_it: bool, tmp_path: Path
) -> None:
    """Kept code may call what that one provides late, and no process survives a name that is not there."""
    code = f"import numba; numba.version_info = numba.version_info._replace(short={version})"
    code = code.replace("short=version_info", "short=numba.version_info")
    code += f"\n{DISTANCE}\nprint('numba.np.arraymath' in sys.modules)"
    first, again = (run(code, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert again[2:] == ["0", str(all_of_it)]
    assert again[0] == first[0]

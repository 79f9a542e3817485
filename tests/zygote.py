"""A process that has the slow libraries in memory, and forks a pytest of one test for each line it is sent.

None of the package is read before the fork: a saboteur strikes a package that is as fresh as it
ever is.
"""

from __future__ import annotations

import gc
import importlib
import inspect
import json
import os
import sys

import pytest

SLOW = ("numpy", "scipy.stats", "scipy.optimize", "scipy.ndimage", "numba", "pyarrow", "duckdb", "ibis",
        "ibis.backends.duckdb", "opendp.measurements", "mpmath", "cryptography.hazmat.primitives.ciphers",
        "matplotlib.figure", "pyarrow.parquet", "sqlite3", "pandas", "scipy.sparse.csgraph", "typer.testing",
        "rich.console", "numpy.testing", "multiprocessing.pool", "concurrent.futures",
        # What pytest and tests read beside the package.
        "hypothesis", "hypothesis.strategies", "hypothesis.extra.numpy", "pdb", "faulthandler",
        "xml.etree.ElementTree", "_pytest.junitxml", "_pytest.pytester", "_pytest.doctest",
        "_pytest.debugging", "tomllib")  # fmt: skip


def run(saboteur: str, test: str, out: str) -> int:
    """The exit code of a pytest of one test, with a saboteur at work; what it says goes to a file."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        file = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, 1)
        os.dup2(file, 2)
        os.environ["SFUMATO_SABOTEUR"] = saboteur
        # Plugins of others would be read, and rewritten, once more for every saboteur.
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        # At its end that plugin collects garbage, twice, among all that was read before the fork.
        plain = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:unraisableexception"]
        code = pytest.main([*plain, "-o", "addopts=--import-mode=importlib", test])
        sys.stdout.flush()
        os._exit(int(code))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> None:
    """Read [saboteur, test, file] a line, answer with the exit code."""
    gc.disable()
    for name in SLOW:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    # numba reads its typing rules when it first compiles; no thread is started, as a fork needs it.
    importlib.import_module("numba").njit("int64(int64)")(lambda n: n)
    # To print a failure pytest asks for the module of a file: two thousand paths are made real for it.
    inspect.getmodule(compile("", "no such file", "exec"))
    # A fork that collected garbage among all of this would copy all of this.
    gc.freeze()
    gc.enable()
    for line in sys.stdin:
        print(run(*json.loads(line)), flush=True)
    os._exit(0)  # what is frozen is not freed, and one library says so at length


if __name__ == "__main__":
    main()

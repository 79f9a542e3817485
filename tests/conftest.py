"""Seeds nobody chose, one hypothesis profile, and the door through which saboteurs come in."""

from __future__ import annotations

import atexit
import functools
import gc
import hashlib
import importlib.metadata
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

# Libraries, modules and collected tests stay: to look for cycles among them while they are read took a
# fifth of reading them. It is looked for again once all is collected.
if gc.isenabled():
    gc.disable()

# Bytecode is kept, whatever the machine says: without it every worker, every saboteur and every process
# that a test starts compiles the package again, and pytest rewrites 9,000 assertions in each of them.
if sys.dont_write_bytecode:
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell that starts `make test &` has the interrupt ignored by all that comes of it: tests of what an
# interrupt does would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# One thread of linear algebra a process, before numpy is read: two workers with two threads each wait
# for each other on two cores: on a busy machine a test of 0.2 s took half a minute.
os.environ.update(
    {name: os.environ.get(name, "1") for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")}
)

# Spark's Java machines live for a minute: what they compile at length is never run often enough to pay
# for it. The same bytecode, by the quick compiler of the two that every machine has, and not verified again.
os.environ.setdefault(
    "JDK_JAVA_OPTIONS",
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
)

import numpy as np
import pytest
import typer.testing
from hypothesis import HealthCheck, Phase, settings
from tests import one_duckdb
from tests.bytecode import make_part, part_of
from tests.compiled_queries import always_anew, compile_once
from tests.seeded import seed_system
from typer.main import get_command

# A process builds the tree of commands once, and looks once at what is installed; a test that calls several
# commands in its own process did both for each: a fifth of a second, longer than most commands take.
vars(typer.testing)["_get_command"] = functools.cache(get_command)
vars(importlib.metadata)["entry_points"] = functools.cache(importlib.metadata.entry_points)

EPOCH = os.environ.get("SFUMATO_TEST_EPOCH", "1")

settings.register_profile(
    "house",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
# A saboteur is to be caught; nobody reads the smallest example of it, which takes longer than to find one.
settings.register_profile(
    "sabotaged", settings.get_profile("house"), phases=[Phase.explicit, Phase.reuse, Phase.generate]
)
settings.load_profile("sabotaged" if os.environ.get("SFUMATO_SABOTEUR") else "house")

if name := os.environ.get("SFUMATO_SABOTEUR"):
    # They read half the package: not where nobody is to be sabotaged.
    from tests.saboteurs import SABOTEURS

    SABOTEURS[name].strike()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Queries are compiled once in a process: Ibis takes longer for one than engines for a test's few rows."""
    engines = item.get_closest_marker("engine") is not None
    always_anew(engines)
    one_duckdb.always_anew(engines)
    if "ibis.backends.sql" in sys.modules:
        compile_once(sys.modules["ibis.backends.sql"].SQLBackend)
    if "ibis.backends.duckdb" in sys.modules:
        one_duckdb.start_once(sys.modules["ibis.backends.duckdb"].Backend)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """In a fresh clone each worker compiles a part of all source, and finds what the others made."""
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):
        folders = (session.config.rootpath / name for name in ("tests", "src"))
        workers = int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        make_part(session.config, part_of(worker, workers, *folders))


def pytest_collection_finish() -> None:
    """Modules and tests stay until the end: the collector, half a second at a time, need not walk them."""
    gc.freeze()
    # What libraries made since then was walked after every 700 new objects: a twelfth of what tests took.
    gc.set_threshold(10_000, 10, 10)
    gc.enable()

    # What is frozen is not freed at the end, and one library says so at length: but pytest's own collections,
    # a second for each process, need not see it.
    atexit.register(gc.unfreeze)


@pytest.fixture(scope="session")
def warm() -> Iterator[Path]:
    """The folder of a `sfumato` that has read the libraries already, and all of ours."""
    from tests.warm import variables, warm_command

    with warm_command(variables()) as folder:
        yield folder


@pytest.fixture(autouse=True)
def system_randomness(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the package draws from the system comes from the same hash, but where that is what is tested."""
    if request.node.get_closest_marker("system") is None:
        seed_system(monkeypatch, seed_of(request))


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Simulation randomness from SHA-256(test id, epoch): nobody can shop for a seed."""
    return np.random.default_rng(list(seed_of(request)))


@pytest.fixture
def key(request: pytest.FixtureRequest) -> bytes:
    """A noise key of the test's own, from the same hash."""
    return seed_of(request)


def seed_of(request: pytest.FixtureRequest) -> bytes:
    return hashlib.sha256(f"{request.node.nodeid}|{EPOCH}".encode()).digest()

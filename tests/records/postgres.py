"""A real PostgreSQL for tests, started as an ordinary user on a socket in a folder of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDERS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


@contextmanager
def running_postgres() -> Iterator[str]:
    """Its URL, until the block ends; a database server refuses to run as root."""
    found = shutil.which("pg_ctl")
    programs = Path(found).resolve().parent if found else FOLDERS[-1]
    user = "nobody" if os.getuid() == 0 else None

    def run(program: str, *arguments: str) -> None:
        command = [str(programs / program), "-D", f"{folder}/data", *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, user=user, cwd=folder)

    # A socket's path must be short.
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        if user:
            shutil.chown(folder, user)
        run("initdb", "-U", "tests", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        # A zone that is not UTC: nothing may depend on it.
        options = f"-c listen_addresses= -k {folder} -F -c timezone=America/Lima"
        run("pg_ctl", "start", "-w", "-s", "-l", f"{folder}/log", "-o", options)
        try:
            yield f"postgres://tests@/postgres?host={folder}"
        finally:
            run("pg_ctl", "stop", "-s", "-m", "immediate")

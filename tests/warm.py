"""The command `sfumato` from a process that has read everything already: a fork for each call of it.

A page of the documentation calls it a dozen times, and each time two seconds go into reading
libraries. A `sfumato` put first on the path hands its words, folder, variables and open files to
the warm process, and ends as the fork does, which runs what the real one runs. That one can be
started at all is not tested so. A process that is lukewarm has read the libraries and nothing of
ours: its forks find each module of ours by themselves, as the first call of a command does.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[1]
END_AT = "TESTS_END_AT"
"""A variable of a command that is to end itself: stage, part, signal and second output, with spaces between,
as `tests.journeys.killed` takes them."""
READ = ("numpy", "scipy.stats", "scipy.optimize", "scipy.ndimage", "scipy.sparse.csgraph", "numba", "pyarrow",
        "pyarrow.parquet", "pandas", "duckdb", "ibis", "ibis.backends.duckdb", "opendp.measurements",
        "mpmath", "cryptography.hazmat.primitives.ciphers", "matplotlib.figure",
        "matplotlib.backends.backend_agg", "PIL.PngImagePlugin", "rich.console",
        "typer.rich_utils", "typer._adapters", "pyarrow_hotfix", "encodings.utf_8_sig")  # fmt: skip
"""What commands read when they need it; nothing is called before the fork, so no thread is running."""

SHIM = """\
#!{python} -IS
import os, signal, socket, sys
with socket.socket(socket.AF_UNIX) as line:
    line.connect({address!r})
    told = [*sys.argv, "", os.getcwd(), *(f"{{a}}={{b}}" for a, b in os.environ.items())]
    head = "\\0".join(told).encode("utf-8", "surrogateescape")
    socket.send_fds(line, [len(head).to_bytes(8, "big")], [0, 1, 2])
    line.sendall(head)
    code = int(line.recv(16) or b"70")
if code < 0:
    if -code != signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
"""


def variables(*folders: Path) -> dict[str, str]:
    """The environment of a command, these folders and the environment's own first on the path."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SFUMATO_")}
    path = os.pathsep.join([*map(str, folders), str(BIN), os.environ["PATH"]])
    return clean | {"PATH": path, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}


@contextlib.contextmanager
def warm_command(env: dict[str, str], *, lukewarm: bool = False) -> Iterator[Path]:
    """A folder to put first on the path; env is what libraries see while they are read."""
    # Not below pytest's folders: the address of a socket has at most 107 letters.
    with (
        tempfile.TemporaryDirectory(prefix="sfumato-") as folder,
        socket.socket(socket.AF_UNIX) as door,
    ):
        address = str(Path(folder) / "socket")
        door.bind(address)
        door.listen()
        shim = Path(folder) / "bin" / "sfumato"
        shim.parent.mkdir()
        shim.write_text(SHIM.format(python=sys.executable, address=address), encoding="utf-8")
        shim.chmod(0o755)
        words = [sys.executable, __file__, str(door.fileno()), *(["lukewarm"] if lukewarm else [])]
        with subprocess.Popen(
            words, env=env, stdin=subprocess.PIPE, pass_fds=[door.fileno()]
        ) as process:
            yield shim.parent
            assert process.stdin is not None
            process.stdin.close()


def receive(line: socket.socket) -> tuple[list[str], str, dict[str, str], list[int]]:
    """Words, folder, variables and the three open files of a caller."""
    head, files, _, _ = socket.recv_fds(line, 8, 3)
    told = b""
    while len(told) < int.from_bytes(head, "big"):
        told += line.recv(1 << 16)
    words, rest = told.decode("utf-8", "surrogateescape").split("\0\0", 1)
    folder, *variables = rest.split("\0")
    return words.split("\0"), folder, dict(text.split("=", 1) for text in variables), files


def become(words: list[str], folder: str, env: dict[str, str], files: list[int]) -> None:
    """Make this process what it were if the caller had started it."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = words
    sys.path[0] = str(BIN)
    code = env.get("PYTHONIOENCODING", "utf-8").partition(":")[0]
    sys.stdin = open(0, encoding=code)  # noqa: SIM115 - open as long as the process is
    sys.stdout = open(1, "w", encoding=code)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding=code, errors="backslashreplace", buffering=1)  # noqa: SIM115
    for number in (signal.SIGINT, signal.SIGCHLD):
        signal.signal(
            number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        )


def serve(door: socket.socket) -> None:
    """Answer until standard input ends; it comes back only in the fork that is to run a command."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while door in select.select([door, sys.stdin], [], [])[0]:
        line, _ = door.accept()
        # One fork waits for the other, so that two commands of a pipe run side by side.
        if os.fork() == 0:
            door.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            caller = receive(line)
            child = os.fork()
            if child == 0:
                line.close()
                return become(*caller)
            for file in caller[-1]:
                os.close(file)
            line.sendall(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())
            os._exit(0)
        line.close()
    os._exit(0)


def ended(code: object) -> int:
    """The exit code for what `sys.exit` was given."""
    if code is None or isinstance(code, int):
        return int(code or 0)
    print(code, file=sys.stderr)
    return 1


def build_commands() -> None:
    """The tree of all commands, which a fork need not build again: a quarter of what one takes.

    And what is installed, which every command looks through for methods, formats and operators.
    """
    metadata = importlib.import_module("importlib.metadata")
    found = metadata.entry_points()
    vars(metadata)["entry_points"] = lambda **asked: found.select(**asked)
    typer = importlib.import_module("typer.main")
    vars(typer)["get_command"] = build = functools.cache(vars(typer)["get_command"])
    root = importlib.import_module("sfumato.cli.main")
    build(root.app)
    # What is built already is not built again in part.
    vars(root)["tree_for"] = lambda _: root.app


def main() -> None:
    """Read everything, then be the command as often as it is called."""
    gc.disable()
    for name in READ:
        importlib.import_module(name)
    # numba reads its typing rules when it first compiles; no thread is started, as a fork needs it.
    importlib.import_module("numba").njit("int64(int64)")(lambda n: n)
    if "lukewarm" not in sys.argv:
        # Drawing is slow, and nobody looks at more pixels than these; all who draw take their number from here.
        vars(importlib.import_module("sfumato.figures.style"))["DPI"] = 50
        # All of ours too: the doors of folders load nothing before it is used.
        house = importlib.import_module("sfumato")
        for module in pkgutil.walk_packages(house.__path__, "sfumato."):
            importlib.import_module(module.name)
        build_commands()
    # A fork that collected garbage among all of this would copy all of this.
    gc.freeze()
    gc.enable()
    serve(socket.socket(fileno=int(sys.argv[1])))
    if where := os.environ.pop(END_AT, ""):
        sys.path.append(str(ROOT))
        stage, part, number, *second = where.split(" ")
        importlib.import_module("tests.journeys.killed").end_at(
            stage, int(part), int(number), " ".join(second)
        )
    try:
        code = ended(importlib.import_module("sfumato.__main__").main())
    except SystemExit as end:
        code = ended(end.code)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        code = 120
    # Taking three thousand modules down takes a second.
    os._exit(code)


if __name__ == "__main__":
    main()

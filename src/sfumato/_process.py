"""Whether this process is the command's own, in which nobody looks round in the libraries that are loaded.

In a notebook or a program of somebody's a library is loaded as it is. The command says here, once and
before all else, that nobody will read the help of matplotlib or list the compilers of Ibis, and
`figures` and `records` load less. What is loaded works as ever, also for plugins and audited functions.
"""

from __future__ import annotations

_found = {"own": False}


def make_own() -> None:
    """Say that this process runs the command and nothing else."""
    _found["own"] = True


def is_own() -> bool:
    """Whether somebody said so."""
    return _found["own"]

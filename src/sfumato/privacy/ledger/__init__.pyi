from .budget import Spent, at_most
from .guarded import REHEARSAL, UNITS, Bound, Guarded, Source, Table, guard, histogram, lattice
from .ledger import Ledger
from .release import Entry, Release, read_release, release_from_json
from .render import ledger_teams, render_check, render_statement
from .statement import LedgerStatement
from .storage.store import Kept
from .verify import LedgerCheck, verify_ledger

__all__ = [
    "REHEARSAL",
    "UNITS",
    "Bound",
    "Entry",
    "Guarded",
    "Kept",
    "Ledger",
    "LedgerCheck",
    "LedgerStatement",
    "Release",
    "Source",
    "Spent",
    "Table",
    "at_most",
    "guard",
    "histogram",
    "lattice",
    "ledger_teams",
    "read_release",
    "release_from_json",
    "render_check",
    "render_statement",
    "verify_ledger",
]

from .budget import Spent, at_most
from .guarded import REHEARSAL, UNITS, Bound, Guarded, Source, guard, histogram, lattice
from .ledger import Ledger
from .release import Entry, Release, read_release, release_from_json
from .statement import LedgerStatement

__all__ = [
    "REHEARSAL",
    "UNITS",
    "Bound",
    "Entry",
    "Guarded",
    "Ledger",
    "LedgerStatement",
    "Release",
    "Source",
    "Spent",
    "at_most",
    "guard",
    "histogram",
    "lattice",
    "read_release",
    "release_from_json",
]

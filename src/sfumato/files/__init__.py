"""Files that are there whole or not at all, and nothing left beside them: every room writes through here."""

from sfumato.files.atomic import check_writable, drafted, remove_drafts, whole_file, write_file
from sfumato.files.leftovers import scratch_folder
from sfumato.files.tables import write_table

__all__ = [
    "check_writable",
    "drafted",
    "remove_drafts",
    "scratch_folder",
    "whole_file",
    "write_file",
    "write_table",
]

"""Files that are there whole or not at all, and nothing left beside them: every room writes through here."""

from sfumato.files.atomic import (
    check_writable,
    draft_beside,
    drafted,
    drafts_beside,
    remove_drafts,
    sync_folder,
    whole_file,
    write_file,
)
from sfumato.files.leftovers import scratch_folder
from sfumato.files.tables import write_table

__all__ = [
    "check_writable",
    "draft_beside",
    "drafted",
    "drafts_beside",
    "remove_drafts",
    "scratch_folder",
    "sync_folder",
    "whole_file",
    "write_file",
    "write_table",
]

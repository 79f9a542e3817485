from .atomic import (
    check_writable,
    draft_beside,
    drafted,
    drafts_beside,
    remove_drafts,
    sync_folder,
    whole_file,
    write_file,
)
from .leftovers import scratch_folder
from .tables import write_table

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

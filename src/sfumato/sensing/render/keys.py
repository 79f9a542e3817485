"""Keys in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.sensing.render.words import many

if TYPE_CHECKING:
    from sfumato.sensing.results.keys import KeyListing


def key_lines(result: KeyListing) -> str:
    """A line for the master key, one for each device, and one for each time that noise was taken off.

    Args:
        result: What `list_keys` found.

    Returns:
        The lines.
    """
    lock = (
        "locked with a passphrase" if result.locked else "not locked: who has the file has the key"
    )
    lines = [f"master key {result.id} ({result.file}), {lock}"]
    for one in result.devices:
        ended = "" if one.last_step is None else f" at step {one.last_step}"
        lines.append(f"device {one.name}: {one.status}{ended}; made {one.made}, {one.file}")
    if not result.devices:
        lines.append(
            "no device in its log; keys of devices made before there was a log are not known"
        )
    for use in result.unsealings:
        what = str(use.more.get("readings") or "readings in memory")
        where = str(use.more.get("out") or "the screen")
        times = many(int(use.more.get("times", 1)), "time")
        lines.append(f"unsealed {use.time} by {use.by}: {what} ({times}) to {where}")
    return "\n".join(lines)

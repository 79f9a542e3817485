"""The parties of a joint map, as all of them have them in one public file, parties.toml."""

from __future__ import annotations

import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.heatmap.distributed.certificates import check_name, fingerprint
from sfumato.privacy import Joint

FEWEST = 3
KEYS = {"curious", "certificates", "party"}
PARTY_KEYS = {"name", "address", "listen", "helper"}


@dataclass(frozen=True, slots=True)
class Party:
    """One of them.

    Attributes:
        name: As in its certificate.
        host: Where others reach it.
        port: At which port.
        listen: Where it listens itself, host and port; where others reach it, if nothing is said.
        helper: Whether it has no rows and adds a share of the noise alone.

    """

    name: str
    host: str
    port: int
    listen: tuple[str, int]
    helper: bool = False


@dataclass(frozen=True, slots=True)
class Parties:
    """All of them, and how many may pool what they know.

    Attributes:
        parties: In the order of the file.
        trust: The trust model.
        certificates: The folder with NAME.crt of all of them, and NAME.key of this one.
        file: Where they were read from.

    """

    parties: tuple[Party, ...]
    trust: Joint
    certificates: Path
    file: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Their names, in order."""
        return tuple(one.name for one in self.parties)

    @property
    def title(self) -> str:
        """What a map of theirs is called, unless somebody says otherwise: who has rows in it."""
        return ", ".join(one.name for one in self.parties if not one.helper)

    def number(self, me: str | int) -> int:
        """Which party is meant, from 0: by its number in the file, from 1, or by its name."""
        said = str(me)
        if said in self.names:
            return self.names.index(said)
        if said.isdecimal() and 1 <= int(said) <= len(self.parties):
            return int(said) - 1
        raise InvalidParameter(
            f"`me` is the number of a party, 1 to {len(self.parties)}, or one of {', '.join(self.names)}, got "
            f"{said[:60]!r}; nothing was charged"
        )

    def certificate(self, number: int) -> Path:
        """Of one of them."""
        return self.certificates / f"{self.parties[number].name}.crt"

    def key(self, number: int) -> Path:
        """Of one of them: there is but one's own."""
        return self.certificates / f"{self.parties[number].name}.key"

    def fingerprints(self) -> tuple[str, ...]:
        """Of all certificates; refused where one is missing or another's."""
        return tuple(
            fingerprint(self.certificate(at), one.name) for at, one in enumerate(self.parties)
        )

    def check_key(self, number: int) -> None:
        """Refuse a key that is missing, or that others may read."""
        path = self.key(number)
        try:
            mode = path.stat().st_mode
        except OSError as problem:
            raise InvalidInput(
                f"{path} cannot be read ({problem.strerror}): it is the key of {self.parties[number].name}; "
                "nothing was charged"
            ) from problem
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise InvalidInput(
                f"{path} may be read by others: chmod 600 it, or make another; nothing was charged"
            )


def read_parties(path: str | Path) -> Parties:
    r"""The parties that a file states.

    Args:
        path: A TOML file: `curious`, `certificates` (a folder, from the file on) and a [[party]] each with
            `name` and `address` (host:port), for some `listen` (host:port) and `helper` (true).

    Returns:
        The parties.

    Raises:
        InvalidInput: The file cannot be read, or states none.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "parties.toml"
        >>> _ = file.write_text(
        ...     "".join(f'[[party]]\nname = "{n}"\naddress = "{n}.example:7100"\n' for n in "abc")
        ... )
        >>> read_parties(file).trust
        Joint(parties=3, curious=1)

    """
    place = Path(path)
    try:
        data = tomllib.loads(place.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        said = getattr(problem, "strerror", None) or str(problem)
        raise InvalidInput(
            f"{place} cannot be read as parties ({said}); nothing was charged"
        ) from problem
    try:
        return _parties(data, place)
    except (KeyError, TypeError, ValueError) as problem:
        said = str(problem).removesuffix("; nothing was charged").removesuffix("; nothing was done")
        missing = f"{problem} is missing" if isinstance(problem, KeyError) else said
        raise InvalidInput(
            f"{place} states no parties: {missing}; nothing was charged"
        ) from problem


def _parties(data: Mapping[str, Any], file: Path) -> Parties:
    _known(data, KEYS, "the file")
    found = tuple(map(_party, data["party"]))
    names = [one.name for one in found]
    if len(set(names)) < len(names):
        raise ValueError("two parties have the same name")
    if len(found) < FEWEST:
        raise ValueError(
            f"a secure sum is between {FEWEST} parties at least, got {len(found)}: two take a helper without "
            "rows (helper = true)"
        )
    if sum(not one.helper for one in found) < 2:
        raise ValueError("two parties at least have rows")
    curious = data.get("curious", 1)
    trust = Joint(len(found), curious)
    most = (len(found) - 1) // 2
    if curious > most:
        raise ValueError(
            f"the secure sum hides inputs from fewer than half of the parties: curious must be at most {most} "
            f"of {len(found)}, got {curious}"
        )
    folder = file.parent / str(data.get("certificates", "certificates"))
    return Parties(found, trust, folder, str(file))


def _party(data: Mapping[str, Any]) -> Party:
    _known(data, PARTY_KEYS, "a party")
    check_name(str(data["name"]))
    host, port = _address(data["address"])
    listen = _address(data["listen"]) if "listen" in data else (host, port)
    helper = data.get("helper", False)
    if type(helper) is not bool:
        raise ValueError(f"helper is true or false, got {helper!r}")
    return Party(str(data["name"]), host, port, listen, helper)


def _known(data: Mapping[str, Any], keys: set[str], what: str) -> None:
    if unknown := sorted(set(data) - keys):
        raise ValueError(f"{what} has {', '.join(sorted(keys))}, got {', '.join(unknown)}")


def _address(text: Any) -> tuple[str, int]:
    host, colon, port = str(text).rpartition(":")
    if not (host and colon and port.isdecimal() and 0 < int(port) < 2**16):
        raise ValueError(f"an address is host:port, got {str(text)[:80]!r}")
    return host.strip("[]"), int(port)

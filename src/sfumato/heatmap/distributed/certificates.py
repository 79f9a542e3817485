"""Keys and certificates by which parties know each other: each makes its own, and all pin all of them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.errors import ExistsAlready, InvalidInput, InvalidParameter
from sfumato.files import sync_folder, write_file

NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
DAYS = 730
"""How long a certificate is good for, unless somebody says otherwise."""


@dataclass(frozen=True, slots=True)
class MadeCertificates:
    """Files of keys and certificates that were made.

    Attributes:
        folder: Where they are.
        names: Whose they are.
        written: The files.
        until: The last day on which they are good.

    """

    folder: str
    names: tuple[str, ...]
    written: tuple[str, ...]
    until: str

    def to_json(self) -> dict[str, Any]:
        """What `sfumato joint certificates --json` prints."""
        return {
            "folder": self.folder,
            "names": list(self.names),
            "written": list(self.written),
            "until": self.until,
        }


def make_certificates(
    folder: str | Path, names: Sequence[str], *, days: int = DAYS
) -> MadeCertificates:
    """A key and a certificate for each name: NAME.key, for its owner alone, and NAME.crt, for all parties.

    Every party makes its own and sends the .crt to the others, by a way on which nobody can exchange it.
    A certificate is signed by its own key: parties pin each other's, and no authority is trusted.

    Args:
        folder: Where they go; made if it is not there.
        names: The parties' names: small letters, digits and hyphens.
        days: How long they are good for, 1 to 3650.

    Returns:
        The files that were written.

    Raises:
        InvalidParameter: A name or the number of days is out of range; nothing was made.
        ExistsAlready: A key or certificate is there already; nothing was made.

    """
    for name in names:
        check_name(name)
    if not names or len(set(names)) < len(names):
        raise InvalidParameter(
            f"names are one or more, each once, got {', '.join(names) or 'none'}; nothing was made"
        )
    if not 1 <= days <= 3650:
        raise InvalidParameter(f"days must be 1 to 3650, got {days}; nothing was made")
    place = Path(folder)
    for name in names:
        for suffix in ("key", "crt"):
            if (place / f"{name}.{suffix}").exists():
                raise ExistsAlready(
                    f"{place / f'{name}.{suffix}'} exists and is kept; nothing was made"
                )
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    written, until = [], datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
    for name in names:
        key, certificate = _made(name, until)
        for suffix, text in (("key", key), ("crt", certificate)):
            path = place / f"{name}.{suffix}"
            write_file(path, text, private=suffix == "key")
            written.append(str(path))
    sync_folder(place)
    return MadeCertificates(str(place), tuple(names), tuple(written), until.date().isoformat())


def check_name(name: str) -> None:
    """Refuse what is no name of a party."""
    if not NAME.fullmatch(name):
        raise InvalidParameter(
            f"a party's name is 1 to 40 small letters, digits and hyphens, got {name[:60]!r}; nothing was done"
        )


def fingerprint(path: Path, name: str) -> str:
    """The SHA-256 of a certificate; refused where it is not that of the name."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    try:
        (found,) = x509.load_pem_x509_certificates(
            path.read_bytes()
        )  # a second would be believed too
        alternatives = found.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        said = alternatives.value.get_values_for_type(x509.DNSName)
    except (OSError, ValueError, x509.ExtensionNotFound) as problem:
        raise InvalidInput(
            f"{path} is no certificate that can be read ({type(problem).__name__}): make one with sfumato "
            "joint certificates; nothing was charged"
        ) from problem
    with suppress(x509.ExtensionNotFound):
        if found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca:
            raise InvalidInput(
                f"{path} can sign other certificates: make one with sfumato joint certificates; nothing was "
                "charged"
            )
    if said != [name]:
        raise InvalidInput(
            f"{path} is the certificate of {', '.join(said) or 'nobody'}, not of {name}; nothing was charged"
        )
    return found.fingerprint(hashes.SHA256()).hex()


def _made(name: str, until: datetime.datetime) -> tuple[bytes, bytes]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    own = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(own)
        .issuer_name(own)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # An hour back: clocks of parties differ.
        .not_valid_before(datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1))
        .not_valid_after(until)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .sign(key, hashes.SHA256())
    )
    told = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return told, certificate.public_bytes(serialization.Encoding.PEM)

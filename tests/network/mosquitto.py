"""A real Mosquitto for tests: a plain listener, and one with TLS, passwords and an access list."""

from __future__ import annotations

import datetime
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sfumato.network import free_port

PROGRAM = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
# What a building's broker has: a device writes its own topic, a collector reads all.
ACCESS = """
pattern write sfumato/1/+/%u/readings
user collector
topic read sfumato/1/#
"""
PASSWORDS = {"door": "door's own", "window": "window's own", "collector": "reads all"}


@dataclass(frozen=True)
class Mosquitto:
    """Where it listens, and what its users need."""

    folder: Path
    plain: int
    secure: int

    def password_file(self, user: str) -> Path:
        return self.folder / f"{user}.password"


@contextmanager
def running_mosquitto(folder: Path, *, plain: int = 0, secure: bool = False) -> Iterator[Mosquitto]:
    """A broker until the block ends."""
    ports = Mosquitto(folder, plain or free_port(), free_port() if secure else 0)
    lines = [
        "per_listener_settings true", "persistence false", "max_queued_messages 0",
        "log_type error", *(["user root"] if os.getuid() == 0 else []),
        f"listener {ports.plain} 127.0.0.1", "allow_anonymous true",
    ]  # fmt: skip
    if secure:
        _certificates(folder)
        _passwords(folder)
        (folder / "access").write_text(ACCESS)
        (folder / "access").chmod(0o600)
        lines += [
            f"listener {ports.secure} 127.0.0.1", "allow_anonymous false",
            f"password_file {folder}/passwords", f"acl_file {folder}/access",
            f"certfile {folder}/broker.pem", f"keyfile {folder}/broker.pem",
        ]  # fmt: skip
    (folder / "mosquitto.conf").write_text("\n".join(lines) + "\n")
    command = [PROGRAM, "-c", str(folder / "mosquitto.conf")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            _wait_for(ports.plain, process)
            yield ports
        finally:
            process.terminate()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 600
    while process.poll() is None and time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise RuntimeError("Mosquitto does not listen; is it installed? make system")


def _passwords(folder: Path) -> None:
    for user, password in PASSWORDS.items():
        (folder / f"{user}.password").write_text(f"{password}\n")
        (folder / f"{user}.password").chmod(0o600)
    file = folder / "passwords"
    file.touch(mode=0o600)
    file.write_text("".join(f"{user}:{password}\n" for user, password in PASSWORDS.items()))
    program = shutil.which("mosquitto_passwd") or "/usr/bin/mosquitto_passwd"
    subprocess.run([program, "-U", str(file)], check=True)


def _certificates(folder: Path) -> None:
    """An authority, and a certificate of it for 127.0.0.1."""
    authority, broker = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    called = {
        name: x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        for name in ("authority", "broker")
    }

    def signed(name: str, key: ec.EllipticCurvePrivateKey, more: x509.ExtensionType) -> bytes:
        now = datetime.datetime.now(datetime.UTC)
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(called[name])
            .issuer_name(called["authority"])
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(more, critical=True)
            .add_extension(identifier, critical=False)
            .sign(authority, hashes.SHA256())
            .public_bytes(serialization.Encoding.PEM)
        )

    root = signed("authority", authority, x509.BasicConstraints(ca=True, path_length=0))
    (folder / "authority.pem").write_bytes(root)
    secret = broker.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    (folder / "broker.pem").write_bytes(signed("broker", broker, names) + secret)

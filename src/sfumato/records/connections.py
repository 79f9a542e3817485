"""What may be said of a connection to a database: never its password, nor what may be a part of one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True, slots=True)
class PublicConnection:
    """The public parts of a connection; empty where it cannot be told where they end.

    Attributes:
        scheme: Which database, e.g. postgres.
        host: Its host and port, or the folder of its socket.
        database: The last part of its path.
        url: The whole without password and settings.
        secret: Whether anything was left out.

    """

    scheme: str
    host: str
    database: str
    url: str
    secret: bool


def public_connection(connection: str) -> PublicConnection:
    """Take a connection apart; of one whose password may have spilled into other parts, the scheme alone.

    Args:
        connection: A URL, as Ibis or Spark takes it, or anything else somebody gave for one.

    Returns:
        What may be written down and shown.

    Example:
        >>> public_connection("postgres://ann:secret@db:5432/town").url
        'postgres://ann@db:5432/town'
        >>> public_connection("postgres://ann:2024#spring@db/town").host
        ''

    """
    scheme, found, rest = connection.partition("://")
    if not found:
        return PublicConnection("", "", "", "", True)
    try:
        parts = urlsplit(connection)
        settings, _ = parse_qs(parts.query), parts.port
        user, server = parts.username, parts.netloc.rpartition("@")[2]
    except ValueError:  # an unescaped bracket, or a port that is none
        return PublicConnection(scheme, "", "", f"{scheme}://", True)
    path = re.split("[;=]", parts.path)[0]
    # An @ behind the host, or a sign of settings before it: a password had a / ? # ; or = in it.
    if "@" in parts.path + parts.query + parts.fragment or re.search("[;=]", parts.netloc):
        return PublicConnection(scheme, "", "", f"{scheme}://", True)
    host = server or settings.get("host", [""])[-1]
    secret = bool(re.search("[?#;=]|:.*@|@.*@", rest))
    name = f"{user}@{server}" if user else server
    whole = f"{scheme}://{name}{path}" if secret else connection
    return PublicConnection(scheme, host, path.rpartition("/")[2], whole, secret)

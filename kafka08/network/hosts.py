"""Resolves host names with the machine's resolver."""

from __future__ import annotations

import socket
from typing import Any

from kafka08.common import bare
from kafka08.errors import ConfigError

# The host first, then the port; with IPv6 two numbers more.
Address = tuple[Any, ...]


def first_address(host: str, port: int = 0) -> tuple[int, Address]:
    """The family of ``host``'s first address (IPv4 before IPv6, as in the JVM), and the address
    with ``port`` in the form that sockets take. Raises OSError."""
    try:
        found = socket.getaddrinfo(bare(host), port, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        raise socket.gaierror(socket.EAI_NONAME, f"not a host name: {host}") from error
    family, *_, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    return family, address


def canonical_host_name() -> str:
    """This machine's name, as InetAddress.getLocalHost and getCanonicalHostName return it.

    If the machine's address has no name that resolves to it, returns the address. Raises
    ConfigError if the machine's name has no address.
    """
    name = socket.gethostname()
    try:
        _, address = first_address(name)
    except OSError:
        raise ConfigError(
            f"The name of this machine, {name}, has no address, so the broker does not know which "
            "host to advertise. Set advertised.host.name (or host.name, "
            "which is also the address to listen on), or add the name to /etc/hosts."
        ) from None
    try:
        canonical = socket.getnameinfo(address, 0)[0]
        back = socket.getaddrinfo(canonical, None)
    except (OSError, UnicodeError):
        back = []
    return canonical if any(each[4][0] == address[0] for each in back) else str(address[0])

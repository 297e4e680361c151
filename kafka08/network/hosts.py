"""Resolves host names with the machine's resolver, and listens on addresses."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from typing import Any

from gevent import socket as gevent_socket

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


def is_own_address(host: str) -> bool:
    """Whether the first address of ``host`` is one of this machine. Raises OSError if it has
    none."""
    family, address = first_address(host)
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        try:
            sock.bind(address)
        except OSError:
            return False
    return True


def bound_socket(
    family: int, address: Address, backlog: int, buffers: Iterable[tuple[int, int]] = ()
) -> gevent_socket.socket:
    """A listening socket of greenlets. ``buffers``: options and sizes; 0 is the system's size.
    Raises OSError."""
    sock = gevent_socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        for option, size in buffers:
            if size > 0:  # inherited by accepted sockets; before listen, as windows need it
                sock.setsockopt(socket.SOL_SOCKET, option, size)
        sock.bind(address)
        sock.listen(backlog)
    except OSError:
        sock.close()
        raise
    return sock


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

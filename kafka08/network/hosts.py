"""What the machine's resolver says of hosts."""

from __future__ import annotations

import socket

from kafka08.errors import ConfigError


def canonical_host_name() -> str:
    """This machine's name, as InetAddress.getLocalHost and getCanonicalHostName tell it.

    Where the machine's address has no name that leads back to it, the address itself. Raises
    ConfigError where the machine's name has no address.
    """
    name = socket.gethostname()
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ConfigError(
            f"The name of this machine, {name}, has no address, so the broker does not know which "
            "host to tell clients and other brokers. Set advertised.host.name (or host.name, "
            "which is also the address to listen on), or add the name to /etc/hosts."
        ) from None
    # As the JVM does: IPv4 first.
    address = min(found, key=lambda each: each[0] != socket.AF_INET)[4]
    try:
        canonical = socket.getnameinfo(address, 0)[0]
        back = socket.getaddrinfo(canonical, None)
    except (OSError, UnicodeError):
        back = []
    return canonical if any(each[4][0] == address[0] for each in back) else str(address[0])

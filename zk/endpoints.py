"""The endpoints in a broker's registration, as later releases write them there. Pure.

Version 2 has ``endpoints`` of listeners that are named as their protocols, version 4 also the
protocol of each listener. 0.8.2.2 reads neither, and goes by ``host`` and ``port``, which are those
of the first endpoint without TLS and login; without one they are null and -1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from kafka08.common import PLAINTEXT, PROTOCOLS, Endpoint

NO_HOST, NO_PORT = "", -1
_ENDPOINT = re.compile(r"([^:/]+)://(?:\[([^\]]*)\]|([^:/\[\]]*)):([0-9]{1,5})")


def plain_address(endpoints: Iterable[Endpoint]) -> tuple[str, int]:
    """Host and port for 0.8.2.2; NO_HOST and NO_PORT if there are none."""
    for each in endpoints:
        if each.protocol == PLAINTEXT:
            return each.host, each.port
    return NO_HOST, NO_PORT


def is_original(endpoints: Sequence[Endpoint]) -> bool:
    """Whether host and port are all that the endpoints have."""
    return [each[:2] for each in endpoints] in ([], [(PLAINTEXT, PLAINTEXT)])


def members(endpoints: Sequence[Endpoint]) -> dict[str, object]:
    """The version of the registration, and the members that it has more than version 1."""
    if is_original(endpoints):
        return {"version": 1}
    listed = [str(each) for each in endpoints]
    if all(each.listener == each.protocol for each in endpoints):
        return {"version": 2, "endpoints": listed}
    protocols = {each.listener: each.protocol for each in endpoints}
    return {"version": 4, "endpoints": listed, "listener_security_protocol_map": protocols}


def read(node: Mapping[str, object]) -> tuple[Endpoint, ...]:
    """The endpoints in a registration of any version; those that make no sense are left out."""
    listed, protocols = node.get("endpoints"), node.get("listener_security_protocol_map")
    found = []
    for word in listed if isinstance(listed, list) else ():
        match = _ENDPOINT.fullmatch(word) if isinstance(word, str) else None
        if match is None:
            continue
        name = match[1]
        protocol = protocols.get(name) if isinstance(protocols, dict) else name
        if protocol in PROTOCOLS:
            found.append(Endpoint(name, protocol, match[2] or match[3] or "", int(match[4])))
    return tuple(found)

"""Live brokers (/brokers/ids), and the paths that every broker creates at its start."""

from __future__ import annotations

import logging
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from uuid import uuid4

from kafka08.common import PLAINTEXT, Broker, Endpoint
from kafka08.runtime import Clock
from zk import znodes
from zk.client import ZkClient
from zk.endpoints import is_original
from zk.errors import DuplicateBrokerError, NodeExistsError, ZkClosedError
from zk.locations import NOWHERE, Location
from zk.znodes import BrokerRegistration, MalformedNodeError

logger = logging.getLogger("kafka.utils.ZkUtils$")

_RETRY_SECONDS = 1.0
_BROKER_ID = re.compile(r"0|[1-9][0-9]{0,9}")


def ensure_common_paths(client: ZkClient) -> None:
    """Create the chroot and the persistent parents where they are missing
    (ZkUtils.setupCommonPaths)."""
    client.ensure_chroot()
    client.ensure_path(*znodes.COMMON_PATHS)


def register_broker(
    client: ZkClient,
    broker: Broker,
    *,
    clock: Clock,
    wait: Callable[[float], object],
    formats: int | None = None,
    endpoints: tuple[Endpoint, ...] = (),
    location: Location = NOWHERE,
) -> None:
    """Create /brokers/ids/N for this session (ZkUtils.registerBrokerInZk).

    Waits until a node of our former session with the same address is gone, and does not delete
    it: its end informs the controller of our restart. ``wait(seconds)`` waits, and returns true
    if the broker is stopping, which raises ZkClosedError. Raises DuplicateBrokerError if a
    broker with another address has the id.
    """
    broker_id, host, port = broker
    path = znodes.broker_path(broker_id)
    registration = BrokerRegistration(
        host, port, -1, str(clock.millis()), formats, endpoints, location
    )
    data = znodes.encode_broker(registration)
    waiting = False
    while not _register(client, path, data, registration):
        if not waiting:
            waiting = True
            logger.info(
                "I wrote this conflicted ephemeral node [%s] at %s a while back in a different "
                "session, hence I will backoff for this node to be deleted by Zookeeper and retry",
                data.decode(),
                path,
            )
        if wait(_RETRY_SECONDS):
            raise ZkClosedError(f"Stopped while {path} was still held by a former session")
    if is_original(endpoints):
        address = f"address {host}:{port}"
    else:
        address = f"addresses {', '.join(map(str, endpoints))}"
    logger.info("Registered broker %d at path %s with %s.", broker_id, path, address)


def _register(client: ZkClient, path: str, data: bytes, registration: BrokerRegistration) -> bool:
    """Try once: True if the node is this session's, False if it is our former session's."""
    while True:
        try:
            client.create(path, data, ephemeral=True, makepath=True)
            return True
        except NodeExistsError:
            found = client.get_if_exists(path)
        if found is None:
            continue
        stored, stat = found
        if not _same_address(path, stored, registration):
            raise DuplicateBrokerError(
                f"A broker is already registered on the path {path}. This probably indicates "
                "that you either have configured a brokerid that is already in use, or else you "
                "have shutdown this broker and restarted it faster than the zookeeper timeout "
                "so it appears to be re-registering.",
                path=path,
            )
        return stat.ephemeral_owner == client.session_id


def _same_address(path: str, stored: bytes, registration: BrokerRegistration) -> bool:
    try:
        other = znodes.decode_broker(path, stored)
    except znodes.MalformedNodeError:
        return False
    if not registration.host:
        return other.endpoints == registration.endpoints
    return (other.host, other.port) == (registration.host, registration.port)


def broker_ids(client: ZkClient) -> list[int]:
    """The ids of the live brokers, sorted; empty without the parent node. Names that are not
    broker ids are skipped."""
    names = client.children_if_exists(znodes.BROKER_IDS)
    return sorted(int(name) for name in names if _BROKER_ID.fullmatch(name))


def read_registration(client: ZkClient, broker_id: int) -> BrokerRegistration | None:
    """Raises MalformedNodeError."""
    path = znodes.broker_path(broker_id)
    found = client.get_if_exists(path)
    return None if found is None else znodes.decode_broker(path, found[0])


def read_broker(client: ZkClient, broker_id: int, protocol: str = PLAINTEXT) -> Broker | None:
    """The broker with its first endpoint of ``protocol``; None if there is no such broker or
    endpoint. Raises MalformedNodeError."""
    found = read_registration(client, broker_id)
    if found is None:
        return None
    address = _address(found, protocol.upper())
    if address is None:
        logger.warning("Skipping broker %d: it has no listener of %s", broker_id, protocol)
        return None
    return Broker(broker_id, *address)


def registrations(client: ZkClient) -> dict[int, BrokerRegistration | None]:
    """The registrations of the live brokers by id; None for malformed nodes."""
    found: dict[int, BrokerRegistration | None] = {}
    for broker_id in broker_ids(client):
        try:
            registration = read_registration(client, broker_id)
        except MalformedNodeError:
            found[broker_id] = None
            continue
        if registration is not None:
            found[broker_id] = registration
    return found


def remember_formats(client: ZkClient, live: Mapping[int, int | None]) -> dict[int, int]:
    """The message formats of all brokers that ever said theirs. Stores what the ``live`` ones say,
    also that one does not say it any more."""
    known = {}
    for name in client.children_if_exists(znodes.MESSAGE_FORMATS):
        path = f"{znodes.MESSAGE_FORMATS}/{name}"
        found = client.get_if_exists(path) if _BROKER_ID.fullmatch(name) else None
        with suppress(MalformedNodeError):
            if found is not None:
                known[int(name)] = znodes.decode_int32(path, found[0])
    for broker_id, formats in live.items():
        if formats is not None and formats != known.get(broker_id):
            known[broker_id] = formats
            client.create_or_set(znodes.message_format_path(broker_id), b"%d" % formats)
        elif formats is None and known.pop(broker_id, None) is not None:
            client.delete_if_exists(znodes.message_format_path(broker_id))
    return known


def ensure_cluster_id(client: ZkClient) -> str:
    """The id of the cluster; a new one is stored if there is none. Raises MalformedNodeError."""
    found = client.get_if_exists(znodes.CLUSTER_ID)
    if found is not None:
        return znodes.decode_cluster_id(znodes.CLUSTER_ID, found[0])
    new = urlsafe_b64encode(uuid4().bytes).rstrip(b"=").decode()
    try:
        client.create(znodes.CLUSTER_ID, znodes.encode_cluster_id(new), makepath=True)
    except NodeExistsError:
        return ensure_cluster_id(client)
    return new


def live_brokers(client: ZkClient, protocol: str = PLAINTEXT) -> list[Broker]:
    """The live brokers by id, with their first endpoints of ``protocol``. A malformed node, and one
    without such an endpoint, are skipped with a warning."""
    brokers = []
    for broker_id in broker_ids(client):
        try:
            broker = read_broker(client, broker_id, protocol)
        except MalformedNodeError as error:
            logger.warning("Skipping a broker: %s", error)
            continue
        if broker is not None:
            brokers.append(broker)
    return brokers


def _address(registration: BrokerRegistration, protocol: str) -> tuple[str, int] | None:
    """Host and port for clients of ``protocol``."""
    if protocol == PLAINTEXT:
        return registration.host, registration.port
    for each in registration.endpoints:
        if each.protocol == protocol:
            return each.host, each.port
    return None

"""Election of the controller by /controller and /controller_epoch (ZookeeperLeaderElector).

Functions over a client; the caller acts on the result. Differs from the original in three points:
a node of our own former session does not count as ours, a failed increment of the epoch aborts,
and only our own node is ever deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from kafka08.errors import StaleControllerEpochError
from kafka08.runtime import Clock
from zk import znodes
from zk.client import CheckOp, DeleteOp, Op, ZkClient
from zk.errors import BadVersionError, NodeExistsError, NoNodeError
from zk.watches import WatchSet

logger = logging.getLogger("kafka.server.ZookeeperLeaderElector")

NO_CONTROLLER = -1
INITIAL_EPOCH = 1


class ControllerElection(NamedTuple):
    """``leader`` is a broker id, -1 for none; ``is_ours``: this session holds /controller."""

    leader: int
    is_ours: bool


class Epoch(NamedTuple):
    """/controller_epoch and the version of its node."""

    epoch: int
    version: int


def read_controller(client: ZkClient) -> ControllerElection:
    """The holder of /controller. Raises MalformedNodeError."""
    found = client.get_if_exists(znodes.CONTROLLER)
    if found is None:
        return ControllerElection(NO_CONTROLLER, False)
    data, stat = found
    leader = znodes.decode_controller(znodes.CONTROLLER, data).broker_id
    return ControllerElection(leader, stat.ephemeral_owner == client.session_id)


def watch_controller(watches: WatchSet, event: Hashable) -> int:
    """The controller's id or -1, arming ``event`` for the node's next change."""
    found = watches.data(znodes.CONTROLLER, event)
    if found is None:
        return NO_CONTROLLER
    return znodes.decode_controller(znodes.CONTROLLER, found[0]).broker_id


def elect(client: ZkClient, broker_id: int, clock: Clock) -> ControllerElection:
    """Create /controller unless it exists; returns its holder.

    ``leader`` may be our id with ``is_ours`` false: the node of our former session, which will
    vanish soon.
    """
    node = znodes.ControllerNode(broker_id, str(clock.millis()))
    try:
        client.create(znodes.CONTROLLER, znodes.encode_controller(node), ephemeral=True)
    except NodeExistsError:
        current = read_controller(client)
        if current.leader == NO_CONTROLLER:
            logger.warning(
                "A leader has been elected but just resigned, "
                "this will result in another round of election"
            )
        return current
    logger.info("%d successfully elected as leader", broker_id)
    return ControllerElection(broker_id, True)


def read_epoch(client: ZkClient) -> Epoch | None:
    """The stored epoch, None before the first controller. Raises MalformedNodeError."""
    found = client.get_if_exists(znodes.CONTROLLER_EPOCH)
    if found is None:
        return None
    data, stat = found
    return Epoch(znodes.decode_int32(znodes.CONTROLLER_EPOCH, data), stat.version)


def bump_epoch(client: ZkClient) -> Epoch:
    """Begin our term: store the epoch plus one, or 1 for the first controller ever.

    Raises StaleControllerEpochError if another controller did so meanwhile.
    """
    path = znodes.CONTROLLER_EPOCH
    current = read_epoch(client)
    if current is None:
        try:
            client.create(path, znodes.encode_controller_epoch(INITIAL_EPOCH))
        except NodeExistsError:
            raise _moved() from None
        return Epoch(INITIAL_EPOCH, 0)
    epoch = current.epoch + 1
    # Equal bytes are not adopted: they may be another controller's write. If the answer to our
    # own write is lost, that costs another election.
    ok, version = client.conditional_set(
        path, znodes.encode_controller_epoch(epoch), current.version, lambda stored: False
    )
    if not ok:
        raise _moved()
    return Epoch(epoch, version)


def fenced(client: ZkClient, epoch: Epoch, ops: Sequence[Op]) -> list[Any]:
    """Run ``ops`` in one transaction, on condition that the controller epoch is still ours.

    Raises StaleControllerEpochError if it is not, else the error of the first op that failed.
    """
    try:
        return client.multi([CheckOp(znodes.CONTROLLER_EPOCH, epoch.version), *ops])[1:]
    except (BadVersionError, NoNodeError) as error:
        if error.path == znodes.CONTROLLER_EPOCH:
            raise _moved() from None
        raise


def resign(client: ZkClient, epoch: Epoch | None = None) -> bool:
    """Delete /controller if this session holds it; returns whether it did.

    The check of our ``epoch`` protects a successor's node even if our session expires meanwhile.
    """
    if not read_controller(client).is_ours:
        return False
    try:
        if epoch is None:
            client.delete(znodes.CONTROLLER)
        else:
            fenced(client, epoch, [DeleteOp(znodes.CONTROLLER)])
    except (NoNodeError, StaleControllerEpochError):
        return False
    return True


def _moved() -> StaleControllerEpochError:
    return StaleControllerEpochError(
        "Controller moved to another broker. Aborting controller startup procedure"
    )

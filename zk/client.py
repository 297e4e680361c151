"""A ZooKeeper session: blocking calls with a bound, and session states as callbacks.

Wraps kazoo, on threads or on greenlets, and mirrors 0.8.2.2's use of zkclient with one difference:
zkclient blocks indefinitely while ZooKeeper is not reachable. These calls fail after
``call_timeout_ms``, and at once if the session expires or the client is closed. At the end of a
process ``hurry`` makes them fail sooner. Does not interpret nodes.
"""

from __future__ import annotations

import enum
import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from kazoo import exceptions as kazoo_errors
from kazoo.protocol.states import KazooState
from kazoo.security import ACL, Id

from kafka08.errors import ConfigError
from zk.access import UNSECURED, Acl, Hidden, NodeAccess
from zk.batches import Request, Together
from zk.errors import (
    BadVersionError,
    DataTooLargeError,
    EphemeralParentError,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    SessionExpiredError,
    ZkClosedError,
    ZkConnectionError,
    ZkError,
)
from zk.handlers import KAZOO, Library

logger = logging.getLogger("org.I0Itec.zkclient.ZkClient")
connection_logger = logging.getLogger("org.apache.zookeeper.ClientCnxn")

Watch = Callable[[Any], None]
"""Called once, on the client's callback task, with an event whose ``type`` is CREATED, DELETED,
CHANGED, CHILD, or NONE when the connection that held the watch is gone. Must not block."""

NO_WATCHES: Mapping[str, Watch] = {}

NOTICE_S = 0.25
"""Seconds until a running call notices ``hurry``."""
AT_ONCE = 200
"""At most this many requests of one call are in flight."""

# The default limit of servers for one request, and so of clients.
_JUTE_MAXBUFFER = 0xFFFFF
_JUTE_OPTION = re.compile(r"-Djute\.maxbuffer=(\d{1,10})(?!\S)")
_OVERHEAD = 64  # the header, flags and access control list of a request or of one operation

_RECONNECT = {"max_tries": -1, "delay": 0.05, "backoff": 2, "max_delay": 1.0}

_ERRORS: dict[type[Exception], type[ZkError]] = {
    kazoo_errors.NoNodeError: NoNodeError,
    kazoo_errors.NoAuthError: NoAuthError,
    kazoo_errors.NodeExistsError: NodeExistsError,
    kazoo_errors.BadVersionError: BadVersionError,
    kazoo_errors.NotEmptyError: NotEmptyError,
    kazoo_errors.NoChildrenForEphemeralsError: EphemeralParentError,
    kazoo_errors.ConnectionClosedError: ZkClosedError,
    kazoo_errors.SessionExpiredError: SessionExpiredError,
}


class SessionState(enum.Enum):
    """A state of the session. EXPIRED: it ended, and a new one has replaced it."""

    CONNECTED = "SyncConnected"
    SUSPENDED = "Disconnected"
    EXPIRED = "Expired"


class Stat(NamedTuple):
    """ZooKeeper's metadata of a node; times in ms, ``ephemeral_owner`` 0 if persistent."""

    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    data_length: int
    num_children: int
    pzxid: int


class _Hurry(NamedTuple):
    """The start of a call (monotonic) and the seconds it may wait."""

    since: float
    timeout: float


class CreateOp(NamedTuple):
    path: str
    data: bytes = b""
    ephemeral: bool = False


class SetOp(NamedTuple):
    path: str
    data: bytes
    version: int = -1


class DeleteOp(NamedTuple):
    path: str
    version: int = -1


class CheckOp(NamedTuple):
    """Fail the transaction unless the node has that version."""

    path: str
    version: int


Op = CreateOp | SetOp | DeleteOp | CheckOp


def _largest_request() -> int:
    """The largest size of a request: jute.maxbuffer from KAFKA_OPTS, as in the original."""
    found = _JUTE_OPTION.findall(os.environ.get("KAFKA_OPTS", ""))
    return int(found[-1]) if found else _JUTE_MAXBUFFER


class ZkClient:
    """One session on ``connect`` ("h1:2181,h2:2181/chroot").

    ``gevent``: run on greenlets of the caller's hub. ``call_timeout_ms`` bounds every call,
    default the session timeout. ``create_chroot``: make the chroot's nodes in ``start``.
    ``access``: TLS, the login and the ACLs of nodes. ``library``: what the session is made of.

    Every call may raise ZkConnectionError, ZkClosedError and SessionExpiredError. A call
    interrupted by a connection loss is repeated; an error of the repeated call has ``after_loss``
    set. Writes that are so large that servers would close the connection raise DataTooLargeError
    and are not sent.
    """

    def __init__(
        self,
        connect: str,
        *,
        session_timeout_ms: int = 6000,
        connection_timeout_ms: int | None = None,
        call_timeout_ms: int | None = None,
        gevent: bool = False,
        create_chroot: bool = True,
        access: NodeAccess = UNSECURED,
        library: Library = KAZOO,
    ) -> None:
        self.connect = connect
        self.session_timeout_ms = session_timeout_ms
        self.session_id = 0
        self._connection_timeout_ms = connection_timeout_ms or session_timeout_ms
        self._call_timeout = (call_timeout_ms or session_timeout_ms) / 1000
        self._create_chroot = create_chroot
        self._largest_request = _largest_request()
        self._access = access
        self._monotonic = library.clock.monotonic
        self._handler = library.handler(gevent, access.context)
        try:
            self._zk = library.client(
                hosts=connect,
                timeout=session_timeout_ms / 1000,
                handler=self._handler,
                use_ssl=access.context is not None,
                auth_data=[("digest", access.login)] if access.login else None,
                connection_retry={**_RECONNECT, "sleep_func": self._handler.sleep_func},
                logger=connection_logger,
            )
        except ValueError as error:
            raise ConfigError(f"Invalid zookeeper connect string {connect!r}: {error}") from None
        self._listeners: list[Callable[[SessionState], None]] = []
        self._connected = self._handler.event_object()
        self._sessions_lost = 0
        self._expired = False
        self._closed = False
        self._hurry: _Hurry | None = None
        self._zk.add_listener(self._state_changed)

    # --- life

    def start(self) -> ZkClient:
        """Connect. Raises ZkConnectionError if that takes longer than its timeout."""
        timeout = self._connection_timeout_ms / 1000
        self._zk.start_async().wait(min(timeout, self._hurry.timeout) if self._hurry else timeout)
        if not self._zk.connected:
            self.close()
            raise ZkConnectionError(
                "Unable to connect to zookeeper server within timeout: "
                f"{self._connection_timeout_ms} ({self.connect})"
            )
        if self._create_chroot:
            self.ensure_chroot()
        return self

    def start_soon(self) -> None:
        """Connect in the background, however long that takes, and make no chroot."""
        self._zk.start_async()

    def ensure_chroot(self) -> None:
        """Make the chroot's nodes exist, if there is a chroot."""
        if not (chroot := self._zk.chroot):
            return
        self._zk.chroot = ""
        try:
            self.ensure_path(chroot)
        finally:
            self._zk.chroot = chroot

    def hurry(self, timeout_s: float) -> None:
        """Limit how long calls wait for ZooKeeper, running ones too. After the first call without
        an answer no call waits. For the end of a process."""
        self._hurry = _Hurry(self._monotonic(), timeout_s)

    def close(self) -> bool:
        """End the session and every task of the client. Not for callbacks; may be repeated.

        Whether ZooKeeper heard of it; if not, ephemeral nodes stay until the session times out.
        """
        connected = self.connected
        self._closed = True
        self._connected.set()
        if self._hurry is None:
            return self._stop() and connected
        stopped: list[bool] = []
        task = self._handler.spawn(lambda: stopped.append(self._stop()))
        if connected:
            task.join(max(0.0, self._remaining(self._monotonic())))
        return stopped == [True] and connected

    def _stop(self) -> bool:
        try:
            self._zk.stop()
            self._zk.close()
            return True
        except Exception:
            logger.warning("The connection to %s did not close cleanly", self.connect)
            logger.debug("Closing failed", exc_info=True)
            return False

    def on_state(self, callback: Callable[[SessionState], None]) -> None:
        """Call ``callback`` at each change from now on. It must only enqueue."""
        self._listeners.append(callback)

    @property
    def connected(self) -> bool:
        return not self._closed and bool(self._zk.connected)

    def _state_changed(self, state: object) -> None:
        """Runs on kazoo's connection task."""
        if self._closed:
            return
        if state == KazooState.LOST:
            self._sessions_lost += 1
            self._expired = True
            self._connected.clear()
            return
        if state == KazooState.SUSPENDED:
            self._connected.clear()
            self._tell(SessionState.SUSPENDED)
            return
        client_id = self._zk.client_id
        self.session_id = client_id[0] if client_id else 0
        expired, self._expired = self._expired, False
        self._connected.set()
        self._tell(SessionState.EXPIRED if expired else SessionState.CONNECTED)

    def _tell(self, state: SessionState) -> None:
        logger.info("zookeeper state changed (%s)", state.value)
        for listener in list(self._listeners):
            listener(state)

    # --- one call

    def _call(
        self,
        path: str,
        issue: Callable[[], Request],
        finish: Callable[[Any, bool], Any] | None = None,
    ) -> Any:
        """The result of the request that ``issue`` sends; repeated after connection losses.

        ``finish(result, after_loss)`` may replace it or raise.
        """
        begin = self._monotonic()
        sessions_lost = self._sessions_lost
        after_loss = False
        while True:
            self._await_connection(path, begin)
            if self._sessions_lost != sessions_lost:
                raise SessionExpiredError(path=path, after_loss=after_loss)
            result = issue()
            while not result.ready() and (remaining := self._remaining(begin)) > 0:
                result.wait(min(remaining, NOTICE_S))
            if not result.ready():
                self._give_up()
                raise ZkConnectionError(path=path, after_loss=after_loss)
            try:
                answer = result.get()
                return finish(answer, after_loss) if finish else answer
            except (kazoo_errors.ConnectionLoss, kazoo_errors.OperationTimeoutError):
                after_loss = True
            except kazoo_errors.KazooException as error:
                raise _translate(error, path, after_loss) from None

    def _remaining(self, begin: float) -> float:
        """The seconds that a call may still wait; 0 or less: it may not wait."""
        end = begin + self._call_timeout
        if self._hurry is not None:
            end = min(end, max(begin, self._hurry.since) + self._hurry.timeout)
        return end - self._monotonic()

    def _give_up(self) -> None:
        if self._hurry is not None:
            self._hurry = self._hurry._replace(timeout=0.0)

    def _await_connection(self, path: str, begin: float) -> None:
        while not self.connected:
            remaining = self._remaining(begin)
            if self._closed:
                raise ZkClosedError(path=path)
            if remaining <= 0:
                self._give_up()
                raise ZkConnectionError(path=path)
            if self._connected.is_set():
                # kazoo has lost the connection but has not reported it yet.
                self._handler.sleep_func(0.01)
            else:
                self._connected.wait(min(remaining, NOTICE_S))

    # --- reading

    def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        """Data and stat. Raises NoNodeError; then the watch is not armed."""
        data, stat = self._call(path, lambda: self._zk.get_async(path, watch=watch))
        return data or b"", Stat(*stat)

    def get_if_exists(self, path: str) -> tuple[bytes, Stat] | None:
        try:
            return self.get(path)
        except NoNodeError:
            return None

    def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        """The stat, or None; the watch is armed in either case."""
        stat = self._call(path, lambda: self._zk.exists_async(path, watch=watch))
        return Stat(*stat) if stat else None

    def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """Names in no particular order. Raises NoNodeError; then the watch is not armed."""
        return list(self._call(path, lambda: self._zk.get_children_async(path, watch=watch)))

    def children_if_exists(self, path: str) -> list[str]:
        """Names; empty if the node does not exist."""
        try:
            return self.children(path)
        except NoNodeError:
            return []

    def get_all(
        self, paths: Sequence[str], watches: Mapping[str, Watch] = NO_WATCHES
    ) -> list[tuple[bytes, Stat] | None]:
        """Data and stat of each node, None if it does not exist; many requests at a time.
        ``watches``, by path, are not armed for nodes that do not exist."""
        found = self._read_all(paths, lambda path: self._zk.get_async(path, watches.get(path)))
        return [each and (each[0] or b"", Stat(*each[1])) for each in found]

    def children_of_all(self, paths: Sequence[str]) -> list[list[str]]:
        """Names below each node, none if it does not exist; many requests at a time."""
        found = self._read_all(paths, lambda path: self._zk.get_children_async(path))
        return [list(each or ()) for each in found]

    def _read_all(self, paths: Sequence[str], issue: Callable[[str], Request]) -> list[Any]:
        found = []
        for at in range(0, len(paths), AT_ONCE):
            some = paths[at : at + AT_ONCE]
            found += self._call(some[0], partial(Together, issue, some))
        return found

    # --- writing

    def _check_size(self, *written: tuple[str, bytes]) -> None:
        size = sum(_OVERHEAD + len(path) + len(data) for path, data in written)
        if size > self._largest_request:
            path, data = max(written, key=lambda each: len(each[1]))
            raise DataTooLargeError(
                f"{len(data)} bytes for {path}: a request of {size} bytes is more than the "
                f"{self._largest_request} that ZooKeeper takes (jute.maxbuffer)",
                path=path,
            )

    def create(
        self,
        path: str,
        data: bytes = b"",
        *,
        ephemeral: bool = False,
        sequence: bool = False,
        makepath: bool = False,
    ) -> str:
        """Create a node, with ``makepath`` also its missing parents; returns its path.

        Raises NodeExistsError, NoNodeError (no parent), EphemeralParentError. After a connection
        loss an existing node with our bytes (and our session, if ephemeral) counts as created by
        this call. A ``sequence`` node may be created twice.
        """
        self._check_size((path, data))
        try:
            return str(
                self._call(
                    path,
                    lambda: self._zk.create_async(
                        path, data, self._acl(path), ephemeral=ephemeral, sequence=sequence
                    ),
                )
            )
        except NoNodeError:
            parent = path.rpartition("/")[0]
            if not makepath or not parent:
                raise
            self.ensure_path(parent)
            return self.create(path, data, ephemeral=ephemeral, sequence=sequence)
        except NodeExistsError as error:
            if error.after_loss and self._is_ours(path, data, ephemeral):
                return path
            raise

    def _acl(self, path: str) -> list[ACL] | None:
        acl = self._access.acl(path)
        return None if acl is None else _entries(acl)

    def _is_ours(self, path: str, data: bytes, ephemeral: bool) -> bool:
        found = self.get_if_exists(path)
        if found is None or found[0] != data:
            return False
        return found[1].ephemeral_owner == (self.session_id if ephemeral else 0)

    def ensure_path(self, *paths: str) -> None:
        """Make ``paths`` and their parents exist, without data."""
        found = self._read_all(paths, lambda path: self._zk.exists_async(path or "/"))
        missing = [path for path, stat in zip(paths, found, strict=True) if stat is None]
        if missing:
            self.ensure_path(*sorted({path.rpartition("/")[0] for path in missing}))
        while missing:
            try:
                self.multi([CreateOp(path) for path in missing])
                break
            except NodeExistsError as error:  # by another client, or by a try without an answer
                missing.remove(error.path)

    def set(self, path: str, data: bytes, version: int = -1) -> Stat:
        """Replace the data if the version matches (-1: any). Raises NoNodeError,
        BadVersionError."""
        self._check_size((path, data))
        return Stat(*self._call(path, lambda: self._zk.set_async(path, data, version)))

    def create_or_set(self, path: str, data: bytes) -> int:
        """Store ``data`` unconditionally; returns the version (ZkUtils.updatePersistentPath)."""
        try:
            return self.set(path, data).version
        except NoNodeError:
            try:
                self.create(path, data, makepath=True)
                return 0
            except NodeExistsError:
                return self.set(path, data).version

    def conditional_set(
        self,
        path: str,
        data: bytes,
        version: int,
        same: Callable[[bytes], bool] | None = None,
    ) -> tuple[bool, int]:
        """Set if the version matches: (True, new version) or (False, -1).

        On a version mismatch the node is read again; when ``same`` accepts its bytes (default:
        they equal ``data``) an earlier try had succeeded, and the node's version is adopted.
        A missing node is a failure too (ZkUtils.conditionalUpdatePersistentPath).
        """
        try:
            return True, self.set(path, data, version).version
        except BadVersionError as error:
            found = self.get_if_exists(path)
            if found is not None and (same(found[0]) if same else found[0] == data):
                return True, found[1].version
            reason: ZkError = error
        except NoNodeError as error:
            reason = error
        logger.warning(
            "Conditional update of path %s with data %s and expected version %d failed due to %s",
            *(path, data.decode(errors="replace"), version, reason),
        )
        return False, -1

    def delete(self, path: str, version: int = -1) -> None:
        """Raises NoNodeError (unless an interrupted try may have succeeded), BadVersionError,
        NotEmptyError."""
        try:
            self._call(path, lambda: self._zk.delete_async(path, version))
        except NoNodeError as error:
            if not error.after_loss:
                raise

    def delete_if_exists(self, path: str) -> bool:
        """Delete a node if it exists; returns whether it did (ZkUtils.deletePath)."""
        try:
            self.delete(path)
        except NoNodeError:
            return False
        return True

    def delete_recursive(self, path: str) -> None:
        """Delete a node and its descendants, if it exists."""
        for child in self.children_if_exists(path):
            self.delete_recursive(f"{path.rstrip('/')}/{child}")
        self.delete_if_exists(path)

    def multi(self, ops: Sequence[Op]) -> list[Any]:
        """Run all operations or none. Returns for each the created path, a set's Stat, or True.

        Raises the error of the first operation that failed, with its ``path``. With
        ``after_loss`` an earlier try may have carried out the whole transaction.
        """
        self._check_size(*((op.path, getattr(op, "data", b"")) for op in ops))

        def issue() -> Request:
            transaction = self._zk.transaction()
            for op in ops:
                _add(transaction, op, self._acl(op.path))
            request: Request = transaction.commit_async()
            return request

        results: list[Any] = self._call("", issue, lambda done, loss: _raise_first(ops, done, loss))
        return [
            Stat(*result) if isinstance(op, SetOp) else result
            for op, result in zip(ops, results, strict=True)
        ]

    # --- used only by tools for ZooKeeper itself

    def sync(self, path: str) -> None:
        """Let the server catch up with the ensemble's leader."""
        self._call(path, lambda: self._zk.sync_async(path))

    def get_acl(self, path: str) -> tuple[list[Acl], Stat]:
        """(permission bits, scheme, id) of each entry, and the stat. Raises NoNodeError."""
        acls, stat = self._call(path, lambda: self._zk.get_acls_async(path))
        return [(acl.perms, acl.id.scheme, acl.id.id) for acl in acls], Stat(*stat)

    def set_acl(self, path: str, acl: Sequence[Acl]) -> Stat:
        entries = _entries(acl)
        return Stat(*self._call(path, lambda: self._zk.set_acls_async(path, entries)))

    def add_auth(self, scheme: str, credential: str) -> None:
        self._call("", lambda: self._zk.add_auth_async(scheme, Hidden(credential)))


def _translate(error: Exception, path: str, after_loss: bool) -> ZkError:
    for kind, ours in _ERRORS.items():
        if isinstance(error, kind):
            return ours(path=path, after_loss=after_loss)
    return ZkError(f"{type(error).__name__} for {path}: {error}", path=path, after_loss=after_loss)


def _entries(acl: Sequence[Acl]) -> list[ACL]:
    return [ACL(perms, Id(scheme, name)) for perms, scheme, name in acl]


def _add(transaction: Any, op: Op, acl: list[ACL] | None) -> None:
    if isinstance(op, CreateOp):
        transaction.create(op.path, op.data, acl, ephemeral=op.ephemeral)
    elif isinstance(op, SetOp):
        transaction.set_data(op.path, op.data, op.version)
    elif isinstance(op, DeleteOp):
        transaction.delete(op.path, op.version)
    else:
        transaction.check(op.path, op.version)


def _raise_first(ops: Sequence[Op], results: list[Any], after_loss: bool) -> list[Any]:
    """The results; raises the error that undid the operations, if there is one."""
    echoes = (kazoo_errors.RolledBackError, kazoo_errors.RuntimeInconsistency)
    for op, result in zip(ops, results, strict=True):
        if isinstance(result, Exception) and not isinstance(result, echoes):
            raise _translate(result, op.path, after_loss)
    return results

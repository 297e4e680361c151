from __future__ import annotations

import gc
import queue
import socket
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from kazoo import exceptions as kazoo_errors
from kazoo.client import KazooClient

from tests.zk import server
from zk.access import Hidden, NodeAccess
from zk.client import (
    AT_ONCE,
    NOTICE_S,
    CheckOp,
    CreateOp,
    DeleteOp,
    SessionState,
    SetOp,
    ZkClient,
)
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
)


def expire(client: ZkClient) -> None:
    """End the client's session behind its back."""
    other = KazooClient(client.connect, client_id=server.kazoo_of(client).client_id)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other.start()
    other.stop()
    other.close()


def lose_answers(client: ZkClient, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Have the next request of that name carried out, but its answer lost."""
    real: Callable[..., Any] = getattr(server.kazoo_of(client), name)

    def once(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.undo()
        try:
            real(*args, **kwargs).get()
        except kazoo_errors.KazooException:
            pass
        return server.lost_answer(client)

    monkeypatch.setattr(server.kazoo_of(client), name, once)


@pytest.mark.parametrize("gevent", [False, True])
def test_nodes_come_change_and_go(chroot: str, gevent: bool) -> None:
    client = server.connect(chroot, gevent=gevent)
    try:
        assert client.session_id != 0
        assert client.create("/a", b"1") == "/a"
        data, stat = client.get("/a")
        assert (data, stat.version, stat.ephemeral_owner) == (b"1", 0, 0)
        assert client.set("/a", b"22", 0).version == 1
        assert client.exists("/a").data_length == 2  # type: ignore[union-attr]
        assert client.create("/x/y/z", makepath=True) == "/x/y/z"
        assert client.children("/x") == ["y"]
        assert client.create("/x/s-", sequence=True) == "/x/s-0000000001"
        client.create("/x/e", ephemeral=True)
        assert client.get("/x/e")[1].ephemeral_owner == client.session_id
        assert client.create_or_set("/new/node", b"1") == 0
        assert client.create_or_set("/new/node", b"2") == 1
        client.delete_recursive("/x")
        assert client.exists("/x") is None
        assert client.get_if_exists("/x") is None
        assert client.children_if_exists("/x") == []
        assert client.delete_if_exists("/a")
        assert not client.delete_if_exists("/a")
        client.delete_recursive("/a")
    finally:
        client.close()


@pytest.mark.scenario("ops-26")
def test_many_nodes_are_read_together(client: ZkClient) -> None:
    """More than are asked for at a time; those that do not exist are told."""
    client.ensure_path("/many")
    for number in range(0, 3 * AT_ONCE, 3):
        client.create(f"/many/{number}", b"%d" % number)
    paths = [f"/many/{number}" for number in range(3 * AT_ONCE)]
    found = client.get_all(paths)
    assert [each and each[0] for each in found[:4]] == [b"0", None, None, b"3"]
    assert [each is not None for each in found] == [n % 3 == 0 for n in range(3 * AT_ONCE)]
    assert found[3] is not None and found[3][1].version == 0
    names = client.children_of_all(["/many", "/nowhere", "/many/0"])
    assert [len(each) for each in names] == [AT_ONCE, 0, 0]
    assert client.get_all([]) == client.children_of_all([]) == []


def test_paths_that_another_client_makes_too(
    client: ZkClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = client.multi

    def later(ops: Any) -> Any:
        monkeypatch.undo()
        client.create("/a")
        return real(ops)

    monkeypatch.setattr(client, "multi", later)
    client.ensure_path("/b", "/a", "/a/c/d")
    assert sorted(client.children("/")) == ["a", "b"]
    assert client.children("/a/c") == ["d"]


def test_reading_many_nodes_is_repeated_after_a_lost_connection(
    client: ZkClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.ensure_path("/here")
    lose_answers(client, monkeypatch, "get_async")
    assert [each is None for each in client.get_all(["/here", "/nowhere"])] == [False, True]


def test_refusals_name_the_node_in_the_originals_words(client: ZkClient) -> None:
    client.create("/a/b", makepath=True)
    client.create("/e", ephemeral=True)
    for error, name, call in [
        (NoNodeError, "NoNode", lambda: client.get("/no")),
        (NoNodeError, "NoNode", lambda: client.children("/no")),
        (NoNodeError, "NoNode", lambda: client.set("/no", b"")),
        (NoNodeError, "NoNode", lambda: client.delete("/no")),
        (NoNodeError, "NoNode", lambda: client.create("/no/more")),
        (NodeExistsError, "NodeExists", lambda: client.create("/a")),
        (BadVersionError, "BadVersion", lambda: client.set("/a", b"", 3)),
        (NotEmptyError, "NotEmpty", lambda: client.delete("/a")),
        (EphemeralParentError, "NoChildrenForEphemerals", lambda: client.create("/e/x")),
    ]:
        with pytest.raises(error) as caught:
            call()  # type: ignore[no-untyped-call]
        assert caught.value.path.startswith("/")
        assert (
            f"KeeperException${name}Exception: KeeperErrorCode = {name} for {caught.value.path}"
            in str(caught.value)
        )


class TestSize:
    """A server closes the connection over a request that is too large, and every retry as well."""

    @staticmethod
    def writes(client: ZkClient, size: int) -> list[Callable[[], Any]]:
        data = bytes(size)
        return [
            lambda: client.create("/large", data),
            lambda: client.set("/large", data),
            lambda: client.create_or_set("/large", data),
            lambda: client.multi([SetOp("/a", data[: size // 2]), SetOp("/b", data[size // 2 :])]),
        ]

    def test_what_is_too_large_is_not_sent(self) -> None:
        client = ZkClient("localhost:1")  # never started: what is to be sent would wait
        for write in self.writes(client, 1 << 20):
            with pytest.raises(DataTooLargeError, match=r"jute\.maxbuffer"):
                write()

    def test_what_a_server_takes_is(self, client: ZkClient) -> None:
        for write in self.writes(client, 1_048_300)[:2]:
            write()
        assert client.get("/large")[1].data_length == 1_048_300

    def test_the_limit_is_that_of_the_original(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KAFKA_OPTS", "-Dx=y -Djute.maxbuffer=2000 -Dz")
        client = ZkClient("localhost:1")
        with pytest.raises(DataTooLargeError, match="more than the 2000 that"):
            client.create("/large", bytes(2000))


def test_transactions_are_all_or_nothing(client: ZkClient) -> None:
    client.create("/v", b"0")
    done = client.multi(
        [
            CheckOp("/v", 0),
            CreateOp("/m", b"1"),
            SetOp("/m", b"2", 0),
            DeleteOp("/m"),
            CreateOp("/k"),
        ]
    )
    assert done[1] == "/m"
    assert done[2].version == 1
    with pytest.raises(NodeExistsError) as exists:
        client.multi([CreateOp("/n"), CreateOp("/k"), DeleteOp("/nothing")])
    assert exists.value.path == "/k"
    with pytest.raises(BadVersionError) as version:
        client.multi([CreateOp("/n"), CheckOp("/v", 7)])
    assert version.value.path == "/v"
    assert client.exists("/n") is None


def test_conditional_set(client: ZkClient) -> None:
    client.create("/s", b"one")
    assert client.conditional_set("/s", b"two", 0) == (True, 1)
    assert client.conditional_set("/s", b"three", 0) == (False, -1)
    assert client.conditional_set("/s", b"two", 0) == (True, 1)  # an earlier try of ours
    assert client.conditional_set("/s", b"TWO", 0, lambda stored: stored == b"two") == (True, 1)
    assert client.conditional_set("/s", b"two", 0, lambda stored: False) == (False, -1)
    assert client.conditional_set("/missing", b"", 0) == (False, -1)


def test_the_chroot_is_made_unless_told_otherwise() -> None:
    to = server.fresh_chroot() + "/deep/er"
    bare = ZkClient(to, connection_timeout_ms=20000, create_chroot=False).start()
    try:
        assert bare.exists("/") is None
    finally:
        bare.close()
    client = server.connect(to)
    try:
        assert client.exists("/") is not None
        assert client.children("/") == []
    finally:
        client.close()


@pytest.mark.parametrize("ephemeral", [False, True])
def test_a_create_whose_answer_was_lost_is_ours(
    client: ZkClient, monkeypatch: pytest.MonkeyPatch, ephemeral: bool
) -> None:
    lose_answers(client, monkeypatch, "create_async")
    assert client.create("/a", b"x", ephemeral=ephemeral) == "/a"


def test_somebody_elses_node_is_not_ours_after_a_lost_answer(
    client: ZkClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = server.connect(client.connect)
    try:
        other.create("/a", b"x", ephemeral=True)
        lose_answers(client, monkeypatch, "create_async")
        with pytest.raises(NodeExistsError) as caught:
            client.create("/a", b"x", ephemeral=True)
        assert caught.value.after_loss
    finally:
        other.close()


def test_writes_whose_answer_was_lost(client: ZkClient, monkeypatch: pytest.MonkeyPatch) -> None:
    client.create("/a", b"0")
    lose_answers(client, monkeypatch, "set_async")
    assert client.conditional_set("/a", b"1", 0) == (True, 1)
    lose_answers(client, monkeypatch, "delete_async")
    client.delete("/a")
    with pytest.raises(NoNodeError):
        client.delete("/a")


@pytest.mark.parametrize("gevent", [False, True])
def test_states_and_expiry(chroot: str, gevent: bool) -> None:
    client = server.connect(chroot, gevent=gevent)
    states: list[SessionState] = []
    told = server.kazoo_of(client).handler.event_object()

    def listen(state: SessionState) -> None:
        states.append(state)
        if state is not SessionState.SUSPENDED:
            told.set()

    client.on_state(listen)
    try:
        client.create("/e", ephemeral=True)
        first = client.session_id
        server.break_connection(client)
        assert told.wait(10)
        assert states == [SessionState.SUSPENDED, SessionState.CONNECTED]
        assert client.session_id == first
        assert client.exists("/e") is not None
        states.clear()
        told.clear()
        expire(client)
        assert told.wait(10)
        assert states == [SessionState.SUSPENDED, SessionState.EXPIRED]
        assert client.session_id != first
        assert client.exists("/e") is None
    finally:
        client.close()


def test_a_call_that_spans_an_expiry_fails(client: ZkClient) -> None:
    def issue() -> Any:
        client._sessions_lost += 1
        return server.lost_answer(client)

    with pytest.raises(SessionExpiredError):
        client._call("/a", issue)


def test_an_unreachable_server_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    client = ZkClient(f"127.0.0.1:{port}/x", connection_timeout_ms=100)
    with pytest.raises(ZkConnectionError, match=f"within timeout: 100 .*127.0.0.1:{port}/x"):
        client.start()
    with pytest.raises(ZkClosedError):
        client.get("/")


def test_a_connection_in_the_background(chroot: str) -> None:
    client = ZkClient(chroot.partition("/")[0])
    client.start_soon()
    assert "zookeeper" in client.children("/")
    client.close()


def test_a_connection_in_the_background_waits_for_its_server() -> None:
    before = set(threading.enumerate())
    client = ZkClient("127.0.0.1:1", call_timeout_ms=20)
    client.start_soon()
    for _ in range(2):
        with pytest.raises(ZkConnectionError):
            client.get("/")
    client.close()
    assert set(threading.enumerate()) == before


def test_a_call_without_a_connection_is_bounded() -> None:
    client = ZkClient("127.0.0.1:1", call_timeout_ms=20)
    with pytest.raises(ZkConnectionError):
        client.get("/")


def test_a_call_without_a_connection_notices_that_it_must_hurry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = ZkClient("127.0.0.1:1", call_timeout_ms=60000)
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        client.hurry(0.0)

    monkeypatch.setattr(client._connected, "wait", wait)
    with pytest.raises(ZkConnectionError):
        client.get("/")
    assert waited == [NOTICE_S]
    with pytest.raises(ZkConnectionError):
        client.get("/")
    assert waited == [NOTICE_S]
    assert not client.close()


def test_in_a_hurry_no_second_call_waits_for_a_server_that_is_silent(
    client: ZkClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    silent = server.kazoo_of(client).handler.async_result()
    monkeypatch.setattr(silent, "wait", waited.append)
    monkeypatch.setattr(server.kazoo_of(client), "get_async", lambda *_args, **_options: silent)
    client.hurry(0.01)
    with pytest.raises(ZkConnectionError):
        client.get("/")
    assert waited and max(waited) <= 0.01
    waited.clear()
    with pytest.raises(ZkConnectionError):
        client.get("/")
    assert waited == []


@pytest.mark.parametrize("gevent", [False, True])
def test_closing_in_a_hurry_ends_the_session(chroot: str, gevent: bool, client: ZkClient) -> None:
    other = server.connect(chroot, gevent=gevent)
    other.create("/hurried", ephemeral=True)
    other.hurry(10.0)
    assert other.close()
    assert client.exists("/hurried") is None


def test_closing_interrupts_a_waiting_call() -> None:
    client = ZkClient("127.0.0.1:1", call_timeout_ms=60000)
    caught: queue.Queue[BaseException] = queue.Queue()

    def wait() -> None:
        try:
            client.get("/")
        except ZkConnectionError as error:
            caught.put(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    client.close()
    waiting.join(10)
    assert isinstance(caught.get(timeout=10), ZkClosedError)


def test_close_leaves_no_thread(chroot: str) -> None:
    before = set(threading.enumerate())
    client = server.connect(chroot)
    assert set(threading.enumerate()) > before
    client.close()
    client.close()
    assert set(threading.enumerate()) == before


def test_close_leaves_no_greenlet(chroot: str) -> None:
    import gevent

    def living() -> int:
        gc.collect()
        return sum(isinstance(o, gevent.Greenlet) and not o.dead for o in gc.get_objects())

    before = living()
    client = server.connect(chroot, gevent=True)
    assert living() > before
    client.close()
    assert living() == before


@pytest.mark.scenario("security-54")
def test_nodes_of_a_login_are_for_others_to_read(
    chroot: str, client: ZkClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    owner = server.connect(chroot, access=NodeAccess(login=Hidden("kafka:secret"), set_acl=True))
    again = server.connect(chroot, access=NodeAccess(login=Hidden("kafka:secret")))
    try:
        owner.create("/a", b"1")
        owner.create("/config/users", makepath=True)
        owner.create("/consumers/g", makepath=True)
        owner.multi([CreateOp("/b", b"1"), CreateOp("/b/c")])
        assert client.get("/a")[0] == b"1"
        for refused in (
            lambda: client.set("/a", b"2"),
            lambda: client.create("/b/d"),
            lambda: client.delete("/b/c"),
            lambda: client.get("/config/users"),
        ):
            with pytest.raises(NoAuthError, match="KeeperErrorCode = NoAuth for /"):
                refused()
        assert client.create("/consumers/g/ids") == "/consumers/g/ids"
        assert again.set("/a", b"2").version == 1
        again.create("/open")
        assert client.set("/open", b"3").version == 1
    finally:
        owner.close()
        again.close()
    assert "secret" not in caplog.text
    assert "Auth(" in caplog.text

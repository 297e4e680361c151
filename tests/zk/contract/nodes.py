"""Nodes: what is created, read, changed and deleted, and what others see of it."""

from __future__ import annotations

from tests.zk.contract.ground import Ground, promise, refused, stat_of
from zk.errors import (
    BadVersionError,
    EphemeralParentError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
)


@promise
def a_node_has_its_data_and_a_stat(ground: Ground) -> None:
    client = ground.client()
    assert client.create("/a", b"one") == "/a"
    data, stat = client.get("/a")
    assert data == b"one"
    assert (stat.version, stat.ephemeral_owner) == (0, 0)
    assert (stat.data_length, stat.num_children, stat.cversion) == (3, 0, 0)
    assert stat.czxid == stat.mzxid == stat.pzxid > 0
    assert stat.ctime == stat.mtime > 0
    assert client.exists("/a") == stat


@promise
def refusals_of_a_creation(ground: Ground) -> None:
    client = ground.client()
    client.create("/a")
    client.create("/e", ephemeral=True)
    assert refused(NodeExistsError, lambda: client.create("/a")).path == "/a"
    refused(NodeExistsError, lambda: client.create("/a", ephemeral=True))
    refused(NoNodeError, lambda: client.create("/no/b"))
    refused(EphemeralParentError, lambda: client.create("/e/b"))
    assert sorted(client.children("/")) == ["a", "e"]
    assert client.create("/x/y/z", makepath=True) == "/x/y/z"
    assert client.children("/x") == ["y"]


@promise
def a_write_is_conditional_on_the_version(ground: Ground) -> None:
    client = ground.client()
    client.create("/a", b"0")
    first = stat_of(client, "/a")
    assert client.set("/a", b"11", 0).version == 1
    refused(BadVersionError, lambda: client.set("/a", b"2", 0))
    assert client.set("/a", b"222").version == 2
    refused(BadVersionError, lambda: client.delete("/a", 1))
    refused(NoNodeError, lambda: client.set("/no", b"", 0))
    data, stat = client.get("/a")
    assert (data, stat.version, stat.data_length) == (b"222", 2, 3)
    assert stat.czxid == first.czxid < stat.mzxid
    client.delete("/a", 2)
    refused(NoNodeError, lambda: client.delete("/a"))


@promise
def a_node_that_is_created_again_has_another_czxid(ground: Ground) -> None:
    client = ground.client()
    client.create("/a")
    client.set("/a", b"1")
    first = stat_of(client, "/a")
    client.delete("/a")
    client.create("/a")
    again = stat_of(client, "/a")
    assert again.version == 0
    assert again.czxid > first.mzxid > first.czxid


@promise
def a_node_with_children_is_not_deleted(ground: Ground) -> None:
    client = ground.client()
    client.create("/a/b", makepath=True)
    refused(NotEmptyError, lambda: client.delete("/a"))
    client.delete("/a/b")
    client.delete("/a")
    client.ensure_path("/a/b/c", "/a/d")
    client.delete_recursive("/a")
    assert client.exists("/a") is None
    assert not client.delete_if_exists("/a")


@promise
def children_show_in_their_parents_stat(ground: Ground) -> None:
    client = ground.client()
    client.create("/a", b"x")
    before = stat_of(client, "/a")
    client.create("/a/b")
    client.create("/a/c")
    client.delete("/a/b")
    stat = stat_of(client, "/a")
    assert (stat.num_children, stat.cversion, stat.version) == (1, 3, 0)
    assert stat.mzxid == before.mzxid < stat.pzxid
    client.set("/a/c", b"1")
    assert stat_of(client, "/a") == stat


@promise
def what_does_not_exist(ground: Ground) -> None:
    client = ground.client()
    assert client.exists("/a") is None
    assert client.get_if_exists("/a") is None
    assert client.children_if_exists("/a") == []
    for call in (client.get, client.children, client.delete):
        assert refused(NoNodeError, lambda call=call: call("/a")).path == "/a"  # type: ignore[misc]
    assert client.children("/") == []


@promise
def many_reads_at_a_time(ground: Ground) -> None:
    client = ground.client()
    client.ensure_path("/a/x", "/a/y", "/b")
    client.set("/a", b"1")
    found = client.get_all(["/a", "/no", "/b"])
    assert [each and each[0] for each in found] == [b"1", None, b""]
    assert [sorted(names) for names in client.children_of_all(["/a", "/b", "/no"])] == [
        ["x", "y"],
        [],
        [],
    ]


@promise
def sequential_names_count_all_children_ever_created(ground: Ground) -> None:
    client = ground.client()
    client.create("/q")
    assert client.create("/q/n-", sequence=True) == "/q/n-0000000000"
    client.create("/q/other")
    client.delete("/q/other")
    client.delete("/q/n-0000000000")
    assert client.create("/q/m_", b"1", sequence=True) == "/q/m_0000000002"
    path = client.create("/q/n-", ephemeral=True, sequence=True)
    assert path == "/q/n-0000000003"
    assert stat_of(client, path).ephemeral_owner == client.session_id
    assert client.create("/new/n-", sequence=True, makepath=True) == "/new/n-0000000000"


@promise
def own_writes_are_read(ground: Ground) -> None:
    client = ground.client()
    client.create("/a")
    for number in range(10):
        version = client.set("/a", b"%d" % number).version
        assert client.get("/a")[0] == b"%d" % number
        assert stat_of(client, "/a").version == version == number + 1


@promise
def a_refusal_shows_what_refused(ground: Ground) -> None:
    """A read after a conflict sees the node in the way, even if another client wrote it."""
    client, other = ground.client(), ground.other()
    for number in range(5):
        path = f"/{number}"
        other.create(path, b"other")
        refused(NodeExistsError, lambda path=path: client.create(path))  # type: ignore[misc]
        assert client.get(path)[0] == b"other"
        other.set(path, b"again")
        assert client.conditional_set(path, b"mine", 0) == (False, -1)
        assert client.conditional_set(path, b"again", 0) == (True, 1)


@promise
def a_sync_shows_what_others_wrote(ground: Ground) -> None:
    client, other = ground.client(), ground.other()
    client.create("/a")
    for number in range(5):
        client.set("/a", b"%d" % number)
        other.sync("/a")
        assert other.get("/a")[0] == b"%d" % number


@promise
def a_new_session_sees_everything_before_it(ground: Ground) -> None:
    client = ground.client()
    client.create("/a", b"1")
    assert ground.other().get("/a")[0] == b"1"
    client.set("/a", b"2")
    assert ground.other().get("/a")[0] == b"2"


@promise
def reads_do_not_go_back(ground: Ground) -> None:
    """Also not over a lost connection."""
    client, other = ground.client(), ground.other()
    client.create("/a")
    other.sync("/a")
    newest = 0
    for number in range(12):
        client.set("/a", b"")
        found = other.exists("/a")
        assert found is not None and found.version >= newest
        newest = found.version
        if number % 4 == 3:
            ground.break_connection(other)

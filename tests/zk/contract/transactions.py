"""Transactions: all or nothing."""

from __future__ import annotations

from kafka08.runtime import Queue
from tests.zk.contract.ground import (
    SECONDS,
    Ground,
    Told,
    nothing_else,
    promise,
    refused,
    stat_of,
    teller,
)
from zk.client import CheckOp, CreateOp, DeleteOp, SetOp
from zk.errors import BadVersionError, NodeExistsError, NoNodeError, NotEmptyError


@promise
def a_transaction_is_carried_out_as_a_whole(ground: Ground) -> None:
    client = ground.client()
    client.create("/v", b"0")
    done = client.multi(
        [
            CheckOp("/v", 0),
            CreateOp("/m", b"1"),
            SetOp("/m", b"2", 0),
            CreateOp("/m/n", ephemeral=True),
            SetOp("/v", b"1"),
            DeleteOp("/m/n", 0),
            DeleteOp("/m", 1),
            CreateOp("/k"),
        ]
    )
    assert (done[0], done[1], done[5], done[7]) == (True, "/m", True, "/k")
    assert (done[2].version, done[4].version) == (1, 1)
    assert sorted(client.children("/")) == ["k", "v"]
    assert stat_of(client, "/k").czxid == stat_of(client, "/v").mzxid == done[4].mzxid


@promise
def a_refused_transaction_changes_nothing(ground: Ground) -> None:
    client = ground.client()
    client.create("/v")
    client.create("/p/c", makepath=True)
    before = [stat_of(client, path) for path in ("/", "/v", "/p")]
    told: Queue[Told] = ground.runtime.queue()
    client.children("/", teller(told))
    for error, path, op in [
        (NodeExistsError, "/v", CreateOp("/v")),
        (BadVersionError, "/v", CheckOp("/v", 7)),
        (BadVersionError, "/v", SetOp("/v", b"", 0)),
        (BadVersionError, "/v", DeleteOp("/v", 0)),
        (NoNodeError, "/no", CheckOp("/no", 0)),
        (NoNodeError, "/no", DeleteOp("/no")),
        (NoNodeError, "/no/x", CreateOp("/no/x")),
        (NotEmptyError, "/p", DeleteOp("/p")),
        (NodeExistsError, "/n", CreateOp("/n")),
    ]:
        ops = [CreateOp("/n"), SetOp("/v", b"1"), op, DeleteOp("/gone")]
        assert refused(error, lambda ops=ops: client.multi(ops)).path == path  # type: ignore[misc]
    assert [stat_of(client, path) for path in ("/", "/v", "/p")] == before
    client.create("/n")
    assert told.get(timeout=SECONDS) == ("CHILD", "/")
    nothing_else(client, told)


@promise
def a_check_fences(ground: Ground) -> None:
    """A node does not change between a check and the rest of its transaction."""
    client, other = ground.client(), ground.other()
    client.create("/epoch")
    client.create("/state")
    for number in range(5):
        version = client.set("/epoch", b"").version
        stale = [CheckOp("/epoch", version - 1), SetOp("/state", b"stale")]
        assert refused(BadVersionError, lambda ops=stale: other.multi(ops)).path == "/epoch"  # type: ignore[misc]
        done = other.multi([CheckOp("/epoch", version), SetOp("/state", b"new")])
        assert done[1].version == number + 1

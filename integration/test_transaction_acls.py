"""The users that may use a transactional id: on this broker and on Kafka 3.9.1.

Requests byte by byte come from addresses, which rules can tell apart; clients log in.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from integration import modern
from integration.harness import Broker, Process, Tools, ZooKeeper, free_port
from integration.later.transactional import (
    NO_PRODUCER,
    TIMEOUT_MS,
    Ids,
    add,
    ask,
    batch,
    begun,
    by_topic,
    coordinator_code,
    end,
    produce,
    state,
)
from integration.modern import ModernBroker
from integration.sasl import PLAIN_MODULE, USERS
from integration.test_acls import ACLS, ANONYMOUS, From, current
from integration.test_transactions import WAIT_S, producer, raised, unique
from integration.wire import Wire, wait_until
from kafka08.protocol import transaction_schemas as t
from kafka08.protocol.later_schemas import InitProducerIdRequest

ADMIN, STRANGER = "127.0.0.1", "127.0.0.2"
TOPIC_CODE, GROUP_CODE, CLUSTER_CODE, ID_CODE, NOT_TRIED = 29, 30, 31, 53, 55
REFUSED = "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
USERS_WORDS = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
OPEN, CLOSED, READABLE = "open", "closed", "readable"
MINE, YOURS = "mine", "yours"
NONE, DESCRIBED, WRITTEN = "none", "described", "written"  # ids, by what a stranger may
ACL_PROPS = {
    "sasl.enabled.mechanisms": "PLAIN",
    "super.users": "User:admin",
    "transaction.state.log.replication.factor": 1,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
    "offsets.topic.num.partitions": 1,
}
LOGIN = f'{PLAIN_MODULE} required username="admin" password="admin-secret" {USERS_WORDS};'


class Guarded(NamedTuple):
    """``address`` is that of logins."""

    kind: str
    port: int
    address: str
    tools: Tools

    def rules(self, *words: str, kind: str = "") -> str:
        """kafka-acls, of the broker's kind unless another is given."""
        where = ("--bootstrap-server", f"127.0.0.1:{self.port}")
        if (kind or self.kind) == "ours":
            done = self.tools.run(ACLS, *where, *words)
            assert done.code == 0, done.out + done.err
            return done.out
        java = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{modern.directory()}/*", ACLS]
        return subprocess.run(
            [*java, *where, *words], capture_output=True, text=True, timeout=180, check=True
        ).stdout

    def allow(self, *words: str, to: str = ANONYMOUS, host: str = STRANGER) -> None:
        host_words = ("--allow-host", host) if to == ANONYMOUS else ()
        self.rules("--add", "--allow-principal", to, *host_words, *words)

    def login(self, user: str) -> dict[str, Any]:
        return {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_username": user,
            "sasl_password": USERS[user],
        }


def started(kind: str, directory: Path, zookeeper: ZooKeeper) -> tuple[Process, int, int]:
    """Broker, and the ports without and with logins. Its rules are there before it starts."""
    chroot = f"{zookeeper.connect}/transaction-acls-{kind}"
    logins = free_port()
    port = free_port()
    listeners = f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{logins}"
    props: dict[str, object] = {**ACL_PROPS, "listeners": listeners}
    if kind == "ours":
        props["authorizer.class.name"] = "kafka.security.auth.SimpleAclAuthorizer"
        props["sasl.jaas.config"] = LOGIN
        ours = Broker("ours", directory, chroot, port=port, props=props)
        return ours, port, logins
    props["authorizer.class.name"] = "kafka.security.authorizer.AclAuthorizer"
    props["listener.name.sasl_plaintext.plain.sasl.jaas.config"] = LOGIN
    theirs = ModernBroker(directory, chroot, props=props)
    theirs.port = port
    return theirs, port, logins


@pytest.fixture(scope="module", params=["modern", "ours"])
def guarded(
    request: pytest.FixtureRequest,
    zookeeper: ZooKeeper,
    tmp_path_factory: pytest.TempPathFactory,
    our_tools: Tools,
) -> Iterator[Guarded]:
    if reason := modern.missing():
        pytest.skip(reason)
    directory = tmp_path_factory.mktemp("guarded")
    broker, port, logins = started(request.param, directory, zookeeper)
    where = f"{zookeeper.connect}/transaction-acls-{request.param}"
    for kind in ("--cluster", "--topic=*", "--group=*", "--transactional-id=*"):
        words = ("--add", "--allow-principal", ANONYMOUS, "--allow-host", ADMIN)
        at = ("--authorizer-properties", f"zookeeper.connect={where}")
        client = zookeeper.client()
        client.ensure_path(where.removeprefix(zookeeper.connect))
        client.stop()
        client.close()
        done = our_tools.run(ACLS, *at, *words, "--operation", "All", *kind.split("="))
        assert done.code == 0, done.err
    broker.start()  # type: ignore[attr-defined]
    found = Guarded(request.param, port, f"127.0.0.1:{logins}", our_tools)
    for topic in (OPEN, CLOSED, READABLE):
        make_topic(found, topic)
    found.allow("--operation", "Write", "--topic", OPEN)
    found.allow("--operation", "Read", "--topic", READABLE)
    found.allow("--operation", "Read", "--group", MINE)
    found.allow("--operation", "Describe", "--transactional-id", DESCRIBED)
    found.allow("--operation", "Write", "--transactional-id", WRITTEN)
    with From(port, STRANGER) as wire:
        wait_until("the rules", 30, lambda: coordinator_code(wire, WRITTEN) != ID_CODE)
    yield found
    broker.kill()


def make_topic(guarded: Guarded, topic: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{guarded.port}", "log_level": 0})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(WAIT_S)
    with Wire(guarded.port) as wire:
        wait_until(f"a leader of {topic}", WAIT_S, lambda: wire.offset(topic, 0) == 0)


def begun_by_admin(guarded: Guarded, id_: str) -> Ids:
    with From(guarded.port, ADMIN) as wire:
        return begun(wire, id_)


@pytest.fixture
def stranger(guarded: Guarded) -> Iterator[Wire]:
    with From(guarded.port, STRANGER) as wire:
        yield wire


@pytest.mark.scenario("transactions-48")
def test_the_coordinator_of_an_id(guarded: Guarded, stranger: Wire) -> None:
    for id_ in (DESCRIBED, WRITTEN):
        begun_by_admin(guarded, id_)
    found = {id_: coordinator_code(stranger, id_) for id_ in (NONE, DESCRIBED, WRITTEN)}
    assert found == {NONE: ID_CODE, DESCRIBED: 0, WRITTEN: 0}


@pytest.mark.scenario("transactions-48")
def test_a_producer_of_an_id(guarded: Guarded, stranger: Wire) -> None:
    begun_by_admin(guarded, WRITTEN)
    for version in (0, 1, 2, 3, 4):
        for id_ in (NONE, DESCRIBED, WRITTEN):
            answer = ask(stranger, InitProducerIdRequest(id_, TIMEOUT_MS), version)
            assert answer.error == (0 if id_ == WRITTEN else ID_CODE), (version, id_)
    assert ask(stranger, InitProducerIdRequest(None, TIMEOUT_MS), 1).error == 0


@pytest.mark.scenario("transactions-48")
def test_partitions_of_a_transaction(guarded: Guarded, stranger: Wire) -> None:
    for version in (0, 2, 3):
        for id_ in (NONE, DESCRIBED):
            made = begun_by_admin(guarded, id_)
            found = add(stranger, id_, made, OPEN, CLOSED, version=version)
            assert found == {OPEN: ID_CODE, CLOSED: ID_CODE}
        made = begun_by_admin(guarded, WRITTEN)
        found = add(stranger, WRITTEN, made, OPEN, CLOSED, version=version)
        assert found == {OPEN: NOT_TRIED, CLOSED: TOPIC_CODE}
        assert add(stranger, WRITTEN, made, OPEN, version=version) == {OPEN: 0}
    made = begun_by_admin(guarded, WRITTEN)
    topics = [t.TxnTopic(OPEN, [0])]
    of_brokers = t.AddPartitionsToTxnRequest(
        transactions=[t.TxnToAdd(WRITTEN, *made, verify_only=True, topics=topics)]
    )
    assert ask(stranger, of_brokers, 4).error == CLUSTER_CODE


@pytest.mark.scenario("transactions-48")
def test_offsets_and_the_end_of_a_transaction(guarded: Guarded, stranger: Wire) -> None:
    def add_group(id_: str, made: Ids, group: str, version: int) -> int:
        return int(ask(stranger, t.AddOffsetsToTxnRequest(id_, *made, group), version).error)

    def commit(id_: str, made: Ids, group: str, version: int) -> dict[str, int]:
        topics = [
            t.TxnOffsetCommitTopic(topic, [t.TxnOffsetCommitPartition(0, 5, metadata="")])
            for topic in (READABLE, CLOSED)
        ]
        request = t.TxnOffsetCommitRequest(id_, group, *made, topics=topics)
        return by_topic(ask(stranger, request, version).topics)

    with From(guarded.port, ADMIN) as wire:
        wait_until("a coordinator", WAIT_S, lambda: wire.coordinator_error(MINE) == 0)
    for version in (0, 2, 3):
        for id_ in (NONE, DESCRIBED):
            made = begun_by_admin(guarded, id_)
            assert add_group(id_, made, MINE, version) == ID_CODE
            everywhere = {READABLE: ID_CODE, CLOSED: ID_CODE}
            assert commit(id_, made, MINE, version) == everywhere
            assert end(stranger, id_, made, commit=True, version=version) == ID_CODE
        made = begun_by_admin(guarded, WRITTEN)
        assert add_group(WRITTEN, made, YOURS, version) == GROUP_CODE
        assert commit(WRITTEN, made, YOURS, version) == {READABLE: GROUP_CODE, CLOSED: GROUP_CODE}
        assert add_group(WRITTEN, made, MINE, version) == 0
        assert commit(WRITTEN, made, MINE, version) == {READABLE: 0, CLOSED: TOPIC_CODE}
        assert end(stranger, WRITTEN, made, commit=True, version=version) == 0


@pytest.mark.scenario("transactions-48")
def test_batches_of_a_transaction(guarded: Guarded, stranger: Wire) -> None:
    with From(guarded.port, ADMIN) as admin:
        for id_ in (NONE, DESCRIBED):
            made = begun_by_admin(guarded, id_)
            assert add(admin, id_, made, OPEN) == {OPEN: 0}
            data = batch(made, 0)
            assert produce(stranger, OPEN, data, id_) == ID_CODE
            assert produce(stranger, OPEN, data, None) == ID_CODE
            assert produce(stranger, OPEN, batch(NO_PRODUCER, -1, 0), None) == 0  # of others
            assert produce(admin, OPEN, data, id_) == 0
        made = begun_by_admin(guarded, WRITTEN)
        assert add(admin, WRITTEN, made, OPEN, CLOSED) == {OPEN: 0, CLOSED: 0}
        data = batch(made, 0)
        assert produce(stranger, CLOSED, data, WRITTEN) == TOPIC_CODE
        assert produce(stranger, OPEN, data, WRITTEN) == 0


@pytest.mark.scenario("transactions-48")
def test_markers_are_for_brokers(guarded: Guarded, stranger: Wire) -> None:
    made = begun_by_admin(guarded, WRITTEN)
    for version in (0, 1):
        marked = [t.MarkedTopic(OPEN, [0])]
        request = t.WriteTxnMarkersRequest([t.TxnMarker(*made, True, marked, 0)])
        answer = ask(stranger, request, version)
        assert [by_topic(each.topics) for each in answer.markers] == [{OPEN: CLUSTER_CODE}]
        with From(guarded.port, ADMIN) as wire:
            answer = ask(wire, request, version)
            assert [by_topic(each.topics) for each in answer.markers] == [{OPEN: 0}]


@pytest.mark.scenario("transactions-48")
def test_what_is_shown_of_transactions(guarded: Guarded, stranger: Wire) -> None:
    with From(guarded.port, ADMIN) as admin:
        for id_ in (NONE, DESCRIBED):
            assert add(admin, id_, begun_by_admin(guarded, id_), OPEN, CLOSED) == {
                OPEN: 0,
                CLOSED: 0,
            }
        listed = ask(admin, t.ListTransactionsRequest([], []), 0).transactions
        assert {NONE, DESCRIBED} <= {each.transactional_id for each in listed}
    listed = ask(stranger, t.ListTransactionsRequest([], []), 0).transactions
    assert {each.transactional_id for each in listed} - {WRITTEN} == {DESCRIBED}
    request = t.DescribeTransactionsRequest([NONE, DESCRIBED])
    found = {each.transactional_id: each for each in ask(stranger, request, 0).transactions}
    assert (found[NONE].error, found[NONE].topics) == (ID_CODE, [])
    assert found[DESCRIBED].state == "Ongoing"
    assert [topic.topic for topic in found[DESCRIBED].topics] == [OPEN]
    asked = [t.ProducersTopic(topic, [0]) for topic in (OPEN, READABLE, CLOSED)]
    codes = by_topic(ask(stranger, t.DescribeProducersRequest(asked), 0).topics)
    assert codes == {OPEN: TOPIC_CODE, READABLE: 0, CLOSED: TOPIC_CODE}


@pytest.mark.scenario("transactions-48")
def test_clients_are_refused_by_name(guarded: Guarded) -> None:
    """One whose right ends may not end its transaction, which then ends by its timeout."""
    from confluent_kafka import Producer

    alice, id_ = guarded.login("alice"), unique("id")
    assert raised(lambda: producer(guarded.address, id_, **alice)) == REFUSED
    guarded.allow("--producer", "--transactional-id", id_, "--topic", OPEN, to="User:alice")

    def begin() -> Any:
        try:
            return producer(guarded.address, id_, transaction_timeout_ms=15_000, **alice)
        except Exception as error:
            assert error.args[0].name() == REFUSED
            return None

    made: list[Any] = []
    wait_until("the right", 30, lambda: made.append(begin()) or made[-1])
    made[-1].begin_transaction()
    made[-1].produce(OPEN, "x")
    made[-1].commit_transaction(WAIT_S)
    made[-1].begin_transaction()
    made[-1].produce(OPEN, "y")
    made[-1].flush(WAIT_S)
    words = ("--operation", "Write", "--operation", "Describe", "--transactional-id", id_)
    guarded.rules("--remove", "--force", "--allow-principal", "User:alice", *words)

    assert raised(lambda: made[-1].commit_transaction(WAIT_S)) == REFUSED

    with From(guarded.port, ADMIN) as wire:
        wait_until("its end", WAIT_S, lambda: state(wire, id_) == "CompleteAbort")
    told: list[object] = []
    settings = {key.replace("_", "."): value for key, value in alice.items()}
    plain = Producer({"bootstrap.servers": guarded.address, "log_level": 0, **settings})
    plain.produce(OPEN, "z", on_delivery=lambda error, _: told.append(error))
    assert plain.flush(WAIT_S) == 0
    assert told == [None]


@pytest.mark.scenario("transactions-48")
def test_both_tools_know_the_resource(guarded: Guarded) -> None:
    """Against this broker, too."""
    id_ = unique("id")
    kinds = ("ours", "modern")
    at = ("--transactional-id", id_)
    for kind, principal in zip(kinds, ("User:a", "User:b"), strict=True):
        words = ("--add", "--allow-principal", principal, "--producer", "--topic", OPEN, *at)
        guarded.rules(*words, kind=kind)
    prefixed = ("--resource-pattern-type", "prefixed")
    guarded.rules("--add", "--deny-principal", "User:c", "--operation", "Write", *at, *prefixed)
    listed = [current(guarded.rules("--list", *at, kind=kind)) for kind in kinds]
    assert listed[0] == listed[1]
    (rules,) = listed[0].values()
    assert len(rules) == 4
    matching = ("--list", "--transactional-id", f"{id_}-1", "--resource-pattern-type", "match")
    listed = [current(guarded.rules(*matching, kind=kind)) for kind in kinds]
    assert listed[0] == listed[1]
    assert sum("User:c" in rule for rules in listed[0].values() for rule in rules) == 1
    for kind in kinds:
        guarded.rules("--remove", "--force", *at, kind=kind)
        assert current(guarded.rules("--list", *at, kind=kind)) == {}

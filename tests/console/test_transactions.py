"""kafka08.console.transactions."""

from __future__ import annotations

import pytest

from kafka08.common import TopicPartition
from kafka08.console.transactions import HANGING, Held, Transactions
from kafka08.errors import AdminOperationError
from kafka08.protocol import schemas
from kafka08.protocol import transaction_schemas as t
from kafka08.protocol.negotiation import NoApiVersionsError
from tests.console.scene import ConsoleScene
from tests.fakes.transactions import Begun

T, U = TopicPartition("t", 0), TopicPartition("u", 0)


def scene_with_topics() -> ConsoleScene:
    """Ten messages in each of t and u, and a minute has passed."""
    scene = ConsoleScene()
    scene.runtime.clock.advance(1000)
    for tp in (T, U):
        scene.topic(tp.topic, [1])
        scene.produce(tp.topic, *[b"m"] * 10)
    return scene


def read(scene: ConsoleScene) -> Transactions:
    scene.look()
    found = scene.observer.transactions
    assert found is not None
    return found


def begin(
    scene: ConsoleScene, id_: str, producer_id: int, age_s: int, **starts: int | None
) -> None:
    start_ms = scene.runtime.clock.millis() - age_s * 1000
    tps = {TopicPartition(topic, 0): start for topic, start in starts.items()}
    scene.cluster.transactions.begin(Begun(id_, 1, producer_id, start_ms, tps))


def test_the_oldest_first_and_what_each_holds_back() -> None:
    scene = scene_with_topics()
    begin(scene, "young", 1, 5, t=6)
    begin(scene, "old", 2, 30, t=3, u=9)
    found = read(scene)
    old, young = found.open
    assert (old.id, old.age_ms, old.timeout_ms) == ("old", 30_000, 60_000)
    assert (young.id, young.age_ms) == ("young", 5_000)
    assert found.held == {T: Held(3, 10, old), U: Held(9, 10, old)}
    assert list(found.held) == [T, U]
    assert found.held_by(old) == 8
    assert found.held_by(young) == 0  # readers wait for the other one
    assert found.errors == {}


def test_nothing_is_open() -> None:
    assert read(scene_with_topics()) == Transactions((), {}, {}, True)


def test_late_is_longer_than_its_timeout() -> None:
    scene = scene_with_topics()
    begin(scene, "id", 1, 60, t=3)
    assert read(scene).late == []
    scene.runtime.clock.advance(0.001)
    [late] = read(scene).late
    assert late.id == "id"


def test_a_partition_without_a_message_of_the_transaction() -> None:
    scene = scene_with_topics()
    begin(scene, "id", 1, 5, t=None)
    found = read(scene)
    assert found.open[0].partitions == {T: None}
    assert found.held == {}


def test_messages_that_come_meanwhile_are_not_held_back() -> None:
    """The last stable offset is asked for after the high watermark."""
    scene = scene_with_topics()
    scene.look()

    def script(port: int, request: object) -> None:
        if isinstance(request, t.ListTransactionsRequest):
            scene.produce("t", b"m")

    scene.cluster.script = script
    assert read(scene).held == {}


def test_one_that_no_coordinator_has_hangs() -> None:
    """Only if it is still there in the next round: coordinators were asked before leaders."""
    scene = scene_with_topics()
    now = scene.runtime.clock.millis()
    for tp, start in ((T, 4), (U, 5)):
        scene.cluster.transactions.write(tp, 9, start, time_ms=now - 1000 - start, epoch=3)
    found = read(scene)
    assert found.open == ()
    assert found.held == {T: Held(4, 10), U: Held(5, 10)}
    found = read(scene)
    [hanging] = found.open
    assert (hanging.id, hanging.state, hanging.name) == ("", HANGING, "9")
    assert (hanging.producer_id, hanging.epoch) == (9, 3)
    assert hanging.age_ms == 1004
    assert hanging.is_late
    assert found.held_by(hanging) == 11


def test_the_next_transaction_of_a_producer_does_not_hang() -> None:
    scene = scene_with_topics()
    scene.cluster.transactions.write(T, 9, 4)
    read(scene)
    scene.cluster.transactions.end(9)
    scene.cluster.transactions.write(T, 9, 8)
    assert read(scene).open == ()


def test_nothing_hangs_while_a_coordinator_does_not_answer() -> None:
    scene = scene_with_topics()
    scene.cluster.transactions.write(T, 9, 4)
    read(scene)

    def script(port: int, request: object) -> object:
        if isinstance(request, t.ListTransactionsRequest):
            return t.ListTransactionsResponse(0, 14, [], [])
        return None

    scene.cluster.script = script
    found = read(scene)
    assert found.open == ()
    assert found.held == {T: Held(4, 10)}
    assert list(found.errors) == [1]


def test_a_broker_that_does_not_answer_is_named_and_asked_no_more() -> None:
    """Each question may take as long as the console waits for a broker."""
    scene = scene_with_topics()
    begin(scene, "id", 1, 5, t=3)
    asked = []

    def script(port: int, request: object) -> None:
        if isinstance(request, (schemas.ListOffsetsRequest, t.ListTransactionsRequest)):
            asked.append(request)
            raise TimeoutError("b1:9091 did not answer")

    scene.cluster.script = script
    assert read(scene).errors == {1: "b1:9091 did not answer"}
    assert len(asked) == 1
    scene.cluster.script = None
    assert read(scene).errors == {}


def test_a_partition_that_is_not_shown_hides_no_other_one() -> None:
    scene = scene_with_topics()
    begin(scene, "id", 1, 5, t=3, u=9)
    scene.cluster.transactions.errors[U] = 29
    found = read(scene)
    assert found.open[0].start(T) == 3
    assert found.errors == {1: "[u,0]: TopicAuthorizationFailed"}


def test_brokers_of_0_8_2_2_are_not_asked() -> None:
    scene = scene_with_topics()
    read(scene)
    asked = (t.ListTransactionsRequest, t.DescribeProducersRequest, t.DescribeTransactionsRequest)
    assert [each for kind in asked for each in scene.cluster.took(2, kind)] == []
    assert scene.cluster.took(1, t.ListTransactionsRequest)
    del scene.server.nodes["/brokers/ids/1"]
    assert not read(scene).served


def test_a_broker_without_versions_is_asked_again_after_a_minute() -> None:
    """As kafka08 is beside one of 0.8.2.2; or it is about to stop."""
    scene = scene_with_topics()
    scene.cluster.transactions.write(T, 9, 4)
    read(scene)
    asked = []

    def script(port: int, request: object) -> None:
        if isinstance(request, (schemas.ListOffsetsRequest, t.ListTransactionsRequest)):
            asked.append(request)
            raise NoApiVersionsError("b1:9091 closed the connection")

    scene.cluster.script = script
    for age in (1, 58):
        found = read(scene)
        assert (found.open, found.held, found.errors) == ((), {}, {})
        assert not found.served
        assert found.silent == (1,)
        scene.runtime.clock.advance(age)
    assert len(asked) == 1
    scene.cluster.script = None
    scene.runtime.clock.advance(1)
    assert read(scene).served
    assert [each.state for each in read(scene).open] == [HANGING]


def test_a_coordinator_aborts_its_transaction() -> None:
    scene = scene_with_topics()
    begin(scene, "id", 1, 5, t=3)
    [found] = read(scene).open
    scene.site.transactions.abort(found, {T: 1})
    [request] = scene.cluster.transactions.fenced
    assert (request.transactional_id, request.transaction_timeout_ms) == ("id", 60_000)
    assert scene.cluster.transactions.marked == []
    assert read(scene).open == ()


def test_an_abort_that_has_begun_is_one() -> None:
    scene = scene_with_topics()
    begin(scene, "id", 1, 5, t=3)
    [found] = read(scene).open
    scene.cluster.transactions.fence_code = 51
    scene.site.transactions.abort(found, {T: 1})
    scene.cluster.transactions.fence_code = 43
    with pytest.raises(AdminOperationError, match="UnsupportedForMessageFormat"):
        scene.site.transactions.abort(found, {T: 1})


def test_one_that_hangs_is_aborted_by_markers() -> None:
    scene = scene_with_topics()
    scene.cluster.transactions.write(T, 9, 4, epoch=3)
    read(scene)
    [found] = read(scene).open
    scene.site.transactions.abort(found, {T: 1})
    [marker] = scene.cluster.transactions.marked
    assert marker == t.TxnMarker(9, 3, False, [t.MarkedTopic("t", [0])], 0)
    assert read(scene).held == {}

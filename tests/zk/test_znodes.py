from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.common import TopicPartition
from zk import znodes
from zk.locations import Location
from zk.znodes import (
    BrokerRegistration,
    ConsumerRegistration,
    ControllerNode,
    MalformedNodeError,
    PartitionStateNode,
)

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
BROKERS = st.lists(st.integers(0, 1 << 30), min_size=1, max_size=4, unique=True)

# Written by the original.
ORIGINAL_TOPICS = {
    1: b'{"version":1,"partitions":{"0":[3,2]}}',
    2: b'{"version":1,"partitions":{"1":[2,3],"0":[1,2]}}',
    3: b'{"version":1,"partitions":{"2":[2,1],"1":[1,0],"0":[0,3]}}',
    4: b'{"version":1,"partitions":{"2":[3,1],"1":[2,0],"3":[0,2],"0":[1,3]}}',
    5: b'{"version":1,"partitions":{"4":[1,3],"1":[2,3],"0":[1,2],"2":[3,0],"3":[0,1]}}',
    13: b'{"version":1,"partitions":{"12":[3,0],"8":[3,2],"4":[3,1],"11":[2,1],"9":[0,3],'
    b'"5":[0,2],"10":[1,0],"6":[1,3],"1":[0,1],"0":[3,0],"2":[1,2],"7":[2,0],"3":[2,3]}}',
}


@pytest.mark.parametrize("count", ORIGINAL_TOPICS)
def test_topic_keeps_the_originals_bytes(count: int) -> None:
    assignment = znodes.decode_topic("/t", ORIGINAL_TOPICS[count])
    assert list(assignment) == list(range(count))
    assert znodes.encode_topic(assignment) == ORIGINAL_TOPICS[count]


def test_topic_config_keeps_the_originals_bytes() -> None:
    config = {
        "flush.ms": "5",
        "cleanup.policy": "compact",
        "retention.ms": "100",
        "segment.bytes": "100000",
    }
    written = (
        b'{"version":1,"config":{"cleanup.policy":"compact","flush.ms":"5",'
        b'"retention.ms":"100","segment.bytes":"100000"}}'
    )
    assert znodes.encode_topic_config(config) == written
    assert znodes.decode_topic_config("/c", written) == config
    assert znodes.encode_topic_config({}) == b'{"version":1,"config":{}}'


def test_small_nodes_bytes() -> None:
    assert znodes.encode_broker(BrokerRegistration("h1", 9092, -1, "1441")) == (
        b'{"jmx_port":-1,"timestamp":"1441","host":"h1","version":1,"port":9092}'
    )
    later = BrokerRegistration("h1", 9092, -1, "1441", 2)
    assert znodes.encode_broker(later) == (
        b'{"jmx_port":-1,"timestamp":"1441","host":"h1","version":1,"port":9092,"formats":2}'
    )
    assert znodes.decode_broker("/b", znodes.encode_broker(later)) == later
    placed = BrokerRegistration("h1", 9092, -1, "1441", location=Location("r", "u"))
    assert znodes.encode_broker(placed) == (
        b'{"jmx_port":-1,"timestamp":"1441","host":"h1","version":1,"port":9092,"rack":"r",'
        b'"unit":"u"}'
    )
    assert znodes.decode_broker("/b", znodes.encode_broker(placed)) == placed
    odd = znodes.decode_broker("/b", b'{"host":"h","port":1,"rack":7,"unit":[]}')
    assert odd == BrokerRegistration("h", 1)
    assert znodes.encode_partition_state(PartitionStateNode(1, 3, 2, (1, 2))) == (
        b'{"controller_epoch":2,"leader":1,"version":1,"leader_epoch":3,"isr":[1,2]}'
    )
    assert znodes.encode_controller(ControllerNode(1, "1441")) == (
        b'{"version":1,"brokerid":1,"timestamp":"1441"}'
    )
    assert znodes.encode_controller_epoch(3) == b"3"
    assert znodes.encode_reassignment({TopicPartition("t", 0): [2, 3]}) == (
        b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[2,3]}]}'
    )
    assert znodes.encode_partitions([TopicPartition("t", 0)]) == (
        b'{"version":1,"partitions":[{"topic":"t","partition":0}]}'
    )
    assert znodes.encode_consumer(ConsumerRegistration({"t": 2}, "static", "1")) == (
        b'{"version":1,"subscription":{"t":2},"pattern":"static","timestamp":"1"}'
    )
    assert znodes.encode_offset(1234) == b"1234"
    assert znodes.encode_owner("C-0") == b"C-0"


def test_paths() -> None:
    assert znodes.broker_path(3) == "/brokers/ids/3"
    assert znodes.partition_state_path("t", 1) == "/brokers/topics/t/partitions/1/state"
    assert znodes.topic_config_path("t") == "/config/topics/t"
    assert znodes.delete_topic_path("t") == "/admin/delete_topics/t"
    assert znodes.consumer_id_path("g", "c") == "/consumers/g/ids/c"
    assert znodes.consumer_owner_path("g", "t", 0) == "/consumers/g/owners/t/0"
    assert znodes.consumer_offset_path("g", "t", 0) == "/consumers/g/offsets/t/0"


def test_readers_tolerate_what_the_original_tolerates() -> None:
    assert znodes.decode_controller("/c", b"7") == ControllerNode(7)
    broker = znodes.decode_broker("/b", b'{"host":"h","port":1,"rack":"x","jmx_port":"no"}')
    assert broker == BrokerRegistration("h", 1, location=Location("x"))
    assert znodes.decode_topic("/t", b'{"version":1}') == {}
    assert znodes.decode_topic_config("/c", b"") == {}
    assert znodes.decode_topic_config("/c", b'{"config":{"a":5,"b":true}}') == {
        "a": "5",
        "b": "true",
    }
    twice = b'{"partitions":[{"topic":"t","partition":0},{"topic":"t","partition":0}]}'
    assert znodes.decode_partitions("/p", twice) == [TopicPartition("t", 0)]


@pytest.mark.parametrize(
    ("decode", "data"),
    [
        (znodes.decode_broker, b""),
        (znodes.decode_broker, b"[]"),
        (znodes.decode_broker, b'{"host":"h"}'),
        (znodes.decode_broker, b'{"host":"h","port":"9092"}'),
        (znodes.decode_broker, b'{"host":"h","port":9092,"timestamp":1441000000000}'),
        (znodes.decode_broker, b'{"host":"h","port":1.0}'),
        (znodes.decode_broker, b'{"host":"h","port":true}'),
        (znodes.decode_broker, b'{"host":1,"port":1}'),
        (znodes.decode_broker, b"\xff"),
        (znodes.decode_topic, b'{"partitions":{"x":[1]}}'),
        (znodes.decode_topic, b'{"partitions":{"99999999999":[1]}}'),
        (znodes.decode_topic, b'{"partitions":{"2147483648":[1]}}'),
        (znodes.decode_topic, b'{"partitions":{"0":["1"]}}'),
        (znodes.decode_topic, b'{"partitions":[1]}'),
        (znodes.decode_partition_state, b'{"leader":1,"leader_epoch":0,"isr":[1]}'),
        (znodes.decode_partition_state, b"NaN"),
        (znodes.decode_controller, b'"1"'),
        (znodes.decode_controller, b'{"brokerid":"1"}'),
        (znodes.decode_int32, b"x"),
        (znodes.decode_int32, b"2147483648"),
        (znodes.decode_reassignment, b'{"partitions":[{"topic":"t","partition":0}]}'),
        (znodes.decode_partitions, b'{"partitions":{}}'),
        (znodes.decode_topic_config, b'{"config":{"a":null}}'),
        (znodes.decode_topic_config, b'{"version":2,"config":{}}'),
        (znodes.decode_consumer, b'{"subscription":{"t":1}}'),
        (znodes.decode_consumer, b'{"subscription":' + b"[" * 5000 + b"]" * 5000 + b"}"),
        (znodes.decode_consumer, b'{"subscription":{"t":"1"},"pattern":"static"}'),
        (znodes.decode_offset, b""),
        (znodes.decode_offset, b"9223372036854775808"),
        (znodes.decode_offset, b"9" * 5000),
        (znodes.decode_offset, b"1_0"),
    ],
)
def test_malformed_payloads_name_their_path(decode, data: bytes) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(MalformedNodeError) as caught:
        decode("/some/path", data)
    assert caught.value.path == "/some/path"
    assert "/some/path" in str(caught.value)


@given(st.dictionaries(st.integers(0, 300), BROKERS, max_size=60))
def test_topic_round_trip(assignment: dict[int, list[int]]) -> None:
    decoded = znodes.decode_topic("/t", znodes.encode_topic(assignment))
    assert decoded == {partition: tuple(ids) for partition, ids in assignment.items()}


@given(st.builds(PartitionStateNode, INT32, INT32, INT32, st.lists(INT32).map(tuple)))
def test_partition_state_round_trip(state: PartitionStateNode) -> None:
    assert znodes.decode_partition_state("/s", znodes.encode_partition_state(state)) == state


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=40))
def test_topic_config_round_trip(config: dict[str, str]) -> None:
    assert znodes.decode_topic_config("/c", znodes.encode_topic_config(config)) == config


@given(st.binary(max_size=40))
def test_garbage_never_escapes_as_anything_else(data: bytes) -> None:
    for decode in (
        znodes.decode_broker,
        znodes.decode_topic,
        znodes.decode_partition_state,
        znodes.decode_controller,
        znodes.decode_int32,
        znodes.decode_reassignment,
        znodes.decode_consumer,
        znodes.decode_offset,
    ):
        try:
            decode("/p", data)
        except MalformedNodeError:
            pass


@pytest.mark.parametrize(
    "written, subscription, pattern",
    [
        (rb'{"a\d+":1},"pattern":"white_list"', {r"a\d+": 1}, "white_list"),
        (rb'{"a\\d\"":1},"pattern":"black_list"', {'a\\d"': 1}, "black_list"),
        (rb'{"t":1},"pattern":"other"', {"t": 1}, "static"),
        (rb'{},"pattern":"white_list"', {}, "static"),
    ],
)
def test_old_and_odd_registrations_are_read(
    written: bytes, subscription: dict[str, int], pattern: str
) -> None:
    found = znodes.decode_consumer("/c", b'{"version":1,"subscription":' + written + b"}")
    assert (dict(found.subscription), found.pattern) == (subscription, pattern)

"""A hundred thousand damaged requests against a real broker, which serves good clients meanwhile.

Requests that still decode must be answered, in order, with something that decodes; the others
must close their connection and nothing else. Every few hundred a good client writes and reads.
At the end the broker is alive, holds no more files and hardly more memory than before, has
touched nothing outside its directory, and its logs open after a kill.

KAFKA08_FUZZ_SEED repeats a run, KAFKA08_FUZZ_FRAMES sets its length.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import socket
import struct
import time
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from kafka08.common import INTERNAL_TOPICS, TopicPartition
from kafka08.errors import ProtocolError
from kafka08.log.manager import LogManager
from kafka08.message.scan import iter_entries
from kafka08.message.sets import encode_set, iter_messages
from kafka08.protocol import admin_schemas as a
from kafka08.protocol import group_schemas as g
from kafka08.protocol import schemas as s
from kafka08.protocol.registry import ORIGINAL_APIS, Apis
from kafka08.protocol.requests import RequestDecoder, decode_response, encode_request
from kafka08.protocol.types import Struct
from kafka08.runtime import SystemClock
from kafka08.settings.broker import BrokerConfig
from tests.live.broker import BROKER_ID, LiveBroker
from tests.live.mutations import lie_about_size, mutate
from tests.message.sets import wrapper
from zk import znodes

FRAMES = int(os.environ.get("KAFKA08_FUZZ_FRAMES", 100_000))
SEED = int(os.environ.get("KAFKA08_FUZZ_SEED") or int.from_bytes(os.urandom(4), "big"))
GOLDEN = Path(__file__).parents[1] / "golden" / "vectors.json"

PER_CONNECTION = 40
CONNECTIONS_PER_CHECK = 15
AT_ONCE = 4
LAST_EPOCH = 2**31 - 1  # whatever controller epoch a damaged request brings, ours is not stale
FUZZ, CHECK, APART = "fuzz", "check", "apart"
KEPT = {FUZZ, CHECK, APART, *INTERNAL_TOPICS}
MEMORY_BOUND = 200 << 20
LONGEST_SESSION_MS = 20  # of members of groups: nobody waits for longer


class Sent(NamedTuple):
    """A body and what must come of it; ``request`` is None where the connection closes."""

    body: bytes
    correlation_id: int
    request: Any
    answer: Any


# Valid requests


def golden() -> list[bytes]:
    vectors = json.loads(GOLDEN.read_text(encoding="utf-8"))["vectors"]
    frames = [bytes.fromhex(v["hex"]) for v in vectors if v["direction"] == "request"]
    return [frame[4:] for frame in frames]


def own(closed_port: int) -> list[bytes]:
    """Requests of every API that have an effect on this broker."""
    plain = memoryview(encode_set([(None, b"value"), (b"key", None), (b"", b"")]))
    sets = [plain, *(memoryview(wrapper(bytes(plain), codec)) for codec in (1, 2, 3))]
    state = (1, BROKER_ID, 5, [BROKER_ID], 0, [BROKER_ID])
    led = s.PartitionStateInfo("victim", 0, *state)
    followed = s.PartitionStateInfo("victim", 1, 1, 78, 5, [78], 0, [78, BROKER_ID])
    brokers = [s.BrokerEndpoint(78, "127.0.0.1", closed_port)]
    produces = [
        s.ProduceRequest(acks, 1, [s.ProduceTopic(FUZZ, [s.ProducePartition(p, data)])])
        for data in sets
        for acks, p in ((1, 0), (-1, 1), (2, 0), (0, 0))
    ]
    fetches = [
        s.FetchRequest(replica, 1, 1, [s.FetchTopic(FUZZ, [s.FetchPartition(p, offset, 2000)])])
        for replica in (-1, -2, BROKER_ID, 78)
        for p, offset in ((0, 0), (1, 3))
    ]
    offsets = [
        s.OffsetsRequest(replica, [s.OffsetsTopic(FUZZ, [s.OffsetsPartition(0, when, 5)])])
        for replica, when in ((-1, -1), (-2, -2), (-1, 10**13))
    ]
    commit_v0 = s.OffsetCommitTopic(FUZZ, [s.OffsetCommitPartition(0, 7, "m")])
    commit_v1 = s.OffsetCommitTopic(FUZZ, [s.OffsetCommitPartition(0, 7, "m")])
    asked = [s.OffsetFetchTopic(FUZZ, [0, 1])]
    requests = [
        *produces, *fetches, *offsets, *offsets,
        *[s.MetadataRequest([]), s.MetadataRequest([FUZZ, "nobody"])] * 3,
        s.LeaderAndIsrRequest(78, 1, [led], brokers),
        s.LeaderAndIsrRequest(78, LAST_EPOCH, [led, followed], brokers),
        *[s.StopReplicaRequest(78, LAST_EPOCH, delete, [s.StopReplicaPartition("victim", 0)])
          for delete in (False, True)],
        *[s.UpdateMetadataRequest(78, LAST_EPOCH, [led, followed], brokers)] * 2,
        *[s.ControlledShutdownRequest(78)] * 2,
        s.OffsetCommitRequestV0("g", [commit_v0]),
        *[s.OffsetCommitRequest("g", [commit_v1], 1, "c")] * 4,
        *[s.OffsetFetchRequestV0("g", asked), s.OffsetFetchRequest("g", asked)] * 2,
        *[s.ConsumerMetadataRequest("g"), g.HeartbeatRequest("g", 1, "c")] * 2,
        *[g.JoinGroupStubRequest("g", 1, [FUZZ], "c", "range")] * 2,
    ]  # fmt: skip
    new = a.NewTopic("victim", 2, 1, [], [a.TopicConfigEntry("retention.ms", "5")])
    placed = a.NewTopic("victim", -1, -1, [a.ReplicaAssignment(0, [BROKER_ID])], [])
    settings = [a.TopicConfigEntry("segment.bytes", "1000")]
    requests += [
        a.CreateTopicsRequest([new], 0, True),
        a.DescribeGroupsRequest(["fuzz"]),
        a.CreateTopicsRequest([placed], 0, True),
        a.CreateTopicsRequestV0([a.NewTopic("../victim", 2, 1, [], [])], 0),
        a.DeleteTopicsRequest(["victim"], 0),
        a.DescribeConfigsRequest([a.DescribedResource(2, FUZZ, ["retention.ms"])]),
        a.AlterConfigsRequest([a.AlteredResource(2, "victim", settings)], False),
        a.CreatePartitionsRequest([a.MorePartitions(FUZZ, 3, [])], 0, True),
    ]
    return [b"".join(encode_request(request, 1, "fuzz"))[4:] for request in requests]


# The expected result of a body


WAITING = (
    a.CreateTopicsRequest, a.DeleteTopicsRequest, a.CreatePartitionsRequest
)  # fmt: skip


def is_out_of_bounds(request: Any) -> bool:
    if isinstance(request, s.FetchRequest):
        return request.max_wait_ms > 2
    if isinstance(request, s.ProduceRequest):
        return request.acks > 1 and request.timeout_ms > 2
    if isinstance(request, g.JoinGroupRequest):
        return request.rebalance_timeout_ms > LONGEST_SESSION_MS
    if isinstance(request, a.ElectLeadersRequest):
        return request.timeout_ms > 0
    if isinstance(request, s.ControlledShutdownRequest):
        return request.broker_id == BROKER_ID
    if isinstance(request, s.UpdateMetadataRequest) and all(
        broker.port < 0 for broker in request.live_brokers
    ):
        return True  # while no broker is known, Metadata from version 1 on closes
    if isinstance(
        request, (s.LeaderAndIsrRequest, s.UpdateMetadataRequest, s.StopReplicaRequest)
    ) and any(each.topic in (CHECK, "__consumer_offsets") for each in request.partitions):
        return True
    if isinstance(request, WAITING):
        # topics of some size take the controller its time; of an absurd one they are refused
        counts = [count for each in request.topics for count in each if isinstance(count, int)]
        return request.timeout_ms > 0 or any(4 < count <= 50_000 for count in counts)
    if isinstance(request, s.LeaderAndIsrRequest):
        # no fetcher may be sent anywhere but to the port on which nobody listens
        mine = {each.leader for each in request.partitions if BROKER_ID in each.replicas}
        return any(
            broker.node_id in mine - {BROKER_ID}
            and (broker.host, broker.port) != ("127.0.0.1", closed_port())
            for broker in request.leaders
        )
    return False


CLOSED = socket.socket()  # bound and never listening: connections to it are refused
atexit.register(CLOSED.close)


def closed_port() -> int:
    if CLOSED.getsockname()[1] == 0:
        CLOSED.bind(("127.0.0.1", 0))
    return int(CLOSED.getsockname()[1])


class Fuzz:
    """The frames in order, connection by connection, and the good client in between.

    ``bases`` are bodies to damage; ``apis`` what the broker serves.
    """

    def __init__(
        self,
        broker: LiveBroker,
        bases: list[bytes],
        apis: Apis = ORIGINAL_APIS,
        frames: int = FRAMES,
    ) -> None:
        self.broker = broker
        self.random = Random(SEED)
        self.bases = bases
        self.apis = apis
        self.frames = frames
        self._decode = RequestDecoder(apis).decode
        self.sent = 0
        self.outcomes: Counter[str] = Counter()
        self.leader_epoch = 10
        self.written = 0
        # The broker believes no controller that ZooKeeper does not know.
        broker.zk.set(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(LAST_EPOCH))

    def run(self) -> None:
        self.check()
        under_way: deque[tuple[socket.socket, list[Sent], bool]] = deque()
        connections = 0
        while self.sent < self.frames:
            batch, lie = self.next_batch()
            under_way.append((self.open(batch, lie), batch, lie is not None))
            connections += 1
            if connections % CONNECTIONS_PER_CHECK == 0:
                while under_way:
                    self.finish(*under_way.popleft())
                self.check()
            elif len(under_way) == AT_ONCE:
                self.finish(*under_way.popleft())
        while under_way:
            self.finish(*under_way.popleft())
        self.check()

    # One connection

    def classify(self, body: bytes) -> Sent | None:
        """None for a request that would wait, or reach beyond what this test may touch."""
        try:
            header, request = self._decode(bytearray(body))
        except ProtocolError:
            return Sent(body, 0, None, None)
        if is_out_of_bounds(request):
            return None
        response = self.apis[header.api_key].response
        return Sent(body, header.correlation_id, request, Struct(response, header.api_version))

    def next_batch(self) -> tuple[list[Sent], bytes | None]:
        """Requests to be answered, at last one that may close; perhaps a frame that lies.

        Behind a frame that closes nothing is read, so there is one at most.
        """
        batch: list[Sent] = []
        last: Sent | None = None
        while len(batch) < PER_CONNECTION:
            found = self.classify(mutate(self.random, self.random.choice(self.bases)))
            if found is None or not found.body:
                continue
            if found.request is not None and not is_silent(found.request):
                batch.append(found)
            else:
                last = last or found
        if self.random.random() < 0.1:
            return batch, lie_about_size(self.random, self.random.choice(self.bases))
        return batch + ([last] if last else []), None

    def open(self, batch: list[Sent], lie: bytes | None) -> socket.socket:
        frames = [struct.pack(">i", len(sent.body)) + sent.body for sent in batch]
        if lie is not None:
            frames.append(lie)
        self.sent += len(frames)
        sock = socket.create_connection(("127.0.0.1", self.broker.port), 20)
        try:
            sock.sendall(b"".join(frames))
            sock.shutdown(socket.SHUT_WR)
        except (ConnectionError, OSError):
            pass  # closed already: the last frame is one that closes
        return sock

    def finish(self, sock: socket.socket, batch: list[Sent], lied: bool) -> None:
        data, is_reset = read_to_end(sock)
        replies = cut(data, is_reset)
        expected = [
            sent for sent in batch if sent.request is not None and not is_silent(sent.request)
        ]
        told = f"{len(replies)} replies{', reset' * is_reset}"
        if is_reset:
            # The broker closed over bytes that it had not read: the last replies may be lost.
            assert lied or batch[-1].request is None, self.story(told, batch)
        else:
            assert len(replies) >= len(expected), self.story(told, batch)
            assert lied or len(replies) == len(expected), self.story(told, batch)
        for sent, reply in zip(expected, replies, strict=False):
            try:
                correlation_id, response = decode_response(sent.answer, reply)
            except ProtocolError as error:
                raise AssertionError(self.story(f"{error} in {reply.hex()}", [sent])) from None
            assert correlation_id == sent.correlation_id, self.story(str(response), [sent])
            self.outcomes[type(response).__name__] += 1
        self.outcomes["closed"] += batch[-1].request is None

    def story(self, what: str, batch: list[Sent]) -> str:
        bodies = "\n".join(sent.body.hex() for sent in batch[-5:])
        return f"{what}; seed {SEED}, {self.sent} frames sent; last bodies:\n{bodies}"

    # The good client

    def check(self) -> None:
        broker = self.broker
        assert broker.alive, f"seed {SEED}, {self.sent} frames sent\n{broker.told()}"
        try:
            self.restore()
            value = b"%d" % self.written
            assert broker.produce(CHECK, value) == self.written
            assert broker.fetch(CHECK, self.written) == [(self.written, value)]
            self.written += 1
            assert broker.leaders(CHECK) == {0: BROKER_ID}
        except Exception as error:
            raise AssertionError(f"{error!r}; seed {SEED}, {self.sent} frames sent") from error

    def restore(self) -> None:
        """Speak as the controller: undo what damaged requests of controllers have done."""
        call = self.broker.client.call
        self.leader_epoch += 1
        me = s.BrokerEndpoint(BROKER_ID, "127.0.0.1", self.broker.port)
        names = [path.name.rpartition("-") for path in self.broker.data.iterdir() if path.is_dir()]
        strays = [
            s.StopReplicaPartition(topic, int(number))
            for topic, _, number in names
            if topic not in KEPT
        ]
        fuzz = [s.StopReplicaPartition(FUZZ, number) for number in range(2)]
        answer = call(s.StopReplicaRequest(78, LAST_EPOCH, True, strays + fuzz))
        assert answer.error == 0 and {each.error for each in answer.partitions} == {0}
        states = [
            s.PartitionStateInfo(FUZZ, number, 1, BROKER_ID, 0, [BROKER_ID], 0, [BROKER_ID])
            for number in range(2)
        ]
        answer = call(s.LeaderAndIsrRequest(78, LAST_EPOCH, states, [me]))
        assert [each.error for each in answer.partitions] == [0, 0]
        cached = call(s.MetadataRequest([])).topics
        gone = [
            s.PartitionStateInfo(topic.topic, part.partition, 1, -2, 0, [], 0, [])
            for topic in cached
            if topic.topic not in KEPT
            for part in topic.partitions
        ]
        check = s.PartitionStateInfo(CHECK, 0, 1, BROKER_ID, 0, [BROKER_ID], 0, [BROKER_ID])
        update = s.UpdateMetadataRequest(78, LAST_EPOCH, [check, *states, *gone], [me])
        assert call(update).error == 0


def is_silent(request: Any) -> bool:
    return isinstance(request, s.ProduceRequest) and request.acks == 0


def read_to_end(sock: socket.socket) -> tuple[bytes, bool]:
    """The bytes that arrive, and whether the connection was reset after them."""
    pieces = []
    is_reset = False
    with sock:
        while True:
            try:
                piece = sock.recv(1 << 18)
            except ConnectionResetError:
                is_reset = True
                break
            if not piece:
                break
            pieces.append(piece)
    return b"".join(pieces), is_reset


def cut(data: bytes, is_torn: bool) -> list[memoryview]:
    """The replies; the last one may be cut short if ``is_torn``."""
    replies, position, view = [], 0, memoryview(data)
    while position < len(data):
        size = int.from_bytes(data[position : position + 4], "big", signed=True)
        left = len(data) - position - 4
        if is_torn and size > left:
            break
        assert 4 <= size <= left, (size, left, SEED)
        replies.append(view[position + 4 : position + 4 + size])
        position += 4 + size
    return replies


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[LiveBroker]:
    broker = LiveBroker(
        tmp_path / "broker",
        api_versions_enable="false",  # the frames are those of 0.8.2.2
        auto_create_topics_enable="false",
        message_max_bytes=100_000,
        socket_request_max_bytes=1 << 20,
        log_segment_bytes=20_000,
        delete_topic_enable="true",
    )
    yield broker
    broker.kill()


def outside(tmp_path: Path) -> set[str]:
    """All there is near the broker's directory but not in it."""
    return {
        os.path.join(folder, name)
        for folder, folders, files in os.walk(tmp_path)
        for name in (*folders, *files)
        if not os.path.join(folder, name).startswith(str(tmp_path / "broker"))
    }


def test_damaged_requests_harm_nobody(broker: LiveBroker, tmp_path: Path) -> None:
    broker.create_topic(FUZZ, 2)
    broker.create_topic(CHECK)
    broker.create_offsets_topic()
    fuzz = Fuzz(broker, own(closed_port()) * 3 + golden())
    harm_nobody(fuzz, tmp_path, {api.response.__name__ for api in ORIGINAL_APIS.values()})


def harm_nobody(fuzz: Fuzz, tmp_path: Path, answered: set[str]) -> None:
    """Run it. ``answered``: the names of the answers that must have come."""
    broker = fuzz.broker
    before = outside(tmp_path), set(os.listdir(tmp_path / "broker"))
    fuzz.check()
    files, memory = broker.open_files(), broker.memory()
    began = time.monotonic()
    fuzz.run()
    took = time.monotonic() - began
    print(
        f"seed {SEED}: {fuzz.sent} frames in {took:.1f} s, {(broker.memory() - memory) >> 20} MiB "
        f"more, {dict(fuzz.outcomes)}"
    )
    assert set(fuzz.outcomes) == {*answered, "closed"}, SEED
    assert (outside(tmp_path), set(os.listdir(tmp_path / "broker"))) == before, SEED
    assert set(kinds(broker.open_files())) <= set(kinds(files)), SEED
    assert sockets(broker.open_files()) <= sockets(files) + 2, SEED
    assert broker.memory() - memory < MEMORY_BOUND, SEED
    assert_no_faults(broker)
    broker.kill()
    assert_logs_recover(broker, fuzz.written)


def kinds(files: list[str]) -> Iterator[str]:
    """The files outside the logs and the memory of rebuilt sets, which come and go, by name."""
    return (name for name in files if re.match("/(?!memfd:rebuilt)", name) and "/data/" not in name)


def sockets(files: list[str]) -> int:
    return sum(name.startswith("socket:") for name in files)


def assert_no_faults(broker: LiveBroker) -> None:
    """No exception but those that are answers went through the handlers, none past them."""
    text = broker.told()
    assert not re.search(r"because of error \(", text), (SEED, text[-5000:])
    assert "Uncaught error" not in text, (SEED, text[-5000:])
    if "Traceback" in text:
        pytest.fail(f"seed {SEED}: {text[text.index('Traceback') - 500 :][:5000]}")


def assert_logs_recover(broker: LiveBroker, written: int) -> None:
    config = BrokerConfig.from_properties(
        {"broker.id": "1", "log.dirs": str(broker.data), "zookeeper.connect": "none:1"}
    )
    manager = LogManager(config, clock=SystemClock(), topic_configs={})
    manager.load()
    try:
        assert {key.topic for key in manager.logs} <= KEPT | {"victim"}
        for log in manager.logs.values():
            offset = log.log_start_offset
            while offset < log.log_end_offset:
                entries = list(iter_entries(log.read(offset, 1 << 20).read()))
                assert entries, (SEED, log)
                offset = entries[-1].offset + 1
        check = manager.logs[TopicPartition(CHECK, 0)]
        found: list[bytes | None] = []
        while len(found) < check.log_end_offset:
            data = check.read(len(found), 1 << 20).read()
            found += [message.value for message in iter_messages(data)]
        assert found == [b"%d" % number for number in range(written)], SEED
    finally:
        manager.close()

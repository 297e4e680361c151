"""Consumers of 0.8.2.2 and ours in one group: the same assignment on both sides, nothing lost.

Each member is a process, so that it can leave, die and hang. After each change the group must come
to rest: every partition has the one owner that the members' registrations make it have.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import re
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from integration.harness import Broker, Process, Tools, properties
from integration.wire import entry, wait_until
from kafka08.common import TopicPartition
from kafka08.consumer.assignors import assignor_for, thread_ids
from kafka08.consumer.group import topics_of
from zk import znodes

pytestmark = pytest.mark.original

SESSION_MS = 2000
REST_S = 90
SEED = int(os.environ.get("KAFKA08_SEED", "20151021"))
TOKEN = re.compile(r"<([a-z0-9-]+:[0-9]+:[0-9]+)>")
KINDS = ("ours", "original")


class Member:
    """One process of a group."""

    def __init__(self, name: str, kind: str, process: Process) -> None:
        self.name = name
        self.kind = kind
        self.process = process
        self.paused = False

    def __repr__(self) -> str:
        return f"{self.kind} {self.name}{' (paused)' if self.paused else ''}"


class MixedGroup:
    """A group over some topics that are being written to all the time."""

    def __init__(self, broker: Broker, directory: Path, strategy: str, topics: dict[str, int]):
        self.broker = broker
        self.directory = directory
        self.strategy = strategy
        self.group = f"mixed-{uuid.uuid4().hex[:8]}"
        self.prefix = f"t{uuid.uuid4().hex[:6]}"
        self.topics = {f"{self.prefix}-{name}": count for name, count in topics.items()}
        self.members: list[Member] = []
        self.gone: list[Member] = []
        self.written: set[str] = set()
        self._numbers = itertools.count()
        self._stop = threading.Event()
        self._writer = threading.Thread(target=self._write)
        self.zk = KazooClient(broker.zookeeper, timeout=10)

    def __enter__(self) -> MixedGroup:
        self.zk.start(30)
        for topic, partitions in self.topics.items():
            self.broker.create_topic(topic, partitions)
            for partition in range(partitions):
                # So that nobody has to decide by auto.offset.reset where to begin.
                path = znodes.consumer_offset_path(self.group, topic, partition)
                self.zk.create(path, b"0", makepath=True)
        self._writer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._writer.join()
        for member in self.members:
            member.process.kill()
        self.zk.stop()
        self.zk.close()

    def _write(self) -> None:
        places = [(t, p) for t, count in self.topics.items() for p in range(count)]
        with self.broker.wire() as wire:
            for number in itertools.count():
                topic, partition = places[number % len(places)]
                text = f"{topic}:{partition}:{number}"
                wire.produce(topic, partition, entry(None, f"<{text}>".encode()))
                self.written.add(text)
                if self._stop.wait(0.02):
                    return

    # --- members

    def join(self, kind: str, pattern: str = "white_list", streams: int = 1) -> Member:
        name = f"{'o' if kind == 'original' else 'u'}{next(self._numbers)}"
        directory = self.directory / name
        directory.mkdir(parents=True)
        config = directory / "consumer.properties"
        values: dict[str, object] = {
            "group.id": self.group,
            "consumer.id": name,
            "zookeeper.connect": self.broker.zookeeper,
            "zookeeper.session.timeout.ms": SESSION_MS,
            "zookeeper.connection.timeout.ms": 20000,
            "rebalance.max.retries": 30,
            "rebalance.backoff.ms": 300,
            "auto.commit.interval.ms": 300,
            "partition.assignment.strategy": self.strategy,
        }
        config.write_text(properties(values))
        regex = f"{self.prefix}-.*"
        if kind == "original":
            words = ["--zookeeper", self.broker.zookeeper, "--whitelist", regex]
            words += ["--consumer.config", str(config)]
            command = Tools("original", directory).command("kafka.tools.ConsoleConsumer", *words)
        else:
            wanted = list(self.topics) if pattern == "static" else [regex]
            command = [sys.executable, "-u", "-m", "integration.group_member", str(config)]
            command += [pattern, str(streams), *wanted]
        process = Process(f"{kind} member {name}", command, directory)
        process.spawn()
        member = Member(name, kind, process)
        self.members.append(member)
        return member

    def leave(self, member: Member) -> None:
        member.process.stop()
        self._forget(member)

    def kill(self, member: Member) -> None:
        member.process.kill()
        self._forget(member)

    def _forget(self, member: Member) -> None:
        self.members.remove(member)
        self.gone.append(member)

    def pause(self, member: Member) -> None:
        member.process.pause()
        member.paused = True

    def resume(self, member: Member) -> None:
        member.process.resume()
        member.paused = False

    # --- what must hold

    def expected(self) -> dict[TopicPartition, str]:
        """The assignment that follows from the registrations."""
        base = znodes.consumer_ids_path(self.group)
        consumers: dict[str, list[str]] = {}
        for consumer in self.zk.get_children(base):
            path = f"{base}/{consumer}"
            node = znodes.decode_consumer(path, self.zk.get(path)[0])
            for topic, streams in topics_of(node, self.topics, exclude_internal=True).items():
                consumers.setdefault(topic, []).extend(thread_ids(consumer, streams))
        partitions = {topic: list(range(count)) for topic, count in self.topics.items()}
        return assignor_for(self.strategy)(consumers, partitions)

    def owners(self) -> dict[TopicPartition, str]:
        found = {}
        for topic in self.topics:
            base = znodes.consumer_topic_owners_path(self.group, topic)
            for name in self.zk.get_children(base):
                found[TopicPartition(topic, int(name))] = self.zk.get(f"{base}/{name}")[0].decode()
        return found

    def _at_rest(self) -> bool:
        live = {f"{self.group}_{m.name}" for m in self.members if not m.paused}
        try:
            if set(self.zk.get_children(znodes.consumer_ids_path(self.group))) != live:
                return False
            owners = self.owners()
            everything = sum(self.topics.values())
            return bool(live) and len(owners) == everything and owners == self.expected()
        except NoNodeError:
            return False

    def rest(self) -> None:
        """Wait until owners are as they must be, and stay so."""
        deadline = time.monotonic() + REST_S
        steady = 0
        while steady < 5:
            steady = steady + 1 if self._at_rest() else 0
            dead = [m for m in self.members if not m.process.alive]
            if dead or time.monotonic() > deadline:
                raise AssertionError(self._story(dead))
            time.sleep(0.1)

    def _story(self, dead: list[Member]) -> str:
        with contextlib.suppress(NoNodeError):
            ids = self.zk.get_children(znodes.consumer_ids_path(self.group))
            story = f"members {self.members}, dead {dead}, registered {sorted(ids)}\n"
            expected, owners = self.expected(), self.owners()
            for tp in sorted(expected.keys() | owners.keys()):
                story += f"{tp}: {owners.get(tp)}, should be {expected.get(tp)}\n"
            for member in self.members:
                lines = [x for x in member.process.log.splitlines() if not TOKEN.search(x)]
                story += f"--- {member}\n" + "\n".join(lines[-15:]) + "\n"
            return story
        return f"members {self.members}, dead {dead}"

    def got(self) -> set[str]:
        """Every message any member printed, dead ones too."""
        found: set[str] = set()
        for member in self.members + self.gone:
            found |= set(TOKEN.findall(member.process.log))
        return found

    def nothing_is_lost(self) -> None:
        """Stop writing; all of it must come out."""
        self._stop.set()
        self._writer.join()
        deadline = time.monotonic() + 60
        while missing := self.written - self.got():
            if time.monotonic() > deadline:
                offsets = {
                    (t, p): self.zk.get(znodes.consumer_offset_path(self.group, t, p))[0]
                    for t, count in self.topics.items()
                    for p in range(count)
                }
                raise AssertionError(
                    f"{len(missing)} of {len(self.written)} lost: {sorted(missing)[:10]}; "
                    f"committed {offsets}\n{self._story([])}"
                )
            time.sleep(0.2)


@pytest.fixture
def make_group(broker: Broker, tmp_path: Path) -> Iterator[object]:
    with contextlib.ExitStack() as stack:
        yield lambda strategy, topics: stack.enter_context(
            MixedGroup(broker, tmp_path, strategy, topics)
        )


@pytest.mark.scenario("client-2")
@pytest.mark.parametrize(
    ("strategy", "pattern"),
    [
        ("range", "white_list"),
        pytest.param("roundrobin", "static", marks=pytest.mark.slow),
        pytest.param("range", "static", marks=pytest.mark.slow),
        pytest.param("roundrobin", "white_list", marks=pytest.mark.slow),
    ],
)
def test_members_come_and_go(make_group: object, strategy: str, pattern: str) -> None:
    """Join, leave, kill -9, hang past the session and wake up, on either side."""
    group: MixedGroup = make_group(strategy, {"a": 5, "b": 3})  # type: ignore[operator]
    first = group.join("original")
    group.rest()
    ours = group.join("ours", pattern)
    group.rest()
    two_streams = group.join("ours", pattern, streams=2)
    second = group.join("original")
    group.rest()
    group.leave(ours)
    group.rest()
    group.kill(first)
    group.rest()
    for member in (two_streams, second):
        group.pause(member)
        group.rest()
        group.resume(member)
        group.rest()
    another = group.join("ours", pattern)
    group.rest()
    group.kill(two_streams)
    group.leave(second)
    group.rest()
    assert group.members == [another]
    group.nothing_is_lost()


@pytest.mark.scenario("client-3")
def test_threads_of_a_static_subscription_of_the_original(
    broker: Broker, tmp_path: Path, make_group: object
) -> None:
    """8 partitions, three threads there and two here; thread numbers are shared out alike."""
    group: MixedGroup = make_group("range", {"a": 8})  # type: ignore[operator]
    [topic] = group.topics
    ours = group.join("ours", "static", streams=2)
    group.rest()
    words = ["--zookeeper", broker.zookeeper, "--topic", topic, "--group", group.group]
    theirs = Tools("original", tmp_path).background(
        "kafka.tools.ConsumerPerformance", *words, "--threads", "3"
    )
    try:

        def shared() -> bool:
            with contextlib.suppress(NoNodeError):  # nodes that go while they are read
                ids = group.zk.get_children(znodes.consumer_ids_path(group.group))
                return len(ids) == 2 and group.owners() == group.expected()
            return False

        wait_until("five threads", REST_S, shared)
        owners = group.owners()
        assert len(set(owners.values())) == 5
        mine = [tp for tp, thread in owners.items() if thread.startswith(f"{group.group}_u0-")]
        assert 3 <= len(mine) <= 4
        [registration] = [
            json.loads(group.zk.get(f"{znodes.consumer_ids_path(group.group)}/{name}")[0])
            for name in group.zk.get_children(znodes.consumer_ids_path(group.group))
            if name != f"{group.group}_u0"
        ]
        assert registration["pattern"] == "static"
    finally:
        theirs.kill()
    group.rest()
    assert group.members == [ours]


@pytest.mark.parametrize("strategy", [pytest.param("range", marks=pytest.mark.slow), "roundrobin"])
@pytest.mark.parametrize("changes", [6, pytest.param(50, marks=pytest.mark.slow)])
def test_random_changes(make_group: object, strategy: str, changes: int) -> None:
    """KAFKA08_SEED repeats a failure."""
    group: MixedGroup = make_group(strategy, {"a": 4, "b": 7, "c": 1})  # type: ignore[operator]
    rng = random.Random(f"{SEED} {strategy}")
    group.join("ours", rng.choice(["static", "white_list"]))
    group.join("original")
    group.rest()
    story = []
    for _ in range(changes):
        story.append(random_change(group, rng))
        if rng.random() < 0.3:
            # Several at once: rebalances in the middle of rebalances.
            time.sleep(rng.random())
            story.append(random_change(group, rng))
        try:
            group.rest()
        except AssertionError as error:
            raise AssertionError(f"seed {SEED}, after {story}:\n{error}") from None
    for member in [member for member in group.members if member.paused]:
        group.resume(member)
    group.rest()
    group.nothing_is_lost()


def random_change(group: MixedGroup, rng: random.Random) -> str:
    """One change that leaves at least one member awake; what it was."""
    awake = [member for member in group.members if not member.paused]
    paused = [member for member in group.members if member.paused]
    options = []
    if len(group.members) < 5:
        options += ["join", "join"]
    if len(awake) > 1:
        options += ["leave", "kill", "pause"]
    if paused:
        options += ["resume", "resume", "kill paused"]
    option = rng.choice(options)
    if option == "join":
        pattern, streams = rng.choice(["static", "white_list"]), rng.choice([1, 1, 2, 3])
        return f"join {group.join(rng.choice(KINDS), pattern, streams)}"
    member = rng.choice(awake if option in ("leave", "kill", "pause") else paused)
    text = f"{option} {member}"
    if option == "leave":
        group.leave(member)
    elif option == "pause":
        group.pause(member)
    elif option == "resume":
        group.resume(member)
    else:
        group.kill(member)
    return text

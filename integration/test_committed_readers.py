"""REST, Connect, mirrors and kafka-log-convert on topics with transactions of other clients."""

from __future__ import annotations

import base64
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from integration import modern, original, transactional
from integration.harness import (
    HOME,
    Broker,
    Process,
    Tools,
    ZooKeeper,
    environment,
    properties,
)
from integration.modern import ModernBroker
from integration.rest_proxy import V1, V2, RestProxy
from integration.test_connect import Workplace
from integration.transactional import ALL, COMMITTED, END, LATER
from integration.wire import wait_until

pytest.importorskip("confluent_kafka")

WAIT_S = 120
MIRROR = "kafka.tools.MirrorMaker"
BINARY_V2 = "application/vnd.kafka.binary.v2+json"
AFTER = {**COMMITTED, **LATER}
LEVELS = {"read_committed": COMMITTED, "read_uncommitted": ALL}


def values(messages: dict[int, bytes]) -> list[bytes]:
    return [value for _, value in sorted(messages.items())]


@pytest.fixture(scope="module")
def ours(zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    props = {"api.versions.enable": "true", "offsets.topic.num.partitions": 1}
    directory = tmp_path_factory.mktemp("ours")
    broker = Broker("ours", directory, f"{zookeeper.connect}/committed", props=props).start()
    yield broker
    broker.kill()


@pytest.fixture
def topic(ours: Broker) -> str:
    name = f"t-{uuid.uuid4().hex[:8]}"
    ours.create_topic(name)
    return name


# --- the REST proxy


def records(answer: Any) -> dict[int, bytes]:
    assert answer.status == 200, answer.body
    return {each["offset"]: base64.b64decode(each["value"]) for each in answer.body}


@pytest.mark.parametrize("level", LEVELS)
def test_a_rest_proxy(
    ours: Broker, topic: str, level: str, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    open_one = transactional.fill(ours.address, topic)
    proxy = RestProxy(tmp_path, ours.zookeeper, {"consumer.isolation.level": level})
    launch(proxy)
    proxy.start()
    is_committed = level == "read_committed"
    by_offset = f"/topics/{topic}/partitions/0/messages?count=100&offset="
    assert records(proxy.ask("GET", f"{by_offset}0")) == LEVELS[level]
    assert records(proxy.ask("GET", f"{by_offset}2")) == {
        offset: value for offset, value in LEVELS[level].items() if offset >= 2
    }
    assert records(proxy.ask("GET", f"{by_offset}{END - 1}")) == (
        {} if is_committed else {END - 1: b"behind"}
    )

    fields = {"auto.offset.reset": "smallest"}
    made = proxy.ask("POST", f"/consumers/{topic}-1", fields, V1)
    assert made.status == 200, made.body
    first = f"{made.body['base_uri']}/topics/{topic}"
    other = "read_uncommitted" if is_committed else "read_committed"
    fields = {"auto.offset.reset": "earliest", "isolation.level": other}
    made = proxy.ask("POST", f"/consumers/{topic}-2", fields, V2)
    assert made.status == 200, made.body
    second = made.body["base_uri"]
    body = {"partitions": [{"topic": topic, "partition": 0}]}
    assert proxy.ask("POST", f"{second}/assignments", body, V2).status == 204

    def read(url: str, accept: str, expected: dict[int, bytes]) -> None:
        found: dict[int, bytes] = {}

        def is_complete() -> bool:
            found.update(records(proxy.ask("GET", url, Accept=accept)))
            return len(found) >= len(expected)

        wait_until(f"messages of {url}", WAIT_S, is_complete)
        assert found == expected

    binary_v1 = "application/vnd.kafka.binary.v1+json"
    read(first, binary_v1, LEVELS[level])
    read(f"{second}/records", BINARY_V2, LEVELS[other])
    transactional.commit(open_one, ours.address, topic)
    url, accept = (first, binary_v1) if is_committed else (f"{second}/records", BINARY_V2)
    read(url, accept, LATER)


# --- Connect


@pytest.mark.parametrize("level", LEVELS)
def test_a_sink_of_connect(
    ours: Broker, topic: str, level: str, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    open_one = transactional.fill(ours.address, topic)
    place = Workplace(tmp_path, ours)
    place.change(consumer__isolation__level=level)
    sink = tmp_path / "out.txt"
    kind = "org.apache.kafka.connect.file.FileStreamSinkConnector"
    place.connector("sink", kind, file=sink, topics=topic)
    launch(place.process())

    def has(messages: dict[int, bytes]) -> bool:
        return sink.exists() and sink.read_bytes().split() == values(messages)

    wait_until("the sink", WAIT_S, lambda: has(LEVELS[level]))
    transactional.commit(open_one, ours.address, topic)
    after = AFTER if level == "read_committed" else ALL
    wait_until("the open transaction", WAIT_S, lambda: has(after))


# --- mirrors


@pytest.fixture(scope="module")
def today(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModernBroker]:
    if modern.missing():
        pytest.skip(modern.missing())
    broker = ModernBroker(tmp_path_factory.mktemp("today")).start()
    yield broker
    broker.kill()


@pytest.fixture(scope="module")
def old(zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    if not original.available():
        pytest.skip(original.missing())
    directory = tmp_path_factory.mktemp("old")
    broker = Broker("original", directory, f"{zookeeper.connect}/committed-old").start()
    yield broker
    broker.kill()


def arrived(broker: Broker | ModernBroker, topic: str) -> list[bytes | None]:
    """The values that a reader of 0.8 sees of partition 0."""
    if isinstance(broker, Broker):
        with broker.wire() as wire:
            return [each.value for each in wire.read_all(topic, 0)]
    return transactional.read(broker.address, topic)


@pytest.mark.original
@pytest.mark.parametrize("level", [*LEVELS, None])
@pytest.mark.parametrize("way", ["ours", "ours --new.consumer", "3.9.1"])
def test_a_mirror(
    way: str,
    level: str | None,
    ours: Broker,
    topic: str,
    request: pytest.FixtureRequest,
    our_tools: Tools,
    tmp_path: Path,
    launch: Callable[[Process], None],
) -> None:
    """Ours down to 0.8.2.2, and that of Kafka 3.9.1, which needs a target of today."""
    target = request.getfixturevalue("today" if way == "3.9.1" else "old")
    target.create_topic(topic)
    open_one = transactional.fill(ours.address, topic)
    reading = {"group.id": topic, **({"isolation.level": level} if level else {})}
    if way == "ours":
        reading |= {"zookeeper.connect": ours.zookeeper, "auto.offset.reset": "smallest"}
    else:
        reading |= {"bootstrap.servers": ours.address, "auto.offset.reset": "earliest"}
    (tmp_path / "source").write_text(properties(reading))
    (tmp_path / "target").write_text(properties({"bootstrap.servers": target.address}))
    files = ["--consumer.config", str(tmp_path / "source")]
    files += ["--producer.config", str(tmp_path / "target"), "--whitelist", topic]
    if way == "3.9.1":
        mirror = Process("3.9.1's mirror", modern.tool(MIRROR, *files), tmp_path / "mirror")
        mirror.spawn()
    else:
        options = ["--new.producer", *way.split()[1:]]
        mirror = our_tools.background(MIRROR, *files, *options)
    launch(mirror)
    before, after = (COMMITTED, AFTER) if level == "read_committed" else (ALL, ALL)

    def has(count: int) -> Callable[[], bool]:
        return lambda: len(arrived(target, topic)) >= count

    wait_until("a mirror", WAIT_S, has(len(before)))
    assert arrived(target, topic) == values(before)
    transactional.commit(open_one, ours.address, topic)
    wait_until("the open transaction", WAIT_S, has(len(after)))
    assert arrived(target, topic) == values(after)


@pytest.mark.original
def test_a_mirror_of_a_cluster_without_transactions(
    old: Broker, ours: Broker, our_tools: Tools, tmp_path: Path
) -> None:
    reading = {"group.id": "g", "zookeeper.connect": old.zookeeper}
    reading |= {"isolation.level": "read_committed"}
    (tmp_path / "source").write_text(properties(reading))
    (tmp_path / "target").write_text(properties({"bootstrap.servers": ours.address}))
    files = ["--consumer.config", str(tmp_path / "source")]
    files += ["--producer.config", str(tmp_path / "target"), "--whitelist", "t"]
    done = our_tools.run(MIRROR, *files, "--new.producer")
    assert done.code == 1
    assert "isolation.level of" in done.err
    assert "its brokers do not serve the requests of later releases" in done.err


# --- the way back to format 0


@pytest.mark.original
@pytest.mark.parametrize("open_as", ["ended", "drop", "keep"])
@pytest.mark.parametrize("codec", ["none", "gzip", "zstd"])
def test_converted_for_the_original(
    open_as: str,
    codec: str,
    zookeeper: ZooKeeper,
    tmp_path: Path,
    launch: Callable[[Process], None],
) -> None:
    if not original.available():
        pytest.skip(original.missing())
    chroot = f"{zookeeper.connect}/converted-{uuid.uuid4().hex[:8]}"
    props = {
        "api.versions.enable": "true",
        "offsets.topic.num.partitions": 1,
        "log.dirs": tmp_path / "data",
        "log.segment.bytes": 250,  # transactions end in other segments than they begin in
    }
    broker = Broker("ours", tmp_path / "ours", chroot, props=props)
    launch(broker)
    broker.start()
    broker.create_topic("t")
    open_one = transactional.fill(broker.address, "t", **{"compression.type": codec})
    if open_as == "ended":
        transactional.commit(open_one, broker.address, "t")
    assert broker.stop() == 143
    segments = list((tmp_path / "data" / "t-0").glob("*.log"))
    assert len(segments) > 3

    def convert(*words: str) -> subprocess.CompletedProcess[str]:
        command = [str(HOME / "bin" / "kafka-log-convert.sh"), "--log-dirs", str(tmp_path / "data")]
        return subprocess.run(
            [*command, *words],
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            env=environment(tmp_path),
            check=False,
        )

    if open_as == "ended":
        done = convert()
    else:
        refused = convert()
        assert refused.returncode == 1
        text = "[t,0] left as it is: a transaction that began at offset 11 is open"
        assert text in refused.stderr
        done = convert("--open-transactions", open_as)
    assert done.returncode == 0, done.stderr

    theirs = Broker(
        "original",
        tmp_path / "theirs",
        chroot,
        props={key: props[key] for key in ("log.dirs", "offsets.topic.num.partitions")},
    )
    launch(theirs)
    theirs.start()
    theirs.wait_for_leader("t", 1)
    expected = dict(AFTER)
    if open_as == "drop":
        del expected[11]
    elif open_as == "ended":
        expected[END] = b""  # keeps the end of the log, where a marker was
    with theirs.wire() as wire:
        found = {each.offset: each.value for each in wire.read_all("t", 0)}
        assert found == expected
        assert wire.offset("t", 0) == max(expected) + 1

"""MirrorMaker 2 between a cluster and one of a later release, both ways."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from integration import builds, modern
from integration.harness import Broker, Process
from integration.modern import ModernBroker
from integration.programs import topics
from integration.programs.mirror import MirrorMaker
from integration.programs.topics import Sent
from integration.wire import wait_until

WAIT_S = 180.0
COUNT = 100
PARTITIONS = 2
SETTINGS = {"retention.ms": "1234567890123", "max.message.bytes": "765432"}
Server = Broker | ModernBroker


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModernBroker]:
    if modern.missing():
        pytest.skip(modern.missing())
    broker = ModernBroker(tmp_path_factory.mktemp("there")).start()
    yield broker
    broker.kill()


def pairs(messages: Iterable[Sent]) -> set[tuple[str, str]]:
    return {(each.key, each.value) for each in messages}


@pytest.mark.slow
def test_both_ways_with_offsets_and_settings(
    server: Server, there: ModernBroker, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    unique = uuid.uuid4().hex[:8]
    out, back, group = f"out-{unique}", f"back-{unique}", f"group-{unique}"
    # The source of each direction, its topic, and the target with its topic.
    ways = [
        (server.address, out, there.address, f"here.{out}"),
        (there.address, back, server.address, f"there.{back}"),
    ]
    try:
        mirror = MirrorMaker(server.address, there.address, tmp_path, out, back)
    except builds.MissingError as error:
        pytest.skip(str(error))
    launch(mirror)
    written: list[Sent] = []

    def write() -> None:
        added = [
            Sent(f"key {n}", f"value {n}", partition=n % PARTITIONS)
            for n in range(len(written), len(written) + COUNT)
        ]
        written.extend(added)
        for source, topic, _, _ in ways:
            topics.write(source, topic, added)

    def arrived() -> bool:
        assert mirror.alive, mirror.log[-3000:]
        return all(set(topics.read(*where)) == pairs(written) for _, _, *where in ways)

    def configured() -> bool:
        return all(topics.config(*where, *SETTINGS) == SETTINGS for _, _, *where in ways)

    def synced() -> bool:
        return all(topics.committed(*where, group, PARTITIONS) == offsets for _, _, *where in ways)

    for broker, topic in ((server, out), (there, back)):
        broker.create_topic(topic, PARTITIONS)
        topics.set_config(broker.address, topic, SETTINGS)
    write()
    mirror.spawn()
    wait_until("copies", WAIT_S, arrived)
    for _, _, target, copy in ways:  # nothing was killed yet
        assert max(Counter(topics.read(target, copy)).values()) == 1
    wait_until("settings", WAIT_S, configured)

    offsets = [COUNT // PARTITIONS] * PARTITIONS
    for source, topic, _, _ in ways:
        topics.consume(source, topic, group, pairs(written))
    wait_until("offsets", WAIT_S, synced)

    write()
    mirror.kill()
    write()
    mirror.spawn()
    wait_until("all copies", WAIT_S, arrived)
    # The group moves to the other cluster: to what it has not read, and what came twice.
    for _, _, target, copy in ways:
        topics.consume(target, copy, group, pairs(written[COUNT:]))
    assert mirror.stop() == 143

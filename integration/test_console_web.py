"""The web console as a process, over real clusters: brokers of this project and an original one."""

from __future__ import annotations

import json
import re
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from integration.console import Console
from integration.harness import (
    Broker,
    Process,
    Tools,
    ZooKeeper,
    properties,
    zookeeper_text,
)
from integration.wire import entry, wait_until

SCRIPT = "<script>document.title='ran'</script>"


@pytest.fixture(scope="module")
def ours(zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    chroot = f"{zookeeper.connect}/console"
    props = {"delete.topic.enable": "true", "offsets.topic.num.partitions": 2}
    broker = Broker("ours", tmp_path_factory.mktemp("console-broker"), chroot, props=props)
    yield broker.start()
    broker.kill()


@pytest.fixture(scope="module")
def console(ours: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    directory = tmp_path_factory.mktemp("console")
    process = Console(ours.zookeeper, directory, **{"console.read.only": "false"}).begin()
    yield process
    process.kill()
    assert " ERROR " not in process.log


@pytest.mark.scenario("ops-48", "ops-53", "ops-59")
def test_a_topic_from_its_creation_to_its_end(console: Console, ours: Broker) -> None:
    status, _ = console.submit("/create", "/create", name="made", partitions=2, factor=1)
    assert status == 200
    ours.wait_for_leader("made", 2)
    console.wait_until_shown("/topics", "made")
    for value in (SCRIPT, "plain"):
        path = "/topics/made/send"
        status, page = console.submit(path, path, partition=0, value=value)
        assert status == 200
    page = console.ask("/topics/made/messages")[1]
    assert "&lt;script&gt;" in page
    assert SCRIPT not in page
    assert re.findall(r'id="offset-(\d+)"', page) == ["1", "0"]
    raw = "/topics/made/raw?partition=0&offset=0&part=value"
    assert console.ask(raw)[1] == SCRIPT
    console.wait_until_shown("/topics/made", "good 0 2 2")
    change = "/topics/made/change"
    settings = "/topics/made/settings"
    assert console.submit(settings, settings, **{"own.retention.ms": "9 s"})[0] == 200
    assert "retention.ms 9000 (9 s)" in console.text("/topics/made")
    assert f"broker {ours.broker_id} reports" in console.text(settings)
    assert console.submit(change, "/topics/made/clone", copy="copied")[0] == 200
    console.wait_until_shown("/topics/copied", "retention.ms 9000 (9 s)")
    assert console.submit(change, "/topics/made/empty", emptied="other")[0] == 400
    assert console.submit(change, "/topics/made/empty", emptied="made")[0] == 200
    assert "good 2 2 0" in console.text("/topics/made")
    assert console.submit(change, "/topics/made/delete", name="other")[0] == 400
    assert console.submit(change, "/topics/made/delete", name="made")[0] == 200
    wait_until("the end of made", 30, lambda: console.ask("/topics/made")[0] == 404)


def data(console: Console, path: str) -> Any:
    return json.loads(console.ask(path, Accept="application/json")[1])


def test_pages_for_programs_and_for_terminals(console: Console, ours: Broker) -> None:
    ours.create_topic("told")
    with ours.wire() as wire:
        wire.produce("told", 0, entry(None, b"m" * 1000))

    def size() -> int:
        return data(console, "/topics/told").get("topic", {}).get("size_bytes") or 0

    wait_until("the size on disk", 30, lambda: size() > 1000)
    [broker] = data(console, "/brokers")["brokers"]
    assert broker["state"] == "up" and broker["size_bytes"] > 1000
    assert "Brokers: 1 of 1 up" in console.ask("/", Accept="*/*")[1].splitlines()


def test_nodes_of_zookeeper(console: Console, ours: Broker) -> None:
    names = [each["name"] for each in data(console, "/zookeeper/")["children"]]
    assert {"brokers", "config", "controller"} <= set(names)
    [id_] = data(console, "/zookeeper/brokers/ids")["children"]
    node = data(console, f"/zookeeper/brokers/ids/{id_['name']}")
    assert json.loads(node["data"])["version"] == 1
    assert node["ephemeral_owner"].startswith("0x")
    assert [each["name"] for each in node["acl"]] == ["anyone"]
    for path in ("/zookeeper/none", "/zookeeper/%2e%2e/console", "/zookeeper/brokers/%2e"):
        assert console.ask(path)[0] == 404


@pytest.mark.scenario("ops-21", "ops-51")
def test_lag_of_groups_as_the_tools_show_it(
    console: Console, ours: Broker, our_tools: Tools
) -> None:
    ours.create_topic("read")
    with ours.wire() as wire:
        wire.produce("read", 0, entry(None, b"m") * 100)
    client = KazooClient(ours.zookeeper, timeout=10)
    client.start(30)
    try:
        client.create("/consumers/readers/offsets/read/0", b"40", makepath=True)
    finally:
        client.stop()
        client.close()
    console.wait_until_shown("/groups", "readers")
    console.wait_until_shown("/group?name=readers", "read 0 40 100 60")
    series = 'kafka_consumergroup_lag{consumergroup="readers",partition="0",topic="read"} 60.0'
    assert series in console.ask("/metrics")[1]
    command = ["--zookeeper", ours.zookeeper, "--describe", "--group", "readers"]
    done = our_tools.run("kafka.admin.ConsumerGroupCommand", *command)
    assert re.search(r"read\s+0\s+40\s+100\s+60", done.out), done.out
    form = "/group/reset?name=readers&to=earliest"
    assert console.submit(form, "/group/reset")[0] == 200
    done = our_tools.run("kafka.admin.ConsumerGroupCommand", *command)
    assert re.search(r"read\s+0\s+0\s+100\s+100", done.out), done.out


@pytest.mark.scenario("ops-51")
def test_offsets_in_both_storages_are_reset_once_the_member_is_gone(
    console: Console, ours: Broker, our_tools: Tools, tmp_path: Path
) -> None:
    ours.create_topic("both")
    with ours.wire() as wire:
        wire.produce("both", 0, b"".join(entry(None, b"m", at) for at in range(100)))
    values = {"group.id": "pair", "offsets.storage": "kafka", "dual.commit.enabled": "true"}
    config = tmp_path / "consumer.properties"
    values |= {"auto.offset.reset": "smallest", "auto.commit.interval.ms": "200"}
    config.write_text(properties(values))
    where = ["--zookeeper", ours.zookeeper, "--topic", "both", "--consumer.config", str(config)]
    member = our_tools.background("kafka.tools.ConsoleConsumer", *where)
    form = "/group/reset?name=pair&to=offset&at=30"

    def is_refused() -> bool:
        status, page = console.ask(form)
        return status == 400 and "Group pair has live members: pair_" in page

    try:
        wait_until("the refusal", 60, is_refused)
    finally:
        member.stop(signal.SIGINT)
    console.wait_until_shown("/group?name=pair", "both 0 100 100 0")
    wait_until("the plan", 60, lambda: 'value="both:0:100:30"' in console.ask(form)[1])
    node = "/consumers/pair/offsets/both/0"
    assert zookeeper_text(ours.zookeeper, node) == "100"
    with ours.wire() as wire:
        assert wire.committed("pair", "both", 0) == (100, 0)
        assert console.submit(form, "/group/reset")[0] == 200
        assert wire.committed("pair", "both", 0) == (30, 0)
    assert zookeeper_text(ours.zookeeper, node) == "30"
    command = ["--zookeeper", ours.zookeeper, "--describe", "--group", "pair"]
    done = our_tools.run("kafka.admin.ConsumerGroupCommand", *command)
    assert re.search(r"both\s+0\s+30\s+100\s+70", done.out), done.out


@pytest.mark.scenario("ops-55")
def test_only_loopback_and_known_names(console: Console) -> None:
    assert console.ask("/", Host="evil.example")[0] == 421
    with socket.socket() as probe:
        probe.settimeout(5)
        assert probe.connect_ex(("127.0.0.2", console.port)) != 0


@pytest.mark.scenario("ops-57")
def test_a_form_of_another_site_is_refused(console: Console) -> None:
    path = "/topics/none/send"
    assert console.ask(path, b"token=x", Origin="http://evil.example")[0] == 403


@pytest.mark.scenario("ops-45")
@pytest.mark.original
def test_an_original_broker_beside_ours_and_its_end(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    chroot = f"{zookeeper.connect}/console-mixed"
    brokers = [
        Broker(kind, tmp_path / kind, chroot, broker_id=number)
        for number, kind in enumerate(("ours", "original"), 1)
    ]
    for broker in brokers:
        launch(broker)
        broker.start()
    brokers[0].create_topic("t", replicas=[1, 2])
    console = Console(chroot, tmp_path / "console")
    launch(console)
    console.begin()
    console.wait_until_shown("/", "Brokers up 2 of 2")
    page = console.text("/brokers")
    assert f"{brokers[0].address} up controller kafka08" in page
    assert f"{brokers[1].address} up 0.8.2.2 no metrics" in page
    assert "read-only" in page
    console.wait_until_shown("/", "Under-replicated 0")
    brokers[1].kill()
    console.wait_until_shown("/", "Brokers up 1 of 2")
    console.wait_until_shown("/", "Under-replicated 1")
    console.stop(signal.SIGTERM)
    assert "The console has ended." in console.log


@pytest.mark.scenario("ops-59")
@pytest.mark.original
def test_deletion_under_an_original_controller_has_to_be_confirmed(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """It does not report its delete.topic.enable, which is false here, and leaves the mark."""
    chroot = f"{zookeeper.connect}/console-deletes"
    broker = Broker("original", tmp_path / "broker", chroot)
    launch(broker)
    broker.start().create_topic("kept")
    console = Console(chroot, tmp_path / "console", **{"console.read.only": "false"})
    launch(console)
    console.begin()
    form, path = "/topics/kept/change", "/topics/kept/delete"
    console.wait_until_shown(form, "does not report whether its delete.topic.enable is true")
    status, page = console.submit(form, path, name="kept")
    assert (status, "was not marked for deletion" in page) == (400, True)
    assert zookeeper_text(chroot, "/admin/delete_topics/kept") is None
    assert console.submit(form, path, name="kept", deletes=1)[0] == 200
    assert zookeeper_text(chroot, "/admin/delete_topics/kept") is not None
    console.wait_until_shown("/topics/kept", "This topic is marked for deletion.")


@pytest.mark.scenario("ops-54")
def test_without_zookeeper_the_last_state_is_shown(
    tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    zookeeper = ZooKeeper(tmp_path / "zookeeper")
    launch(zookeeper)
    zookeeper.start()
    broker = Broker("ours", tmp_path / "broker", zookeeper.connect)
    launch(broker)
    broker.start()
    broker.create_topic("t")
    console = Console(zookeeper.connect, tmp_path / "console")
    launch(console)
    console.begin()
    console.wait_until_shown("/topics", "1 of 1 topics")
    zookeeper.kill()
    console.wait_until_shown("/topics", "The cluster cannot be looked at")
    assert "1 of 1 topics" in console.text("/topics")
    assert console.ask("/health/ready")[0] == 503
    zookeeper.start()

    def recovered() -> bool:
        return console.ask("/health/ready")[0] == 200

    wait_until("the console's recovery", 60, recovered)

"""Dashboard and alerting rules in a real Prometheus, which scrapes broker, console and REST proxy.

Skipped with the reason where Debian's package ``prometheus`` is missing.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from integration import hanging
from integration.console import Console
from integration.harness import HOME, Broker, Process, Tools, ZooKeeper, free_port
from integration.programs import topics
from integration.programs.topics import Sent
from integration.rest_proxy import RestProxy
from integration.test_disks import Disk
from integration.wire import WireError, entry, wait_until

PROMETHEUS, PROMTOOL = shutil.which("prometheus"), shutil.which("promtool")
pytestmark = pytest.mark.skipif(
    not (PROMETHEUS and PROMTOOL), reason="prometheus is not installed (Debian's package)"
)
RULES = HOME / "config" / "prometheus-alerts.yml"
DASHBOARD = HOME / "config" / "grafana-dashboard.json"
VARIABLES = {"$__rate_interval": "1m", "$instance": ".*", "$topic": ".*"}
WAIT_S = 180


class Prometheus(Process):
    """It scrapes each second, and evaluates the rules each second. ``ports`` by job."""

    def __init__(
        self, directory: Path, ports: Mapping[str, Sequence[int]], rules: Path = RULES
    ) -> None:
        self.port = free_port()
        directory.mkdir()
        jobs = []
        for job, used in ports.items():
            targets = json.dumps([f"127.0.0.1:{port}" for port in used])
            jobs.append(f"  - {{job_name: {job}, static_configs: [{{targets: {targets}}}]}}\n")
        (directory / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
            f"rule_files: [{json.dumps(str(rules))}]\n"
            "scrape_configs:\n" + "".join(jobs)
        )
        command = [
            PROMETHEUS or "",
            f"--config.file={directory / 'prometheus.yml'}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
        ]
        super().__init__("prometheus", command, directory)

    def begin(self) -> None:
        self.spawn()
        self.wait_for("Server is ready to receive web requests")

    def ask(self, path: str, **query: str) -> Any:
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            found = json.load(answer)
        assert found["status"] == "success", found
        return found["data"]

    def firing(self) -> dict[str, list[dict[str, str]]]:
        """The labels of the alerts that fire, by name."""
        found: dict[str, list[dict[str, str]]] = {}
        for alert in self.ask("alerts")["alerts"]:
            if alert["state"] == "firing":
                found.setdefault(alert["labels"]["alertname"], []).append(alert["labels"])
        return found

    def value(self, expression: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask("query", query=expression)["result"]
        return found


@pytest.fixture(scope="module")
def prometheus(
    zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    directory = tmp_path_factory.mktemp("prometheus")
    chroot, port = f"{zookeeper.connect}/prometheus", free_port()
    props = {"http.port": port, "log.cleaner.enable": "true"}
    broker = Broker("ours", directory / "broker", chroot, props=props).start()
    console = Console(chroot, directory / "console").begin()
    proxy = RestProxy(directory / "rest", chroot).start()
    broker.create_topic("seen")
    with broker.wire() as wire:
        wire.produce("seen", 0, entry(None, b"m") * 10)
    client = KazooClient(chroot, timeout=10)
    client.start(30)
    client.ensure_path("/consumers/readers/offsets/seen/0")
    client.set("/consumers/readers/offsets/seen/0", b"4")
    client.stop()
    client.close()
    proxy.ask("GET", "/topics")
    ports = {"kafka": [port], "kafka-console": [console.port], "kafka-rest": [proxy.port]}
    started = Prometheus(directory / "prometheus", ports)
    started.begin()
    yield started
    for process in (started, proxy, console, broker):
        process.kill()


def expressions() -> list[str]:
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    found = []
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            expression = target["expr"]
            for name, value in VARIABLES.items():
                expression = expression.replace(name, value)
            found.append(expression)
    return found


def test_all_targets_are_scraped(prometheus: Prometheus) -> None:
    wait_until("three targets", WAIT_S, lambda: len(prometheus.value("up == 1")) == 3)


def test_every_panel_has_data(prometheus: Prometheus) -> None:
    """A rate needs two scrapes."""

    def without_data() -> list[str]:
        return [each for each in expressions() if not prometheus.value(each)]

    assert len(expressions()) > 40
    wait_until("data of all panels", WAIT_S, lambda: not without_data())
    [lag] = prometheus.value('sum by (consumergroup) (kafka_consumergroup_lag_sum{topic="seen"})')
    assert (lag["metric"], lag["value"][1]) == ({"consumergroup": "readers"}, "6")


def test_the_rules_are_evaluated_and_none_fires(prometheus: Prometheus) -> None:
    checked = subprocess.run(
        [PROMTOOL or "", "check", "rules", str(RULES)], capture_output=True, text=True, timeout=60
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr

    def rules() -> list[dict[str, Any]]:
        return [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]

    wait_until("an evaluation", WAIT_S, lambda: all(each["health"] == "ok" for each in rules()))
    assert len(rules()) == 23
    assert [each["name"] for each in rules() if each["state"] == "firing"] == []


def test_each_rule_fires_in_its_example() -> None:
    examples = HOME / "integration" / "alerts.yml"
    done = subprocess.run(
        [PROMTOOL or "", "test", "rules", str(examples)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr


class Watched:
    """Two brokers and their console, watched by a Prometheus."""

    def __init__(
        self, directory: Path, launch: Callable[[Process], None], rules: Path = RULES
    ) -> None:
        self.zookeeper = ZooKeeper(directory / "zookeeper")
        launch(self.zookeeper)
        self.zookeeper.start()
        self.brokers, ports = [], []
        for number in (1, 2):
            ports.append(free_port())
            broker = Broker(
                "ours",
                directory / str(number),
                self.zookeeper.connect,
                broker_id=number,
                props={"http.port": ports[-1], "zookeeper.session.timeout.ms": 6000},
            )
            launch(broker)
            self.brokers.append(broker.start())
        self.instances = [f"127.0.0.1:{port}" for port in ports]
        self.brokers[0].create_topic("t", replicas=[1, 2])
        self.console = Console(self.zookeeper.connect, directory / "console")
        launch(self.console)
        self.console.begin()
        jobs = {"kafka": ports, "kafka-console": [self.console.port]}
        self.prometheus = Prometheus(directory / "prometheus", jobs, rules)
        launch(self.prometheus)
        self.prometheus.begin()
        wait_until("three targets", WAIT_S, lambda: len(self.prometheus.value("up == 1")) == 3)

    def wait_for(self, seconds: float, **alerts: set[str]) -> None:
        """Each alert fires, with these instances or ids of brokers."""

        def fire() -> bool:
            firing = self.prometheus.firing()
            return all(
                {each.get("id", each.get("instance", "")) for each in firing.get(name, ())} == about
                for name, about in alerts.items()
            )

        wait_until(f"{alerts} of {self.prometheus.firing()}", seconds, fire)


@pytest.mark.slow
def test_dead_brokers_fire_within_a_minute_and_a_dead_cluster_does_not_end_it(
    tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    watched = Watched(tmp_path, launch)
    first, second = watched.instances
    assert watched.prometheus.firing() == {}
    watched.brokers[1].kill()
    watched.wait_for(60, KafkaBrokerDown={second}, KafkaBrokerNotRegistered={"2"})
    watched.brokers[0].kill()
    watched.wait_for(
        60,
        KafkaAllBrokersDown={""},
        KafkaBrokerDown={first, second},
        KafkaBrokerNotRegistered={"1", "2"},
    )
    wait_until(
        "that there is no controller",
        WAIT_S,
        lambda: "KafkaNoSingleController" in watched.prometheus.firing(),
    )
    _, ready = watched.console.ask("/health/ready")
    assert json.loads(ready)["warnings"][0] == "no broker is registered"
    for broker in watched.brokers:
        broker.start()
    wait_until("the end of all alerts", WAIT_S, lambda: watched.prometheus.firing() == {})
    watched.zookeeper.pause()
    watched.wait_for(WAIT_S, KafkaZooKeeperOutOfReach={first, second})
    instance = f"127.0.0.1:{watched.console.port}"
    watched.wait_for(WAIT_S, KafkaConsoleSeesNothing={instance})
    watched.zookeeper.resume()
    wait_until("the end of all alerts", WAIT_S, lambda: watched.prometheus.firing() == {})
    watched.console.kill()
    watched.wait_for(WAIT_S, KafkaServiceDown={instance})


@pytest.mark.slow
def test_a_full_disk_fires_until_there_is_room(
    tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    disk = Disk(tmp_path / "loop", megabytes=24)
    zookeeper = ZooKeeper(tmp_path / "zookeeper")
    launch(zookeeper)
    zookeeper.start()
    running: list[Process] = []
    try:
        port = free_port()
        place = disk.path / "data"
        props = {
            "http.port": port,
            "log.dirs": f"{tmp_path / 'good'},{place}",
            "log.index.size.max.bytes": 65536,
        }
        broker = Broker("ours", tmp_path / "broker", zookeeper.connect, props=props)
        running.append(broker)
        broker.start()
        broker.create_topic("t", 4)
        prometheus = Prometheus(tmp_path / "prometheus", {"kafka": [port]})
        running.append(prometheus)
        prometheus.begin()
        wait_until("the broker", WAIT_S, lambda: prometheus.value("up == 1"))
        assert "KafkaDiskFull" not in prometheus.firing()
        disk.fill()
        with broker.wire() as wire:
            for partition in range(4):
                with contextlib.suppress(WireError):  # those of the full disk are refused
                    wire.produce("t", partition, entry(None, bytes(100_000)) * 8)
        wait_until("the alert", WAIT_S, lambda: "KafkaDiskFull" in prometheus.firing())
        [alert] = prometheus.firing()["KafkaDiskFull"]
        assert alert["logDirectory"] == str(place)
        wait_until("the other", WAIT_S, lambda: "KafkaDiskNearlyFull" in prometheus.firing())
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/ready", timeout=30) as answer:
            ready = json.load(answer)
        assert ready["warnings"] == [f"data directories are full: {place}"]
        disk.make_room()
        wait_until("the end", WAIT_S, lambda: "KafkaDiskFull" not in prometheus.firing())
    finally:
        for process in running:
            process.kill()
        disk.unmount()


@pytest.mark.slow
def test_a_group_that_is_late_and_one_that_stopped(
    tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """As the rules say, but for five minutes less."""
    rules = tmp_path / "rules.yml"
    rules.write_text(RULES.read_text(encoding="utf-8").replace("for: 5m", "for: 5s"))
    watched = Watched(tmp_path, launch, rules)
    address = watched.brokers[0].address
    hour_ago = int((time.time() - 3600) * 1000)
    watched.console.kill()  # the time at which it sees a message counts before the message's own
    topics.write(address, "t", [Sent("k", str(n), hour_ago, 0) for n in range(10)])
    watched.console.begin()
    client = watched.zookeeper.client("")
    try:
        client.ensure_path("/consumers/late/offsets/t/0")
        client.set("/consumers/late/offsets/t/0", b"4")
        wait_until("the alert", WAIT_S, lambda: "KafkaConsumerLate" in watched.prometheus.firing())
        [alert] = watched.prometheus.firing()["KafkaConsumerLate"]
        assert (alert["consumergroup"], alert["topic"]) == ("late", "t")
        client.set("/consumers/late/offsets/t/0", b"10")
        wait_until(
            "its end", WAIT_S, lambda: "KafkaConsumerLate" not in watched.prometheus.firing()
        )
    finally:
        client.stop()
        client.close()


@pytest.mark.slow
def test_a_transaction_that_nobody_ends_fires_until_it_is_aborted(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None], our_tools: Tools
) -> None:
    """After a restart its producer was last heard of at the time of its message, an hour ago."""
    port = free_port()
    props = {"http.port": port, **hanging.UNVERIFIED}
    chroot = f"{zookeeper.connect}/late-transactions"
    broker = Broker("ours", tmp_path / "broker", chroot, props=props)
    launch(broker)
    broker.start().create_topic("t")
    hanging.begin(broker.port, "t", "m", int((time.time() - 3600) * 1000))
    assert broker.stop() == 143
    broker.start().wait_for_leader("t")
    started = Prometheus(tmp_path / "prometheus", {"kafka": [port]})
    launch(started)
    started.begin()

    def states() -> set[str]:
        found = started.ask("alerts")["alerts"]
        return {
            each["state"]
            for each in found
            if each["labels"]["alertname"] == "KafkaLateTransactions"
        }

    wait_until("the alert", WAIT_S, lambda: states() == {"firing"})
    [alert] = [
        each
        for each in started.ask("alerts")["alerts"]
        if each["labels"]["alertname"] == "KafkaLateTransactions"
    ]
    assert alert["annotations"]["summary"].startswith("1 partitions of the broker at 127.")

    def run(*words: str) -> list[str]:
        name = "org.apache.kafka.tools.TransactionsCommand"
        done = our_tools.run(name, "--bootstrap-server", broker.address, *words)
        assert done.code == 0, done
        return done.lines

    [_, row] = run("find-hanging", "--topic", "t")
    assert row.split()[:3] == ["t", "0", str(hanging.PRODUCER_ID)]
    run("abort", "--topic", "t", "--partition", "0", "--start-offset", row.split()[5])
    wait_until("its end", WAIT_S, lambda: not states())

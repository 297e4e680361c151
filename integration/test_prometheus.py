"""Dashboard and alerting rules in a real Prometheus, which scrapes broker, console and REST proxy.

Skipped with the reason where Debian's package ``prometheus`` is missing.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from integration import hanging
from integration.console import Console
from integration.harness import HOME, Broker, Process, Tools, ZooKeeper, free_port
from integration.rest_proxy import RestProxy
from integration.wire import entry, wait_until

PROMETHEUS, PROMTOOL = shutil.which("prometheus"), shutil.which("promtool")
pytestmark = pytest.mark.skipif(
    not (PROMETHEUS and PROMTOOL), reason="prometheus is not installed (Debian's package)"
)
RULES = HOME / "config" / "prometheus-alerts.yml"
DASHBOARD = HOME / "config" / "grafana-dashboard.json"
VARIABLES = {"$__rate_interval": "1m", "$instance": ".*", "$topic": ".*"}
WAIT_S = 180


class Prometheus(Process):
    """It scrapes each second, and evaluates the rules each second."""

    def __init__(self, directory: Path, ports: list[int]) -> None:
        self.port = free_port()
        directory.mkdir()
        targets = json.dumps([f"127.0.0.1:{port}" for port in ports])
        (directory / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
            f"rule_files: [{json.dumps(str(RULES))}]\n"
            "scrape_configs:\n"
            f"  - {{job_name: kafka, static_configs: [{{targets: {targets}}}]}}\n"
        )
        command = [
            PROMETHEUS or "",
            f"--config.file={directory / 'prometheus.yml'}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
        ]
        super().__init__("prometheus", command, directory)

    def ask(self, path: str, **query: str) -> Any:
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            found = json.load(answer)
        assert found["status"] == "success", found
        return found["data"]

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
    started = Prometheus(directory / "prometheus", [port, console.port, proxy.port])
    started.spawn()
    started.wait_for("Server is ready to receive web requests")
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
    assert len(rules()) == 8
    assert [each["name"] for each in rules() if each["state"] == "firing"] == []


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
    started = Prometheus(tmp_path / "prometheus", [port])
    launch(started)
    started.spawn()
    started.wait_for("Server is ready to receive web requests")

    def states() -> set[str]:
        found = started.ask("alerts")["alerts"]
        return {
            each["state"]
            for each in found
            if each["labels"]["alertname"] == "KafkaLateTransactions"
        }

    wait_until("the alert", WAIT_S, lambda: states() == {"firing"})
    [alert] = started.ask("alerts")["alerts"]
    assert alert["annotations"]["summary"].startswith("1 partitions of 127.0.0.1")

    def run(*words: str) -> list[str]:
        name = "org.apache.kafka.tools.TransactionsCommand"
        done = our_tools.run(name, "--bootstrap-server", broker.address, *words)
        assert done.code == 0, done
        return done.lines

    [_, row] = run("find-hanging", "--topic", "t")
    assert row.split()[:3] == ["t", "0", str(hanging.PRODUCER_ID)]
    run("abort", "--topic", "t", "--partition", "0", "--start-offset", row.split()[5])
    wait_until("its end", WAIT_S, lambda: not states())

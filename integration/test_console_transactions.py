"""The console's page of transactions in a browser: what is late or hangs, and its abort."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer

from integration import hanging
from integration.chromium import NEEDED, chromium, errors
from integration.console import Console
from integration.harness import Broker, ZooKeeper
from integration.programs import topics
from integration.wire import wait_until

pytestmark = NEEDED
WAIT_S = 60


class Place:
    """A broker that aborts no transaction by itself, and stores those that no coordinator has."""

    def __init__(self, zookeeper: ZooKeeper, directory: Path) -> None:
        connect = f"{zookeeper.connect}/console-transactions"
        props = {
            "zookeeper.session.timeout.ms": 30000,
            **hanging.UNVERIFIED,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": 3_600_000,
        }
        self.broker = Broker("ours", directory / "broker", connect, props=props).start()
        settings = {"console.read.only": "false"}
        self.console = Console(connect, directory / "console", **settings).begin()
        self.url = f"http://127.0.0.1:{self.console.port}"

    def begin(self, id_: str, topic: str, *values: str, timeout_ms: int = 600_000) -> Any:
        """A producer with an open transaction."""
        made = Producer(
            {
                "bootstrap.servers": self.broker.address,
                "transactional.id": id_,
                "transaction.timeout.ms": timeout_ms,
                "log_level": 0,
            }
        )
        made.init_transactions(WAIT_S)
        made.begin_transaction()
        for value in values:
            made.produce(topic, value, partition=0)
        assert made.flush(WAIT_S) == 0
        return made

    def committed(self, topic: str) -> list[str]:
        return [value for _, value in topics.read(self.broker.address, topic)]


@pytest.fixture(scope="module")
def place(zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    found = Place(zookeeper, tmp_path_factory.mktemp("console-transactions"))
    yield found
    found.console.kill()
    found.broker.kill()


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    monkeypatch.setenv("SE_OFFLINE", "true")
    with chromium(tmp_path / "profile") as driver:
        yield driver


def test_what_is_late_and_what_hangs_is_aborted(place: Place, browser: Any) -> None:
    for topic in ("orders", "payments", "audit"):
        place.broker.create_topic(topic)
    in_time = place.begin("billing", "payments", "p1")
    late = place.begin("shop", "orders", "lost 1", "lost 2", timeout_ms=1000)
    hanging.begin(place.broker.port, "audit", "lost 3", int(time.time() * 1000))
    for topic in ("orders", "audit"):
        topics.write(place.broker.address, topic, [topics.Sent("", "kept")] * 3)
        assert place.committed(topic) == []

    def row(css: str) -> str:
        found = browser.execute_script(
            "const it = document.querySelector(arguments[0]); return it ? it.innerText : ''", css
        )
        return " ".join(found.split())

    def shows(css: str, *texts: str) -> None:
        try:
            wait_until(f"{texts} in {css}", WAIT_S, lambda: all(each in row(css) for each in texts))
        except TimeoutError as error:
            raise AssertionError(f"{error}: {row(css)}") from None

    browser.get(f"{place.url}/transactions")
    shows("#producer-4711", "hanging over", "none", "audit 0")
    shows("#open", "shop Ongoing late", "billing Ongoing")
    assert "billing Ongoing late" not in row("#open")
    shows("#held-orders-0", "orders 0 0 0 5 5 shop")
    shows("#held-audit-0", "audit 0 0 0 4 4 producer 4711")
    names = [each.text for each in browser.find_elements("css selector", "#open td:first-child")]
    assert sorted(names) == ["billing", "not known", "shop"]

    browser.get(f"{place.url}/topics")
    shows("main", "orders late transaction")
    assert "payments late" not in row("main")
    browser.get(f"{place.url}/topics/orders")
    browser.find_element("link text", "5 held back").click()
    wait_until("the page", WAIT_S, lambda: browser.current_url.endswith("#held-orders-0"))

    for label, name, topic in (
        ("Abort shop", "shop", "orders"),
        ("Abort 4711", "4711", "audit"),
    ):
        browser.get(f"{place.url}/transactions")
        browser.find_element("css selector", f"[aria-label='{label}']").click()
        wait_until("the form", WAIT_S, lambda: "/abort?" in browser.current_url)
        browser.find_element("name", "typed").send_keys(name)
        browser.find_element("css selector", "button.danger").click()
        shows("main", f"The transaction of {name} was aborted.")
        wait_until("the messages", WAIT_S, lambda t=topic: place.committed(t) == ["kept"] * 3)
        wait_until("nothing held", WAIT_S, lambda t=topic: not row(f"#held-{t}-0"))
    in_time.commit_transaction(WAIT_S)
    wait_until("its commit", WAIT_S, lambda: place.committed("payments") == ["p1"])
    with pytest.raises(KafkaException, match="_FENCED"):
        late.commit_transaction(WAIT_S)
    shows("main", "No transaction is open.", "No partition is held back.")
    assert errors(browser) == []


def test_a_telephones_width_is_enough(place: Place, browser: Any) -> None:
    place.broker.create_topic("narrow")
    made = place.begin("a-long-id-of-an-application-with-many-words-0_1", "narrow", "v")
    place.console.wait_until_shown("/transactions", "a-long-id")
    browser.set_window_size(500, 900)
    browser.get(f"{place.url}/transactions")
    wide = browser.execute_script(
        "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert wide <= 0
    made.abort_transaction(WAIT_S)

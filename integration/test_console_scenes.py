"""The console in a browser: payloads, a live tail, without JavaScript, a cluster of both kinds."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from integration.chromium import NEEDED, chromium, errors
from integration.console import Console
from integration.harness import Broker, Process, Tools, ZooKeeper, free_port, zookeeper_text
from integration.test_console_web import SCRIPT
from integration.test_metrics import REQUESTS, Watched
from integration.wire import entry, wait_until
from kafka08.message.compression import GZIP, SNAPPY
from kafka08.message.sets import encode_set

COUNT, PAGE = 100_000, 50
LARGE = 2 << 20
WAIT_S = 60


class Place:
    """A broker with metrics, its console, and a browser."""

    def __init__(self, zookeeper: ZooKeeper, directory: Path) -> None:
        connect, port = f"{zookeeper.connect}/scenes", free_port()
        props = {"http.port": port, "message.max.bytes": 4 << 20, "delete.topic.enable": "true"}
        props |= {"replica.fetch.max.bytes": 5 << 20, "zookeeper.session.timeout.ms": 30000}
        self.broker = Broker("ours", directory / "broker", connect, props=props)
        self.watched = Watched(self.broker.start(), port)
        settings = {"console.read.only": "false"}
        self.console = Console(connect, directory / "console", **settings).begin()
        self.address = f"http://127.0.0.1:{self.console.port}"

    def topic(self, name: str, *sets: bytes) -> None:
        self.broker.create_topic(name)
        self.produce(name, *sets)
        self.console.wait_until_shown("/topics", name)

    def produce(self, topic: str, *sets: bytes) -> None:
        with self.broker.wire() as wire:
            for each in sets:
                wire.produce(topic, 0, each)

    def fetches(self) -> float:
        return self.watched.value(REQUESTS + "requests_total", request="FetchConsumer")


@pytest.fixture(scope="module")
def place(zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    found = Place(zookeeper, tmp_path_factory.mktemp("scenes"))
    yield found
    found.console.kill()
    found.broker.kill()


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    monkeypatch.setenv("SE_OFFLINE", "true")
    with chromium(tmp_path / "profile") as driver:
        yield driver


def numbered(first: int, last: int, width: int = 0) -> bytes:
    """A set of the messages ``m-first`` to ``m-(last - 1)``."""
    values = (b"m-%d" % number for number in range(first, last))
    return b"".join(entry(None, value.ljust(width), at) for at, value in enumerate(values))


@pytest.mark.scenario("ops-48")
@NEEDED
def test_payloads_of_all_kinds(place: Place, browser: Any) -> None:
    text = "größe \N{SNOWMAN}"
    plain = [
        (b"k", text.encode()),
        (None, b'{"b": [1, "<i>"]}'),
        (None, text.encode("utf-16")),
        ((-5).to_bytes(8, "big", signed=True), (1 << 40).to_bytes(8, "big")),
        (b"", b""),
        (b"tombstone", None),
        (None, SCRIPT.encode()),
        (None, b"<img src=x onerror=\"document.title='ran'\">"),
        (None, b"x" * LARGE),
    ]
    pair: list[tuple[bytes | None, bytes | None]] = [(None, SCRIPT.encode()), (b"z", b"gz")]
    sets = (encode_set(pair, codec, 0) for codec in (GZIP, SNAPPY))
    place.topic("kinds", *(entry(*each) for each in plain), *sets)

    def cells(decoder: str) -> dict[int, list[str]]:
        words = urlencode({"from": "oldest", "as": decoder})
        browser.get(f"{place.address}/topics/kinds/messages?{words}")
        assert browser.title == "Messages of kinds - kafka08 console"
        rows = browser.find_elements("css selector", "#messages tbody tr")
        return {
            int(row.get_attribute("id").removeprefix("offset-")): [
                " ".join(cell.text.split()) for cell in row.find_elements("css selector", "td")
            ]
            for row in rows
        }

    shown = cells("text")
    assert list(shown) == list(range(13))
    assert shown[0][3].startswith("k ")
    assert shown[0][4].startswith(text)
    assert shown[4][3:] == ["empty", "empty", ""]
    assert shown[5][4] == "null"
    assert shown[6][4].startswith(SCRIPT)
    assert shown[7][4].startswith("<img src=x")
    assert "2,097,152 bytes, cut" in shown[8][4]
    codecs = [shown[offset][2] for offset in range(8, 13)]
    assert codecs == ["none", "gzip", "gzip", "snappy", "snappy"]
    for offset in (9, 11):
        assert shown[offset][4].startswith(SCRIPT)
    assert '"<i>"' in cells("json")[1][4]
    assert cells("utf-16")[2][4].startswith(text)
    numbers = cells("number")[3]
    assert numbers[3].startswith("-5 ")
    assert numbers[4].startswith(f"{1 << 40} ")
    assert "67 72 c3 b6" in cells("hex")[0][4]
    # The exact bytes: all of them are an x.
    raw = browser.execute_script(
        "const answer = await fetch('/topics/kinds/raw?partition=0&offset=8&part=value');"
        "const bytes = new Uint8Array(await answer.arrayBuffer());"
        "return [bytes.length, bytes.every(each => each === 120)];"
    )
    assert raw == [LARGE, True]
    assert errors(browser) == []


@pytest.mark.scenario("ops-50")
@NEEDED
def test_a_live_tail_shows_a_burst(place: Place, browser: Any) -> None:
    place.topic("tail", numbered(0, 10))
    browser.get(f"{place.address}/topics/tail/messages")
    browser.find_element("link text", "Follow new messages").click()
    wait_until("the tail", WAIT_S, lambda: "from=tail" in browser.current_url)
    browser.execute_script("window.stayed = true; document.activeElement.blur()")
    place.produce("tail", *(numbered(first, first + 100) for first in range(10, 510, 100)))

    def offsets() -> list[int]:
        found = browser.execute_script(
            "return [...document.querySelectorAll('#messages tbody tr')].map(row => row.id)"
        )
        return [int(each.removeprefix("offset-")) for each in found]

    wait_until("all of the burst", WAIT_S, lambda: offsets() == list(range(509, 9, -1)))
    assert browser.find_elements("id", "left-out") == []
    place.produce("tail", numbered(510, 530))

    def left_out() -> str:
        found = browser.execute_script(
            "const told = document.getElementById('left-out'); return told && told.textContent"
        )
        return found or ""

    wait_until("what is left out", WAIT_S, lambda: left_out().startswith("20 messages"))
    assert offsets() == list(range(529, 29, -1))
    assert browser.execute_script("return window.stayed") is True
    assert errors(browser) == []
    while_open = place.fetches()
    wait_until("more fetches", WAIT_S, lambda: place.fetches() > while_open)
    browser.get("about:blank")
    seen = [place.fetches()]

    def nothing_is_fetched() -> bool:
        """Between two looks; the page asked at each second."""
        browser.execute_async_script("setTimeout(arguments[0], 3000)")
        seen.append(place.fetches())
        return seen[-1] == seen[-2]

    wait_until("the end of the fetches", WAIT_S, nothing_is_fetched)


@pytest.mark.scenario("ops-53")
@NEEDED
def test_without_javascript(
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    launch: Callable[[Process], None],
) -> None:
    """From the list of topics to a message that is sent, read and searched for."""
    from selenium.common.exceptions import WebDriverException

    monkeypatch.setenv("SE_OFFLINE", "true")
    place.topic("still", numbered(0, 120))
    # Pages load themselves again as often as the cluster is looked at: not below a click here.
    rarely = {"console.refresh.ms": 600_000, "lag.interval.ms": 600_000}
    settings = {"console.read.only": "false", **rarely}
    console = Console(place.broker.zookeeper, tmp_path / "console", **settings)
    launch(console)
    console.begin()
    address = f"http://127.0.0.1:{console.port}"
    console.wait_until_shown("/topics", "still")
    with chromium(tmp_path / "profile", scripts=False) as browser:
        browser.get("data:text/html,<title>no</title><script>document.title = 'ran'</script>")
        assert browser.title == "no"

        def main() -> str:
            """Its text; "" while the browser is between two pages."""
            try:
                return str(browser.find_element("css selector", "main").text)
            except WebDriverException:
                return ""

        def told(text: str) -> None:
            wait_until(text, WAIT_S, lambda: text in main())

        def shown(css: str) -> None:
            wait_until(css, WAIT_S, lambda: browser.find_elements("css selector", css))

        def fill(name: str, value: str) -> None:
            field = browser.find_element("name", name)
            field.clear()
            field.send_keys(value)

        def press(text: str) -> None:
            browser.find_element("xpath", f"//button[normalize-space()='{text}']").click()

        for path in ("/", "/brokers", "/brokers/0", "/groups", "/elect", "/reassign"):
            browser.get(address + path)
            assert len(main()) > 20, path
        browser.get(f"{address}/create")
        fill("name", "by-form")
        fill("partitions", "1")
        fill("factor", "1")
        browser.find_element("css selector", "main form button").click()
        place.broker.wait_for_leader("by-form")
        browser.get(f"{address}/topics")
        browser.find_element("link text", "still").click()
        wait_until("the topic", WAIT_S, lambda: browser.current_url.endswith("/topics/still"))
        browser.find_element("link text", "Send a message").click()
        shown("[name=value]")
        fill("value", "sent without a script")
        browser.find_element("css selector", "main form button").click()
        told("The message is at offset 120 of")
        browser.get(f"{address}/topics/still/messages")
        told("sent without a script")
        browser.find_element("link text", "Older").click()
        shown("#messages tbody tr:first-child#offset-70")
        browser.find_element("xpath", "//option[@value='offset']").click()
        fill("at", "33")
        press("Read")
        shown("#messages tbody tr:first-child#offset-33")
        browser.find_element("xpath", "//option[@value='oldest']").click()
        fill("at", "")
        fill("has", "without a")
        press("Read")
        told("Found 1, read 121 of 121.")


@pytest.mark.scenario("ops-49")
def test_a_hundred_thousand_messages(place: Place) -> None:
    place.topic("many", *(numbered(at, at + 1000, 100) for at in range(0, COUNT, 1000)))
    console = place.console

    def look(path: str) -> tuple[list[int], dict[str, str], str]:
        """The offsets shown, the links by their text, and what was read."""
        status, page = console.ask(path)
        assert status == 200, page
        links = re.findall(r'<a href="(/topics/many/messages[^"]*)">([^<]+)</a>', page)
        told = re.search(r'<p id="read">(.*?)</p>', page, re.S)
        assert told is not None
        return (
            [int(each) for each in re.findall(r'id="offset-(\d+)"', page)],
            {text: target.replace("&amp;", "&") for target, text in links},
            " ".join(told[1].split()),
        )

    before = place.watched.value("kafka_server_brokertopicmetrics_bytesout_total", topic="many")
    offsets, links, _ = look("/topics/many/messages")
    assert offsets == list(range(COUNT - 1, COUNT - 1 - PAGE, -1))
    after = place.watched.value("kafka_server_brokertopicmetrics_bytesout_total", topic="many")
    # Of 12 MB; a fetch of the browser is 256 KiB.
    assert after - before <= 1 << 20
    for _ in range(40):
        more, links, _ = look(links["Older"])
        offsets += more
    assert offsets == list(range(COUNT - 1, COUNT - 1 - 41 * PAGE, -1))
    offsets, links, _ = look("/topics/many/messages?from=offset&at=50000")
    for _ in range(10):
        more, links, _ = look(links["Newer"])
        offsets += more
    assert offsets == list(range(50_000, 50_000 + 11 * PAGE))
    offsets, read = [], 0
    path = f"/topics/many/messages?{urlencode({'from': 'oldest', 'has': 'm-9999'})}"
    while path:
        more, links, told = look(path)
        counted = re.match(r"Found (\d+), read ([\d,]+) of 100,000\.", told)
        assert counted is not None, told
        assert int(counted[1]) == len(more)
        read += int(counted[2].replace(",", ""))
        offsets += more
        path = links.get("Continue the search", "")
    assert offsets == [9999, *range(99_990, COUNT)]
    assert read == COUNT
    assert "many" not in console.text("/groups")


@pytest.mark.scenario("ops-45", "ops-46")
@NEEDED
@pytest.mark.original
def test_a_killed_broker_of_three(
    zookeeper: ZooKeeper,
    tmp_path: Path,
    launch: Callable[[Process], None],
    browser: Any,
    tools: Tools,
) -> None:
    """Broker 1 is an original, preferred for a topic; the page that is open turns red."""
    connect = f"{zookeeper.connect}/three-{tools.kind}"
    brokers = {
        number: Broker(kind, tmp_path / f"b{number}", connect, broker_id=number,
                       props={"zookeeper.session.timeout.ms": 15000})
        for number, kind in ((1, "original"), (2, "ours"), (3, "ours"))
    }  # fmt: skip
    for broker in brokers.values():
        launch(broker)
        broker.start()
    brokers[1].create_topic("t", replicas=[1, 2, 3])
    with brokers[1].wire() as wire:
        wire.produce("t", 0, numbered(0, 7), acks=-1)
    console = Console(connect, tmp_path / "console")
    launch(console)
    console.begin()
    kinds = {1: "0.8.2.2 no metrics", 2: "kafka08", 3: "kafka08"}

    def rows_are_shown() -> bool:
        """Each broker with its kind, and the controller of ZooKeeper."""
        controller = json.loads(zookeeper_text(connect, "/controller") or "{}").get("brokerid")
        page = console.text("/brokers")
        return all(
            f"{brokers[number].address} up {'controller ' * (number == controller)}{kind}" in page
            for number, kind in kinds.items()
        )

    wait_until("all brokers in the list", WAIT_S, rows_are_shown)
    browser.get(f"http://127.0.0.1:{console.port}/")
    browser.execute_script("window.stayed = true")

    def figure(name: str) -> tuple[str, bool]:
        """Its text, and whether it is red."""
        found = browser.execute_script(
            "const it = document.getElementById(arguments[0]);"
            "return [it.textContent, it.classList.contains('bad')]",
            name,
        )
        return found[0], found[1]

    wait_until("all brokers", WAIT_S, lambda: figure("brokers-up") == ("3 of 3", False))
    assert figure("under-replicated") == ("0", False)
    brokers[1].kill()
    wait_until("the dead broker", WAIT_S, lambda: figure("brokers-up") == ("2 of 3", True))
    wait_until("its replica", WAIT_S, lambda: figure("under-replicated") == ("1", True))
    assert browser.execute_script("return window.stayed") is True
    # The topic's row beside the tools.
    row = "0 2 1, 2, 3 2, 3 under-replicated leader not preferred 0 7 7"

    def shown() -> bool:
        # Each replica is a link, which leaves a space in the text.
        return row in console.text("/topics/t").replace(" ,", ",")

    wait_until("the topic's row", WAIT_S, shown)
    described = tools.run(
        "kafka.admin.TopicCommand", "--zookeeper", connect, "--describe", "--topic", "t"
    ).out
    assert re.search(r"Leader:\s*2\s+Replicas:\s*1,2,3\s+Isr:\s*2,3", described), described
    for time, offset in (("-2", 0), ("-1", 7)):
        told = tools.run(
            "kafka.tools.GetOffsetShell",
            *("--broker-list", brokers[2].address, "--topic", "t", "--time", time),
        )
        assert told.lines[-1:] == [f"t:0:{offset}"], told
    assert errors(browser) == []

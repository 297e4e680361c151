"""The web console in a real browser: Debian's chromium, driven by selenium.

Skipped with the reason where one of the two is missing: packages chromium and chromium-driver of
Debian, selenium of PyPI.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.chromium import NEEDED, chromium, errors
from integration.console import Console
from integration.harness import Broker, ZooKeeper
from integration.test_console_web import SCRIPT
from integration.wire import entry, wait_until

WAIT_S = 60
webdriver = pytest.importorskip("selenium.webdriver")
pytestmark = NEEDED


@pytest.fixture(scope="module")
def console(zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    chroot = f"{zookeeper.connect}/browser"
    props = {"zookeeper.session.timeout.ms": 30000}
    broker = Broker("ours", tmp_path_factory.mktemp("browser-broker"), chroot, props=props).start()
    broker.create_topic("t", 2)
    with broker.wire() as wire:
        wire.produce("t", 0, entry(None, SCRIPT.encode()))
    process = Console(
        chroot, tmp_path_factory.mktemp("browser-console"), **{"console.read.only": "false"}
    ).begin()
    process.wait_until_shown("/topics", "1 of 1 topics")
    yield process
    process.kill()
    broker.kill()


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    monkeypatch.setenv("SE_OFFLINE", "true")
    with chromium(tmp_path) as driver:
        yield driver


@pytest.mark.scenario("ops-48")
def test_no_script_of_a_message_runs_and_no_page_breaks_its_policy(
    console: Console, browser: Any
) -> None:
    address = f"http://127.0.0.1:{console.port}"
    for path in ("/", "/brokers", "/brokers/0", "/topics", "/topics/t", "/groups", "/create"):
        browser.get(address + path)
        assert browser.title.endswith("kafka08 console")
    browser.get(f"{address}/topics/t/messages")
    assert SCRIPT in browser.find_element("css selector", "#offset-0 code").text
    assert browser.title == "Messages of t - kafka08 console"
    assert errors(browser) == []


@pytest.mark.scenario("ops-45")
def test_a_page_changes_without_a_reload(console: Console, browser: Any) -> None:
    browser.get(f"http://127.0.0.1:{console.port}/topics")
    browser.execute_script("window.stayed = true")
    console.submit("/create", "/create", name="later", partitions=1, factor=1)

    def shown() -> bool:
        return "later" in browser.find_element("css selector", "main").text

    wait_until("the new topic on the page", 30, shown)
    assert browser.execute_script("return window.stayed") is True
    assert errors(browser) == []


@pytest.mark.scenario("ops-59")
def test_updates_wait_for_a_field_and_keep_the_focus_of_a_link(
    console: Console, browser: Any
) -> None:
    address = f"http://127.0.0.1:{console.port}"
    browser.get(f"{address}/topics")

    def line() -> str:
        found = browser.find_elements("css selector", "#updating")
        return found[0].text if found else ""

    browser.find_element("css selector", "main input[name=name]").click()
    wait_until(
        "the line", WAIT_S, lambda: line() == "This page is not updated while you fill in a field."
    )
    browser.execute_script("document.querySelector('main td a').focus()")
    before = browser.find_element("css selector", "footer").text
    wait_until(
        "an update", WAIT_S, lambda: browser.find_element("css selector", "footer").text != before
    )
    assert line() == ""
    focus = "return document.activeElement.getAttribute('href')"
    assert browser.execute_script(focus).startswith("/topics/")


def test_the_open_page_of_a_topic_that_is_gone_says_so(
    console: Console, browser: Any, zookeeper: ZooKeeper
) -> None:
    client = zookeeper.client("/browser")
    try:
        client.create("/brokers/topics/gone", b'{"version":1,"partitions":{"0":[0]}}')
        console.wait_until_shown("/topics", "gone")
        browser.get(f"http://127.0.0.1:{console.port}/topics/gone")
        client.delete("/brokers/topics/gone", recursive=True)
        wait_until(
            "the message",
            WAIT_S,
            lambda: "There is no topic gone." in browser.find_element("css selector", "main").text,
        )
    finally:
        client.stop()
        client.close()


def test_a_cluster_that_does_not_delete_topics(console: Console, browser: Any) -> None:
    """The broker tells the console its delete.topic.enable, false by default."""

    def is_told() -> bool:
        browser.get(f"http://127.0.0.1:{console.port}/topics/t/change")
        told = browser.find_elements("id", "deletion-off")
        return bool(told) and "delete.topic.enable=false" in told[0].text

    wait_until("delete.topic.enable", 60, is_told)
    assert browser.find_elements("css selector", "form[action='/topics/t/partitions']")
    assert browser.find_elements("css selector", "form[action='/topics/t/delete']") == []


def test_the_keyboard_is_enough(console: Console, browser: Any) -> None:
    browser.get(f"http://127.0.0.1:{console.port}/")
    keys = webdriver.Keys
    reached = []
    for _ in range(8):
        webdriver.ActionChains(browser).send_keys(keys.TAB).perform()
        focused = browser.switch_to.active_element
        reached.append(focused.text)
        if focused.text == "Topics":
            break
    assert reached[0] == "Skip to the content"
    webdriver.ActionChains(browser).send_keys(keys.ENTER).perform()
    wait_until("the list of topics", 10, lambda: browser.current_url.endswith("/topics"))


def test_a_telephones_width_is_enough(console: Console, browser: Any) -> None:
    browser.set_window_size(500, 900)
    for path in ("/", "/topics", "/topics/t/messages", "/topics/t/settings"):
        browser.get(f"http://127.0.0.1:{console.port}{path}")
        wide = browser.execute_script(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert wide <= 0, path


def test_heads_of_long_tables_stay_in_sight(console: Console, browser: Any) -> None:
    browser.set_window_size(1200, 500)
    browser.get(f"http://127.0.0.1:{console.port}/topics/t")
    top = browser.execute_script(
        "const settings = document.querySelectorAll('table')[1];"
        "settings.tBodies[0].lastElementChild.scrollIntoView({block: 'end'});"
        "return settings.tHead.rows[0].cells[0].getBoundingClientRect().top"
    )
    assert 0 <= top < 1

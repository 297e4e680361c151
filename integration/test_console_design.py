"""Every page of the console over a cluster with all that there is to see: for all readers.

axe-core finds nothing in light and dark, no page is wider than a telephone, the keyboard is enough
for the main tasks, and what a button copies is what it says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from integration import axe
from integration.chromium import NEEDED, chromium, errors
from integration.console import Console
from integration.console_demo import PAGES, Demo, pages_of
from integration.harness import free_port
from integration.looks import DARK, LIGHT, LOOKS, TELEPHONE, overflow
from integration.wire import wait_until

WAIT_S = 60
webdriver = pytest.importorskip("selenium.webdriver")
pytestmark = NEEDED


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with Demo(tmp_path_factory.mktemp("demo")) as found:
        yield found


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SE_OFFLINE", "true")
        with chromium(tmp_path_factory.mktemp("profile")) as driver:
            driver.set_script_timeout(300)  # axe takes some seconds on a machine without other work
            yield driver


@pytest.fixture(autouse=True)
def _light(browser: Any) -> None:
    LIGHT.put_on(browser)


def against(browser: Any, heading: str) -> list[str]:
    """The faults of the page with ``heading``, which the browser shows or is about to show."""
    look = "return document.querySelector('h1')?.innerText ?? ''"
    wait_until(heading, WAIT_S, lambda: heading in browser.execute_script(look))
    wrong = axe.violations(browser, axe.script())
    if overflow(browser) > 0:
        wrong.append(f"{overflow(browser)} px too wide")
    return wrong


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: str(look.name))
def test_no_page_has_anything_against_it(demo: Demo, browser: Any, look: Any) -> None:
    look.put_on(browser)
    found = {}
    for page in pages_of(demo.url):
        browser.get(demo.url + page.path)
        if wrong := against(browser, page.heading):
            found[page.name] = wrong
    assert found == {}
    assert [each for each in errors(browser) if "/no-such-topic" not in each] == []


def test_the_pages_of_several_clusters_have_nothing_against_them(
    demo: Demo, browser: Any, tmp_path: Path
) -> None:
    clusters = {
        "console.clusters": "shop,away",
        "cluster.shop.zookeeper.connect": demo.zookeeper,
        "cluster.away.zookeeper.connect": f"127.0.0.1:{free_port()}",
    }
    console = Console("", tmp_path / "console", **clusters).begin()
    try:
        console.wait_until_shown("/", "degraded")
        for look in LOOKS:
            look.put_on(browser)
            for path, heading in (
                ("", "Clusters"),
                ("c/shop/", "Overview"),
                ("c/away/", "did not answer"),
            ):
                browser.get(f"http://127.0.0.1:{console.port}/{path}")
                assert against(browser, heading) == [], (look.name, path)
    finally:
        console.kill()


def test_axe_finds_what_is_wrong(demo: Demo, browser: Any) -> None:
    browser.get(demo.url)
    browser.execute_script(
        "const main = document.querySelector('main');"
        "main.insertAdjacentHTML('beforeend', '<img src=/x><p>pale</p>');"
        "main.lastChild.style.color = '#bbb';"
    )
    found = " ".join(axe.violations(browser, axe.script()))
    assert "image-alt: img" in found
    assert "color-contrast: " in found


def test_the_pages_are_all_that_there_are(demo: Demo, browser: Any) -> None:
    """The menu leads to none that is not among the pages that are looked at."""
    browser.get(demo.url)
    links = browser.find_elements("css selector", "nav[aria-label=Pages] a")
    paths = {each.get_attribute("href").removeprefix(demo.url) for each in links}
    assert paths - {page.path.partition("?")[0] for page in PAGES} == set()


class Keyboard:
    """Tab, Enter and letters: no mouse."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser

    def press(self, *keys: str) -> None:
        webdriver.ActionChains(self.browser).send_keys(*keys).perform()

    def reach(self, css: str) -> None:
        """By Tab alone, from where the focus is; the focus is seen there."""
        look = (
            "const it = document.activeElement;"
            "return it.matches(arguments[0]) ? getComputedStyle(it).outlineStyle : ''"
        )
        for _ in range(150):
            self.press(webdriver.Keys.TAB)
            outline = self.browser.execute_script(look, css)
            if outline:
                assert outline == "solid"
                return
        raise AssertionError(f"no Tab reaches {css}")

    def told(self, text: str) -> None:
        """The new page, which may not be there yet."""

        def has() -> bool:
            return bool(
                self.browser.execute_script(
                    "const it = document.querySelector('main');"
                    "return it && it.innerText.includes(arguments[0])",
                    text,
                )
            )

        wait_until(text, WAIT_S, has)


def test_messages_are_searched_with_the_keyboard(demo: Demo, browser: Any) -> None:
    keyboard = Keyboard(browser)
    browser.get(f"{demo.url}/topics")
    keyboard.reach("td a[href='/topics/orders']")
    keyboard.press(webdriver.Keys.ENTER)
    keyboard.reach(".actions a[href='/topics/orders/messages']")
    keyboard.press(webdriver.Keys.ENTER)
    keyboard.reach("[name=from]")
    keyboard.press("the oldest")
    keyboard.reach("[name=has]")
    keyboard.press("gift, please", webdriver.Keys.ENTER)
    keyboard.told("Found ")
    keyboard.reach("#messages summary")
    keyboard.press(webdriver.Keys.ENTER)
    shown = browser.find_element("css selector", "#messages details[open] pre").text
    assert "gift, please wrap" in shown


def test_a_message_is_sent_with_the_keyboard(demo: Demo, browser: Any) -> None:
    keyboard = Keyboard(browser)
    browser.get(f"{demo.url}/topics/customers")
    keyboard.reach("a[href='/topics/customers/send']")
    keyboard.press(webdriver.Keys.ENTER)
    keyboard.reach("[name=key]")
    keyboard.press("by-keyboard")
    keyboard.reach("[name=value]")
    keyboard.press('{"sent": "by keyboard"}')
    keyboard.reach("main form button")
    keyboard.press(webdriver.Keys.ENTER)
    keyboard.told("The message is at offset ")


def test_offsets_are_set_with_the_keyboard(demo: Demo, browser: Any) -> None:
    keyboard = Keyboard(browser)
    browser.get(f"{demo.url}/group?name=search-index")
    keyboard.reach(".actions a[href='/group/reset?name=search-index']")
    keyboard.press(webdriver.Keys.ENTER)
    keyboard.reach("[name=to]")
    keyboard.press("the earliest")
    keyboard.reach("main form button")
    keyboard.press(webdriver.Keys.ENTER)
    keyboard.told("Plan")
    keyboard.reach("button.danger")
    keyboard.press(webdriver.Keys.ENTER)
    keyboard.told("search-index")
    wait_until(
        "the offsets", WAIT_S,
        lambda: "Offsets of" in demo.console.text("/events?kind=offsets")
        or "offsets" in demo.console.text("/audit?has=search-index").lower(),
    )  # fmt: skip


def test_a_setting_is_changed_with_the_keyboard(demo: Demo, browser: Any) -> None:
    keyboard = Keyboard(browser)
    browser.get(f"{demo.url}/topics/customers")
    keyboard.reach(".actions a[href='/topics/customers/settings']")
    keyboard.press(webdriver.Keys.ENTER)
    keyboard.reach("[name='own.retention.ms']")
    keyboard.press("12 h", webdriver.Keys.ENTER)
    keyboard.told("retention.ms")
    wait_until("12 h", WAIT_S, lambda: "43200000" in demo.console.text("/topics/customers"))


def focus(browser: Any, css: str) -> None:
    """At once: a page that looks again by itself replaces its elements."""
    browser.execute_script("document.querySelector(arguments[0]).focus()", css)


def copied(browser: Any, label: str) -> str:
    """The text that the button of that label copies; it says that it did."""
    focus(browser, f'button.copy[aria-label="Copy {label}"]')
    Keyboard(browser).press(webdriver.Keys.ENTER)
    line = browser.find_element("id", "copied")
    assert line.get_attribute("role") == "status"
    wait_until("the word", WAIT_S, lambda: line.text == f"Copied {label}.")
    return str(browser.execute_async_script("navigator.clipboard.readText().then(arguments[0])"))


def test_what_is_copied(demo: Demo, browser: Any) -> None:
    browser.execute_cdp_cmd(
        "Browser.grantPermissions",
        {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"], "origin": demo.url},
    )
    page = f"{demo.url}/topics/orders/messages?partition=0&from=offset&at=3"
    browser.get(page)
    value = json.loads(copied(browser, "the value of offset 3"))
    assert copied(browser, "the key of offset 3") == f"order-{value['order']}"
    assert copied(browser, "the header source of offset 3") == "shop"
    assert copied(browser, "a link to offset 3") == page
    record = json.loads(copied(browser, "offset 3 as JSON"))
    assert record["offset"] == 3
    assert json.loads(record["value"]) == value
    assert record["headers"][1] == {"name": "source", "value": "shop"}
    for path, label, text in (
        ("/topics/orders", "the topic's name", "orders"),
        ("/group?name=billing", "the group's id", "billing"),
        ("/topics/orders/0", "a link to this partition", f"{demo.url}/topics/orders/0"),
        ("/topics/no-such-topic", "the error", "There is no topic no-such-topic."),
    ):
        browser.get(demo.url + path)
        assert copied(browser, label) == text


def test_a_page_that_changes_keeps_the_focus_on_a_button(demo: Demo, browser: Any) -> None:
    browser.get(f"{demo.url}/topics/orders")
    focus(browser, "button.copy")
    before = browser.find_element("css selector", "footer").text
    wait_until(
        "an update", WAIT_S, lambda: browser.find_element("css selector", "footer").text != before
    )
    label = "return document.activeElement.getAttribute('aria-label')"
    assert browser.execute_script(label) == "Copy the topic's name"
    assert len(browser.find_elements("css selector", "h1 button.copy")) == 1


def test_without_a_script_no_button_copies(demo: Demo, tmp_path: Path) -> None:
    with chromium(tmp_path, scripts=False) as browser:
        browser.get(f"{demo.url}/topics/orders/messages?partition=0&from=offset&at=3")
        row = browser.find_element("id", "offset-3")
        assert row.find_elements("css selector", "button") == []
        assert "shop" in row.text
        assert row.find_element("link text", "JSON").get_attribute("href").endswith("part=record")


def test_a_telephone_shows_a_message_as_a_block(demo: Demo, browser: Any) -> None:
    TELEPHONE.put_on(browser)
    browser.get(f"{demo.url}/topics/orders/messages?partition=0&from=offset&at=3")
    wide = "const it = document.getElementById('offset-3'); return it.scrollWidth - innerWidth"
    assert browser.execute_script(wide) <= 0
    DARK.put_on(browser)
    back = "return getComputedStyle(document.body).backgroundColor"
    assert browser.execute_script(back) == "rgb(20, 23, 27)"


def test_the_page_of_moves_that_began_has_nothing_against_it(demo: Demo, browser: Any) -> None:
    for look in LOOKS:
        look.put_on(browser)
        browser.get(f"{demo.url}/reassign?topics=__consumer_offsets&brokers=1,2")
        browser.find_element("css selector", "form[method=post] button").click()
        assert against(browser, "partitions are being moved") == [], look.name
        wait_until(
            "the end of the moves",
            WAIT_S,
            lambda: "No partition is being moved." in demo.console.text("/reassign"),
        )

"""kafka08.console.brokers.http_pages."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.client.cluster import ClusterClient
from kafka08.common import Broker
from kafka08.console.brokers import http_pages as module
from kafka08.console.brokers.http_pages import BrokerPages, page
from kafka08.console.cluster_state import BrokerView
from kafka08.console.config import ConsoleConfig
from kafka08.errors import KafkaError
from kafka08.protocol import admin_schemas as a
from tests.fakes.cluster import FakeCluster
from tests.fakes.http_pages import ServedPages, answer
from tests.fakes.runtime import FakeRuntime

AT = {1: ("10.0.0.1", 9404), 2: ("10.0.0.2", 9404)}
DNS = {"b1": "10.0.0.1", "b2": "10.0.0.2"}
LOCAL = ("127.0.0.1", 9404)
OK = b"HTTP/1.1 200 OK\r\n\r\n"


class Scene:
    """Brokers 1 and 2 serve their pages on all their addresses: each says its id."""

    def __init__(self, *configured: str) -> None:
        self.runtime = FakeRuntime()
        self.pages = ServedPages(self.runtime)
        self.fake = FakeCluster((Broker(1, "b1", 9091), Broker(2, "b2", 9092)))
        self.settings: dict[str, Any] = {"http.host": "0.0.0.0", "http.port": "9404"}
        self.refusal = 0
        self.own = {"127.0.0.1"}
        self.fake.script = self._describe
        cluster = ClusterClient([("b1", 9091)], runtime=self.runtime, channel=self.fake.channel)
        cluster.refresh()
        self.found = BrokerPages(
            cluster,
            ConsoleConfig(zookeeper_connect="zk", broker_http=configured),
            self.runtime,
            DNS.__getitem__,
            self.own.__contains__,
        )
        self.brokers = {id_: BrokerView(id_, True, (), 1000, True) for id_ in (1, 2)}
        for id_, place in AT.items():
            self.pages.answers[place] = answer(b"%d" % id_)

    def _describe(self, port: int, request: Any) -> Any:
        if not isinstance(request, a.DescribeConfigsRequest):
            return None
        [asked] = request.resources
        assert asked.config_names == ["http.host", "http.port"]
        assert (asked.resource_type, asked.resource_name) == (a.BROKER_RESOURCE, str(port - 9090))
        entries = [a.ConfigEntry(name, value, True) for name, value in self.settings.items()]
        found = a.ResourceConfig(self.refusal, None, asked[0], asked[1], entries)
        return a.DescribeConfigsResponse(0, [found])

    def read(self, broker_id: int = 1) -> str:
        return self.found.read(self.brokers[broker_id], "/clients").decode()

    def why_not(self, broker_id: int = 1) -> str:
        with pytest.raises(KafkaError) as raised:
            self.read(broker_id)
        return str(raised.value)

    def change(self, broker_id: int, **values: object) -> None:
        self.brokers[broker_id] = self.brokers[broker_id]._replace(**values)

    def described(self) -> int:
        return len(self.fake.sent(a.DescribeConfigsRequest))


def test_a_broker_is_found_by_its_settings() -> None:
    scene = Scene()
    assert (scene.read(1), scene.read(2)) == ("1", "2")


def test_the_settings_of_a_broker_are_asked_once_for_each_registration() -> None:
    scene = Scene()
    for _ in range(2):
        scene.read(1)
        scene.read(2)
    assert scene.described() == 2
    scene.change(1, since_ms=2000)
    scene.read(1)
    assert scene.described() == 3
    scene.pages.answers.pop(AT[2])
    assert scene.why_not(2) == "refused"
    assert scene.why_not(2) == "refused"
    assert scene.described() == 4  # after a failure it may serve them elsewhere


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"http.port": "-1"}, "it serves nothing over HTTP (http.port is -1)"),
        ({"http.port": "0"}, "it serves nothing over HTTP (http.port is 0)"),
        ({"http.port": None}, "it serves nothing over HTTP (http.port is not set)"),
        (
            {"http.host": "127.0.0.1"},
            "it serves HTTP to its own machine only (http.host is 127.0.0.1)",
        ),
        (
            {"http.host": "localhost"},
            "it serves HTTP to its own machine only (http.host is localhost)",
        ),
    ],
)
def test_a_broker_that_serves_nothing_to_the_console(settings: dict[str, str], told: str) -> None:
    scene = Scene()
    scene.settings.update(settings)
    assert scene.why_not() == told
    assert scene.pages.asked == []


def test_the_loopback_of_the_consoles_own_machine() -> None:
    """Broker 1 is there, and broker 2 is not: 127.0.0.1 is not broker 2's."""
    scene = Scene()
    scene.settings["http.host"] = "127.0.0.1"
    scene.own.add(DNS["b1"])
    scene.pages.answers[LOCAL] = answer(b"local")
    assert scene.why_not(2).startswith("it serves HTTP to its own machine only")
    assert scene.read(1) == "local"


def test_an_address_of_its_own() -> None:
    scene = Scene()
    scene.settings["http.host"] = "10.9.9.9"
    scene.pages.answers["10.9.9.9", 9404] = answer(b"own")
    assert scene.read() == "own"


def test_a_configured_address_goes_first_and_no_broker_is_asked_for_it() -> None:
    scene = Scene("1=front:8001", "2=[::1]:8002")
    scene.pages.answers["front", 8001] = answer(b"one")
    scene.pages.answers["::1", 8002] = answer(b"two")
    scene.change(2, is_ours=False)
    assert (scene.read(1), scene.read(2)) == ("one", "two")
    assert scene.described() == 0


@pytest.mark.parametrize(
    ("is_ours", "told"),
    [
        (
            False,
            "it serves nothing over HTTP if it is of 0.8.2.2; if it has api.versions.enable=false, "
            "console.broker.http has to say where",
        ),
        (None, "its registration cannot be read"),
    ],
)
def test_brokers_that_cannot_be_asked(is_ours: bool | None, told: str) -> None:
    scene = Scene()
    scene.change(2, is_ours=is_ours)
    assert scene.why_not(2) == told
    assert scene.described() == 0


def test_a_broker_that_refuses_or_does_not_answer() -> None:
    scene = Scene()
    scene.refusal = 31
    scene.fake.down = {9092}
    assert scene.why_not(1) == "it does not show its settings to the console"
    assert scene.why_not(2) == "port 9092"
    scene.brokers[3] = BrokerView(3, True, (), 1000, True)
    assert scene.why_not(3) == "no broker says where it is"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "Connection refused"),
        (TimeoutError("timed out"), "timed out"),
    ],
)
def test_a_connection_that_fails(error: OSError, told: str) -> None:
    scene = Scene()
    scene.pages.answers[AT[1]] = error
    assert scene.why_not() == told


# One page


def pages(found: bytes | OSError, place: tuple[str, int] = LOCAL) -> ServedPages:
    made = ServedPages(FakeRuntime())
    made.answers[place] = found
    return made


def body(found: ServedPages, place: tuple[str, int] = LOCAL) -> bytes:
    return page(found.runtime, place, "/jmx?qry=*", 4.0)


def test_the_request_and_the_body() -> None:
    found = pages(answer(b"a\r\n\r\nb"))
    found.piece = 7
    assert body(found) == b"a\r\n\r\nb"
    assert found.asked == [(LOCAL, b"GET /jmx?qry=* HTTP/1.0\r\nHost: 127.0.0.1:9404\r\n\r\n")]
    assert found.closed == 1


def test_an_address_of_ipv6_is_named_in_brackets() -> None:
    found = pages(answer(b""), ("::1", 9404))
    body(found, ("::1", 9404))
    assert b"\r\nHost: [::1]:9404\r\n" in found.asked[0][1]


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (b"", "it does not answer in HTTP"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "it does not answer in HTTP"),
        (b"HTTP/1.1\r\n\r\n", "it does not answer in HTTP"),
        (b"HTTP/1.1 500 Sorry\r\n\r\n", "it answers 500 over HTTP"),
        (
            b"HTTP/1.1 404 Not Found\r\n\r\nnot found\n",
            "it has no page /jmx: is its release older than this console's?",
        ),
        (
            b"HTTP/1.1 421 Misdirected Request\r\n\r\n",
            "it does not take the name 127.0.0.1: add it to its http.allowed.hosts",
        ),
    ],
)
def test_other_answers_say_what_they_are(found: bytes, told: str) -> None:
    made = pages(found)
    with pytest.raises(KafkaError) as raised:
        body(made)
    assert (str(raised.value), made.closed) == (told, 1)


def test_an_answer_that_drips_is_not_waited_for() -> None:
    found = pages(answer(b"x" * 20))
    found.piece, found.pause = 1, 3.0
    begin = found.runtime.clock.monotonic()
    with pytest.raises(TimeoutError):
        body(found)
    assert found.runtime.clock.monotonic() - begin <= 12
    assert found.closed == 1


def test_an_answer_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 5000)
    with pytest.raises(KafkaError, match="longer than 5000 bytes"):
        body(pages(OK + b" " * 7000))


def test_a_refused_connection() -> None:
    with pytest.raises(ConnectionRefusedError):
        body(pages(ConnectionRefusedError("refused")))

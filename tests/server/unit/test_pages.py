from __future__ import annotations

import json
import socket
import threading
from typing import Any, NamedTuple

import pytest

from kafka08.settings.unit import UnitMember
from tests.fakes.runtime import FakeRuntime
from tests.server.unit.support import unit_members

pytest.importorskip("h11")
pytest.importorskip("prometheus_client")

from kafka08.server.unit.pages import Answer, UnitPages, ask

READY = Answer(200, b'{"status": "ready", "broker_state": 3}\n')
LIVE = Answer(200, b'{"status": "live"}\n')
RECOVERING = Answer(
    503, b'{"status": "not ready", "reasons": ["the broker is recovering its logs"]}\n'
)
REFUSED = Answer(0, b"Connection refused")
LATE = Answer(0, b"timed out", is_late=True)
METRICS = Answer(200, b"# HELP a A.\n# TYPE a gauge\na 1.0\n")


class Kept(NamedTuple):
    member: UnitMember
    is_running: bool = True
    ended: str = ""

    @property
    def broker_id(self) -> int:
        return self.member.config.broker_id


class Site:
    """The pages of brokers 4 and 5, which answer so; None: it does not run."""

    def __init__(self, *answers: Answer | None, ended: str = "", host: str = "127.0.0.1") -> None:
        self.asked: list[tuple[str, int, str]] = []
        members = unit_members(2, http__port="8000", http__host=host)
        self._answers = {
            each.config.http_port: answer for each, answer in zip(members, answers, strict=True)
        }
        kept = [
            Kept(each, answer is not None, ended)
            for each, answer in zip(members, answers, strict=True)
        ]
        self._pages = UnitPages(FakeRuntime(), kept, self._ask)

    def _ask(self, host: str, port: int, path: str) -> Answer:
        self.asked.append((host, port, path))
        answer = self._answers[port]
        assert answer is not None
        return answer

    def get(self, path: str) -> tuple[int, bytes]:
        found: list[Any] = []
        environ = {"PATH_INFO": path, "REQUEST_METHOD": "GET", "QUERY_STRING": ""}
        body = b"".join(self._pages(environ, lambda *given: found.extend(given)))
        return int(found[0].split()[0]), body

    def said(self, path: str) -> tuple[int, Any]:
        status, body = self.get(path)
        return status, json.loads(body)


def test_ready_when_all_are() -> None:
    site = Site(READY, READY)
    one = {"status": "ready", "broker_state": 3}
    assert site.said("/health/ready") == (
        200,
        {"status": "ready", "brokers": {"4": one, "5": one}},
    )
    assert site.asked == [
        ("127.0.0.1", 8001, "/health/ready"),
        ("127.0.0.1", 8002, "/health/ready"),
    ]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (RECOVERING, "the broker is recovering its logs"),
        (REFUSED, "it is starting"),
        (LATE, "it does not answer within 5 s"),
        (None, "it was ended by SIGKILL, and is started again"),
        (Answer(500, b"no json"), "it is starting"),
    ],
)
def test_the_page_says_which_is_not_ready(answer: Answer | None, reason: str) -> None:
    status, said = Site(READY, answer, ended="was ended by SIGKILL").said("/health/ready")
    assert (status, said["status"]) == (503, "not ready")
    assert said["reasons"] == [f"broker 5: {reason}"]
    assert said["brokers"]["4"]["status"] == "ready"
    assert said["brokers"]["5"]["status"] == "not ready"


def test_before_the_first_start() -> None:
    said = Site(None, None).said("/health/ready")[1]
    assert said["reasons"] == ["broker 4: it does not run", "broker 5: it does not run"]


@pytest.mark.parametrize(
    ("answer", "late"),
    [(LIVE, []), (REFUSED, []), (None, []), (LATE, [5]), (Answer(503, b"{}"), [5])],
)
def test_live_unless_a_broker_hangs(answer: Answer | None, late: list[int]) -> None:
    status, said = Site(LIVE, answer).said("/health/live")
    if late:
        assert (status, said) == (503, {"status": "late", "brokers": late})
    else:
        assert (status, said) == (200, {"status": "live"})


def test_metrics_of_those_that_answer() -> None:
    status, body = Site(METRICS, REFUSED).get("/metrics")
    lines = body.decode().splitlines()
    assert status == 200
    assert 'a{broker_id="4"} 1.0' in lines
    assert 'kafka_server_unit_broker_up{broker_id="4"} 1' in lines
    assert 'kafka_server_unit_broker_up{broker_id="5"} 0' in lines


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_pages_on_all_interfaces_are_asked_for_on_loopback(host: str) -> None:
    site = Site(READY, READY, host=host)
    site.get("/health/ready")
    assert {each[0] for each in site.asked} == {"127.0.0.1"}


def test_other_pages_are_those_of_the_brokers() -> None:
    site = Site(READY, READY)
    assert site.get("/jmx")[0] == 404
    assert site.asked == []


def answering(listener: socket.socket, text: bytes) -> None:
    connection, _ = listener.accept()
    with connection:
        connection.recv(4096)
        connection.sendall(text)


def test_a_page_over_http() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        text = b"HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno"
        task = threading.Thread(target=answering, args=(listener, text))
        task.start()
        port = listener.getsockname()[1]
        assert ask("127.0.0.1", port, "/health/ready") == Answer(503, b"no")
        task.join()
    assert ask("127.0.0.1", port, "/health/ready") == Answer(0, b"[Errno 111] Connection refused")

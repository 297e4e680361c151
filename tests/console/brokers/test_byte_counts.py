"""kafka08.console.brokers.byte_counts."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from kafka08.console.brokers import byte_counts as module
from kafka08.console.brokers.byte_counts import ByteCounts, byte_counts
from kafka08.errors import KafkaError
from kafka08.metrics.jmx import bean_pattern
from tests.fakes.bean_pages import BeanPages, beans
from tests.fakes.runtime import FakeRuntime

AT = ("127.0.0.1", 9404)
OK = b"HTTP/1.1 200 OK\r\n\r\n"


def pages(answer: bytes | OSError) -> BeanPages:
    found = BeanPages(FakeRuntime())
    found.answers[AT] = answer
    return found


def read(found: BeanPages) -> ByteCounts:
    return byte_counts(found.runtime, AT, 4.0)


def test_counts_of_all_topics_and_of_each() -> None:
    found = pages(beans({"": (30, 9), "a": (10, 9), "b": (20, 0)}))
    found.piece = 7
    assert read(found) == ByteCounts({"": 30, "a": 10, "b": 20}, {"": 9, "a": 9, "b": 0})
    assert found.closed == 1


def test_the_request_asks_for_these_beans_alone() -> None:
    found = pages(beans({"": (1, 2)}))
    read(found)
    [(place, data)] = found.asked
    lines = data.decode().split("\r\n")
    method, target, version = lines[0].split()
    assert (place, method, version) == (AT, "GET", "HTTP/1.0")
    assert lines[1:] == ["Host: 127.0.0.1:9404", "", ""]
    assert urlsplit(target).path == "/jmx"
    pattern = bean_pattern(parse_qs(urlsplit(target).query)["qry"][0])
    prefix = "kafka.server:type=BrokerTopicMetrics,name="
    assert pattern.fits(f"{prefix}BytesInPerSec,topic=t") and pattern.fits(
        f"{prefix}BytesOutPerSec"
    )
    assert not pattern.fits(f"{prefix}MessagesInPerSec,topic=t")


def test_an_address_of_ipv6_is_named_in_brackets() -> None:
    found = BeanPages(FakeRuntime())
    found.answers["::1", 9404] = beans({"": (1, 2)})
    byte_counts(found.runtime, ("::1", 9404), 4.0)
    assert b"\r\nHost: [::1]:9404\r\n" in found.asked[0][1]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"", "it answers nothing"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "it answers nothing"),
        (b"HTTP/1.1 404 Not Found\r\n\r\nnot found\n", "it answers 404"),
        (b"HTTP/1.1 421 Misdirected Request\r\n\r\n", "it answers 421"),
        (OK, "are not beans"),
        (OK + b"<html>", "are not beans"),
        (OK + b"\xff", "are not beans"),
        (OK + b"[" * 100_000, "are not beans"),
        (OK + b"[]", "are not beans"),
        (OK + b'{"beans": 5}', "are not beans"),
        (OK + b'{"beans": []}', "are not beans"),
        (OK + b'{"beans": ["a"]}', "are not beans"),
        (OK + b'{"beans": [{"name": 5, "Count": 1}]}', "are not beans"),
        (beans({"": (1, 2)}).replace(b'"Count": 1,', b'"Count": "1",'), "are not beans"),
        (beans({"": (1, 2)}).replace(b'"Count": 1,', b'"Count": -1,'), "are not beans"),
        (beans({"": (1, 2)}).replace(b'"Count": 1,', b""), "are not beans"),
        (beans({"": (1, 2)})[:-9], "are not beans"),
        (beans({"a": (1, 2)}), "are not beans"),
    ],
)
def test_other_answers_say_what_they_are(answer: bytes, told: str) -> None:
    found = pages(answer)
    with pytest.raises(KafkaError, match=told):
        read(found)
    assert found.closed == 1


def test_an_answer_that_drips_is_not_waited_for() -> None:
    found = pages(beans({"": (1, 2)}))
    found.piece, found.pause = 1, 3.0
    begin = found.runtime.clock.monotonic()
    with pytest.raises(TimeoutError):
        read(found)
    assert found.runtime.clock.monotonic() - begin <= 12
    assert found.closed == 1


def test_an_answer_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 5000)
    with pytest.raises(KafkaError, match="longer than 5000 bytes"):
        read(pages(OK + b" " * 7000))


def test_a_refused_connection() -> None:
    with pytest.raises(ConnectionRefusedError):
        read(pages(ConnectionRefusedError("refused")))

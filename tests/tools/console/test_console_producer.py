from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kafka08.errors import KafkaError
from kafka08.producer.event_handler import KeyedMessage
from kafka08.producer.producer import Producer
from tests.fakes.cluster import FakeCluster
from tests.producer.fake_producer import failing, threaded
from tools.console import console_producer
from tools.console.console_producer import HeadedMessage, LineMessageReader, main
from tools.options import OptionError, UsageError

REQUIRED = ["--broker-list", "b0:9090", "--topic", "t"]


def read(data: bytes, properties: Mapping[str, str] | None = None) -> list[KeyedMessage]:
    return list(LineMessageReader(io.BytesIO(data), {"topic": "t", **(properties or {})}))


def test_lines_end_as_in_java() -> None:
    values = [message.value for message in read(b"a\nb\r\n\nc\rd\r\r\nlast")]
    assert values == [b"a", b"b", b"", b"c", b"d", b"", b"last"]
    assert read(b"") == []
    assert [message.value for message in read(b"\xff\xfe\n")] == [b"\xff\xfe"]


def test_keys() -> None:
    keyed = {"parse.key": "true"}
    assert read(b"k\tv\tw\n", keyed) == [KeyedMessage("t", b"v\tw", b"k")]
    assert read(b"k\t\n", keyed) == [KeyedMessage("t", b"", b"k")]
    assert read(b"k::v\n", {**keyed, "key.separator": "::"}) == [KeyedMessage("t", b"v", b"k")]
    with pytest.raises(KafkaError, match="No key found on line 3: text"):
        read(b"a\tb\nc\td\ntext\n", keyed)
    assert read(b"text\n", {**keyed, "ignore.error": "true"}) == [KeyedMessage("t", b"text")]


def test_headers_and_null_markers() -> None:
    given = {"parse.headers": "true", "parse.key": "true", "null.marker": "NIL"}
    found = read(b"a:1\tNIL\tv\n\tk\tNIL\n", given)
    assert found == [
        HeadedMessage("t", b"v", None, [("a", b"1")]),
        HeadedMessage("t", None, b"k", []),
    ]


class Stdin:
    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    cluster = FakeCluster()
    cluster.create("t", 12)
    monkeypatch.setattr(
        console_producer, "Producer", lambda config: Producer(config, channel=cluster.channel)
    )
    monkeypatch.setattr(
        console_producer, "KafkaProducer", lambda settings: threaded(cluster, **settings)[0]
    )
    return cluster


def run(monkeypatch: pytest.MonkeyPatch, data: bytes, *options: str) -> int:
    monkeypatch.setattr("sys.stdin", Stdin(data))
    return main([*REQUIRED, *options])


def test_lines_reach_the_topic(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    assert run(monkeypatch, b"one\ntwo\n") == 0
    values = [value for p in range(12) for value in cluster.values("t", p)]
    assert values == [b"one", b"two"]
    assert capsys.readouterr() == ("", "")


def test_keys_are_hashed_as_byte_arrays(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(monkeypatch, b"key\tv\n", "--property", "parse.key=true") == 0
    assert cluster.values("t", 6) == [b"v"]
    new = ("--new-producer", "--request-required-acks", "1", "--property", "parse.key=true")
    assert run(monkeypatch, b"foobar\tw\n21\tx\n", *new) == 0
    assert cluster.values("t", 6) == [b"v", b"w"]
    assert cluster.values("t", 0) == [b"x"]


def test_options_become_settings() -> None:
    made: list[Any] = []

    def settings(*options: str) -> dict[str, str]:
        parser = console_producer.PARSER
        made.append(console_producer.producer_properties(parser.parse([*REQUIRED, *options])))
        properties: dict[str, str] = made[-1]
        return properties

    plain = settings()
    assert plain["producer.type"] == "async"
    assert plain["compression.codec"] == "none"
    assert plain["request.required.acks"] == "0"
    assert plain["request.timeout.ms"] == "1500"
    assert plain["queue.buffering.max.ms"] == "1000"
    assert plain["client.id"] == "console-producer"
    assert settings("--compression-codec")["compression.codec"] == "gzip"
    assert settings("--compression-codec", "lz4")["compression.codec"] == "lz4"
    assert settings("--sync")["producer.type"] == "sync"
    assert settings("--request-required-acks", "-1")["request.required.acks"] == "-1"


def test_options_become_settings_of_the_new_producer(tmp_path: Path) -> None:
    def settings(*options: str) -> dict[str, str]:
        args = console_producer.PARSER.parse(["--topic", "t", *options])
        assert console_producer.uses_new_producer(args)
        return console_producer.new_producer_properties(args)

    old = settings("--new-producer", "--broker-list", "a:1")
    assert old["bootstrap.servers"] == "a:1"
    assert (old["acks"], old["retries"], old["timeout.ms"], old["linger.ms"]) == (
        "0",
        "3",
        "1500",
        "1000",
    )
    assert "block.on.buffer.full" not in old
    assert "max.block.ms" not in old
    new = settings("--bootstrap-server", "b:2", "--sync", "--queue-enqueuetimeout-ms", "0")
    assert (new["bootstrap.servers"], new["acks"], new["producer.type"]) == ("b:2", "1", "sync")
    # Each line is waited for: a batch would wait in vain.
    assert new["linger.ms"] == "0"
    waiting = settings("--bootstrap-server", "b:2", "--sync", "--timeout", "20")
    assert waiting["linger.ms"] == "20"
    assert new["block.on.buffer.full"] == "false"
    config = tmp_path / "producer.properties"
    config.write_text("acks=all\nretries=7\nbatch.size=10\ncompression.type=lz4\nclient.id=me\n")
    given = ("--bootstrap-server", "b:2", "--producer.config", str(config))
    given += ("--producer-property", "retries=8", "--max-partition-memory-bytes", "20")
    merged = settings(*given, "--max-block-ms", "5", "--reader-property", "parse.key=true")
    assert (merged["acks"], merged["retries"], merged["batch.size"]) == ("all", "8", "20")
    assert (merged["compression.type"], merged["client.id"]) == ("lz4", "me")
    assert (merged["max.block.ms"], merged["parse.key"]) == ("5", "true")


def test_properties_of_the_old_producer(tmp_path: Path) -> None:
    config = tmp_path / "producer.properties"
    config.write_text("request.required.acks=-1\nproducer.type=sync\ncompression.codec=gzip\n")
    options = ["--topic", "t", "--bootstrap-server", "b:2", "--old-producer"]
    args = console_producer.PARSER.parse([*options, "--producer.config", str(config)])
    assert not console_producer.uses_new_producer(args)
    merged = console_producer.producer_properties(args)
    assert merged["metadata.broker.list"] == "b:2"
    assert merged["request.required.acks"] == "-1"
    assert merged["producer.type"] == "sync"
    assert merged["compression.codec"] == "gzip"


def test_the_new_producer_through_bootstrap_server(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("sys.stdin", Stdin(b"k\tone\n"))
    options = ["--bootstrap-server", "b0:9090", "--topic", "t"]
    assert main([*options, "--reader-property", "parse.key=true", "--timeout", "0"]) == 0
    assert [v for p in range(12) for v in cluster.values("t", p)] == [b"one"]
    cluster.script = failing(10)
    monkeypatch.setattr("sys.stdin", Stdin(b"two\n"))
    assert main(options) == 0
    assert "Error when sending message" in caplog.text
    cluster.script = failing(10)
    monkeypatch.setattr("sys.stdin", Stdin(b"three\n"))
    assert main([*options, "--sync"]) == 1


def test_sync_failure_exits_1(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    cluster.down = {9090}
    options = ("--sync", "--message-send-max-retries", "0", "--retry-backoff-ms", "0")
    assert run(monkeypatch, b"one\n", *options) == 1
    assert "FailedToSendMessageException" in capsys.readouterr().err


def test_async_failure_exits_0(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.down = {9090}
    options = ("--message-send-max-retries", "0", "--retry-backoff-ms", "0")
    assert run(monkeypatch, b"one\n", *options) == 0


def test_line_without_key_exits_1(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    assert run(monkeypatch, b"text\n", "--property", "parse.key=true") == 1
    expected = "kafka.common.KafkaException: No key found on line 1: text\n"
    assert capsys.readouterr().err == expected


def test_usage() -> None:
    with pytest.raises(UsageError, match="Read data from standard input"):
        main([])
    with pytest.raises(UsageError, match=r'Missing required argument "\[topic\]"'):
        main(["--broker-list", "b:1"])
    with pytest.raises(UsageError, match="Please provide valid host:port"):
        main(["--broker-list", "b", "--topic", "t"])
    with pytest.raises(OptionError, match="'nope' is not a recognized option"):
        main([*REQUIRED, "--nope"])


def test_headers_reach_the_topic(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    headed = ("--property", "parse.headers=true")
    acked = ("--request-required-acks", "1")  # the end waits for the answer
    assert run(monkeypatch, b"a:1\tv\n", *headed, "--new-producer", *acked) == 0
    found = [message for partition in range(12) for message in cluster.messages("t", partition)]
    assert [(m.value, m.key, m.headers) for m in found] == [(b"v", None, (("a", b"1"),))]
    with pytest.raises(UsageError, match=r"parse\.headers needs --bootstrap-server or --new-prod"):
        run(monkeypatch, b"", *headed)

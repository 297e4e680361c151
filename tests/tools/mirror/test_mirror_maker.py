from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kafka08.common import java_bytes_hash, scala_abs
from kafka08.errors import ConfigError
from kafka08.producer.errors import ProducerClosedError
from kafka08.producer.kafka_config import KafkaProducerConfig
from tests.producer.fake_producer import ProducerDriver
from tools.mirror import ends, modern
from tools.mirror.mirror_maker import OurTarget, Targets, main, new_settings, old_settings
from tools.mirror.modern import MissingLibraryError
from tools.mirror.pipeline import SourceMessage
from tools.options import UsageError


def test_nothing_is_given_up_on_unless_the_file_says_so() -> None:
    config = KafkaProducerConfig.of(old_settings({"metadata.broker.list": "h:1"}))
    assert (config.bootstrap_servers, config.acks) == (("h:1",), "-1")
    assert config.retries == config.delivery_timeout_ms == 2**31 - 1
    config = KafkaProducerConfig.of(new_settings({"bootstrap.servers": "h:1", "retries": "3"}))
    assert (config.acks, config.retries) == ("-1", 3)


def test_the_old_producers_settings() -> None:
    given = {
        "metadata.broker.list": "h:1,i:2",
        "request.required.acks": "1",
        "message.send.max.retries": "7",
        "compression.codec": "2",
        "compressed.topics": "a,b",
        "queue.buffering.max.ms": "20",
        "client.id": "m-0",
        "topic.metadata.refresh.interval.ms": "-1",
    }
    config = KafkaProducerConfig.of(old_settings(given))
    assert (config.acks, config.retries, config.linger_ms) == ("1", 7, 20)
    assert (config.compression_type, config.compressed_topics) == ("snappy", ("a", "b"))
    assert (config.client_id, config.metadata_max_age_ms) == ("m-0", 300000)
    secured = KafkaProducerConfig.of(old_settings({**given, "security.protocol": "SSL"}))
    assert secured.security_protocol == "SSL"
    with pytest.raises(ConfigError, match=r"metadata\.broker\.list"):
        old_settings({"bootstrap.servers": "h:1"})


def test_equal_keys_go_the_same_way() -> None:
    drivers = [ProducerDriver(), ProducerDriver(), ProducerDriver()]
    made = [OurTarget(driver.producer) for driver in drivers]
    targets = Targets(made)
    for key in (b"a", b"b", b"", b"key"):
        assert targets.choose(key) is made[scala_abs(java_bytes_hash(key)) % 3]
    assert {id(targets.choose(None)) for _ in range(3)} == {id(target) for target in made}
    drivers[0].producer.send("one", b"v")
    drivers[0].silent = True
    targets.close(5)
    assert 4 < drivers[0].runtime.slept[-1] <= 5
    for driver in drivers:
        with pytest.raises(ProducerClosedError):
            driver.producer.send("one", b"v")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Files for clusters that are not there, and are not asked what they serve."""
    monkeypatch.setattr(ends, "settle", lambda *parts: None)
    (tmp_path / "c").write_text("group.id=g\nzookeeper.connect=z\nbootstrap.servers=127.0.0.1:1\n")
    (tmp_path / "p").write_text("metadata.broker.list=h:1\nbootstrap.servers=127.0.0.1:1\n")
    return [f"--consumer.config={tmp_path / 'c'}", f"--producer.config={tmp_path / 'p'}"]


def test_usage(capsys: Any, files: list[str]) -> None:
    with pytest.raises(UsageError, match="Continuously copy data between two Kafka clusters"):
        main([])
    with pytest.raises(UsageError, match=r'Missing required argument "\[producer.config\]"'):
        main([files[0], "--whitelist", "t"])
    for filters in ([], ["--whitelist", "t", "--blacklist", "u"]):
        assert main([*files, *filters]) == 1
        text = "Exactly one of whitelist or blacklist is required.\n"
        assert capsys.readouterr().out == text


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--num.producers", "0"], "num.producers"),
        (["--whitelist", "(", "--num.streams", "1"], "invalid regex"),
    ],
)
def test_bad_values(files: list[str], words: list[str], text: str) -> None:
    argv = [*files, *([] if "--whitelist" in words else ["--whitelist", "t"]), *words]
    with pytest.raises(ConfigError, match=text):
        main(argv)


def test_later_releases_need_a_library(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(modern.importlib, "import_module", missing)
    with pytest.raises(MissingLibraryError, match="pip install 'confluent-kafka"):
        main([*files, "--whitelist", "t", "--modern.producer"])


def test_settings_that_librdkafka_refuses() -> None:
    pytest.importorskip("confluent_kafka")
    with pytest.raises(ConfigError, match=r"no\.such\.setting"):
        modern.ModernTarget({"bootstrap.servers": "127.0.0.1:1", "no.such.setting": "1"})


class Taken(NamedTuple):
    topic: str
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes | None], ...]


def sent(timed: bool, message: SourceMessage) -> Any:
    driver = ProducerDriver(**{"api.versions.request": timed})
    ended: list[Any] = []
    OurTarget(driver.producer).send(message, b"k", ended.append)
    driver.run()
    assert ended == [None]
    (found,) = driver.cluster.messages("one", 0)
    assert (found.key, found.value) == (b"k", b"v")
    return found


def test_timestamps_and_headers_are_kept_if_the_target_may_have_them() -> None:
    message = Taken("one", 0, b"k", b"v", 1234, (("a", b"1"), ("a", None)))
    found = sent(True, message)
    assert (found.timestamp, found.headers) == (1234, message.headers)
    found = sent(False, message)
    assert (found.timestamp, found.headers) == (-1, ())


def test_messages_without_a_timestamp_get_the_time_of_the_copy() -> None:
    found = sent(True, Taken("one", 0, b"k", b"v", -1, ()))
    assert found.timestamp >= ProducerDriver().now_ms


def test_the_loss_of_headers_and_times_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    driver = ProducerDriver()
    target = OurTarget(driver.producer)
    plain = Taken("one", 0, b"k", b"v", -1, ())
    for message in (plain, plain._replace(headers=(("a", b"1"),)), plain._replace(timestamp=5)):
        target.send(message, b"k", lambda error: None)
        driver.run()
    (text,) = [text for text in caplog.messages if "lose" in text]
    assert text.startswith("Messages lose their timestamps and headers, as the first of one does")


def test_the_old_producers_file_may_ask_for_versions() -> None:
    given = {"metadata.broker.list": "h:1", "api.versions.request": "true"}
    assert KafkaProducerConfig.of(old_settings(given)).api_versions_request

from __future__ import annotations

import contextlib
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka08.admin import InvalidArgumentError
from kafka08.consumer.errors import ConsumerTimeoutError
from kafka08.message.entry import encode_entry
from tools.logs import test_log_cleaning as tool
from tools.options import UsageError

ARGUMENTS = ["--broker", "b:1", "--zk", "z:1", "--messages", "1000"]


class CompactedTopics:
    """A broker's topics, as the fake producer and consumer see them."""

    def __init__(self) -> None:
        self.messages: dict[str, list[tuple[bytes, bytes | None]]] = {}

    @contextlib.contextmanager
    def producer(self, settings: dict[str, str]) -> Iterator[Any]:
        def send(topic: str, value: bytes | None, key: bytes) -> None:
            self.messages.setdefault(topic, []).append((key, value))

        yield SimpleNamespace(send=send)

    def connector(self, config: Any) -> Any:
        def stream(topic: str) -> Iterator[Any]:
            for key, value in self.messages[topic]:
                yield SimpleNamespace(key=key, value=value)
            raise ConsumerTimeoutError

        def create(counts: dict[str, int]) -> dict[str, list[Any]]:
            return {topic: [stream(topic)] for topic in counts}

        return SimpleNamespace(create_message_streams=create, close=lambda: True)

    def clean(self, dropped: int) -> None:
        """Keep the last message of each key only, and forget the first ``dropped`` keys."""
        for topic, messages in self.messages.items():
            last = list(dict(messages).items())
            self.messages[topic] = last[dropped:]


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CompactedTopics:
    topics = CompactedTopics()
    monkeypatch.setattr(tool, "KafkaProducer", topics.producer)
    monkeypatch.setattr(tool, "ConsumerConnector", topics.connector)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return topics


def test_nothing_cleaned(topics: CompactedTopics, tmp_path: Path, capsys: Any) -> None:
    assert tool.main([*ARGUMENTS, "--topics", "2", "--percent-deletes", "30"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Producing 1000 messages..."
    assert lines[1].startswith(f"Logging produce requests to {tmp_path}/kafka-log-cleaner-produced")
    assert lines[2:4] == ["Sleeping for 0 seconds...", "Consuming messages..."]
    assert lines[5:7] == [
        "2000 rows of data produced, 2000 rows of data consumed (0.0% reduction).",
        "De-duplicating and validating output files...",
    ]
    assert lines[7].startswith("Validated ")
    assert lines[7].endswith(" values, 0 mismatches.")
    assert not list(tmp_path.iterdir())


def test_cleaned(topics: CompactedTopics, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(tool.time, "sleep", lambda seconds: topics.clean(0))
    assert tool.main([*ARGUMENTS, "--sleep", "5"]) == 0
    out = capsys.readouterr().out
    assert "Sleeping for 5 seconds..." in out
    kept = len(next(iter(topics.messages.values())))
    assert f"1000 rows of data produced, {kept} rows of data consumed" in out
    assert f"({100 - kept / 10:.1f}% reduction)" in out
    assert f"Validated {kept} values, 0 mismatches." in out


def test_a_lost_key_is_found(
    topics: CompactedTopics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool.time, "sleep", lambda seconds: topics.clean(1))
    with pytest.raises(InvalidArgumentError, match="Additional values produced"):
        tool.main(ARGUMENTS)
    assert len(list(tmp_path.iterdir())) == 4


def test_a_wrong_value_is_found(
    topics: CompactedTopics, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def spoil(seconds: int) -> None:
        for messages in topics.messages.values():
            messages[-1] = (messages[-1][0], b"12345")

    monkeypatch.setattr(tool.time, "sleep", spoil)
    with pytest.raises(InvalidArgumentError, match="Non-zero number of row mismatches"):
        tool.main(ARGUMENTS)
    assert " values, 1 mismatches." in capsys.readouterr().out


def test_dump(tmp_path: Path, capsys: Any) -> None:
    entries = encode_entry(b"k", b"1", 3) + encode_entry(b"k", None, 5)
    (tmp_path / f"{3:020d}.log").write_bytes(entries)
    (tmp_path / f"{3:020d}.index").write_bytes(bytes(8))
    assert tool.main(["--dump", str(tmp_path)]) == 0
    assert capsys.readouterr().out == (
        "offset = 3, key = k, content = 1\noffset = 5, key = k, content = null\n"
    )
    with pytest.raises(InvalidArgumentError, match="Non-existent directory: /nowhere"):
        tool.main(["--dump", "/nowhere"])


def test_refusals(topics: CompactedTopics) -> None:
    with pytest.raises(UsageError, match="log cleaning"):
        tool.main([])
    with pytest.raises(UsageError, match=r"\[messages\]"):
        tool.main(["--broker", "b:1", "--zk", "z:1"])
    with pytest.raises(InvalidArgumentError, match="bound"):
        tool.main([*ARGUMENTS, "--duplicates", "2000"])


def test_the_original_s_random_numbers() -> None:
    noise = tool.JavaRandom(1)
    assert [noise.next_int(200) for _ in range(5)] == [185, 188, 47, 113, 54]
    assert all(0 <= noise.next_int(bound) < bound for bound in random.sample(range(1, 2**31), 99))
    assert tool.JavaRandom(1).next_int(1 << 10) == 748

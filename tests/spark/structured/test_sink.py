"""Rows to messages, with a producer that only remembers."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import pyarrow as pa

from kafka08.errors import KafkaError
from kafka08.producer.errors import MetadataTimeoutError
from kafka08.spark.structured import sink
from kafka08.spark.structured.sink import Written, send_all
from kafka08.spark.structured.sink_options import SinkOptions

FAILURES = {"bad": KafkaError("no topic bad"), "late": MetadataTimeoutError("nothing of late")}


class Remembering:
    """Fails what goes to the topics ``bad`` and ``late``."""

    sent: list[tuple[Any, ...]] = []
    headers: list[Any] = []

    def __init__(self, settings: dict[str, str]) -> None:
        Remembering.sent = []
        Remembering.headers = []
        self.flushed = False

    def __enter__(self) -> Remembering:
        return self

    def __exit__(self, *exc_info: object) -> None:
        assert self.flushed or exc_info[0]

    def send_many(
        self, topic: str, values: Any, keys: Any, partitions: Any, ended: Any, *, headers: Any
    ) -> None:
        Remembering.sent.append((topic, values, keys, partitions))
        Remembering.headers.append(headers)
        if topic == "unknown":
            raise MetadataTimeoutError("nothing of unknown")
        ended(None, FAILURES.get(topic))

    def flush(self) -> None:
        self.flushed = True


@pytest.fixture(autouse=True)
def _remembering(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink, "KafkaProducer", Remembering)


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def test_columns_become_messages() -> None:
    rows = batch(
        value=["a", None],
        key=[b"k", None],
        topic=["t", "u"],
        partition=pa.array([None, 3], pa.int32()),
        other=[1, 2],
    )
    only = batch(value=[b"c"], topic=["t"])
    assert send_all(SinkOptions({}, None), iter([rows, only])) == Written(3)
    assert Remembering.sent == [
        ("t", [b"a"], [b"k"], [None]),
        ("u", [None], [None], [3]),
        ("t", [b"c"], None, None),
    ]


def test_the_option_wins_over_the_column() -> None:
    rows = batch(value=["a", "b"], topic=["t", None])
    send_all(SinkOptions({}, "all"), iter([rows]))
    assert Remembering.sent == [("all", [b"a", b"b"], None, None)]


def test_columns_of_nulls_and_a_batch_without_rows() -> None:
    """Rows without keys are cheaper to send."""
    nulls = pa.array([None, None], pa.binary())
    rows = batch(value=nulls, key=nulls, partition=pa.array([None, None], pa.int32()))
    assert send_all(SinkOptions({}, "t"), iter([rows, rows.slice(0, 0)])) == Written(2)
    assert Remembering.sent == [("t", [None, None], None, None), ("t", [], None, None)]


@pytest.mark.scenario("spark-27")
def test_a_row_without_a_topic() -> None:
    with pytest.raises(KafkaError, match="Column topic is null"):
        send_all(SinkOptions({}, None), iter([batch(value=["a", "b"], topic=["t", None])]))
    assert Remembering.sent == []


def test_nothing_is_sent_after_a_failure() -> None:
    rows = batch(value=["a", "b", "c"], topic=["t", "bad", "u"])
    with pytest.raises(KafkaError, match="no topic bad"):
        send_all(SinkOptions({}, None), iter([rows]))
    assert [sent[0] for sent in Remembering.sent] == ["t", "bad"]


@pytest.mark.parametrize("topic", ["late", "unknown"])
def test_brokers_that_do_not_answer_are_named(topic: str) -> None:
    options = SinkOptions({"bootstrap.servers": "one:9092"}, None)
    text = rf"nothing of {topic}\. kafka\.bootstrap\.servers has value one:9092"
    with pytest.raises(MetadataTimeoutError, match=text):
        send_all(options, iter([batch(value=["a"], topic=[topic])]))


def test_headers() -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    headers = pa.array([[("a", b"1"), ("a", None)], None, []], kind)
    rows = pa.RecordBatch.from_arrays(
        [pa.array(["x", "y", "z"]), pa.array(["t", "u", "t"]), headers],
        names=["value", "topic", "headers"],
    )
    assert send_all(SinkOptions({}, None), iter([rows])) == Written(3)
    assert Remembering.headers == [[[("a", b"1"), ("a", None)], []], [None]]
    assert send_all(SinkOptions({}, None), iter([batch(value=["x"], topic=["t"])])) == Written(1)
    assert Remembering.headers == [None]

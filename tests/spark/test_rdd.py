"""The brokers that a task asks, and how often, by the number of its attempt."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from kafka08.common import Broker
from kafka08.message.entry import Message
from kafka08.spark import params, rdd
from kafka08.spark.errors import UnreachableError
from kafka08.spark.params import BOOTSTRAP, SourceParams
from kafka08.spark.planner import Range
from kafka08.spark.rdd import Elements, ReadTask
from tests.spark.cluster import ONE, T, refused

PARAMS = SourceParams((("h", 9092),), option=BOOTSTRAP)


class AskedReader:
    """Stands for RangeReader: nothing to read, or nobody to ask."""

    asked: list[tuple[int, Broker | None]] = []
    down = False

    def __init__(self, cluster: Any, *, retries: int, **settings: Any) -> None:
        self._retries = retries

    def read(self, wanted: Range, leader: Broker | None) -> Iterator[list[Message]]:
        AskedReader.asked.append((self._retries, leader))
        if AskedReader.down:
            raise refused()
        yield [Message(0, None, b"v", 0, 0, 0, 0)]


@pytest.fixture(autouse=True)
def _readers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(params, "RangeReader", AskedReader)
    monkeypatch.setattr(AskedReader, "asked", [])
    monkeypatch.setattr(AskedReader, "down", False)


def run(monkeypatch: pytest.MonkeyPatch, attempt: int, **options: Any) -> list[Any]:
    context = SimpleNamespace(attemptNumber=lambda: attempt)
    monkeypatch.setattr(rdd.TaskContext, "get", lambda: context)
    elements = options.pop("elements", Elements())
    task = ReadTask(PARAMS, [Range(*T, 0, 1)], {T: ONE}, elements, **options)
    return list(task(0, iter(())))


@pytest.mark.scenario("spark-6")
@pytest.mark.parametrize(
    ("attempt", "strict", "asked"),
    [
        (0, False, (None, ONE)),
        (0, True, (0, ONE)),
        (1, False, (None, None)),
        (1, True, (None, None)),
    ],
)
def test_the_known_leader_is_for_first_attempts(
    monkeypatch: pytest.MonkeyPatch, attempt: int, strict: bool, asked: Any
) -> None:
    assert run(monkeypatch, attempt, strict=strict) == [(None, "v")]
    assert AskedReader.asked == [asked]


def test_brokers_that_do_not_answer_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AskedReader, "down", True)
    with pytest.raises(UnreachableError, match=r"bootstrap\.servers has value h:9092: gone"):
        run(monkeypatch, 0)


def test_what_a_decoder_raises_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(value: bytes | None) -> Any:
        raise FileNotFoundError("a file of the job")

    with pytest.raises(FileNotFoundError, match="a file of the job"):
        run(monkeypatch, 0, elements=Elements(value_decoder=fail))

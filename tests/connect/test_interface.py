"""The defaults of the base classes, on which users' connectors rely."""

from __future__ import annotations

import threading
from typing import Any

from kafka08.common import TopicPartition
from kafka08.connect.interface import (
    Context,
    JobConnector,
    RetriableError,
    SinkConnector,
    SinkTask,
    SourceConnector,
    SourceTask,
)


def started(connector: Any) -> Any:
    connector.start({"name": "c", "topics": "t"})
    return connector


def test_a_sink_uses_all_tasks_and_other_connectors_one() -> None:
    assert len(started(SinkConnector()).task_configs(3)) == 3
    assert len(started(SourceConnector()).task_configs(3)) == 1
    assert len(started(JobConnector()).task_configs(3)) == 1


def test_tasks_do_not_share_their_properties() -> None:
    connector = started(SinkConnector())
    first, second = connector.task_configs(2)
    first["topics"] = "u"
    assert second == connector.properties == {"name": "c", "topics": "t"}


def test_a_sink_starts_at_the_offsets_of_its_group() -> None:
    assert SinkTask().open([TopicPartition("t", 0)]) == {}


def test_a_source_begins_without_an_offset() -> None:
    task = SourceTask()
    task.context = Context("c-0", threading.Event())  # type: ignore[arg-type]
    assert task.context.offset({"filename": "f"}) is None


def test_only_some_errors_are_tried_again() -> None:
    assert RetriableError.retriable
    assert [each.__name__ for each in RetriableError.__bases__ if each.retriable] == []

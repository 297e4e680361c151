"""Events are told apart by class and values: watches that were lost post each of theirs once."""

from __future__ import annotations

from kafka08.common import TopicPartition
from kafka08.controller import events


def test_events_are_equal_if_class_and_values_are() -> None:
    partition = TopicPartition("t", 0)
    assert events.TopicsChanged(1) == events.TopicsChanged(1)
    assert events.TopicsChanged(1) != events.TopicsChanged(2)
    assert events.TopicsChanged(1) != events.BrokerIdsChanged(1)
    assert events.PartitionsChanged(1, "t") != events.PartitionsChanged(1, "u")
    assert events.IsrChanged(1, partition) == events.IsrChanged(1, partition)
    assert events.Startup() == events.Startup()
    assert events.Startup() != events.Stop()
    different = {events.TopicsChanged(1), events.TopicsChanged(1), events.BrokerIdsChanged(1)}
    assert len(different) == 2


def test_an_event_shows_its_values() -> None:
    assert repr(events.PartitionsChanged(2, "t")) == "PartitionsChanged(term=2, topic='t')"
    assert repr(events.Startup()) == "Startup()"

"""The events between two looks at a cluster. Pure.

Many changes of one kind become one event, so that a look adds few of them, however large the
cluster is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from kafka08.common import TopicPartition
from kafka08.console.cluster_state import (
    NO_LEADER,
    BrokerView,
    ClusterState,
    PartitionView,
)
from kafka08.console.shown import number
from kafka08.console.timeline.happenings import (
    BROKER,
    CONTROLLER,
    GROUP,
    LEADER,
    MOVE,
    OFFSETS,
    REPLICA,
    SETTING,
    TOPIC,
    Happening,
    happening,
    listed,
    partitions,
    topics_of,
)
from kafka08.lag.collector import GroupLag, Lags

Times = tuple[int, int]
Views = Mapping[TopicPartition, PartitionView]
_EACH = 5
"""Topics or groups that have an event each; more have one together."""


def between(before: ClusterState, after: ClusterState) -> list[Happening]:
    """All but leaders and replicas in sync, which brokers tell."""
    times = (before.time_ms, after.time_ms)
    return [
        *_brokers(times, before.brokers, after.brokers),
        *_controller(times, before, after),
        *_moves(times, before, after),
        *_topics(times, before, after),
        *_settings(times, before, after),
    ]


def _brokers(
    times: Times, before: Mapping[int, BrokerView], after: Mapping[int, BrokerView]
) -> Iterator[Happening]:
    for id_ in sorted(before.keys() | after.keys()):
        was, now = before.get(id_), after.get(id_)
        named = f"Broker {id_}"
        view = now or was
        if view and view.addresses:
            named += f" ({', '.join(view.addresses)})"
        was_live, is_live = bool(was and was.is_live), bool(now and now.is_live)
        since = (was and was.since_ms, now and now.since_ms)
        if was_live and not is_live:
            text = f"{named} went down"
        elif is_live and not was_live:
            text = f"{named} came back" if was else f"{named} joined"
        elif is_live and None not in since and since[0] != since[1]:
            text = f"{named} was gone for a moment: it registered again"
        else:
            continue
        yield happening(times, BROKER, text, [f"broker {id_}"])


def _controller(times: Times, before: ClusterState, after: ClusterState) -> Iterator[Happening]:
    epoch = "" if after.epoch is None else f", epoch {after.epoch}"
    if before.controller == after.controller:
        if after.controller is None or before.epoch == after.epoch:
            return
        text = f"Broker {after.controller} was elected controller again{epoch}"
    elif after.controller is None:
        text = f"There is no controller any more: it was {before.controller}"
    elif before.controller is None:
        text = f"Broker {after.controller} became the controller{epoch}"
    else:
        text = f"The controller moved from {before.controller} to {after.controller}{epoch}"
    ids = {before.controller, after.controller} - {None}
    yield happening(times, CONTROLLER, text, [f"broker {id_}" for id_ in ids])


def _moves(times: Times, before: ClusterState, after: ClusterState) -> Iterator[Happening]:
    views = dict(after.partitions())
    begun = after.moves.keys() - before.moves.keys()
    ended = before.moves.keys() - after.moves.keys()
    done = {tp for tp in ended if tp in views and views[tp].replicas == before.moves[tp]}
    for found, text in (
        (begun, "A move began of {}"),
        (done, "A move ended of {}"),
        (ended - done, "A move was given up of {}: the replicas are not those asked for"),
    ):
        if found:
            yield happening(times, MOVE, text.format(partitions(found)), topics_of(found))


def _topics(times: Times, before: ClusterState, after: ClusterState) -> Iterator[Happening]:
    both = before.topics.keys() & after.topics.keys()
    marked = {
        topic
        for topic in both
        if after.topics[topic].is_deleting and not before.topics[topic].is_deleting
    }
    for found, text in (
        (after.topics.keys() - before.topics.keys(), "created"),
        (marked, "marked for deletion"),
        (before.topics.keys() - after.topics.keys(), "deleted"),
    ):
        if found:
            were = "Topic {} was" if len(found) == 1 else f"{number(len(found))} topics ({{}}) were"
            yield happening(times, TOPIC, f"{were.format(listed(found))} {text}", found)
    grown = {
        topic: f"Topic {topic} has {number(now)} partitions, and had {number(was)}"
        for topic in sorted(both)
        if 0
        < (was := len(before.topics[topic].partitions))
        < (now := len(after.topics[topic].partitions))
    }
    yield from _each(times, TOPIC, grown, "topics ({}) got more partitions")


def _settings(times: Times, before: ClusterState, after: ClusterState) -> Iterator[Happening]:
    changed = {
        topic: f"Settings of {topic}: {_difference(was, now)}"
        for topic in sorted(before.settings.keys() & after.settings.keys())
        if (was := before.settings[topic]) != (now := after.settings[topic])
    }
    yield from _each(times, SETTING, changed, "topics ({}) have other settings")


def _difference(was: Mapping[str, str], now: Mapping[str, str]) -> str:
    parts = []
    for name in sorted(was.keys() | now.keys()):
        if name not in now:
            parts.append(f"{name} is the default again, and was {was[name]}")
        elif name not in was:
            parts.append(f"{name} is {now[name]}")
        elif was[name] != now[name]:
            parts.append(f"{name} is {now[name]}, and was {was[name]}")
    return "; ".join(parts)


def _each(times: Times, kind: str, texts: Mapping[str, str], together: str) -> Iterator[Happening]:
    """An event for each name, or one for many."""
    if len(texts) > _EACH:
        text = f"{number(len(texts))} {together.format(listed(texts))}"
        yield happening(times, kind, text, texts)
        return
    for name, text in texts.items():
        yield happening(times, kind, text, [name])


def leaders(times: Times, before: Views, after: Views) -> list[Happening]:
    """Changes of leaders and of the replicas in sync. A partition without a leader says nothing of
    those."""
    both = before.keys() & after.keys()
    return [
        *_leaders(times, before, after, both),
        *_replicas(times, before, after, both),
    ]


def _leaders(
    times: Times, before: Views, after: Views, both: set[TopicPartition]
) -> Iterator[Happening]:
    moved: dict[tuple[int, bool], dict[TopicPartition, int]] = defaultdict(dict)
    for tp in both:
        was, now = before[tp].leader, after[tp].leader
        if was != now:
            moved[was, now == NO_LEADER][tp] = now
    for (was, is_lost), found in sorted(moved.items()):
        to = ", ".join(map(str, sorted(set(found.values()))))
        place = partitions(found) if len(found) == 1 else listed(topics_of(found))
        if is_lost:
            text = f"No leader any more for {partitions(found)}: it was {was}"
        elif was == NO_LEADER:
            text = f"A leader again for {partitions(found)}: {to}"
        elif len(found) == 1:
            text = f"The leader of {place} moved from {was} to {to}"
        else:
            text = f"{number(len(found))} leaders moved from {was} to {to}: of {place}"
        yield happening(times, LEADER, text, topics_of(found))


def _replicas(
    times: Times, before: Views, after: Views, both: set[TopicPartition]
) -> Iterator[Happening]:
    lost: dict[int, set[TopicPartition]] = defaultdict(set)
    regained: dict[int, set[TopicPartition]] = defaultdict(set)
    for tp in both:
        was, now = before[tp], after[tp]
        if was.isr and now.isr:
            for id_ in {*was.isr}.difference(now.isr).intersection(now.replicas):
                lost[id_].add(tp)
            for id_ in {*now.isr}.difference(was.isr):
                regained[id_].add(tp)
    for found, text in ((lost, "fell out of sync"), (regained, "is in sync again")):
        for id_, tps in sorted(found.items()):
            said = f"Broker {id_} {text} in {partitions(tps)}"
            yield happening(times, REPLICA, said, topics_of(tps))


def known_views(before: Views, after: ClusterState) -> dict[TopicPartition, PartitionView]:
    """The partitions of a look. One without a leader keeps the members in sync that it had, to be
    compared when it has one again."""
    return {
        tp: before[tp]._replace(leader=NO_LEADER, replicas=view.replicas)
        if view.is_offline and tp in before
        else view
        for tp, view in after.partitions()
    }


def groups(before: Lags, after: Lags) -> list[Happening]:
    """Judgements that changed, and offsets that went back. A group seen for the first time
    makes none."""
    times = (before.time_ms, after.time_ms)
    judged: dict[str, dict[str, str]] = defaultdict(dict)
    back: dict[str, str] = {}
    for name in sorted(before.groups.keys() & after.groups.keys()):
        was, now = before.groups[name], after.groups[name]
        if was.status != now.status:
            text = f"Group {name} is {now.status}, and was {was.status}: lag {number(now.total)}"
            judged[now.status][name] = text
        if returned := _went_back(was, now):
            back[name] = f"Group {name} went back in {partitions(returned)}"
    found = [*_each(times, OFFSETS, back, "groups ({}) went back")]
    for status, texts in sorted(judged.items()):
        found += _each(times, GROUP, texts, f"groups ({{}}) are {status}")
    return found


def _went_back(was: GroupLag, now: GroupLag) -> list[TopicPartition]:
    return sorted(
        tp
        for tp, lag in now.partitions.items()
        if tp in was.partitions and lag.offset < was.partitions[tp].offset
    )

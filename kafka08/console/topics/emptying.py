"""The form that deletes all messages of a topic, by DeleteRecords, which 0.8.2.2 does not have."""

from __future__ import annotations

from collections import defaultdict

from werkzeug.exceptions import Conflict
from werkzeug.wrappers import Response

from kafka08.common import INTERNAL_TOPICS, TopicPartition
from kafka08.console.cluster_state import ClusterState, TopicView
from kafka08.console.forms import FieldError, PartlyDoneError
from kafka08.console.pages.cluster import state_of, topic_of
from kafka08.console.site import Visit
from kafka08.console.topics.marks import check_mark
from kafka08.errors import KafkaError, meaning_of
from kafka08.protocol import admin_schemas as a

_TO_THE_END = -1
_TIMEOUT_MS = 3000


def obstacle(state: ClusterState, name: str, view: TopicView) -> str:
    """Why the topic cannot be emptied, "" if it can."""
    if name in INTERNAL_TOPICS:
        return "It is an internal topic."
    for number, each in view.partitions.items():
        if each.is_offline:
            return f"Partition {number} has no leader."
        leader = state.brokers.get(each.leader)
        if leader is None or not leader.serves_later_apis:
            return (
                f"Partition {number} is led by broker {each.leader}, which does not delete "
                "single messages: those of 0.8.2.2 cannot."
            )
    return ""


def empty(visit: Visit, name: str) -> Response:
    """Deletes the messages up to the ends that the partitions have when their leaders are asked.
    Raises PartlyDoneError, with what was done, if a leader did not say that it did."""
    view = topic_of(visit, name)
    if visit.request.form.get("emptied") != name:
        raise FieldError("emptied", f"Type the name of the topic, {name}, to empty it.")
    check_mark(visit, name)
    if reason := obstacle(state_of(visit), name, view):
        raise Conflict(f"Topic {name} cannot be emptied. {reason}")
    starts, failed = _delete(visit, name, view)
    first_offsets = {number: starts[number] for number in sorted(starts)}
    after = {"first_offsets": first_offsets, "failed": failed}
    visit.record("empty topic", name, {"partitions": len(view.partitions)}, after)
    visit.site.observer.note_starts(
        {TopicPartition(name, number): start for number, start in starts.items()}
    )
    if failed:
        told = ", ".join(f"{number} ({failed[number]})" for number in sorted(failed))
        raise PartlyDoneError(
            f"{len(starts)} of {len(view.partitions)} partitions are empty. The others: {told}"
        )
    return visit.done(f"/topics/{name}", f"All messages of {name} were deleted.")


def _delete(visit: Visit, name: str, view: TopicView) -> tuple[dict[int, int], dict[int, str]]:
    """The first offsets of partitions afterwards, and why others may have messages still."""
    led: dict[int, list[int]] = defaultdict(list)
    for number, each in view.partitions.items():
        led[each.leader].append(number)
    starts: dict[int, int] = {}
    failed: dict[int, str] = {}
    for broker_id, numbers in led.items():
        parts = [a.DeleteRecordsPartition(number, _TO_THE_END) for number in numbers]
        request = a.DeleteRecordsRequest([a.DeleteRecordsTopic(name, parts)], _TIMEOUT_MS)
        try:
            answer = visit.site.browser.call_broker(broker_id, request)
        except (OSError, KafkaError) as error:
            failed |= dict.fromkeys(numbers, str(error))
            continue
        for each in (part for topic in answer.topics for part in topic.partitions):
            if each.error:
                failed[each.partition] = meaning_of(each.error)
            else:
                starts[each.partition] = each.low_watermark
    return starts, failed

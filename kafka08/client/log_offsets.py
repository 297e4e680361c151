"""The offsets of logs: where they begin and end, and their first messages since a time.

``call`` asks the leader of the partitions. ``routing`` does this for many leaders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kafka08.client import requests
from kafka08.client.requests import Call, Response
from kafka08.client.routing import Answers
from kafka08.common import EARLIEST_TIME, LATEST_TIME, TopicPartition
from kafka08.errors import (
    NO_ERROR,
    UnsupportedForMessageFormatError,
    for_code,
    meaning_of,
    raise_for_code,
)
from kafka08.protocol import schemas
from kafka08.protocol.schemas import CONSUMER_REPLICA_ID, READ_COMMITTED

NO_OFFSET = requests.NO_OFFSET


def before(
    call: Call, times: Mapping[TopicPartition, int], *, replica_id: int = CONSUMER_REPLICA_ID
) -> Answers:
    """The beginning (EARLIEST_TIME) or the end (LATEST_TIME) of each log; for a time in ms the
    start of its last segment that was complete by then, which not every log has. To a debugging
    consumer (DEBUG_REPLICA_ID) followers answer, too: with the ends of their own logs."""
    response = call(requests.offsets_request(times, replica_id=replica_id))
    return _answers(response, lambda entry: entry.offsets[0] if entry.offsets else None)


def ends(call: Call, partitions: Iterable[TopicPartition], *, committed: bool = False) -> Answers:
    """The end of each log. ``committed``: for readers of committed transactions, whose logs end
    where the first open transaction begins; ``call`` must negotiate versions then."""
    if committed:
        return stable(call, partitions)
    return before(call, dict.fromkeys(partitions, LATEST_TIME))


def several(
    call: Call, tp: TopicPartition, time: int, count: int, *, replica_id: int = CONSUMER_REPLICA_ID
) -> list[int]:
    """Up to ``count`` offsets of one log as in ``before``: its end first, then the starts of
    segments, descending. Raises the error of its leader."""
    request = requests.offsets_request({tp: time}, count, replica_id=replica_id)
    entry: schemas.OffsetsPartitionResponse = requests.flatten(call(request).topics)[tp]
    raise_for_code(entry.error)
    return entry.offsets


def since(call: Call, times: Mapping[TopicPartition, int], *, committed: bool = False) -> Answers:
    """The first message of each log whose timestamp is the time (ms) or later; NO_OFFSET if no
    message is that late. ``committed``: of those before the first open transaction. ``call`` must
    negotiate versions: 0.8.2.2 cannot answer."""
    request = schemas.ListOffsetsRequest(*requests.offsets_request(times))
    if committed:
        request = request._replace(isolation_level=schemas.READ_COMMITTED)
    return _answers(call(request), lambda entry: entry.offset)


def stable(call: Call, partitions: Iterable[TopicPartition]) -> Answers:
    """The last stable offset of each log, where readers of committed transactions end: the first
    offset of its oldest open transaction, or its high watermark. ``call`` must negotiate
    versions."""
    asked = requests.offsets_request(dict.fromkeys(partitions, LATEST_TIME))
    request = schemas.ListOffsetsRequest(*asked._replace(isolation_level=READ_COMMITTED))
    return _answers(call(request), lambda entry: entry.offset)


def bounds(call: Call, tp: TopicPartition) -> tuple[int, int]:
    """The beginning and the end of a log. Raises the error of its leader."""
    beginning, end = (before(call, {tp: time}).checked() for time in (EARLIEST_TIME, LATEST_TIME))
    return beginning[tp], end[tp]


def _answers(
    response: Response, offset_of: Callable[[schemas.OffsetsPartitionResponse], int | None]
) -> Answers:
    answers = Answers({}, {})
    for tp, entry in requests.flatten(response.topics).items():
        if entry.error == UnsupportedForMessageFormatError.code:
            answers.values[tp] = NO_OFFSET  # no message has a timestamp
        elif entry.error != NO_ERROR:
            text = f"No offset of {tp}: {meaning_of(entry.error)}"
            answers.errors[tp] = for_code(entry.error, text)
        elif (offset := offset_of(entry)) is not None:
            answers.values[tp] = offset
    return answers

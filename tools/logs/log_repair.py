"""Fetches a damaged segment again from its partition's leader, and replaces the old one.

Only a replica is sent the stored bytes of compressed sets: consumers may be sent rebuilt ones. But
a fetch as a replica gives the leader the replica's log end. So the segment is first fetched
as a debugging consumer (replica -2), which changes nothing at the leader. Plain sets come as they
are stored, and from an original broker all sets do. If the bytes differ from the sealed ones, the
segment is fetched in the broker's own name, and only below the leader's high watermark. Such a
fetch never claims more than the log holds. It cannot raise the high watermark. It cannot bring the
stopped broker into the isr either, because that takes a fetch at or above the high watermark.

The file is written beside the damaged one and replaces it whole. At every moment the index and the
side file match the log file, or do not exist.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from kafka08.client import reading
from kafka08.client.cluster import ClusterClient
from kafka08.common import Broker, TopicPartition
from kafka08.errors import InvalidMessageError, KafkaError, ProtocolError, for_code
from kafka08.log.directory import sync_directory
from kafka08.log.segments import integrity
from kafka08.log.segments.integrity import Seal
from kafka08.log.segments.names import remove_rebuilt
from kafka08.message.crc import crc32c
from kafka08.message.entry import BytesLike, Entry, has_right_crc
from kafka08.message.scan import iter_entries
from kafka08.message.sets import iter_messages
from kafka08.protocol.schemas import DEBUG_REPLICA_ID
from tools.logs import conversion
from tools.logs.conversion import SegmentLimits
from tools.options import ToolError
from tools.shutdown import at_end

REPAIRED_SUFFIX = ".repaired"
_FETCH_BYTES = 4 << 20
_MAX_FETCH_BYTES = 1 << 30


class NotRepairableError(ToolError):
    """Why a segment cannot be had from the leader."""


class Segment(NamedTuple):
    """The sealed segment of ``log_path``, whose successor begins at ``end``."""

    topic_partition: TopicPartition
    log_path: str
    base: int
    end: int


class Fetched(NamedTuple):
    seal: Seal
    holds_wrappers: bool


class Leaders(NamedTuple):
    """The leaders of partitions, as the broker ``broker_id`` sees them, who is stopped."""

    cluster: ClusterClient
    broker_id: int

    def of(self, tp: TopicPartition) -> Broker:
        """Raises NotRepairableError."""
        try:
            leader = self.cluster.leader(tp)
        except (OSError, KafkaError) as error:
            raise NotRepairableError(f"the leader was not found: {error}") from error
        if leader.id == self.broker_id:
            raise NotRepairableError("this broker leads the partition")
        return leader

    def fetch(
        self, leader: Broker, tp: TopicPartition, offset: int, max_bytes: int, replica_id: int
    ) -> tuple[Any, int]:
        """(stored bytes from the entry that holds ``offset`` on, high watermark).

        Raises NotRepairableError.
        """
        call = partial(self.cluster.call, leader)
        try:
            answer = reading.fetch(call, {tp: offset}, max_bytes, replica_id=replica_id)[tp]
        except (OSError, ProtocolError) as error:
            raise NotRepairableError(f"broker {leader.id} does not answer: {error}") from error
        if answer.error:
            kind = type(for_code(answer.error)).__name__
            raise NotRepairableError(f"broker {leader.id} has no offset {offset}: {kind}")
        return answer.message_set, answer.high_watermark


def repair(leaders: Leaders, segment: Segment, limits: SegmentLimits) -> Generator[int, None, bool]:
    """Replace the segment; yields numbers of bytes fetched, returns whether the bytes now are
    those that were sealed. No other process may have the log open.

    Raises NotRepairableError or OSError; the segment is as it was then.
    """
    sealed = integrity.read(segment.log_path)
    leader = leaders.of(segment.topic_partition)
    path = segment.log_path + REPAIRED_SUFFIX
    with at_end(partial(Path(path).unlink, missing_ok=True)):
        fetched = yield from _fetch_into(path, leaders, leader, segment, DEBUG_REPLICA_ID)
        if fetched.seal != sealed and fetched.holds_wrappers:
            fetched = yield from _fetch_into(path, leaders, leader, segment, leaders.broker_id)
        _swap_in(path, segment.log_path, fetched.seal, sealed, limits)
    return fetched.seal == sealed


def _fetch_into(
    path: str, leaders: Leaders, leader: Broker, segment: Segment, replica_id: int
) -> Generator[int, None, Fetched]:
    """Write the leader's entries of the segment's range, each checked, to ``path``, synced."""
    size = crc = 0
    holds_wrappers = False
    position, max_bytes = segment.base, _FETCH_BYTES
    with open(path, "wb") as file:
        while position < segment.end:
            data, hw = leaders.fetch(
                leader, segment.topic_partition, position, max_bytes, replica_id
            )
            if hw < segment.end:
                raise NotRepairableError(f"broker {leader.id} has committed only up to {hw}")
            entries = _checked(data, position, segment)
            if not entries:
                if not len(data):
                    raise NotRepairableError(f"broker {leader.id} ends below {segment.end}")
                if max_bytes >= _MAX_FETCH_BYTES:
                    raise NotRepairableError(f"no whole message at offset {position}")
                max_bytes *= 2
                continue
            _refuse_straddling(data, entries, segment)
            position = entries[-1].offset + 1
            kept = [entry for entry in entries if entry.offset < segment.end]
            piece = _span(data, kept)
            file.write(piece)
            size += len(piece)
            crc = crc32c(piece, crc)
            holds_wrappers |= any(entry.codec for entry in kept)
            yield len(piece)
        file.flush()
        os.fsync(file.fileno())
    return Fetched(Seal(size, crc), holds_wrappers)


def _checked(data: BytesLike, position: int, segment: Segment) -> list[Entry]:
    """The whole entries up to the first one behind the segment, that one included."""
    found: list[Entry] = []
    try:
        for entry in iter_entries(data):
            if entry.offset < position or not has_right_crc(data, entry.position, entry.stop):
                raise NotRepairableError(f"the leader's copy is damaged at offset {entry.offset}")
            found.append(entry)
            position = entry.offset + 1
            if position >= segment.end:
                break
    except InvalidMessageError as error:
        raise NotRepairableError(f"the leader's copy is damaged: {error}") from error
    return found


def _refuse_straddling(data: BytesLike, entries: list[Entry], segment: Segment) -> None:
    """A set of the leader's may begin in one of our segments and end in the next, if its log was
    not copied from ours, nor ours from it."""
    bounds = (segment.base, segment.end)
    for entry in (entries[0], entries[-1]):
        try:
            first = (
                next(iter_messages(_span(data, [entry]))).offset if entry.codec else entry.offset
            )
        except KafkaError as error:
            raise NotRepairableError(f"the leader's copy is damaged: {error}") from error
        if any(first < bound <= entry.offset for bound in bounds):
            raise NotRepairableError(
                f"the leader's set at offset {entry.offset} straddles segments"
            )


def _span(data: BytesLike, entries: list[Entry]) -> memoryview:
    """The bytes of neighbouring entries."""
    if not entries:
        return memoryview(b"")
    last = entries[-1]
    return memoryview(data)[entries[0].position : last.position + last.size_total]


def _swap_in(
    path: str, log_path: str, seal: Seal, sealed: Seal | None, limits: SegmentLimits
) -> None:
    """Put the new file in the place of the damaged one. Each step leaves a log that opens."""
    directory, index = os.path.dirname(log_path), conversion.index_path(log_path)
    conversion.copy_times(log_path, path)
    remove_rebuilt(log_path)
    if seal != sealed:
        integrity.remove(log_path)
        _empty(index)
        sync_directory(directory)
    os.replace(path, log_path)
    sync_directory(directory)
    if seal != sealed:
        conversion.rebuild_index(log_path, limits)
        os.replace(integrity.write(log_path, seal), integrity.seal_path(log_path))
    elif conversion.is_index_wrong(log_path):
        conversion.rebuild_index(log_path, limits)
    sync_directory(directory)


def _empty(index: str) -> None:
    """An empty index is harmless; without an index the log would be recovered, and
    cut at the damage."""
    with open(index + REPAIRED_SUFFIX, "wb"):
        pass
    os.replace(index + REPAIRED_SUFFIX, index)

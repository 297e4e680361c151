"""The batches that readers of committed transactions leave out of stored entries.

A broker names the aborted transactions that the bytes it sends may hold: producers, and where each
transaction begins. It ends with the producer's next marker.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter

from kafka08.message.batch import RECORDS_AT, header_of
from kafka08.message.entry import BATCH, BytesLike
from kafka08.message.markers import ABORT, marker_of
from kafka08.message.scan import iter_entries


def without_aborted(data: BytesLike, aborted: Iterable[tuple[int, int]]) -> BytesLike:
    """The whole entries of ``data`` without the batches of aborted transactions; ``data`` itself if
    there are none. ``aborted``: (producer id, first offset). Markers stay."""
    waiting = sorted(aborted, key=itemgetter(1), reverse=True)
    if not waiting:
        return data
    view = memoryview(data)
    out: set[int] = set()
    kept = []
    start = end = 0  # of what stays, up to the entry that is looked at
    for entry in iter_entries(view):
        if entry.magic == BATCH:
            header = header_of(view, entry.position)
            while waiting and waiting[-1][1] <= header.last_offset:
                out.add(waiting.pop()[0])
            if header.is_control:
                if marker_of(view[entry.position + RECORDS_AT : entry.stop])[0] == ABORT:
                    out.discard(header.producer_id)
            elif header.is_transactional and header.producer_id in out:
                kept.append(view[start : entry.position])
                start = entry.stop
        end = entry.stop
    if not start:
        return data
    return b"".join([*kept, view[start:end]])

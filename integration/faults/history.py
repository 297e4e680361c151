"""Everything producers and readers saw, as JSON lines, in the order in which they saw it.

``send`` (a try begins), ``ack``, ``stored`` (acknowledged without an offset), ``refused``
(certainly not stored), ``unknown`` (stored or not), ``read`` (by a consumer while it went on),
``final`` (the last read), ``fault``, ``note``.
Fields: ``t`` seconds since the start, ``p`` partition, ``w`` producer, ``s`` first sequence
number, ``n`` how many, ``o`` first offset, ``v`` [producer, sequence] pairs (null: foreign
bytes) at successive offsets. Knows no rule about them.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from integration.faults.values import Value

Event = dict[str, Any]


class History:
    """A file that is appended to by many threads and flushed line by line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("w", buffering=1)
        self._lock = threading.Lock()
        self._begin = time.monotonic()

    def add(self, kind: str, /, **fields: Any) -> None:
        event = {"e": kind, "t": round(time.monotonic() - self._begin, 3), **fields}
        line = json.dumps(event, separators=(",", ":")) + "\n"
        with self._lock:
            self._file.write(line)

    def batch(self, what: str, partition: int, first: Value, count: int, **more: Any) -> None:
        """An event about ``count`` successive records of one producer."""
        self.add(what, p=partition, w=first.producer, s=first.sequence, n=count, **more)

    def records(
        self, what: str, partition: int, offset: int, values: Sequence[Value | None]
    ) -> None:
        self.add(what, p=partition, o=offset, v=values)

    def close(self) -> None:
        self._file.close()


def load(path: Path) -> Iterator[Event]:
    """The events of a history file; a last line cut off in the middle is left out."""
    with path.open() as file:
        for line in file:
            if line.endswith("\n"):
                yield json.loads(line)


def records_of(event: Event) -> Iterable[tuple[int, Value | None]]:
    """(offset, value) of a ``read``, ``final`` or ``ack`` event."""
    if "v" in event:
        for index, pair in enumerate(event["v"]):
            yield event["o"] + index, None if pair is None else Value(*pair)
    else:
        for index in range(event["n"]):
            yield event["o"] + index, Value(event["w"], event["s"] + index)

"""The progress of a group's batches, and the offsets that may be committed. Pure.

Offsets are committed over whole batches, in the order of their times, and never past one that
failed: its messages are read again after a restart or a rebalance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka08.common import TopicPartition
from kafka08.spark.planner import Range

RUNNING, DONE, FAILED = "running", "done", "failed"


class BatchProgress:
    """From ``positions``, the committed offsets of the partitions owned.

    ``position``: next offset to plan; ``committed``: next offset that is safe to store.
    """

    def __init__(self, positions: Mapping[TopicPartition, int]) -> None:
        self.position = dict(positions)
        self.committed = dict(positions)
        self.held = False
        self._batches: dict[int, tuple[Sequence[Range], str]] = {}
        self._submitted: set[int] = set()

    def plan(self, batch_ms: int, ranges: Sequence[Range]) -> None:
        """A batch reads these. Ranges that do not begin at our position are not committed."""
        ours = [r for r in ranges if self.position.get(r.topic_partition) == r.start]
        for each in ours:
            self.position[each.topic_partition] = each.end
        self._batches[batch_ms] = (ours, RUNNING)

    def submitted(self, batch_ms: int) -> None:
        if batch_ms in self._batches:
            self._submitted.add(batch_ms)

    def complete(self, batch_ms: int, ok: bool) -> bool:
        """A batch ended; whether ``committed`` moved.

        An earlier batch that was never submitted has failed: it will not run.
        """
        if batch_ms not in self._batches:
            return False
        for earlier, (ranges, state) in list(self._batches.items()):
            if earlier < batch_ms and earlier not in self._submitted and state == RUNNING:
                self._batches[earlier] = (ranges, FAILED)
        ranges, _ = self._batches[batch_ms]
        self._batches[batch_ms] = (ranges, DONE if ok else FAILED)
        return self._advance()

    def _advance(self) -> bool:
        moved = False
        for batch_ms in sorted(self._batches):
            ranges, state = self._batches[batch_ms]
            if state == RUNNING:
                if self.held:
                    continue
                break
            self.held = self.held or (state == FAILED and any(r.size for r in ranges))
            if not self.held:
                for each in ranges:
                    moved = moved or each.size > 0
                    self.committed[each.topic_partition] = each.end
            del self._batches[batch_ms]
            self._submitted.discard(batch_ms)
        return moved

    @property
    def running(self) -> int:
        """Batches that have not ended."""
        return sum(state == RUNNING for _, state in self._batches.values())

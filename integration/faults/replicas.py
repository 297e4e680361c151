"""Whether all replicas of a partition hold the same bytes."""

from __future__ import annotations

from collections.abc import Mapping

from kafka08.message.scan import iter_entries


def difference(logs: Mapping[int, bytes]) -> str:
    """Where the logs part, up to the end of the shortest; empty if nowhere.

    ``logs`` are the segments of each replica by broker id, one after the other from offset 0.
    """
    if not logs:
        return ""
    first, *others = sorted(logs)
    for other in others:
        shortest = min(len(logs[first]), len(logs[other]))
        if logs[first][:shortest] == logs[other][:shortest]:
            continue
        pairs = zip(
            iter_entries(memoryview(logs[first])),
            iter_entries(memoryview(logs[other])),
            strict=False,
        )
        for ours, theirs in pairs:
            mine = logs[first][ours.position : ours.position + ours.size_total]
            its = logs[other][theirs.position : theirs.position + theirs.size_total]
            if mine != its:
                return f"brokers {first} and {other} part at {ours.offset}, {theirs.offset}"
        return f"brokers {first} and {other} part"
    return ""

"""The tables that kafka-consumer-groups prints, as Kafka 4 does.

Pure but for printing. A blank line precedes every table; columns of names grow with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kafka08.common import Broker, TopicPartition
from kafka08.groups.admin import GroupProgress
from kafka08.groups.members import Consumer

MISSING = "-"
_NAME_WIDTH = 15


def print_progress(group: str, rows: Sequence[GroupProgress]) -> None:
    """CURRENT-OFFSET, LOG-END-OFFSET and LAG by partition."""
    columns = ["TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID"]
    columns += ["HOST", "CLIENT-ID"]
    table = []
    for row in rows:
        tp = row.partition
        cells = [tp and tp.topic, None if tp is None else tp.partition]
        cells += [row.offset, row.log_end, row.lag]
        table.append(_shown([*cells, *(row.consumer or [None] * 3)]))
    widths = [_NAME_WIDTH, 10, 15, 15, 15, _NAME_WIDTH, _NAME_WIDTH, 0]
    _print_table(group, columns, table, widths, growing=(0, 5, 6))


def print_members(
    group: str, rows: Iterable[tuple[Consumer, Sequence[TopicPartition]]], *, verbose: bool
) -> None:
    columns = ["CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    columns.append("CURRENT-ASSIGNMENT" if verbose else "")
    table = [
        [*_shown(consumer), str(len(owned)), _assignment(owned) if verbose else ""]
        for consumer, owned in rows
    ]
    _print_table(group, columns, table, [_NAME_WIDTH] * 4 + [0], growing=(0, 1, 2))


def print_state(
    group: str, coordinator: Broker, strategy: str | None, state: str, members: int
) -> None:
    """``strategy``: None for groups in ZooKeeper, which do not publish it."""
    where = f"{coordinator.host}:{coordinator.port} ({coordinator.id})"
    columns = ["COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]
    row = [where, strategy or MISSING, state, str(members)]
    _print_table(group, columns, [row], [25, 20, 20, 0], growing=(0,))


def print_new_offsets(offsets: Mapping[str, Mapping[TopicPartition, int]]) -> None:
    """Print the offsets that a reset sets, by group and partition."""
    row = "{:<30} {:<30} {!s:<10} {!s:<15}"
    print()
    print(row.format("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"))
    for group, partitions in offsets.items():
        for (topic, partition), offset in sorted(partitions.items()):
            print(row.format(group, topic, partition, offset))


def print_export(offsets: Mapping[str, Mapping[TopicPartition, int]], *, with_group: bool) -> None:
    """Lines --from-file reads, and a blank one."""
    for group, partitions in offsets.items():
        lead = f"{group}," if with_group else ""
        for (topic, partition), offset in sorted(partitions.items()):
            print(f"{lead}{topic},{partition},{offset}")
    print()


def print_deleted_offsets(results: Mapping[TopicPartition, str]) -> None:
    print()
    print(f"{'TOPIC':<30} {'PARTITION':<15} {'STATUS':<15}")
    for (topic, partition), status in sorted(results.items()):
        print(f"{topic:<30} {partition:<15} {status:<15}")


def _assignment(partitions: Sequence[TopicPartition]) -> str:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    shown = [f"{topic}:{','.join(map(str, ids))}" for topic, ids in sorted(topics.items())]
    return ";".join(shown) or MISSING


def _shown(cells: Iterable[object]) -> list[str]:
    return [MISSING if cell is None else str(cell) for cell in cells]


def _print_table(
    group: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    widths: Sequence[int],
    growing: Iterable[int],
) -> None:
    """With a column of the group in front. ``growing`` are the columns of names."""
    table = [["GROUP", *columns], *([group, *row] for row in rows)]
    final = [_NAME_WIDTH, *widths]
    for number in (0, *(each + 1 for each in growing)):
        final[number] = max([final[number], *(len(row[number]) for row in table[1:])])
    print()
    for row in table:
        print(" ".join(f"{cell:<{width}}" for cell, width in zip(row, final, strict=True)))

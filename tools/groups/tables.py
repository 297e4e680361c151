"""The tables that kafka-consumer-groups prints: as Kafka 1.1; for several groups, as 2.4.

Pure but for printing. A blank line precedes every table; columns of names grow with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kafka08.common import Broker, TopicPartition

MISSING = "-"
_NAME_WIDTH = 15


class Progress(NamedTuple):
    """A partition's row; or, with no partition, a member that owns none."""

    partition: TopicPartition | None
    offset: int | None = None
    log_end: int | None = None
    consumer: str | None = None
    host: str | None = None

    @property
    def lag(self) -> int | None:
        if self.offset is None or self.log_end is None:
            return None
        return self.log_end - self.offset


class MemberRow(NamedTuple):
    consumer: str
    host: str
    partitions: Sequence[TopicPartition]


def print_progress(group: str | None, rows: Sequence[Progress], *, hosts: bool) -> None:
    """CURRENT-OFFSET, LOG-END-OFFSET and LAG by partition; ``group`` leads if it is given."""
    columns = [*(["TOPIC"]), "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID"]
    columns += ["HOST", "CLIENT-ID"] if hosts else [""]
    table = []
    for row in rows:
        tp = row.partition
        cells = [tp and tp.topic, None if tp is None else tp.partition]
        cells += [row.offset, row.log_end, row.lag, row.consumer]
        table.append(_shown(cells) + (_shown([row.host, None]) if hosts else [""]))
    widths = [_NAME_WIDTH, 10, 15, 15, 15, _NAME_WIDTH, *([_NAME_WIDTH, 0] if hosts else [0])]
    _print_table(group, columns, table, widths, growing=(0, 5, 6))


def print_members(group: str | None, rows: Iterable[MemberRow], *, verbose: bool) -> None:
    columns = ["CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "ASSIGNMENT" if verbose else ""]
    table = [
        [
            row.consumer,
            row.host,
            MISSING,
            str(len(row.partitions)),
            _assignment(row.partitions) if verbose else "",
        ]
        for row in rows
    ]
    _print_table(group, columns, table, [_NAME_WIDTH] * 4 + [0], growing=(0, 1, 2))


def print_state(group: str | None, coordinator: Broker, state: str, members: int) -> None:
    """The strategy is published nowhere in 0.8."""
    where = f"{coordinator.host}:{coordinator.port} ({coordinator.id})"
    columns = ["COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]
    row = [where, MISSING, state, str(members)]
    _print_table(group, columns, [row], [25, 25, 20, 0], growing=(0,))


def print_new_offsets(
    offsets: Mapping[str, Mapping[TopicPartition, int]], *, with_group: bool
) -> None:
    """Print the offsets that a reset sets, by group and partition."""
    print()
    print(_new_offset_row("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET", with_group=with_group))
    for group, partitions in offsets.items():
        for (topic, partition), offset in sorted(partitions.items()):
            print(_new_offset_row(group, topic, partition, offset, with_group=with_group))


def _new_offset_row(
    group: str, topic: str, partition: object, offset: object, *, with_group: bool
) -> str:
    lead = f"{group:<30} " if with_group else ""
    return f"{lead}{topic:<30} {partition!s:<10} {offset!s:<15}"


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
    shown = [f"{topic}({','.join(map(str, ids))})" for topic, ids in sorted(topics.items())]
    return ", ".join(shown) or MISSING


def _shown(cells: Iterable[object]) -> list[str]:
    return [MISSING if cell is None else str(cell) for cell in cells]


def _print_table(
    group: str | None,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    widths: Sequence[int],
    growing: Iterable[int],
) -> None:
    if group is not None:
        columns, rows = ["GROUP", *columns], [[group, *row] for row in rows]
        widths, growing = [_NAME_WIDTH, *widths], [0, *(number + 1 for number in growing)]
    final = list(widths)
    for number in growing:
        if final[number]:
            final[number] = max([final[number], *(len(row[number]) for row in rows)])
    print()
    for row in [columns, *rows]:
        print(" ".join(f"{cell:<{width}}" for cell, width in zip(row, final, strict=True)))

"""Distributes many records over partitions at once. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kafka08.message.entry import MIN_ENTRY
from kafka08.producer.partitioners import Partitioner, Unkeyed

Cells = Sequence["bytes | None"]


class Columns(NamedTuple):
    """Records by column, in order; ``keys`` is None where no record has one, and so is ``headers``
    (encoded). ``times`` (ms) is empty if no record has one."""

    values: Cells
    keys: Cells | None = None
    times: Sequence[int] = ()
    headers: Cells | None = None

    def at(self, rows: slice) -> Columns:
        keys, headers = self.keys, self.headers
        return Columns(
            self.values[rows], keys and keys[rows], self.times[rows], headers and headers[rows]
        )

    def sizes(self) -> list[int]:
        """The uncompressed size of each record in bytes."""
        found = [MIN_ENTRY if value is None else MIN_ENTRY + len(value) for value in self.values]
        for cells in (self.keys, self.headers):
            if cells is not None:
                found = [size + len(cell or b"") for size, cell in zip(found, cells, strict=True)]
        return found


def dealt(
    records: Columns,
    partitions: Sequence[int | None] | None,
    unkeyed: Unkeyed,
    available: Sequence[int],
    count: int,
    partitioner: Partitioner,
) -> Iterator[tuple[int, Columns]]:
    """Each record goes to the partition it names, else to its key's partition among ``count``,
    else to the one that ``unkeyed`` chooses."""
    values, keys, times, headers = records
    if keys is None and partitions is None:
        for partition, which in unkeyed.deal(available, len(values)):
            yield partition, records.at(which)
        return
    rows: dict[int, list[int]] = {}
    for row in range(len(values)):
        asked = None if partitions is None else partitions[row]
        if asked is None:
            key = None if keys is None else keys[row]
            asked = unkeyed.choose(available) if key is None else partitioner(key, count)
        rows.setdefault(asked, []).append(row)
    for partition, its in rows.items():
        its_keys, its_headers = (
            None if cells is None else [cells[row] for row in its] for cells in (keys, headers)
        )
        its_times = [times[row] for row in its] if times else ()
        yield partition, Columns([values[row] for row in its], its_keys, its_times, its_headers)

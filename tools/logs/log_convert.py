"""kafka-log-convert: makes the data directories of a stopped broker fit for an original one.

Ours stores compressed sets as producers sent them; 0.8.2.2 would serve the offsets inside as they
are, and cut the log at them when it recovers. It cannot read message formats 1 and 2, nor groups
and offsets as later releases store them, and does not know transactions. This tool rewrites all of
these (conversion.py), leaves out what was aborted (transactions.py), checks the indexes, and
removes the files that only ours knows. Offsets and names stay, also for ours, which may open the
directories again. It may be interrupted, and run again at any time.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
from bisect import bisect_right
from collections.abc import Callable, Generator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from kafka08.common import OFFSETS_TOPIC, TopicPartition
from kafka08.log.checkpoint import OffsetCheckpoint
from kafka08.log.directory import CLEANER_CHECKPOINT_FILE, LogDirectory, unlink_if_there
from kafka08.log.manager import LogManager
from kafka08.log.segments import integrity
from kafka08.log.segments.names import REBUILT_INDEX_SUFFIX, REBUILT_SUFFIX
from kafka08.progress import Progress
from kafka08.runtime import SystemClock
from kafka08.settings.broker import BrokerConfig
from tools.logs import conversion, log_dirs
from tools.logs.conversion import Done, NotWalkableError, SegmentLimits
from tools.logs.transactions import OPEN_AS, UnknownOutcomeError, transactions
from tools.options import Arguments, OptionParser
from tools.shutdown import at_end


class Converted(NamedTuple):
    """A partition: what became of its segments, and of the files beside them."""

    topic_partition: TopicPartition
    segments: list[Done]
    indexes_rebuilt: int
    side_files_removed: int
    problems: list[str]

    def row(self) -> dict[str, object]:
        """The numbers of the report."""
        counts = [done.counts for done in self.segments]
        return {
            "segments": len(self.segments),
            "converted": sum(each["wrappers"] + each["later"] > 0 for each in counts),
            "added": sum(len(done.bases) - 1 for done in self.segments),
            **{name: sum(each[name] for each in counts) for name in conversion.COUNTS},
            "bytes-before": sum(done.size_before for done in self.segments),
            "bytes-after": sum(done.size_after for done in self.segments),
            "indexes": self.indexes_rebuilt,
        }

    def as_json(self) -> dict[str, object]:
        numbers = {key.replace("-", "_"): value for key, value in self.row().items()}
        return {
            **self.topic_partition._asdict(),
            **numbers,
            "side_files": self.side_files_removed,
            "problems": self.problems,
        }


Job = Callable[[], Generator[int, None, Converted]]

_SIDE_SUFFIXES = (
    integrity.SEAL_SUFFIX,
    f"{integrity.SEAL_SUFFIX}.tmp",
    REBUILT_SUFFIX,
    REBUILT_INDEX_SUFFIX,
    *conversion.LATER_SUFFIXES,
    "leader-epoch-checkpoint",
    "cleaning-times",
)

PARSER = OptionParser(
    "Rewrite compressed sets and later message formats of a stopped broker's logs for a broker of "
    "release 0.8.2.2.",
    log_dirs.OPTIONS,
    f"""
--max-message-bytes <Integer: size>  No set may become larger: the least max.message.bytes of the
    topics, if one is below the broker's message.max.bytes.
--gzip-level <Integer: 1 to 9>  How hard to try: 1 takes less than half the time of 6, and some more
    room. (default: 6)
--open-transactions <drop or keep>  What becomes of messages of transactions that are open: leave
    them out, as if these were aborted, or keep them. Without it such partitions stay as they are.
--dry-run  Print what would be done, and do nothing.
--force  First recover directories whose broker did not stop cleanly.
--processes <Integer: count>  How many partitions to work on at a time.
    (default: {os.cpu_count() or 1})
--report <file>  Write what was done there, as JSON.
""",
)


def main(argv: list[str]) -> int:
    """Exit status: 1 when something cannot be read."""
    args = PARSER.parse_command(argv)
    PARSER.check_invalid(args, "dry-run", "force")
    config = log_dirs.broker_config(PARSER, args)
    limits = SegmentLimits(
        args.value("max-message-bytes") or config.message_max_bytes,
        config.log_index_interval_bytes,
        config.log_index_size_max_bytes,
        gzip_level=_gzip_level(args),
    )
    open_as = args.value("open-transactions")
    if open_as not in (None, *OPEN_AS):
        PARSER.usage_and_exit(f"{open_as} is not one of {', '.join(OPEN_AS)}")
    if args.has("force"):
        recover(config)
    dry_run = args.has("dry-run")
    with log_dirs.locked(config.log_dirs) as directories:
        log_dirs.check_stopped_cleanly(directories, ", or let --force recover the logs")
        done = {
            each.path: convert(
                each,
                limits,
                dry_run=dry_run,
                open_as=open_as,
                processes=max(args.value("processes"), 1),
            )
            for each in directories
        }
    _print(done, dry_run)
    if args.has("report"):
        _write_report(args.value("report"), done, dry_run)
    return int(any(each.problems for found in done.values() for each in found))


def _gzip_level(args: Arguments) -> int:
    level: int = args.value("gzip-level")
    if not 1 <= level <= 9:
        PARSER.usage_and_exit(f"{level} is not a level of gzip")
    return level


def recover(config: BrokerConfig) -> None:
    """Open and close the logs as the broker does. Raises KafkaError, OSError."""
    manager = LogManager(config, clock=SystemClock(), topic_configs={})
    manager.load()
    manager.close()


def convert(
    directory: LogDirectory,
    limits: SegmentLimits,
    *,
    dry_run: bool,
    open_as: str | None = None,
    processes: int = 1,
) -> list[Converted]:
    """Convert each partition of a data directory that is stopped and locked. Raises OSError."""
    partitions = directory.partitions()
    jobs: list[Job] = [
        partial(convert_partition, *item, limits, dry_run, open_as) for item in partitions.items()
    ]
    sizes = [
        sum(os.stat(log).st_size for log in log_dirs.segment_paths(path))
        for path in partitions.values()
    ]
    progress = Progress(sum(sizes), directory.path)
    with at_end(progress.close):
        if processes == 1 or len(jobs) < 2:
            done = [progress.follow(job()) for job in jobs]
        else:
            done = progress.follow(_in_processes(jobs, sizes, processes))
    if not dry_run:
        _lower_cleaner_points(directory, partitions)
    return done


def _in_processes(
    jobs: list[Job], sizes: list[int], processes: int
) -> Generator[int, None, list[Converted]]:
    """Run the jobs side by side; yields the size of each that has ended."""
    context = multiprocessing.get_context("spawn")
    ignoring = (signal.SIGINT, signal.SIG_IGN)  # a terminal interrupts all; this process decides
    pool = ProcessPoolExecutor(min(processes, len(jobs)), context, signal.signal, ignoring)
    with at_end(partial(_end, pool)):
        running = {pool.submit(_run, job): size for job, size in zip(jobs, sizes, strict=True)}
        for ended in as_completed(running):
            yield running[ended]
        results = [future.result() for future in running]
        pool.shutdown()
    return results


def _end(pool: ProcessPoolExecutor) -> None:
    """Wait for no job; after ``pool.shutdown`` there is none left."""
    pool.shutdown(wait=False, cancel_futures=True)
    for child in multiprocessing.active_children():
        child.terminate()
        child.join()


def _run(job: Job) -> Converted:
    work = job()
    while True:
        try:
            next(work)
        except StopIteration as end:
            done: Converted = end.value
            return done


def convert_partition(
    tp: TopicPartition, path: str, limits: SegmentLimits, dry_run: bool, open_as: str | None = None
) -> Generator[int, None, Converted]:
    """Convert the partition in ``path``; yields numbers of bytes gone through. Raises OSError.

    ``open_as``: what becomes of open transactions (``transactions``). If there are some and it is
    None, nothing is changed.
    """
    if not dry_run:
        conversion.settle(path)
    logs = log_dirs.segment_paths(path)
    try:
        aborted = transactions(logs).left_out(open_as)
    except UnknownOutcomeError as error:
        yield sum(os.stat(log).st_size for log in logs)
        return Converted(tp, [], 0, 0, [str(error)])
    side_files = [
        os.path.join(path, name) for name in os.listdir(path) if name.endswith(_SIDE_SUFFIXES)
    ]
    done, problems, indexes = [], [], 0
    limits = limits._replace(offsets_topic=tp.topic == OFFSETS_TOPIC)
    for log in logs:
        wrong = conversion.is_index_wrong(log)
        with suppress(NotWalkableError):  # reported below, when the segment is walked
            if wrong and not dry_run:
                conversion.rebuild_index(log, limits)
            indexes += wrong
        found = yield from conversion.convert_segment(
            log, limits, aborted=aborted, dry_run=dry_run, is_last=log == logs[-1]
        )
        done.append(found)
        problems += [f"{os.path.basename(log)}: {problem}" for problem in found.problems]
    if not dry_run:
        for name in side_files:
            unlink_if_there(name)  # it may be gone with the segment it spoke of
    return Converted(tp, done, indexes, len(side_files), problems)


def _lower_cleaner_points(directory: LogDirectory, partitions: dict[TopicPartition, str]) -> None:
    """0.8.2.2's cleaner dies of a point at which no segment begins."""
    path = directory.file(CLEANER_CHECKPOINT_FILE)
    if not os.path.exists(path):
        return
    checkpoint = OffsetCheckpoint(path)
    points = checkpoint.read()
    lowered = dict(points)
    for tp in points.keys() & partitions.keys():
        bases = [conversion.base_of(log) for log in log_dirs.segment_paths(partitions[tp])]
        if bases:
            lowered[tp] = bases[max(bisect_right(bases, points[tp]) - 1, 0)]
    if lowered != points:
        checkpoint.write(lowered)


def _print(done: dict[str, list[Converted]], dry_run: bool) -> None:
    for path, partitions in done.items():
        print(f"{path}{': nothing is written' if dry_run else ''}")
        if not partitions:
            print("No partitions")
            continue
        columns = ["partition", *partitions[0].row()]
        log_dirs.print_table(
            [name.upper() for name in columns],
            [(each.topic_partition, *each.row().values()) for each in partitions],
        )
        for each in partitions:
            for problem in each.problems:
                print(f"{each.topic_partition} left as it is: {problem}", file=sys.stderr)
            if each.row()["oversized"]:
                print(
                    f"{each.topic_partition}: {each.row()['oversized']} sets of one message are "
                    "larger than the largest message allowed",
                    file=sys.stderr,
                )


def _write_report(path: str, done: dict[str, list[Converted]], dry_run: bool) -> None:
    report = {
        "version": 1,
        "dry_run": dry_run,
        "log_dirs": [
            {"path": name, "partitions": [each.as_json() for each in partitions]}
            for name, partitions in done.items()
        ],
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(report, file, indent=2)
        file.write("\n")

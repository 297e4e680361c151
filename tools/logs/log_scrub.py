"""kafka-log-scrub: are sealed segments what they were when they were sealed?

Reads each segment that has a side file (kafka08/log/segments/integrity.py) and compares; on a
broker that runs, too. On one that is stopped it also seals what has no side file yet, and fetches
damaged segments again from their leaders (tools/logs/log_repair.py). Exit status 1 when damage is
left.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator
from contextlib import ExitStack
from itertools import accumulate, pairwise
from typing import NamedTuple

from kafka08.client.cluster import ClusterClient
from kafka08.common import TopicPartition
from kafka08.log.directory import parse_log_name
from kafka08.log.segments import integrity
from kafka08.log.segments.integrity import Seal
from kafka08.progress import Progress
from kafka08.settings.broker import BrokerConfig
from tools.brokers import broker_list
from tools.logs import log_dirs
from tools.logs.conversion import SegmentLimits, base_of
from tools.logs.log_repair import Leaders, NotRepairableError, Segment, repair
from tools.options import Arguments, OptionParser
from tools.shutdown import at_end

INTACT, DAMAGED, GONE = "intact", "damaged", "gone"
UNSEALED, SEALED, REPAIRED = "unsealed", "sealed", "repaired"
_COUNTED = (INTACT, UNSEALED, SEALED, REPAIRED, DAMAGED)
_TRIES = 3


class Verdict(NamedTuple):
    """``state`` of a segment, what was found wrong, and what became of it."""

    segment: Segment
    state: str
    damage: str = ""
    remark: str = ""


PARSER = OptionParser(
    "Look for damage in the sealed segments of a broker's logs.",
    log_dirs.OPTIONS,
    """
--seal  Seal the segments that have no side file. The broker must be stopped.
--repair  Fetch damaged segments again from the partitions' leaders. The broker must be stopped.
--bootstrap-server <host1:port1,host2:port2>  Brokers that know the leaders.
--broker-list <host1:port1,host2:port2>  Brokers that know the leaders.
--broker-id <Integer>  Which broker's logs these are, if no file says so.
--bytes-per-second <Integer: count>  Read no faster, to leave the disk to a broker that runs.
--json  Print all that was found as JSON.
""",
)


def main(argv: list[str]) -> int:
    args = PARSER.parse_command(argv)
    config = log_dirs.broker_config(PARSER, args)
    with ExitStack() as stack:
        leaders = _leaders(args, config, stack)
        if leaders is not None or args.has("seal"):
            directories = stack.enter_context(log_dirs.locked(config.log_dirs))
            log_dirs.check_stopped_cleanly(directories)
        verdicts = scrub(
            config,
            seal=args.has("seal"),
            leaders=leaders,
            bytes_per_second=args.value("bytes-per-second"),
        )
    if args.has("json"):
        json.dump([_as_json(verdict) for verdict in verdicts], sys.stdout, indent=2)
        print()
    else:
        _print(verdicts)
    return int(any(verdict.state == DAMAGED for verdict in verdicts))


def _leaders(args: Arguments, config: BrokerConfig, stack: ExitStack) -> Leaders | None:
    """Where to repair from; None when nothing is to be repaired."""
    if not args.has("repair"):
        return None
    brokers = args.value("bootstrap-server") or args.value("broker-list")
    if brokers is None:
        PARSER.usage_and_exit('Missing required argument "[bootstrap-server]"')
    if not args.has("config") and not args.has("broker-id"):
        PARSER.usage_and_exit('Missing required argument "[broker-id]"')
    broker_id = args.value("broker-id") if args.has("broker-id") else config.broker_id
    cluster = ClusterClient(broker_list(PARSER, brokers), client_id="kafka-log-scrub")
    stack.callback(cluster.close)
    return Leaders(cluster, broker_id)


def scrub(
    config: BrokerConfig,
    *,
    seal: bool,
    leaders: Leaders | None,
    bytes_per_second: int | None = None,
) -> list[Verdict]:
    """Check all sealed segments of the data directories; seal and repair what is asked for."""
    limits = SegmentLimits(0, config.log_index_interval_bytes, config.log_index_size_max_bytes)
    segments = [segment for path in config.log_dirs for segment in sealed_segments(path)]
    sizes = [_size(segment.log_path) for segment in segments]
    verdicts = []
    progress = Progress(sum(sizes), "Scrubbing", bytes_per_second=bytes_per_second)
    with at_end(progress.close):
        for segment, ended in zip(segments, accumulate(sizes), strict=True):
            verdict = progress.follow(check(segment))
            if seal and verdict.state == UNSEALED:
                verdict = seal_segment(segment)
            if leaders is not None and verdict.state == DAMAGED:
                verdict = _repaired(verdict, leaders, limits)
            verdicts.append(verdict)
            progress.show(ended)  # also what was not read, or read more than once
    return [verdict for verdict in verdicts if verdict.state != GONE]


def sealed_segments(path: str) -> list[Segment]:
    """All segments of a data directory that take no more appends."""
    found = []
    for name in sorted(os.listdir(path)):
        tp = parse_log_name(name)
        directory = os.path.join(path, name)
        if tp is not None and os.path.isdir(directory):
            logs = [(log, base_of(log)) for log in log_dirs.segment_paths(directory)]
            found += [Segment(tp, log, base, end) for (log, base), (_, end) in pairwise(logs)]
    return found


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def check(segment: Segment) -> Generator[int, None, Verdict]:
    """Compare a segment with its side file; yields numbers of bytes read.

    A running broker may cut, replace or delete the segment meanwhile, but takes away the side file
    before: what is sealed the same before and after has not been touched.
    """
    for _ in range(_TRIES):
        seal = integrity.read(segment.log_path)
        damage = ""
        try:
            before = _identity(segment.log_path)
            if seal is None:
                return Verdict(segment, UNSEALED)
            found = yield from integrity.sum_up(segment.log_path)
            if found == seal:
                return Verdict(segment, INTACT)
            damage = f"{_shown(found)}, sealed with {_shown(seal)}; {_where(segment.log_path)}"
            if integrity.read(segment.log_path) == seal and before == _identity(segment.log_path):
                return Verdict(segment, DAMAGED, damage)
        except FileNotFoundError:
            continue
        except OSError as error:
            return Verdict(segment, DAMAGED, f"cannot be read: {error.strerror}")
    return Verdict(segment, GONE)


def _identity(path: str) -> tuple[int, int]:
    stat = os.stat(path)
    return stat.st_ino, stat.st_size


def _shown(seal: Seal) -> str:
    return f"{seal.size} bytes with crc-32c {seal.crc:08x}"


def _where(path: str) -> str:
    found = integrity.find_damage(path)
    if found is None:
        return "every message is whole: a header or the side file"
    return f"first at position {found.position}, offset {found.offset}: {found.reason}"


def seal_segment(segment: Segment) -> Verdict:
    """Give the segment a side file if every message in it is right. No process may have it open."""
    path = segment.log_path
    try:
        found = integrity.find_damage(path)
        if found is not None:
            return Verdict(segment, DAMAGED, _where(path), "not sealed")
        with open(path, "rb") as file:
            os.fsync(file.fileno())
        made = integrity.write(path, integrity.summed(path))
        os.replace(made, integrity.seal_path(path))
    except OSError as error:
        return Verdict(segment, DAMAGED, f"cannot be read: {error.strerror}", "not sealed")
    return Verdict(segment, SEALED)


def _repaired(verdict: Verdict, leaders: Leaders, limits: SegmentLimits) -> Verdict:
    segment = verdict.segment
    progress = Progress(_size(segment.log_path), str(segment.topic_partition))
    with at_end(progress.close):
        try:
            identical = progress.follow(repair(leaders, segment, limits))
        except (NotRepairableError, OSError) as error:
            return verdict._replace(remark=f"left as it is: {error}")
    remark = "as it was sealed" if identical else "the leader's messages, in other bytes"
    return verdict._replace(state=REPAIRED, remark=remark)


def _print(verdicts: list[Verdict]) -> None:
    partitions: dict[TopicPartition, list[str]] = {}
    for verdict in verdicts:
        partitions.setdefault(verdict.segment.topic_partition, []).append(verdict.state)
    columns = ["partition", "segments", *_COUNTED]
    rows = [
        (tp, len(states), *(states.count(state) for state in _COUNTED))
        for tp, states in partitions.items()
    ]
    log_dirs.print_table([column.upper() for column in columns], rows)
    for verdict in verdicts:
        if verdict.damage:
            remark = f"; {verdict.remark}" if verdict.remark else ""
            state = verdict.state
            print(f"{verdict.segment.log_path} {state}: {verdict.damage}{remark}")


def _as_json(verdict: Verdict) -> dict[str, object]:
    return {
        **verdict.segment.topic_partition._asdict(),
        "file": verdict.segment.log_path,
        "base_offset": verdict.segment.base,
        "end_offset": verdict.segment.end,
        "state": verdict.state,
        "damage": verdict.damage,
        "remark": verdict.remark,
    }

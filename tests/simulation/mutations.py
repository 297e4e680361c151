"""Faults of one line, planted into production code, that the simulation must find.

``python -m tests.simulation.mutations [NAME ...]`` runs each in processes of its own, on one seed
after the other until a check fails, and prints the table in docs/faults.md. They take turns: the
next runs are those of the one with the fewest faults so far. With ``--table FILE`` the rows are
kept there, and another command goes on with it. The exit status is 1 if one was not found.

Some need a window that clusters reach too seldom. A unit test finds these.
"""

from __future__ import annotations

import argparse
import importlib.util
import logging
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple

from tests.simulation.aims import (
    AT_ENDS,
    AWAY,
    COMPACTED_TAILS,
    CUTS,
    INDEXED,
    LATE_BATCHES,
    LATE_MARKERS,
    SLOW_LOADS,
    SPLIT_TRANSACTIONS,
    SYNCED,
    TRANSACTIONS,
    Aim,
)
from tests.simulation.mutation_table import MutationTable, Row, row_of, said

ROOT = Path(__file__).parents[2]


class Mutation(NamedTuple):
    """In ``module`` the text ``old``, which it has once, becomes ``new``. Without an ``aim`` its
    runs are as the seeds draw them. ``test``: the unit test that finds it."""

    module: str
    old: str
    new: str
    aim: Aim | None = None
    test: str = ""

    @property
    def path(self) -> Path:
        return ROOT / (self.module.replace(".", "/") + ".py")

    @property
    def text(self) -> str:
        """The module with this fault. Raises ValueError if ``old`` is not there exactly once."""
        source = self.path.read_text("utf-8")
        count = source.count(self.old)
        if count != 1:
            raise ValueError(f"{self.module} has {count} times: {self.old}")
        return source.replace(self.old, self.new)


_PARTITION = "kafka08.cluster.partition"
_ELECTIONS = "kafka08.controller.elections"
_ACTIVE = "kafka08.controller.active_controller"
_FETCHERS = "kafka08.server.replication.fetchers"
_ROLES = "kafka08.server.replication.roles"
_REPLICAS = "kafka08.server.storage.replica_manager"
_LOG = "kafka08.log.log"
_PRODUCERS = "kafka08.log.producers"
_PRODUCER_STATE = "kafka08.log.producer_state"
_COORDINATOR = "kafka08.server.transactions.coordinator"
_TRANSACTION_STORE = "kafka08.server.transactions.store"
_OFFSETS = "kafka08.server.groups.offset_manager"
_CLEANED = "kafka08.log.cleaning.transactions"

_TRANSACTING = Aim(loads=TRANSACTIONS, only=True)
_WITH_RESTS = _TRANSACTING._replace(rests_every=5)

_AIMED_BROKERS = 3
"""In runs with an aim."""

MUTATIONS = {
    # Acknowledgements and the high watermark
    "acknowledge-before-the-isr-has-it": Mutation(
        _PARTITION,
        "            if self.high_watermark < offset:\n",
        "            if log.log_end_offset < offset:\n",
    ),
    "acknowledge-without-the-last-message": Mutation(
        "kafka08.server.storage.writes",
        "self.required[key] = appended.last_offset + 1",
        "self.required[key] = appended.last_offset",
    ),
    "high-watermark-passes-the-isr": Mutation(
        _PARTITION,
        "        for broker_id in self._holding_back():\n",
        "        for broker_id in ():\n",
    ),
    "new-leader-commits-its-whole-log": Mutation(
        _PARTITION,
        "        self.leadership_start = log.log_end_offset\n",
        "        self.leadership_start = self.high_watermark = log.log_end_offset\n",
    ),
    "serve-beyond-the-high-watermark": Mutation(
        _PARTITION,
        "        until = max(end, log.log_start_offset)\n",
        "        until = log.log_end_offset\n",
    ),
    "follower-takes-the-leaders-high-watermark": Mutation(
        _FETCHERS,
        "position.partition.follow_hw(min(answer.high_watermark, known))",
        "position.partition.high_watermark = answer.high_watermark",
    ),
    # The isr
    "position-of-the-next-fetch": Mutation(
        _REPLICAS,
        "self._record_follower_position(partition, replica_id, offset, first_offset)",
        "self._record_follower_position(partition, replica_id, log.log_end_offset, first_offset)",
    ),
    "isr-grows-too-early": Mutation(
        _PARTITION,
        "            and self._remote_leo(broker_id) >= needed\n",
        "            and self._remote_leo(broker_id) >= 0\n",
    ),
    "isr-grows-before-all-of-the-leaders-log": Mutation(
        _PARTITION,
        "        needed = max(self.high_watermark, self.leadership_start)\n",
        "        needed = self.high_watermark\n",
        Aim(("kill", "slow link")),
    ),
    "isr-counts-although-zookeeper-refused": Mutation(
        "kafka08.server.replication.isr",
        "        if written:\n",
        "        if written or version:\n",
        Aim(("silence", "expire", "kill")),
    ),
    "isr-written-without-its-version": Mutation(
        "kafka08.server.replication.isr",
        "path, znodes.encode_partition_state(node), change.zk_version, same",
        "path, znodes.encode_partition_state(node), -1, same",
    ),
    # Followers
    "follower-keeps-its-tail": Mutation(
        _FETCHERS,
        "self.move_to(partition.high_watermark)",
        "self.move_to(partition.any_log().log_end_offset)",
    ),
    "follower-skips-the-truncation": Mutation(
        _FETCHERS,
        "            self._truncate(position, parted)\n",
        "            position.offset, position.verifying = log.log_end_offset, False\n",
    ),
    "follower-takes-answers-of-a-former-leader": Mutation(
        _FETCHERS,
        "return self._positions.get(key) is position and position.partition.log is not None",
        "return position.partition.log is not None",
        Aim(("slow answers", "restart", "elect"), loads=("leader-acks",), rests_every=5),
    ),
    "leader-goes-on-to-follow": Mutation(
        _ROLES,
        "        self._fetchers.remove_fetcher_for_partitions([partition.topic_partition])\n",
        "",
    ),
    # Restarts
    "cut-to-the-high-watermark-at-restart": Mutation(
        _PARTITION,
        "        self.log = log\n",
        "        log.truncate_to(min(checkpointed_hw, log.log_end_offset)); self.log = log\n",
    ),
    "a-crash-counts-as-a-clean-stop": Mutation(
        "kafka08.log.manager",
        "        clean = directory.was_shut_down_cleanly\n",
        "        clean = True\n",
        Aim(("kill at a change", "power cut")),
    ),
    "trust-an-index-past-a-power-cut": Mutation(
        "kafka08.log.recovery.recovery",
        "segment.file.fd, 0, size, check_crc=True",
        "segment.file.fd, segment.index.last_position, size, check_crc=True",
        Aim(("power cut", "slow sync", "kill"), INDEXED),
    ),
    "skip-the-sync-of-new-names": Mutation(
        _LOG,
        "            if changes != self._synced_changes:\n",
        "            if changes < 0:\n",
    ),
    "skip-the-sync-of-a-rename": Mutation(
        "kafka08.log.directory",
        '    os.replace(path + ".tmp", path)\n    sync_directory(os.path.dirname(path) or ".")\n',
        '    os.replace(path + ".tmp", path)\n',
        Aim(("kill all", "drift", "slow sync"), SYNCED, ("admin",)),
    ),
    "skip-the-sync-of-a-log": Mutation(
        _LOG,
        "                os.fsync(file.fd)\n",
        "                pass\n",
    ),
    "append-without-its-sync": Mutation(
        _LOG,
        "            self._fresh.begin_period(leo, now)\n        self.maybe_flush()\n",
        "            self._fresh.begin_period(leo, now)\n",
    ),
    "recovery-point-survives-a-truncation": Mutation(
        _LOG,
        "            self.recovery_point = min(offset, self.recovery_point)\n"
        "            self.producers.truncate_to(",
        "            self.producers.truncate_to(",
        Aim(("slow answers", "kill all"), SYNCED, ("leader-acks",)),
    ),
    "a-cut-is-not-synced": Mutation(
        _FETCHERS,
        "        if self._cut:  # before anything is appended behind a cut\n",
        "        if False:\n",
        CUTS,
        test="tests/server/replication/test_truncation.py::test_a_cut_is_on_disk_before_anything_is_appended_behind_it",
    ),
    # Elections
    "elect-from-outside-the-isr": Mutation(
        _ELECTIONS,
        "        if replica in alive_isr:\n",
        "        if replica in alive:\n",
    ),
    "elect-although-unclean-is-forbidden": Mutation(
        "kafka08.controller.partitions",
        "if not vote.alive or not self._unclean_allowed(partition.topic):",
        "if not vote.alive:",
    ),
    "epoch-not-raised-at-an-election": Mutation(
        _ELECTIONS,
        "        leader, current.leader_epoch + 1, isr, controller_epoch, current.zk_version + 1\n",
        "        leader, current.leader_epoch, isr, controller_epoch, current.zk_version + 1\n",
    ),
    "isr-of-the-dead-is-emptied": Mutation(
        _ELECTIONS,
        "if replica not in gone) or current.isr\n",
        "if replica not in gone)\n",
    ),
    "controlled-shutdown-elects-anybody": Mutation(
        _ELECTIONS,
        "            return vote.won(replica, isr, vote.alive)\n"
        "    raise NoReplicaOnlineError(\n"
        '        f"No other replicas in ISR {csv(vote.current.isr)} besides shutting',
        "            return vote.won(vote.alive[-1], isr, vote.alive)\n"
        "    raise NoReplicaOnlineError(\n"
        '        f"No other replicas in ISR {csv(vote.current.isr)} besides shutting',
    ),
    # Controllers
    "controller-ignores-a-dead-broker": Mutation(
        _ACTIVE,
        "        self._on_broker_failure(dead | bounced)\n",
        "        self._on_broker_failure(bounced)\n",
    ),
    "controller-ignores-a-bounced-broker": Mutation(
        _ACTIVE,
        "if i in known and current[i] != known[i]}",
        "if i in known and current[i] is None}",
        Aim(("bounce", "restart")),
    ),
    "controller-does-not-send-again": Mutation(
        "kafka08.controller.channels",
        "                self._stopping.wait(RETRY_SECONDS)\n        return None\n",
        "                return None\n        return None\n",
        Aim(("reset", "restart")),
    ),
    "nobody-watches-the-controller": Mutation(
        "kafka08.controller.controller",
        "        election.watch_controller(self._election_watches, events.ControllerChanged())\n",
        "",
    ),
    "deposed-controller-writes": Mutation(
        "zk.election",
        "return client.multi([CheckOp(znodes.CONTROLLER_EPOCH, epoch.version), *ops])[1:]\n",
        "return client.multi([*ops])\n",
        Aim(("depose", "old reads", "rolling restart")),
    ),
    "stale-leader-and-isr-accepted": Mutation(
        _ROLES,
        "        if state.leader_epoch <= current:\n",
        "        if state.leader_epoch < 0:\n",
    ),
    "stale-controller-accepted": Mutation(
        _ROLES,
        "        if epoch < self.controller_epoch:\n",
        "        if epoch < 0:\n",
        Aim(("depose", "slow link")),
    ),
    "reassignment-does-not-wait-for-the-isr": Mutation(
        "kafka08.controller.reassignment",
        "            if state is not None and set(new) <= set(state.isr):\n",
        "            if state is not None:\n",
    ),
    "topic-deleted-before-its-logs": Mutation(
        "kafka08.controller.deletion",
        "                self._started(failed), ReplicaState.DELETION_INELIGIBLE\n",
        "                self._started(failed), ReplicaState.DELETION_SUCCESSFUL\n",
        Aim(("isolate",), loads=("topic-admin",), rests_every=5),
    ),
    # Groups
    "heartbeat-of-an-old-generation": Mutation(
        "kafka08.server.groups.coordinator",
        "        if not code and generation != group.generation:\n",
        "        if not code and generation > group.generation:\n",
    ),
    "commit-acknowledged-before-it-is-written": Mutation(
        "kafka08.server.groups.offset_manager",
        "        return await_acks(self._replicas, required, acks, timeout_ms)[key]\n",
        "        return NO_ERROR\n",
        Aim(("kill", "slow link")),
    ),
    "offsets-are-loaded-to-the-known-high-watermark": Mutation(
        "kafka08.server.storage.state_topic",
        "        end = max(partition.high_watermark, partition.leadership_start)\n",
        "        end = partition.high_watermark\n",
        Aim(("kill", "slow link")),
    ),
    # Sessions
    "forget-the-fence": Mutation(
        _REPLICAS,
        "        if self.fenced and not partition.is_safe_without_zookeeper(acks):\n",
        "        if self.fenced and acks > 1:\n",
        Aim(("lose the session",), loads=("leader-acks",)),
    ),
    "broker-does-not-register-again": Mutation(
        "kafka08.server.cluster_view.healthcheck",
        "            self._renew()\n",
        "",
    ),
    # Idempotent producers
    "renumber-a-retried-batch": Mutation(
        _LOG,
        "                if stored is not None:\n",
        "                if stored is batches:\n",
    ),
    "follower-forgets-producers": Mutation(
        _LOG,
        "        return batches_in(data, len(data)) if found.magic == BATCH else ()\n",
        "        return ()\n",
    ),
    "producers-are-not-restored": Mutation(
        "kafka08.log.producers",
        "            if base in plain:\n                segment",
        "            if True:\n                segment",
    ),
    # The coordinator of transactions
    "end-answered-before-its-record-has-acks": Mutation(
        _TRANSACTION_STORE,
        "        code = await_acks(self._replicas, required, -1, timeout_ms)[partition]\n",
        "        code = NO_ERROR\n",
        Aim(("isolate", "silence", "kill"), loads=TRANSACTIONS, only=True),
    ),
    "prepared-transactions-are-forgotten": Mutation(
        _COORDINATOR,
        "            if entry.current.state in PREPARED:\n"
        '                self._tasks.begin(f"end-of-',
        '            if entry.current.state in ():\n                self._tasks.begin(f"end-of-',
        _WITH_RESTS,
    ),
    "a-commit-becomes-an-abort-at-a-takeover": Mutation(
        "kafka08.server.transactions.records",
        "    state = BY_NUMBER.get(value.state)\n",
        "    state = BY_NUMBER.get(3 if value.state == 2 else value.state)\n",
        AT_ENDS,
    ),
    "takeover-keeps-the-coordinator-epoch": Mutation(
        _TRANSACTION_STORE,
        "        led = Led(partition.topic_partition.partition, partition.leader_epoch)\n",
        "        led = Led(partition.topic_partition.partition, -partition.leader_epoch)\n",
        _WITH_RESTS,
    ),
    "a-former-producer-goes-on": Mutation(
        _COORDINATOR,
        "    return NO_ERROR if current.epoch == producer.epoch else",
        "    return NO_ERROR if current.epoch >= producer.epoch else",
        _TRANSACTING,
    ),
    "timeout-without-another-epoch": Mutation(
        _COORDINATOR,
        "            self._decide(led, entry, current._replace(epoch=epoch), PREPARE_ABORT)\n",
        "            self._decide(led, entry, current, PREPARE_ABORT)\n",
        _TRANSACTING,
    ),
    "a-marker-that-failed-counts": Mutation(
        "kafka08.server.transactions.markers",
        "                    if code in _SETTLED or code in _FENCED:\n",
        "                    if key in left:\n",
        _TRANSACTING,
    ),
    "partitions-that-are-not-known-need-no-marker": Mutation(
        "kafka08.server.transactions.markers",
        "[key for key in unknown if not self._may_have(key)]",
        "unknown",
        Aim(("kill", "elect", "restart"), loads=TRANSACTIONS, only=True),
    ),
    # Transactions in partitions
    "marker-of-a-former-coordinator": Mutation(
        _PRODUCER_STATE,
        "            if batch.coordinator_epoch < known.coordinator_epoch and",
        "            if batch.coordinator_epoch < NONE and",
        LATE_MARKERS,
        test="tests/log/test_transactions.py::test_markers_are_fenced",
    ),
    "late-batch-begins-a-transaction": Mutation(
        "kafka08.server.transactions.verification",
        "        if self._config.transaction_partition_verification_enable:\n",
        "        if not self._config.transaction_partition_verification_enable:\n",
        LATE_BATCHES,
        test="tests/server/transactions/test_verification.py::test_a_write_without_its_partition_is_refused",
    ),
    "serve-beyond-the-last-stable-offset": Mutation(
        _PARTITION,
        "        end = self.last_stable_offset if committed else self.high_watermark\n",
        "        end = self.high_watermark\n",
        _TRANSACTING,
    ),
    "stable-before-the-isr-has-the-marker": Mutation(
        _PRODUCERS,
        "            if last >= high_watermark:\n",
        "            if last < 0:\n",
        Aim(("kill", "slow link", "isolate"), loads=TRANSACTIONS, only=True),
    ),
    "fetch-does-not-name-the-aborted": Mutation(
        "kafka08.log.aborted",
        "        if not self._has_any:\n            return []\n",
        "        return []\n",
        _TRANSACTING,
    ),
    "index-of-aborted-is-not-made-again": Mutation(
        _PRODUCERS,
        "        segment.aborted.replace_from(start, aborted)\n",
        "",
        Aim(("power cut", "slow sync", "kill"), loads=TRANSACTIONS, rests_every=5, only=True),
    ),
    "index-of-aborted-is-not-truncated": Mutation(
        "kafka08.log.segments.transaction_index",
        "        if same < len(known):\n",
        "        if same < 0:\n",
        Aim(("kill", "isolate", "slow answers"), loads=TRANSACTIONS, rests_every=5, only=True),
    ),
    "open-transactions-outlive-a-truncation": Mutation(
        _PRODUCER_STATE,
        "        if self.transactional_end > end:\n",
        "        if end < 0:\n",
        SPLIT_TRANSACTIONS,
        test="tests/log/test_transactions.py::test_a_truncation",
    ),
    "snapshot-without-open-transactions": Mutation(
        _PRODUCER_STATE,
        "known.coordinator_epoch, known.transaction_start)\n\n\n",
        "known.coordinator_epoch, NONE)\n\n\n",
        Aim(("restart", "kill"), loads=TRANSACTIONS, rests_every=5, only=True),
    ),
    "compaction-removes-a-marker-that-is-needed": Mutation(
        _CLEANED,
        "        if header.producer_id in self._begun:\n",
        "        if header.producer_id in ():\n",
        Aim(("kill", "restart", "drift"), loads=TRANSACTIONS, rests_every=5, only=True),
    ),
    "markers-go-while-a-replica-is-away": Mutation(
        "kafka08.log.cleaning.cleaner",
        "            if found.keeps_tombstones:\n",
        "            if found.keeps_tombstones is None:\n",
        AWAY,
        test="tests/log/cleaning/test_compaction.py"
        "::TestTombstones::test_they_stay_while_a_replica_may_not_have_them",
    ),
    "a-marker-is-a-gap-for-followers": Mutation(
        "kafka08.log.recovery.divergence",
        "        if magic_of(data) == BATCH and header_of(data).is_control:\n",
        "        if magic_of(data) < 0:\n",
        COMPACTED_TAILS,
        test="tests/log/recovery/test_divergence.py::test_a_marker_is_no_gap",
    ),
    "compaction-keeps-what-was-aborted": Mutation(
        "kafka08.log.cleaning.compaction",
        "        if header in survival.aborted:\n",
        "        if header in ():\n",
        Aim(("kill", "restart", "drift"), loads=TRANSACTIONS, rests_every=5, only=True),
    ),
    "aborted-messages-supersede": Mutation(
        "kafka08.log.cleaning.key_map",
        "header_of(data, position) in self._aborted:\n",
        "header_of(data, position) in ():\n",
        Aim(("kill", "restart", "drift"), loads=TRANSACTIONS, rests_every=5, only=True),
    ),
    # Offsets in transactions
    "pending-offsets-count-at-once": Mutation(
        _OFFSETS,
        "            self._pending.add(key.partition, producer_id, entry, Stored(committed, at))\n",
        "            self._remember(entry, committed, at)\n",
        _TRANSACTING,
    ),
    "ends-while-offsets-are-loaded-are-forgotten": Mutation(
        _OFFSETS,
        "        if number in self._topic.loading:\n            # The load",
        "        if number < 0:\n            # The load",
        SLOW_LOADS,
        test="tests/server/groups/test_pending_offsets.py::test_a_marker_that_comes_while_its_offsets_are_loaded",
    ),
    "pending-offsets-are-lost-at-a-takeover": Mutation(
        _OFFSETS,
        "                    self._pending.add(loader.number, pending_of, entry, stored)\n",
        "                    pass\n",
        Aim(("kill", "isolate", "elect"), loads=TRANSACTIONS, only=True),
    ),
    "aborted-offsets-count": Mutation(
        _OFFSETS,
        "        if ended.is_committed:\n            for key, stored in pending.items():\n",
        "        if pending:\n            for key, stored in pending.items():\n",
        _TRANSACTING,
    ),
}


# Planting


class _Loader(SourceFileLoader):
    """Compiles a module with a fault."""

    def __init__(self, name: str, mutation: Mutation) -> None:
        super().__init__(name, str(mutation.path))
        self._text = mutation.text

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = compile(self._text, self.path, "exec", dont_inherit=True)
        return code


class Finder:
    """Finds the module of a mutation."""

    def __init__(self, mutation: Mutation) -> None:
        self._module = mutation.module
        self._loader = _Loader(mutation.module, mutation)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._module:
            return None
        return importlib.util.spec_from_file_location(name, self._loader.path, loader=self._loader)


def plant(mutation: Mutation) -> None:
    """From now on imports find the module with the fault. Raises ValueError if it was imported
    before, or as ``Mutation.text``."""
    if mutation.module in sys.modules:
        raise ValueError(f"{mutation.module} was imported already")
    sys.meta_path.insert(0, Finder(mutation))


def outcome_of_test(name: str) -> int:
    """The exit status of pytest for the ``test`` of a mutation that is planted: 1 if the test finds
    it."""
    environment = {**os.environ, "KAFKA08_INTERPRETED": "1"}
    command = [sys.executable, "-c", _TEST, name, str(ROOT / MUTATIONS[name].test)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    return done.returncode


_TEST = """
import sys
from tests.simulation.mutations import MUTATIONS, plant
plant(MUTATIONS[sys.argv[1]])
import pytest
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", sys.argv[2]]))
"""


# Searching


def _search(row: Row, runs: int) -> Row:
    """In a process that has not imported production code: plant it, and make so many runs, or until
    it is found. Prints the row after each."""
    mutation = MUTATIONS[row.name]
    plant(mutation)
    from tests.simulation import plan as plans
    from tests.simulation.conditions import aimed
    from tests.simulation.trials import attempt

    logging.disable(logging.CRITICAL)
    for _ in range(runs):
        aim = mutation.aim
        plan = plans.draw(row.seed, brokers=_AIMED_BROKERS if aim else None)
        trial = attempt(plan, drawn=aim and aimed(row.seed, aim))
        spent = row.spent + sum(trial.faults.values())
        if trial.failure:
            row = row._replace(spent=spent, said=said(trial.reason) or "an error")
        else:
            row = row._replace(spent=spent, seed=row.seed + 1)
        print(row, flush=True)
        if row.is_found:
            break
    return row


def _rows(row: Row, runs: int) -> Iterator[Row]:
    """Those that ``_search`` prints in a process of its own."""
    environment = {**os.environ, "KAFKA08_INTERPRETED": "1", "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", "tests.simulation.mutations", row.name]
    command += ["--here", str(row.spent), "--seed", str(row.seed), "--runs", str(runs)]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if found := row_of(line):
                yield found
    if process.returncode:
        raise RuntimeError(f"the search for {row.name} ended with {process.returncode}")


def _spent_minutes() -> float:
    """Of the processor, by the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) / 60


def main(argv: list[str]) -> int:
    options = _parser().parse_args(argv)
    names = options.names or [name for name, each in MUTATIONS.items() if not each.test]
    unknown = [name for name in names if name not in MUTATIONS]
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}")
    if options.here is not None:
        _search(Row(names[0], options.here, options.seed), options.runs)
        return 0
    table = MutationTable(list(MUTATIONS), options.table)
    while _spent_minutes() < options.minutes:
        name = table.least_searched(names, options.faults)
        if name is None:
            break
        for row in _rows(table.rows.get(name, Row(name, 0, options.seed)), options.runs):
            table.put(row)
            print(row, flush=True)
    print(table)
    found = [name for name in names if name in table.rows and table.rows[name].is_found]
    return 0 if len(found) == len(names) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.mutations", description=__doc__
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="all that clusters find")
    parser.add_argument("--faults", type=int, default=2000, help="give a mutation up after these")
    parser.add_argument("--seed", type=int, default=1, help="of the first run")
    parser.add_argument("--runs", type=int, default=4, help="of one before it is another's turn")
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="of the processor, for all"
    )
    parser.add_argument("--table", type=Path, help="the rows until now, and from now on")
    parser.add_argument("--here", type=int, metavar="SPENT", help="one of them in this process")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

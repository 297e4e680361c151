"""One run: a cluster, load on it, faults, peace, and the verdict."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from integration.cluster.cluster import Cluster, eventually
from integration.cluster.disks import LoopDisk
from integration.cluster.hosts import Hosts
from integration.faults import checker, plan
from integration.faults.history import History, load
from integration.faults.idempotent import IdempotentProducer, JavaProducer, LibrdkafkaProducer
from integration.faults.load import Leaders, Producer, Reader, Task, read_to_end
from integration.faults.nemesis import ZOOKEEPER, Nemesis
from integration.faults.replicas import difference
from integration.faults.scenario import Scenario
from integration.faults.stalls import Stalls, longest
from integration.faults.transactions import checker as transactions
from integration.faults.transactions import load as transactional
from integration.faults.transactions.checker import TransactionVerdict
from integration.faults.transactions.load import TransactionalLoad

TOPIC = "ledger"
REPLICAS = 3
PEACE_S = 90.0
STUCK_S = 90.0
FINAL_READ_S = 120.0
_PROGRESS_S = 10.0
_DISK_MEGABYTES = 1024

PROPS = {
    "zookeeper.session.timeout.ms": int(plan.SESSION_S * 1000),
    "replica.lag.time.max.ms": 2000,
    "replica.fetch.wait.max.ms": 250,
    "replica.socket.timeout.ms": 4000,
    "replica.high.watermark.checkpoint.interval.ms": 1000,
    "controller.socket.timeout.ms": 4000,
    "controlled.shutdown.retry.backoff.ms": 500,
    "unclean.leader.election.enable": "false",
    "auto.leader.rebalance.enable": "true",
    "leader.imbalance.check.interval.seconds": 20,
    "num.replica.fetchers": 2,
    "log.segment.bytes": 1 << 20,
}
TOPIC_CONFIG = {"min.insync.replicas": 2}

AnyProducer: TypeAlias = "Producer | IdempotentProducer"


class Options(NamedTuple):
    """``broken`` runs every broker by the launcher of integration.faults.broken. ``idempotent``:
    the producers are those of librdkafka and Java, and nothing may be stored twice.
    ``transactions``: so many writers and converters of each of these two clients. ``scenario``: its
    faults instead of drawn ones. ``kind``: of all brokers, ``ours`` or ``modern``."""

    faults: int
    seed: int
    directory: Path
    brokers: int = 5
    partitions: int = 4
    producers: int = 3
    pause_s: float = 0.08
    broken: bool = False
    stop_early: bool = False
    idempotent: bool = False
    transactions: int = 0
    scenario: Scenario | None = None
    kind: str = "ours"

    @property
    def later_clients(self) -> bool:
        """Whether brokers must tell their versions."""
        return self.idempotent or self.transactions > 0


def options_of(scenario: Scenario, directory: Path) -> Options:
    """Of a run of ``scenario``."""
    return Options(
        len(scenario.moments),
        0,
        directory,
        brokers=scenario.brokers,
        partitions=scenario.partitions,
        producers=scenario.producers,
        scenario=scenario,
    )


class Outcome(NamedTuple):
    """The checker's verdict, and what only the run itself can see."""

    verdict: checker.Verdict
    transactions: TransactionVerdict
    stuck: list[str]
    diverged: list[str]
    unexpected: list[str]
    faults: int
    seconds: float
    stalls: Stalls

    @property
    def sound(self) -> bool:
        found = self.stuck or self.diverged or self.unexpected
        return self.verdict.sound and self.transactions.sound and not found

    def report(self) -> str:
        """The verdict as text, violations first."""
        verdict = self.verdict
        lines = [*verdict.lines, *self.transactions.lines]
        lines += [f"stuck: {text}" for text in self.stuck]
        lines += [f"diverged: {text}" for text in self.diverged]
        lines += [f"unexpected: {text}" for text in self.unexpected]
        counts = {name: verdict.counts.get(name, 0) for name in checker.KINDS}
        counts |= {"stuck": len(self.stuck), "diverged": len(self.diverged)}
        counts["unexpected"] = len(self.unexpected)
        numbers = ", ".join(f"{name} {number}" for name, number in counts.items())
        lines.append(
            f"{'SOUND' if self.sound else 'VIOLATED'}: {self.faults} faults in "
            f"{self.seconds:.0f} s, acknowledged {verdict.acknowledged}, stored {verdict.stored}, "
            f"duplicated {verdict.duplicated}, {numbers}; {self.stalls}"
        )
        if self.transactions.any:
            lines.append(str(self.transactions))
        return "\n".join(lines)


class _Watchdog(threading.Thread):
    """Finds partitions, and tasks that have their own, without progress although at most one broker
    is in trouble. ``watched``: tasks of which one must get on, by what they stand for."""

    def __init__(
        self, watched: Mapping[str, Sequence[Task]], nemesis: Nemesis, history: History
    ) -> None:
        super().__init__(name="watchdog", daemon=True)
        self.stuck: list[str] = []
        self._watched = watched
        self._nemesis = nemesis
        self._history = history
        self._idle: dict[str, float] = {}
        self._seen: dict[str, float] = {}
        self._ending = threading.Event()

    def run(self) -> None:
        before = time.monotonic()
        while not self._ending.wait(0.5):
            now = time.monotonic()
            self._look(min(1.0, now - before))
            before = now

    def end(self) -> None:
        self._ending.set()
        self.join()

    def _look(self, elapsed: float) -> None:
        impaired = self._nemesis.impaired
        calm = ZOOKEEPER not in impaired and len(impaired) <= 1
        for name, tasks in self._watched.items():
            at = max(each.progress_at for each in tasks)
            if at != self._seen.get(name):
                self._seen[name] = at
                self._idle[name] = 0.0
            elif calm:
                idle = self._idle[name]
                self._idle[name] = idle + elapsed
                if idle < STUCK_S <= idle + elapsed:
                    text = f"{name}: nothing for {STUCK_S:.0f} s of relative calm"
                    self._history.add("note", what=text)
                    self.stuck.append(text)


class Run:
    """``go`` once. No process is left running, also after a failure."""

    def __init__(
        self, options: Options, hosts: Hosts, say: Callable[[str], None] = lambda text: None
    ) -> None:
        self._options = options
        self._hosts = hosts
        self._say = say
        self._readers: list[Reader] = []
        self._producers: list[AnyProducer] = []
        self._stuck: list[str] = []
        self._disks: dict[int, LoopDisk] = {}
        options.directory.mkdir(parents=True, exist_ok=True)
        self.history = History(options.directory / "history.jsonl")
        later: dict[str, object] = {"api.versions.enable": str(options.later_clients).lower()}
        if options.kind != "ours":  # and take more than one to start on a busy machine
            later["zookeeper.session.timeout.ms"] = 9000
        self._cluster = Cluster(
            hosts,
            options.directory,
            options.kind,
            brokers=options.brokers,
            props={**PROPS, **later, **transactional.PROPS},
        )
        for broker in self._cluster.brokers.values():
            if options.broken:
                module = [sys.executable, "-u", "-m", "integration.faults.broken"]
                broker.command = [*broker.host.prefix, *module, str(broker.config)]
        self._bootstrap = [(b.host.address, b.port) for b in self._cluster.brokers.values()]
        self._leaders = Leaders(TOPIC, self._bootstrap)
        self._transactional = TransactionalLoad(
            self._cluster,
            self.history,
            options.directory,
            partitions=options.partitions,
            count=options.transactions,
            pause_s=options.pause_s,
            say=say,
        )

    def go(self) -> Outcome:
        begin = time.monotonic()
        with self._hosts.inside():
            try:
                nemesis = self._under_faults()
                diverged = self._afterwards()
            finally:
                for task in self._tasks:
                    task.end()
                self._cluster.stop()
                for disk in self._disks.values():
                    disk.unmount()
                self.history.close()
        # Brokers of 3.9.1 end if their session expires while they start.
        unexpected = [*nemesis.unexpected] if self._options.kind == "ours" else []
        unexpected += [f"{task.name}: {task.crash!r}" for task in self._tasks if task.crash]
        return Outcome(
            checker.check(load(self.history.path)),
            transactions.check(load(self.history.path), [transactional.ORDERS]),
            self._stuck,
            diverged,
            unexpected,
            nemesis.begun,
            time.monotonic() - begin,
            longest(load(self.history.path)),
        )

    @property
    def _tasks(self) -> list[Task]:
        return [*self._producers, *self._readers, *self._transactional.tasks]

    def _make_disks(self) -> None:
        """Give every broker a disk that can be filled, where that is possible. The others end if
        theirs is full."""
        if self._options.kind != "ours":
            return
        try:
            for broker in self._cluster.brokers.values():
                image = broker.directory / "disk.img"
                self._disks[broker.id] = LoopDisk(image, broker.data, _DISK_MEGABYTES)
        except RuntimeError as error:
            self._say(f"no full disks: {error}")
            for disk in self._disks.values():
                disk.unmount()
            self._disks.clear()

    def _under_faults(self) -> Nemesis:
        options, cluster = self._options, self._cluster
        self._make_disks()
        cluster.start()
        ids = sorted(cluster.brokers)
        lists = [
            [ids[(number + place) % len(ids)] for place in range(REPLICAS)]
            for number in range(options.partitions)
        ]
        cluster.new_topic(*lists, config=TOPIC_CONFIG, name=TOPIC)
        for partition in range(options.partitions):
            self._readers.append(Reader(TOPIC, partition, self._leaders, self.history))
            self._producers += [
                self._producer(number, partition) for number in range(options.producers)
            ]
        for task in self._tasks:
            task.start()
        if options.transactions:
            self._transactional.start(lists, TOPIC_CONFIG)
        nemesis = Nemesis(cluster, TOPIC, self.history, self._disks)
        watchdog = _Watchdog(self._watched(), nemesis, self.history)
        watchdog.start()
        self._carry_out(nemesis)
        nemesis.heal()
        watchdog.end()
        self._stuck += watchdog.stuck
        return nemesis

    def _watched(self) -> dict[str, list[Task]]:
        found: dict[str, list[Task]] = {}
        for producer in self._producers:
            found.setdefault(f"partition {producer.partition}", []).append(producer)
        for each in self._transactional.transactors:
            found[each.name] = [each]
        return found

    def _producer(self, number: int, partition: int) -> AnyProducer:
        options = self._options
        args = (number, TOPIC, partition, self._leaders, self.history, options.pause_s)
        if options.idempotent:
            kind = JavaProducer if number % 2 else LibrdkafkaProducer
            return kind(*args, bootstrap=self._bootstrap)
        return Producer(*args)

    def _carry_out(self, nemesis: Nemesis) -> None:
        options = self._options
        if options.scenario is not None:
            begun = time.monotonic()
            for moment in options.scenario.moments:
                nemesis.pass_until(begun + moment.at)
                nemesis.carry_out(moment.fault)
            nemesis.pass_until(begun + options.scenario.seconds)
            return
        faults = plan.draw(
            options.seed,
            options.brokers,
            options.partitions,
            cuts=not self._hosts.no_cuts,
            disks=bool(self._disks),
        )
        said = time.monotonic()
        for fault in faults:
            if nemesis.begun >= options.faults or (options.stop_early and self._doomed()):
                return
            nemesis.carry_out(fault)
            if time.monotonic() > said + _PROGRESS_S:
                said = time.monotonic()
                acknowledged = sum(each.acknowledged for each in self._producers)
                tries = sum(each.tries for each in self._producers)
                self._say(
                    f"{nemesis.begun}/{options.faults} faults, acknowledged {acknowledged} in "
                    f"{tries} tries, read {sum(each.read for each in self._readers)}, committed "
                    f"{self._transactional.committed} transactions; {fault}"
                )

    def _doomed(self) -> bool:
        """Whether the history so far is beyond repair: an offset has changed."""
        return bool(checker.check(load(self.history.path), final=False).counts)

    def _afterwards(self) -> list[str]:
        """Peace: everybody catches up, the last sets arrive, all is read, logs are compared."""
        cluster, options = self._cluster, self._options
        self._say("healed; waiting for every replica")
        try:
            eventually("the brokers", lambda: cluster.ids() == set(cluster.brokers), PEACE_S)
            self._settle()
        except AssertionError as error:
            self._stuck.append(str(error))
        if options.transactions:
            self._stuck += self._transactional.finish(PEACE_S)
        for producer in self._producers:
            producer.end()
        deadline = time.monotonic() + PEACE_S
        for producer in self._producers:
            producer.join(max(0.0, deadline - time.monotonic()))
            if producer.is_alive():
                self._stuck.append(f"{producer.name}: the last set is never acknowledged")
                producer.abandon()
                producer.join(30)
        for reader in self._readers:
            reader.end()
            reader.join(30)
        for partition in range(options.partitions):
            try:
                wanted = max(p.end_offset for p in self._producers if p.partition == partition)
                end = read_to_end(
                    self._leaders, TOPIC, partition, self.history, wanted, FINAL_READ_S
                )
                self._say(f"partition {partition}: {end} records")
            except TimeoutError as error:
                self._stuck.append(str(error))
        return self._compare()

    def _settle(self) -> None:
        cluster = self._cluster
        cluster.await_no_node("/admin/reassign_partitions")
        for partition in range(self._options.partitions):
            replicas = (cluster.assignment(TOPIC) or {})[str(partition)]
            cluster.await_isr(TOPIC, replicas, partition)

    def _compare(self) -> list[str]:
        """Bytes of all replicas, once every isr is full."""
        cluster = self._cluster
        found = []
        for partition in range(self._options.partitions):
            replicas = (cluster.assignment(TOPIC) or {})[str(partition)]

            def logs(partition: int = partition, ids: list[int] = replicas) -> dict[int, bytes]:
                return {i: cluster.brokers[i].log_bytes(TOPIC, partition) for i in ids}

            try:
                eventually("equal ends", lambda f=logs: len({*map(len, f().values())}) == 1, 30)
            except AssertionError:
                sizes = {i: len(data) for i, data in logs().items()}
                found.append(f"partition {partition}: sizes {sizes}")
            text = difference(logs())
            if text:
                found.append(f"partition {partition}: {text}")
        return found

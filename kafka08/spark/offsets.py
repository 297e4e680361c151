"""A driver's requests to the brokers: partitions and their first and last offsets.

After a failure metadata is fetched again and the request is repeated: a leader that has just died
must not end a query. The same holds for a broker that does not know a topic: one that has just
started does not know topics until the controller sends them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial

from kafka08.client import log_offsets
from kafka08.client.cluster import ClusterClient
from kafka08.client.requests import Call, flatten
from kafka08.client.routing import Answers, ask_leaders, by_leader
from kafka08.common import EARLIEST_TIME, LATEST_TIME, Broker, TopicPartition
from kafka08.errors import KafkaError, UnknownTopicOrPartitionError, raise_for_code
from kafka08.protocol import schemas
from kafka08.runtime import Runtime, ThreadRuntime
from kafka08.spark.errors import UnreachableError, naming_leader
from kafka08.spark.patience import WaitLog, patient

logger = logging.getLogger("kafka08.spark.offsets")

# How often latest offsets that went back are asked for again.
DOUBT_RETRIES = 3
# A topic does not exist if this many brokers, which know other topics, do not know it.
PROOF = 2


class _GoneError(UnknownTopicOrPartitionError):
    """Partitions that are proved not to exist."""


class _MissingError(UnknownTopicOrPartitionError):
    """A broker does not know of some topics; ``found`` is what it knows."""

    def __init__(self, topics: Iterable[str], found: list[TopicPartition]) -> None:
        super().__init__(f"Not known to a broker: {', '.join(sorted(topics))}")
        self.found = found


class LogOffsetReader:
    """Metadata and offsets of a cluster. ``retries`` tries after the first, ``backoff_ms`` apart;
    None: as many as PATIENCE_S has room for.

    ``committed``: for readers of committed transactions, which see none behind the first open one.
    For it and for ``since`` the connections of ``cluster`` must ask for versions. Not to be
    pickled: make one where it is used.
    """

    def __init__(
        self,
        cluster: ClusterClient,
        *,
        retries: int | None = None,
        backoff_ms: int = 1000,
        runtime: Runtime | None = None,
        committed: bool = False,
    ) -> None:
        self._runtime = runtime or ThreadRuntime()
        self._committed = committed
        self._retries = retries
        self._backoff = backoff_ms / 1000
        self._cluster = cluster
        self._log = WaitLog(logger, self._runtime.clock)

    def partitions(self, topics: Iterable[str]) -> list[TopicPartition]:
        """All partitions of ``topics``, sorted. Raises UnknownTopicOrPartitionError for a topic
        that does not exist (a broker may create it, and then it is found on the next try)."""
        names = list(topics)
        found = self.find(names, lambda there: set(names) - {tp.topic for tp in there})
        missing = sorted(set(names) - {tp.topic for tp in found})
        if missing:
            raise UnknownTopicOrPartitionError(", ".join(missing))
        return found

    def find(
        self,
        names: Collection[str],
        lacks: Callable[[Collection[TopicPartition]], Collection[str]],
    ) -> list[TopicPartition]:
        """The partitions there are of ``names``, or of all topics when none is named; sorted.

        ``lacks`` says of which topics something is missing. While it names any, the brokers are
        asked again, until PROOF answers know other topics but not these. Where no other topic
        exists, or is whole, the last of all tries decides. Raises UnreachableError when that
        comes from brokers that the controller has sent nothing, and the error of a topic that
        has not been created yet.
        """
        wanted, question = set(names), list(names)
        proofs = 0

        def ask() -> list[TopicPartition]:
            nonlocal question, proofs
            answer = self._cluster.refresh(question)
            found = sorted(tp for tp in flatten(answer.topics) if not wanted or tp.topic in wanted)
            missing = set(lacks(found))
            if answer.brokers and not missing:
                return found
            if not answer.brokers:
                raise UnreachableError(
                    "the brokers that answer know of no broker and no topic: they have just "
                    "started and wait for the controller, or the cluster has no topics"
                )
            _raise_unless_unknown(answer)
            proofs += any(t.partitions and t.topic not in missing for t in answer.topics)
            if proofs == PROOF:
                return found
            # Only the whole list shows whether who answers knows any other topic.
            question = []
            raise _MissingError(missing, found)

        # One answer proves nothing, however few retries were asked for.
        retries = None if self._retries is None else max(self._retries, PROOF - 1)
        try:
            return patient(self._runtime, self._backoff, retries).run(ask, again=self._again)
        except _MissingError as error:
            return error.found

    def _again(self, error: Exception) -> None:
        self._log.waiting("Asking for partitions and offsets", error)

    def gone(self, partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
        """Those that do not exist, proved as ``find`` does."""
        asked = set(partitions)

        def lacks(there: Collection[TopicPartition]) -> set[str]:
            return {tp.topic for tp in asked.difference(there)}

        return asked.difference(self.find(sorted(lacks(())), lacks))

    def leaders(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Broker]:
        """The leaders as of now; partitions without one are left out."""
        found = {}
        for tp in partitions:
            try:
                found[tp] = self._cluster.leader(tp)
            except KafkaError:
                continue
        return found

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each partition. Raises OSError or KafkaError after all tries."""
        return self._offsets(dict.fromkeys(partitions, EARLIEST_TIME), log_offsets.before)

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset after the last message of each partition that may be read now."""
        ends = partial(log_offsets.ends, committed=self._committed)
        return self._offsets(dict.fromkeys(partitions, LATEST_TIME), ends)

    def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The same, messages of open transactions included."""
        return self._offsets(dict.fromkeys(partitions, LATEST_TIME), log_offsets.before)

    def since(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The first message of each partition since its time (ms of the epoch), by the messages'
        timestamps; NO_OFFSET where no message is that late."""
        return self._offsets(times, partial(log_offsets.since, committed=self._committed))

    def latest_since(
        self,
        start: Mapping[TopicPartition, int],
        partitions: Iterable[TopicPartition],
        doubts: int = DOUBT_RETRIES,
    ) -> dict[TopicPartition, int]:
        """As ``latest``; a log that ends before ``start`` is asked ``doubts`` times more, as a
        leader that has just been elected may not know yet how far it may serve. Where it reaches
        ``start`` with an open transaction that begins before, that is as far as may be read."""
        found = self.latest(partitions)
        for _ in range(doubts):
            late = behind(found, start)
            if not late:
                break
            self._runtime.sleep(self._backoff)
            found.update(self.latest(late))
        if self._committed and (late := behind(found, start)):
            ends = self.ends(late)
            found.update({tp: start[tp] for tp in late if ends[tp] >= start[tp]})
        return found

    def _offsets(
        self,
        times: Mapping[TopicPartition, int],
        ask: Callable[[Call, Mapping[TopicPartition, int]], Answers],
    ) -> dict[TopicPartition, int]:
        missing = dict(times)
        found: dict[TopicPartition, int] = {}

        def ask_leader(leader: Broker, led: Mapping[TopicPartition, int]) -> Answers:
            with naming_leader(leader, led):
                return ask(partial(self._cluster.call, leader), led)

        def ask_all() -> dict[TopicPartition, int]:
            try:
                answers = ask_leaders(by_leader(missing, self._cluster.leader), ask_leader)
                found.update(answers.values)
                for tp in answers.values:
                    del missing[tp]
                answers.checked()
            except UnknownTopicOrPartitionError:
                # A leader that has just started does not know its partitions either.
                if gone := self.gone(missing):
                    raise _GoneError(", ".join(map(str, sorted(gone)))) from None
                raise
            return found

        retry = patient(
            self._runtime,
            self._backoff,
            self._retries,
            lambda error: not isinstance(error, _GoneError),
        )
        return retry.run(
            ask_all,
            again=self._again,
            refresh=lambda: self._cluster.refresh(sorted({tp.topic for tp in missing})),
        )


def _raise_unless_unknown(answer: schemas.MetadataResponse) -> None:
    """A topic's own error, such as that it is being created; not that it is unknown."""
    for topic in answer.topics:
        if not topic.partitions and topic.error != UnknownTopicOrPartitionError.code:
            raise_for_code(topic.error, f"No metadata for topic {topic.topic}: code {topic.error}")


def resolve(
    wanted: Mapping[TopicPartition, int], reader: LogOffsetReader
) -> dict[TopicPartition, int]:
    """Offsets with -2 and -1 replaced by the earliest and latest of their partitions."""
    early = [tp for tp, offset in wanted.items() if offset == EARLIEST_TIME]
    late = [tp for tp, offset in wanted.items() if offset == LATEST_TIME]
    found = dict(wanted)
    if early:
        found.update(reader.earliest(early))
    if late:
        found.update(reader.latest(late))
    return found


def behind(
    latest: Mapping[TopicPartition, int], start: Mapping[TopicPartition, int]
) -> list[TopicPartition]:
    """Partitions whose log ends before ``start``."""
    return [tp for tp, offset in latest.items() if offset < start.get(tp, 0)]

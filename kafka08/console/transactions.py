"""The transactions that are open in a cluster, where they hold readers back, and their abort.

A partition is held back where its last stable offset is below its high watermark. Coordinators say
which transactions they have, leaders which producers have begun one in a partition. One that a
leader has and no coordinator hangs: only a marker in each of its partitions ends it.

Brokers of 0.8.2.2, which have no transactions, are not asked. One that does not negotiate versions,
as kafka08 beside a broker of 0.8.2.2, is asked again after a minute.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from kafka08.client import log_offsets, transactions
from kafka08.client.cluster import ClusterClient
from kafka08.client.requests import Call
from kafka08.client.routing import by_leader
from kafka08.common import Broker, TopicPartition
from kafka08.console.cluster_state import ClusterState
from kafka08.errors import NO_ERROR, AdminOperationError, KafkaError, LaterCode, meaning_of
from kafka08.lag.collector import Lags
from kafka08.protocol.later_schemas import InitProducerIdRequest
from kafka08.protocol.negotiation import NoApiVersionsError
from kafka08.protocol.transaction_schemas import (
    ActiveProducer,
    DescribedTransaction,
    DescribeTransactionsRequest,
)
from kafka08.runtime import Clock

logger = logging.getLogger("kafka.console.Transactions")

ONGOING, HANGING = "Ongoing", "Hanging"
_OPEN = (ONGOING, "PrepareCommit", "PrepareAbort")
_NOBODY = -1
_SILENT_S = 60.0


class OpenTransaction(NamedTuple):
    """``state``: HANGING without a coordinator. Such a transaction has no ``id`` and no timeout,
    and ``start_ms`` is the time of its last message: it is at least that old. ``age_ms``: when it
    was read. ``partitions``: the producer as the leader knows it; None where it has written nothing
    yet, or the leader does not say."""

    id: str
    state: str
    producer_id: int
    epoch: int
    coordinator: int
    start_ms: int | None
    age_ms: int | None
    timeout_ms: int | None
    partitions: Mapping[TopicPartition, ActiveProducer | None]

    @property
    def name(self) -> str:
        """The text that is typed to abort it."""
        return self.id or str(self.producer_id)

    @property
    def key(self) -> str:
        """Another one for the next transaction of its producer."""
        return f"{self.producer_id}:{self.epoch}:{self.start_ms}"

    @property
    def is_hanging(self) -> bool:
        return self.state == HANGING

    @property
    def may_be_aborted(self) -> bool:
        """Otherwise its outcome is decided."""
        return self.state in (ONGOING, HANGING)

    @property
    def is_late(self) -> bool:
        """Whether its coordinator should have ended it before."""
        if self.age_ms is None or self.timeout_ms is None:
            return self.is_hanging
        return self.age_ms > self.timeout_ms

    def start(self, tp: TopicPartition) -> int | None:
        """Its first offset in a partition."""
        producer = self.partitions.get(tp)
        return None if producer is None else producer.transaction_start


class Held(NamedTuple):
    """Readers of committed transactions end at ``stable``, others at ``end``. ``holder``: the
    transaction for which they wait, if it is known."""

    stable: int
    end: int
    holder: OpenTransaction | None = None

    @property
    def messages(self) -> int:
        return self.end - self.stable

    @property
    def is_late(self) -> bool:
        return self.holder is not None and self.holder.is_late


class Transactions(NamedTuple):
    """``open``: the oldest first. ``held``: the most messages first. ``errors``: why brokers did
    not say what they know. ``served``: false if no broker has transactions. ``silent``: brokers of
    this project that do not serve them now."""

    open: tuple[OpenTransaction, ...]
    held: Mapping[TopicPartition, Held]
    errors: Mapping[int, str]
    served: bool
    silent: tuple[int, ...] = ()

    @property
    def late(self) -> list[OpenTransaction]:
        return [each for each in self.open if each.is_late]

    def held_by(self, transaction: OpenTransaction) -> int:
        """The messages for which readers wait until this transaction ends."""
        found = (self.held.get(tp) for tp in transaction.partitions)
        return sum(each.messages for each in found if each and each.holder is transaction)


class _Begun(NamedTuple):
    """A transaction in a partition."""

    tp: TopicPartition
    producer_id: int
    start: int


@dataclass
class _Round:
    """The questions of one round. A broker that does not answer is asked no more, and is in
    ``silent`` if it does not negotiate versions. ``errors``: why brokers did not say all."""

    _cluster: ClusterClient
    brokers: Mapping[int, Broker]
    leaders: Mapping[TopicPartition, Broker]
    silent: set[int]
    errors: dict[int, str] = field(default_factory=dict)
    _failed: set[int] = field(default_factory=set)

    def held(self, ends: Mapping[TopicPartition, int | None]) -> dict[TopicPartition, Held]:
        found: dict[TopicPartition, Held] = {}
        for leader, tps in self._by_leader(ends).items():
            with self._noting(leader) as call:
                for tp, stable in log_offsets.stable(call, tps).values.items():
                    end = ends[tp]
                    if end is not None and stable < end:
                        found[tp] = Held(stable, end)
        return found

    def described(self) -> list[tuple[int, DescribedTransaction]]:
        """Those that coordinators have open, each with its coordinator."""
        found = []
        for id_, broker in self.brokers.items():
            if not self._answers(id_):
                continue
            with self._noting(broker) as call:
                names = [each.transactional_id for each in transactions.coordinated(call, _OPEN)]
                answers = call(DescribeTransactionsRequest(names)).transactions if names else []
                found += [
                    (id_, each)
                    for each in answers
                    if each.error == NO_ERROR and each.state in _OPEN
                ]
        return found

    def begun(
        self, tps: Iterable[TopicPartition]
    ) -> dict[tuple[TopicPartition, int], ActiveProducer]:
        """The producers, by their ids, that have a transaction in a partition."""
        found = {}
        for leader, led in self._by_leader(tps).items():
            with self._noting(leader) as call:
                for tp, answer in transactions.known_producers(call, led).items():
                    if answer.error:
                        self.errors.setdefault(leader.id, f"{tp}: {meaning_of(answer.error)}")
                    for each in answer.producers:
                        if each.transaction_start >= 0:
                            found[tp, each.producer_id] = each
        return found

    def _by_leader(self, tps: Iterable[TopicPartition]) -> dict[Broker, dict[TopicPartition, None]]:
        found = by_leader(dict.fromkeys(sorted(tps)), self.leaders.get)
        return {leader: led for leader, led in found.items() if self._answers(leader.id)}

    def _answers(self, broker_id: int) -> bool:
        return broker_id not in self.silent and broker_id not in self._failed

    @contextmanager
    def _noting(self, broker: Broker) -> Iterator[Call]:
        """Asks the broker, on a connection that negotiates versions."""
        try:
            yield partial(self._cluster.call, broker, api_versions=True)
        except NoApiVersionsError as error:
            logger.debug("Broker %d does not serve transactions: %s", broker.id, error)
            self.silent.add(broker.id)
        except (OSError, KafkaError) as error:
            logger.warning("Broker %d did not show its transactions: %s", broker.id, error)
            self.errors.setdefault(broker.id, str(error))
            self._failed.add(broker.id)


@dataclass
class TransactionAdmin:
    """One task at a time reads; ``cluster`` has the connections."""

    _cluster: ClusterClient
    _clock: Clock
    _suspects: set[_Begun] = field(default_factory=set)
    _silent: set[int] = field(default_factory=set)
    _again_s: float = 0.0  # when those are asked again

    def read(self, state: ClusterState, lags: Lags) -> Transactions:
        """The high watermarks are those of ``lags``, which are older: so a partition into which
        messages come is not taken for one that is held back."""
        now_s = self._clock.monotonic()
        if now_s >= self._again_s:
            self._silent.clear()
            self._again_s = now_s + _SILENT_S
        brokers = {
            each.id: each
            for each in lags.brokers
            if each.id in state.brokers and state.brokers[each.id].serves_later_apis
        }
        leaders = {
            tp: brokers[log.leader] for tp, log in lags.logs.items() if log.leader in brokers
        }
        asked = _Round(self._cluster, brokers, leaders, self._silent)
        held = asked.held({tp: log.end for tp, log in lags.logs.items()})
        described = asked.described()
        begun = asked.begun({*held, *(tp for _, each in described for tp in _partitions(each))})
        silent = tuple(sorted(self._silent & brokers.keys()))
        open_ = [_known(*each, begun, lags.time_ms) for each in described]
        open_ += self._hanging(begun, lags.time_ms, all_answered=not asked.errors and not silent)
        open_.sort(key=lambda each: (-(each.age_ms or 0), each.producer_id))
        holders = {(tp, each.start(tp)): each for each in open_ for tp in each.partitions}
        waiting = {
            tp: each._replace(holder=holders.get((tp, each.stable))) for tp, each in held.items()
        }
        return Transactions(
            tuple(open_),
            dict(sorted(waiting.items(), key=lambda each: (-each[1].messages, each[0]))),
            asked.errors,
            len(silent) < len(brokers),
            silent,
        )

    def _hanging(
        self,
        begun: Mapping[tuple[TopicPartition, int], ActiveProducer],
        now_ms: int,
        *,
        all_answered: bool,
    ) -> list[OpenTransaction]:
        """Of what no coordinator has, ``begun``, that which was there in the round before as well:
        others may have begun since the coordinators were asked."""
        before = self._suspects
        self._suspects = {
            _Begun(tp, id_, each.transaction_start) for (tp, id_), each in begun.items()
        }
        if not all_answered:
            return []
        found: dict[tuple[int, int], dict[TopicPartition, ActiveProducer]] = {}
        for tp, id_, _ in sorted(self._suspects & before):
            producer = begun[tp, id_]
            found.setdefault((id_, producer.producer_epoch), {})[tp] = producer
        return [
            OpenTransaction(
                *("", HANGING, id_, epoch, _NOBODY),
                *_since(max(each.last_timestamp for each in tps.values()), now_ms),
                None,
                tps,
            )
            for (id_, epoch), tps in found.items()
        ]

    def abort(self, transaction: OpenTransaction, leaders: Mapping[TopicPartition, int]) -> None:
        """By its coordinator, which fences its producer; one that hangs by a marker in each
        partition. Raises OSError, KafkaError, AdminOperationError."""
        if not transaction.is_hanging:
            self._abort_known(transaction)
            return
        for tp, producer in transaction.partitions.items():
            if producer is not None:
                call = self._call(leaders.get(tp, _NOBODY))
                epochs = producer.producer_epoch, max(producer.coordinator_epoch, 0)
                transactions.abort_at(call, tp, producer.producer_id, *epochs)

    def _abort_known(self, transaction: OpenTransaction) -> None:
        request = InitProducerIdRequest(transaction.id, transaction.timeout_ms or 0)
        code = self._call(transaction.coordinator)(request).error
        if code not in (NO_ERROR, LaterCode.CONCURRENT_TRANSACTIONS):  # 51: the abort has begun
            raise AdminOperationError(
                f"The transaction of {transaction.id} was not aborted: {meaning_of(code)}"
            )

    def _call(self, broker_id: int) -> Call:
        broker = self._cluster.broker(broker_id)
        if broker is None:
            raise KafkaError(f"Broker {broker_id} is not up")
        return partial(self._cluster.call, broker)


def _known(
    coordinator: int,
    described: DescribedTransaction,
    begun: dict[tuple[TopicPartition, int], ActiveProducer],
    now_ms: int,
) -> OpenTransaction:
    """A transaction as its coordinator has it, with its producers, which ``begun`` loses."""
    return OpenTransaction(
        described.transactional_id,
        described.state,
        described.producer_id,
        described.producer_epoch,
        coordinator,
        *_since(described.start_ms, now_ms),
        described.timeout_ms,
        {tp: begun.pop((tp, described.producer_id), None) for tp in _partitions(described)},
    )


def _partitions(described: DescribedTransaction) -> list[TopicPartition]:
    return [
        TopicPartition(topic.topic, number)
        for topic in described.topics
        for number in topic.partitions
    ]


def _since(start_ms: int, now_ms: int) -> tuple[int | None, int | None]:
    """A time and its age; None for -1."""
    return (start_ms, max(now_ms - start_ms, 0)) if start_ms >= 0 else (None, None)

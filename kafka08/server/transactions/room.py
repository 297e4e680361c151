"""Transactions: ids that this broker coordinates, and markers in the partitions that it leads."""

from __future__ import annotations

from collections.abc import Iterator

from kafka08.metrics import names
from kafka08.metrics.registry import Registry, one, same
from kafka08.runtime import Runtime, Scheduler
from kafka08.server.apis.transaction_logs import (
    DescribeProducersApi,
    MarkerLog,
    WriteTxnMarkersApi,
)
from kafka08.server.apis.transactions import (
    AddOffsetsToTxnApi,
    AddPartitionsToTxnApi,
    DescribeTransactionsApi,
    EndTxnApi,
    InitProducerIdApi,
    ListTransactionsApi,
    StoresTransactions,
)
from kafka08.server.apis.txn_offsets import TxnOffsetCommitApi
from kafka08.server.cluster_view.producer_ids import ProducerIds
from kafka08.server.cluster_view.room import ClusterView
from kafka08.server.groups.room import ConsumerGroups
from kafka08.server.monitoring import broker_metrics
from kafka08.server.part import Part, Room
from kafka08.server.requests.dispatch import Handler
from kafka08.server.storage.room import Storage
from kafka08.server.transactions.coordinator import TransactionCoordinator
from kafka08.server.transactions.markers import MarkerWriter
from kafka08.server.transactions.peers import Peers
from kafka08.server.transactions.verification import Verifier
from kafka08.settings.broker import BrokerConfig
from zk.client import ZkClient

# The coordinator aborts a transaction before it is that late.
_LATE_BUFFER_MS = 5 * 60 * 1000
_STOP_S = 5.0
# A coordinator answers from memory. A producer had better ask again than wait for one that has
# vanished.
_MOST_VERIFYING_MS = 1_500


class Transactions(Room):
    """Producers with a transactional id, and ids for all others."""

    def __init__(
        self,
        config: BrokerConfig,
        runtime: Runtime,
        zk: ZkClient,
        storage: Storage,
        view: ClusterView,
        groups: ConsumerGroups,
    ) -> None:
        self._config = config
        self._runtime = runtime
        self._storage = storage
        self._view = view
        self._groups = groups
        me, replicas = config.broker_id, storage.replicas
        name, longest_ms = f"broker-{me}", config.controller_socket_timeout_ms
        self._peers = Peers(view.connectors, name, longest_ms)
        self._coordinators = Peers(view.connectors, name, min(longest_ms, _MOST_VERIFYING_MS))
        self._ids = ProducerIds(runtime, zk, me)
        self._markers = MarkerLog(config, runtime, replicas, groups.offsets.transaction_ended)
        self._writer = MarkerWriter(
            runtime, view.cache, self._peers, me, self._markers.write, view.creator.may_have
        )
        self.coordinator = TransactionCoordinator(
            config, runtime, replicas, self._ids.take, self._writer.write
        )
        self._verifier = Verifier(
            config, runtime.clock, view.cache, self._coordinators, self.coordinator
        )
        storage.gate.verify = self._verifier.verify

    def handlers(self) -> list[Handler]:
        coordinator, view, storage = self.coordinator, self._view, self._storage
        stores = StoresTransactions(view.cache, view.originals)
        return [
            InitProducerIdApi(self._ids, coordinator, view.originals),
            AddPartitionsToTxnApi(coordinator, stores),
            AddOffsetsToTxnApi(coordinator, self._groups.offsets, stores),
            EndTxnApi(coordinator),
            WriteTxnMarkersApi(self._markers),
            TxnOffsetCommitApi(
                self._config,
                self._runtime,
                storage.replicas,
                view.cache,
                self._groups.members,
                storage.gate,
            ),
            DescribeProducersApi(storage.replicas),
            DescribeTransactionsApi(coordinator),
            ListTransactionsApi(self._runtime, coordinator),
        ]

    def add_metrics(self, registry: Registry) -> None:
        config, clock = self._config, self._runtime.clock
        late_ms = config.transaction_max_timeout_ms + _LATE_BUFFER_MS
        broker_metrics.add_producers(registry, self._storage.replicas, clock, late_ms)
        writer, unfinished = self._writer, self.coordinator.unfinished
        registry.add(names.MARKERS_WITHOUT_LEADER, one(writer.without_leader))
        registry.add(names.UNFINISHED_TRANSACTIONS, one(lambda: len(unfinished)))
        registry.add(names.VERIFICATION_TIMES, same(self._verifier.times))
        registry.add(names.VERIFICATION_FAILURES, same(self._verifier.failures))

    def schedule(self, scheduler: Scheduler) -> None:
        config, coordinator = self._config, self.coordinator
        period_ms = config.transaction_abort_timed_out_transaction_cleanup_interval_ms
        scheduler.every("transaction-abort", period_ms, coordinator.abort_late)
        period_ms = config.transaction_remove_expired_transaction_cleanup_interval_ms
        scheduler.every("transactionalId-expiration", period_ms, coordinator.expire)

    def tasks(self) -> Iterator[Part]:
        yield Part("transactions", stop=self._stop)

    def _stop(self) -> None:
        self._peers.close()
        self._coordinators.close()
        self.coordinator.stop(_STOP_S)
        self._writer.join(_STOP_S)

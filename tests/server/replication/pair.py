"""A leader, a follower, and the fetcher between them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kafka08.common import Broker, TopicPartition
from kafka08.log.disk import DiskFailure
from kafka08.protocol.schemas import FetchRequest
from kafka08.server.quotas.replication import ReplicationQuota
from kafka08.server.replication.fetchers import Following, ReplicaFetcher
from tests.log.support import everything
from tests.server.support import ME, PEER, Rig

T = TopicPartition("t", 0)
LEADER = Broker(ME, "leader", 9092)


class ChannelTo:
    """network.channel.Channel straight into the leader's handlers."""

    def __init__(self, leader: Rig) -> None:
        self.leader = leader
        self.requests: list[Any] = []
        self.versions: list[int] = []
        self.error: Exception | None = None
        self.before_answer: Callable[[Any], None] = lambda request: None
        self.change: Callable[[Any], Any] = lambda response: response
        self.closed = 0

    def call(self, request: Any, version: int = 0) -> Any:
        self.requests.append(request)
        self.versions.append(version)
        if self.error is not None:
            raise self.error
        answer = self.leader.call(request, sent_in=version)
        self.before_answer(request)
        return self.change(answer)

    def close(self) -> None:
        self.closed += 1


class LeaderAndFollower:
    """A leader (broker 1) and a follower (broker 2) of t-0, and the fetcher between them."""

    def __init__(self, directory: Path, *, later: bool = False, **settings: Any) -> None:
        self.settings = {"broker_id": PEER, **settings}
        self.leader = Rig(directory / "leader", later=later)
        self.follower = Rig(directory / "follower", **self.settings)
        self.quota = ReplicationQuota(self.follower.clock, seconds=1)
        self.channel = ChannelTo(self.leader)
        self.errors: list[DiskFailure] = []
        self.truncated = 0
        self._checkpoint = self.follower.logs.checkpoint_recovery_points
        self.follower.logs.checkpoint_recovery_points = self._checkpointed  # type: ignore[method-assign]
        self.fetcher = ReplicaFetcher(
            "fetcher",
            LEADER,
            self.channel,  # type: ignore[arg-type]
            Following(
                self.follower.config,
                self.follower.runtime,
                lambda broker_id: self.follower.runtime,
                lambda broker_id: later,
                self.follower.logs,
                self.follower.effects,
                self.errors.extend,
                self.quota,
            ),
        )
        self.leader.lead(replicas=[ME, PEER])

    def _checkpointed(self) -> list[DiskFailure]:
        self.truncated += 1
        return self._checkpoint()

    def close(self) -> None:
        self.leader.close()
        self.follower.close()

    @property
    def copy(self) -> Any:
        return self.follower.replicas.partitions[T]

    @property
    def log(self) -> Any:
        return self.copy.any_log()

    def follow(self, partition: int = 0) -> None:
        self.follower._role("t", partition, {"leader": ME, "replicas": [ME, PEER]})
        key = TopicPartition("t", partition)
        self.fetcher.add(self.follower.replicas.partitions[key])

    def alone(self, *sets: bytes) -> None:
        """Messages that only the follower has, from a time when it led."""
        self.follower._role("t", 0, {"leader": PEER, "replicas": [ME, PEER]})
        for data in sets:
            self.follower.produce(("t", 0, data))

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.fetcher.step()

    def asked(self) -> list[int]:
        """The offsets asked for, request by request."""
        return [
            request.topics[0].partitions[0].offset
            for request in self.channel.requests
            if isinstance(request, FetchRequest)
        ]

    def same(self) -> bool:
        leaders = self.leader.replicas.partitions[T].any_log()
        return everything(self.log) == everything(leaders)


Make = Callable[..., LeaderAndFollower]

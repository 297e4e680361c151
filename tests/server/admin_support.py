"""A broker that administers topics, next to one of 0.8.2.2 that does not, without sockets.

``AdminRig.network`` takes requests to them, which it calls as bytes. The controller acts whenever
somebody sleeps, unless ``controller_works`` is false.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafka08 import admin
from kafka08.client.admin import AdminClient
from kafka08.cluster.metadata_cache import MetadataCache
from kafka08.common import Broker
from kafka08.errors import ProtocolError
from kafka08.protocol.registry import api_of
from kafka08.protocol.requests import decode_response, encode_request
from kafka08.protocol.schemas import LEADER_DURING_DELETE, PartitionStateInfo
from kafka08.server.access.room import AccessControl
from kafka08.server.apis.group_members import DescribeGroupsApi
from kafka08.server.cluster_view.originals import FORMATS
from kafka08.server.cluster_view.registrations import Registrations
from kafka08.server.cluster_view.room import ClusterView
from kafka08.server.optional import NoLogins
from kafka08.server.part import Room
from kafka08.server.quotas.throttle import MutationQuota
from kafka08.server.requests.dispatch import Dispatcher, Handler
from kafka08.server.rooms import apis_of, handlers_of
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime
from tests.fakes.zookeeper import FakeZooKeeper, Session
from tests.protocol.values import narrowed
from tests.server.support import broker_config
from zk import znodes
from zk.registry import ensure_common_paths, register_broker

LAST_KEY_OF_0822 = 12
AUTHORIZER = "kafka.security.auth.SimpleAclAuthorizer"


class ZooKeeperGroups(Room):
    """Groups of 0.8 alone."""

    def __init__(self, runtime: Any, zk: Any) -> None:
        self._api = DescribeGroupsApi(runtime, zk)

    def handlers(self) -> list[Handler]:
        return [self._api]


class AdminRig:
    """Brokers 1 and 2 at host1:9091 and host2:9092, whose replies are the same.

    Those in ``originals`` close the connection over keys that 0.8.2.2 does not know. With
    ``later`` they have api.versions.enable on, APIs 50 and 51, and APIs 29 to 31 if
    ``has_authorizer``.
    """

    def __init__(
        self,
        directory: Path,
        *,
        later: bool = False,
        has_authorizer: bool = True,
        **settings: Any,
    ) -> None:
        settings = {
            "delete_topic_enable": True,
            "num_partitions": "2",
            "api_versions_enable": later,
            "authorizer_class_name": AUTHORIZER if later and has_authorizer else "",
            **settings,
        }
        config = broker_config(directory, **settings)
        self.broker_id = config.broker_id
        self.zk: Any = Session(FakeZooKeeper())
        ensure_common_paths(self.zk)
        self.runtime = FakeRuntime()
        self.mutations = MutationQuota(self.runtime.clock)
        self.runtime.on_sleep = lambda seconds: self.control() if self.controller_works else None
        self.controller_works = True
        self.originals: set[int] = set()
        self.cache = MetadataCache(self.runtime.event())
        self.brokers = [Broker(number, f"host{number}", 9090 + number) for number in (1, 2)]
        self.network = FakeCluster(self.brokers)
        self.network.script = self._answer
        for broker in self.brokers:
            self.register(broker, FORMATS if later else None)
        self.cache.update([], self.brokers)
        self.later: list[frozenset[int]] = []
        runtime: Any = self.runtime
        view = ClusterView(
            config, runtime, self.zk, self.cache, {}, self.later.append, runtime, self.mutations
        )
        self.cluster = view.originals
        self.registrations = Registrations(runtime, self.zk, view.originals.registered)
        self.registrations.start()
        access = AccessControl(config, runtime, self.zk, NoLogins(), lambda sessions: None)
        rooms = view, access, ZooKeeperGroups(runtime, self.zk)
        handlers = handlers_of(config, rooms, view.originals)
        self.dispatcher = Dispatcher(runtime, handlers, apis_of(config))
        self.served = self.dispatcher.served

    def client(self, endpoints: Any, **options: Any) -> AdminClient:
        """An AdminClient whose connections go to these brokers."""
        options["runtime"] = self.runtime
        return AdminClient(endpoints, channel=self.network.channel, **options)

    def register(self, broker: Broker, formats: int | None) -> None:
        register_broker(
            self.zk, broker, clock=self.runtime.clock, wait=lambda s: None, formats=formats
        )

    def control(self) -> None:
        """Do the controller's work for topics."""
        for topic in admin.list_topics(self.zk):
            assignment = admin.fetch_assignment(self.zk, topic) or {}
            leader = LEADER_DURING_DELETE
            if admin.is_marked_for_deletion(self.zk, topic):
                self.zk.delete_recursive(znodes.topic_path(topic))
                self.zk.delete(znodes.delete_topic_path(topic))
            else:
                leader = 0
            states = [
                PartitionStateInfo(topic, p, 1, leader or replicas[0], 0, replicas, 0, replicas)
                for p, replicas in assignment.items()
            ]
            self.cache.update(states, self.brokers)

    def create(self, topic: str, *replicas: list[int], **config: str) -> None:
        """A topic that has leaders."""
        assignment = dict(enumerate(replicas))
        dotted = {key.replace("_", "."): value for key, value in config.items()}
        admin.create_topic_with_assignment(self.zk, topic, assignment, dotted)
        self.control()

    def config(self, topic: str) -> dict[str, str]:
        return admin.fetch_topic_config(self.zk, topic)

    def assignment(self, topic: str) -> dict[int, tuple[int, ...]] | None:
        return admin.fetch_assignment(self.zk, topic)

    def call(self, request: Any, version: int | None = None) -> Any:
        """The response to a request, both as bytes, in ``version`` or that of our clients."""
        frame = bytearray(b"".join(encode_request(request, 5, "tests", version))[4:])
        reply = b"".join(self.dispatcher.handle(memoryview(frame), "127.0.0.1") or ())
        layout = api_of(request)[2]
        if version is not None:
            layout = layout._replace(version=version)
        correlation_id, response = decode_response(layout, reply[4:])
        assert correlation_id == 5
        return narrowed(response, layout.version)

    def _answer(self, port: int, request: Any) -> Any:
        """The script of ``network``."""
        if port in self.originals and api_of(request)[0] > LAST_KEY_OF_0822:
            raise ConnectionResetError("closed the connection")
        try:
            return self.call(request)
        except ProtocolError:
            raise ConnectionResetError("closed the connection") from None

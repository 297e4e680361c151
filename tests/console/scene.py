"""A console over a cluster in memory, for the tests of its pages."""

from __future__ import annotations

import re
from typing import Any

from werkzeug.test import Client, TestResponse

from kafka08.common import Broker, TopicPartition
from kafka08.console.app import Console
from kafka08.console.config import ConsoleConfig
from kafka08.console.site import Site
from kafka08.groups.admin import GroupAdmin
from kafka08.protocol.admin_schemas import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    LogDir,
    LogDirPartition,
    LogDirTopic,
)
from kafka08.security.users import User, Users, line_for
from tests.fakes.cluster import FakeCluster
from tests.fakes.http_pages import Counts, ServedPages, beans
from tests.fakes.runtime import FakeRuntime
from tests.fakes.zookeeper import FakeZooKeeper, Session
from zk import znodes
from zk.znodes import BrokerRegistration, ControllerNode, PartitionStateNode

BROKERS = (Broker(1, "b1", 9091), Broker(2, "b2", 9092))
ORIGIN = "http://localhost"


class ConsoleScene:
    """Broker 1 is of this project and the controller, broker 2 is original; nothing else."""

    def __init__(
        self, users: dict[str, str] | None = None, name: str = "", **settings: object
    ) -> None:
        self.runtime = FakeRuntime()
        self.server = FakeZooKeeper()
        self.session = Session(self.server)
        self.cluster = FakeCluster(BROKERS)
        for broker in BROKERS:
            self.register(broker)
        self.server.put(znodes.CONTROLLER, znodes.encode_controller(ControllerNode(1, "5")))
        self.server.put(znodes.CONTROLLER_EPOCH, b"3")
        values = {"zookeeper_connect": "zk:2181", **settings}
        self.config = ConsoleConfig(**values)  # type: ignore[arg-type]
        zk: Any = self.session
        groups = GroupAdmin(zk, runtime=self.runtime, channel=self.cluster.channel)
        self.pages = ServedPages(self.runtime)
        channel = self.cluster.channel
        self.site = Site(self.config, zk, groups, self.runtime, channel, name=name)
        self.observer = self.site.observer
        lines = [line_for(*each.split(":"), password="secret") for each in (users or {}).values()]
        self.users = Users(lines, "users") if lines else None
        self.console = Console(self.site, self.users, self.runtime.sleep)
        self.client = Client(self.console)

    def register(self, broker: Broker) -> None:
        registration = BrokerRegistration(
            broker.host, broker.port, -1, "1400000000000", 2 if broker.id == 1 else None
        )
        self.server.put(znodes.broker_path(broker.id), znodes.encode_broker(registration))

    def topic(
        self,
        name: str,
        replicas: list[int],
        *,
        leader: int | None = None,
        isr: list[int] | None = None,
    ) -> None:
        """A topic with one partition."""
        self.server.put(znodes.topic_path(name), znodes.encode_topic({0: replicas}))
        self.cluster.create(name, 1, replicas[0] if leader is None else leader)
        state = PartitionStateNode(
            replicas[0] if leader is None else leader, 0, 3, tuple(replicas if isr is None else isr)
        )
        path = znodes.partition_state_path(name, 0)
        self.server.put(path, znodes.encode_partition_state(state))

    def produce(self, topic: str, *values: bytes) -> None:
        self.cluster.append(topic, 0, *values)

    def commit(self, group: str, topic: str, offset: int) -> None:
        self.server.put(znodes.consumer_offset_path(group, topic, 0), b"%d" % offset)

    def look(self) -> None:
        self.observer.look()
        self.observer.collect()

    def count_bytes(self, *rounds: Counts) -> None:
        """Broker 1 serves its counts at 127.0.0.1:9404, which is to be configured: rounds of 10 s,
        each with other counts."""
        for counts in rounds:
            self.runtime.clock.advance(10)
            self.pages.answers["127.0.0.1", 9404] = beans(counts)
            self.observer.measure()

    def get(self, path: str, **options: object) -> TestResponse:
        return self.client.get(path, headers={"Accept": "text/html"}, **options)  # type: ignore[arg-type]

    def post(self, path: str, **fields: object) -> TestResponse:
        """A form as a page of the console sends it."""
        fields.setdefault("token", self.site.tokens.of(User("", "admin")))
        base = {"REMOTE_ADDR": "127.0.0.1"}
        return self.client.post(
            path, data=fields, headers={"Accept": "text/html"}, environ_base=base
        )

    def page(self, path: str) -> str:
        """A page's text without its tags; it must be there."""
        response = self.get(path)
        assert response.status_code == 200, response.text
        return text_of(response.text)

    def first(self, topic: str) -> TopicPartition:
        return TopicPartition(topic, 0)


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))


def directory(path: str, topic: str, size: int, total: int = -1, free: int = -1) -> LogDir:
    """With partition 0 of a topic, of ``size`` bytes."""
    topics = [LogDirTopic(topic, [LogDirPartition(0, size, 0, False)])]
    return LogDir(0, path, topics, total, free)


def answer_directories(scene: ConsoleScene, *directories: LogDir) -> None:
    """To DescribeLogDirs of every broker."""
    answer = DescribeLogDirsResponse(0, list(directories))
    scene.cluster.script = lambda _, request: (
        answer if isinstance(request, DescribeLogDirsRequest) else None
    )


def scene_with_bytes() -> ConsoleScene:
    """Broker 1 leads t and quiet; broker 2 is of 0.8.2.2 and leads u."""
    scene = ConsoleScene(broker_http=("1=127.0.0.1:9404",))
    scene.topic("quiet", [1])
    scene.topic("t", [1])
    scene.topic("u", [2])
    scene.look()
    scene.count_bytes({"": (0, 0)}, {"": (20480, 5120), "t": (20480, 5120)})
    return scene

"""kafka08.console.brokers.traffic."""

from __future__ import annotations

from kafka08.client.cluster import ClusterClient
from kafka08.common import Broker
from kafka08.console.brokers.http_pages import BrokerPages
from kafka08.console.brokers.traffic import Rates, Traffic, TrafficMeter
from kafka08.console.cluster_state import BrokerView, ClusterState, PartitionView, TopicView
from kafka08.console.config import ConsoleConfig
from tests.fakes.cluster import FakeCluster
from tests.fakes.http_pages import Counts, ServedPages, answer, beans
from tests.fakes.runtime import FakeRuntime

AT = {1: ("b1", 9404), 2: ("b2", 9404)}


class Scene:
    """Brokers 1 and 2 serve their counts where the console has been told; topic t is led by broker
    1, u by both."""

    def __init__(self) -> None:
        self.runtime = FakeRuntime()
        self.pages = ServedPages(self.runtime)
        fake = FakeCluster((Broker(1, "b1", 9091), Broker(2, "b2", 9092)))
        cluster = ClusterClient([("b1", 9091)], runtime=self.runtime, channel=fake.channel)
        config = ConsoleConfig(
            zookeeper_connect="zk", broker_http=tuple(f"{id_}=b{id_}:9404" for id_ in AT)
        )
        self.meter = TrafficMeter(BrokerPages(cluster, config, self.runtime), self.runtime)
        self.brokers = {id_: BrokerView(id_, True, (), 1000, True) for id_ in (1, 2)}
        self.topics = {
            "t": TopicView({0: PartitionView((1, 2), 1, (1, 2))}),
            "u": TopicView({0: PartitionView((1,), 1, (1,)), 1: PartitionView((2,), 2, (2,))}),
        }

    def count(self, broker_id: int, counts: Counts) -> None:
        self.pages.answers[AT[broker_id]] = beans(counts)

    def read(self, after: float = 10.0) -> Traffic:
        self.runtime.clock.advance(after)
        state = ClusterState(0, self.brokers, 1, 1, self.topics, {}, 0, True)
        return self.meter.read(state)


def scene_with_counts() -> Scene:
    scene = Scene()
    scene.count(1, {"": (1000, 500), "t": (600, 500), "u": (400, 0)})
    scene.count(2, {"": (100, 0), "u": (100, 0)})
    return scene


def test_rates_are_what_came_between_two_rounds() -> None:
    scene = scene_with_counts()
    first = scene.read()
    assert (first.brokers, first.topics, first.total) == ({}, {}, None)
    assert first.reasons[1] == "its counts were read only once so far"
    scene.count(1, {"": (3000, 1500), "t": (2100, 1500), "u": (900, 0)})
    scene.count(2, {"": (100, 80), "u": (100, 80)})
    found = scene.read(after=10)
    assert found.brokers == {1: Rates(200.0, 100.0), 2: Rates(0.0, 8.0)}
    assert found.topics == {"t": Rates(150.0, 100.0), "u": Rates(50.0, 8.0)}
    assert (found.total, found.reasons) == (Rates(200.0, 108.0), {})


def test_a_topic_without_counts_has_had_no_bytes() -> None:
    scene = scene_with_counts()
    scene.topics["new"] = TopicView({0: PartitionView((2,), 2, (2,))})
    scene.read()
    assert scene.read().topics["new"] == Rates(0.0, 0.0)
    scene.count(2, {"": (150, 0), "u": (100, 0), "new": (50, 0)})
    assert scene.read().topics["new"] == Rates(5.0, 0.0)


def test_a_broker_that_starts_again_counts_from_zero() -> None:
    scene = scene_with_counts()
    scene.read()
    # The count of t is above the former one, though the broker has started since.
    scene.count(1, {"": (700, 0), "t": (700, 0)})
    found = scene.read(after=10)
    assert found.brokers[1] == Rates(70.0, 0.0)
    assert found.topics["t"] == Rates(70.0, 0.0)


def test_a_topic_that_was_made_again_counts_from_zero() -> None:
    scene = scene_with_counts()
    scene.read()
    scene.count(1, {"": (1050, 500), "t": (50, 0), "u": (400, 0)})
    found = scene.read(after=10)
    assert found.topics["t"] == Rates(5.0, 0.0)
    assert found.brokers[1] == Rates(5.0, 0.0)


def test_a_broker_that_does_not_answer_is_not_known_and_asked_again() -> None:
    scene = scene_with_counts()
    scene.read()
    scene.pages.answers[AT[2]] = TimeoutError("timed out")
    found = scene.read()
    assert found.brokers == {1: Rates(0.0, 0.0)}
    assert found.reasons == {2: "timed out"}
    assert found.topics == {"t": Rates(0.0, 0.0)}  # a leader of u is not known
    assert found.total == Rates(0.0, 0.0)
    scene.count(2, {"": (9_000_000, 0), "u": (9_000_000, 0)})
    assert 2 not in scene.read().brokers  # one reading has no rate, whatever was before the gap
    assert scene.read().brokers[2] == Rates(0.0, 0.0)


def test_what_is_not_a_page_of_counts_is_not_known() -> None:
    scene = scene_with_counts()
    scene.pages.answers[AT[1]] = answer(b"{}")
    assert scene.read().reasons[1] == "its metrics over HTTP are not beans of a broker"


def test_all_brokers_are_asked_before_one_is_waited_for() -> None:
    scene = scene_with_counts()
    scene.read()
    assert [task.name for task in scene.runtime.tasks] == [
        "console-traffic-1",
        "console-traffic-2",
    ]


def test_a_dead_broker_is_not_asked() -> None:
    scene = scene_with_counts()
    scene.brokers[2] = scene.brokers[2]._replace(is_live=False)
    assert scene.read().reasons.keys() == {1}


def test_why_rates_are_not_known() -> None:
    scene = scene_with_counts()
    scene.pages.answers[AT[2]] = ConnectionRefusedError(111, "Connection refused")
    first, second = scene.brokers.values()
    early = Traffic()
    assert (early.of(first), early.why_not(first)) == (None, "its counts have not been read yet")
    scene.read()
    found = scene.read()
    assert (found.of(first), found.why_not(first)) == (Rates(0.0, 0.0), None)
    assert (found.of(second), found.why_not(second)) == (None, "Connection refused")
    gone = first._replace(is_live=False)
    assert (found.of(gone), found.why_not(gone)) == (None, "the broker is down")


def test_a_topic_without_a_leader() -> None:
    scene = scene_with_counts()
    scene.topics["off"] = TopicView({0: PartitionView((1,))})
    scene.read()
    assert "off" not in scene.read().topics

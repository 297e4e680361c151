"""kafka08.console.brokers.traffic."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.client.cluster import ClusterClient
from kafka08.common import Broker
from kafka08.console.brokers.traffic import Rates, Traffic, TrafficMeter
from kafka08.console.cluster_state import BrokerView, ClusterState, PartitionView, TopicView
from kafka08.console.config import ConsoleConfig
from kafka08.protocol import admin_schemas as a
from tests.fakes.bean_pages import BeanPages, Counts, beans
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime

AT = {1: ("10.0.0.1", 9404), 2: ("10.0.0.2", 9404)}
DNS = {"b1": "10.0.0.1", "b2": "10.0.0.2"}


class Scene:
    """Brokers 1 and 2 serve their counts on all their addresses; topic t is led by broker 1, u by
    both."""

    def __init__(self, configured: tuple[str, ...] = ()) -> None:
        self.runtime = FakeRuntime()
        self.pages = BeanPages(self.runtime)
        self.fake = FakeCluster((Broker(1, "b1", 9091), Broker(2, "b2", 9092)))
        self.settings: dict[str, Any] = {"http.host": "0.0.0.0", "http.port": "9404"}
        self.refusal = 0
        self.own = {"127.0.0.1"}
        self.fake.script = self._describe
        self.cluster = ClusterClient(
            [("b1", 9091)], runtime=self.runtime, channel=self.fake.channel
        )
        self.cluster.refresh()
        self.meter = TrafficMeter(
            self.cluster,
            ConsoleConfig(zookeeper_connect="zk", broker_metrics=configured),
            self.runtime,
            DNS.__getitem__,
            self.own.__contains__,
        )
        self.brokers = {id_: BrokerView(id_, True, (), 1000, True) for id_ in (1, 2)}
        self.topics = {
            "t": TopicView({0: PartitionView((1, 2), 1, (1, 2))}),
            "u": TopicView({0: PartitionView((1,), 1, (1,)), 1: PartitionView((2,), 2, (2,))}),
        }

    def _describe(self, port: int, request: Any) -> Any:
        if not isinstance(request, a.DescribeConfigsRequest):
            return None
        [asked] = request.resources
        assert asked.config_names == ["http.host", "http.port"]
        assert (asked.resource_type, asked.resource_name) == (a.BROKER_RESOURCE, str(port - 9090))
        entries = [a.ConfigEntry(name, value, True) for name, value in self.settings.items()]
        found = a.ResourceConfig(self.refusal, None, asked[0], asked[1], entries)
        return a.DescribeConfigsResponse(0, [found])

    def serve(self, broker_id: int, counts: Counts) -> None:
        self.pages.answers[AT[broker_id]] = beans(counts)

    def read(self, after: float = 10.0) -> Traffic:
        self.runtime.clock.advance(after)
        state = ClusterState(0, self.brokers, 1, 1, self.topics, {}, 0, True)
        return self.meter.read(state)

    def described(self) -> int:
        return len(self.fake.sent(a.DescribeConfigsRequest))


def scene_with_counts() -> Scene:
    scene = Scene()
    scene.serve(1, {"": (1000, 500), "t": (600, 500), "u": (400, 0)})
    scene.serve(2, {"": (100, 0), "u": (100, 0)})
    return scene


def test_rates_are_what_came_between_two_rounds() -> None:
    scene = scene_with_counts()
    first = scene.read()
    assert (first.brokers, first.topics, first.total) == ({}, {}, None)
    assert first.reasons[1] == "its counts were read only once so far"
    scene.serve(1, {"": (3000, 1500), "t": (2100, 1500), "u": (900, 0)})
    scene.serve(2, {"": (100, 80), "u": (100, 80)})
    found = scene.read(after=10)
    assert found.brokers == {1: Rates(200.0, 100.0), 2: Rates(0.0, 8.0)}
    assert found.topics == {"t": Rates(150.0, 100.0), "u": Rates(50.0, 8.0)}
    assert (found.total, found.reasons) == (Rates(200.0, 108.0), {})


def test_a_topic_without_counts_has_had_no_bytes() -> None:
    scene = scene_with_counts()
    scene.topics["new"] = TopicView({0: PartitionView((2,), 2, (2,))})
    scene.read()
    assert scene.read().topics["new"] == Rates(0.0, 0.0)
    scene.serve(2, {"": (150, 0), "u": (100, 0), "new": (50, 0)})
    assert scene.read().topics["new"] == Rates(5.0, 0.0)


def test_a_broker_that_starts_again_counts_from_zero() -> None:
    scene = scene_with_counts()
    scene.read()
    # The count of t is above the former one, though the broker has started since.
    scene.serve(1, {"": (700, 0), "t": (700, 0)})
    found = scene.read(after=10)
    assert found.brokers[1] == Rates(70.0, 0.0)
    assert found.topics["t"] == Rates(70.0, 0.0)


def test_a_topic_that_was_made_again_counts_from_zero() -> None:
    scene = scene_with_counts()
    scene.read()
    scene.serve(1, {"": (1050, 500), "t": (50, 0), "u": (400, 0)})
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
    scene.serve(2, {"": (9_000_000, 0), "u": (9_000_000, 0)})
    assert 2 not in scene.read().brokers  # one reading has no rate, whatever was before the gap
    assert scene.read().brokers[2] == Rates(0.0, 0.0)


def test_all_brokers_are_asked_before_one_is_waited_for() -> None:
    scene = scene_with_counts()
    scene.read()
    assert [task.name for task in scene.runtime.tasks] == [
        "console-traffic-1",
        "console-traffic-2",
    ]


def test_the_settings_of_a_broker_are_asked_once_for_each_registration() -> None:
    scene = scene_with_counts()
    scene.read()
    scene.read()
    assert scene.described() == 2
    scene.brokers[1] = scene.brokers[1]._replace(since_ms=2000)
    scene.read()
    assert scene.described() == 3
    scene.pages.answers.pop(AT[2])
    scene.read()
    scene.read()
    assert scene.described() == 4  # after a failure it may serve them elsewhere


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"http.port": "-1"}, "it serves no metrics over HTTP (http.port is -1)"),
        ({"http.port": "0"}, "it serves no metrics over HTTP (http.port is 0)"),
        ({"http.port": None}, "it serves no metrics over HTTP (http.port is not set)"),
        (
            {"http.host": "127.0.0.1"},
            "it serves its metrics to its own machine only (http.host is 127.0.0.1)",
        ),
        (
            {"http.host": "localhost"},
            "it serves its metrics to its own machine only (http.host is localhost)",
        ),
    ],
)
def test_a_broker_that_serves_nothing_to_the_console(settings: dict[str, str], told: str) -> None:
    scene = scene_with_counts()
    scene.settings.update(settings)
    assert scene.read().reasons == {1: told, 2: told}
    assert scene.pages.asked == []


def test_the_loopback_of_the_consoles_own_machine() -> None:
    """Broker 1 is there, and broker 2 is not: 127.0.0.1 is not broker 2's."""
    scene = scene_with_counts()
    scene.settings["http.host"] = "127.0.0.1"
    scene.own.add(DNS["b1"])
    scene.pages.answers["127.0.0.1", 9404] = beans({"": (1, 1)})
    assert scene.read().reasons[2].startswith("it serves its metrics to its own machine only")
    assert [place for place, _ in scene.pages.asked] == [("127.0.0.1", 9404)]
    assert scene.read().brokers == {1: Rates(0.0, 0.0)}


def test_an_address_of_its_own() -> None:
    scene = Scene()
    scene.settings["http.host"] = "10.9.9.9"
    scene.read()
    scene.pages.answers["10.9.9.9", 9404] = beans({"": (1, 1)})
    scene.read()
    assert {place for place, _ in scene.pages.asked} == {("10.9.9.9", 9404)}


def test_a_configured_address_goes_first_and_no_broker_is_asked_for_it() -> None:
    scene = Scene(("1=front:8001", "2=[::1]:8002"))
    scene.pages.answers["front", 8001] = beans({"": (1, 1)})
    scene.pages.answers["::1", 8002] = beans({"": (1, 1)})
    scene.brokers[2] = scene.brokers[2]._replace(is_ours=False)
    scene.read()
    assert scene.read().brokers.keys() == {1, 2}
    assert scene.described() == 0


@pytest.mark.parametrize(
    ("is_ours", "told"),
    [
        (False, "brokers of 0.8.2.2 do not serve their metrics over HTTP"),
        (None, "its registration cannot be read"),
    ],
)
def test_brokers_that_cannot_be_asked(is_ours: bool | None, told: str) -> None:
    scene = scene_with_counts()
    scene.brokers[2] = scene.brokers[2]._replace(is_ours=is_ours)
    assert scene.read().reasons[2] == told
    assert scene.fake.took(2, a.DescribeConfigsRequest) == []


def test_a_dead_broker_is_not_asked() -> None:
    scene = scene_with_counts()
    scene.brokers[2] = scene.brokers[2]._replace(is_live=False)
    assert scene.read().reasons.keys() == {1}


def test_a_broker_that_refuses_or_does_not_answer() -> None:
    scene = scene_with_counts()
    scene.refusal = 31
    scene.fake.down = {9092}
    found = scene.read()
    assert found.reasons == {1: "it does not show its settings to the console", 2: "port 9092"}
    scene.brokers[3] = BrokerView(3, True, (), 1000, True)
    assert scene.read().reasons[3] == "no broker says where it is"


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

"""kafka08.console.failures.defaults."""

from __future__ import annotations

import pytest

from kafka08.console.cluster_state import BrokerView, ClusterState
from kafka08.console.failures.defaults import read_defaults
from kafka08.console.failures.what_if import TopicDefaults
from kafka08.errors import KafkaError
from kafka08.protocol import admin_schemas as a

BUILT_IN = TopicDefaults(True, 1, None)


def state(*, controller: int | None = 1, ours: bool = True) -> ClusterState:
    brokers = {1: BrokerView(1, True, is_ours=ours)}
    return ClusterState(0, brokers, controller, 1, {}, {}, 0, True)


def answer(**settings: str | None) -> a.DescribeConfigsResponse:
    entries = [a.ConfigEntry(k.replace("_", "."), v, False) for k, v in settings.items()]
    found = a.ResourceConfig(0, None, a.BROKER_RESOURCE, "1", entries)
    return a.DescribeConfigsResponse(0, [found])


def test_the_controller_says_them() -> None:
    told = answer(unclean_leader_election_enable="false", min_insync_replicas="2")
    assert read_defaults(state(), lambda *_: told) == TopicDefaults(False, 2, 1)


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"unclean_leader_election_enable": "false"},
        {"unclean_leader_election_enable": "no", "min_insync_replicas": "2"},
        {"unclean_leader_election_enable": "true", "min_insync_replicas": None},
        {"unclean_leader_election_enable": "true", "min_insync_replicas": "-1"},
        {"unclean_leader_election_enable": "true", "min_insync_replicas": "\u0662"},
    ],
)
def test_what_cannot_be_read_is_built_in(told: dict[str, str | None]) -> None:
    assert read_defaults(state(), lambda *_: answer(**told)) == BUILT_IN


@pytest.mark.parametrize("seen", [state(controller=None), state(controller=9), state(ours=False)])
def test_a_controller_that_cannot_say_them_is_not_asked(seen: ClusterState) -> None:
    asked: list[int] = []
    assert read_defaults(seen, lambda broker, _: asked.append(broker)) == BUILT_IN
    assert asked == []


@pytest.mark.parametrize("error", [OSError("gone"), KafkaError("refused")])
def test_a_controller_that_does_not_answer(error: Exception) -> None:
    def ask(broker: int, request: object) -> object:
        raise error

    assert read_defaults(state(), ask) == BUILT_IN

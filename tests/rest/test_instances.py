from __future__ import annotations

import pytest

from kafka08.consumer.config import ConsumerConfig
from kafka08.rest.config import RestConfig
from kafka08.rest.errors import RestError
from kafka08.rest.instances import Instances, InstanceSettings
from tests.fakes.runtime import FakeRuntime

SETTINGS = InstanceSettings(1, "binary", ConsumerConfig(group_id="g", zookeeper_connect="z"))


def instances(runtime: FakeRuntime) -> Instances:
    config = RestConfig(
        consumer_instances_max=3,
        consumer_instances_group_max=2,
        consumer_instance_timeout_ms=2000,
    )
    return Instances(config, runtime)


def test_names_are_made_up_or_given() -> None:
    made = instances(FakeRuntime())
    assert made.create("g", None, SETTINGS).name.startswith("rest-consumer-")
    assert made.create("g", "me", SETTINGS).name == "me"
    assert len(made) == 2


def test_each_use_restarts_the_idle_time() -> None:
    runtime = FakeRuntime()
    made = instances(runtime)
    made.create("g", "me", SETTINGS)
    for _ in range(3):
        runtime.clock.advance(1.5)
        with made.use("g", "me"):
            pass
        made.end_idle()
    assert len(made) == 1
    runtime.clock.advance(2.0)
    made.end_idle()
    assert len(made) == 0


def test_an_instance_that_ends_while_a_request_waits_for_it_is_gone() -> None:
    made = instances(FakeRuntime())
    found = made.create("g", "me", SETTINGS)
    found.stopping.set()
    with pytest.raises(RestError) as caught, made.use("g", "me"):
        pass
    assert caught.value.code == 40403


def test_after_the_end_there_are_no_new_ones() -> None:
    made = instances(FakeRuntime())
    found = made.create("g", "me", SETTINGS)
    made.stop_reads()
    assert found.stopping.is_set()
    made.close(1.0)
    with pytest.raises(RestError) as caught:
        made.create("g", None, SETTINGS)
    assert caught.value.status == 503

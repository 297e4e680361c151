"""When the producer asks for metadata, and what its tasks learn from the answers."""

from __future__ import annotations

import pytest

from kafka08.errors import InvalidTopicError
from kafka08.producer.errors import MetadataTimeoutError
from tests.producer.fake_producer import ProducerDriver


@pytest.fixture
def driver() -> ProducerDriver:
    driver = ProducerDriver(brokers=2, metadata_max_age_ms=60_000, retry_backoff_ms=100)
    driver.runtime.on_sleep = None
    return driver


def asked(driver: ProducerDriver) -> int:
    """How often metadata was fetched."""
    return sum(
        type(request).__name__ == "MetadataRequest" for _, request in driver.cluster.requests
    )


def test_nothing_is_fetched_before_a_topic_is_wanted(driver: ProducerDriver) -> None:
    keeper = driver.metadata
    keeper.work()
    assert asked(driver) == 0
    driver.runtime.while_waiting = [keeper.work]
    topic = keeper.wait_for("t", 5.0)
    assert sorted(topic.queues) == [0, 1] == topic.available
    assert asked(driver) == 1
    assert keeper.wait_for("t", 0.0) is topic


def test_a_topic_that_does_not_come(driver: ProducerDriver) -> None:
    keeper = driver.metadata
    with pytest.raises(MetadataTimeoutError, match="within 2000 ms: no broker has been asked yet"):
        keeper.wait_for("t", 2.0)
    driver.cluster.down = {9090, 9091}
    driver.runtime.while_waiting = [keeper.work]
    with pytest.raises(MetadataTimeoutError, match="port 909"):
        keeper.wait_for("t", 2.0)
    driver.cluster.topic_errors["bad"] = InvalidTopicError.code
    driver.cluster.down = set()
    driver.pass_time(1000)
    driver.runtime.while_waiting = [keeper.work]
    with pytest.raises(InvalidTopicError, match="Topic bad"):
        keeper.wait_for("bad", 2.0)


def test_old_metadata_is_fetched_again(driver: ProducerDriver) -> None:
    keeper = driver.metadata
    driver.runtime.while_waiting = [keeper.work]
    keeper.wait_for("t", 5.0)
    driver.cluster.create("t", 3, leader=1)
    keeper.work()
    assert asked(driver) == 1
    driver.pass_time(60_000)
    keeper.work()
    assert asked(driver) == 2
    assert keeper.topics["t"].available == [0, 1, 2]


def test_stale_metadata_is_fetched_after_the_backoff(driver: ProducerDriver) -> None:
    keeper = driver.metadata
    driver.runtime.while_waiting = [keeper.work]
    keeper.wait_for("t", 5.0)
    driver.staleness.report()
    keeper.work()  # waits for the backoff
    keeper.work()
    assert asked(driver) == 2
    assert driver.runtime.slept[-1] == pytest.approx(0.1)


def test_partitions_without_a_leader_are_not_available(driver: ProducerDriver) -> None:
    keeper = driver.metadata
    driver.cluster.leaders[("t", 1)] = -1  # type: ignore[index]
    driver.runtime.while_waiting = [keeper.work]
    topic = keeper.wait_for("t", 5.0)
    assert topic.available == [0]
    assert sorted(topic.queues) == [0, 1]


def test_a_stopped_producer_waits_for_no_metadata(driver: ProducerDriver) -> None:
    keeper = driver.metadata
    driver.runtime.while_waiting = [keeper.ask_stop]
    with pytest.raises(MetadataTimeoutError):
        keeper.wait_for("t", 1000.0)
    assert sum(driver.runtime.slept) < 1


def test_a_round_that_begins_while_the_loop_is_stopped_does_not_wait(
    driver: ProducerDriver,
) -> None:
    """It clears the event that was set to wake it."""
    keeper = driver.metadata
    keeper.ask_stop()
    keeper.work()
    assert driver.runtime.slept == []

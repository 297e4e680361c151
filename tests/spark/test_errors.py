"""Connection errors name the option or the leader that was asked."""

from __future__ import annotations

import pytest

from kafka08.common import Broker, TopicPartition
from kafka08.errors import KafkaError
from kafka08.spark.errors import UnreachableError, naming, naming_leader


def test_the_option_and_its_brokers() -> None:
    with (
        pytest.raises(UnreachableError, match=r"^brokers has value h:1,i:2: refused$") as caught,
        naming("brokers", [("h", 1), ("i", 2)]),
    ):
        raise ConnectionRefusedError("refused")
    assert isinstance(caught.value, OSError)
    assert isinstance(caught.value, KafkaError)


def test_the_leader_and_its_partitions() -> None:
    leader = Broker(3, "h", 9)
    with (
        pytest.raises(ConnectionError, match=r"^h:9, leader of \[t,0\], \[t,1\]: reset$"),
        naming_leader(leader, [TopicPartition("t", 0), TopicPartition("t", 1)]),
    ):
        raise ConnectionResetError("reset")


def test_other_errors_pass() -> None:
    with pytest.raises(KafkaError, match="as told"), naming("brokers", []):
        raise KafkaError("as told")

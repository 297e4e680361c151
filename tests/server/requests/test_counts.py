from __future__ import annotations

from kafka08.common import TopicPartition
from kafka08.server.requests.counts import Counts

T = TopicPartition("t", 0)
U = TopicPartition("u", 1)


def test_what_is_counted_of_a_partition_goes_with_it() -> None:
    counts = Counts()
    for key in (T, T, U):
        counts.produce_expired(key)
        counts.topics.of(key.topic)
    counts.keep({U: None})
    assert counts.produce_expires.count == 3
    assert {key: meter.count for key, meter in counts.produce_expires_of.items()} == {U: 1}
    assert [tags for tags, _ in counts.topics.series("bytes_in")] == [("",), ("u",)]


def test_fetches_expire_by_their_kind() -> None:
    counts = Counts()
    counts.fetch_expired(is_follower=True)
    assert (counts.consumer_expires.count, counts.follower_expires.count) == (0, 1)

"""A leader's view of a follower before and after its first fetch."""

from __future__ import annotations

import pytest

from kafka08.cluster.replica import UNKNOWN_OFFSET, RemoteReplica


def test_the_log_end_is_unknown_until_the_follower_fetches() -> None:
    replica = RemoteReplica(17.5)
    assert (replica.log_end_offset, replica.fetched_at) == (-1, 17.5)
    assert replica.log_end_offset == UNKNOWN_OFFSET
    replica.log_end_offset = 9
    assert RemoteReplica(18.0).log_end_offset == UNKNOWN_OFFSET


def test_a_misspelt_field_is_an_error() -> None:
    with pytest.raises(AttributeError):
        RemoteReplica(0.0).leo = 1  # type: ignore[attr-defined]

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.log.cleaning.reach import Reach
from kafka08.runtime import Scheduler
from tests.server.support import ME, PEER, Rig, partition_state


@pytest.mark.parametrize(
    ("cleaner", "names"),
    [
        ("false", ["log tasks", "rebuilding"]),
        ("true", ["log tasks", "the log cleaner", "rebuilding"]),
    ],
)
def test_the_cleaner_runs_where_it_is_enabled(
    make_rig: Callable[..., Rig], cleaner: str, names: list[str]
) -> None:
    rig = make_rig(log_cleaner_enable=cleaner)
    runtime: Any = rig.runtime
    assert [part.name for part in rig.rooms[0].tasks(Scheduler(runtime))] == names


KEY = TopicPartition("t", 0)


def test_a_leader_forgets_what_all_its_isr_has(rig: Rig) -> None:
    storage: Any = rig.rooms[0]
    for isr, is_everywhere in [((ME, PEER), True), ((ME,), False)]:
        rig.lead(replicas=(ME, PEER), isr=isr)
        rig.know(partition_state(replicas=(ME, PEER), isr=(ME, PEER)))  # announced before
        assert storage.reach(KEY) == Reach(0, is_everywhere)


def test_a_follower_goes_by_what_was_announced(rig: Rig) -> None:
    storage: Any = rig.rooms[0]
    rig.follow()
    assert storage.reach(KEY) == Reach(0, is_everywhere=False)  # nothing was yet
    for isr, is_everywhere in [((ME, PEER), True), ((PEER,), False)]:
        rig.know(partition_state(leader=PEER, replicas=(ME, PEER), isr=isr))
        assert storage.reach(KEY) == Reach(0, is_everywhere)


def test_nothing_is_cleaned_of_a_partition_without_a_role(rig: Rig) -> None:
    storage: Any = rig.rooms[0]
    rig.know(partition_state())
    assert storage.reach(KEY) == Reach(0, is_everywhere=False)

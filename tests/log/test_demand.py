"""When work ahead of consumers is worth it."""

from __future__ import annotations

from kafka08.log.demand import AHEAD_BYTES, Demand


def test_a_log_that_nobody_reads_gets_one_helping() -> None:
    demand = Demand(100)
    assert demand.is_near_end
    demand.prepared(AHEAD_BYTES - 1)
    assert demand.is_near_end
    demand.prepared(1)
    assert not demand.is_near_end
    demand.read_at(99, 5000)  # from before what was prepared
    assert not demand.is_near_end


def test_a_consumer_that_has_come_to_where_it_began_brings_the_next() -> None:
    demand = Demand(100)
    demand.prepared(AHEAD_BYTES)
    demand.read_at(100, 5000)
    assert demand.is_near_end
    demand.prepared(AHEAD_BYTES)
    demand.read_at(4999, 9000)
    assert not demand.is_near_end
    demand.read_at(9000, 9000)
    assert demand.is_near_end


def test_after_a_truncation_consumers_need_not_pass_the_old_end() -> None:
    demand = Demand(100)
    demand.read_at(100, 5000)
    demand.prepared(AHEAD_BYTES)
    demand.cut_at(6000)
    demand.read_at(4999, 5000)
    assert not demand.is_near_end
    demand.cut_at(200)
    demand.read_at(200, 200)
    assert demand.is_near_end

from __future__ import annotations

from kafka08.common import TopicPartition
from kafka08.server.cluster_view.room import ClusterView
from tests.server.support import Rig
from zk import znodes

T0 = TopicPartition("t", 0)


def test_states_of_partitions_as_zookeeper_has_them(rig: Rig) -> None:
    view = rig.rooms[1]
    path = znodes.partition_state_path(*T0)
    assert (view.leader(T0), ClusterView.leader_and_isr(view, T0)) == (None, None)
    state = znodes.PartitionStateNode(2, 7, 1, (2, 3))
    rig.zookeeper.put(path, znodes.encode_partition_state(state))
    assert (view.leader(T0), ClusterView.leader_and_isr(view, T0)) == ((2, 7), (2, (2, 3)))
    rig.zookeeper.put(path, b"garbage")
    assert (view.leader(T0), ClusterView.leader_and_isr(view, T0)) == (None, None)

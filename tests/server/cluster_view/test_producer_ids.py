"""Ids of idempotent producers: blocks of them are claimed in ZooKeeper."""

from __future__ import annotations

from pathlib import Path

from kafka08.protocol import later_schemas
from tests.server.apis.test_coordinated_groups import ask
from tests.server.support import Rig


def test_producer_ids_are_unique_in_the_cluster(tmp_path: Path) -> None:
    rig = Rig(tmp_path, later=True)
    found = ask(rig, later_schemas.InitProducerIdRequest(None, 0), 0)
    assert found[:4] == (0, 0, 0, 0)
    node = rig.zookeeper.nodes["/latest_producer_id_block"]
    assert node.data == b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}'
    assert ask(rig, later_schemas.InitProducerIdRequest(None, 0), 1).producer_id == 1
    assert ask(rig, later_schemas.InitProducerIdRequest("mine", 0), 1).error == 50  # no time
    rig.close()

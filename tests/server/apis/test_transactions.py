"""InitProducerId: ids for idempotent producers, and for transactions where they are served."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.protocol.later_schemas import InitProducerIdRequest, InitProducerIdResponse
from tests.server.apis.test_coordinated_groups import ask
from tests.server.support import PEER, Rig


def test_each_request_gets_another_id(tmp_path: Path) -> None:
    rig = Rig(tmp_path, later=True)
    answers = [ask(rig, InitProducerIdRequest(None, 0), version) for version in (0, 1)]
    assert [(answer.error, answer.producer_epoch) for answer in answers] == [(0, 0)] * 2
    assert answers[0].producer_id != answers[1].producer_id
    rig.close()


@pytest.mark.scenario("modern-48", "transactions-50")
def test_no_transactions_while_an_original_is_registered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rig = Rig(tmp_path, later=True)
    rig.originals.add(PEER)
    for version in range(5):
        answer = ask(rig, InitProducerIdRequest("mine", 60_000), version)
        assert (answer.error, answer.producer_id, answer.producer_epoch) == (43, -1, -1)
    assert "which cannot store them" in caplog.text
    assert "/latest_producer_id_block" not in rig.zookeeper.nodes
    assert ask(rig, InitProducerIdRequest(None, 0), 4).error == 0  # idempotence needs no more
    rig.close()


def test_without_zookeeper_clients_ask_again(tmp_path: Path) -> None:
    rig = Rig(tmp_path, later=True)
    rig.zk.down = True
    assert ask(rig, InitProducerIdRequest(None, 0), 1) == InitProducerIdResponse(0, 14, -1, -1)
    rig.zk.down = False
    assert ask(rig, InitProducerIdRequest(None, 0), 1).error == 0
    rig.close()

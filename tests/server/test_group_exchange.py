"""A recorded conversation of a group's members with Kafka 3.9.1, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

from kafka08.common import OFFSETS_TOPIC, offsets_partition_for
from kafka08.network.peer import Peer, current_peer
from kafka08.protocol.group_schemas import JoinGroupResponse
from kafka08.protocol.requests import decode_response
from kafka08.protocol.types import Struct
from tests.server.support import Rig, partition_state

GOLDEN = Path(__file__).parents[1] / "golden" / "group-exchange.json"
JOIN_GROUP = 11


def test_every_answer_is_that_of_kafka_3_9(tmp_path: Path) -> None:
    """Member ids are made up by the broker: ours are replaced by those of the recording."""
    rig = Rig(tmp_path, later=True)
    rig.lead(OFFSETS_TOPIC, offsets_partition_for("g-wk3", 4))
    rig.know(partition_state("t-f2"))
    rig.runtime.run_spawned()
    ids: list[tuple[bytes, bytes]] = []  # theirs, ours
    token = current_peer.set(Peer("127.0.0.1:1234"))
    try:
        for step in json.loads(GOLDEN.read_text(encoding="utf-8"))["exchange"]:
            request, expected = bytes.fromhex(step["request"]), bytes.fromhex(step["response"])
            for theirs, ours in ids:
                request = request.replace(theirs, ours)
            rig.runtime.while_waiting = [lambda: pass_time(rig)] * 9
            reply = rig.send(request)
            assert reply is not None, step["name"]
            reply = reply[4:]
            if step["key"] == JOIN_GROUP:
                layout = Struct(JoinGroupResponse, step["version"])
                theirs, ours = (
                    decode_response(layout, data)[1].member_id.encode()
                    for data in (expected, reply)
                )
                if theirs and (theirs, ours) not in ids:
                    ids.append((theirs, ours))
            for theirs, ours in ids:
                reply = reply.replace(ours, theirs)
            assert reply == expected, step["name"]
    finally:
        current_peer.reset(token)
        rig.close()
    assert len(ids) == 3


def pass_time(rig: Rig) -> None:
    """The next deadline has come; the request waits for one of the first."""
    at = rig.groups.timers.next
    assert at is not None
    rig.clock.now = max(at, rig.clock.now)
    rig.groups.run_timers()

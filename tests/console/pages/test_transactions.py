"""kafka08.console.pages.transactions."""

from __future__ import annotations

import json
import re
from urllib.parse import quote

import pytest

from kafka08.protocol import transaction_schemas as t
from tests.console.scene import ConsoleScene, text_of
from tests.fakes.transactions import Begun


def scene_with_transaction(id_: str = "id", age_s: int = 90, **settings: object) -> ConsoleScene:
    """It holds back 6 of 10 messages of t, and should have ended after a minute."""
    scene = ConsoleScene(**settings)
    scene.runtime.clock.advance(1000)
    scene.topic("t", [1])
    scene.produce("t", *[b"m"] * 10)
    start_ms = scene.runtime.clock.millis() - age_s * 1000
    scene.cluster.transactions.begin(Begun(id_, 1, 7, start_ms, {scene.first("t"): 4}))
    scene.look()
    return scene


def scene_with_hanging_one() -> ConsoleScene:
    scene = ConsoleScene(read_only=False)
    scene.topic("t", [1])
    scene.produce("t", *[b"m"] * 10)
    scene.cluster.transactions.write(scene.first("t"), 7, 4, time_ms=0, epoch=2)
    scene.look()
    scene.look()
    return scene


def key_on(scene: ConsoleScene) -> str:
    found = re.search(r'/transactions/abort\?transaction=([^"]+)"', scene.get("/transactions").text)
    assert found
    return found[1].replace("%3A", ":")


def test_a_late_transaction_and_what_it_holds_back() -> None:
    page = scene_with_transaction().page("/transactions")
    assert "id Ongoing late 1 min 30 s 1 min 6 t 0 7 epoch 0 1" in page
    assert "t 0 1 4 10 6 id" in page
    assert "Abort" not in page


def test_one_in_time_is_not_late() -> None:
    page = scene_with_transaction(age_s=30).page("/transactions")
    assert "id Ongoing 30 s 1 min" in page


def test_one_that_hangs() -> None:
    page = scene_with_hanging_one().page("/transactions")
    assert re.search(r"not known hanging over .* - 6 t 0 7 epoch 2 none Abort", page)
    assert "producer 7" in page


def test_no_transaction_is_open() -> None:
    scene = ConsoleScene()
    assert "not been read yet" in scene.page("/transactions")
    scene.look()
    page = scene.page("/transactions")
    assert "No transaction is open." in page
    assert "No partition is held back." in page


def test_a_cluster_of_0_8_2_2() -> None:
    scene = ConsoleScene()
    del scene.server.nodes["/brokers/ids/1"]
    scene.look()
    assert "No broker here serves transactions." in scene.page("/transactions")
    assert "Open transactions -" in scene.page("/")


def test_a_broker_that_does_not_answer_is_named() -> None:
    scene = scene_with_transaction()

    def script(port: int, request: object) -> object:
        if isinstance(request, t.ListTransactionsRequest):
            raise ConnectionResetError("b1:9091 closed the connection")
        return None

    scene.cluster.script = script
    scene.look()
    page = scene.page("/transactions")
    assert "Broker 1 did not show all its transactions: b1:9091 closed the connection" in page
    assert "t 0 1 4 10 6 not known" in page
    assert "No transaction is known" in page


def test_a_broker_that_is_not_asked_is_named() -> None:
    scene = scene_with_transaction()
    found = scene.observer.transactions
    assert found is not None
    scene.observer.transactions = found._replace(silent=(1, 2))
    page = scene.page("/transactions")
    assert "Not asked, because they do not serve transactions now: 1 , 2 ." in page


def test_many_partitions_are_cut() -> None:
    scene = ConsoleScene()
    tps = {scene.first(f"t{number:02}"): None for number in range(20)}
    for tp in tps:
        scene.topic(tp.topic, [1])
    scene.cluster.transactions.begin(Begun("id", 1, 7, 0, dict(tps)))
    scene.look()
    assert "t11 0 and 8 more" in scene.page("/transactions")


def test_other_pages_lead_to_it() -> None:
    scene = scene_with_transaction()
    scene.commit("g", "t", 4)
    scene.commit("ahead", "t", 7)
    scene.look()
    assert "Open transactions 1, 1 late" in scene.page("/")
    assert "late transaction" in scene.page("/topics")
    for path in ("/topics/t", "/group?name=g"):
        page = scene.get(path).text
        assert '<a href="/transactions#held-t-0" class="bad"' in page
        assert "6 held back" in page
    assert "held back" not in scene.page("/group?name=ahead")  # it reads all
    assert 'id="held-t-0"' in scene.get("/transactions").text


def test_lists_of_topics_show_late_ones_only() -> None:
    scene = scene_with_transaction(age_s=1)
    assert "late" not in scene.page("/topics")
    assert "6 held back" in scene.page("/topics/t")
    assert "Open transactions 1 " in scene.page("/")


def test_an_id_is_never_markup() -> None:
    scene = scene_with_transaction("<script>&'\"", read_only=False)
    page = scene.get("/transactions").text
    assert "<script>&" not in page
    assert "&lt;script&gt;&amp;" in page
    assert scene.get(f"/transactions/abort?transaction={quote(key_on(scene))}").status_code == 200


def test_an_abort_takes_the_typed_id() -> None:
    scene = scene_with_transaction(read_only=False)
    key = key_on(scene)
    form = text_of(scene.get(f"/transactions/abort?transaction={key}").text)
    assert "Abort the transaction of id" in form
    assert "t 0 4 6" in form
    assert "fenced" in form
    wrong = scene.post("/transactions/abort", transaction=key, typed="other")
    assert wrong.status_code == 400
    assert scene.cluster.transactions.fenced == []
    answer = scene.post("/transactions/abort", transaction=key, typed="id")
    assert answer.status_code == 303
    [request] = scene.cluster.transactions.fenced
    assert request.transactional_id == "id"
    page = scene.page(answer.headers["Location"])
    assert "The transaction of id was aborted." in page
    assert "No transaction is open." in page


def test_an_abort_is_recorded(caplog: pytest.LogCaptureFixture) -> None:
    scene = scene_with_transaction(read_only=False)
    caplog.set_level("INFO")
    scene.post("/transactions/abort", transaction=key_on(scene), typed="id")
    [line] = [each.getMessage() for each in caplog.records if "abort transaction" in each.message]
    recorded = json.loads(line)
    assert recorded["target"] == "id"
    assert recorded["before"]["partitions"] == {"[t,0]": 4}


def test_one_that_hangs_is_aborted_by_its_producer() -> None:
    scene = scene_with_hanging_one()
    key = key_on(scene)
    form = text_of(scene.get(f"/transactions/abort?transaction={key}").text)
    assert "kafka-transactions.sh abort" in form
    assert scene.post("/transactions/abort", transaction=key, typed="7").status_code == 303
    [marker] = scene.cluster.transactions.marked
    assert (marker.producer_id, marker.producer_epoch, marker.committed) == (7, 2, False)
    assert "No partition is held back." in scene.page("/transactions")


def test_the_next_transaction_is_not_aborted_in_its_place() -> None:
    scene = scene_with_transaction(read_only=False)
    key = key_on(scene)
    fake = scene.cluster.transactions
    fake.end(7)
    assert scene.post("/transactions/abort", transaction=key, typed="id").status_code == 409
    fake.begin(Begun("id", 1, 7, scene.runtime.clock.millis(), {scene.first("t"): 9}))
    assert scene.post("/transactions/abort", transaction=key, typed="id").status_code == 409
    assert fake.fenced == []
    assert scene.get(f"/transactions/abort?transaction={key}").status_code == 404


def test_what_is_decided_is_not_aborted() -> None:
    scene = ConsoleScene(read_only=False)
    scene.topic("t", [1])
    begun = Begun("id", 1, 7, 0, {scene.first("t"): None}, state="PrepareCommit")
    scene.cluster.transactions.begin(begun)
    scene.look()
    assert "/transactions/abort" not in scene.get("/transactions").text
    assert scene.get("/transactions/abort?transaction=7:0:0").status_code == 400
    answer = scene.post("/transactions/abort", transaction="7:0:0", typed="id")
    assert answer.status_code == 400
    assert "is decided (PrepareCommit)" in answer.text


def test_who_may_abort() -> None:
    read_only = scene_with_transaction()
    path = "/transactions/abort?transaction=7:0:0"
    assert read_only.get(path).status_code == 403
    assert read_only.post("/transactions/abort").status_code == 403
    users = {"o": "ann:operator", "a": "bob:admin"}
    scene = scene_with_transaction(users=users, read_only=False)
    for name, found in (("ann", False), ("bob", True)):
        page = scene.get("/transactions", auth=(name, "secret"))
        assert ("Abort" in page.text) == found
    assert scene.get(path, auth=("ann", "secret")).status_code == 403

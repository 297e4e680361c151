"""kafka08.console.migration.pages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafka08.common import Broker
from kafka08.console.migration.reports import BrokerReport, KnownClient, Use
from tests.console.migration.uses import NEW, OLD, fetch, page, produce, report
from tests.console.scene import ConsoleScene
from tests.fakes.http_pages import answer
from zk import znodes
from zk.znodes import ConsumerRegistration

PLACE = ("b1", 9404)
FOUND_AT = ("1=b1:9404",)
DAY_S = 86_400


def scene_with(*uses: Use, age_s: int = DAY_S, **others: object) -> ConsoleScene:
    """Broker 1 alone, which has said what it heard; topics orders and views."""
    scene = ConsoleScene(broker_http=FOUND_AT)
    del scene.server.nodes["/brokers/ids/2"]
    for topic in ("orders", "views"):
        scene.topic(topic, [1])
    since_ms = scene.runtime.clock.millis() - age_s * 1000
    say(scene, report(*uses)._replace(**{"since_ms": since_ms, **others}))
    scene.look()
    return scene


def say(scene: ConsoleScene, found: BrokerReport) -> None:
    """The page of broker 1."""
    scene.pages.answers[PLACE] = answer(page(found))


def register(scene: ConsoleScene, group: str) -> None:
    path = znodes.consumer_id_path(group, f"{group}_web1-1400000000000-1a2b3c4d")
    node = ConsumerRegistration({"orders": 1})
    scene.server.put(path, znodes.encode_consumer(node))


def data(scene: ConsoleScene, path: str = "/migration") -> Any:
    return json.loads(scene.client.get(path, headers={"Accept": "application/json"}).text)


def test_topics_by_the_generations_of_their_clients() -> None:
    scene = scene_with(
        produce(OLD, 0, "orders"), produce(NEW, 8, "orders", 2), fetch(NEW, 4, "views")
    )
    text = scene.page("/migration")
    assert "1 of 2 topics is still written by 0.8 clients, and none is read by them." in text
    assert (
        "orders 1 of 0.8 shop 10.0.0.3 1 of 0.11 or later new 10.0.0.5, librdkafka 2.5 "
        "not seen 0, 2 1970-01-01 00:00:01 UTC" in text
    )
    assert "views not seen 1 of 0.11 or later" in text
    assert "shop 10.0.0.3 User:ANONYMOUS writes orders 1970-01-01 00:00:01 UTC" in text
    assert "shop at 10.0.0.3 writes orders." in text
    assert "Wait for a day" not in text
    assert "Not heard from" not in text


def test_no_client_of_0_8_is_left() -> None:
    scene = scene_with(produce(NEW, 8, "orders", 2))
    text = scene.page("/migration")
    assert "None of 2 topics is still written by 0.8 clients, and none is read by them." in text
    assert "None of 0 groups is still in ZooKeeper." in text
    assert text.count("Nothing that was seen.") == 3
    assert "None was heard. If that holds for a day" in text
    assert "No group was seen. A consumer appears here once it commits or registers." in text


def test_without_the_brokers_zookeeper_says_what_it_can() -> None:
    scene = ConsoleScene()
    scene.cluster.down = {9091}
    scene.topic("orders", [1])
    scene.commit("stores", "orders", 0)
    register(scene, "stores")
    register(scene, "silent")
    scene.look()
    text = scene.page("/migration")
    assert "2 of 2 groups are still in ZooKeeper." in text
    assert "still written by" not in text
    assert "Not heard from broker 1 : port 9091." in text
    assert "Not heard from broker 2 : it serves nothing over HTTP if it is of 0.8.2.2;" in text
    assert "Set http.port and http.host of the brokers, or console.broker.http" in text
    assert "stores zookeeper 1 orders not seen 1 member of 0.8 on web1, with offsets" in text
    assert "Broker 2 is of 0.8.2.2, or has api.versions.enable=false" in text
    assert "No broker has said who uses them." in text
    assert data(scene)["silent_brokers"] == [1, 2]


@pytest.mark.parametrize(
    ("found", "error"),
    [
        (ConnectionRefusedError("refused"), "refused"),
        (answer(b"x"), "its answer is not a page of clients"),
        (answer(page(report(broker_id=7))), "the page at its address is of broker 7"),
    ],
)
def test_a_broker_that_does_not_say_it(found: bytes | OSError, error: str) -> None:
    scene = scene_with()
    scene.pages.answers[PLACE] = found
    text = scene.page("/migration")
    assert f"Not heard from broker 1 : {error}." in text
    assert "writes and reads topics is not known" in text
    assert "Not known without the brokers." in text
    assert "No broker has said who speaks to it." in text
    assert data(scene)["broker_errors"] == {"1": error}


def test_brokers_that_are_silent_for_the_same_reason_share_a_line() -> None:
    scene = scene_with()
    for id_ in (2, 3):
        broker = Broker(id_, f"b{id_}", 9090 + id_)
        scene.register(broker)
    scene.look()
    text = scene.page("/migration")
    assert "Not heard from brokers 2 , 3 : it serves nothing over HTTP" in text
    assert "Clients that only these brokers saw are missing." in text
    assert "writes and reads topics is not known" not in text


def test_programs_of_this_project_are_not_told_apart() -> None:
    assert "Programs of kafka08 that do not set api.versions.request=true count as clients" in (
        scene_with().page("/migration")
    )


@pytest.mark.parametrize(
    ("uses", "first"),
    [
        ((produce(OLD, 0, "orders"),), "At least 1 of 2 topics is still written by"),
        ((), "As far as is known, none of 2 topics is still written by"),
    ],
)
def test_a_record_with_gaps_claims_less(uses: tuple[Use, ...], first: str) -> None:
    scene = scene_with(*uses, forgotten=7)
    text = scene.page("/migration")
    assert first in text
    assert "The brokers had no room for 7 entries" in text
    assert data(scene)["is_complete"] is False


def test_a_young_record_says_so() -> None:
    assert "Wait for a day before you rely on it" in scene_with(age_s=DAY_S - 1).page("/migration")


def test_filters() -> None:
    scene = scene_with(produce(OLD, 0, "orders"), fetch(NEW, 4, "views"))
    register(scene, "g")
    assert "shop" in scene.page("/migration?name=ORD")
    assert [each["name"] for each in data(scene, "/migration?name=librd")["topics"]] == ["views"]
    found = data(scene, "/migration?show=old")
    assert [each["name"] for each in found["topics"]] == ["orders"]
    assert [each["name"] for each in found["groups"]] == ["g"]
    text = scene.page("/migration?name=nothing")
    for kind in ("topic", "group", "client"):
        assert f"No {kind} fits the filter." in text


def test_each_table_is_sorted_by_its_own_parameter() -> None:
    scene = scene_with(produce(OLD, 0, "views"), produce(NEW, 8, "orders", 2))
    register(scene, "a")
    register(scene, "b")

    def order(query: str, rows: str) -> list[str]:
        return [each["name"] for each in data(scene, f"/migration?{query}")[rows]]

    assert order("", "topics") == ["views", "orders"]
    assert order("topics=name", "topics") == ["orders", "views"]
    assert order("topics=name&groups=-name", "groups") == ["b", "a"]
    for column in ("writers", "readers", "formats", "last_used"):
        assert sorted(order(f"topics=-{column}", "topics")) == ["orders", "views"]
    for column in ("commits_to", "members_of_0_8", "reads", "clients", "keeps"):
        assert sorted(order(f"groups={column}", "groups")) == ["a", "b"]
    for column in ("client_id", "host", "principal", "does", "last_seen"):
        assert len(data(scene, f"/migration?clients={column}")["old_clients"]) == 1
    hidden = '<input type="hidden" name="topics" value="name">'
    assert hidden in scene.get("/migration?topics=name").text
    assert scene.get("/migration?clients=name").status_code == 400


def test_as_json() -> None:
    scene = scene_with(produce(OLD, 0, "orders"))
    register(scene, "g")
    found = data(scene)
    assert found["sentences"][0].startswith("1 of 2 topics")
    assert found["topics"][0] == {
        "name": "orders",
        "writers": {"0.8": 1},
        "readers": {},
        "formats": [0],
        "last_used": "1970-01-01T00:00:01.000Z",
    }
    [group] = found["groups"]
    assert (group["members_of_0_8"], group["reads"], group["clients"]) == (1, ["orders"], {})
    assert [each["client_id"] for each in found["old_clients"]] == ["shop"]
    assert [each["name"] for each in found["steps"]] == ["formats", "groups", "clients"]
    assert (found["is_complete"], found["silent_brokers"], found["forgotten"]) == (True, [], 0)


def test_no_topic_yet() -> None:
    scene = ConsoleScene(broker_http=FOUND_AT)
    say(scene, report())
    scene.look()
    assert "There is no topic yet." in scene.page("/migration")


def test_what_clients_call_themselves_is_text() -> None:
    script = "<script>x</script>"
    client = KnownClient(script, script, script, False, script)
    found: BrokerReport = report(produce(client, 0, "orders"))
    scene = scene_with()
    say(scene, found)
    text = scene.get("/migration").text
    assert script not in text
    assert "&lt;script&gt;" in text


def test_many_rows_are_cut() -> None:
    clients = [OLD._replace(host=f"h{number:03}") for number in range(502)]
    scene = scene_with(*(produce(each, 0, "orders") for each in clients))
    text = scene.page("/migration")
    assert "2 more are not shown: filter by a name." in text
    assert len(data(scene)["old_clients"]) == 502


def test_before_the_cluster_was_seen() -> None:
    assert ConsoleScene().get("/migration").status_code == 503

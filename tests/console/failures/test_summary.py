"""kafka08.console.failures.summary."""

from __future__ import annotations

import pytest

from kafka08.common import TopicPartition
from kafka08.console.failures.summary import summary
from kafka08.console.failures.what_if import MovedCoordinator, MovedIds, NewLeader, Outcome
from tests.console.scene import ConsoleScene

TP = TopicPartition("t", 0)
NOTHING = Outcome((1,), (), False, [], [], [], [], [], [], [], [])


def test_nothing_happens() -> None:
    [only] = summary(NOTHING)
    assert only == ("good", "No partition would lose its leader or a replica that it needs.")


def test_unclean_elections_and_coordinators_are_counted() -> None:
    elected = [NewLeader(TP, 1, 2, (2, 3)), NewLeader(TP, 1, 2)]
    coordinators = [MovedCoordinator("g", 1, 2)]
    found = summary(NOTHING._replace(elected=elected, coordinators=coordinators))
    assert [each.text for each in found] == [
        "1 partition would elect an unclean leader.",
        "2 partitions would get another leader.",
        "1 group would get another coordinator, or none.",
    ]
    [_, _, many] = summary(NOTHING._replace(elected=elected, coordinators=coordinators * 2))
    assert many.text.startswith("2 groups")


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ([1], "1 transactional id would get another coordinator, or none."),
        ([1000, 200], "1,200 transactional ids would get another coordinator, or none."),
        (
            [7, None],
            "Transactional ids, whose number is not known, would get another coordinator, or none.",
        ),
    ],
)
def test_transactional_ids_are_counted(counts: list[int | None], text: str) -> None:
    moved = [MovedIds(1, 2, 1, count) for count in counts]
    [only] = summary(NOTHING._replace(transactional_ids=moved))
    assert only == ("warn", text)


def test_the_page_of_a_broker_has_the_summary() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1, 2])
    scene.cluster.in_sync[TP] = [1, 2]
    scene.look()
    page = scene.page("/brokers/1")
    assert "If this broker dies now 1 partition would get another leader." in page
    assert 'href="/brokers/1/what-if"' in scene.get("/brokers/1").text
    assert "No partition would lose its leader" in scene.page("/brokers/2")

"""kafka08.console.clusters.summary."""

from __future__ import annotations

from kafka08.console.clusters.summary import as_text, summary_of
from tests.console.clusters.scene import FrontScene


def test_a_cluster_that_was_not_seen_yet() -> None:
    row = summary_of(FrontScene().prod.site)
    assert (row.name, row.path, row.is_lost) == ("prod", "/c/prod/", True)
    assert row.condition.causes == ("It cannot be seen: the cluster has not been read yet",)
    assert row[3:9] == (None,) * 6
    assert as_text([row]) == (
        "Clusters: 0 of 1 well\n\n  prod  degraded\n\nprod: The cluster is degraded.\n"
        "  It cannot be seen: the cluster has not been read yet.\n"
    )


def test_the_figures_of_each() -> None:
    scene = FrontScene()
    scene.look()
    scene.prod.look()
    scene.prod.runtime.clock.advance(7)
    prod, test = (summary_of(each.site) for each in scene.scenes)
    assert (prod.brokers, prod.brokers_up, prod.under_replicated, prod.age_ms) == (2, 2, 1, 7000)
    assert (test.under_replicated, test.groups_behind, test.is_lost) == (0, 0, False)
    assert prod.data["seen"] is not None
    assert prod.data["verdict"] == "degraded"
    text = as_text([prod, test])
    assert text.startswith("Clusters: 1 of 2 well\n\n  prod    degraded  2 of 2 up  1 under-rep")
    assert "\n  test.2  well      2 of 2 up  0 under-replicated  0 groups behind  0 s ago\n" in text
    assert "\nprod: The cluster is degraded.\n  1 partitions are under-replicated" in text


def test_a_cluster_that_goes_away_keeps_its_last_figures() -> None:
    scene = FrontScene()
    scene.look()
    scene.prod.session.down = True
    scene.prod.look()
    row = summary_of(scene.prod.site)
    assert (row.brokers, row.is_lost) == (2, False)
    assert row.errors[0] == "ZooKeeper does not answer"
    assert row.condition.causes == ("It cannot be seen: ZooKeeper does not answer",)


def test_a_cluster_that_loses_data() -> None:
    scene = FrontScene()
    scene.prod.cluster.down = {9091, 9092}
    for id_ in (1, 2):
        del scene.prod.server.nodes[f"/brokers/ids/{id_}"]
    scene.look()
    row = summary_of(scene.prod.site)
    assert (row.is_lost, row.brokers_up, row.under_replicated) == (True, 0, None)

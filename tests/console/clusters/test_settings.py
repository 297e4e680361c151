"""kafka08.console.clusters.settings."""

from __future__ import annotations

import pytest

from kafka08.console.clusters.settings import clusters_of
from kafka08.errors import ConfigError

TWO = {
    "console.clusters": "prod, test",
    "cluster.prod.zookeeper.connect": "p:2181/kafka",
    "cluster.test.zookeeper.connect": "t:2181",
}


def test_without_names_there_is_one_cluster_without_a_name() -> None:
    for more in ({}, {"console.clusters": ""}):
        (found,) = clusters_of({"zookeeper.connect": "h:1", "client.sasl.mechanism": "X", **more})
        assert (found.name, found.config.zookeeper_connect) == ("", "h:1")
        assert found.client.sasl_mechanism == "X"
    with pytest.raises(ConfigError, match=r"property 'zookeeper\.connect'"):
        clusters_of({"console.clusters": " , "})


def test_each_cluster_has_its_own_settings() -> None:
    own = {
        "cluster.prod.console.read.only": "true",
        "cluster.prod.client.security.protocol": "SASL_SSL",
        "cluster.prod.zookeeper.ssl.client.enable": "true",
        "cluster.test.console.refresh.ms": "700",
    }
    shared = {
        "console.read.only": "false",
        "console.refresh.ms": "900",
        "http.port": "9001",
        "console.audit.file": "/a",
    }
    prod, test = clusters_of({**TWO, **own, **shared})
    assert [each.name for each in (prod, test)] == ["prod", "test"]
    assert prod.config.zookeeper_connect == "p:2181/kafka"
    assert [each.config.read_only for each in (prod, test)] == [True, False]
    assert [each.config.refresh_ms for each in (prod, test)] == [900, 700]
    assert [each.client.security_protocol for each in (prod, test)] == ["SASL_SSL", "PLAINTEXT"]
    assert [each.config.zookeeper_ssl_client_enable for each in (prod, test)] == [True, False]
    assert {each.config.http_port for each in (prod, test)} == {9001}
    assert {each.config.audit_file for each in (prod, test)} == {"/a"}
    assert prod.config.clusters == ("prod", "test")


def test_a_name_may_begin_with_another_one_and_a_dot() -> None:
    names = ("a", "a.b", "a.client")
    values = {f"cluster.{name}.zookeeper.connect": f"{name}:1" for name in names}
    more = {"cluster.a.client.security.protocol": "SSL"}
    found = clusters_of({"console.clusters": ",".join(names), **values, **more})
    assert [each.config.zookeeper_connect for each in found] == ["a:1", "a.b:1", "a.client:1"]
    assert [each.client.security_protocol for each in found] == ["SSL", "PLAINTEXT", "PLAINTEXT"]


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"console.clusters": "prod,a b"}, "the name 'a b': a name has letters"),
        ({"console.clusters": "prod,a/b"}, "the name 'a/b'"),
        ({"console.clusters": "prod,ä"}, "the name 'ä'"),
        ({"console.clusters": "prod,.."}, "the name '..'"),
        ({"console.clusters": "prod,test,prod"}, "the name prod 2 times"),
        (
            {"console.clusters": "prod,test,more"},
            "Missing required property 'cluster.more.zookeeper.connect'",
        ),
        (
            {"cluster.test.zookeeper.connect": ""},
            "Missing required property 'cluster.test.zookeeper.connect'",
        ),
        (
            {"cluster.stage.zookeeper.connect": "h:1"},
            "cluster.stage.zookeeper.connect is not of a cluster that console.clusters names: "
            "prod, test",
        ),
        ({"cluster.prod": "h:1"}, "cluster.prod is not of a cluster"),
        (
            {"cluster.prod.zookeper.connect": "h:1"},
            "cluster.prod.zookeper.connect: clusters have no setting named zookeper.connect",
        ),
        ({"cluster.prod.client.ssl.x": "1"}, "no setting named client.ssl.x"),
        (
            {"cluster.prod.http.port": "1"},
            "cluster.prod.http.port: http.port is a setting of the whole console",
        ),
        ({"cluster.prod.ssl.keystore.location": "k"}, "of the whole console"),
        ({"cluster.prod.console.users.file": "u"}, "of the whole console"),
        (
            {"zookeeper.connect": "h:1"},
            "zookeeper.connect is a setting of each cluster where console.clusters has a value: "
            "cluster.prod.zookeeper.connect",
        ),
        ({"client.sasl.mechanism": "PLAIN"}, "client.sasl.mechanism is a setting of each cluster"),
        ({"console.history.path": "h"}, "console.history.path is a setting of each cluster"),
        (
            {"cluster.test.console.refresh.ms": "x"},
            "Cluster test: console.refresh.ms has value x",
        ),
        (
            {
                "cluster.prod.console.history.path": "/h",
                "cluster.test.console.history.path": "/h",
            },
            "cluster.test.console.history.path and cluster.prod.console.history.path have the "
            "same value: /h",
        ),
        (
            {"cluster.test.console.read.only": "false", "http.host": "0.0.0.0"},
            "Cluster test: console.read.only has value false",
        ),
    ],
)
def test_what_is_wrong_is_named(more: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError) as error:
        clusters_of({**TWO, **more})
    assert text in str(error.value)


def test_an_empty_value_takes_a_setting_of_one_cluster_back() -> None:
    """Containers add to a file that has one cluster."""
    prod, _ = clusters_of({**TWO, "zookeeper.connect": ""})
    assert prod.config.zookeeper_connect == "p:2181/kafka"

"""The settings of ZooKeeper's connection, as those of other connections."""

from __future__ import annotations

from kafka08.consumer.config import ConsumerConfig
from kafka08.settings.broker import BrokerConfig
from kafka08.settings.settings import is_secret
from kafka08.settings.tls import SslSettings
from kafka08.settings.zookeeper import UNSECURED, ZooKeeperSecurity


def test_they_are_those_of_tls() -> None:
    assert UNSECURED.ssl() == SslSettings()
    found = ZooKeeperSecurity.from_properties(
        {
            "zookeeper.ssl.keystore.location": "/k",
            "zookeeper.ssl.keystore.password": "p",
            "zookeeper.ssl.keystore.type": "PEM",
            "zookeeper.ssl.truststore.location": "/t",
            "zookeeper.ssl.truststore.password": "q",
            "zookeeper.ssl.truststore.type": "PKCS12",
            "zookeeper.ssl.enabled.protocols": "TLSv1.3",
            "zookeeper.ssl.cipher.suites": "A,B",
            "zookeeper.ssl.endpoint.identification.algorithm": "",
        }
    )
    assert found.ssl() == SslSettings(
        ssl_keystore_location="/k",
        ssl_keystore_password="p",
        ssl_keystore_type="PEM",
        ssl_key_password="p",
        ssl_truststore_location="/t",
        ssl_truststore_password="q",
        ssl_truststore_type="PKCS12",
        ssl_enabled_protocols=("TLSv1.3",),
        ssl_cipher_suites="A,B",
        ssl_endpoint_identification_algorithm="",
    )


def test_brokers_and_consumers_have_them() -> None:
    assert ZooKeeperSecurity.keys() <= BrokerConfig.keys() & ConsumerConfig.keys()
    secret = {each.key for each in ZooKeeperSecurity.settings().values() if each.kind.secret}
    assert secret == set(filter(is_secret, ZooKeeperSecurity.keys()))

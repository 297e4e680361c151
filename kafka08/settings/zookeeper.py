"""The settings of a session with ZooKeeper that are about security, of brokers and clients."""

from __future__ import annotations

from kafka08.settings.settings import LIST, PASSWORD, Settings, dotted, one_of, setting
from kafka08.settings.tls import SslSettings

JAAS_CONFIG = "zookeeper.jaas.config"


class ZooKeeperSecurity(Settings):
    """``zookeeper.ssl.*``, the login, and whether nodes get ACLs."""

    zookeeper_ssl_client_enable: bool = dotted(
        False,
        doc="Not in 0.8.2.2. Connect to ZooKeeper with TLS; `zookeeper.connect` then names its "
        "secure ports.",
    )
    zookeeper_ssl_keystore_location: str | None = dotted(
        None,
        doc="Not in 0.8.2.2. File with the private key and the certificate for ZooKeeper: PEM or "
        "PKCS#12.",
    )
    zookeeper_ssl_keystore_password: str | None = dotted(
        None,
        PASSWORD,
        doc="Not in 0.8.2.2. Password of a PKCS#12 file, or of the key in a PEM file.",
    )
    zookeeper_ssl_keystore_type: str | None = dotted(
        None, default_text="by the file's content", doc="Not in 0.8.2.2. `PEM` or `PKCS12`."
    )
    zookeeper_ssl_truststore_location: str | None = dotted(
        None,
        doc="Not in 0.8.2.2. File with the certificates of the authorities that ZooKeeper's "
        "certificate may come from: PEM or PKCS#12. Without one those of the system.",
    )
    zookeeper_ssl_truststore_password: str | None = dotted(
        None, PASSWORD, doc="Not in 0.8.2.2. Password of a PKCS#12 file."
    )
    zookeeper_ssl_truststore_type: str | None = dotted(
        None, default_text="by the file's content", doc="Not in 0.8.2.2. `PEM` or `PKCS12`."
    )
    zookeeper_ssl_enabled_protocols: tuple[str, ...] = dotted(
        ("TLSv1.2", "TLSv1.3"),
        LIST,
        default_text="`TLSv1.2,TLSv1.3`",
        doc="Not in 0.8.2.2. As `ssl.enabled.protocols`.",
    )
    zookeeper_ssl_cipher_suites: str | None = dotted(
        None, default_text="OpenSSL's", doc="Not in 0.8.2.2. As `ssl.cipher.suites`."
    )
    zookeeper_ssl_endpoint_identification_algorithm: str = dotted(
        "HTTPS",
        kind=one_of("HTTPS", "https", ""),
        doc="Not in 0.8.2.2. Empty: ZooKeeper's certificate may have any name.",
    )
    zookeeper_clientCnxnSocket: str | None = dotted(
        None, doc="Not in 0.8.2.2. Java's class for connections to ZooKeeper. No effect."
    )
    zookeeper_jaas_config: str | None = setting(
        JAAS_CONFIG,
        None,
        PASSWORD,
        default_text="the section `Client` of the file that "
        "`-Djava.security.auth.login.config` names in `KAFKA_OPTS`",
        doc="Not in 0.8.2.2. The login at ZooKeeper, as in `sasl.jaas.config`: "
        '`org.apache.zookeeper.server.auth.DigestLoginModule required username="kafka" '
        'password="secret";`. It is ZooKeeper\'s scheme digest, not SASL.',
    )
    zookeeper_set_acl: bool = dotted(
        False,
        doc="Not in 0.8.2.2. Nodes may be changed by this login or certificate alone, but for "
        "those below `/consumers`. Not for clusters with brokers of 0.8.2.2.",
    )

    def ssl(self) -> SslSettings:
        """The settings of TLS as other connections have them."""
        found = {
            name: getattr(self, f"zookeeper_{name}")
            for name in SslSettings.settings()
            if f"zookeeper_{name}" in self.settings()
        }
        checked = self.zookeeper_ssl_endpoint_identification_algorithm.lower()
        return SslSettings(
            **{
                **found,
                "ssl_endpoint_identification_algorithm": checked,
                "ssl_key_password": self.zookeeper_ssl_keystore_password,
            }
        )


UNSECURED = ZooKeeperSecurity()

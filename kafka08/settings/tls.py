"""The settings of TLS, which brokers and clients have in common."""

from __future__ import annotations

from kafka08.settings.settings import LIST, PASSWORD, Settings, dotted, one_of

_PROTOCOLS = ("TLSv1.2", "TLSv1.3")


class SslSettings(Settings):
    """``ssl.*``. Stores are PEM or PKCS#12; which one, the content shows."""

    ssl_keystore_location: str | None = dotted(
        None,
        doc="Not in 0.8.2.2. File with the private key and the certificates that go with it, the "
        "own one first: PEM or PKCS#12.",
    )
    ssl_keystore_password: str | None = dotted(
        None, PASSWORD, doc="Not in 0.8.2.2. Password of a PKCS#12 file."
    )
    ssl_keystore_type: str | None = dotted(
        None,
        default_text="by the file's content",
        doc="Not in 0.8.2.2. `PEM` or `PKCS12`. A JKS file has to be converted, see "
        "docs/security.md.",
    )
    ssl_keystore_key: str | None = dotted(
        None, PASSWORD, doc="Not in 0.8.2.2. The private key itself, in PEM, in place of a file."
    )
    ssl_keystore_certificate_chain: str | None = dotted(
        None, doc="Not in 0.8.2.2. The certificates that go with `ssl.keystore.key`, in PEM."
    )
    ssl_key_password: str | None = dotted(
        None, PASSWORD, doc="Not in 0.8.2.2. Password of the private key."
    )
    ssl_truststore_location: str | None = dotted(
        None,
        doc="Not in 0.8.2.2. File with the certificates of the authorities that are trusted: PEM "
        "or PKCS#12. If a PEM file has revocation lists, they are used. Clients without one trust "
        "the system's authorities.",
    )
    ssl_truststore_password: str | None = dotted(
        None, PASSWORD, doc="Not in 0.8.2.2. Password of a PKCS#12 file."
    )
    ssl_truststore_type: str | None = dotted(
        None, default_text="by the file's content", doc="Not in 0.8.2.2. `PEM` or `PKCS12`."
    )
    ssl_truststore_certificates: str | None = dotted(
        None, doc="Not in 0.8.2.2. The certificates themselves, in PEM, in place of a file."
    )
    ssl_enabled_protocols: tuple[str, ...] = dotted(
        _PROTOCOLS,
        LIST,
        default_text="`TLSv1.2,TLSv1.3`",
        doc="Not in 0.8.2.2. Of these two versions, the ones to use. Older ones are refused.",
    )
    ssl_cipher_suites: str | None = dotted(
        None,
        default_text="OpenSSL's",
        doc="Not in 0.8.2.2. Ciphers for TLS 1.2, in OpenSSL's names, by commas.",
    )
    ssl_endpoint_identification_algorithm: str = dotted(
        "https",
        kind=one_of("https", ""),
        doc="Not in 0.8.2.2. `https`: the certificate of a server must have the name under which "
        "it is connected to. Empty: it may have any name.",
    )

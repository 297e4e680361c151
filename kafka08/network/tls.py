"""TLS contexts for listeners and for connections to brokers, made from ``ssl.*`` settings.

Certificates and keys that were replaced on disk are taken into use by ``Tls.reload``: for new
connections, and only after they were checked. Connections keep the context that they began with.
"""

from __future__ import annotations

import contextlib
import logging
import os
import ssl
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import Any, NamedTuple

from kafka08.common import ANONYMOUS, bare
from kafka08.errors import ConfigError
from kafka08.network.transport import PlainSocket, TlsSocket
from kafka08.runtime import Runtime
from kafka08.security import names
from kafka08.settings.secret_files import warn_if_open
from kafka08.settings.tls import SslSettings

logger = logging.getLogger("kafka.network.Tls")

NONE = "none"
_VERIFY = {NONE: ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_PEM, _JKS = b"-----BEGIN ", b"\xfe\xed\xfe\xed"
_CONVERT = "keytool -importkeystore -srckeystore {path} -destkeystore new.p12 -deststoretype pkcs12"
_CRL = b"-----BEGIN X509 CRL-----"


class Store(NamedTuple):
    """A key with its certificates, or certificates alone, in PEM. ``password`` is the key's."""

    pem: bytes
    password: str | None = None


class Tls:
    """The context of a listener, or of connections to brokers. Raises ConfigError. ``expires``:
    when the certificate of a listener ends, None if it cannot be read."""

    def __init__(
        self, settings: SslSettings, make: Callable[[SslSettings], ssl.SSLContext]
    ) -> None:
        self._settings = settings
        self._make = make
        self._stamps = self._read_stamps()
        self.context = make(settings)
        self.expires = self._read_expiry()
        if settings.ssl_keystore_location is not None:
            warn_if_open(settings.ssl_keystore_location, "a private key")

    def accepted(self, sock: PlainSocket) -> TlsSocket:
        """The server's side of a new connection; takes the socket over. Raises OSError."""
        wrapped = self.context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        assert isinstance(wrapped, TlsSocket)
        return wrapped

    def reload(self) -> None:
        """Take changed files into use; if they are not good, say so once and keep the old."""
        stamps = self._read_stamps()
        if stamps == self._stamps:
            return
        self._stamps = stamps
        try:
            context = self._make(self._settings)
            if self._settings.ssl_keystore_location is not None:
                _check_own_certificate(self._settings)
        except (ConfigError, OSError, ValueError) as error:
            logger.error(
                "Changed files of ssl.keystore.location or ssl.truststore.location are not used, "
                "and the old certificates stay: %s",
                error,
            )
            return
        self.context = context
        self.expires = self._read_expiry()
        logger.info("Certificates in changed files are used for new connections from now on")

    def _read_expiry(self) -> datetime | None:
        if self.context.protocol != ssl.PROTOCOL_TLS_SERVER:
            return None
        try:
            return names.expiry(_own_certificate(self._settings))
        except (ConfigError, OSError, ValueError):
            return None  # the first client that connects is told why

    def _read_stamps(self) -> list[tuple[int, int, int] | None]:
        return [_stamp(path) for path in _files(self._settings)]


def _files(settings: SslSettings) -> list[str]:
    paths = settings.ssl_keystore_location, settings.ssl_truststore_location
    return [path for path in paths if path is not None]


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def server_context(settings: SslSettings, client_auth: str = NONE) -> ssl.SSLContext:
    """For a listener. Raises ConfigError."""
    context = _context(ssl.PROTOCOL_TLS_SERVER, settings)
    if not _has_key(settings):
        raise ConfigError("ssl.keystore.location is not set, and a listener with TLS needs it.")
    context.sslsocket_class = TlsSocket
    context.verify_mode = _VERIFY[client_auth]
    if client_auth != NONE and not _load_trusted(context, settings):
        raise ConfigError(
            f"ssl.client.auth is {client_auth}, and ssl.truststore.location is not set."
        )
    return context


def client_context(settings: SslSettings) -> ssl.SSLContext:
    """For connections to brokers. Raises ConfigError."""
    context = _context(ssl.PROTOCOL_TLS_CLIENT, settings)
    context.check_hostname = bool(settings.ssl_endpoint_identification_algorithm)
    if not _load_trusted(context, settings):
        context.load_default_certs()
    return context


def _context(protocol: int, settings: SslSettings) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    versions = [_VERSIONS[each] for each in settings.ssl_enabled_protocols if each in _VERSIONS]
    if len(versions) != len(settings.ssl_enabled_protocols) or not versions:
        raise ConfigError(
            f"ssl.enabled.protocols has value {','.join(settings.ssl_enabled_protocols)}, and "
            f"only {' and '.join(_VERSIONS)} are served."
        )
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    if settings.ssl_cipher_suites:
        try:
            context.set_ciphers(settings.ssl_cipher_suites.replace(",", ":") + ":!aNULL:!eNULL")
        except ssl.SSLError:
            raise ConfigError(
                f"ssl.cipher.suites has value {settings.ssl_cipher_suites}, which has no cipher "
                "in OpenSSL's names, as ECDHE-RSA-AES128-GCM-SHA256."
            ) from None
    if _has_key(settings):
        _load_key(context, settings)
    return context


def _has_key(settings: SslSettings) -> bool:
    return settings.ssl_keystore_location is not None or settings.ssl_keystore_key is not None


def _load_key(context: ssl.SSLContext, settings: SslSettings) -> None:
    if settings.ssl_keystore_location is not None:
        where, key = settings.ssl_keystore_location, "ssl.keystore.location"
        store = _read(where, key, settings.ssl_keystore_type, settings.ssl_keystore_password)
    else:
        where, key = "its text", "ssl.keystore.key"
        parts = settings.ssl_keystore_key or "", settings.ssl_keystore_certificate_chain or ""
        store = Store("\n".join(map(_lines, parts)).encode())
    password = settings.ssl_key_password or store.password or ""
    try:
        with _file(store.pem) as path:
            # A password that is not needed is not asked for; OpenSSL must never ask a terminal.
            context.load_cert_chain(path, password=lambda: password)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{key}: {where} has no private key with its certificate, or ssl.key.password is not "
            f"its password ({_reason(error)})."
        ) from None


def _load_trusted(context: ssl.SSLContext, settings: SslSettings) -> bool:
    if settings.ssl_truststore_location is not None:
        where, key = settings.ssl_truststore_location, "ssl.truststore.location"
        store = _read(where, key, settings.ssl_truststore_type, settings.ssl_truststore_password)
    elif settings.ssl_truststore_certificates is not None:
        where, key = "its text", "ssl.truststore.certificates"
        store = Store(_lines(settings.ssl_truststore_certificates).encode())
    else:
        return False
    try:
        with _file(store.pem) as path:
            context.load_verify_locations(path)
    except OSError as error:
        raise ConfigError(f"{key}: {where} has no certificates ({_reason(error)}).") from None
    if _CRL in store.pem:
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    return True


def _lines(text: str) -> str:
    """PEM in a file of properties may be one line, with blanks where lines ended."""
    if "\n" in text.strip():
        return text
    words = text.split("-----")
    for at in range(2, len(words), 4):
        words[at] = "\n" + "\n".join(words[at].split()) + "\n"
    return "-----".join(each if at % 2 or at % 4 == 2 else "\n" for at, each in enumerate(words))


def _read(path: str, key: str, kind: str | None, password: str | None) -> Store:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise ConfigError(f"{key}: cannot read {path}: {error.strerror}.") from None
    if kind not in (None, "PEM", "PKCS12") or data.startswith(_JKS):
        raise ConfigError(
            f"{key}: {path} is JKS, which is not read. Convert it: {_CONVERT.format(path=path)}"
        )
    if kind == "PEM" or (kind is None and _PEM in data):
        return Store(data)
    return _pkcs12(path, key, data, password)


def _pkcs12(path: str, key: str, data: bytes, password: str | None) -> Store:
    try:
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
            pkcs12,
        )
    except ImportError:
        raise ConfigError(
            f"{key}: {path} is PKCS#12, which needs the Python package cryptography. Install it, "
            "or convert the file: openssl pkcs12 -in FILE -out new.pem"
        ) from None
    try:
        found = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError:
        setting = key.replace("location", "password")
        raise ConfigError(
            f"{key}: {path} is not PKCS#12, or {setting} is not its password."
        ) from None
    pem = []
    if found.key is not None:
        form = Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        pem.append(found.key.private_bytes(*form))
    if found.cert is not None:
        pem.append(found.cert.certificate.public_bytes(Encoding.PEM))
    pem += [each.certificate.public_bytes(Encoding.PEM) for each in found.additional_certs]
    return Store(b"".join(pem))


@contextlib.contextmanager
def _file(data: bytes) -> Iterator[str]:
    """A path with that content, in memory: OpenSSL reads keys from files alone."""
    descriptor = os.memfd_create("pem")
    try:
        os.write(descriptor, data)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _reason(error: Exception) -> str:
    return getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)


def _own_certificate(settings: SslSettings) -> bytes:
    """The certificate (DER) that a client is sent. Raises OSError or ConfigError if none could
    connect."""
    context = _context(ssl.PROTOCOL_TLS_SERVER, settings)
    receiver = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    receiver.check_hostname, receiver.verify_mode = False, ssl.CERT_NONE
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = receiver.wrap_bio(to_client, to_server)
    server = context.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (client, server):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
    certificate = client.getpeercert(binary_form=True)
    if certificate is None:
        raise ConfigError("a handshake with them fails")
    return certificate


def _check_own_certificate(settings: SslSettings) -> None:
    """Raises OSError or ConfigError if no client could connect with its certificate."""
    certificate = _own_certificate(settings)
    ends = names.expiry(certificate)
    if ends < datetime.now(timezone.utc):
        raise ConfigError(f"the certificate of {names.subject(certificate)} ended on {ends:%F}")


class SecureConnector:
    """Connects as ``runtime`` does, and makes the connections secure."""

    def __init__(self, runtime: Runtime, tls: Tls) -> None:
        self._runtime = runtime
        self._tls = tls

    def connect(self, host: str, port: int, timeout: float) -> Any:
        """A connected socket with that timeout, after the handshake. Raises OSError."""
        sock = self._runtime.connect(host, port, timeout)
        try:
            return self._runtime.secured(sock, self._tls.context, bare(host))
        except (OSError, ValueError) as error:
            sock.close()
            raise OSError(f"TLS handshake with {host}:{port} failed: {_why(error)}") from error


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate refused: {error.verify_message}"
    return _reason(error)


def principal(sock: TlsSocket, name: Callable[[str], str]) -> str:
    """The principal that the peer's certificate names."""
    certificate = sock.getpeercert(binary_form=True)
    return ANONYMOUS if certificate is None else f"User:{name(names.subject(certificate))}"

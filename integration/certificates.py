"""An authority that issues certificates for tests, for as short as they need them."""

from __future__ import annotations

import ipaddress
from datetime import datetime, timedelta, timezone
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

_YEAR_S = 365 * 86400


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


class Authority:
    """``path``: its certificate as a PEM file."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.path = directory / "authority.pem"
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("authority of tests")
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        certificate = (
            self._builder("authority of tests", self._key.public_key(), _YEAR_S)
            .add_extension(constraints, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def _builder(
        self, name: str, key: ec.EllipticCurvePublicKey, seconds: float
    ) -> x509.CertificateBuilder:
        now = datetime.now(timezone.utc)
        return (
            x509.CertificateBuilder()
            .subject_name(_name(name))
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(seconds=seconds))
        )

    def issue(self, name: str, seconds: float = _YEAR_S) -> Path:
        """NAME.pem with a new key and a certificate of the subject CN=NAME for loopback, in place
        of an older one."""
        key = ec.generate_private_key(ec.SECP256R1())
        loopback = x509.SubjectAlternativeName(
            [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        )
        certificate = (
            self._builder(name, key.public_key(), seconds)
            .add_extension(loopback, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        pem = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ) + certificate.public_bytes(serialization.Encoding.PEM)
        path = self._directory / f"{name}.pem"
        new = path.with_suffix(".new")
        new.touch(0o600)
        new.write_bytes(pem)
        return new.replace(path)


PASSWORD = "of-tests"


def as_pkcs12(pem: Path) -> Path:
    """The same key and certificate for Java, which takes a key in PEM only if it has a password."""
    data = pem.read_bytes()
    path = pem.with_suffix(".p12")
    path.touch(0o600)
    path.write_bytes(
        pkcs12.serialize_key_and_certificates(
            b"tests",
            serialization.load_pem_private_key(data, None),  # type: ignore[arg-type]
            x509.load_pem_x509_certificate(data),
            None,
            serialization.BestAvailableEncryption(PASSWORD.encode()),
        )
    )
    return path

"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), without channel binding.

The server keeps a ``Credential``, from which the password does not follow. Names and passwords are
UTF-8 without SASLprep, as in org.apache.kafka.common.security.scram.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import math
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from kafka08.security.mechanisms import LoginRefusedError, Side, Step

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}

MIN_ITERATIONS = 4096
# A client computes no more than that for a server.
MAX_ITERATIONS = 1_000_000

_NAME = r"(?:[^=,\0]|=2C|=3D)+"
_PRINTABLE = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64 = r"[a-zA-Z0-9/+]+={0,2}"
_CLIENT_FIRST = re.compile(
    rf"(?P<header>[ny],(?:a=(?P<authzid>{_NAME}))?,)"
    rf"(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>{_PRINTABLE})(?:,[a-zA-Z]=[^,\0]+)*)"
)
_SERVER_FIRST = re.compile(
    rf"r=(?P<nonce>{_PRINTABLE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[0-9]{{1,9}})"
    r"(?:,[a-zA-Z]=[^,\0]+)*"
)
_CLIENT_FINAL = re.compile(
    rf"(?P<unproved>c=(?P<binding>{_BASE64}),r=(?P<nonce>{_PRINTABLE})(?:,[a-zA-Z]=[^,\0]+)*)"
    rf",p=(?P<proof>{_BASE64})"
)
_SERVER_FINAL = re.compile(rf"(?:e=(?P<error>[^,\0]+)|v=(?P<signature>{_BASE64}))(?:,.*)?")
_CREDENTIAL = re.compile(
    rf"salt=(?P<salt>{_BASE64}),stored_key=(?P<stored>{_BASE64}),server_key=(?P<server>{_BASE64}),"
    r"iterations=(?P<iterations>[0-9]{1,9})"
)
_OF_KAFKA = re.compile(rb"[0-9a-z]{22,26}")
_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"
_NONCE_BITS = 130
_WRONG_PROOF = "Invalid client credentials"


class Credential(NamedTuple):
    """Proof of a password, as the server keeps it."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"Credential({self.iterations} iterations)"


def credential_of(mechanism: str, password: str, salt: bytes, iterations: int) -> Credential:
    """Takes about 0.5 µs an iteration."""
    salted = salted_password(mechanism, password, salt, iterations)
    return credential_of_salted(mechanism, salted, salt, iterations)


def salted_password(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    """A secret like the password itself: who has it can log in."""
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)


def credential_of_salted(mechanism: str, salted: bytes, salt: bytes, iterations: int) -> Credential:
    name = HASHES[mechanism]
    client_key = hmac.digest(salted, b"Client Key", name)
    stored_key = hashlib.new(name, client_key).digest()
    return Credential(salt, stored_key, hmac.digest(salted, b"Server Key", name), iterations)


def encode_credential(credential: Credential) -> str:
    """The text in a user's node in ZooKeeper."""
    salt, stored_key, server_key = map(_base64, credential[:3])
    return (
        f"salt={salt},stored_key={stored_key},server_key={server_key},"
        f"iterations={credential.iterations}"
    )


def decode_credential(mechanism: str, text: str) -> Credential:
    """Raises ValueError without the text, which is a secret."""
    found = _CREDENTIAL.fullmatch(text)
    if found is None:
        raise ValueError("not a SCRAM credential")
    salt, stored_key, server_key = (
        base64.b64decode(found[key], validate=True) for key in ("salt", "stored", "server")
    )
    size = hashlib.new(HASHES[mechanism]).digest_size
    if len(stored_key) != size or len(server_key) != size:
        raise ValueError(f"the keys of a credential are not {size} bytes long")
    if int(found["iterations"]) < MIN_ITERATIONS:
        raise ValueError(f"a credential of less than {MIN_ITERATIONS} iterations")
    return Credential(salt, stored_key, server_key, int(found["iterations"]))


class Shape(NamedTuple):
    """The visible part of a credential: the iterations, and the form of the salt.

    ``salt_bytes``: 0 for a salt as Kafka makes them, which is 130 random bits in base 36.
    """

    iterations: int = MIN_ITERATIONS
    salt_bytes: int = 0


def shape_of(credential: Credential) -> Shape:
    salt = credential.salt
    return Shape(credential.iterations, 0 if _OF_KAFKA.fullmatch(salt) else len(salt))


def made_up_credential(
    mechanism: str, user: str, secret: bytes, shapes: Mapping[Shape, int] | None = None
) -> Credential:
    """For a name that does not exist: always the same salt, and keys that no password fits.

    ``secret``: the same on every broker of the cluster, so that all of them show the same salt.
    ``shapes``: how many users of the mechanism have each shape. A made-up credential has one of
    them, as often as users have it.
    """
    name = HASHES[mechanism]
    key = hmac.digest(secret, f"{mechanism} {user}".encode(), "sha512")
    shape = _drawn(key, shapes or {Shape(): 1})
    if shape.salt_bytes:
        salt = hashlib.shake_256(key + b"salt").digest(shape.salt_bytes)
    else:
        salt = nonce_of(hmac.digest(key, b"salt", "sha256")).encode()
    stored_key, server_key = (hmac.digest(key, text, name) for text in (b"stored", b"server"))
    return Credential(salt, stored_key, server_key, shape.iterations)


def _drawn(key: bytes, shapes: Mapping[Shape, int]) -> Shape:
    """Weighted rendezvous hashing: when users come and go, few names get another shape. The count
    of a real user does not change with other users either."""

    def rank(shape: Shape) -> tuple[float, Shape]:
        text = f"{shape.iterations} {shape.salt_bytes}".encode()
        number = int.from_bytes(hmac.digest(key, text, "sha256")[:6], "big")
        return -shapes[shape] / math.log((number + 1) / (2**48 + 1)), shape

    return max(shapes, key=rank)


def nonce_of(random: bytes) -> str:
    """A nonce or salt of 130 bits from at least 17 random bytes: base 36, as Kafka's."""
    left = int.from_bytes(random, "big") % (1 << _NONCE_BITS)
    digits = []
    while left:
        left, digit = divmod(left, 36)
        digits.append(_BASE36[digit])
    return "".join(reversed(digits)) or "0"


class ScramServer(Side):
    """``find`` has the credential of a user, and a made-up one for a name that does not exist.
    A login that began with another credential than the user has at its end is refused. ``nonce``
    must be new for each login."""

    def __init__(self, mechanism: str, find: Callable[[str], Credential], nonce: str) -> None:
        super().__init__(self._first)
        self._hash = HASHES[mechanism]
        self._find = find
        self._own_nonce = nonce

    def _first(self, token: bytes) -> Step:
        found = _match(_CLIENT_FIRST, token, "client-first-message")
        name = _unescape(found["name"])
        if found["authzid"] is not None and _unescape(found["authzid"]) != name:
            raise LoginRefusedError("an authorization id that is different from username")
        credential = self._find(name)
        nonce = found["nonce"] + self._own_nonce
        first = f"r={nonce},s={_base64(credential.salt)},i={credential.iterations}"
        firsts = _FirstMessages(found["bare"], first, nonce)
        binding = _base64(found["header"].encode())

        def final(token: bytes) -> Step:
            return self._final(token, name, credential, firsts, binding)

        return Step(first.encode(), final)

    def _final(
        self, token: bytes, name: str, credential: Credential, firsts: _FirstMessages, binding: str
    ) -> Step:
        found = _match(_CLIENT_FINAL, token, "client-final-message")
        if found["nonce"] != firsts.nonce or found["binding"] != binding:
            raise LoginRefusedError("another nonce or channel binding in the client-final-message")
        message = firsts.message(found["unproved"])
        signature = hmac.digest(credential.stored_key, message, self._hash)
        proof = _bytes(found["proof"])
        if len(proof) != len(signature):
            raise LoginRefusedError(_WRONG_PROOF)
        stored_key = hashlib.new(self._hash, _xor(proof, signature)).digest()
        if not hmac.compare_digest(stored_key, credential.stored_key):
            raise LoginRefusedError(_WRONG_PROOF)
        if self._find(name) != credential:
            raise LoginRefusedError("the credential was changed or deleted during the login")
        self.user = name
        server_signature = hmac.digest(credential.server_key, message, self._hash)
        return Step(f"v={_base64(server_signature)}".encode())


class ScramClient(Side):
    """Checks the server's signature too: a server that does not know the password is refused."""

    def __init__(self, mechanism: str, name: str, password: str, nonce: str) -> None:
        super().__init__(self._begin)
        self._mechanism = mechanism
        self._hash = HASHES[mechanism]
        self._password = password
        self._own_nonce = nonce
        escaped = name.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={escaped},r={nonce}"

    def _begin(self, _: bytes) -> Step:
        return Step(f"n,,{self._bare}".encode(), self._prove)

    def _prove(self, token: bytes) -> Step:
        found = _match(_SERVER_FIRST, token, "server-first-message")
        nonce, iterations = found["nonce"], int(found["iterations"])
        if not nonce.startswith(self._own_nonce) or nonce == self._own_nonce:
            raise LoginRefusedError("the server's nonce does not extend the client's")
        if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
            raise LoginRefusedError(
                f"the server asks for {iterations} iterations, which is not between "
                f"{MIN_ITERATIONS} and {MAX_ITERATIONS}"
            )
        salt = _bytes(found["salt"])
        salted = salted_password(self._mechanism, self._password, salt, iterations)
        unproved = f"c=biws,r={nonce}"
        message = _FirstMessages(self._bare, found[0], nonce).message(unproved)
        client_key = hmac.digest(salted, b"Client Key", self._hash)
        stored_key = hashlib.new(self._hash, client_key).digest()
        proof = _xor(client_key, hmac.digest(stored_key, message, self._hash))
        server_key = hmac.digest(salted, b"Server Key", self._hash)
        expected = hmac.digest(server_key, message, self._hash)

        def check(token: bytes) -> Step:
            return _check_server(token, expected)

        return Step(f"{unproved},p={_base64(proof)}".encode(), check)


def _check_server(token: bytes, expected: bytes) -> Step:
    found = _match(_SERVER_FINAL, token, "server-final-message")
    if found["error"] is not None:
        raise LoginRefusedError(f"the server refused the login: {found['error']}")
    if not hmac.compare_digest(_bytes(found["signature"]), expected):
        raise LoginRefusedError("the server's signature is wrong: it does not know the password")
    return Step(None)


class _FirstMessages(NamedTuple):
    """The first message of either side; both sign them, with the client's final one."""

    client_first: str
    server_first: str
    nonce: str

    def message(self, client_final: str) -> bytes:
        return f"{self.client_first},{self.server_first},{client_final}".encode()


def _match(pattern: re.Pattern[str], token: bytes, what: str) -> re.Match[str]:
    try:
        found = pattern.fullmatch(token.decode())
    except UnicodeDecodeError:
        found = None
    if found is None:
        raise LoginRefusedError(f"not a SCRAM {what}")
    return found


def _unescape(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise LoginRefusedError("not base64") from None

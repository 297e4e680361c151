"""Subjects of certificates as Java writes them, and the rules that map them to users."""

from __future__ import annotations

import ssl
from datetime import datetime, timezone
from pathlib import Path

import pytest

from kafka08.errors import ConfigError
from kafka08.security import names

TLS = Path(__file__).parents[1] / "golden" / "tls"


def der(name: str) -> bytes:
    text = (TLS / f"{name}.pem").read_text()
    return ssl.PEM_cert_to_DER_cert(text[text.index("-----BEGIN CERTIFICATE") :])


# Both columns are from X500Principal of Java 17: getEncoded and getName.
@pytest.mark.scenario("security-8")
@pytest.mark.parametrize(
    ("encoded", "expected"),
    [
        (
            "3022310c300a060355040a13037820793112301006035504030c09612c623d6323643b65",
            r"CN=a\,b\=c\#d\;e,O=x y",
        ),
        (
            "3022310a300806035504031301713114301206092a864886f70d01090116056140622e63",
            "1.2.840.113549.1.9.1=#16056140622e63,CN=q",
        ),
        (
            "3020310f300d060355040b1306747261696c20310d300b060355040313046c656164",
            "CN=lead,OU=trail\\ ",
        ),
        (
            "3061310a30080603550408130174310a300806035504091301733111300f060a0992268993f22c640119"
            "1601643111300f060a0992268993f22c6401011301753114300806035504031301783008060355040b13"
            "0179310b3009060355040513023132",
            "2.5.4.5=#13023132,CN=x+OU=y,UID=u,DC=d,STREET=s,ST=t",
        ),
        ("30153113301106035504030c0a23782b793c7a3e22715c", 'CN=\\#x\\+y\\<z\\>\\"q\\\\'),
        (
            "3020310e300c06035504030c05c3bc626572310e300c060355040c13057469746c65",
            "2.5.4.12=#13057469746c65,CN=über",
        ),
    ],
)
def test_subjects_are_written_as_by_java(encoded: str, expected: str) -> None:
    assert names.distinguished_name(bytes.fromhex(encoded)) == expected


def test_the_subject_and_the_end_of_a_certificate() -> None:
    assert names.subject(der("client")) == "CN=alice,OU=team,O=org"
    assert names.expiry(der("expired")) == datetime(2021, 1, 1, tzinfo=timezone.utc)
    assert names.expiry(der("client")).year > 2100


@pytest.mark.parametrize("size", [0, 1, 10, 100, 200])
def test_a_certificate_that_is_cut_off(size: int) -> None:
    with pytest.raises(ValueError):
        names.subject(der("client")[:size])


ALICE = "CN=Alice,OU=team,O=org"


@pytest.mark.scenario("security-8")
@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("DEFAULT", ALICE),
        ("", ALICE),
        ("RULE:^CN=(.*?),.*$/$1/", "Alice"),
        ("RULE:^CN=(.*?),.*$/$1/L", "alice"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$2-$1/U", "TEAM-ALICE"),
        ("RULE:^CN=.*$/x,y/,DEFAULT", "x,y"),
        ("RULE:^CN=Al/no/, RULE:^CN=(.*?),.*$/$1/", "Alice"),
        ("RULE:^O=.*$/no/,DEFAULT", ALICE),
    ],
)
def test_rules(rules: str, expected: str) -> None:
    assert names.mapping(rules)(ALICE) == expected


@pytest.mark.parametrize(
    "rules", ["x", "RULE:a", "RULE:a/b/X", "RULE:(/b/", "RULE:a/$1/", "DEFAULT x"]
)
def test_wrong_rules_are_refused(rules: str) -> None:
    with pytest.raises(ConfigError, match=r"^ssl.principal.mapping.rules has value"):
        names.mapping(rules)

from __future__ import annotations

import socket
from typing import Any

import pytest

from kafka08.errors import ConfigError
from kafka08.network.hosts import canonical_host_name, is_own_address


class Resolver:
    """Answers from two tables, as the machine's resolver would."""

    def __init__(self, addresses: dict[str, list[str]], names: dict[str, str]) -> None:
        self._addresses = addresses
        self._names = names

    def getaddrinfo(self, host: str, port: Any, **_: Any) -> list[tuple[Any, ...]]:
        if host not in self._addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [
            (socket.AF_INET6 if ":" in each else socket.AF_INET, 1, 6, "", (each, 0))
            for each in self._addresses[host]
        ]

    def getnameinfo(self, address: tuple[str, int], _: int) -> tuple[str, str]:
        return self._names.get(address[0], address[0]), "0"


def resolve(
    monkeypatch: pytest.MonkeyPatch, addresses: dict[str, list[str]], names: dict[str, str]
) -> str:
    resolver = Resolver(addresses, names)
    monkeypatch.setattr(socket, "gethostname", lambda: "box")
    monkeypatch.setattr(socket, "getaddrinfo", resolver.getaddrinfo)
    monkeypatch.setattr(socket, "getnameinfo", resolver.getnameinfo)
    return canonical_host_name()


def test_the_name_that_leads_back(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = {"box": ["10.0.0.1"], "box.example.org": ["10.0.0.1"]}
    assert resolve(monkeypatch, addresses, {"10.0.0.1": "box.example.org"}) == "box.example.org"


@pytest.mark.parametrize("elsewhere", [{}, {"box.example.org": ["10.0.0.9"]}])
def test_the_address_where_no_name_leads_back(
    monkeypatch: pytest.MonkeyPatch, elsewhere: dict[str, list[str]]
) -> None:
    addresses = {"box": ["10.0.0.1"], **elsewhere}
    assert resolve(monkeypatch, addresses, {"10.0.0.1": "box.example.org"}) == "10.0.0.1"


def test_ipv4_first(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve(monkeypatch, {"box": ["2001:db8::1", "10.0.0.1"]}, {}) == "10.0.0.1"


def test_a_host_with_ipv6_only(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = {"box": ["2001:db8::1"]}
    assert resolve(monkeypatch, addresses, {"2001:db8::1": "box"}) == "box"
    assert resolve(monkeypatch, addresses, {}) == "2001:db8::1"


def test_a_name_without_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        ConfigError, match=r"this machine, box, .*advertised\.host\.name .*host\.name"
    ):
        resolve(monkeypatch, {}, {})


@pytest.mark.parametrize(
    ("host", "is_own"), [("127.0.0.1", True), ("[::1]", True), ("192.0.2.1", False)]
)
def test_addresses_of_this_machine(host: str, is_own: bool) -> None:
    """192.0.2.0/24 is for documentation: no machine has it."""
    assert is_own_address(host) is is_own


def test_a_host_without_an_address_is_not_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", Resolver({}, {}).getaddrinfo)
    with pytest.raises(socket.gaierror):
        is_own_address("nowhere")

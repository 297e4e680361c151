"""Lists of brokers on command lines, and the clients that are made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tools import brokers
from tools.brokers import ADVICE, broker_list
from tools.options import UsageError
from tools.topics.topics import PARSER


def test_the_endpoints() -> None:
    assert broker_list(PARSER, "a:1,[::1]:2") == [("a", 1), ("::1", 2)]


@pytest.mark.parametrize("text", ["a", "a:", "a:x", "a:1,b"])
def test_a_broker_without_a_port_ends_in_the_usage(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        broker_list(PARSER, text)
    assert str(caught.value).startswith(ADVICE.rstrip())


def test_the_options_and_the_file_make_a_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    monkeypatch.setattr(
        brokers, "AdminClient", lambda *args, **options: made.append((args, options))
    )
    config = tmp_path / "admin.properties"
    config.write_text("request.timeout.ms=300\nclient.id=me\n")
    words = ["--list", "--bootstrap-server", "h:1,i:2", "--command-config", str(config)]
    brokers.admin_client(PARSER, PARSER.parse_command(words))
    [((endpoints,), options)] = made
    assert endpoints == [("h", 1), ("i", 2)]
    assert (options["client_id"], options["timeout_ms"]) == ("me", 300)


def test_an_address_without_a_port_ends_in_the_usage() -> None:
    with pytest.raises(UsageError, match="valid host:port"):
        brokers.admin_client(PARSER, PARSER.parse_command(["--list", "--bootstrap-server", "h"]))

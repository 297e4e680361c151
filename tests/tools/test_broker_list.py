"""Lists of brokers on command lines."""

from __future__ import annotations

import pytest

from tools.broker_list import ADVICE, broker_list
from tools.options import OptionParser, UsageError

PARSER = OptionParser("It does a job.", "--broker-list <hosts>  Brokers.")


def test_the_endpoints() -> None:
    assert broker_list(PARSER, "a:1,[::1]:2") == [("a", 1), ("::1", 2)]


@pytest.mark.parametrize("text", ["a", "a:", "a:x", "a:1,b"])
def test_a_broker_without_a_port_ends_in_the_usage(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        broker_list(PARSER, text)
    assert str(caught.value).startswith(ADVICE.rstrip())

"""Tuples that are made without their constructors, by both twins."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from kafka08 import named as module
from kafka08._native import load
from kafka08.common import Broker, TopicPartition

native = load("named")
TWINS = [tuple.__new__] if native is None else [tuple.__new__, native.named]


@pytest.mark.parametrize("named", TWINS)
class TestNamed:
    def test_it_is_what_the_constructor_makes(self, named: Callable[..., Any]) -> None:
        made = named(Broker, (1, "host", 9092))
        assert type(made) is Broker
        assert made == Broker(1, "host", 9092)
        assert (made.id, made.host, made.port) == (1, "host", 9092)
        assert str(named(TopicPartition, ("t", 0))) == "[t,0]"

    def test_it_owns_its_values(self, named: Callable[..., Any]) -> None:
        value = [1]
        before = sys.getrefcount(value)
        made = named(TopicPartition, (value, 0))
        assert sys.getrefcount(value) == before + 1
        del made
        assert sys.getrefcount(value) == before

    @pytest.mark.parametrize("arguments", [(int, (1,)), (None, (1,)), (Broker, 1)])
    def test_what_makes_no_tuple_is_refused(
        self, named: Callable[..., Any], arguments: tuple[Any, ...]
    ) -> None:
        with pytest.raises(TypeError):
            named(*arguments)


def test_the_compiled_one_is_used_where_it_was_built() -> None:
    assert module.named is TWINS[-1]

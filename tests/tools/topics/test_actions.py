"""The option values of kafka-topics, and the lines of describe."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.admin import InvalidArgumentError
from kafka08.errors import AdminOperationError, ConfigError
from kafka08.topics.topics import MIN_ISR, PartitionDescription, TopicDescription
from tools.options import Arguments
from tools.topics import actions
from tools.topics.topics import PARSER

VIEW = PartitionDescription(0, 1, (1, 2), (1,), True, True)
HEADER = "Topic:t\tPartitionCount:2\tReplicationFactor:2\tConfigs:retention.ms=5\n"
LINE = "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1\n"
OTHER = "\tTopic: t\tPartition: 1\tLeader: none\tReplicas: 2\tIsr: 2\n"


def given(*words: str) -> Arguments:
    return PARSER.parse_command(["--describe", "--zookeeper", "z:1", *words])


def test_topics_by_name_or_regex() -> None:
    topics = ["b", "a", "__consumer_offsets"]
    assert actions.select(given(), topics) == ["__consumer_offsets", "a", "b"]
    assert actions.select(given("--topic", "a,x"), topics) == ["a"]
    assert actions.select(given("--exclude-internal"), topics) == ["a", "b"]


def test_configs_are_checked() -> None:
    args = given("--config", "retention.ms = 5", "--config", "cleanup.policy=compact")
    assert actions.configs_to_add(args) == {"retention.ms": "5", "cleanup.policy": "compact"}
    for bad in ("retention.ms", "retention.ms=", "a=b=c"):
        with pytest.raises(InvalidArgumentError, match='format "key=val"'):
            actions.configs_to_add(given("--config", bad))
    for bad in ("no.such.setting=1", "retention.ms=soon"):
        with pytest.raises((ConfigError, AdminOperationError)):
            actions.configs_to_add(given("--config", bad))


def test_only_known_configs_are_deleted() -> None:
    assert actions.configs_to_delete(given("--delete-config", " retention.ms")) == ["retention.ms"]
    with pytest.raises(InvalidArgumentError, match=r'Unknown configuration "retention"\.'):
        actions.configs_to_delete(given("--delete-config", "retention"))


@pytest.mark.parametrize(
    ("words", "config", "expected"),
    [
        ((), {"retention.ms": "5"}, HEADER + LINE + OTHER),
        (("--topics-with-overrides",), {"retention.ms": "5"}, HEADER),
        (("--topics-with-overrides",), {}, ""),
        (("--under-replicated-partitions",), {}, LINE),
        (("--unavailable-partitions",), {}, OTHER),
    ],
)
def test_the_lines_of_describe(
    words: tuple[str, ...], config: dict[str, str], expected: str, capsys: Any
) -> None:
    other = PartitionDescription(1, None, (2,), (2,), False, False)
    actions.print_topic(given(*words), "t", TopicDescription([VIEW, other], config, config))
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize(("min_isr", "under", "at"), [(1, False, True), (2, True, False)])
def test_partitions_by_the_size_of_their_isr(
    min_isr: int, under: bool, at: bool, capsys: Any
) -> None:
    for word, is_shown in (("--under-min-isr-partitions", under), ("--at-min-isr-partitions", at)):
        args = given(word)
        assert actions.filters_partitions(args) and actions.needs_min_isr(args)
        actions.print_topic(args, "t", TopicDescription([VIEW], {}, {MIN_ISR: str(min_isr)}))
        assert capsys.readouterr().out == (LINE if is_shown else "")

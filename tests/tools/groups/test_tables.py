"""The tables of kafka-consumer-groups, to the blank."""

from __future__ import annotations

import pytest

from kafka08.common import Broker, TopicPartition
from kafka08.groups.admin import GroupProgress
from kafka08.groups.members import Consumer
from tools.groups import tables

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.split("\n")[:-1]


def test_a_lag_needs_both_ends() -> None:
    assert GroupProgress(T0, 4, 10).lag == 6
    assert GroupProgress(T0, 12, 10).lag == -2
    assert GroupProgress(T0, None, 10).lag is None
    assert GroupProgress(T0, 4).lag is None


def test_names_make_their_columns_wider(capsys: pytest.CaptureFixture[str]) -> None:
    long = "a-topic-with-a-long-name"
    me, idle = Consumer("me", "/1.2.3.4", "app"), Consumer("idle", "-")
    rows = [GroupProgress(TopicPartition(long, 0), 4, 10, me), GroupProgress(None, consumer=idle)]
    tables.print_progress("g", rows)
    assert lines(capsys) == [
        "",
        "GROUP           TOPIC                    PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  "
        "LAG             CONSUMER-ID     HOST            CLIENT-ID",
        "g               a-topic-with-a-long-name 0          4               10              "
        "6               me              /1.2.3.4        app",
        "g               -                        -          -               -               "
        "-               idle            -               -",
    ]


def test_members(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(Consumer("a", "h", "app"), [U0, T1, T0]), (Consumer("b", "h"), [])]
    tables.print_members("g", rows, verbose=True)
    assert [line.split() for line in lines(capsys)[2:]] == [
        ["g", "a", "h", "app", "3", "t:0,1;u:0"],
        ["g", "b", "h", "-", "0", "-"],
    ]
    tables.print_members("g", rows, verbose=False)
    assert [line.split() for line in lines(capsys)[2:]] == [
        ["g", "a", "h", "app", "3"],
        ["g", "b", "h", "-", "0"],
    ]


def test_the_state_of_a_group(capsys: pytest.CaptureFixture[str]) -> None:
    tables.print_state("g", Broker(3, "host", 9092), None, "Stable", 2)
    assert lines(capsys) == [
        "",
        "GROUP           COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE                "
        "#MEMBERS",
        "g               host:9092 (3)             -                    Stable               2",
    ]
    tables.print_state("g", Broker(3, "host", 9092), "range", "Stable", 2)
    assert lines(capsys)[2].split() == ["g", "host:9092", "(3)", "range", "Stable", "2"]


def test_new_offsets_are_sorted(capsys: pytest.CaptureFixture[str]) -> None:
    offsets = {"g": {U0: 3, T1: 2, T0: 1}}
    tables.print_new_offsets(offsets)
    assert [line.split() for line in lines(capsys)[2:]] == [
        ["g", "t", "0", "1"],
        ["g", "t", "1", "2"],
        ["g", "u", "0", "3"],
    ]
    tables.print_export(offsets, with_group=True)
    assert lines(capsys) == ["g,t,0,1", "g,t,1,2", "g,u,0,3", ""]
    tables.print_export(offsets, with_group=False)
    assert lines(capsys) == ["t,0,1", "t,1,2", "u,0,3", ""]


def test_deleted_offsets(capsys: pytest.CaptureFixture[str]) -> None:
    tables.print_deleted_offsets({T1: "Error: x", T0: "Successful"})
    assert [line.split(None, 2)[2].strip() for line in lines(capsys)[2:]] == [
        "Successful",
        "Error: x",
    ]

"""The tables of kafka-consumer-groups, to the blank."""

from __future__ import annotations

import pytest

from kafka08.common import Broker, TopicPartition
from tools.groups import tables
from tools.groups.tables import MemberRow, Progress

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.split("\n")[:-1]


def test_a_lag_needs_both_ends() -> None:
    assert Progress(T0, 4, 10).lag == 6
    assert Progress(T0, 12, 10).lag == -2
    assert Progress(T0, None, 10).lag is None
    assert Progress(T0, 4).lag is None


def test_names_make_their_columns_wider(capsys: pytest.CaptureFixture[str]) -> None:
    long = "a-topic-with-a-long-name"
    rows = [Progress(TopicPartition(long, 0), 4, 10, "me"), Progress(None, consumer="idle")]
    tables.print_progress(None, rows, hosts=False)
    assert lines(capsys) == [
        "",
        "TOPIC                    PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             "
        "CONSUMER-ID     ",
        "a-topic-with-a-long-name 0          4               10              6               "
        "me              ",
        "-                        -          -               -               -               "
        "idle            ",
    ]


def test_a_group_leads_and_hosts_end_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    tables.print_progress("g", [Progress(T1, 0, 0, "me", "/1.2.3.4")], hosts=True)
    blank, head, row = lines(capsys)
    assert (blank, head.split()[0], head.split()[-2:]) == ("", "GROUP", ["HOST", "CLIENT-ID"])
    assert row.split() == ["g", "t", "1", "0", "0", "0", "me", "/1.2.3.4", "-"]
    assert head.index("TOPIC") == row.index("t  ") == 16


def test_members(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [MemberRow("a", "h", [U0, T1, T0]), MemberRow("b", "h", [])]
    tables.print_members(None, rows, verbose=True)
    assert [line.split(None, 4) for line in lines(capsys)[2:]] == [
        ["a", "h", "-", "3", "t(0,1), u(0)"],
        ["b", "h", "-", "0", "-"],
    ]
    tables.print_members(None, rows, verbose=False)
    assert [line.split() for line in lines(capsys)[2:]] == [
        ["a", "h", "-", "3"],
        ["b", "h", "-", "0"],
    ]


def test_the_state_of_a_group(capsys: pytest.CaptureFixture[str]) -> None:
    tables.print_state(None, Broker(3, "host", 9092), "Stable", 2)
    assert lines(capsys) == [
        "",
        "COORDINATOR (ID)          ASSIGNMENT-STRATEGY       STATE                #MEMBERS",
        "host:9092 (3)             -                         Stable               2",
    ]


def test_new_offsets_are_sorted(capsys: pytest.CaptureFixture[str]) -> None:
    offsets = {"g": {U0: 3, T1: 2, T0: 1}}
    tables.print_new_offsets(offsets, with_group=True)
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

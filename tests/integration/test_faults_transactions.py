"""The checker of transactions finds each kind of violation, and takes what is allowed for sound."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from integration.faults.history import Event, History
from integration.faults.transactions import clients, load, records
from integration.faults.transactions.checker import KINDS, check
from integration.faults.transactions.clients import Client, Taken
from integration.faults.transactions.load import Writer
from integration.faults.transactions.records import Record

# A transaction of two records, in two topics.
SPREAD = [["orders", 0, None], ["notes", 1, None]]


def event(what: str, **fields: Any) -> Event:
    return {"e": what, "t": 1.0, **fields}


def begun(number: int, *places: list[Any], producer: str = "a") -> Event:
    return event("begun", id=producer, x=number, r=list(places or SPREAD))


def of(what: str, number: int, producer: str = "a") -> Event:
    return event(what, id=producer, x=number)


def ended(number: int, *places: list[Any], end: str = "committed") -> list[Event]:
    """A whole transaction."""
    asked = [] if end == "aborted" else [of("asked", number)]
    return [begun(number, *places), *asked, of(end, number)]


def shown(topic: str, partition: int, *pairs: tuple[int, str | None], who: str = "x") -> Event:
    return event("shown", who=who, at=[topic, partition], v=[list(each) for each in pairs])


def whole(topic: str, partition: int, *pairs: tuple[int, str | None], who: str = "x") -> Event:
    return {**shown(topic, partition, *pairs, who=who), "e": "whole"}


def both(number: int, offset: int = 0) -> list[Event]:
    """Both records of a transaction at the end."""
    return [
        whole("orders", 0, (offset, f"a.{number}.0")),
        whole("notes", 1, (offset, f"a.{number}.1")),
    ]


# Two transactions with two records each in one partition.
ONE = [["notes", 0, None], ["notes", 0, None]]
TWICE = [*ended(0, *ONE), *ended(1, *ONE)]
# An order and the parcel that is made from it.
ORDER = ended(0, ["orders", 0, None])
PARCEL = [
    begun(0, ["parcels", 0, "a.0.0"], producer="b"),
    of("asked", 0, "b"),
    of("committed", 0, "b"),
]
ORDERED = [*ORDER, whole("orders", 0, (0, "a.0.0"))]


def test_a_committed_transaction_that_is_there_is_sound() -> None:
    found = check([*ended(0), shown("orders", 0, (0, "a.0.0")), *both(0)])
    assert found.sound and found.any
    assert (found.committed, found.records) == (1, 2)
    assert "committed 1" in str(found)


def test_no_transactions_are_sound() -> None:
    assert check([event("send", p=0, w=1, s=0, n=1), event("unknown", p=0, w=1, s=0, n=1)]).sound
    assert not check([]).any


@pytest.mark.parametrize("end", [[of("aborted", 0)], []])
def test_what_nobody_asked_to_commit_is_absent(end: list[Event]) -> None:
    found = check([begun(0), *end])
    assert found.sound and found.aborted == 1


def test_an_unknown_outcome_is_all_or_nothing() -> None:
    events = ended(0, end="unknown")
    assert (check(events).sound, check(events).landed) == (True, 0)
    assert (check([*events, *both(0)]).sound, check([*events, *both(0)]).landed) == (True, 1)
    assert check([*events, both(0)[0]]).counts == {"halved": 1}


def test_a_commit_without_an_end_is_unknown() -> None:
    events = [begun(0), of("asked", 0)]
    assert check(events).unknown == 1
    assert check([*events, *both(0)]).sound


def test_each_input_has_one_output() -> None:
    outputs = [*PARCEL, whole("parcels", 0, (0, "b.0.0"))]
    found = check([*ORDERED, *outputs], ["orders"])
    assert found.sound and found.converted == 1
    assert check([*ORDERED], ["orders"]).counts == {"lost": 1}
    assert check([*ORDERED]).sound  # of a topic that nobody consumes
    again = [begun(1, ["parcels", 0, "a.0.0"], producer="b"), of("asked", 1, "b")]
    copies = [*PARCEL, *again, whole("parcels", 0, (0, "b.0.0"), (2, "b.1.0"))]
    assert check([*ORDERED, *copies], ["orders"]).counts == {"doubled": 1}


@pytest.mark.parametrize(
    ("kind", "events"),
    [
        ("lost", ended(0)),
        ("lost", [*ended(0), both(0)[1]]),
        ("doubled", [*ended(0), *both(0), whole("orders", 0, (2, "a.0.0"))]),
        ("halved", [*ended(0, end="unknown"), both(0)[1]]),
        ("uncommitted", [*ended(0, end="aborted"), *both(0)]),
        ("uncommitted", [begun(0), shown("orders", 0, (0, "a.0.0")), *ended(0)[1:], *both(0)]),
        ("uncommitted", [*ended(0, ["orders", 0, None], end="unknown"), *PARCEL,
                         whole("parcels", 0, (0, "b.0.0"))]),
        ("reordered", [*TWICE, whole("notes", 0, (0, "a.1.0"), (1, "a.1.1"), (2, "a.0.0"),
                                     (3, "a.0.1"))]),
        ("reordered", [*TWICE, whole("notes", 0, (0, "a.0.1"), (1, "a.0.0"), (3, "a.1.0"),
                                     (4, "a.1.1"))]),
        ("changed", [*ended(0), shown("orders", 0, (5, "a.0.0")), *both(0)]),
        ("changed", [*ended(0), *both(0), whole("orders", 0, (0, "a.0.0"), who="y")]),
        ("changed", [*TWICE, shown("notes", 0, (0, "a.0.0")), shown("notes", 0, (0, "a.1.0"))]),
        ("foreign", [whole("orders", 0, (0, None))]),
        ("foreign", [whole("orders", 0, (0, "a.0.0"))]),
        ("foreign", [*ended(0), *both(0), shown("orders", 1, (0, "a.0.0"))]),
    ],
)  # fmt: skip
def test_violations_are_found(kind: str, events: list[Event]) -> None:
    found = check(events, [])
    assert not found.sound
    assert found.counts[kind] > 0
    assert any(line.startswith(f"transactions, {kind}") for line in found.lines)


def test_each_kind_is_in_the_verdict() -> None:
    assert all(f"{kind} 0" in str(check(ended(0))) for kind in KINDS if kind != "lost")
    assert "lost 2" in str(check(ended(0)))


def test_values_say_what_they_are() -> None:
    record = Record("java-writer-0", 17, 3)
    data = records.encode(record)
    assert records.decode(data) == record
    assert records.decode(data + b"x") is None
    assert records.decode(data[:-1]) is None
    assert records.decode(None) is None
    assert records.decode(b"a.b.c/") is None
    assert records.parse(str(record)) == record


class StuckClient(Client):
    """Waits in each commit and when it is closed, as librdkafka's client did once."""

    def __init__(self) -> None:
        super().__init__("a", [], Path(), "", "")
        self.asked, self.closing = threading.Event(), threading.Event()
        self.released = threading.Event()

    def commit(self) -> None:
        self.asked.set()
        self.released.wait()

    def close(self) -> None:
        self.closing.set()
        self.released.wait()

    def open(self) -> None: ...
    def begin(self) -> None: ...
    def send(self, topic: str, partition: int, value: bytes) -> None: ...
    def flush(self) -> None: ...
    def offsets(self) -> None: ...
    def abort(self) -> None: ...
    def poll(self) -> list[Taken]:
        return []

    def rewind(self) -> None: ...


def test_a_client_that_never_returns_does_not_hold_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "CLOSE_S", 0.0)
    monkeypatch.setattr(load, "ABORTED", 0.0)
    monkeypatch.setattr(clients, "__file__", __file__)
    client = StuckClient()
    history = History(tmp_path / "history")
    writer = Writer(client, history, 0.0, 1)
    writer.start()
    assert client.asked.wait(60)
    assert writer.where().startswith("commit, line ")
    writer.abandon()
    assert client.closing.wait(60)
    client.released.set()
    writer.join(60)
    assert writer.where() == "no call of its client"
    history.close()

"""kafka-transactions: the lines of Kafka 3.9's own tool, against a broker that coordinates."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka08.protocol.registry import api_of
from kafka08.protocol.schemas import MetadataRequest
from tests.server.transactions.support import TransactionRig
from tests.tools.command import Command
from tools import brokers
from tools.admin import transactions
from tools.options import UsageError

_VERSIONS = {24: 3, 27: 0, 61: 0, 65: 0, 66: 0}
_MINUTE_S = 60.0
T0 = ("--topic", "t", "--partition", "0")


@contextmanager
def admin_of(rig: TransactionRig) -> Iterator[Any]:
    """An AdminClient of the rig's broker."""
    own = rig.config.broker_id

    def metadata() -> Any:
        known = rig.ask(MetadataRequest([]), 0)
        return known._replace(brokers=[each for each in known.brokers if each.node_id == own])

    def call(request: Any, broker_id: str) -> Any:
        assert broker_id == str(own)
        return rig.ask(request, _VERSIONS[api_of(request)[0]])

    yield SimpleNamespace(metadata=metadata, call=call)


class Transactions(Command):
    def __init__(self, rig: TransactionRig, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(transactions.main, "--bootstrap-server", "host:1", capsys=capsys)
        self.rig = rig

    def rows(self, *words: str) -> list[dict[str, str]]:
        """The lines behind the heading."""
        heading, *lines = (line.split("\t")[:-1] for line in self.run(*words))
        names = [each.strip() for each in heading]
        return [dict(zip(names, map(str.strip, line), strict=True)) for line in lines]


@pytest.fixture
def tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Transactions]:
    rig = TransactionRig(tmp_path)
    monkeypatch.setattr(brokers, "AdminClient", lambda *_, **__: admin_of(rig))
    monkeypatch.setattr(transactions, "_now", rig.clock.millis)
    yield Transactions(rig, capsys)
    rig.close()


def begin(tool: Transactions, id_: str = "id") -> Any:
    producer = tool.rig.begin(id_)
    tool.rig.add(producer, 0, 1, id_=id_)
    tool.rig.write(producer, 0, "a", id_=id_)
    return producer


@pytest.mark.scenario("transactions-49")
def test_what_coordinators_have(tool: Transactions) -> None:
    producer = begin(tool)
    tool.rig.begin("idle")
    own = str(tool.rig.config.broker_id)
    open_, idle = tool.rows("list")
    assert open_ == {
        "TransactionalId": "id",
        "Coordinator": own,
        "ProducerId": str(producer.id),
        "TransactionState": "Ongoing",
    }
    assert (idle["TransactionalId"], idle["TransactionState"]) == ("idle", "Empty")
    tool.rig.clock.advance(2.0)
    assert [each["TransactionalId"] for each in tool.rows("list", "--duration-filter", "1999")] == [
        "id"
    ]
    assert not tool.rows("list", "--duration-filter", "2000")


@pytest.mark.scenario("transactions-49")
def test_one_id_is_described(tool: Transactions) -> None:
    producer = begin(tool)
    started = tool.rig.clock.millis()
    tool.rig.clock.advance(2.0)
    [row] = tool.rows("describe", "--transactional-id", "id")
    assert row == {
        "CoordinatorId": str(tool.rig.config.broker_id),
        "TransactionalId": "id",
        "ProducerId": str(producer.id),
        "ProducerEpoch": str(producer.epoch),
        "TransactionState": "Ongoing",
        "TransactionTimeoutMs": "60000",
        "CurrentTransactionStartTimeMs": str(started),
        "TransactionDurationMs": "2000",
        "TopicPartitions": "t-0,t-1",
    }
    tool.rig.end(producer, commit=True)
    tool.rig.run_tasks()
    [row] = tool.rows("describe", "--transactional-id", "id")
    assert (row["TransactionState"], row["TopicPartitions"]) == ("CompleteCommit", "")
    assert "Transactional id nobody was not found" in tool.fail(
        "describe", "--transactional-id", "nobody"
    )


@pytest.mark.scenario("transactions-49")
def test_a_transaction_that_nobody_ends_is_found_and_aborted(tool: Transactions) -> None:
    producer = begin(tool)
    tool.rig.clock.advance(20 * _MINUTE_S)
    assert not tool.rows("find-hanging", "--topic", "t")  # its coordinator has it
    forget(tool, "id")
    [row] = tool.rows("find-hanging", "--broker-id", str(tool.rig.config.broker_id))
    assert row["Topic"] == "t" and row["Partition"] == row["StartOffset"] == "0"
    assert row["ProducerId"] == str(producer.id) and row["Duration(min)"] == "20"
    assert not tool.rows("find-hanging", "--topic", "t", "--max-transaction-timeout", "16")
    assert not tool.rows("find-hanging", "--topic", "t", "--partition", "1")

    assert tool.rig.end_offset(0) == 0
    assert tool.run("abort", *T0, "--start-offset", "0") == []
    assert tool.rig.end_offset(0) == 2 and tool.rig.read(0) == []
    assert not tool.rows("find-hanging", "--topic", "t")


def forget(tool: Transactions, id_: str) -> None:
    """Have the coordinator not know an id, as if its partition had been lost."""
    for led, entry in tool.rig.coordinator.store.all():
        if entry.current.id == id_:
            del led.entries[id_]
            return


@pytest.mark.scenario("transactions-49")
def test_the_producers_of_a_partition(tool: Transactions) -> None:
    producer = begin(tool)
    [row] = tool.rows("describe-producers", *T0)
    assert row == {
        "ProducerId": str(producer.id),
        "ProducerEpoch": str(producer.epoch),
        "LatestCoordinatorEpoch": "-1",
        "LastSequence": "0",
        "LastTimestamp": str(tool.rig.clock.millis()),
        "CurrentTransactionStartOffset": "0",
    }
    own = str(tool.rig.config.broker_id)
    words = ("--producer-id", row["ProducerId"], "--producer-epoch", row["ProducerEpoch"])
    tool.run("abort", *T0, *words, "--coordinator-epoch", "0")
    [row] = tool.rows("describe-producers", *T0, "--broker-id", own)
    assert (row["LatestCoordinatorEpoch"], row["CurrentTransactionStartOffset"]) == ("0", "None")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ((), "Name one of the commands list, "),
        (("mend",), "Name one of the commands list, "),
        (("describe",), "transactional-id"),
        (("describe-producers", "--topic", "t"), "partition"),
        (("abort", *T0), "producer-id"),
        (("find-hanging",), "requires --topic or --broker-id"),
    ],
)
def test_what_is_missing_ends_in_the_usage(
    tool: Transactions, words: tuple[str, ...], error: str
) -> None:
    with pytest.raises(UsageError, match=error):
        tool.run(*words)


def test_what_is_not_there(tool: Transactions) -> None:
    error = tool.fail("abort", *T0, "--start-offset", "7")
    assert "No transaction of [t,0] begins at offset 7" in error
    assert "There is no leader of u" in tool.fail("find-hanging", "--topic", "u")
    elsewhere = ("--topic", "u", "--partition", "0")
    assert "There is no leader of [u,0]" in tool.fail("describe-producers", *elsewhere)

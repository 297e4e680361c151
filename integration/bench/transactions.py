"""Transactions as a load, by Java's producers, and many that are open at once."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from integration import builds
from integration.bench.load import Amount
from integration.harness import cpu_seconds
from integration.later import frames
from kafka08.client.requests import Response
from kafka08.network.channel import Channel
from kafka08.protocol import schemas
from kafka08.protocol.later_schemas import InitProducerIdRequest
from kafka08.protocol.transaction_schemas import AddPartitionsToTxnRequest, TxnTopic

CLIENT = "org.apache.kafka:kafka-clients:3.9.1"
RECORD_BYTES = 100
OPEN_IDS = 10_000
_TRANSACTIONAL = 0x10
_TIMEOUT_MS = 900_000
_NOT_NOW = (3, 5, 14, 15, 16, 51)  # a topic is new, a coordinator loads, a change is being written


class Shape(NamedTuple):
    """``records`` of each transaction. ``linger_ms``: how long a producer gathers a batch; Java's
    wait 0 ms by default, and 5 since release 4.0. Without waiting, the sooner a broker answers, the
    smaller are the batches that it gets."""

    producers: int
    records: int
    linger_ms: int = 0


SHAPES = {
    "transactions of 100 x 100 B": Shape(1, 100),
    "transactions of 10,000 x 100 B": Shape(1, 10_000),
    "transactions of 10,000 x 100 B, linger 5 ms": Shape(1, 10_000, 5),
    "transactions of 100 x 100 B, 100 producers": Shape(100, 100),
}


def send(
    address: str,
    topic: str,
    partitions: int,
    shape: Shape,
    seconds: float,
    cpu: Callable[[], float],
) -> Amount:
    """``cpu``: seconds of the broker so far. Raises MissingError."""
    source = Path(__file__).with_name("TransactionLoad.java")
    command = [*builds.java("bench-transactions", [source], CLIENT), "TransactionLoad"]
    args = map(str, (address, topic, partitions, *shape))
    with subprocess.Popen(
        [*command, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        if process.stdout.readline() != b"ready\n":
            raise RuntimeError("the load of transactions has failed")
        before, own = cpu(), cpu_seconds(process.pid)
        process.stdin.write(b"\n")
        time.sleep(seconds)
        process.stdin.write(b"\n")
        used, own = cpu() - before, cpu_seconds(process.pid) - own
        transactions, took = process.stdout.readline().split()
    records = int(transactions) * shape.records
    return Amount(records, records * RECORD_BYTES, float(took), own, used)


def open_many(host: str, port: int, topic: str, partitions: int, count: int = OPEN_IDS) -> None:
    """Begin a transaction with a record in one partition for each of ``count`` ids. Raises
    RuntimeError for a code that is not one of the moment."""
    with Channel(host, port) as channel:
        for number in range(count):
            id_ = f"{topic}-{number}"
            init = InitProducerIdRequest(id_, _TIMEOUT_MS)
            made = until_done(lambda init=init: channel.call(init, 0), lambda answer: answer.error)
            producer = (made.producer_id, made.producer_epoch)
            partition = number % partitions
            add = AddPartitionsToTxnRequest(id_, *producer, [TxnTopic(topic, [partition])])
            until_done(
                lambda add=add: channel.call(add, 0),
                lambda answer: answer.topics[0].partitions[0].error,
            )
            records = frames.encode_records([frames.Record(None, b"x" * RECORD_BYTES)])
            now = round(time.time() * 1000)
            batch = frames.batch(
                records, 1, codec=_TRANSACTIONAL, producer=(*producer, 0), time=now
            )
            produce = schemas.ProduceRequest(
                -1,
                10_000,
                [
                    schemas.ProduceTopic(
                        topic, [schemas.ProducePartition(partition, memoryview(batch))]
                    )
                ],
                id_,
            )
            until_done(
                lambda produce=produce: channel.call(produce, 3),
                lambda answer: answer.topics[0].partitions[0].error,
            )


def until_done(ask: Callable[[], Response], code_of: Callable[[Response], int]) -> Response:
    """The answer without an error. Raises RuntimeError for a code that does not pass."""
    while True:
        answer = ask()
        code = code_of(answer)
        if not code:
            return answer
        if code not in _NOT_NOW:
            raise RuntimeError(f"code {code}")
        time.sleep(0.05)


def live_heap(pid: int) -> int:
    """Bytes of all objects that a JVM still needs, after a full collection."""
    shown = subprocess.run(
        ["jcmd", str(pid), "GC.class_histogram"], capture_output=True, text=True, check=True
    )
    return int(shown.stdout.splitlines()[-1].split()[2])

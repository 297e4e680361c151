"""Writes docs/metrics.md from the declared metrics: `python -m kafka08.metrics.docs`."""

from __future__ import annotations

from collections.abc import Iterable

from kafka08.metrics import client_names, names
from kafka08.metrics.exposition import TYPES
from kafka08.metrics.registry import Metric

HEAD = """# Metrics

Made by `make docs` from `kafka08/metrics/names.py` and `client_names.py`; do not edit.
[operator.md](operator.md#watching) explains how to read them.

The first column is the name of the bean in 0.8.2.2, under which `/jmx` shows it too. Tags in JMX
and labels in Prometheus have the same names; a series without a tag is the sum over its values.
Summaries have the label `quantile`, and series with `_count` and `_sum` besides.

## Brokers

"""
CLIENTS = """
## Clients

Applications show the metrics of their consumers and producers with prometheus-client:

```python
from prometheus_client import REGISTRY
from kafka08.metrics.clients import ClientCollector

clients = ClientCollector(producer, consumer)
REGISTRY.register(clients)
clients.add(another)  # and clients.remove(another) after its end
```

A client is a `KafkaProducer`, `Producer`, `ConsumerConnector` or `SimpleConsumer`. Use one
collector for all clients of a process, and give each client a `client.id`. A figure without data
has no series. Nothing is counted for the collector: it reads what the clients count anyway.

Consumers also have the series of brokers that begin with `kafka_server_fetcher` and with
`kafka_consumer_fetchrequestandresponsemetrics`; a `SimpleConsumer` has no lag and no others. The
producer has no selector, but a task for each broker that waits for records and writes them:
`select-rate` and the attributes that begin with `io-` are about these.

`kafka-mirror-maker.sh --metrics.port 9405` serves the metrics of its consumers and producers at
that port of 127.0.0.1. Ends at clusters of 0.10 and later (`--new.consumer`, `--modern.producer`)
have none. The series that begin with `kafka_tools_datachannel` are about the whole process. 0.8.2.2
has queues between consumers and producers. Here a message counts from when it was read until the
target has acknowledged it. For each file of a consumer (with `--new.consumer` for each stream) at
most `--queue.size` times `--num.producers` messages are in flight. Streams wait for room then:
`WaitOnPut`. A stream that waits because a producer lacks memory or metadata is not in it: see
`bufferpool-wait-ratio` and `metadata-age`. In both shares of time the last minute counts most.

"""
TABLE = """| Bean | Series | Type | Labels | Meaning |
| --- | --- | --- | --- | --- |
"""

TAIL = """
## Cost

Without `http.port` and without the CSV reporter the metrics cannot be read. Requests are counted
then, and no clock is read for their times. With either of the two a request that arrives alone and
does not wait costs two readings of the clock, six additions, and one time in 16 the six
distributions.

| CPU time of a request, without sockets, interpreted | us |
| --- | ---: |
| Decode it, answer it, encode the answer (Heartbeat, the shortest) | 3.0 |
| Count it | 0.02 |
| Count it and take its times | 1.7 |

Measured while the machine was busy with other work: a quiet one is faster. The compiled modules
have not been measured. `make bench WHAT=metrics` measures a broker that is produced to over a
socket, and with `ARGS='--partitions 1000 10000'` its scrapes with many partitions.
"""


def declared() -> list[Metric]:
    """All metrics of brokers, in the order of their declarations."""
    return list(_metrics(vars(names).values()))


def declared_of_clients() -> list[Metric]:
    return list(_metrics(vars(client_names).values()))


def _metrics(values: Iterable[object]) -> Iterable[Metric]:
    for value in values:
        if isinstance(value, Metric):
            yield value
        elif isinstance(value, dict) and "__builtins__" not in value:
            yield from _metrics(value.values())
        elif isinstance(value, tuple):
            yield from _metrics(value)


def page() -> str:
    return HEAD + _table(declared()) + TAIL + CLIENTS + _table(declared_of_clients())


def _table(metrics: Iterable[Metric]) -> str:
    return TABLE + "".join(_row(metric) for metric in metrics)


def _row(metric: Metric) -> str:
    labels = [label for label, _ in metric.labels] or metric.tags
    named = ", ".join(f"`{label}`" for label in labels)
    kind = TYPES[metric.kind]
    return f"| `{metric.bean}` | `{metric.name}` | {kind} | {named} | {metric.help} |\n"


if __name__ == "__main__":
    print(page(), end="")

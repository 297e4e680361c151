"""kafka-transactions: what producers have under way (org.apache.kafka.tools.TransactionsCommand).

Not of 0.8.2.2: commands and outputs are those of Kafka 3.9. A failure exits 1.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence

from kafka08.client import transactions
from kafka08.client.admin import AdminClient
from kafka08.common import TopicPartition
from kafka08.errors import KafkaError, UnknownTopicOrPartitionError
from tools import brokers
from tools.options import Arguments, OptionParser, ToolError

PARSER = OptionParser(
    "This tool is used to analyze the transactional state of producers in the cluster. It can be "
    "used to detect and recover from hanging transactions.\n\n"
    "kafka-transactions.sh --bootstrap-server <host:port> COMMAND [options], where COMMAND is one "
    "of:\n"
    "  list                list transactions\n"
    "  describe            describe the state of an active transactional-id\n"
    "  describe-producers  describe the states of active producers for a topic partition\n"
    "  abort               abort a hanging transaction\n"
    "  find-hanging        find hanging transactions",
    """
--bootstrap-server <host:port>  The brokers to ask.
--command-config <file>  Settings for the connections to brokers: security.protocol, ssl.*, sasl.*.
--duration-filter <Long: ms>  list: only transactions that take longer.
--transactional-id <id>  describe: the transactional id.
--topic <topic>  describe-producers, abort, find-hanging: the topic.
--partition <Integer: partition>  describe-producers, abort, find-hanging: the partition.
--broker-id <Integer: id>  describe-producers: ask this replica instead of the leader. find-hanging:
    the partitions that this broker leads.
--start-offset <Long: offset>  abort: the first offset of the transaction.
--producer-id <Long: id>  abort: of the producer, without start-offset.
--producer-epoch <Integer: epoch>  abort: of the producer.
--coordinator-epoch <Integer: epoch>  abort: of the coordinator.
--max-transaction-timeout <Integer: minutes>  find-hanging: transactions that take longer.
    (default: 15)
""",
)
_HANGING_GRACE_MINUTES = 5


def main(argv: list[str]) -> int:
    args = PARSER.parse_command(argv)
    command = COMMANDS.get(args.bare_words[0] if len(args.bare_words) == 1 else "")
    if command is None:
        PARSER.usage_and_exit(f"Name one of the commands {', '.join(COMMANDS)}")
    PARSER.check_required(args, "bootstrap-server")
    try:
        with brokers.admin_client(PARSER, args) as admin:
            command(admin, args)
        return 0
    except (KafkaError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        print(f"Error: {error}", file=sys.stderr)
        return 1


def _list(admin: AdminClient, args: Arguments) -> None:
    longer = args.value("duration-filter")
    rows = [
        (each.transactional_id, broker, each.producer_id, each.state)
        for broker, found in transactions.listed(admin).items()
        for each in found
        if longer is None or _took(admin, each.transactional_id) > longer
    ]
    _print(("TransactionalId", "Coordinator", "ProducerId", "TransactionState"), rows)


def _took(admin: AdminClient, id_: str) -> int:
    """How long a transaction has been under way (ms); 0 without one."""
    _, found = transactions.described(admin, id_)
    return _now() - found.start_ms if found.start_ms >= 0 and found.topics else 0


def _describe(admin: AdminClient, args: Arguments) -> None:
    PARSER.check_required(args, "transactional-id")
    coordinator, found = transactions.described(admin, args.value("transactional-id"))
    tps = [f"{topic.topic}-{each}" for topic in found.topics for each in topic.partitions]
    has_begun = found.start_ms >= 0
    row = (
        coordinator,
        found.transactional_id,
        found.producer_id,
        found.producer_epoch,
        found.state,
        found.timeout_ms,
        found.start_ms if has_begun else "None",
        _now() - found.start_ms if has_begun else "None",
        ",".join(tps),
    )
    _print(
        (
            "CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState",
            "TransactionTimeoutMs", "CurrentTransactionStartTimeMs", "TransactionDurationMs",
            "TopicPartitions",
        ),
        [row],
    )  # fmt: skip


def _describe_producers(admin: AdminClient, args: Arguments) -> None:
    tp = _partition(args)
    rows = [
        (
            each.producer_id,
            each.producer_epoch,
            each.coordinator_epoch,
            each.last_sequence,
            each.last_timestamp,
            each.transaction_start if each.transaction_start >= 0 else "None",
        )
        for each in transactions.producers(admin, tp, args.value("broker-id"))
    ]
    _print(
        (
            "ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence",
            "LastTimestamp", "CurrentTransactionStartOffset",
        ),
        rows,
    )  # fmt: skip


def _abort(admin: AdminClient, args: Arguments) -> None:
    tp = _partition(args)
    if args.has("start-offset"):
        begin = args.value("start-offset")
        for each in transactions.producers(admin, tp):
            if each.transaction_start == begin:
                producer = each.producer_id, each.producer_epoch, max(each.coordinator_epoch, 0)
                break
        else:
            raise ToolError(f"No transaction of {tp} begins at offset {begin}")
    else:
        PARSER.check_required(args, "producer-id", "producer-epoch", "coordinator-epoch")
        names = ("producer-id", "producer-epoch", "coordinator-epoch")
        id_, epoch, coordinator = (args.value(name) for name in names)
        producer = id_, epoch, max(coordinator, 0)
    transactions.abort(admin, tp, *producer)


def _find_hanging(admin: AdminClient, args: Arguments) -> None:
    """Transactions that no coordinator knows, or of which it says that they have ended."""
    minutes = args.value("max-transaction-timeout") + _HANGING_GRACE_MINUTES
    now = _now()
    open_ = [
        each
        for each in transactions.all_producers(admin, _searched(admin, args))
        if each.state.transaction_start >= 0 and each.state.last_timestamp <= now - minutes * 60_000
    ]
    known = _under_way(admin, {each.state.producer_id for each in open_})
    rows = [
        (
            tp.topic,
            tp.partition,
            state.producer_id,
            state.producer_epoch,
            state.coordinator_epoch,
            state.transaction_start,
            state.last_timestamp,
            (now - state.last_timestamp) // 60_000,
        )
        for tp, state in open_
        if tp not in known.get(state.producer_id, ())
    ]
    _print(
        (
            "Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset",
            "LastTimestamp", "Duration(min)",
        ),
        rows,
    )  # fmt: skip


def _searched(admin: AdminClient, args: Arguments) -> dict[TopicPartition, int]:
    """The partitions to look at, with their leaders."""
    if not args.has("topic") and not args.has("broker-id"):
        PARSER.usage_and_exit("The find-hanging command requires --topic or --broker-id")
    topic, number, broker = (args.value(each) for each in ("topic", "partition", "broker-id"))
    found = {
        TopicPartition(one.topic, part.partition): part.leader
        for one in admin.metadata().topics
        for part in one.partitions
        if topic in (None, one.topic)
        and number in (None, part.partition)
        and broker in (None, part.leader)
        and part.leader >= 0
    }
    if topic is not None and not found:
        raise UnknownTopicOrPartitionError(f"There is no leader of {topic}")
    return found


def _under_way(admin: AdminClient, ids: Iterable[int]) -> dict[int, set[TopicPartition]]:
    """The partitions of the transactions that coordinators have, by producer."""
    wanted = set(ids)
    found: dict[int, set[TopicPartition]] = {}
    for each in (one for some in transactions.listed(admin).values() for one in some):
        if each.producer_id in wanted:
            _, described = transactions.described(admin, each.transactional_id)
            found[each.producer_id] = {
                TopicPartition(topic.topic, number)
                for topic in described.topics
                for number in topic.partitions
            }
    return found


def _partition(args: Arguments) -> TopicPartition:
    PARSER.check_required(args, "topic", "partition")
    return TopicPartition(args.value("topic"), args.value("partition"))


def _now() -> int:
    return time.time_ns() // 1_000_000


def _print(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """As ToolsUtils.prettyPrintTable: each cell as wide as its column, and a tab behind it."""
    table = [list(map(str, row)) for row in (columns, *rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        print("".join(f"{cell:<{width}}\t" for cell, width in zip(row, widths, strict=True)))


COMMANDS: dict[str, Callable[[AdminClient, Arguments], None]] = {
    "list": _list,
    "describe": _describe,
    "describe-producers": _describe_producers,
    "abort": _abort,
    "find-hanging": _find_hanging,
}

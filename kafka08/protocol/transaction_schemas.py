"""Transactions: APIs 24 to 28, between brokers too, and what tools ask about transactions.

Layouts and keys are those of later releases. ``InitProducerId``, which begins the life of a
transactional producer, is in ``later_schemas``.
"""

from typing import Annotated, NamedTuple

from kafka08.protocol.schemas import NO_EPOCH
from kafka08.protocol.types import (
    Compact,
    Doc,
    Since,
    Strict,
    Until,
    boolean,
    int16,
    int32,
    int64,
    nullable_string,
    strict_string,
    string,
    tagged_fields,
)

_IN_HEADER = Doc("of the header")

# 24 AddPartitionsToTxn


class TxnTopic(NamedTuple):
    topic: Annotated[strict_string, Compact(3)]
    partitions: Annotated[list[int32], Strict(), Compact(3)]
    tags: Annotated[tagged_fields, Since(3)] = None


class TxnToAdd(NamedTuple):
    """The partitions of one transaction, in the versions that brokers send."""

    transactional_id: Annotated[strict_string, Compact()]
    producer_id: int64
    producer_epoch: int16
    verify_only: Annotated[boolean, Doc("ask whether they are in it")]
    topics: Annotated[list[TxnTopic], Strict(), Compact()]
    tags: tagged_fields = None


class AddPartitionsToTxnRequest(NamedTuple):
    """A producer tells the coordinator which partitions it will write to in its transaction."""

    transactional_id: Annotated[strict_string, Compact(3), Until(3)] = ""
    producer_id: Annotated[int64, Until(3)] = -1
    producer_epoch: Annotated[int16, Until(3)] = -1
    topics: Annotated[list[TxnTopic], Strict(), Compact(3), Until(3)] = []
    transactions: Annotated[list[TxnToAdd], Strict(), Compact(4), Since(4)] = []
    tags: Annotated[tagged_fields, Since(3)] = None


class TxnPartitionError(NamedTuple):
    partition: int32
    error: int16
    tags: Annotated[tagged_fields, Since(3)] = None


class TxnTopicErrors(NamedTuple):
    topic: Annotated[string, Compact(3)]
    partitions: Annotated[list[TxnPartitionError], Compact(3)]
    tags: Annotated[tagged_fields, Since(3)] = None


class AddedToTxn(NamedTuple):
    transactional_id: Annotated[string, Compact()]
    topics: Annotated[list[TxnTopicErrors], Compact()]
    tags: tagged_fields = None


class AddPartitionsToTxnResponse(NamedTuple):
    """If one partition is refused, none is added, and the others are answered with 55."""

    throttle_time_ms: int32
    error: Annotated[int16, Since(4)] = 0
    topics: Annotated[list[TxnTopicErrors], Compact(3), Until(3)] = []
    transactions: Annotated[list[AddedToTxn], Compact(4), Since(4)] = []
    tags: Annotated[tagged_fields, Since(3)] = None
    header_tags: Annotated[tagged_fields, Since(3, before="throttle_time_ms"), _IN_HEADER] = None


# 25 AddOffsetsToTxn


class AddOffsetsToTxnRequest(NamedTuple):
    """A producer tells the coordinator that it will commit offsets of a group in its
    transaction."""

    transactional_id: Annotated[strict_string, Compact(3)]
    producer_id: int64
    producer_epoch: int16
    group: Annotated[strict_string, Compact(3)]
    tags: Annotated[tagged_fields, Since(3)] = None


class AddOffsetsToTxnResponse(NamedTuple):
    throttle_time_ms: int32
    error: int16
    tags: Annotated[tagged_fields, Since(3)] = None
    header_tags: Annotated[tagged_fields, Since(3, before="throttle_time_ms"), _IN_HEADER] = None


# 26 EndTxn


class EndTxnRequest(NamedTuple):
    """Commit or abort: answered when the decision is stored, before it is told to partitions."""

    transactional_id: Annotated[strict_string, Compact(3)]
    producer_id: int64
    producer_epoch: int16
    committed: Annotated[boolean, Doc("else aborted")]
    tags: Annotated[tagged_fields, Since(3)] = None


class EndTxnResponse(NamedTuple):
    throttle_time_ms: int32
    error: int16
    tags: Annotated[tagged_fields, Since(3)] = None
    header_tags: Annotated[tagged_fields, Since(3, before="throttle_time_ms"), _IN_HEADER] = None


# 27 WriteTxnMarkers: between brokers


class MarkedTopic(NamedTuple):
    topic: Annotated[strict_string, Compact(1)]
    partitions: Annotated[list[int32], Strict(), Compact(1)]
    tags: Annotated[tagged_fields, Since(1)] = None


class TxnMarker(NamedTuple):
    producer_id: int64
    producer_epoch: int16
    committed: boolean
    topics: Annotated[list[MarkedTopic], Strict(), Compact(1)]
    coordinator_epoch: Annotated[
        int32, Doc("the leader epoch of the partition of __transaction_state")
    ]
    tags: Annotated[tagged_fields, Since(1)] = None


class WriteTxnMarkersRequest(NamedTuple):
    """The coordinator tells leaders how transactions have ended."""

    markers: Annotated[list[TxnMarker], Strict(), Compact(1)]
    tags: Annotated[tagged_fields, Since(1)] = None


class MarkedPartition(NamedTuple):
    partition: int32
    error: int16
    tags: Annotated[tagged_fields, Since(1)] = None


class MarkedTopicResponse(NamedTuple):
    topic: Annotated[string, Compact(1)]
    partitions: Annotated[list[MarkedPartition], Compact(1)]
    tags: Annotated[tagged_fields, Since(1)] = None


class WrittenTxnMarker(NamedTuple):
    producer_id: int64
    topics: Annotated[list[MarkedTopicResponse], Compact(1)]
    tags: Annotated[tagged_fields, Since(1)] = None


class WriteTxnMarkersResponse(NamedTuple):
    markers: Annotated[list[WrittenTxnMarker], Compact(1)]
    tags: Annotated[tagged_fields, Since(1)] = None
    header_tags: Annotated[tagged_fields, Since(1, before="markers"), _IN_HEADER] = None


# 28 TxnOffsetCommit


class TxnOffsetCommitPartition(NamedTuple):
    partition: int32
    offset: int64
    metadata: Annotated[nullable_string, Compact(3)]
    leader_epoch: Annotated[int32, Since(2, before="metadata")] = NO_EPOCH
    tags: Annotated[tagged_fields, Since(3)] = None


class TxnOffsetCommitTopic(NamedTuple):
    topic: Annotated[strict_string, Compact(3)]
    partitions: Annotated[list[TxnOffsetCommitPartition], Strict(), Compact(3)]
    tags: Annotated[tagged_fields, Since(3)] = None


class TxnOffsetCommitRequest(NamedTuple):
    """Commit offsets in a transaction: they count once it is committed."""

    transactional_id: Annotated[strict_string, Compact(3)]
    group: Annotated[strict_string, Compact(3)]
    producer_id: int64
    producer_epoch: int16
    topics: Annotated[list[TxnOffsetCommitTopic], Strict(), Compact(3)]
    generation: Annotated[
        int32, Since(3, before="topics"), Doc("-1, as before, if it is not a member's commit")
    ] = -1
    member_id: Annotated[strict_string, Compact(3), Since(3, before="topics")] = ""
    group_instance_id: Annotated[nullable_string, Compact(3), Since(3, before="topics")] = None
    tags: Annotated[tagged_fields, Since(3)] = None


class TxnOffsetCommitResponse(NamedTuple):
    throttle_time_ms: int32
    topics: Annotated[list[TxnTopicErrors], Compact(3)]
    tags: Annotated[tagged_fields, Since(3)] = None
    header_tags: Annotated[tagged_fields, Since(3, before="throttle_time_ms"), _IN_HEADER] = None


# 61 DescribeProducers


class ProducersTopic(NamedTuple):
    topic: Annotated[strict_string, Compact()]
    partitions: Annotated[list[int32], Strict(), Compact()]
    tags: tagged_fields = None


class DescribeProducersRequest(NamedTuple):
    """The producers that a partition's leader knows, and where their transactions begin."""

    topics: Annotated[list[ProducersTopic], Strict(), Compact()]
    tags: tagged_fields = None


class ActiveProducer(NamedTuple):
    producer_id: int64
    producer_epoch: int32
    last_sequence: Annotated[int32, Doc("-1 = there is none")]
    last_timestamp: Annotated[int64, Doc("ms; -1 = there is none")]
    coordinator_epoch: Annotated[int32, Doc("of the last marker; -1 = there is none")]
    transaction_start: Annotated[int64, Doc("its first offset; -1 without a transaction")]
    tags: tagged_fields = None


class ProducersPartition(NamedTuple):
    partition: int32
    error: int16
    message: Annotated[nullable_string, Compact()]
    producers: Annotated[list[ActiveProducer], Compact()]
    tags: tagged_fields = None


class ProducersTopicResponse(NamedTuple):
    topic: Annotated[string, Compact()]
    partitions: Annotated[list[ProducersPartition], Compact()]
    tags: tagged_fields = None


class DescribeProducersResponse(NamedTuple):
    throttle_time_ms: int32
    topics: Annotated[list[ProducersTopicResponse], Compact()]
    tags: tagged_fields = None
    header_tags: Annotated[tagged_fields, Since(0, before="throttle_time_ms"), _IN_HEADER] = None


# 65 DescribeTransactions


class DescribeTransactionsRequest(NamedTuple):
    """The transactions of these ids, from their coordinator."""

    transactional_ids: Annotated[list[Annotated[strict_string, Compact()]], Strict(), Compact()]
    tags: tagged_fields = None


class DescribedTransaction(NamedTuple):
    error: Annotated[int16, Doc("105 if the id is not known")]
    transactional_id: Annotated[string, Compact()]
    state: Annotated[string, Compact()]
    timeout_ms: int32
    start_ms: Annotated[int64, Doc("-1 without a transaction")]
    producer_id: int64
    producer_epoch: int16
    topics: Annotated[list[ProducersTopic], Compact()]
    tags: tagged_fields = None


class DescribeTransactionsResponse(NamedTuple):
    throttle_time_ms: int32
    transactions: Annotated[list[DescribedTransaction], Compact()]
    tags: tagged_fields = None
    header_tags: Annotated[tagged_fields, Since(0, before="throttle_time_ms"), _IN_HEADER] = None


# 66 ListTransactions


class ListTransactionsRequest(NamedTuple):
    """The transactional ids that this broker coordinates. Empty filters let all pass."""

    states: Annotated[list[Annotated[strict_string, Compact()]], Strict(), Compact()]
    producer_ids: Annotated[list[int64], Strict(), Compact()]
    longer_than_ms: Annotated[int64, Since(1), Doc("-1: however short")] = -1
    tags: tagged_fields = None


class ListedTransaction(NamedTuple):
    transactional_id: Annotated[string, Compact()]
    producer_id: int64
    state: Annotated[string, Compact()]
    tags: tagged_fields = None


class ListTransactionsResponse(NamedTuple):
    throttle_time_ms: int32
    error: int16
    unknown_states: Annotated[list[Annotated[string, Compact()]], Compact()]
    transactions: Annotated[list[ListedTransaction], Compact()]
    tags: tagged_fields = None
    header_tags: Annotated[tagged_fields, Since(0, before="throttle_time_ms"), _IN_HEADER] = None

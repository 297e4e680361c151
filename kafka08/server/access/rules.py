"""The permission that each API needs, and the answer to a refusal: the table ``rules``, by API key.

Operations and codes are those of later releases, which their clients know; clients of 0.8 take the
codes for an unknown error. A request that names several topics is served in part. Its refused part
gets the answer that the handler has for a failure with that code, if it has a fitting one.

Brokers need ClusterAction: for APIs 4 to 7, to fetch as a replica, and, in place of Describe, to
ask for offsets and epochs as a replica.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from operator import attrgetter

from kafka08.cluster.metadata_cache import MetadataCache
from kafka08.common import INTERNAL_TOPICS
from kafka08.errors import LaterCode
from kafka08.protocol import admin_schemas as a
from kafka08.protocol import group_schemas as g
from kafka08.protocol import schemas as s
from kafka08.protocol.registry import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from kafka08.protocol.schemas import Message
from kafka08.security.acls import CLUSTER_NAME, Operation, ResourceType
from kafka08.server.access.guard import Check, Rule
from kafka08.server.apis.metadata import MetadataApi
from kafka08.server.requests.long_work import in_topics

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID
TOPIC_CODE, GROUP_CODE, CLUSTER_CODE = (
    LaterCode.TOPIC_AUTHORIZATION_FAILED,
    LaterCode.GROUP_AUTHORIZATION_FAILED,
    LaterCode.CLUSTER_AUTHORIZATION_FAILED,
)
TRANSACTION_CODE = LaterCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
_GROUP_KEY = 0

Name = Callable[[Message], str]


def rules(cache: MetadataCache, creates_topics: bool) -> dict[int, Rule]:
    """``creates_topics``: whether Metadata does, with auto.create.topics.enable."""
    describe_offsets = _as_broker_or(_split("topics", _TOPIC_OF, Operation.DESCRIBE))
    of_member = _of_group(Operation.READ)
    alter_configs = _by_resource(Operation.ALTER_CONFIGS)
    between_brokers = partial(_of_cluster, Operation.CLUSTER_ACTION)
    return {
        0: _of_transaction(_split("topics", _TOPIC_OF, Operation.WRITE)),
        1: _fetch,
        2: describe_offsets,
        3: _metadata(cache, creates_topics),
        4: between_brokers(lambda code: s.LeaderAndIsrResponse(code, [])),
        5: between_brokers(lambda code: s.StopReplicaResponse(code, [])),
        6: between_brokers(s.UpdateMetadataResponse),
        7: between_brokers(lambda code: s.ControlledShutdownResponse(code, [])),
        8: _of_group(Operation.READ, _split("topics", _TOPIC_OF, Operation.READ)),
        9: _of_group(Operation.DESCRIBE, _offset_fetch),
        10: _consumer_metadata,
        11: of_member,
        12: of_member,
        13: of_member,
        14: of_member,
        15: _split("groups", str, Operation.DESCRIBE, GROUP, GROUP_CODE),
        16: _list_groups,
        SASL_HANDSHAKE: _open,
        API_VERSIONS: _open,
        19: _create_topics,
        20: _split("topics", str, Operation.DELETE),
        21: _split("topics", _TOPIC_OF, Operation.DELETE),
        22: _init_producer_id,
        23: describe_offsets,
        24: _add_partitions,
        25: _of_transaction(_of_group(Operation.READ)),
        26: _of_transaction(_open),
        27: between_brokers(),
        28: _of_transaction(_of_group(Operation.READ, _split("topics", _TOPIC_OF, Operation.READ))),
        29: _of_cluster(Operation.DESCRIBE),
        30: _of_cluster(Operation.ALTER),
        31: _of_cluster(Operation.ALTER),
        32: _by_resource(Operation.DESCRIBE_CONFIGS),
        33: alter_configs,
        35: _of_cluster(Operation.DESCRIBE, lambda code: a.DescribeLogDirsResponse(0, [], code)),
        SASL_AUTHENTICATE: _open,
        37: _split("topics", _TOPIC_OF, Operation.ALTER),
        42: _split("groups", str, Operation.DELETE, GROUP, GROUP_CODE),
        43: _of_cluster(Operation.ALTER),
        44: alter_configs,
        47: _of_group(Operation.DELETE, _offset_delete),
        50: _of_cluster(Operation.DESCRIBE),
        51: _of_cluster(Operation.ALTER),
        61: _split("topics", _TOPIC_OF, Operation.READ),
        65: _describe_transactions,
        66: _list_transactions,
    }


_TOPIC_OF: Name = attrgetter("topic")
_GROUP_OF: Name = attrgetter("group")


# --- for several APIs


def _open(check: Check, request: Message) -> Message:
    """Anybody may."""
    return check.handle(request)


def _of_cluster(operation: Operation, refusal: Callable[[int], Message] | None = None) -> Rule:
    """The whole request is about the cluster. ``refusal``: the answer to a code, if it is another
    one than the handler has."""

    def rule(check: Check, request: Message) -> Message:
        if check.allows_on_cluster(operation):
            return check.handle(request)
        return check.failure(request, CLUSTER_CODE) if refusal is None else refusal(CLUSTER_CODE)

    return rule


def _of_group(operation: Operation, rule: Rule = _open) -> Rule:
    """``rule`` for the rest of the request, if the operation is allowed on the group."""

    def of_group(check: Check, request: Message) -> Message:
        if check.allows(operation, GROUP, request.group):
            return rule(check, request)
        return check.failure(request, GROUP_CODE)

    return of_group


def _of_transaction(rule: Rule) -> Rule:
    """``rule`` for the rest of the request, if its transactional id may be used or is not named."""

    def of_transaction(check: Check, request: Message) -> Message:
        id_ = request.transactional_id
        if id_ is None or check.allows(Operation.WRITE, TRANSACTIONAL_ID, id_):
            return rule(check, request)
        return check.failure(request, TRANSACTION_CODE)

    return of_transaction


def _as_broker_or(rule: Rule) -> Rule:
    """``rule`` for clients; replicas, and brokers that ask in a role of their own (-2), may."""

    def as_broker(check: Check, request: Message) -> Message:
        if request.replica_id != s.CONSUMER_REPLICA_ID and check.is_broker():
            return check.handle(request)
        return rule(check, request)

    return as_broker


def _split(
    field: str,
    name_of: Name,
    operation: Operation,
    kind: ResourceType = TOPIC,
    code: int = TOPIC_CODE,
) -> Rule:
    """The list ``field`` of the request is served in part; the answer has the same field."""

    def rule(check: Check, request: Message) -> Message:
        refused = check.refused(operation, kind, map(name_of, getattr(request, field)))
        return _serve_part(check, request, field, name_of, refused, code)

    return rule


def _serve_part(
    check: Check,
    request: Message,
    field: str,
    name_of: Name,
    refused: Collection[str],
    code: int,
) -> Message:
    """The handler's answer without the ``refused`` elements, and its failures for those."""
    if not refused:
        return check.handle(request)
    allowed, others = _divided(getattr(request, field), name_of, refused)
    answer = check.handle(request._replace(**{field: allowed})) if allowed else None
    # Fails without an answer where the wire has none: for a produce request with acks 0.
    refusal = check.failure(request._replace(**{field: others}), code)
    if answer is None:
        return refusal
    return answer._replace(**{field: [*getattr(answer, field), *getattr(refusal, field)]})


def _divided(
    asked: Iterable[Message], name_of: Name, refused: Collection[str]
) -> tuple[list[Message], list[Message]]:
    """The elements that are allowed, and the refused ones."""
    allowed: list[Message] = []
    others: list[Message] = []
    for each in asked:
        (others if name_of(each) in refused else allowed).append(each)
    return allowed, others


def _allowed_topics(
    check: Check, operation: Operation, request: Message
) -> tuple[list[Message], list[Message]]:
    """The topics of a request on which the operation is allowed, and the others."""
    refused = check.refused(operation, TOPIC, map(_TOPIC_OF, request.topics))
    return _divided(request.topics, _TOPIC_OF, refused)


# --- data


def _fetch(check: Check, request: Message) -> Message:
    """A refusal does not wait for data. Rules may change while others wait: they count too."""
    if request.replica_id >= 0:
        if check.allows_on_cluster(Operation.CLUSTER_ACTION):
            return check.handle(request)
        return check.failure(request, CLUSTER_CODE)
    refused = check.refused(Operation.READ, TOPIC, map(_TOPIC_OF, request.topics))
    asked = request._replace(max_wait_ms=0) if refused else request
    answer = _serve_part(check, asked, "topics", _TOPIC_OF, refused, TOPIC_CODE)
    if not check.is_outdated():
        return answer
    names = (each.topic for each in answer.topics if each.topic not in refused)
    late = check.refused(Operation.READ, TOPIC, names)
    if not late:
        return answer
    kept, _ = _divided(answer.topics, _TOPIC_OF, late)
    _, others = _divided(request.topics, _TOPIC_OF, late)
    refusal = check.failure(request._replace(topics=others), TOPIC_CODE)
    return answer._replace(topics=[*kept, *refusal.topics])


# --- metadata


def _metadata(cache: MetadataCache, creates_topics: bool) -> Rule:
    """A list of all topics has those that may be described. A topic that does not exist is created
    if its name, or the cluster, allows Create."""

    def needs_creation(topic: str, request: s.MetadataRequest) -> bool:
        creates = creates_topics or topic in INTERNAL_TOPICS
        return creates and request.allow_auto_topic_creation and topic not in cache

    def rule(check: Check, request: Message) -> Message:
        handler, header = check.handler, check.header
        assert isinstance(handler, MetadataApi)
        if request.topics is None or (header.api_version == 0 and not request.topics):
            topics = handler.topics(header, request)
            visible = check.visible(Operation.DESCRIBE, TOPIC, map(_TOPIC_OF, topics))
            return handler.response(header, [each for each in topics if each.topic in visible])
        refused = check.refused(Operation.DESCRIBE, TOPIC, request.topics)
        missing = [t for t in request.topics if t not in refused and needs_creation(t, request)]
        refused |= _not_to_be_created(check, missing)
        allowed = [topic for topic in request.topics if topic not in refused]
        # In version 0 an empty list would mean all topics.
        topics = handler.topics(header, request._replace(topics=allowed)) if allowed else []
        others = (topic for topic in dict.fromkeys(request.topics) if topic in refused)
        refusals = [s.TopicMetadata(TOPIC_CODE, topic, []) for topic in others]
        return handler.response(header, [*topics, *refusals])

    return rule


def _not_to_be_created(check: Check, topics: Collection[str]) -> frozenset[str]:
    """Those of the topics that may not be created: by Create on the cluster or on the topic."""
    if not topics or check.visible(Operation.CREATE, CLUSTER, [CLUSTER_NAME]):
        return frozenset()
    return check.refused(Operation.CREATE, TOPIC, topics)


# --- groups


def _offset_fetch(check: Check, request: Message) -> Message:
    if request.topics is None:
        answer = check.handle(request)
        names = (each.topic for each in answer.topics)
        visible = check.visible(Operation.DESCRIBE, TOPIC, names)
        return answer._replace(topics=[each for each in answer.topics if each.topic in visible])
    allowed, others = _allowed_topics(check, Operation.DESCRIBE, request)
    answer = check.handle(request._replace(topics=allowed))
    refusals = in_topics(
        s.OffsetFetchTopicResponse,
        others,
        lambda number: s.OffsetFetchPartitionResponse(number, -1, "", TOPIC_CODE),
    )
    return answer._replace(topics=[*answer.topics, *refusals])


def _offset_delete(check: Check, request: Message) -> Message:
    allowed, others = _allowed_topics(check, Operation.READ, request)
    answer = check.handle(request._replace(topics=allowed))
    if answer.error:
        return answer
    refusals = in_topics(
        g.OffsetDeleteTopicResponse,
        others,
        lambda asked: g.OffsetDeletePartitionResponse(asked.partition, TOPIC_CODE),
    )
    return answer._replace(topics=[*answer.topics, *refusals])


def _consumer_metadata(check: Check, request: Message) -> Message:
    of_group = request.key_type == _GROUP_KEY
    kind, code = (GROUP, GROUP_CODE) if of_group else (TRANSACTIONAL_ID, TRANSACTION_CODE)
    if check.allows(Operation.DESCRIBE, kind, request.group):
        return check.handle(request)
    return s.ConsumerMetadataResponse(code, -1, "", -1)


def _list_groups(check: Check, request: Message) -> Message:
    answer = check.handle(request)
    if check.visible(Operation.DESCRIBE, CLUSTER, [CLUSTER_NAME]):
        return answer
    visible = check.visible(Operation.DESCRIBE, GROUP, map(_GROUP_OF, answer.groups))
    return answer._replace(groups=[each for each in answer.groups if each.group in visible])


# --- administration


def _create_topics(check: Check, request: Message) -> Message:
    names = list(map(_TOPIC_OF, request.topics))
    refused = _not_to_be_created(check, names)
    return _serve_part(check, request, "topics", _TOPIC_OF, refused, TOPIC_CODE)


def _by_resource(operation: Operation) -> Rule:
    """Settings of topics, and of brokers, which are the cluster's."""

    def is_allowed(check: Check, asked: Message) -> bool:
        if asked.resource_type == a.TOPIC_RESOURCE:
            return check.allows(operation, TOPIC, asked.resource_name)
        return check.allows_on_cluster(operation)

    def rule(check: Check, request: Message) -> Message:
        allowed, topics, others = [], [], []
        for asked in request.resources:
            if is_allowed(check, asked):
                allowed.append(asked)
            elif asked.resource_type == a.TOPIC_RESOURCE:
                topics.append(asked)
            else:
                others.append(asked)
        # An answer without resources is one to a request without any.
        answer = check.handle(request._replace(resources=allowed))
        found = list(answer.resources)
        for refused, code in ((topics, TOPIC_CODE), (others, CLUSTER_CODE)):
            found += check.failure(request._replace(resources=refused), code).resources
        return answer._replace(resources=found)

    return rule


# --- transactions


def _add_partitions(check: Check, request: Message) -> Message:
    """Brokers send the later versions. If a topic is refused, none is added."""
    if request.transactions:
        if check.allows_on_cluster(Operation.CLUSTER_ACTION):
            return check.handle(request)
        return check.failure(request, CLUSTER_CODE)
    if not check.allows(Operation.WRITE, TRANSACTIONAL_ID, request.transactional_id):
        return check.failure(request, TRANSACTION_CODE)
    allowed, others = _allowed_topics(check, Operation.WRITE, request)
    if not others:
        return check.handle(request)
    not_tried = check.failure(request._replace(topics=allowed), LaterCode.OPERATION_NOT_ATTEMPTED)
    refusal = check.failure(request._replace(topics=others), TOPIC_CODE)
    return not_tried._replace(topics=[*not_tried.topics, *refusal.topics])


def _describe_transactions(check: Check, request: Message) -> Message:
    """Their partitions are shown of topics that may be described."""
    ids = request.transactional_ids
    refused = check.refused(Operation.DESCRIBE, TRANSACTIONAL_ID, ids)
    answer = check.handle(
        request._replace(transactional_ids=[each for each in ids if each not in refused])
    )
    names = {topic.topic for found in answer.transactions for topic in found.topics}
    visible = check.visible(Operation.DESCRIBE, TOPIC, names)
    shown = [
        found._replace(topics=[topic for topic in found.topics if topic.topic in visible])
        for found in answer.transactions
    ]
    refusal = check.failure(
        request._replace(transactional_ids=[each for each in ids if each in refused]),
        TRANSACTION_CODE,
    )
    return answer._replace(transactions=[*shown, *refusal.transactions])


def _list_transactions(check: Check, request: Message) -> Message:
    answer = check.handle(request)
    ids = (each.transactional_id for each in answer.transactions)
    visible = check.visible(Operation.DESCRIBE, TRANSACTIONAL_ID, ids)
    shown = [each for each in answer.transactions if each.transactional_id in visible]
    return answer._replace(transactions=shown)


def _init_producer_id(check: Check, request: Message) -> Message:
    """A sender that may write to some topic may do so idempotently, as since 2.8."""
    if request.transactional_id is not None:
        return _of_transaction(_open)(check, request)
    if check.allows_on_any(Operation.WRITE, TOPIC) or check.allows_on_cluster(
        Operation.IDEMPOTENT_WRITE
    ):
        return check.handle(request)
    return check.failure(request, CLUSTER_CODE)

"""API 3, Metadata: brokers, topics, leaders, from the cache alone; creates topics when allowed.

A topic being created is answered 5 with no partitions, and the client asks again. Asking for
all topics (an empty array) creates none. When a creation fails, only that topic carries the
code; 0.8.2.2 answers every topic with it and an empty broker list, which clients cannot use.
Live brokers are listed even before the first topic exists.

A broker that has just been started knows neither brokers nor topics until the controller names
them. Version 0 says so with an empty list of brokers, as 0.8.2.2 does. Later versions wait for
the controller, and the connection is closed if that takes too long: of an empty list librdkafka
2.16 concludes that there are no brokers, and it never retries. A topic that such a broker
has not heard of is not denied to later versions either, if ZooKeeper has it: it is answered 5, for
on a 3 librdkafka gives up the topic's messages.

librdkafka from 2.2 on sets aside four times an answer's size for what it makes of the answer,
which is not enough where most topics have short names and few partitions or none
("tmpabuf memory shortage"). It passes over bytes behind the last topic, and they count. Other
clients take such bytes for damage, so only those get them that call themselves "rdkafka", as
librdkafka does by default.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka08.cluster.metadata_cache import MetadataCache
from kafka08.errors import LeaderNotAvailableError, UnknownTopicOrPartitionError
from kafka08.network.server import ConnectionClosed
from kafka08.protocol.schemas import (
    BrokerEndpoint,
    MetadataRequest,
    MetadataResponse,
    PaddedMetadataResponse,
    RequestHeader,
    TopicMetadata,
)
from kafka08.runtime import Runtime
from kafka08.server.apis.failures import RequestFailures
from kafka08.server.cluster_view.originals import Originals
from kafka08.server.cluster_view.registrations import Reachable
from kafka08.server.cluster_view.topic_creator import TopicCreator
from kafka08.server.requests.long_work import in_turns

_LIBRDKAFKA = "rdkafka"
# A quarter of what librdkafka lacks at most: 28 bytes for a broker whose host is one character,
# 60 for a topic of one character and without partitions.
_BROKER_PADDING = 7
_TOPIC_PADDING = 15
# Less than the request timeouts that clients have.
_PATIENCE_S = 2.0


class MetadataApi:
    key = 3
    last_version = 8

    def __init__(
        self,
        runtime: Runtime,
        cache: MetadataCache,
        creator: TopicCreator,
        originals: Originals,
        reachable: Reachable,
        rack_of: Callable[[int], str | None],
    ) -> None:
        self._reachable = reachable
        self._rack_of = rack_of
        self._runtime = runtime
        self._cache = cache
        self._creator = creator
        self._originals = originals

    def handle(
        self, header: RequestHeader, request: MetadataRequest
    ) -> MetadataResponse | PaddedMetadataResponse:
        return self.response(header, self.topics(header, request))

    def topics(self, header: RequestHeader, request: MetadataRequest) -> list[TopicMetadata]:
        """The topics that are asked for, created as far as that is allowed."""
        version = header.api_version
        if version and not self._cache.announced.wait(_PATIENCE_S):
            raise ConnectionClosed("no controller has named the brokers and topics yet")
        asks_all = request.topics is None or (version == 0 and not request.topics)
        names = self._cache.topics() if asks_all else list(dict.fromkeys(request.topics or ()))
        failures = RequestFailures()
        brokers = self._reachable.brokers()
        topics = [
            self._cache.topic_metadata(name, brokers, later=version > 0)
            if name in self._cache
            else self._missing(name, request.allow_auto_topic_creation, header, failures)
            for name in in_turns(self._runtime, names)
        ]
        failures.tell("Could not create all topics asked for")
        return topics

    def failure(
        self, header: RequestHeader, request: MetadataRequest, code: int
    ) -> MetadataResponse | PaddedMetadataResponse:
        return self.response(
            header, [TopicMetadata(code, name, []) for name in dict.fromkeys(request.topics or ())]
        )

    def response(
        self, header: RequestHeader, topics: list[TopicMetadata]
    ) -> MetadataResponse | PaddedMetadataResponse:
        """The answer with these topics, and all brokers."""
        brokers = [
            BrokerEndpoint(*each, self._rack_of(each.id))
            for each in self._reachable.brokers().values()
        ]
        if header.api_version and not brokers:
            raise ConnectionClosed("no broker is known that the client can reach")
        later: tuple[()] | tuple[int, str | None, int] = ()
        if header.api_version:
            later = (0, self._originals.cluster_id(), self._originals.administrator())
        if not (header.client_id or "").startswith(_LIBRDKAFKA):
            return MetadataResponse(brokers, topics, *later)
        padding = _BROKER_PADDING * len(brokers) + _TOPIC_PADDING * len(topics)
        return PaddedMetadataResponse(brokers, topics, bytes(padding), *later)

    def _missing(
        self, topic: str, may_create: bool, header: RequestHeader, failures: RequestFailures
    ) -> TopicMetadata:
        later = header.api_version > 0
        try:
            found = (may_create and self._creator.create_on_demand(topic)) or (
                later and self._creator.may_exist(topic)
            )
        except Exception as error:
            return TopicMetadata(failures.add(topic, error), topic, [])
        if topic in self._cache:
            return self._cache.topic_metadata(topic, self._reachable.brokers(), later=later)
        code = (LeaderNotAvailableError if found else UnknownTopicOrPartitionError).code
        return TopicMetadata(code, topic, [])

"""Parses a job's ``kafkaParams`` as the old API did. Does not use Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from kafka08.client.cluster import ClusterClient, Endpoint
from kafka08.client.security import PLAIN, ClientSecurity, runtime_for
from kafka08.common import ISOLATION_LEVELS, READ_COMMITTED, READ_UNCOMMITTED
from kafka08.errors import ConfigError
from kafka08.network.channel import Channel
from kafka08.runtime import Runtime
from kafka08.settings.settings import LONG, Settings, one_of, setting
from kafka08.spark.errors import JobError, naming
from kafka08.spark.offsets import LogOffsetReader
from kafka08.spark.reader import FETCH_BYTES, MAX_FETCH_BYTES, RangeReader

SMALLEST = "smallest"
BROKERS, BOOTSTRAP = "metadata.broker.list", "bootstrap.servers"
RESET, CLIENT_ID = "auto.offset.reset", "client.id"


class SourceParams(NamedTuple):
    """The brokers and the fetch settings; it is pickled with every task, and in checkpoints.

    ``option``: what named ``endpoints``, for messages. With ``api_versions`` brokers must answer
    ApiVersions, and to read committed transactions alone too.
    """

    endpoints: tuple[Endpoint, ...]
    from_smallest: bool = False
    fetch_bytes: int = FETCH_BYTES
    backoff_ms: int = 200
    timeout_ms: int = 30000
    client_id: str = ""
    option: str = BROKERS
    security: ClientSecurity = PLAIN
    max_fetch_bytes: int = MAX_FETCH_BYTES
    api_versions: bool = False
    isolation_level: str = READ_UNCOMMITTED

    @property
    def committed(self) -> bool:
        return self.isolation_level == READ_COMMITTED

    def client(self, runtime: Runtime) -> ClusterClient:
        """The process's own; ``runtime`` connects as ``security`` says."""
        return ClusterClient(
            self.endpoints,
            client_id=self.client_id,
            timeout_ms=self.timeout_ms,
            runtime=runtime,
            channel=partial(Channel, api_versions=self.api_versions or self.committed),
        )

    def offsets(
        self, cluster: ClusterClient, retries: int | None, runtime: Runtime
    ) -> LogOffsetReader:
        return LogOffsetReader(
            cluster,
            retries=retries,
            backoff_ms=self.backoff_ms,
            runtime=runtime,
            committed=self.committed,
        )

    def ranges(self, cluster: ClusterClient, retries: int | None, runtime: Runtime) -> RangeReader:
        return RangeReader(
            cluster,
            fetch_bytes=self.fetch_bytes,
            max_fetch_bytes=self.max_fetch_bytes,
            retries=retries,
            backoff_ms=self.backoff_ms,
            runtime=runtime,
            committed=self.committed,
        )

    @contextmanager
    def offset_reader(self, retries: int | None = None) -> Iterator[LogOffsetReader]:
        """For a with; what is asked there raises UnreachableError when no broker answers."""
        runtime = runtime_for(self.security)
        with naming(self.option, self.endpoints), self.client(runtime) as cluster:
            yield self.offsets(cluster, retries, runtime)

    @contextmanager
    def range_reader(self, retries: int | None = None) -> Iterator[RangeReader]:
        """As ``offset_reader``."""
        runtime = runtime_for(self.security)
        with naming(self.option, self.endpoints), self.client(runtime) as cluster:
            yield self.ranges(cluster, retries, runtime)


class _FetchSettings(Settings):
    fetch_bytes: int = setting("fetch.message.max.bytes", 1 << 20, LONG, 1, doc="bytes of a fetch")
    backoff_ms: int = setting("refresh.leader.backoff.ms", 200, LONG, 1, doc="before a retry")
    timeout_ms: int = setting("socket.timeout.ms", 30000, LONG, 1, doc="for an answer")
    isolation_level: str = setting(
        "isolation.level",
        READ_UNCOMMITTED,
        one_of(*ISOLATION_LEVELS),
        doc="whether messages of committed transactions alone are read",
    )


# The kafkaParams of direct streams and RDDs that have an effect.
KEYS = frozenset(
    {BROKERS, BOOTSTRAP, RESET, CLIENT_ID} | _FetchSettings.keys() | ClientSecurity.keys()
)


def source_params(params: Mapping[str, str]) -> SourceParams:
    """Raises JobError, which says what is missing.

    ``auto.offset.reset``: "smallest" in any case means the earliest offset, anything else the
    latest.
    """
    brokers = params.get(BROKERS) or params.get(BOOTSTRAP)
    if not brokers:
        raise JobError(f"Must specify {BROKERS} or {BOOTSTRAP}")
    texts = {key: str(value) for key, value in params.items()}
    try:
        settings = _FetchSettings.from_properties(texts)
        security = ClientSecurity.from_properties(texts)
        runtime_for(security)
    except ConfigError as error:
        raise JobError(str(error)) from None
    return SourceParams(
        endpoints_in(brokers),
        params.get(RESET, "").lower() == SMALLEST,
        **settings.values(),
        client_id=params.get(CLIENT_ID, ""),
        option=BROKERS if params.get(BROKERS) else BOOTSTRAP,
        security=security,
    )


def endpoints_in(brokers: str) -> tuple[Endpoint, ...]:
    found = []
    for word in filter(None, (word.strip() for word in brokers.split(","))):
        host, _, port = word.rpartition(":")
        if not host or not port.isdecimal():
            raise JobError(f"Broker not in the correct format of <host>:<port> [{brokers}]")
        found.append((host.strip("[]"), int(port)))
    return tuple(found)

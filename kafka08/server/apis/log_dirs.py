"""API 35, DescribeLogDirs: the data directories of this broker, and the replicas in them.

Not of 0.8.2.2. Replicas do not move between directories of a broker: none is a future one, and none
lags behind itself, which is what the offset lag would show.
"""

from __future__ import annotations

from kafka08.common import TopicPartition
from kafka08.errors import NO_ERROR, LaterCode
from kafka08.log.disk import space
from kafka08.log.manager import LogManager
from kafka08.protocol import admin_schemas as a
from kafka08.protocol.schemas import RequestHeader


class DescribeLogDirsApi:
    key = 35
    last_version = 4

    def __init__(self, logs: LogManager) -> None:
        self._logs = logs

    def handle(
        self, header: RequestHeader, request: a.DescribeLogDirsRequest
    ) -> a.DescribeLogDirsResponse:
        wanted = None
        if request.topics is not None:
            wanted = {
                TopicPartition(topic, n) for topic, numbers, _ in request.topics for n in numbers
            }
        found: dict[str, dict[str, list[a.LogDirPartition]]] = {
            path: {} for path in self._logs.log_dirs
        }
        for tp, log in sorted(self._logs.logs.items()):
            topics = found.get(log.data_dir)
            if topics is not None and (wanted is None or tp in wanted):
                partition = a.LogDirPartition(tp.partition, log.size, 0, False)
                topics.setdefault(tp.topic, []).append(partition)
        dirs = [
            a.LogDir(
                NO_ERROR, path, [a.LogDirTopic(*item) for item in topics.items()], *space(path)
            )
            for path, topics in found.items()
        ]
        failed = [a.LogDir(LaterCode.KAFKA_STORAGE_ERROR, p, []) for p in self._logs.failed_dirs]
        return a.DescribeLogDirsResponse(0, [*dirs, *failed])

    def failure(
        self, header: RequestHeader, request: a.DescribeLogDirsRequest, code: int
    ) -> a.DescribeLogDirsResponse:
        return a.DescribeLogDirsResponse(
            0, [a.LogDir(code, path, []) for path in self._logs.log_dirs], code
        )

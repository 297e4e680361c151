"""What only consumers raise."""

from __future__ import annotations

from kafka08.errors import KafkaError


class ConsumerTimeoutError(KafkaError):
    """No message came within consumer.timeout.ms; the stream stays usable."""

    text = "No message within consumer.timeout.ms"
    java_class = "kafka.consumer.ConsumerTimeoutException"


class ConsumerRebalanceFailedError(KafkaError):
    """All attempts at a rebalance failed; the cause is the last one's error, if it had one."""

    java_class = "kafka.common.ConsumerRebalanceFailedException"


class PartitionOwnedError(KafkaError):
    """Another member still owns a partition that is ours by the assignment."""


class MessageStreamsExistError(KafkaError):
    """Streams were asked of a connector twice."""

    text = "A connector can create message streams at most once"
    java_class = "kafka.common.MessageStreamsExistException"


class StreamFailedError(KafkaError):
    """The stream raised before and cannot go on; the cause is what it raised."""

    text = "The stream failed and cannot go on"
    java_class = "java.lang.IllegalStateException"

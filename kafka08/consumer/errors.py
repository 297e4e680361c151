"""The errors that only consumers raise."""

from __future__ import annotations

from kafka08.errors import KafkaError


class ConsumerTimeoutError(KafkaError):
    """No message came within consumer.timeout.ms; the stream stays usable."""

    text = "No message within consumer.timeout.ms"
    java_class = "kafka.consumer.ConsumerTimeoutException"


class ConsumerRebalanceFailedError(KafkaError):
    """All attempts at a rebalance failed; the cause is the error of the last one, if any."""

    java_class = "kafka.common.ConsumerRebalanceFailedException"


class PartitionOwnedError(KafkaError):
    """Another member still owns a partition that the assignment gives to this one."""


class PartitionNotOwnedError(KafkaError):
    """A partition that this member does not own was to be read from another offset."""

    java_class = "java.lang.IllegalStateException"


class MessageStreamsExistError(KafkaError):
    text = "A connector can create message streams at most once"
    java_class = "kafka.common.MessageStreamsExistException"


class StreamFailedError(KafkaError):
    """The stream has failed before and cannot continue; the cause is that error."""

    text = "The stream has failed and cannot continue"
    java_class = "java.lang.IllegalStateException"

"""What only producers raise."""

from __future__ import annotations

from kafka08.errors import KafkaError


class FailedToSendMessageError(KafkaError):
    """Some messages were not accepted within all tries; it is not known which."""

    java_class = "kafka.common.FailedToSendMessageException"


class QueueFullError(KafkaError):
    """The async queue had no room in time; the rest of the call's messages was not queued."""

    java_class = "kafka.common.QueueFullException"


class ProducerClosedError(KafkaError):
    text = "producer already closed"
    java_class = "kafka.producer.ProducerClosedException"

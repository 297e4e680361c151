"""The errors that only producers raise."""

from __future__ import annotations

from kafka08.errors import KafkaError, MessageSizeTooLargeError, RequestTimedOutError


class FailedToSendMessageError(KafkaError):
    """Some messages were not accepted within all tries. It is not known which ones."""

    java_class = "kafka.common.FailedToSendMessageException"


class QueueFullError(KafkaError):
    """The async queue was full for too long. The rest of the call's messages was not queued."""

    java_class = "kafka.common.QueueFullException"


class ProducerClosedError(KafkaError):
    text = "producer already closed"
    java_class = "kafka.producer.ProducerClosedException"


class ForkedProducerError(ProducerClosedError):
    text = (
        "this producer was made before the process forked, and its connections belong to the "
        "parent: make a new one in the child"
    )


class SerializationError(KafkaError):
    """The serializer rejected a key or value. The record was not queued."""

    java_class = "org.apache.kafka.common.errors.SerializationException"


class RecordTooLargeError(MessageSizeTooLargeError):
    """A record is larger than max.request.size or buffer.memory. It was not queued."""

    java_class = "org.apache.kafka.common.errors.RecordTooLargeException"


class BufferExhaustedError(KafkaError):
    """buffer.memory is full, and the producer may not wait (any longer)."""

    java_class = "org.apache.kafka.clients.producer.BufferExhaustedException"


class MetadataTimeoutError(RequestTimedOutError):
    """No metadata of a topic arrived within metadata.fetch.timeout.ms."""

    java_class = "org.apache.kafka.common.errors.TimeoutException"


class DeliveryTimeoutError(RequestTimedOutError):
    """A record was not acknowledged in time. It may have been stored nevertheless."""

    java_class = "org.apache.kafka.common.errors.TimeoutException"


class WaitTimeoutError(KafkaError, TimeoutError):
    """The wait for a result timed out. The record may still be sent."""

    java_class = "java.util.concurrent.TimeoutException"


class DisconnectedError(KafkaError):
    """The connection ended before the broker answered. The records may or may not be stored."""

    retriable = True
    stale_metadata = True
    java_class = "org.apache.kafka.common.errors.NetworkException"

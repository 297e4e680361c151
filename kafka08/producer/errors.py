"""What only producers raise."""

from __future__ import annotations

from kafka08.errors import KafkaError, MessageSizeTooLargeError, RequestTimedOutError


class FailedToSendMessageError(KafkaError):
    """Some messages were not accepted within all tries; it is not known which."""

    java_class = "kafka.common.FailedToSendMessageException"


class QueueFullError(KafkaError):
    """The async queue had no room in time; the rest of the call's messages was not queued."""

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
    """A key or value that the serializer refuses; nothing was queued."""

    java_class = "org.apache.kafka.common.errors.SerializationException"


class RecordTooLargeError(MessageSizeTooLargeError):
    """A record above max.request.size or buffer.memory; nothing was queued."""

    java_class = "org.apache.kafka.common.errors.RecordTooLargeException"


class BufferExhaustedError(KafkaError):
    """buffer.memory is full, and the producer was told not to wait (any longer)."""

    java_class = "org.apache.kafka.clients.producer.BufferExhaustedException"


class MetadataTimeoutError(RequestTimedOutError):
    """Nothing was learnt of a topic within metadata.fetch.timeout.ms."""

    java_class = "org.apache.kafka.common.errors.TimeoutException"


class DeliveryTimeoutError(RequestTimedOutError):
    """A record that was not acknowledged in time. It may have been stored all the same."""

    java_class = "org.apache.kafka.common.errors.TimeoutException"


class WaitTimeoutError(KafkaError, TimeoutError):
    """The wait for a result is over; the record is still on its way."""

    java_class = "java.util.concurrent.TimeoutException"


class DisconnectedError(KafkaError):
    """The connection ended before the broker answered: the records may be stored or not."""

    retriable = True
    stale_metadata = True
    java_class = "org.apache.kafka.common.errors.NetworkException"

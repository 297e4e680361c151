"""What goes wrong between a plan and its data, each as an error that says what to do."""

from __future__ import annotations

from kafka08.errors import KafkaError


class DataLossError(KafkaError):
    """Offsets that were planned or committed are not in the log any more."""


class RangeNotAvailableError(DataLossError):
    """A planned range begins before the log does, or ends after it."""


class EndedEarlyError(DataLossError):
    """The log ended before the range did."""


class MessageTooLargeForFetchError(KafkaError):
    """One message is larger than the largest fetch allowed."""


class JobError(KafkaError):
    """A job cannot be set up as asked for; what Spark 2.4 threw a SparkException for."""

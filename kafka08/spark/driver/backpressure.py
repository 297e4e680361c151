"""Estimates the rate for the next batches from the speed of past ones. Pure.

Mirrors org.apache.spark.streaming.scheduler.rate.PIDRateEstimator.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class PidRateEstimator:
    """The messages a second that batches can process; call ``compute`` after each batch.

    ``min_rate`` is the lowest rate it returns. Raises ValueError for invalid numbers.
    """

    batch_ms: int
    proportional: float = 1.0
    integral: float = 0.2
    derivative: float = 0.0
    min_rate: float = 100.0

    def __post_init__(self) -> None:
        least = min(self.proportional, self.integral, self.derivative)
        if self.batch_ms <= 0 or least < 0 or self.min_rate <= 0:
            raise ValueError(
                f"batch of {self.batch_ms} ms, proportional {self.proportional}, integral "
                f"{self.integral}, derivative {self.derivative}, least rate {self.min_rate}"
            )
        self._latest_time = -1
        self._latest_rate = -1.0
        self._latest_error = -1.0

    def compute(self, time_ms: int, count: int, processing_ms: int, delay_ms: int) -> float | None:
        """The new rate after ``count`` messages took ``processing_ms``, having waited ``delay_ms``;
        None when this says nothing new. ``time_ms``: when the batch was done."""
        if time_ms <= self._latest_time or count <= 0 or processing_ms <= 0:
            return None
        seconds = (time_ms - self._latest_time) / 1000
        processing_rate = count / processing_ms * 1000
        if self._latest_time < 0:
            self._latest_time, self._latest_rate, self._latest_error = time_ms, processing_rate, 0.0
            return None
        error = self._latest_rate - processing_rate
        backlog = delay_ms * processing_rate / self.batch_ms
        change = (error - self._latest_error) / seconds
        rate = (
            self._latest_rate
            - self.proportional * error
            - self.integral * backlog
            - self.derivative * change
        )
        self._latest_time, self._latest_error = time_ms, error
        self._latest_rate = max(rate, self.min_rate)
        return self._latest_rate

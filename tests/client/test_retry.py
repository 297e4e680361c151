"""kafka08.client.retry: when tries end, and what happens between them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafka08.client.retry import Retry
from kafka08.errors import KafkaError, LeaderNotAvailableError
from tests.fakes.runtime import FakeRuntime


def failing(times: int, error: Exception) -> Callable[[], int]:
    """A step that fails so often; it returns the number of tries that it took."""
    tries = 0

    def step() -> int:
        nonlocal tries
        tries += 1
        if tries <= times:
            raise error
        return tries

    return step


def test_a_step_that_succeeds_is_done_once() -> None:
    runtime = FakeRuntime()
    assert Retry(runtime, 1.0, attempts=1).run(failing(0, OSError())) == 1
    assert runtime.slept == []


def test_tries_are_a_backoff_apart() -> None:
    runtime = FakeRuntime()
    assert Retry(runtime, 0.5).run(failing(2, KafkaError("x"))) == 3
    assert runtime.slept == [0.5, 0.5]


def test_the_error_of_the_last_attempt_is_raised() -> None:
    runtime = FakeRuntime()
    assert Retry(runtime, 1.0, attempts=3).run(failing(2, OSError("down"))) == 3
    with pytest.raises(OSError, match="down"):
        Retry(runtime, 1.0, attempts=3).run(failing(3, OSError("down")))
    assert runtime.slept == [1.0] * 4


def test_patience_is_counted_from_the_first_try() -> None:
    runtime = FakeRuntime()
    with pytest.raises(OSError):
        Retry(runtime, 1.0, patience=2.5).run(failing(99, OSError()))
    assert runtime.slept == [1.0] * 3


def test_other_errors_are_raised_at_once() -> None:
    retry = Retry(FakeRuntime(), 1.0)
    with pytest.raises(ValueError):
        retry.run(failing(1, ValueError()))
    final = Retry(FakeRuntime(), 1.0, passes=lambda error: isinstance(error, OSError))
    assert final.run(failing(1, OSError())) == 2
    with pytest.raises(LeaderNotAvailableError):
        final.run(failing(1, LeaderNotAvailableError()))


def test_stopping_ends_the_tries_before_and_during_a_pause() -> None:
    runtime = FakeRuntime()
    stopping = runtime.event()
    runtime.on_sleep = lambda seconds: stopping.set()
    retry = Retry(runtime, 1.0, stopping=stopping)
    for errors in ([OSError], []):
        seen: list[Exception] = []
        with pytest.raises(OSError):
            retry.run(failing(99, OSError()), again=seen.append)
        assert [type(error) for error in seen] == errors


def test_a_refresh_is_a_part_of_the_try_that_follows() -> None:
    runtime = FakeRuntime()
    done: list[str] = []

    def refresh() -> None:
        done.append(f"refresh after {len(runtime.slept)} pauses")
        if len(done) == 1:
            raise OSError("metadata")

    errors: list[Exception] = []
    result = Retry(runtime, 1.0).run(
        failing(1, OSError("step")), again=errors.append, refresh=refresh
    )
    assert result == 2
    assert [str(error) for error in errors] == ["step", "metadata"]
    assert done == ["refresh after 1 pauses", "refresh after 2 pauses"]


def test_what_is_raised_between_tries_ends_them() -> None:
    def give_up(error: Exception) -> None:
        raise KafkaError("enough") from error

    with pytest.raises(KafkaError, match="enough"):
        Retry(FakeRuntime(), 1.0).run(failing(9, OSError()), again=give_up)


def test_the_pause_may_depend_on_the_error() -> None:
    runtime = FakeRuntime()
    errors = [OSError(), KafkaError(), OSError()]

    def step() -> str:
        if errors:
            raise errors.pop(0)
        return "done"

    retry = Retry(runtime, lambda error: 5.0 if isinstance(error, OSError) else 0.5)
    assert retry.run(step) == "done"
    assert runtime.slept == [5.0, 0.5, 5.0]

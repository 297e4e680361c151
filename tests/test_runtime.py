"""The runtimes of brokers and clients."""

from __future__ import annotations

import threading

import pytest

from kafka08.errors import KafkaError
from kafka08.runtime import GeventRuntime, Loop, Tasks
from tests.fakes.runtime import FakeRuntime


def test_what_another_thread_raises_is_raised_here_and_not_printed(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """gevent's pool prints a traceback on stderr, which no log4j file could redirect."""
    runtime = GeventRuntime(threads=1)
    threads = []

    def refused(number: int) -> None:
        threads.append(threading.get_ident())
        raise OSError(number, "No space left on device")

    try:
        assert runtime.blocking(max, 1, 2) == 2
        with pytest.raises(OSError, match="No space left") as raised:
            runtime.blocking(refused, 28)
        assert raised.value.errno == 28
        assert raised.traceback[-1].name == "refused"
        assert threads != [threading.get_ident()]
    finally:
        runtime.close()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("error", [KafkaError("no answer from ZooKeeper"), ValueError("a bug")])
def test_a_loop_goes_on_after_an_error(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    """One of ours is a line; any other has a traceback."""
    runtime = FakeRuntime()
    errors = [error]

    def work() -> None:
        if errors:
            raise errors.pop()
        loop.stopping.set()

    loop = Loop(runtime, "isr-expiration", work)
    loop.start()
    runtime.run("isr-expiration")
    assert not errors
    (record,) = caplog.records
    assert record.getMessage().startswith("Uncaught error in isr-expiration")
    assert bool(record.exc_info) is isinstance(error, ValueError)


def test_an_owner_waits_for_its_last_tasks() -> None:
    runtime = GeventRuntime(threads=1)
    tasks, may_end, ended = Tasks(runtime), runtime.event(), []

    def work(number: int) -> None:
        may_end.wait()
        ended.append(number)
        if number:
            tasks.begin("the next", work, number - 1)

    try:
        tasks.begin("the first", work, 1)
        tasks.join(0)
        assert ended == []
        may_end.set()
        tasks.join()
        tasks.join()
        assert ended == [1, 0]
    finally:
        runtime.close()

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kafka08.errors import KafkaError
from tools.shutdown import SIGNALS, Shutdown

HOME = Path(__file__).parent.parent.parent


@pytest.fixture
def statuses() -> list[int]:
    return []


@pytest.fixture
def process(statuses: list[int]) -> Shutdown:
    return Shutdown(statuses.append)


def test_a_block_ends_with_its_action(process: Shutdown) -> None:
    done: list[str] = []
    with process.at_end(lambda: done.append("outer")), process.at_end(lambda: done.append("inner")):
        assert done == []
    assert done == ["inner", "outer"]


def test_an_error_passes_the_action(process: Shutdown) -> None:
    done: list[str] = []
    with pytest.raises(ValueError), process.at_end(lambda: done.append("x")):
        raise ValueError
    assert done == ["x"]


def test_a_signal_runs_the_actions_of_open_blocks_once(
    process: Shutdown, statuses: list[int]
) -> None:
    done: list[str] = []
    with process.at_end(lambda: done.append("ended before")):
        pass
    with process.at_end(lambda: done.append("outer")), process.at_end(lambda: done.append("inner")):
        process.run(signal.SIGTERM)
    assert done == ["ended before", "inner", "outer"]
    assert statuses == [143]


@pytest.mark.parametrize("error", [KafkaError("gone"), OSError("gone"), ValueError("gone")])
def test_an_action_that_fails_stops_no_other(
    process: Shutdown, statuses: list[int], caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    done: list[str] = []

    def fail() -> None:
        raise error

    with process.at_end(lambda: done.append("outer")), process.at_end(fail):
        process.run(signal.SIGINT)
    assert (done, statuses) == (["outer"], [130])
    [record] = caplog.records
    assert (record.exc_info is not None) == isinstance(error, ValueError)


def test_who_is_in_a_block_stays_there(process: Shutdown) -> None:
    """Neither the way out nor an error's message nor a new block is reached after a signal."""
    reached: list[str] = []
    entered = threading.Event()
    going = threading.Event()

    def work() -> None:
        with process.at_end(entered.set):
            entered.set()
            going.wait()
        reached.append("out")

    def late() -> None:
        with process.at_end(lambda: None):
            reached.append("in")

    worker = threading.Thread(target=work)
    worker.start()
    entered.wait()

    def outer() -> None:
        # The signal's thread is still in an action: the others must not go on.
        going.set()
        threads = [worker, threading.Thread(target=late), threading.Thread(target=process.hold)]
        for thread in threads[1:]:
            thread.start()
        for thread in threads:
            thread.join(0.05)
        assert all(thread.is_alive() for thread in threads)
        assert reached == []

    with process.at_end(outer):
        process.run(signal.SIGINT)
    worker.join()


TOOL = """
import os, signal, sys, threading, time
from tools.options import run_tool
from tools.shutdown import at_end

def send(number):
    os.kill(os.getpid(), number)

def main(argv):
{main}

sys.exit(run_tool(main, []))
"""


def run(main: str, *, ignored: tuple[signal.Signals, ...] = ()) -> subprocess.CompletedProcess[str]:
    def ignore() -> None:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)

    lines = "\n".join(f"    {line}" for line in main.strip().splitlines())
    return subprocess.run(
        [sys.executable, "-u", "-c", TOOL.format(main=lines)],
        cwd=HOME,
        env={**os.environ, "PYTHONPATH": str(HOME)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        # Python code between fork and exec may meet a lock of another thread and hang.
        preexec_fn=ignore if ignored else None,
    )


@pytest.mark.parametrize("number", SIGNALS)
def test_a_tool_ends_with_the_signals_status(number: signal.Signals) -> None:
    done = run(f"""
send({number:d})
time.sleep(60)
""")
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", "")


def test_two_interrupts_in_the_middle_of_locks() -> None:
    """The main thread goes on taking locks while signals come; the hook sees all of them."""
    done = run("""
lock = threading.Lock()
def leave():
    for _ in range(50):
        send(signal.SIGINT)
        send(signal.SIGTERM)
        with lock:
            pass
    print("left")
with at_end(leave):
    send(signal.SIGINT)
    send(signal.SIGINT)
    while True:
        with threading.Condition(lock) as changed:
            changed.wait(0.0001)
""")
    assert (done.returncode, done.stdout, done.stderr) == (130, "left\n", "")


def test_a_library_that_catches_everything_swallows_no_signal() -> None:
    """As kazoo does around its socket: a member of a group ran on, and its nodes stayed."""
    done = run("""
with at_end(lambda: print("left")):
    try:
        send(signal.SIGTERM)
        threading.Event().wait(1)
    except:
        pass
    time.sleep(60)
""")
    assert (done.returncode, done.stdout, done.stderr) == (143, "left\n", "")


def test_errors_that_the_end_causes_are_not_shown() -> None:
    """Neither the main thread's nor another thread's."""
    done = run("""
closed = threading.Event()
def fail():
    closed.wait()
    raise RuntimeError("closed")
other = threading.Thread(target=fail, daemon=True)
other.start()
def leave():
    closed.set()
    other.join()
with at_end(leave):
    send(signal.SIGINT)
    fail()
""")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_signals_that_the_parent_ignores_stay_ignored() -> None:
    done = run(
        """
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
    send(number)
return 7
""",
        ignored=(signal.SIGINT, signal.SIGHUP, signal.SIGTERM),
    )
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")


def test_a_tool_that_ends_leaves_signals_as_they_were(process: Shutdown) -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    threads = threading.active_count()
    with process.catching_signals():
        assert signal.getsignal(signal.SIGINT) is not before[1]
    assert [signal.getsignal(number) for number in SIGNALS] == before
    assert threading.active_count() == threads
    assert signal.set_wakeup_fd(-1) == -1

"""A module in a process of its own: its lines, its end, and its end by force."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack

import pytest

from kafka08.log.child_process import ChildProcess


@pytest.fixture
def children():
    started: list[ChildProcess] = []

    def start(module: str, job: bytes = b"") -> ChildProcess:
        started.append(ChildProcess(module, job))
        return started[-1]

    yield start
    for child in started:
        child.kill()


def exit_status(child) -> int:
    """Once it has ended."""
    status: int = child._process.wait()
    assert child.exit_status == status
    return status


def test_lines_and_the_exit_status(children) -> None:
    child = children("this")
    assert exit_status(child) == 0
    lines = child.lines()
    assert lines[0] == b"The Zen of Python, by Tim Peters"
    assert not any(b"\n" in line for line in lines)
    assert child.lines() == []


def test_a_module_that_is_not_there(children) -> None:
    child = children("kafka08.no_such_module", b"x" * 1_000_000 + b"\n")
    assert exit_status(child) == 1
    assert child.lines() == []


def test_a_child_that_waits_is_killed(children) -> None:
    """It reads its input, which stays open."""
    child = children("json.tool", b"{}\n")
    assert child.exit_status is None
    child.kill()
    assert child.exit_status == -9
    child.kill()


@pytest.mark.skipif(
    not os.path.exists("/proc/self/autogroup"), reason="this kernel schedules without autogroups"
)
def test_its_priority_is_low_beside_other_sessions_too() -> None:
    """Also when several begin at once, of which the kernel refuses some unless they are root's."""
    code = (
        "import os\n"
        "from kafka08.log.child_process import received_job\n"
        "print(received_job(7), os.nice(0), open('/proc/self/autogroup').read())"
    )
    with ExitStack() as stack:
        started = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", code],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    start_new_session=True,
                )
            )
            for _ in range(3)
        ]
        for child in started:
            assert child.stdin is not None
            child.stdin.write(b"job\n")
            child.stdin.flush()
        for child in started:
            assert child.stdout is not None
            job, nice, *_, group = child.stdout.readline().split()
            assert (job, nice, group) == (b"b'job\\n'", b"7", b"7")


# A broker that was killed leaves no traceback of its children

CHILDREN = ["kafka08.log.cleaning.compaction", "kafka08.server.rebuild.process"]


@pytest.mark.parametrize("module", CHILDREN)
@pytest.mark.parametrize("job", [b"", b'{"half": '])
def test_a_child_without_a_whole_job_ends_in_silence(module: str, job: bytes) -> None:
    done = subprocess.run([sys.executable, "-m", module], input=job, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")


# Its output breaks while its input is still open: the end of the broker in the other order.
BEREFT = """
import os
from kafka08.log.child_process import print_event, received_job
received_job(0)
reader, writer = os.pipe()
os.dup2(writer, 1)
os.close(writer)
os.close(reader)
try:
    print_event({"say": "cleaned"})
except Exception as error:
    print_event({"error": str(error)})
"""


def test_a_child_whose_broker_has_died_ends_in_silence() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", BEREFT], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdin is not None and child.stderr is not None
        child.stdin.write(b"{}\n")
        child.stdin.flush()
        assert child.stderr.read() == b""
        assert child.wait() == 1


def test_ctrl_c_in_the_terminal_is_the_brokers(children) -> None:
    """A child would print a traceback while it still imports."""
    child = children("json.tool")
    assert os.getsid(child._process.pid) != os.getsid(0)

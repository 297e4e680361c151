"""Standard output after its reader has left."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tools.output import abandon_stdout


def test_a_broken_pipe_is_not_reported_at_exit() -> None:
    script = "from tools.output import *; stdout().write(b'x'); {}; sys.exit(3)"
    for call, failed in (("abandon_stdout()", False), ("pass", True)):
        process = subprocess.Popen(
            [sys.executable, "-c", "import sys; sys.stdin.readline(); " + script.format(call)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": ""},
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.write(b"\n")
        process.stdin.close()
        told = process.stderr.read()
        process.stderr.close()
        assert (process.wait() == 3, b"BrokenPipeError" in told) == (not failed, failed)


def test_an_output_without_a_descriptor_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed:
        def fileno(self) -> int:
            raise ValueError("I/O operation on closed file")

    monkeypatch.setattr(sys, "stdout", Closed())
    abandon_stdout()

"""Hooks that run when a signal ends a tool (the JVM's shutdown hooks).

A signal interrupts no code: nothing is raised, so no lock is left half taken. Python's C handler
writes the signal's number into a pipe. A thread that reads the pipe runs the hooks, the innermost
first, and ends the process with status 128 + number. Later signals change nothing. Without hooks
the process ends at once. Knows nothing of what the hooks do.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from kafka08.errors import KafkaError

logger = logging.getLogger("kafka.utils.Shutdown$")

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
Action = Callable[[], object]


class _Hook:
    """Called by two threads, it runs once, and both return when it has ended."""

    def __init__(self, action: Action) -> None:
        self._action = action
        self._lock = threading.Lock()
        self._called = False

    def __call__(self) -> None:
        with self._lock:
            if not self._called:
                self._called = True
                self._action()


class Shutdown:
    """The hooks of a process. ``leave`` ends the process with a status; tests give another."""

    def __init__(self, leave: Callable[[int], object] = os._exit) -> None:
        self._leave = leave
        self._lock = threading.Lock()
        self._hooks: list[_Hook] = []
        self._begun = False
        self._over = threading.Event()

    @contextmanager
    def at_end(self, action: Action) -> Iterator[None]:
        """Run ``action`` once: at the end of the block, or before it when a signal comes.

        After a signal no thread gets out of its blocks, nor into a new one.
        """
        hook = _Hook(action)
        with self._lock:
            if not self._begun:
                self._hooks.append(hook)
        self.hold()
        try:
            yield
        finally:
            self.hold()
            try:
                hook()
            finally:
                self.hold()
                with self._lock:
                    self._hooks = [other for other in self._hooks if other is not hook]

    def hold(self) -> None:
        """After a signal do not return: what the caller met may be an effect of the hooks."""
        if self._begun:
            self._over.wait()

    def run(self, number: int) -> None:
        """Run the hooks for a signal of that number, then end the process."""
        with self._lock:
            self._begun = True
            hooks = self._hooks[::-1]
        for hook in hooks:
            try:
                hook()
            except (KafkaError, OSError) as error:
                logger.error("Not ended as it should be: %s", error)
            except Exception:
                logger.exception("Not ended as it should be")
        self._leave(128 + number)
        self._over.set()

    @contextmanager
    def catching_signals(self) -> Iterator[None]:
        """Within the block TERM, INT and HUP end the process by way of the hooks.

        Signals that the parent ignores stay ignored, as in the JVM. For the main thread.
        """
        caught = [each for each in SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        thread = threading.Thread(
            target=self._watch, args=[reader, caught], name="signals", daemon=True
        )
        thread.start()
        handlers = {each: signal.signal(each, _do_nothing) for each in caught}
        excepthook = threading.excepthook
        threading.excepthook = lambda args: None if self._begun else excepthook(args)
        try:
            yield
        finally:
            self.hold()
            threading.excepthook = excepthook
            for each, handler in handlers.items():
                signal.signal(each, handler)
            signal.set_wakeup_fd(before)
            os.close(writer)
            thread.join()
            os.close(reader)

    def _watch(self, reader: int, caught: list[signal.Signals]) -> None:
        while number := os.read(reader, 1):
            if number[0] in caught:
                self.run(number[0])
                return


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    """With a handler in Python the C handler is there; a system call goes on after it."""


_process = Shutdown()
at_end = _process.at_end
hold = _process.hold
catching_signals = _process.catching_signals

"""With KAFKA08_TEST_COMPILED set, the tests run on the compiled modules.

Child processes get Ctrl-C also where the parent of the tests ignores it, and no example of a
property test has to be quick: neither the caller nor a busy machine decides a test.
"""

import gc
import os
import signal

import pytest
from hypothesis import settings

from kafka08 import builds

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
settings.register_profile("kafka08", deadline=None)
settings.load_profile("kafka08")

if os.environ.get("KAFKA08_TEST_COMPILED") and not builds.activate():
    raise RuntimeError("Nothing is compiled, or not from these sources: make setup")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if os.environ.get("KAFKA08_TEST_COMPILED") and item.get_closest_marker("sources"):
        pytest.skip("compiled modules call each other directly; make test runs this")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files of simulations begin first: they are few, and the longest."""
    items.sort(key=lambda item: item.path.parent.name != "simulation")


def pytest_collection_finish() -> None:
    """Modules and tests stay until the end: collections of garbage need not look at them."""
    gc.collect()
    gc.freeze()

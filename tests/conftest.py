"""With KAFKA08_TEST_COMPILED set, the tests run on the compiled modules."""

import os

import pytest

from kafka08 import compiled

COMPILED = bool(os.environ.get("KAFKA08_TEST_COMPILED"))

if COMPILED and not compiled.activate():
    raise RuntimeError("Nothing is compiled, or not from these sources: make setup")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if COMPILED:
        for item in items:
            if item.get_closest_marker("interpreted"):
                item.add_marker(pytest.mark.skip(reason="needs the interpreted modules"))

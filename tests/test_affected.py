"""Which unit tests a change touches."""

from __future__ import annotations

import pytest

from tests.affected import ALWAYS, affected
from tests.house import Source

SOURCES = [
    Source("kafka08/log/log.py", "from kafka08 import errors"),
    Source("kafka08/errors.py", ""),
    Source("zk/client.py", "import kafka08.log.log"),
    Source("tests/support.py", "from kafka08.log.log import Log"),
    Source("tests/log/test_log.py", ""),
    Source("tests/test_with_support.py", "from tests.support import log"),
    Source("tests/test_page.py", "page = 'docs/a page.md'"),
    Source("tests/test_native.py", "from kafka08 import _native"),
    Source("tests/test_errors.py", "from kafka08.errors import KafkaError"),
    Source("tests/zk/test_client.py", ""),
]


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("kafka08/errors.py", ["log/test_log.py", "test_errors.py"]),
        (
            "kafka08/log/log.py",
            ["log/test_log.py", "test_with_support.py", "zk/test_client.py"],
        ),
        ("tests/support.py", ["test_with_support.py"]),
        ("tests/test_errors.py", ["test_errors.py"]),
        ("docs/a page.md", ["test_page.py"]),
        ("kafka08/_native/scan.pyx", ["test_native.py"]),
        ("LICENSE", []),
    ],
)
def test_what_imports_or_names_it(changed: str, tests: list[str]) -> None:
    expected = [f"tests/{test}" for test in tests]
    assert affected({changed}, SOURCES) == sorted([*expected, *ALWAYS])


def test_without_a_change_the_structure_alone() -> None:
    assert affected(set(), SOURCES) == sorted(ALWAYS)

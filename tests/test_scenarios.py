"""Every required situation has its tests, and the tests name situations that exist."""

from __future__ import annotations

from collections import defaultdict

import pytest

from tests import scenarios
from tests.scenarios import Marked

SITUATIONS, REASONS = scenarios.texts()
TESTS = list(scenarios.marked())
SHOWN = {name: [test for test in TESTS if name in test.scenarios] for name in SITUATIONS}
# Those of clients are shown with real brokers at least once, and these with brokers of both kinds.
WITH_BROKERS = [name for name in SITUATIONS if name.rpartition("-")[0] in ("client", "spark")]
BOTH_KINDS = (1, 2, 3, 5, 6, 13, 14, 15, 16, 17, 18, 19, 20, 22, 23, 25, 26, 27)
# Each test of these is there for a situation.
MODULES = (
    "integration/spark/test_dstream_faults.py",
    "integration/spark/test_late_data.py",
    "integration/spark/test_query_faults.py",
    "integration/test_client_scenarios.py",
    "integration/test_modern_clients.py",
    "integration/test_modern_groups.py",
    "integration/test_modern_tools.py",
    "integration/test_producer_scenarios.py",
)


def real(name: str) -> list[Marked]:
    return [test for test in SHOWN[name] if test.path.startswith("integration/")]


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_situation_has_tests_or_a_reason(name: str) -> None:
    assert SHOWN[name] or REASONS.get(name)


def test_a_reason_is_that_of_a_situation() -> None:
    assert REASONS.keys() <= SITUATIONS.keys()


def test_markers_name_situations() -> None:
    unknown = {str(test): test.scenarios for test in TESTS if set(test.scenarios) - set(SITUATIONS)}
    assert unknown == {}


def test_no_number_is_left_out() -> None:
    numbers: dict[str, list[int]] = defaultdict(list)
    for name in SITUATIONS:
        area, _, number = name.rpartition("-")
        numbers[area].append(int(number))
    assert all(each == list(range(1, len(each) + 1)) for each in numbers.values())


@pytest.mark.parametrize("name", WITH_BROKERS)
def test_one_of_its_tests_is_among_real_brokers(name: str) -> None:
    assert real(name)


@pytest.mark.parametrize("number", BOTH_KINDS)
def test_one_of_its_tests_runs_against_both_kinds(number: int) -> None:
    assert any(test.arguments & {"either", "kind"} for test in real(f"spark-{number}"))


@pytest.mark.parametrize("path", MODULES)
def test_each_test_is_there_for_a_situation(path: str) -> None:
    tests = [test for test in TESTS if test.path == path]
    assert tests
    assert [str(test) for test in tests if not test.scenarios] == []

from __future__ import annotations

from pathlib import Path

from kafka08.metrics.docs import declared, declared_of_clients, page

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


def test_all_are_there_once() -> None:
    names = [metric.name for metric in [*declared(), *declared_of_clients()]]
    assert len(names) == len(set(names)) > 100

"""Each alerting rule says how bad it is, what it is about, and where to read what to do."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
RULES = (ROOT / "config" / "prometheus-alerts.yml").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")
EXAMPLES = (ROOT / "integration" / "alerts.yml").read_text(encoding="utf-8")
NAMES = re.findall(r"^ +- alert: (\w+)$", RULES, re.MULTILINE)


def test_every_rule_has_its_severity_its_summary_and_its_section() -> None:
    rules = re.split(r"^ +- alert: ", RULES, flags=re.MULTILINE)[1:]
    assert len(rules) == len(NAMES) == len(set(NAMES)) > 20
    for name, rule in zip(NAMES, rules, strict=True):
        assert re.search(r"severity: (critical|warning)\b", rule), name
        assert "summary:" in rule, name
        assert f"runbook: docs/alerts.md#{name.lower()}\n" in rule, name


def test_every_section_is_about_a_rule() -> None:
    assert sorted(re.findall(r"^### (\w+)$", PAGE, re.MULTILINE)) == sorted(NAMES)


def test_every_rule_has_an_example_that_fires() -> None:
    """``promtool test rules`` goes through them in ``integration``."""
    fires = re.findall(r"alertname: (\w+)\n +exp_alerts:\n", EXAMPLES)
    assert set(fires) == set(NAMES)

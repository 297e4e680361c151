from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka08.server.monitoring.monitoring import Monitoring
from kafka08.server.requests.heard import HeardTopics
from tests.fakes.runtime import FakeRuntime
from tests.server.support import broker_config

StartMonitoring = Callable[..., Monitoring]
CSV = "kafka.metrics.KafkaCSVMetricsReporter"


@pytest.mark.scenario("ops-14")
def test_it_is_off_unless_a_port_is_set(
    start_monitoring: StartMonitoring, caplog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JMX_PORT", raising=False)
    with caplog.at_level(logging.INFO):
        start_monitoring()
        assert caplog.messages == []
        monkeypatch.setenv("JMX_PORT", "9999")
        start_monitoring()
    [message] = caplog.messages
    assert message.startswith("JMX_PORT is set, but there is no JMX here: set http.port")


@pytest.mark.scenario("ops-17")
def test_the_csv_reporter_needs_its_class_and_its_switch(
    start_monitoring: StartMonitoring, tmp_path: Path
) -> None:
    names = {"kafka_csv_metrics_dir": tmp_path / "csv", "kafka_metrics_reporters": CSV}
    off = start_monitoring(**names)
    on = start_monitoring(kafka_csv_metrics_reporter_enabled="true", **names)
    assert (len(off._stops), len(on._stops)) == (0, 2)
    assert (off.is_read, on.is_read) == (False, True)
    assert Monitoring(broker_config(tmp_path, http_port=0), FakeRuntime()).is_read


def test_handlers_note_requests_only_if_there_is_a_page_to_ask(tmp_path: Path) -> None:
    handler: Any = SimpleNamespace(key=0, last_version=0)
    off, on = (
        Monitoring(broker_config(tmp_path, http_port=port), FakeRuntime()) for port in (-1, 0)
    )
    assert off.heard([handler]) == [handler]
    [heard] = on.heard([handler])
    assert isinstance(heard, HeardTopics)

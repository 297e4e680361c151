from __future__ import annotations

import json
from pathlib import Path

from kafka08.server.monitoring.clients_page import ClientsPage
from kafka08.server.requests.heard import Speaker, Spoken
from kafka08.server.requests.spoken import SpokenVersions
from tests.fakes.runtime import FakeRuntime
from tests.server.support import broker_config


def test_the_settings_and_what_was_heard(tmp_path: Path) -> None:
    runtime = FakeRuntime()
    spoken = SpokenVersions(runtime.clock, most=1)
    began_ms = runtime.clock.millis()
    config = broker_config(tmp_path, api_versions_enable=False, log_message_format_version="0.8.2")
    page = ClientsPage(config, runtime, spoken)
    about = {
        "broker_id": 1,
        "api.versions.enable": False,
        "log.message.format.version": "0.8.2",
        "since_ms": began_ms,
        "forgotten": 0,
        "heard": [],
    }
    assert json.loads(page.data()) == about
    for name in ("t", "u"):
        spoken.note(Spoken(Speaker("c", "10.0.0.3", "User:ANONYMOUS", None), 0, 1, name, 0))
    found = json.loads(page.data())
    assert (found["forgotten"], [each["topic"] for each in found["heard"]]) == (1, ["u"])
    assert runtime.pooled == ["encode", "encode"]

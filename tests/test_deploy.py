"""The files of docs/deploy agree with the image, with config/ and with each other.

They are read as text: no dependency of the project parses YAML.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kafka08.console.config import ConsoleConfig
from kafka08.container import ROLES, setting_name
from kafka08.rest.config import RestConfig
from kafka08.settings.broker import BrokerConfig

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "docs" / "deploy"
COMPOSE = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
PROMETHEUS = (DEPLOY / "prometheus.yml").read_text(encoding="utf-8")
SETTINGS = {
    "broker": {*BrokerConfig.keys(), "http.host", "http.port", "http.allowed.hosts"},
    "console": set(ConsoleConfig.keys()),
    "rest": set(RestConfig.keys()),
    "zookeeper": {"autopurge.purgeInterval", "autopurge.snapRetainCount"},
}
PORTS = {
    "broker": ROLES["broker"].file.settings["http.port"],
    "console": str(ConsoleConfig.from_properties({"zookeeper.connect": "z:1"}).http_port),
    "rest": ROLES["rest"].file.settings["listeners"].rpartition(":")[2],
}


def services() -> dict[str, str]:
    """The text of each service, with those that it takes over (``<<: *name``)."""
    shared = dict(re.findall(r"^x-\w+: &(\w+)\n((?:  .*\n)+)", COMPOSE, re.MULTILINE))
    texts = COMPOSE.partition("\nservices:\n")[2].partition("\nvolumes:\n")[0]
    found = re.findall(r"^  (\w+):\n((?:    .*\n|\n)+)", texts + "\n", re.MULTILINE)
    return {
        name: text + "".join(shared[each] for each in re.findall(r"<<: \*(\w+)", text))
        for name, text in found
    }


def role(service: str) -> str:
    """Empty for the images of others."""
    found = re.search(r"command: \[(\w+)\]", services()[service])
    return found[1] if found else ""


def published() -> dict[str, list[tuple[str, str]]]:
    """For each service the ports of the machine and of the container."""
    return {
        name: re.findall(r'"127\.0\.0\.1:(\d+):(\d+)"', text) for name, text in services().items()
    }


def mounts(service: str) -> dict[str, str]:
    """The paths of files in the container, and those files."""
    found = re.findall(r"- (\.\S+?):(/\S+?):ro$", services()[service], re.MULTILINE)
    return {inside: file for file, inside in found}


def test_the_services() -> None:
    roles = {name: role(name) for name in services()}
    assert roles == {
        **dict.fromkeys(("kafka1", "kafka2", "kafka3"), "broker"),
        **{name: name for name in ("zookeeper", "console", "rest")},
        **dict.fromkeys(("prometheus", "grafana"), ""),
    }
    assert set(filter(None, roles.values())) <= set(ROLES)


def test_files_exist() -> None:
    context = re.search(r"context: (\S+)\n +dockerfile: (\S+)", COMPOSE)
    assert context is not None
    assert (DEPLOY / context[1] / context[2]).is_file()
    files = [file for name in services() for file in mounts(name).values()]
    assert len(files) == COMPOSE.count(":ro\n") == 5
    assert [file for file in files if not (DEPLOY / file).is_file()] == []
    volumes = COMPOSE.partition("\nvolumes:\n")[2].replace(":", "").split()
    assert set(re.findall(r"\b(\w+):/var/lib/|- (\w+):/prometheus", COMPOSE)) == {
        (name, "") if name != "prometheus" else ("", name) for name in volumes
    }


def test_variables_are_settings_of_the_role() -> None:
    for name, text in services().items():
        variables = re.findall(r"^ +((?:KAFKA|ZOOKEEPER)_\w+):", text, re.MULTILINE)
        assert bool(variables) == bool(role(name)), name
        keys = {setting_name(each) for each in variables}
        assert keys - SETTINGS.get(role(name), set()) == set(), name


def test_ports_agree() -> None:
    outside = [port for ports in published().values() for port, _ in ports]
    assert len(outside) == len(set(outside)) == 7
    head = COMPOSE.partition("\nx-")[0]
    assert sorted(re.findall(r"localhost:(\d+)", head)) == sorted(outside)
    for name, text in services().items():
        for own, inner in published()[name]:
            if role(name) == "broker":
                assert f"OUTSIDE://:{inner}\n" in text
                assert f"OUTSIDE://localhost:{own}\n" in text
            elif role(name):
                assert inner == PORTS[role(name)]
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    exposed = re.search(r"^EXPOSE (.*)$", dockerfile, re.MULTILINE)
    assert exposed is not None
    assert set(PORTS.values()) <= set(exposed[1].split())


def test_prometheus_scrapes_all_that_the_alerts_are_about() -> None:
    jobs = dict(re.findall(r"job_name: (\S+)\n.*\n +- targets: \[(.*)\]", PROMETHEUS))
    targets = {name: re.findall(r"\w+:\d+", text) for name, text in jobs.items()}
    of = {"kafka": "broker", "kafka-console": "console", "kafka-rest": "rest"}
    assert targets == {
        job: [f"{name}:{PORTS[kind]}" for name in services() if role(name) == kind]
        for job, kind in of.items()
    }
    alerts = (ROOT / "config" / "prometheus-alerts.yml").read_text(encoding="utf-8")
    assert set(re.findall(r'job="([\w-]+)"', alerts)) <= set(jobs)
    for name in ("console", "rest"):
        assert f"KAFKA_HTTP_ALLOWED_HOSTS: {name}\n" in services()[name]


def test_prometheus_finds_the_alerts_beside_its_file() -> None:
    rules = re.search(r"^rule_files: \[(\S+)\]$", PROMETHEUS, re.MULTILINE)
    assert rules is not None
    assert mounts("prometheus") == {
        "/etc/prometheus/prometheus.yml": "./prometheus.yml",
        f"/etc/prometheus/{rules[1]}": "../../config/prometheus-alerts.yml",
    }


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is missing")
def test_prometheus_understands_its_file(tmp_path: Path) -> None:
    for inside, file in mounts("prometheus").items():
        shutil.copy(DEPLOY / file, tmp_path / Path(inside).name)
    # A relative path: Prometheus reads the path of its rules as a pattern, and a temporary
    # directory's name may hold any sign.
    words = ["promtool", "check", "config", "prometheus.yml"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_grafana_has_its_data_source_and_the_dashboard() -> None:
    files = mounts("grafana")
    dashboard = "../../config/grafana-dashboard.json"
    inside = next(path for path, file in files.items() if file == dashboard)
    provider = (DEPLOY / "grafana" / "dashboards.yml").read_text(encoding="utf-8")
    assert f"path: {Path(inside).parent}\n" in provider
    source = (DEPLOY / "grafana" / "datasources.yml").read_text(encoding="utf-8")
    port = published()["prometheus"][0][1]
    assert f"url: http://prometheus:{port}\n" in source
    assert {Path(path).parent.name for path in files if "provisioning" in path} == {
        "datasources",
        "dashboards",
    }


def test_units_start_commands_of_the_package_with_shipped_files() -> None:
    units = sorted(DEPLOY.glob("*.service"))
    assert len(units) == 4
    for unit in units:
        text = unit.read_text(encoding="utf-8")
        found = re.search(r"^ExecStart=/opt/kafka08/bin/(\S+) /etc/kafka08/(\S+)$", text, re.M)
        assert found is not None, unit.name
        assert (ROOT / "bin" / found[1]).exists()
        assert (ROOT / "config" / found[2]).exists()
        assert "\nUser=kafka08\n" in text
        assert "\nProtectSystem=strict\n" in text
        assert "\nRestart=on-failure\n" in text

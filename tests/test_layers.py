"""The allowed imports: every import of the packages, deferred ones too, against one table."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BASE = "common errors"
CLIENT = (
    "protocol message metrics network.channel network.client_login network.tls zookeeper security "
    "runtime zk settings " + BASE
)
CONTROLLER = f"cluster protocol network.channel metrics zk runtime settings admin {BASE}"
GROUP_FORMATS = "groups.consumer_protocol groups.nodes groups.records"
ALLOWED = {
    "errors": "",
    "common": "errors",
    "commands": "",
    "builds": "",
    "compiled": "builds",
    "container": f"commands settings {BASE}",
    "runtime": "errors",
    "metrics": f"runtime {BASE}",
    "progress": "",
    "zk.endpoints": BASE,
    "zk.locations": BASE,
    "zk.znodes": f"zk.endpoints zk.locations {BASE}",
    "settings": BASE,
    "java_dates": "",
    "log4j": f"java_dates settings {BASE}",
    "_native": f"message.entry protocol.types {BASE}",
    "named": "_native",
    "protocol": f"_native {BASE}",
    "message": f"_native named {BASE}",
    "log": f"_native named message metrics progress settings {BASE}",
    "cluster": f"protocol log message zk.znodes zk.endpoints settings {BASE}",
    "security": f"zk runtime settings {BASE}",
    "network": f"protocol metrics runtime security settings {BASE}",
    "zk": f"runtime {BASE}",
    "placement": BASE,
    "admin": f"placement zk settings {BASE}",
    "zookeeper": f"network.tls security zk log4j settings {BASE}",
    "controller": CONTROLLER,
    "groups.consumer_protocol": f"protocol {BASE}",
    "groups.nodes": f"zk {BASE}",
    "groups.records": f"protocol {BASE}",
    "topics": f"admin placement client {CLIENT}",
    "groups": f"admin consumer client {CLIENT}",
    "server": f"log4j named placement controller {GROUP_FORMATS} network zookeeper security log "
    f"message {CONTROLLER}",
    "client": CLIENT,
    "producer": f"_native client {CLIENT}",
    "consumer": f"client {CLIENT}",
    "spark": f"producer consumer client progress {CLIENT}",
    "connect": f"spark producer consumer client {CLIENT}",
    "rest": f"admin placement groups producer consumer client {CLIENT} network",
    "lag": f"client groups.nodes groups.records {CLIENT}",
    "console": "controller.elections controller.context lag network.hosts network.http groups "
    "topics "
    "connect.config consumer client producer.encoding producer.partitioners "
    f"zookeeper {CLIENT} admin",
    "tools": "rest connect producer consumer client groups topics server spark network zookeeper "
    f"security log message log4j java_dates commands progress {CONTROLLER}",
    "tools.wheel": "builds compiled",
}
PLACES = {
    "gevent": ("runtime", "network", "zk.handlers"),
    "jinja2": ("console",),
    "kazoo": ("zk",),
    "prometheus_client": ("metrics.exposition", "lag", "console", "rest", "tools.mirror.page"),
    "h11": ("network.http",),
    "pyspark": ("spark", "connect.spark_database", "connect.spark_session"),
    "docker": (),
}


def short(module: str) -> str:
    """kafka08.log.log -> log.log."""
    return module.removeprefix("kafka08.")


def inside(module: str, places: tuple[str, ...] | list[str]) -> bool:
    return any(module == place or module.startswith(place + ".") for place in places)


def layer_of(module: str) -> str:
    return max((name for name in ALLOWED if inside(module, [name])), key=len, default=module)


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{'.' * node.level}{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and "import" in ast.unparse(node.func):
            # importlib.import_module("gevent"), __import__("gevent")
            yield from (str(arg.value) for arg in node.args if isinstance(arg, ast.Constant))


def wrong_arrows(module: str, source: str) -> list[str]:
    here = short(module)
    layer = layer_of(here)
    allowed = [layer, *ALLOWED.get(layer, "").split()]
    wrong = []
    for target in imports(ast.parse(source)):
        library = target.split(".")[0]
        if library in PLACES:
            fits = inside(here, PLACES[library])
        elif library in ("kafka08", "zk", "tools"):
            fits = inside(short(target), allowed)
        else:
            fits = not target.startswith(".")
        if not fits:
            wrong.append(f"{module} -> {target}")
    return wrong


def test_every_arrow_is_in_the_table() -> None:
    wrong = []
    for path in sorted(p for top in ("kafka08", "zk", "tools") for p in (ROOT / top).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        wrong += wrong_arrows(module, path.read_text(encoding="utf-8"))
    assert wrong == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("kafka08.log.log", "from kafka08.server.replication.acks import x"),
        ("kafka08.log.log", "def f():\n    import kafka08.runtime"),
        ("kafka08.client.cluster", "from kafka08.network import server"),
        ("kafka08.cluster.partition", "from zk.client import ZkClient"),
        ("kafka08.server.broker", "import gevent.event"),
        ("kafka08.server.broker", "importlib.import_module('kazoo.client')"),
        ("zk.registry", "from gevent import sleep"),
        ("zk.znodes", "from zk.errors import ZkError"),
        ("kafka08.errors", "from . import common"),
        ("kafka08.console.main", "from tools.options import run_main"),
        ("kafka08.console.groups", "from kafka08.server.groups import group"),
        ("tools.topics.topics", "import docker"),
    ],
)
def test_a_wrong_arrow_is_found(module: str, source: str) -> None:
    assert wrong_arrows(module, source) != []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("kafka08.log.log", "from kafka08.log import manager\nimport struct"),
        ("kafka08.client.cluster", "from kafka08.network import channel"),
        ("kafka08.network.server", "from gevent import socket"),
        ("kafka08.settings.broker", "from kafka08.settings.settings import setting"),
        ("zk.client", "from zk import znodes\nimport kazoo"),
        ("tools.topics.topics", "from kafka08 import admin"),
    ],
)
def test_a_right_arrow_is_not(module: str, source: str) -> None:
    assert wrong_arrows(module, source) == []

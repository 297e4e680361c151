"""The REST proxy used by kafka-rest and kafka-rest-client of PyPI, unmodified, on Python 2.7."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from integration.harness import Broker, Process, zookeeper_text
from integration.rest_proxy import RestProxy
from kafka08.rest.media import NO_AVRO

PACKAGES = ("kafka-rest==0.0.12", "kafka-rest-client==0.8.0")
CONSUMER = """
import sys
from proofpoint.kafka.KafkaRestConsumer import KafkaRestConsumer
url, tokens, topic = sys.argv[1:]
consumer = KafkaRestConsumer(
    group_name='pypi', client_name='me', offset='smallest', format='json', kafka_rest_lb=url,
    oauth_token_url=tokens, auth_client_id='id', auth_client_secret='secret')
consumer.subscribe(topic)
found = []
while len(found) < 3:
    found += consumer.poll()
print([each['number'] for each in found])
consumer.commit()
consumer.close()
"""
PRODUCER = """
import json, logging, sys
from kafka_rest.client import KafkaRESTClient
host, port, topic = sys.argv[1:]
logging.basicConfig(stream=sys.stdout, level=logging.ERROR, format='%(message)s')
client = KafkaRESTClient(host, int(port))
events = []
client.registrar.register('drop_message', lambda topic, message, why: events.append(why))
client.registrar.register('produce_success', lambda *_: events.append('stored'))
schema = {'type': 'record', 'name': 'r', 'fields': [{'name': 'number', 'type': 'int'}]}
client.produce(topic, {'number': 1}, schema)
client.shutdown(block=True)
print(json.dumps(events))
"""


def proxy_of(broker: Broker, directory: Path, launch: Callable[[Process], None]) -> RestProxy:
    proxy = RestProxy(directory, broker.zookeeper)
    launch(proxy)
    return proxy.start()


class _Tokens(BaseHTTPRequestHandler):
    """Gives a token to everybody."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"access_token": "t", "token_type": "Bearer", "expires_in": 3600})
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def tokens() -> Iterator[str]:
    """The URL of a server of OAuth tokens."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Tokens)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/token"
    server.shutdown()
    server.server_close()
    thread.join()


def python2() -> str:
    """A Python 2.7 with pip: on PATH or of pyenv. Empty if there is none."""
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for program in ("python2.7", *map(str, versions.glob("2.7*/bin/python2.7"))):
        if shutil.which(program) is None:
            continue
        done = subprocess.run([program, "-m", "pip", "--version"], capture_output=True, check=False)
        if done.returncode == 0:
            return program
    return ""


@pytest.fixture(scope="module")
def old_python(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Runs a script with both clients, which are for Python 2 only; its output."""
    program = python2()
    if not program:
        pytest.skip("no Python 2.7 with pip for the clients of PyPI")
    directory = tmp_path_factory.mktemp("pypi")
    install = [program, "-m", "pip", "install", "-q", "--target", str(directory), *PACKAGES]
    done = subprocess.run(install, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        pytest.skip(f"pip could not install {' '.join(PACKAGES)}: {done.stderr[-300:]}")
    env = {**os.environ, "PYTHONPATH": str(directory), "OAUTHLIB_INSECURE_TRANSPORT": "1"}

    def run(script: str, *args: object) -> str:
        done = subprocess.run(
            [program, "-c", script, *map(str, args)],
            capture_output=True,
            text=True,
            timeout=120,
            env=env,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.scenario("ops-41")
def test_kafka_rest_client(
    broker: Broker, tmp_path: Path, launch: Callable[[Process], None],
    old_python: Callable[..., str], tokens: str,
) -> None:  # fmt: skip
    """It reads, commits and shuts down. It has no producer."""
    topic = f"pypi-{broker.kind}"
    broker.create_topic(topic)
    proxy = proxy_of(broker, tmp_path / "rest", launch)
    records = [{"value": {"number": number}} for number in range(3)]
    json_v1 = "application/vnd.kafka.json.v1+json"
    answered = proxy.ask("POST", f"/topics/{topic}", {"records": records}, json_v1)
    assert answered.status == 200, answered
    assert old_python(CONSUMER, proxy.url, tokens, topic) == "[0, 1, 2]\n"
    assert zookeeper_text(broker.zookeeper, f"/consumers/pypi/offsets/{topic}/0") == "3"
    assert proxy.ask("DELETE", "/consumers/pypi/instances/me").body["error_code"] == 40403
    assert proxy.stop() == 143


@pytest.mark.scenario("ops-41")
def test_kafka_rest_is_told_that_there_is_no_avro(
    broker: Broker, tmp_path: Path, launch: Callable[[Process], None],
    old_python: Callable[..., str],
) -> None:  # fmt: skip
    """It sends Avro alone, which is answered with 415: it drops the message and tells so."""
    topic = f"avro-{broker.kind}"
    broker.create_topic(topic)
    proxy = proxy_of(broker, tmp_path / "rest", launch)
    told = old_python(PRODUCER, "http://127.0.0.1", proxy.port, topic)
    refusal = f"Received 415 response (415: {NO_AVRO})"
    assert told.splitlines() == [f"{refusal} submitting batch to topic {topic}", '["nonretriable"]']
    path = f"/topics/{topic}/partitions/0/messages?offset=0"
    assert proxy.ask("GET", path).body == []
    assert proxy.stop() == 143

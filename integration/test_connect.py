"""connect-standalone as a user runs it: files, JSON, own classes, kills at any moment."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.harness import HOME, Broker, Process, environment, free_port, properties
from integration.wire import entry, wait_until

DEADLINE_S = 60
SCRIPT = HOME / "bin" / "connect-standalone.sh"
STRINGS = "org.apache.kafka.connect.storage.StringConverter"


class Workplace:
    """A directory with properties files, and the worker that runs what they say."""

    def __init__(self, directory: Path, broker: Broker) -> None:
        self.directory = directory
        self.broker = broker
        self.files: list[Path] = []
        self.write(
            "worker",
            {
                "bootstrap.servers": broker.address,
                "key.converter": STRINGS,
                "value.converter": STRINGS,
                "offset.storage.file.filename": directory / "connect.offsets",
                "offset.flush.interval.ms": 200,
            },
        )

    def write(self, name: str, values: dict[str, object]) -> Path:
        path = self.directory / f"{name}.properties"
        path.write_text(properties(values))
        return path

    def change(self, **values: object) -> None:
        with (self.directory / "worker.properties").open("a") as file:
            file.write(properties({k.replace("__", "."): v for k, v in values.items()}))

    def connector(self, name: str, kind: str, **values: object) -> None:
        named = {key.replace("__", "."): value for key, value in values.items()}
        self.files.append(self.write(name, {"name": name, "connector.class": kind, **named}))

    @property
    def command(self) -> list[str]:
        return [str(SCRIPT), str(self.directory / "worker.properties"), *map(str, self.files)]

    def process(self) -> Process:
        process = Process("connect", self.command, self.directory / "worker")
        process.spawn()
        return process

    def run(self) -> subprocess.CompletedProcess[str]:
        """Until it ends by itself."""
        return subprocess.run(
            self.command,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
            cwd=self.directory,
            env=environment(self.directory),
        )


@pytest.fixture
def place(tmp_path: Path, broker: Broker) -> Workplace:
    return Workplace(tmp_path, broker)


def topic_of(broker: Broker, partitions: int = 1) -> str:
    topic = f"connect-{uuid.uuid4().hex[:8]}"
    broker.create_topic(topic, partitions)
    return topic


def values(broker: Broker, topic: str, partition: int = 0) -> list[bytes | None]:
    with broker.wire() as wire:
        return [each.value for each in wire.read_all(topic, partition)]


def send(broker: Broker, topic: str, messages: list[bytes | None], partition: int = 0) -> None:
    with broker.wire() as wire:
        wire.produce(topic, partition, b"".join(entry(None, each) for each in messages))


def until(what: str, condition: Callable[[], bool]) -> None:
    wait_until(what, DEADLINE_S, condition)


def lines(*numbers: int) -> list[bytes]:
    return [b"line %d" % number for number in range(*numbers)]


def test_file_to_topic_to_file(
    place: Workplace, launch: Callable[[Process], None], tmp_path: Path
) -> None:
    topic = topic_of(place.broker)
    source, sink = tmp_path / "in.txt", tmp_path / "out.txt"
    place.connector("source", "FileStreamSource", file=source, topic=topic)
    kind = "org.apache.kafka.connect.file.FileStreamSinkConnector"
    place.connector("sink", kind, file=sink, topics=topic)
    worker = place.process()
    launch(worker)
    source.write_bytes(b"one\ntwo\r\n\xff\xfe\nno end")
    until("three lines", lambda: sink.exists() and sink.read_bytes() == b"one\ntwo\n\xff\xfe\n")
    with source.open("ab") as file:
        file.write(b" yet\n")
    until("the fourth", lambda: sink.read_bytes().endswith(b"\nno end yet\n"))
    assert worker.stop() == 143
    assert values(place.broker, topic) == [b"one", b"two", b"\xff\xfe", b"no end yet"]
    remembered = json.loads((tmp_path / "connect.offsets").read_text())
    assert [offset["position"] for offset in remembered.values()] == [source.stat().st_size]
    # Nothing is sent or written again by the next run.
    again = place.process()
    launch(again)
    with source.open("ab") as file:
        file.write(b"last\n")
    until("the last", lambda: sink.read_bytes().endswith(b"last\n"))
    again.stop(signal.SIGINT)
    assert len(values(place.broker, topic)) == 5
    assert sink.read_bytes().count(b"\n") == 5


def test_kills_at_any_moment(
    place: Workplace, launch: Callable[[Process], None], tmp_path: Path
) -> None:
    """The source loses nothing; the sink has each message of the topic once, in order."""
    topic = topic_of(place.broker)
    source, sink = tmp_path / "in.txt", tmp_path / "out.txt"
    place.change(offset__flush__interval__ms=50)
    place.connector("source", "FileStreamSource", file=source, topic=topic, batch__size=50)
    place.connector("sink", "FileStreamSink", file=sink, topics=topic)
    rng = random.Random(5)
    written = 0
    for _ in range(6):
        worker = place.process()
        launch(worker)
        size = sink.stat().st_size if sink.exists() else 0
        for _ in range(5):
            with source.open("ab") as file:
                file.write(b"".join(b"%s\n" % each for each in lines(written, written + 400)))
            written += 400
            time.sleep(0.05)
        until("progress", lambda: sink.exists() and sink.stat().st_size > size)  # noqa: B023
        time.sleep(rng.random() / 3)
        worker.kill()
    worker = place.process()
    launch(worker)
    wanted = set(lines(written))
    until("all lines", lambda: wanted <= set(sink.read_bytes().splitlines()))
    worker.stop()
    stored = values(place.broker, topic)
    assert wanted == set(stored)
    assert len(stored) < 3 * written
    assert sink.read_bytes().splitlines() == stored


def test_rotated_and_cut_files(
    place: Workplace, launch: Callable[[Process], None], tmp_path: Path
) -> None:
    topic = topic_of(place.broker)
    source = tmp_path / "in.log"
    place.connector("source", "FileStreamSource", file=source, topic=topic)

    def stored(*wanted: bytes) -> None:
        until(f"{wanted}", lambda: values(place.broker, topic) == list(wanted))

    source.write_bytes(b"a\nb\n")
    worker = place.process()
    launch(worker)
    stored(b"a", b"b")
    with source.open("ab") as file:
        file.write(b"c\n")
        source.rename(tmp_path / "in.log.1")
        file.write(b"d\n")  # by a writer that has not noticed
    source.write_bytes(b"e\n")
    stored(b"a", b"b", b"c", b"d", b"e")
    os.truncate(source, 0)
    time.sleep(1)
    with source.open("ab") as file:
        file.write(b"f\n")
    stored(b"a", b"b", b"c", b"d", b"e", b"f")
    # The same while nobody looks.
    worker.stop()
    with source.open("ab") as file:
        file.write(b"g\n")
    source.rename(tmp_path / "in.log.2")
    source.write_bytes(b"h\n")
    worker = place.process()
    launch(worker)
    stored(b"a", b"b", b"c", b"d", b"e", b"f", b"g", b"h")
    worker.stop()


def test_many_topics_and_tasks_commit_for_a_group(
    place: Workplace, launch: Callable[[Process], None], tmp_path: Path
) -> None:
    """topics.regex takes in topics that come later; partitions are shared out among tasks."""
    stem = uuid.uuid4().hex[:8]
    first, second = f"{stem}-one", f"{stem}-two"
    place.broker.create_topic(first, 3)
    (tmp_path / "counting.py").write_text(
        "import os\n"
        "from kafka08.connect.interface import SinkConnector, SinkTask\n"
        "class Task(SinkTask):\n"
        "    def start(self, properties):\n"
        "        self.file = open(f\"{properties['out']}-{self.context.name}\", 'a')\n"
        "    def put(self, records):\n"
        "        for r in records: print(r.topic, r.partition, r.offset, r.value, file=self.file)\n"
        "    def flush(self, offsets):\n"
        "        self.file.flush()\n"
        "class Counting(SinkConnector):\n"
        "    task_class = Task\n"
    )
    place.change(plugin__path=tmp_path)
    out = tmp_path / "seen"
    place.connector("own", "counting.Counting", topics__regex=f"{stem}.*", tasks__max=2, out=out)
    for partition in range(3):
        send(place.broker, first, [b"x"] * 10, partition)
    worker = place.process()
    launch(worker)

    def seen() -> list[str]:
        return sorted(
            line for path in tmp_path.glob("seen-*") for line in path.read_text().splitlines()
        )

    until("30 messages", lambda: len(seen()) == 30)
    assert len(list(tmp_path.glob("seen-own-*"))) == 2
    assert all(path.read_text() for path in tmp_path.glob("seen-own-*"))
    place.broker.create_topic(second)
    send(place.broker, second, [b"y"])
    until("a topic that came later", lambda: f"{second} 0 0 y" in seen())
    worker.stop()
    with place.broker.wire() as wire:
        stored = [wire.committed("connect-own", first, p)[0] for p in range(3)]
    assert stored == [10, 10, 10]
    assert Counter(line.split()[0] for line in seen()) == {first: 30, second: 1}


def test_json_with_and_without_schema(
    place: Workplace, launch: Callable[[Process], None], tmp_path: Path
) -> None:
    topic, plain = topic_of(place.broker), topic_of(place.broker)
    source, sink = tmp_path / "in.txt", tmp_path / "out.txt"
    json_converter = "org.apache.kafka.connect.json.JsonConverter"
    place.connector(
        "source", "FileStreamSource", file=source, topic=topic, value__converter=json_converter
    )
    place.connector(
        "sink", "FileStreamSink", file=sink, topics=topic, value__converter=json_converter
    )
    place.connector(
        "plain",
        "FileStreamSink",
        file=tmp_path / "plain.txt",
        topics=plain,
        value__converter="json",
        value__converter__schemas__enable="false",
    )
    source.write_text('say "ä"\n')
    send(place.broker, plain, [b'{"a": [1, null]}', None])
    worker = place.process()
    launch(worker)
    until("the line", lambda: sink.exists() and sink.read_text() == 'say "ä"\n')
    (stored,) = values(place.broker, topic)
    assert json.loads(stored or b"") == {
        "schema": {"type": "string", "optional": False},
        "payload": 'say "ä"',
    }
    until("two", lambda: (tmp_path / "plain.txt").read_text() == '{"a": [1, null]}\nnull\n')
    # A value that is not JSON ends this task and no other; the error names its place.
    send(place.broker, plain, [b"{"])
    worker.wait_for(f"The message at offset 2 of {plain}-0 cannot be converted", DEADLINE_S)
    with source.open("a") as file:
        file.write("more\n")
    until("more", lambda: sink.read_text().endswith("more\n"))
    worker.stop()


def test_a_broker_that_is_away_for_a_while(
    place: Workplace, zookeeper: object, launch: Callable[[Process], None], tmp_path: Path
) -> None:
    if place.broker.kind == "original":
        pytest.skip("the worker is the same")
    own = Broker("ours", tmp_path / "broker", f"{place.broker.zookeeper}-{uuid.uuid4().hex[:6]}")
    launch(own)
    own.start()
    place = Workplace(tmp_path, own)
    topic = topic_of(own)
    source, sink = tmp_path / "in.txt", tmp_path / "out.txt"
    place.connector("source", "FileStreamSource", file=source, topic=topic)
    place.connector("sink", "FileStreamSink", file=sink, topics=topic)
    source.write_bytes(b"before\n")
    worker = place.process()
    launch(worker)
    until("one line", lambda: sink.exists() and sink.read_bytes() == b"before\n")
    own.kill()
    with source.open("ab") as file:
        file.write(b"meanwhile\n")
    time.sleep(2)
    own.start()
    until("both", lambda: sink.read_bytes() == b"before\nmeanwhile\n")
    worker.stop()
    assert values(own, topic) == [b"before", b"meanwhile"]


@pytest.mark.parametrize(
    ("worker", "connector", "text"),
    [
        ({}, {"connector__class": "NoSuch"}, "connector.class has value NoSuch"),
        ({}, {"connector__class": "os.path.join"}, "connector.class has value os.path.join"),
        ({}, {"file": None}, "Missing required property 'file'"),
        ({}, {"topic": None}, "Missing required property 'topic'"),
        ({}, {"name": None}, "Missing required property 'name'"),
        ({}, {"tasks__max": "many"}, "tasks.max has value many"),
        ({}, {"tasks__max": "0"}, "tasks.max has value 0"),
        ({}, {"batch__size": "-1"}, "batch.size has value -1"),
        ({}, {"value__converter": "Avro"}, "value.converter has value Avro"),
        (
            {"value__converter": "json", "value__converter__schemas__enable": "perhaps"},
            {},
            "value.converter.schemas.enable has value perhaps",
        ),
        ({"offset__flush__interval__ms": "soon"}, {}, "offset.flush.interval.ms has value soon"),
        ({"bootstrap__servers": "nowhere"}, {}, "bootstrap.servers has value nowhere"),
        ({"bootstrap__servers": f"127.0.0.1:{free_port()}"}, {}, "bootstrap.servers has value 127"),
        (
            {"offset__storage__file__filename": "/proc/no/file"},
            {},
            "offset.storage.file.filename has value /proc/no/file",
        ),
        ({}, {"topic": "no such topic"}, "topic has value no such topic"),
        ({}, {"file": "/"}, "file has value /"),
        (
            {},
            {"connector__class": "FileStreamSink", "file": "/no/such/place", "topics": "t"},
            "file has value /no/such/place",
        ),
        ({}, {"connector__class": "FileStreamSink"}, "topics has value ''"),
        (
            {},
            {"connector__class": "FileStreamSink", "topics__regex": "("},
            "topics.regex has value (",
        ),
    ],
)
def test_bad_input_is_named(
    place: Workplace,
    worker: dict[str, object],
    connector: dict[str, object],
    text: str,
    tmp_path: Path,
) -> None:
    if place.broker.kind == "original":
        pytest.skip("the worker is the same")
    given: dict[str, object] = {
        "name": "bad",
        "connector__class": "FileStreamSource",
        "file": tmp_path / "in.txt",
        "topic": "t",
        **connector,
    }
    place.change(**worker)
    values = {k.replace("__", "."): v for k, v in given.items() if v is not None}
    place.files.append(place.write("bad", values))
    (tmp_path / "in.txt").write_text("x\n")
    done = place.run()
    assert done.returncode == 1
    assert text in done.stdout + done.stderr


def test_two_workers_do_not_share_a_file_of_offsets(
    place: Workplace, launch: Callable[[Process], None], tmp_path: Path
) -> None:
    place.connector(
        "source", "FileStreamSource", file=tmp_path / "in", topic=topic_of(place.broker)
    )
    (tmp_path / "in").write_text("x\n")
    worker = place.process()
    launch(worker)
    until("offsets", (tmp_path / "connect.offsets").exists)
    done = place.run()
    assert done.returncode == 1
    assert "another worker uses it" in done.stderr
    worker.stop()


def test_usage() -> None:
    done = subprocess.run([str(SCRIPT)], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "connect-standalone.properties connector1.properties" in done.stdout

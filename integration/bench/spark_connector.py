"""``kafka08`` beside Spark's own Kafka connector: `make bench WHAT=spark_connector`.

Each runs on the PySpark and the broker that it is made for: ours on the installed PySpark and our
broker, the connector on PySpark 4.0.0 and Kafka 3.9.1 with ZooKeeper. Values of 100 bytes, two
partitions, local[2], alternating rounds. pip and Maven fetch the other side into a cache at the
first use. If a part is missing, the program names it and measures nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from integration import maven, modern
from integration.bench.table import Row, markdown
from integration.harness import (
    BROKER_LOG4J,
    HOME,
    Broker,
    Process,
    ZooKeeper,
    free_port,
    kill_everything,
    properties,
)
from integration.spark.support import missing
from integration.wire import Wire, wait_until
from kafka08.message.sets import encode_set

VERSION = "4.0.0"
ARTIFACT = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{VERSION}"
KINDS = ["kafka08", "connector"]
TOPICS = ("filled", "written")
SET_ROWS = 5000
VALUE_BYTES = 100
JOB = Path(__file__).with_name("spark_job.py")


def directory() -> Path:
    return Path.home() / ".cache" / "kafka08" / f"spark-connector-{VERSION}"


def jars() -> Path:
    return directory() / "jars"


def fetched() -> str:
    """Why the connector cannot run here; empty when it can."""
    reason = modern.missing()
    if reason:
        return reason
    try:
        if not (directory() / "venv").exists():
            venv.create(directory() / "venv.tmp", with_pip=True, clear=True)
            pip = [directory() / "venv.tmp" / "bin" / "python", "-m", "pip", "install", "-q"]
            subprocess.run([*pip, f"pyspark=={VERSION}"], check=True, stdout=sys.stderr)
            (directory() / "venv.tmp").rename(directory() / "venv")
    except (OSError, subprocess.CalledProcessError) as error:
        return f"PySpark {VERSION} was not fetched: {error}"
    return maven.fetch(ARTIFACT, jars())


def later_broker(directory_: Path, zookeeper: str) -> str:
    """Start Kafka 3.9.1 in ZooKeeper mode; its address."""
    port = free_port()
    directory_.mkdir(parents=True)
    (directory_ / "log4j.properties").write_text(BROKER_LOG4J)
    config = directory_ / "server.properties"
    values = {
        "broker.id": 0,
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "zookeeper.connect": zookeeper,
        "log.dirs": directory_ / "data",
        "num.partitions": 2,
    }
    config.write_text(properties(values))
    java = ["java", "-Xms1G", "-Xmx1G", f"-Dlog4j.configuration=file:{directory_}/log4j.properties"]
    java += ["-cp", f"{modern.directory()}/*", "kafka.Kafka", str(config)]
    Process("later broker", java, directory_).spawn()

    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait_until("a later release", 60, listens)
    return f"127.0.0.1:{port}"


def create_topics(zookeeper: ZooKeeper, chroot: str) -> None:
    client = zookeeper.client(chroot)
    try:
        for topic in TOPICS:
            for path, value in {
                f"/config/topics/{topic}": {"version": 1, "config": {}},
                f"/brokers/topics/{topic}": {"version": 1, "partitions": {"0": [0], "1": [0]}},
            }.items():
                client.create(path, json.dumps(value).encode(), makepath=True)
    finally:
        client.stop()
        client.close()


def fill(address: str, rows: int) -> None:
    data = encode_set([(None, os.urandom(VALUE_BYTES)) for _ in range(SET_ROWS)])
    with Wire(int(address.rpartition(":")[2])) as wire:
        for topic in TOPICS:
            wait_until(f"leaders of {topic}", 60, lambda: led(wire, topic))  # noqa: B023
        for number in range(rows // SET_ROWS):
            wire.produce("filled", number % 2, data)


def led(wire: Wire, topic: str) -> bool:
    try:
        return all(wire.leader(topic, partition) >= 0 for partition in (0, 1))
    except Exception:
        return False  # the broker was not told of the topic yet


def run(kind: str, address: str, rows: int, rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Case -> (rows a second, CPU seconds) of each round."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYSPARK"))}
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1"}
    command = [str(JOB), "kafka" if kind == "connector" else kind, address, str(rows), str(rounds)]
    if kind == "connector":
        command = [
            str(directory() / "venv" / "bin" / "python"),
            *command,
            ",".join(map(str, sorted(jars().glob("*.jar")))),
        ]
    else:
        command = [sys.executable, *command]
        environment["PYTHONPATH"] = str(HOME)
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, list[tuple[float, float]]] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--pairs", type=int, default=3, help="each Spark is started so often")
    parser.add_argument("--rounds", type=int, default=3, help="of each start")
    args = parser.parse_args(argv)
    reason = missing() or fetched()
    if reason:
        print(f"Not measured beside Spark's own connector: {reason}", file=sys.stderr)
        return 0
    scratch = Path(tempfile.mkdtemp(prefix="kafka08-bench-connector-"))
    rates: dict[str, dict[str, list[float]]] = {}
    seconds: dict[str, dict[str, list[float]]] = {}
    try:
        zookeeper = ZooKeeper(scratch / "zookeeper").start()
        ours = Broker("ours", scratch / "ours", f"{zookeeper.connect}/ours").start()
        addresses = dict(zip(KINDS, (ours.address, ""), strict=True))
        addresses["connector"] = later_broker(scratch / "later", f"{zookeeper.connect}/later")
        for kind, chroot in zip(KINDS, ("/ours", "/later"), strict=True):
            create_topics(zookeeper, chroot)
            fill(addresses[kind], args.rows)
        for _ in range(args.pairs):
            for kind in KINDS:
                for name, found in run(kind, addresses[kind], args.rows, args.rounds).items():
                    print(f"{kind} {name}: {found}", file=sys.stderr, flush=True)
                    for rate, cpu in found:
                        rates.setdefault(name, {}).setdefault(kind, []).append(rate / 1000)
                        seconds.setdefault(name, {}).setdefault(kind, []).append(cpu)
    finally:
        kill_everything()
        shutil.rmtree(scratch, ignore_errors=True)
    table = [Row(name, "k rows/s", True, values) for name, values in rates.items()]
    table += [Row(f"{name}, CPU", "s/M rows", False, values) for name, values in seconds.items()]
    print(markdown(table, KINDS))
    return 0


if __name__ == "__main__":
    sys.exit(main())

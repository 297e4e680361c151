"""Clients of 0.8 and of today on one topic: `python -m integration.quickstart_clients`.

Both write a message and read both. The client of later releases is kcat, if it is installed, beside
the console tools of this project with `api.versions.request`. Every command is echoed, what it
prints is compared, and nothing is left running or lying about. Uses copies of the configuration on
free ports.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from integration.quickstart import (
    Failed,
    Setup,
    Shell,
    _await_zookeeper,
    expect,
    heed_interrupts,
    private_copy,
)

TOPIC = "shared"
OLD, NEW, KCAT = "from a client of 0.8", "from a client of today", "from kcat"


def steps(shell: Shell, setup: Setup) -> None:
    """Failed at the first surprise."""
    zookeeper = f"{setup.host}:{setup.zookeeper_port}"
    brokers = f"{setup.host}:{setup.server_port}"
    shell.background("bin/zookeeper-server-start.sh", setup.zookeeper_config)
    _await_zookeeper(setup)
    broker = shell.background("bin/kafka-server-start.sh", setup.server_config)
    shell.wait_for(*broker, "started (kafka.server.KafkaServer)")
    create = ["bin/kafka-topics.sh", "--create", "--zookeeper", zookeeper, "--topic", TOPIC]
    created = shell.run(*create, "--partitions", "1", "--replication-factor", "1")
    expect(created, [f'Created topic "{TOPIC}".'])

    produce = ["bin/kafka-console-producer.sh", "--topic", TOPIC]
    print("# A client of 0.8 writes, then one that sends timestamps and headers.")
    shell.run(*produce, "--broker-list", brokers, stdin=f"{OLD}\n")
    headed = [*produce, "--bootstrap-server", brokers, "--property", "parse.headers=true"]
    shell.run(*headed, stdin=f"app:quickstart\t{NEW}\n")
    lines = [OLD, NEW]
    kcat = shutil.which("kcat") or shutil.which("kafkacat")
    if kcat:
        shell.run(kcat, "-P", "-b", brokers, "-t", TOPIC, "-H", "app=kcat", stdin=f"{KCAT}\n")
        lines.append(KCAT)

    print("# Each reads what the other wrote.")
    count = ["--from-beginning", "--max-messages", str(len(lines))]
    consume = ["bin/kafka-console-consumer.sh", "--topic", TOPIC, *count]
    expect(shell.run(*consume, "--zookeeper", zookeeper), lines)
    shown = ["--property", "print.timestamp=true", "--property", "print.headers=true"]
    found = shell.run(*consume, "--bootstrap-server", brokers, *shown)
    stamp = "CreateTime:<ms>"
    wanted = [f"NO_TIMESTAMP\tNO_HEADERS\t{OLD}", f"{stamp}\tapp:quickstart\t{NEW}"]
    wanted += [f"{stamp}\tapp:kcat\t{KCAT}"] if kcat else []
    expect([re.sub(r"^CreateTime:\d+", stamp, line) for line in found], wanted)
    if kcat:
        read = ["-C", "-q", "-e", "-o", "beginning", "-b", brokers, "-t", TOPIC]
        expect(shell.run(kcat, *read, "-f", "%s\\n"), lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m integration.quickstart_clients")
    here = Path(__file__).resolve().parent.parent
    parser.add_argument("--home", type=Path, default=here, help="the installation to try")
    home = parser.parse_args().home.resolve()
    heed_interrupts()
    with tempfile.TemporaryDirectory(prefix="kafka08-quickstart-") as name:
        directory = Path(name)
        shell = Shell(home, directory)
        try:
            steps(shell, private_copy(home, directory))
        except (Failed, subprocess.TimeoutExpired) as failed:
            print(f"FAILED: {failed}")
            return 1
        finally:
            shell.end()
    print("Clients of 0.8 and of today share a topic.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

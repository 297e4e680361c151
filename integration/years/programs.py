"""Clients of the years between 0.8 and today as programs, each version by itself.

Their sources are beside this module; versions are fixed. A program is made once, into a directory
below ~/.cache/kafka08 whose name has a digest of all it is made from. Knows nothing of pytest or
brokers.

A program is called with ACTION ADDRESS TOPIC and these arguments. It works on partition 0, finds
out which versions a broker serves if the client can, and prints lines:

- ``write CODECS COUNT``: for each codec ``COUNT`` messages with acks all, as ``sent`` has them.
- ``read COUNT``: the first messages, as ``Message.line`` is.
- ``ends``: the first offset and the next.
- ``offsets GROUP OFFSET``: commits the offset outside of any membership, prints what is committed.
- ``member GROUP COUNT``: joins the group alone, reads as ``read`` does, commits, leaves.
- ``admin``: creates the topic; its client may do more with it.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from integration import builds, cached
from integration.builds import MissingError
from integration.clients import Record

HERE = Path(__file__).parent
RUN_TIMEOUT_S = 180
FIRST_TIME = 1_600_000_000_000  # of sarama's messages, each 1 ms later
SNAPPY_AND_LZ4 = ("python-snappy==0.6.0", "lz4==3.1.10")
ALONE = ("write", "read", "ends", "offsets")
GROUPS = (*ALONE, "member")
ALL = (*GROUPS, "admin")


class Message(NamedTuple):
    offset: int
    key: str
    value: str

    def line(self) -> str:
        return f"{self.offset}\t{self.key}\t{self.value}"


def sent(codecs: Iterable[str], count: int) -> list[Message]:
    """The messages that ``write`` leaves in an empty partition."""
    return [
        Message(at * count + n, f"key {n}", f"{codec} {n}")
        for at, codec in enumerate(codecs)
        for n in range(count)
    ]


def records(messages: Iterable[Message]) -> list[Record]:
    return [Record(each.key.encode(), each.value.encode()) for each in messages]


class Client(NamedTuple):
    """A version of a client; ``env`` is what its program takes from the environment."""

    make: Callable[[], list[str]]  # the command, without arguments
    actions: tuple[str, ...]
    codecs: tuple[str, ...] = ("none", "gzip", "snappy")
    env: Mapping[str, str] = {}


def _made(name: str, files: Mapping[str, str], commands: list[list[str]]) -> Path:
    """A directory with the files in which the commands have run."""
    digest = hashlib.sha256(repr((sorted(files.items()), commands)).encode()).hexdigest()

    def fill(directory: Path) -> None:
        for file, text in files.items():
            (directory / file).write_text(text)
        for command in commands:
            builds.run(command, directory)

    return cached.once(builds.cache() / f"years-{name}-{digest[:12]}", fill)


def _go(source: str, module: str, version: str, *names: str) -> list[str]:
    builds.need("go")
    files = {
        f"{name}.go": (HERE / source / f"{name}.go").read_text().replace("MODULE", module)
        for name in ("main", *names)
    }
    files["go.mod"] = "module program\n\ngo 1.21\n"
    get = ["go", "get", f"{module}@{version}"]
    made = _made(f"{source}-{version}", files, [get, ["go", "build", "-o", "program"]])
    return [str(made / "program")]


def _node(source: str, package: str, version: str) -> list[str]:
    builds.need("node")
    builds.need("npm")
    files = {
        "client.js": (HERE / "node" / f"{source}.js").read_text(),
        "snappy.js": (HERE / "node" / "snappy.js").read_text(),
        "package.json": '{"name": "program", "version": "1.0.0"}\n',
    }
    install = ["npm", "install", "--no-audit", "--no-fund", "--omit=optional", "--loglevel=error"]
    packages = [f"{package}@{version}", "snappyjs@0.6.1"]
    adapt = ["node", "-e", "fs.mkdirSync('node_modules/snappy', {recursive: true}); "]
    adapt[-1] += "fs.copyFileSync('snappy.js', 'node_modules/snappy/index.js')"
    made = _made(f"{package}-{version}", files, [[*install, *packages], adapt])
    return ["node", str(made / "client.js")]


def _interpreter(version: str) -> str:
    """A Python of an older release: of pyenv, whose commands on PATH may name none, or on PATH."""
    others = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    found = str(others[-1]) if others else shutil.which(f"python{version}")
    if found is None:
        raise MissingError(f"no python{version} in ~/.pyenv or on PATH")
    return found


def _python(python: str, package: str, version: str, *needs: str) -> list[str]:
    environment = [_interpreter(python), "-m", "venv", "environment"]
    install = [str(Path("environment", "bin", "python")), "-m", "pip", "install", "-q"]
    install += ["--disable-pip-version-check", f"{package}=={version}", *needs]
    source = (HERE / "python_client.py").read_text()
    made = _made(f"{package}-{version}", {"client.py": source}, [environment, install])
    return [str(made / "environment" / "bin" / "python"), str(made / "client.py"), package]


def _sarama(version: str) -> Callable[[], list[str]]:
    numbers = tuple(map(int, version.split(".")))
    owner = "Shopify" if numbers < (1, 39) else "IBM"
    names = ["batches", "group"] if numbers >= (1, 20) else ["no_group"]
    module = f"github.com/{owner}/sarama"
    return functools.partial(_go, "sarama", module, f"v{version}", *names)


def _saramas() -> dict[str, Client]:
    """Each release with the versions of brokers that its users name."""
    made = {}
    for version in ("1.12.0", "1.15.0", "1.20.0", "1.30.1", "1.38.1", "1.44.0", "1.45.0", "1.45.1"):
        # Before, batches of format 2 number their records wrongly: Kafka and ours answer code 87.
        later = ["0.11", "1.0", "2.0"] if version >= "1.20" else []
        for broker in ("0.8.2.2", "0.9", "0.10", *later):
            old = broker in ("0.8.2.2", "0.9")
            codecs = ("none", "gzip", "snappy") if old else ("none", "gzip", "snappy", "lz4")
            actions = ALL if broker == "2.0" else GROUPS if broker in later[:2] else ALONE
            if version < "1.20":
                actions = ALONE
            name = f"sarama-{version}@{broker}"
            made[name] = Client(_sarama(version), actions, codecs, {"VERSION": broker})
    return made


def _with_lz4(make: Callable[[], list[str]], actions: tuple[str, ...]) -> Client:
    return Client(make, actions, ("none", "gzip", "snappy", "lz4"))


_part = functools.partial
_OPTIOPAY = "github.com/optiopay/kafka"
# A commit outside of a membership goes to ZooKeeper, and is read from Kafka, in kafka-node 4 on.
_KAFKA_NODE = tuple(action for action in ALL if action != "offsets")
CLIENTS: dict[str, Client] = {
    "optiopay-1.5.0": Client(_part(_go, "optiopay", _OPTIOPAY, "v1.5.0"), ALONE),
    "optiopay-2.1.1": Client(_part(_go, "optiopay", f"{_OPTIOPAY}/v2", "v2.1.1"), ALONE),
    **_saramas(),
    "kafka-node-2.6.1": Client(_part(_node, "kafka_node", "kafka-node", "2.6.1"), GROUPS),
    "kafka-node-4.1.3": Client(_part(_node, "kafka_node", "kafka-node", "4.1.3"), _KAFKA_NODE),
    "kafka-node-5.0.0": Client(_part(_node, "kafka_node", "kafka-node", "5.0.0"), _KAFKA_NODE),
    "no-kafka-3.4.3": Client(_part(_node, "no_kafka", "no-kafka", "3.4.3"), GROUPS),
    "kafkajs-1.4.6": Client(
        _part(_node, "kafkajs", "kafkajs", "1.4.6"), tuple(each for each in ALL if each != "ends")
    ),
    **{
        f"kafkajs-{version}": Client(_part(_node, "kafkajs", "kafkajs", version), ALL)
        for version in ("1.9.3", "1.12.0", "1.16.0")
    },
    "kafka-python-1.3.5": _with_lz4(
        _part(_python, "3.6", "kafka-python", "1.3.5", *SNAPPY_AND_LZ4), GROUPS
    ),
    "kafka-python-1.4.7": _with_lz4(
        _part(_python, "3.6", "kafka-python", "1.4.7", *SNAPPY_AND_LZ4), ALL
    ),
    "kafka-python-2.0.2": _with_lz4(
        _part(_python, "3.6", "kafka-python", "2.0.2", *SNAPPY_AND_LZ4), ALL
    ),
    "pykafka-2.5.0": Client(_part(_python, "3.6", "pykafka", "2.5.0", SNAPPY_AND_LZ4[0]), GROUPS),
    "pykafka-2.8.0": Client(_part(_python, "3.6", "pykafka", "2.8.0", SNAPPY_AND_LZ4[0]), GROUPS),
    **{
        f"aiokafka-{version}": _with_lz4(
            _part(_python, "3.6", "aiokafka", version, f"kafka-python=={base}", *SNAPPY_AND_LZ4),
            GROUPS,
        )
        for version, base in (("0.5.2", "1.4.6"), ("0.6.0", "2.0.2"), ("0.7.2", "2.0.2"))
    },
}


@functools.cache
def _command(name: str) -> list[str] | MissingError:
    return builds.attempted(CLIENTS[name].make)


def missing(name: str) -> str:
    """Why a client cannot run here; empty when it can. Makes its program."""
    found = _command(name)
    return f"{name}: {found}" if isinstance(found, MissingError) else ""


def run(name: str, action: str, address: str, topic: str, *args: object) -> list[str]:
    """The lines that an action prints. AssertionError if it fails, MissingError if it cannot run.

    TimeoutExpired if it does not end.
    """
    found = _command(name)
    if isinstance(found, MissingError):
        raise found
    done = subprocess.run(
        [*found, action, address, topic, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **CLIENTS[name].env},
    )
    assert done.returncode == 0, f"{name} {action} {args}: {(done.stdout + done.stderr)[-3000:]}"
    return done.stdout.splitlines()


if __name__ == "__main__":
    for each in CLIENTS:
        print(missing(each) or each, file=sys.stderr)

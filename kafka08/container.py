"""The first process of a container: ``kafka08-container ROLE``, for each of ``ROLES``.

Writes the server's file and becomes its start script. Settings come from the environment:
KAFKA_LOG_RETENTION_HOURS is ``log.retention.hours``. They follow those of the shipped file, or of
the file that is the second word. A mirror has a file for each end, and its options in the
environment too. ``kafka08-container health`` says whether that server can be used. Any other word
is a command, as ``kafka-topics``.
"""

from __future__ import annotations

import http.client
import os
import re
import socket
import sys
import tempfile
from collections.abc import Callable, Container, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from kafka08 import commands
from kafka08.errors import ConfigError
from kafka08.settings import properties

DATA = "/var/lib/kafka08"
# The files that are made at each start.
DIRECTORY = Path(tempfile.gettempdir(), "kafka08")
TIMEOUT_S = 4.0

_LOG4J = """\
log4j.rootLogger=INFO, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


class File(NamedTuple):
    """A file of settings, and the prefix of its variables. ``settings`` are those of a container
    that the shipped file has in another way, or not at all."""

    name: str
    prefix: str
    settings: dict[str, str]


class Role(NamedTuple):
    script: str
    file: File


MIRROR = "mirror"
ROLES = {
    "broker": Role(
        "kafka-server-start.sh",
        File("server.properties", "KAFKA_", {"log.dirs": f"{DATA}/kafka", "http.port": "8080"}),
    ),
    "zookeeper": Role(
        "zookeeper-server-start.sh",
        File("zookeeper.properties", "ZOOKEEPER_", {"dataDir": f"{DATA}/zookeeper"}),
    ),
    "console": Role(
        "kafka-console-start.sh",
        File("kafka-console.properties", "KAFKA_", {"http.host": "0.0.0.0"}),
    ),
    "rest": Role(
        "kafka-rest-start.sh",
        File("kafka-rest.properties", "KAFKA_", {"listeners": "http://0.0.0.0:8082"}),
    ),
    # Its file has the options of the command.
    MIRROR: Role(
        "kafka-mirror-maker.sh", File("mirror.properties", "MIRROR_", {"metrics.port": "8080"})
    ),
}
# The ends of a mirror. No shipped file is one: where to copy from, and where to, is always told.
SOURCE = File("consumer.properties", "CONSUMER_", {})
TARGET = File("producer.properties", "PRODUCER_", {})
# Options of a mirror without a value.
FLAGS = ("modern.producer", "new.consumer", "new.producer")

# Variables that the scripts or images of others know, and that set nothing of a server.
_NO_SETTINGS = re.compile(
    r"KAFKA_((\w+_)?OPTS|HOME|VERSION|DEBUG|CLASSPATH)|ZOOKEEPER_(HOME|MY_ID)"
)
_MARKS = {"_": ".", "__": "-", "___": "_"}
# Of ZooKeeper's settings, the first words that a dot follows.
_DOTTED = ("autopurge", "server")
ORDINAL = "ordinal"


class ContainerError(Exception):
    """Why there is nothing to start; one line."""


def setting_name(variable: str) -> str:
    """KAFKA_LOG_DIRS is ``log.dirs``, ZOOKEEPER_TICK_TIME is ``tickTime``. In all but those of
    ZOOKEEPER, two underscores are a hyphen and three are one. Raises ContainerError."""
    prefix, _, rest = variable.partition("_")
    if not rest or rest.strip("_") != rest or "____" in rest:
        raise ContainerError(f"{variable} does not name a setting")
    if prefix != "ZOOKEEPER":
        return re.sub("_+", lambda found: _MARKS[found[0]], rest.lower())
    first, *others = rest.lower().split("_")
    if first in _DOTTED and others:
        first = f"{first}.{others.pop(0)}"
    return first + "".join(word.capitalize() for word in others)


def settings(
    file: File, environ: Mapping[str, str], host: str, given: Container[str] = ()
) -> dict[str, str]:
    """The container's own but for those that the user's file has (``given``), and the
    environment's, which win. Raises ContainerError."""
    found = {key: value for key, value in file.settings.items() if key not in given}
    for variable, value in sorted(environ.items()):
        if variable.startswith(file.prefix) and not _NO_SETTINGS.fullmatch(variable):
            found[setting_name(variable)] = value
    if found.get("broker.id") == ORDINAL:
        number = re.search(r"-(\d+)$", host.split(".")[0])
        if number is None:
            raise ContainerError(
                f"KAFKA_BROKER_ID is {ORDINAL}, but host {host} has no number at its end"
            )
        found["broker.id"] = number[1]
    return found


def line(key: str, value: str) -> str:
    """A line of a properties file, for readers in Python and Java."""
    units = value.encode("utf-16-be", "surrogatepass")
    codes = [units[i] << 8 | units[i + 1] for i in range(0, len(units), 2)]
    plain = [chr(code) if 32 <= code < 127 else f"\\u{code:04x}" for code in codes]
    text = "".join("\\\\" if word == "\\" else word for word in plain)
    blank = "\\" if text.startswith(" ") else ""  # otherwise it belongs to the separator
    return f"{key}={blank}{text}\n"


def prepare(words: list[str], environ: Mapping[str, str], host: str, directory: Path) -> list[str]:
    """The command of a role, whose files are made. Raises ContainerError, ConfigError and
    OSError."""
    role = ROLES[words[0]]
    directory.mkdir(parents=True, exist_ok=True)
    for file in (SOURCE, TARGET, *(each.file for each in ROLES.values())):
        (directory / file.name).unlink(missing_ok=True)
    (directory / "log4j.properties").write_text(_LOG4J)
    script = os.path.join(commands.HOME, "bin", role.script)
    if words[0] == MIRROR:
        return [script, *_mirror(words[1:], environ, host, directory)]
    path = directory / role.file.name
    mounted = len(words) > 1
    base = Path(words[1]) if mounted else Path(commands.HOME, "config", role.file.name)
    given = properties.load(base) if mounted else {}
    _write(path, base, settings(role.file, environ, host, given))
    number = environ.get("ZOOKEEPER_MY_ID")
    if role.file.prefix == "ZOOKEEPER_" and number:
        data = Path(properties.load(path)["dataDir"])
        data.mkdir(parents=True, exist_ok=True)
        (data / "myid").write_text(f"{number}\n")
    return [script, str(path)]


def _write(path: Path, base: Path | None, found: Mapping[str, str]) -> None:
    """The text of ``base`` with settings after it, which win."""
    text = "" if base is None else base.read_text(encoding="latin-1") + "\n"
    path.write_text(text + "".join(line(*item) for item in found.items()), encoding="latin-1")


def _mirror(bases: list[str], environ: Mapping[str, str], host: str, directory: Path) -> list[str]:
    """The options of a mirror, whose files are made: its ends, and one for ``health``."""
    if len(bases) not in (0, 2):
        raise ContainerError("mirror takes two files: the consumer's and the producer's")
    options = settings(ROLES[MIRROR].file, environ, host)
    words = [word for name in FLAGS for word in _flag(name, options.pop(name, "false"))]
    if bool(options.get("whitelist")) == bool(options.get("blacklist")):
        raise ContainerError("set one of MIRROR_WHITELIST and MIRROR_BLACKLIST")
    source = "bootstrap.servers" if "--new.consumer" in words else "zookeeper.connect"
    is_old = not {"--new.producer", "--modern.producer"} & set(words)
    target = "metadata.broker.list" if is_old else "bootstrap.servers"
    for file, base, needed in zip(
        (SOURCE, TARGET), bases or (None, None), ((source, "group.id"), (target,)), strict=True
    ):
        path = directory / file.name
        _write(path, Path(base) if base else None, settings(file, environ, host))
        found = properties.load(path)
        for key in needed:
            if not found.get(key):
                variable = file.prefix + key.replace(".", "_").upper()
                raise ContainerError(f"{variable} is missing, or {key} in a file")
        words += [f"--{file.name.partition('.')[0]}.config", str(path)]
    _write(directory / ROLES[MIRROR].file.name, None, options)
    for name, value in options.items():
        words += [f"--{name}", value] if value else []
    return words


def _flag(name: str, value: str) -> list[str]:
    if value not in ("true", "false"):
        raise ContainerError(f"MIRROR_{name.replace('.', '_').upper()} is not true or false")
    return [f"--{name}"] if value == "true" else []


def variables(environ: Mapping[str, str], directory: Path) -> dict[str, str]:
    """The environment of a script. All output is the container's: no log file is rotated."""
    log4j = f"-Dlog4j.configuration=file:{directory / 'log4j.properties'}"
    defaults = {"LOG_DIR": str(directory), "KAFKA_LOG4J_OPTS": log4j}
    return {**defaults, **environ, commands.PYTHON: sys.executable}


def health(directory: Path) -> str:
    """Empty if the server of this container can be used; otherwise the reason in one line."""
    try:
        for name, role in ROLES.items():
            if (directory / role.file.name).exists():
                return _ASK.get(name, _ask_http)(properties.load(directory / role.file.name))
    except (OSError, http.client.HTTPException, ConfigError) as error:
        return str(error)
    return f"no server was started: {directory} has no file of one"


def _ask_zookeeper(found: Mapping[str, str]) -> str:
    host = found.get("clientPortAddress", "127.0.0.1")
    with socket.create_connection((host, int(found["clientPort"])), TIMEOUT_S) as connection:
        connection.sendall(b"ruok")
        answer = connection.recv(16)
    return "" if answer == b"imok" else f"ZooKeeper answered {answer!r} to ruok"


def _ask_http(found: Mapping[str, str]) -> str:
    status, text = _get(found.get("http.host", ""), found["http.port"], "/health/ready")
    return "" if status == 200 else f"{status}: {text}"


def _ask_rest(found: Mapping[str, str]) -> str:
    """The brokers, which the proxy reads from ZooKeeper. 401: it asks for a login first."""
    for listener in found["listeners"].split(","):
        parts = urlsplit(listener.strip())
        if parts.scheme == "http":
            status, text = _get(parts.hostname or "", str(parts.port), "/brokers")
            return "" if status in (200, 401) else f"{status}: {text}"
    return f"no listener is http: {found['listeners']}"


def _ask_mirror(found: Mapping[str, str]) -> str:
    status, text = _get("", found["metrics.port"], "/metrics")
    return "" if status == 200 else f"{status}: {text}"


def _get(host: str, port: str, path: str) -> tuple[int, str]:
    """Status and text of a page on this machine. Raises OSError and HTTPException."""
    host = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host
    connection = http.client.HTTPConnection(host, int(port), timeout=TIMEOUT_S)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read(1000).decode(errors="replace").strip()
    finally:
        connection.close()


# The others have a page of health.
_ASK: Mapping[str, Callable[[Mapping[str, str]], str]] = {
    "zookeeper": _ask_zookeeper,
    "rest": _ask_rest,
    MIRROR: _ask_mirror,
}


def main() -> int:
    words = sys.argv[1:]
    if not words or words[0] in ("-h", "--help"):
        roles = "|".join(name for name in ROLES if name != MIRROR)
        mirror = f"{MIRROR} [consumer.properties producer.properties]"
        print(f"USAGE: kafka08-container {roles} [file] | {mirror} | health | command [opts]")
        return 0 if words else 1
    if words == ["health"]:
        reason = health(DIRECTORY)
        print(reason or "ready")
        return 1 if reason else 0
    try:
        if words[0] in ROLES:
            words = prepare(words, os.environ, socket.gethostname(), DIRECTORY)
        os.execvpe(words[0], words, variables(os.environ, DIRECTORY))
    except (ContainerError, ConfigError) as error:
        print(error, file=sys.stderr)
    except OSError as error:
        name = error.filename if isinstance(error.filename, str) else words[0]
        print(f"{name}: {error.strerror}", file=sys.stderr)
    return 1

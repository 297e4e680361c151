"""The first process of a container: ``kafka08-container broker``, ``zookeeper`` or ``console``.

Writes the server's file and becomes its start script. Settings come from the environment:
KAFKA_LOG_RETENTION_HOURS is ``log.retention.hours``. They follow those of the shipped file, or of
the file that is the second word. ``kafka08-container health`` says whether that server can be
used. Any other word is a command, as ``kafka-topics``.
"""

from __future__ import annotations

import http.client
import os
import re
import socket
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

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


class Role(NamedTuple):
    """``settings`` are those of a container that the shipped ``file`` has in another way."""

    script: str
    file: str
    prefix: str
    settings: dict[str, str]


ROLES = {
    "broker": Role(
        "kafka-server-start.sh",
        "server.properties",
        "KAFKA_",
        {"log.dirs": f"{DATA}/kafka", "http.port": "8080"},
    ),
    "zookeeper": Role(
        "zookeeper-server-start.sh",
        "zookeeper.properties",
        "ZOOKEEPER_",
        {"dataDir": f"{DATA}/zookeeper"},
    ),
    "console": Role(
        "kafka-console-start.sh",
        "kafka-console.properties",
        "KAFKA_",
        {"http.host": "0.0.0.0"},
    ),
}

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
    """KAFKA_LOG_DIRS is ``log.dirs``, ZOOKEEPER_TICK_TIME is ``tickTime``. In those of KAFKA, two
    underscores are a hyphen and three are one. Raises ContainerError."""
    prefix, _, rest = variable.partition("_")
    if not rest or rest.strip("_") != rest or "____" in rest:
        raise ContainerError(f"{variable} does not name a setting")
    if prefix == "KAFKA":
        return re.sub("_+", lambda found: _MARKS[found[0]], rest.lower())
    first, *others = rest.lower().split("_")
    if first in _DOTTED and others:
        first = f"{first}.{others.pop(0)}"
    return first + "".join(word.capitalize() for word in others)


def settings(role: Role, environ: Mapping[str, str], host: str) -> dict[str, str]:
    """The role's own and the environment's, which win. Raises ContainerError."""
    found = dict(role.settings)
    for variable, value in sorted(environ.items()):
        if variable.startswith(role.prefix) and not _NO_SETTINGS.fullmatch(variable):
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
    """The command of a role, whose files are made. Raises ContainerError and OSError."""
    role = ROLES[words[0]]
    base = Path(words[1]) if len(words) > 1 else Path(commands.HOME, "config", role.file)
    found = settings(role, environ, host)
    text = base.read_text(encoding="latin-1") + "\n"
    directory.mkdir(parents=True, exist_ok=True)
    for other in ROLES.values():
        (directory / other.file).unlink(missing_ok=True)
    file = directory / role.file
    file.write_text(text + "".join(line(*item) for item in found.items()), encoding="latin-1")
    (directory / "log4j.properties").write_text(_LOG4J)
    number = environ.get("ZOOKEEPER_MY_ID")
    if role.prefix == "ZOOKEEPER_" and number:
        data = Path(properties.load(file)["dataDir"])
        data.mkdir(parents=True, exist_ok=True)
        (data / "myid").write_text(f"{number}\n")
    return [os.path.join(commands.HOME, "bin", role.script), str(file)]


def variables(environ: Mapping[str, str], directory: Path) -> dict[str, str]:
    """The environment of a script. All output is the container's: no log file is rotated."""
    log4j = f"-Dlog4j.configuration=file:{directory / 'log4j.properties'}"
    defaults = {"LOG_DIR": str(directory), "KAFKA_LOG4J_OPTS": log4j}
    return {**defaults, **environ, commands.PYTHON: sys.executable}


def health(directory: Path) -> str:
    """Empty if the server of this container can be used; otherwise the reason in one line."""
    try:
        for role in ROLES.values():
            if (directory / role.file).exists():
                found = properties.load(directory / role.file)
                ask = _ask_zookeeper if role.prefix == "ZOOKEEPER_" else _ask_http
                return ask(found)
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
    host = found.get("http.host", "127.0.0.1")
    host = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host
    connection = http.client.HTTPConnection(host, int(found["http.port"]), timeout=TIMEOUT_S)
    try:
        connection.request("GET", "/health/ready")
        answer = connection.getresponse()
        text = answer.read(1000).decode(errors="replace").strip()
    finally:
        connection.close()
    return "" if answer.status == 200 else f"{answer.status}: {text}"


def main() -> int:
    words = sys.argv[1:]
    if not words or words[0] in ("-h", "--help"):
        print("USAGE: kafka08-container broker|zookeeper|console [file] | health | command [opts]")
        return 0 if words else 1
    if words == ["health"]:
        reason = health(DIRECTORY)
        print(reason or "ready")
        return 1 if reason else 0
    try:
        if words[0] in ROLES:
            words = prepare(words, os.environ, socket.gethostname(), DIRECTORY)
        os.execvpe(words[0], words, variables(os.environ, DIRECTORY))
    except ContainerError as error:
        print(error, file=sys.stderr)
    except OSError as error:
        name = error.filename if isinstance(error.filename, str) else words[0]
        print(f"{name}: {error.strerror}", file=sys.stderr)
    return 1

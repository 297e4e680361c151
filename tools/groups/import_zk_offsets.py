"""ImportZkOffsets: the offsets of a file, into ZooKeeper.

Mirrors kafka.tools.ImportZkOffsets. The file is one of ExportZkOffsets: node, colon, offset; the
first empty line ends it. A node that cannot be written is reported on stderr, the others still are.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping

from kafka08.admin import InvalidArgumentError
from kafka08.errors import KafkaError
from tools import admin_command
from tools.options import OptionParser
from zk.client import ZkClient

logger = logging.getLogger("kafka.tools.ImportZkOffsets$")


class NoOffsetError(KafkaError):
    """A line without a colon and something behind it."""

    java_class = "java.lang.ArrayIndexOutOfBoundsException"


PARSER = OptionParser(
    "Import offsets to zookeeper from files.",
    """
--zkconnect <>  ZooKeeper connect string. (default: localhost:2181)
--input-file <>  Input file
--help  Print this message.
""",
    later=admin_command.ZK_TLS_CONFIG_FILE,
)


def main(argv: list[str]) -> int:
    args = PARSER.parse_command(argv, "input-file")
    with admin_command.session(args, "zkconnect") as client:
        with open(args.value("input-file"), encoding="utf-8") as file:
            offsets = parse(file)
        store(client, offsets)
    return 0


def parse(lines: Iterable[str]) -> dict[str, str]:
    """Node -> offset, as text. Raises NoOffsetError; nothing has been written then."""
    offsets = {}
    for line in lines:
        text = line.rstrip("\r\n")
        if not text:
            break
        pieces = text.rstrip(":").split(":")
        if len(pieces) < 2:
            raise NoOffsetError(f"no offset in the line {text!r}")
        offsets[pieces[0]] = pieces[1]
        logger.debug("adding node path [%s]", text)
    return offsets


def store(client: ZkClient, offsets: Mapping[str, str]) -> None:
    """Write each node, its parents too; what fails goes to stderr."""
    for path, offset in offsets.items():
        logger.debug("updating [%s] with offset [%s]", path, offset)
        try:
            if not path.startswith("/"):  # the client would take it for a path from the root
                raise InvalidArgumentError("Path must start with / character")
            client.create_or_set(path, offset.encode())
        except (KafkaError, ValueError) as error:
            print(admin_command.stack_trace(error), end="", file=sys.stderr)

"""Makes a line of the users' file of the console or the REST proxy.

The password is read without echo, or from standard input.
"""

from __future__ import annotations

import getpass
import sys

from kafka08.errors import ConfigError
from kafka08.security.users import ROLES, line_for

USAGE = f"USAGE: kafka-run-class.sh kafka.console.ConsolePassword name {'|'.join(ROLES)}"


def main(argv: list[str]) -> int:
    """Prints the line; 1 if it cannot be made."""
    if len(argv) != 2:
        print(USAGE, file=sys.stderr)
        return 1
    password = getpass.getpass() if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    try:
        print(line_for(argv[0], argv[1], password))
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 1
    return 0

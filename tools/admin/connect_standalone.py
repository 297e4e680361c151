"""connect-standalone: runs connectors in one process (o.a.k.connect.cli.ConnectStandalone).

Ends by a signal, or with status 1 when settings are wrong or no task is left.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kafka08.connect.worker import Worker
from kafka08.errors import ConfigError
from kafka08.settings import properties
from tools.shutdown import at_end

USAGE = (
    "Usage: ConnectStandalone worker.properties [connector1.properties connector2.properties ...]"
)


def main(argv: list[str]) -> int:
    if len(argv) < 2:
        print(USAGE)
        return 1
    sys.path.append(str(Path.cwd()))  # where a connector of the user's may be
    with _naming(argv[0]):
        worker = Worker(properties.load(argv[0]))
    for path in argv[1:]:
        with _naming(path):
            worker.add(properties.load(path))
    with at_end(worker.stop):
        worker.start().wait()
    errors = worker.errors()
    for name, error in errors.items():
        print(f"Task {name} failed: {error}", file=sys.stderr)
    return 1 if errors else 0


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """A setting that is wrong is reported with its file."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None

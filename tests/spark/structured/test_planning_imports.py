"""A process that plans a streaming query imports little: a driver may have a hundred of them."""

from __future__ import annotations

import json
import subprocess
import sys

PROGRAM = """
import json, sys
from kafka08.spark.datasource import Kafka08DataSource
options = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}
source = Kafka08DataSource({**options, "fetchOffset.numRetries": "0"})
reader = source.streamReader(source.schema())
try:
    reader.initialOffset()
except OSError:
    pass  # nobody listens
print(json.dumps(sorted(sys.modules)))
"""


def test_what_only_reads_or_writes_messages_is_not_imported_to_plan() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    found = set(json.loads(done.stdout))
    assert "kafka08.spark.structured.source_plan" in found
    for name in (
        "pyarrow.compute",
        "kafka08.producer",
        "kafka08.spark.structured.columns",
        "kazoo",
    ):
        assert name not in found, name
    assert not {name for name in found if name.startswith("gevent")}

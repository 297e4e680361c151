"""DStreams, RDDs, bulk copies, source and sink on each release of PySpark that is served.

Each release has an environment of its own, with the modules of this checkout.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from integration import builds
from integration.harness import HOME, Broker
from integration.spark import environments
from integration.spark.scene import committed, new_topic
from integration.spark.support import missing, produce

if missing():
    pytest.skip(missing(), allow_module_level=True)

from integration.spark.jobs.versions import LINES

pytestmark = pytest.mark.slow

JOB = Path(__file__).parent / "jobs" / "versions.py"
TIMEOUT_S = 900
ROWS = [[number, offset, line] for number in (0, 1) for offset, line in enumerate(LINES[number])]
VALUES = sorted(value for _, _, value in ROWS)
BUCKETS = ["2014-07-01-10", "2014-07-01-11"]
EXPORTED = {"count": 4, "rows": ROWS, "buckets": BUCKETS}
WORDS = {"to": 2, "be": 2, LINES[0][1]: 1, LINES[1][1]: 1}
NEEDS_40 = 'format("kafka08") needs Spark 4.0 or later, and this is {}'
NEEDS_42 = "maxOffsetsPerTrigger has value 2, which needs Spark 4.2 or later"


@pytest.mark.parametrize("version", environments.VERSIONS)
def test_a_release(version: str, broker: Broker, tmp_path: Path) -> None:
    topics = [new_topic(broker, 2) for _ in range(3)]
    for partition, lines in enumerate(LINES):
        produce(broker, topics[0], partition, [(None, line.encode()) for line in lines])
    group = f"group-{version}"
    found = run(version, broker.address, broker.zookeeper, group, ",".join(topics), str(tmp_path))
    assert found.pop("version") == version
    structured = found.pop("structured")
    assert found == {
        "rdd": {"values": [LINES[0][1], LINES[1][0]], "ranges": [[1, 2], [0, 1]]},
        "group": VALUES,
        "direct": WORDS,
        "recovered": {**WORDS, "or": 1, "not": 1},
        "bulk": {"parquet": EXPORTED, "json": EXPORTED, "loaded": 4},
    }
    assert committed(broker, group, topics[0]) == {0: 2, 1: 2}
    if version < "4":
        assert NEEDS_40.format(version) in structured
        return
    limited = structured.pop("limited")
    old = version < "4.2"
    more = [*ROWS, [1, 2, "more"]]
    # A batch that was not committed copies its row again.
    again = [*more, [1, 3, "more"]]
    late = [*again, [1, 4, "late"]]
    later = [*late, [1, 5, "late"], [1, 6, "later"]]
    assert structured == {
        "batch": ROWS,
        "times": True,
        "copied": [ROWS, more, more],
        "batches": 2,
        "killed": [again if old else late, late],
        "wrapped": [later, later],
    }
    if old:
        assert NEEDS_42 in limited
    else:
        assert sum(limited) == 7
        assert max(limited) < 7


def run(version: str, *arguments: str) -> dict[str, Any]:
    """The results of the job. Skips if there is no such PySpark."""
    try:
        python = environments.interpreter(version)
    except builds.MissingError as error:
        pytest.skip(f"PySpark {version}: {error}")
    done = subprocess.run(
        [python, str(JOB), *arguments],
        env={**os.environ, "PYTHONPATH": str(HOME)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found

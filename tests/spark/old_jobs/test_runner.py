from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafka08.spark.old_jobs import runner

ROOT = Path(__file__).parents[3]
TELLS = """\
import json, pickle, sys
from beside import VALUE
import __main__

class Mine:
    pass

names = sorted(name for name in vars(__main__) if name.startswith("__"))
assert __main__.Mine is Mine and isinstance(pickle.loads(pickle.dumps(Mine())), Mine)
print(json.dumps([sys.argv, sys.path[0], __name__, __file__, VALUE, names]))
"""


def run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A link, as Python's path has the directory of the file itself."""
    directory = tmp_path / "jobs"
    directory.mkdir()
    (directory / "beside.py").write_text("VALUE = 7\n")
    (directory / "job.py").write_text(TELLS)
    link = tmp_path / "link.py"
    link.symlink_to(directory / "job.py")
    return link


def test_a_job_finds_what_python_gives_it(job: Path) -> None:
    plain, ours = run(job, "a", "b c"), run(runner.__file__, job, "a", "b c")
    assert ours.stderr == plain.stderr == ""
    assert json.loads(ours.stdout)[:5] == json.loads(plain.stdout)[:5]
    assert {"__file__", "__loader__", "__spec__", "__builtins__"} <= set(json.loads(ours.stdout)[5])
    assert not (job.parent / "jobs" / "__pycache__" / "job.cpython-311.pyc").exists()


def test_the_old_name_and_not_our_own_modules(job: Path) -> None:
    job.write_text(
        "from pyspark.streaming.kafka import KafkaUtils, OffsetRange\n"
        "print(OffsetRange('t', 0, 1, 2))\n"
        "try:\n    import receiver\nexcept ImportError:\n    print('no receiver')\n"
    )
    done = run("-W", "ignore", runner.__file__, job)
    assert done.stdout == "OffsetRange(topic: t, partition: 0, range: [1 -> 2])\nno receiver\n"


@pytest.mark.parametrize(
    ("source", "status", "texts"),
    [
        ("import sys\nsys.exit(7)\n", 7, []),
        ("import os\nos._exit(3)\n", 3, []),
        ("def f():\n    1 / 0\n\nf()\n", 1, ["link.py", "line 4, in <module>", "line 2, in f"]),
        ("x = 1\nprint x\n", 1, ["link.py", "line 2", "--check", "SyntaxError"]),
        ("import broken\n", 1, ["broken.py", "SyntaxError"]),
    ],
)
def test_how_a_job_ends(job: Path, source: str, status: int, texts: list[str]) -> None:
    (job.parent / "jobs" / "broken.py").write_text("print x\n")
    job.write_text(source)
    done = run(runner.__file__, job)
    assert done.returncode == status
    assert [text for text in texts if text not in done.stderr] == []
    assert ("--check" in done.stderr) == ("--check" in texts)


def test_the_job_stays_the_main_module(job: Path) -> None:
    """Threads may outlive the last line of a job, and Spark calls its functions from them."""
    job.write_text(
        "import sys, threading\nVALUE = 7\n"
        "def late():\n"
        "    threading.main_thread().join()\n"
        "    print(sys.modules['__main__'].VALUE, VALUE)\n"
        "threading.Thread(target=late).start()\n"
    )
    assert run(runner.__file__, job).stdout == "7 7\n"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no safe path")
def test_a_safe_path_stays_safe(job: Path) -> None:
    job.write_text("import sys\nprint(sys.path[0])\n")
    done = run("-P", runner.__file__, job)
    assert done.stdout.strip() not in ("", str(job.parent / "jobs"))

"""Old jobs that are not changed: ``kafka08-spark-submit`` on the real spark-submit, and notebooks.

The judge is Spark 2.4.8, whose own Kafka examples run here as they are.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration import cached
from integration.guides import steps
from integration.harness import HOME, Broker, Process
from integration.spark.scene import DEADLINE_S, new_topic, text_of
from integration.spark.submissions import BARE, PROGRAM, submission, texts
from integration.spark.support import missing, produce
from integration.wire import wait_until

if missing():
    pytest.skip(missing(), allow_module_level=True)

OLD = "from pyspark.streaming.kafka import"
NEW = "from kafka08.spark.dstream import"


@pytest.fixture
def launch() -> Iterator[Callable[[Process], Process]]:
    started: list[Process] = []

    def start(process: Process) -> Process:
        process.spawn()
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()


def said(job: Process, word: str) -> list[str]:
    return [line for line in job.log.splitlines() if line.startswith(f"{word} ")]


@pytest.mark.parametrize(
    ("master", "python"),
    [
        ("local[2]", None),
        ("local[2]", BARE),
        ("local-cluster[2,1,1024]", BARE),
    ],
    ids=["local", "local-bare", "local-cluster-bare"],
)
def test_the_import_may_be_anywhere(
    broker: Broker,
    tmp_path: Path,
    launch: Callable[[Process], Process],
    master: str,
    python: Path | None,
) -> None:
    """In the job, in a function on an executor, and in a file of --py-files. A bare Python gets
    all from the zip. The old package is not looked for, so that there is no need of a network."""
    topic = new_topic(broker)
    produce(broker, topic, 0, [(None, b"v%d" % number) for number in range(4)])
    job = texts(tmp_path / "jobs", "old_imports")
    texts(tmp_path / "files", "old_helper")
    submitted = launch(
        submission(
            tmp_path / "out",
            job,
            broker.address,
            topic,
            master=master,
            python=python,
            py_files=tmp_path / "files" / "old_helper.py",
            packages="org.apache.spark:spark-streaming-kafka-0-8_2.11:2.4.8",
        )
    )
    assert submitted.exit_code(DEADLINE_S) == 7, submitted.log[-4000:]
    names = ["kafka08.spark.values", "OffsetRange", "Helper"]
    assert said(submitted, "TASK") == [f"TASK [(4, {names}, '{python or sys.executable}')]"]
    helped = [f"OffsetRange(topic: v{n}, partition: 0, range: [1 -> 2])" for n in range(4)]
    assert said(submitted, "HELPER") == [f"HELPER {helped}"]
    assert said(submitted, "NAME") == ["NAME old_imports.py"]
    assert f"RANGE {topic} 0 1 4" in said(submitted, "RANGE")
    assert said(submitted, "ORDER") == [f"ORDER True v{n}" for n in (1, 2, 3)]
    note = "left org.apache.spark:spark-streaming-kafka-0-8_2.11:2.4.8 out of --packages"
    assert f"kafka08-spark-submit: {note}" in submitted.log


def test_workers_without_a_daemon(
    broker: Broker, tmp_path: Path, launch: Callable[[Process], Process]
) -> None:
    topic = new_topic(broker)
    produce(broker, topic, 0, [(None, b"v%d" % number) for number in range(4)])
    job = texts(tmp_path / "jobs", "old_imports", "old_helper")
    text = job.read_text().replace("SparkContext()", "SparkContext(conf=conf)")
    conf = (
        'from pyspark import SparkConf\nconf = SparkConf().set("spark.python.use.daemon", "false")'
    )
    job.write_text(text.replace("import old_helper", f"{conf}\nimport old_helper"))
    arguments = (broker.address, topic)
    files = tmp_path / "jobs" / "old_helper.py"
    submitted = launch(
        submission(tmp_path / "out", job, *arguments, master="local[2]", py_files=files)
    )
    assert submitted.exit_code(DEADLINE_S) == 7, submitted.log[-4000:]
    assert said(submitted, "ORDER") == [f"ORDER True v{n}" for n in (1, 2, 3)]


def test_how_a_job_fails(tmp_path: Path, launch: Callable[[Process], Process]) -> None:
    job = tmp_path / "job.py"
    job.write_text(
        "from pyspark.streaming.kafka import KafkaUtils\n\n\ndef f():\n    1 / 0\n\nf()\n"
    )
    submitted = launch(submission(tmp_path / "out", job, master="local"))
    assert submitted.exit_code(DEADLINE_S) == 1
    assert f'File "{job}", line 5, in f\n' in submitted.log
    job.write_text("from pyspark.streaming.kafka import KafkaUtils\nprint KafkaUtils\n")
    submitted = launch(submission(tmp_path / "again", job, master="local"))
    assert submitted.exit_code(DEADLINE_S) == 1
    assert f"kafka08-spark-submit --check {job} lists what to change" in submitted.log


@pytest.mark.parametrize("first", ["old", "new"])
def test_a_checkpoint_is_the_same_with_both_imports(
    broker: Broker, tmp_path: Path, launch: Callable[[Process], Process], first: str
) -> None:
    """A job is killed, and the other one goes on from its checkpoint: each message once."""
    topic = new_topic(broker)
    out = tmp_path / "totals"
    out.mkdir()
    old = texts(tmp_path / "old", "old_totals")
    new = tmp_path / "new.py"
    new.write_text(old.read_text().replace(OLD, NEW))
    arguments = [tmp_path / "checkpoint", out, broker.address, topic]
    plain = ["env", "SPARK_LOCAL_IP=127.0.0.1", f"PYSPARK_PYTHON={sys.executable}"]
    jobs = {
        "old": submission(tmp_path / "old-out", old, *arguments),
        "new": Process(
            "new", [*plain, sys.executable, str(new), *map(str, arguments)], tmp_path / "new-out"
        ),
    }
    second = "new" if first == "old" else "old"
    produce(broker, topic, 0, [(None, b"%d" % number) for number in range(10)])
    launch(jobs[first])
    wait_until("the first sum", DEADLINE_S, lambda: text_of(out / "sum") == str(sum(range(10))))
    # A batch that is complete is in a checkpoint when the next one runs.
    before = len(list((tmp_path / "checkpoint").glob("checkpoint-*")))
    wait_until(
        "another checkpoint",
        DEADLINE_S,
        lambda: len(list((tmp_path / "checkpoint").glob("checkpoint-*"))) > before + 1,
    )
    jobs[first].kill()
    produce(broker, topic, 0, [(None, b"%d" % number) for number in range(10, 20)])
    launch(jobs[second])
    wait_until("the whole sum", DEADLINE_S, lambda: text_of(out / "sum") == str(sum(range(20))))
    (out / "stop").touch()
    assert jobs[second].exit_code(DEADLINE_S) == 0, jobs[second].log[-4000:]
    assert text_of(out / "sum") == str(sum(range(20)))
    spans = {tuple(map(int, line.split())) for line in text_of(out / "ranges").splitlines()}
    assert sorted(n for start, end in spans for n in range(start, end)) == list(range(20))


NOTEBOOK = """
import sys

from kafka08.spark import submit

submit.install()
from pyspark import SparkConf, SparkContext
from pyspark.streaming.kafka import KafkaUtils, OffsetRange

conf = SparkConf().setMaster("local[2]").setAppName("n").set("spark.ui.enabled", "false")
conf.set("spark.driver.host", "127.0.0.1").set("spark.ui.showConsoleProgress", "false")


def late(pair):
    from pyspark.streaming.kafka import OffsetRange

    return pair[1], OffsetRange.__module__


def told():
    sc = SparkContext(conf=conf)
    rdd = KafkaUtils.createRDD(
        sc, {"metadata.broker.list": sys.argv[1]}, [OffsetRange(sys.argv[2], 0, 0, 2)]
    )
    print("ROWS", rdd.map(late).collect())
    return sc


sc = told()
submit.install()
sc.stop()
for key in submit.command.MODULES:
    SparkContext._jvm.java.lang.System.clearProperty(key)
plain = SparkContext(conf=SparkConf().setMaster("local").setAppName("plain"))
try:
    submit.install()
except Exception as error:
    print("REFUSED", error)
plain.stop()
submit.install()
told().stop()
"""


def test_a_notebook(broker: Broker, tmp_path: Path, launch: Callable[[Process], Process]) -> None:
    """A context that is there already is refused; after it was stopped, the next one is right."""
    topic = new_topic(broker)
    produce(broker, topic, 0, [(None, b"a"), (None, b"b")])
    program = tmp_path / "notebook.py"
    program.write_text(NOTEBOOK)
    command = ["env", "-u", "PYSPARK_PYTHON", "SPARK_LOCAL_IP=127.0.0.1", sys.executable]
    command += ["-W", "ignore", str(program), broker.address, topic]
    notebook = launch(Process("notebook", command, tmp_path / "out"))
    assert notebook.exit_code(DEADLINE_S) == 0, notebook.log[-4000:]
    rows = [(value, "kafka08.spark.values") for value in ("a", "b")]
    assert said(notebook, "ROWS") == [f"ROWS {rows}"] * 2
    assert [line[:32] for line in said(notebook, "REFUSED")] == ["REFUSED a SparkContext is active"]


def test_the_job_of_the_guide(
    broker: Broker, tmp_path: Path, launch: Callable[[Process], Process]
) -> None:
    """Before and after it was changed, with the messages and the output of the page."""
    page = (HOME / "docs" / "spark-moving.md").read_text()
    story = page.partition("## The story of a job")[2].partition("\n## ")[0]
    files = {step.file: step.text for step in steps(story) if step.file}
    (promised,) = [step.output for step in steps(story) if step.output is not None]
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    checked = subprocess.run(
        [sys.executable, "-c", PROGRAM, "--check", "orders.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert (checked.stdout, checked.returncode) == (promised, 1)
    subprocess.run(["patch", "-s", "orders.py", "orders.diff"], cwd=tmp_path, check=True)
    broker.create_topic("orders")
    (messages,) = re.findall(r"```json\n(.*?)```", story, re.DOTALL)
    produce(broker, "orders", 0, [(None, line.encode()) for line in messages.splitlines()])
    options = {
        "packages": "org.apache.spark:spark-streaming-kafka_2.10:1.6.3",
        "master": "local[2]",
    }
    job = launch(submission(tmp_path / "out", tmp_path / "orders.py", broker.address, **options))
    (output,) = re.findall(r"```console\n(.*?)```", story, re.DOTALL)
    for line in output.splitlines():
        job.wait_for(f"{line}\n", DEADLINE_S)


# --- the judge

RELEASE = "2.4.8"
EXAMPLES = Path.home() / ".cache" / "kafka08" / f"spark-{RELEASE}-examples"
FOLDER = f"pyspark-{RELEASE}/deps/examples/streaming"


def fetch(directory: Path) -> None:
    """The streaming examples out of Spark's package for Python."""
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
    command += ["--no-build-isolation", "--dest", str(directory), f"pyspark=={RELEASE}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
    if done.returncode:
        pytest.skip(f"pip could not fetch pyspark {RELEASE}: {done.stderr[-300:]}")
    (package,) = directory.glob("pyspark-*.tar.gz")
    with tarfile.open(package) as archive:
        for member in archive:
            if member.name.startswith(f"{FOLDER}/") and member.isfile():
                file = archive.extractfile(member)
                assert file is not None
                (directory / Path(member.name).name).write_bytes(file.read())
    package.unlink()


@pytest.fixture(scope="module")
def examples() -> Path:
    return cached.once(EXAMPLES, fetch)


WORDS = b"to be or not to be that is the question"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kafka_wordcount", "direct_kafka_wordcount"])
def test_the_examples_of_spark_2_run_unchanged(
    broker: Broker,
    examples: Path,
    tmp_path: Path,
    launch: Callable[[Process], Process],
    name: str,
) -> None:
    """They begin at the end of the log, print the words of each batch, and do not end."""
    job = examples / f"{name}.py"
    before = job.read_bytes()
    assert b"from pyspark.streaming.kafka import KafkaUtils\n" in before
    topic = new_topic(broker)
    where = broker.zookeeper if name == "kafka_wordcount" else broker.address
    submitted = launch(submission(tmp_path, job, where, topic, master="local[2]"))
    deadline = time.monotonic() + DEADLINE_S
    while "('first', " not in submitted.log:
        assert submitted.alive and time.monotonic() < deadline, submitted.log[-4000:]
        produce(broker, topic, 0, [(None, b"first")])
        time.sleep(1)
    for _ in range(3):
        produce(broker, topic, 0, [(None, WORDS)] * 7)
    expected = Counter(WORDS.decode().split() * 21)
    wait_until("all words", DEADLINE_S, lambda: counted(submitted.log) == expected)
    assert submitted.alive
    assert job.read_bytes() == before


def counted(log: str) -> Counter[str]:
    """The sums of the counts that batches printed, as ('to', 2), without the first word's."""
    found: Counter[str] = Counter()
    for line in log.splitlines():
        if line.startswith("('") and line.endswith(")"):
            word, _, count = line[2:-1].partition("', ")
            found[word] += int(count)
    del found["first"]
    return found

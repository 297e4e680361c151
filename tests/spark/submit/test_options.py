from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.spark.submit import options
from kafka08.spark.submit.options import Flag, SubmitError

OLD = "org.apache.spark:spark-streaming-kafka-0-8_2.11:2.4.8"


def test_options_end_where_the_job_begins() -> None:
    words = ["--master", "local[2]", "--conf=a.b=c=d", "-v", "--supervise", "job.py", "--x", "1"]
    given, program = options.split(words)
    assert given == [
        Flag("--master", "local[2]"),
        Flag("--conf", "a.b=c=d"),
        Flag("-v", None),
        Flag("--supervise", None),
    ]
    assert program == ["job.py", "--x", "1"]
    assert [each.setting for each in given][:3] == [
        ("spark.master", "local[2]"),
        ("a.b", "c=d"),
        ("", ""),
    ]
    assert [word for each in given for word in each.words][:4] == [*words[:2], "--conf", "a.b=c=d"]


def test_an_option_without_its_value() -> None:
    with pytest.raises(SubmitError, match="--master has no value"):
        options.split(["-v", "--master"])


@pytest.mark.parametrize(
    ("given", "kept", "left_out"),
    [
        (Flag("--packages", OLD), [], OLD),
        (Flag("--packages", f"a:b:1,{OLD}"), [Flag("--packages", "a:b:1")], OLD),
        (
            Flag("--packages", "org.apache.spark:spark-streaming-kafka-0-8:2.0.0"),
            [],
            "0-8:2.0.0",
        ),
        (
            Flag("--packages", "org.apache.spark:spark-streaming-kafka_2.10:1.6.3"),
            [],
            "_2.10",
        ),
        (
            Flag("--jars", "/x/spark-streaming-kafka-0-8-assembly_2.11-2.4.8.jar,/x/y.jar"),
            [Flag("--jars", "/x/y.jar")],
            "/x/spark-streaming-kafka-0-8-assembly_2.11-2.4.8.jar",
        ),
        (
            Flag("--jars", "external/spark-streaming-kafka-assembly-1.6.0.jar"),
            [],
            "assembly",
        ),
        (
            Flag("-c", f"spark.jars.packages={OLD},a:b:1"),
            [Flag("-c", "spark.jars.packages=a:b:1")],
            OLD,
        ),
        (Flag("--conf", f"spark.jars.packages={OLD}"), [], OLD),
    ],
)
def test_old_jars_are_left_out(given: Flag, kept: list[Flag], left_out: str) -> None:
    found, notes = options.without_old_jars([given])
    assert found == kept
    assert len(notes) == 1
    assert left_out in notes[0]
    assert f"out of {given.name}: " in notes[0]


@pytest.mark.parametrize(
    "option",
    [
        Flag("--packages", "org.apache.spark:spark-streaming-kafka-0-10_2.13:4.0.0,a:b:1"),
        Flag("--packages", "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"),
        Flag("--jars", "a.jar,b.jar"),
        Flag("--conf", f"spark.other={OLD}"),
        Flag("--files", "spark-streaming-kafka-0-8.txt"),
        Flag("-v", None),
    ],
)
def test_other_options_stay(option: Flag) -> None:
    assert options.without_old_jars([option]) == ([option], [])


def test_settings_come_from_the_file_and_then_from_the_options(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.master  local[2] \nspark.a b\n# x\n")
    given = [
        Flag("--conf", "spark.a=c"),
        Flag("--name", "n"),
        Flag("--verbose", None),
    ]
    found = options.settings_of(given, tmp_path)
    assert found == {"spark.master": "local[2]", "spark.a": "c", "spark.app.name": "n"}
    assert options.settings_of([], tmp_path / "none") == {}


def test_a_file_that_is_named_stands_for_the_defaults(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.a defaults\nspark.b defaults\n")
    (tmp_path / "own.conf").write_text("spark.a=own\n")
    named = Flag("--properties-file", str(tmp_path / "own.conf"))
    assert options.settings_of([named], tmp_path) == {"spark.a": "own"}
    both = [named, Flag("--load-spark-defaults", None)]
    assert options.settings_of(both, tmp_path) == {"spark.a": "own", "spark.b": "defaults"}


def test_the_option_for_a_setting() -> None:
    assert options.option_for("spark.submit.pyFiles", "a.zip") == Flag("--py-files", "a.zip")
    assert options.option_for("spark.x", "y") == Flag("--conf", "spark.x=y")


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"spark.submit.deployMode": "cluster"}, "--deploy-mode client.*--py-files kafka08-spark"),
        ({"spark.remote": "sc://h"}, "use --master"),
        ({"spark.python.daemon.module": "mine"}, "has value mine, but old jobs need ours there"),
    ],
)
def test_what_is_refused(settings: dict[str, str], text: str) -> None:
    with pytest.raises(SubmitError, match=text):
        options.refuse(settings, {"spark.python.daemon.module": "ours"})


def test_what_is_not_refused() -> None:
    settings = {"spark.submit.deployMode": "client", "spark.python.daemon.module": "ours"}
    options.refuse(settings, {"spark.python.daemon.module": "ours", "spark.x": "y"})

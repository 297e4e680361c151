"""The rules against the Python that runs here, the PySpark that is installed, and our own code."""

from __future__ import annotations

import ast
import builtins
import importlib
import warnings
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import DataFrame, DataFrameReader, DataFrameWriter, HiveContext, SQLContext

from kafka08.consumer.config import ConsumerConfig
from kafka08.spark.errors import JobError
from kafka08.spark.params import source_params
from kafka08.spark.submit import rules

ROOT = Path(__file__).parents[3]
JARS = Path(pyspark.__file__).parent / "jars"


def is_there(name: str) -> bool:
    """Whether a module, or what it has, can be imported by its full name."""
    module, _, rest = name.rpartition(".")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module(name)
        return True
    except ModuleNotFoundError:
        pass
    if not module:
        return False
    owner = importlib.import_module(module) if module != "pyspark.StorageLevel" else None
    return hasattr(owner or pyspark.StorageLevel, rest)


@pytest.mark.parametrize("name", rules.GONE)
def test_it_is_gone(name: str) -> None:
    assert not is_there(name)


def test_gone_is_not_said_of_all() -> None:
    names = ["queue", "sys.maxsize", "pyspark.sql.functions.row_number", "pyspark.streaming"]
    assert [name for name in names if not is_there(name)] == []
    assert is_there("pyspark.StorageLevel.MEMORY_ONLY")


@pytest.mark.parametrize("name", rules.BUILTINS)
def test_a_builtin_is_gone(name: str) -> None:
    assert not hasattr(builtins, name)


OWNERS = [
    *(dict, SQLContext, HiveContext, DataFrame, DataFrameReader, DataFrameWriter),
    *(pyspark.RDD, pyspark.SparkContext),
]


@pytest.mark.parametrize("name", rules.METHODS)
def test_a_method_is_gone(name: str) -> None:
    assert [owner for owner in OWNERS if hasattr(owner, name)] == []


@pytest.mark.parametrize("name", rules.FRAME_METHODS)
def test_a_data_frame_has_lost_it(name: str) -> None:
    assert not hasattr(DataFrame, name)


@pytest.mark.parametrize("name", ["registerTempTable", "unionAll", "toJSON", "foreachPartition"])
def test_what_is_only_deprecated_is_in_no_rule(name: str) -> None:
    assert hasattr(DataFrame, name)
    assert name not in {**rules.METHODS, **rules.FRAME_METHODS}


# Another value than the default of each setting, of those whose values are not free.
VALUES = {
    "security.protocol": "SSL",
    "isolation.level": "read_committed",
    "auto.offset.reset": "smallest",
    "metadata.broker.list": "other:1",
}
UNCHECKED = {"bootstrap.servers"}  # metadata.broker.list has priority


@pytest.mark.parametrize("name", sorted({*rules.DIRECT_KEYS, *ConsumerConfig.keys()} - UNCHECKED))
def test_which_params_of_a_direct_stream_count(name: str) -> None:
    """Those that change how messages are read, or that are refused."""
    given = {"metadata.broker.list": "h:9092"}
    if name.startswith(("ssl.", "sasl.")):
        given["security.protocol"] = "SASL_SSL"
        given["sasl.jaas.config"] = LOGIN
    plain = source_params(given)
    try:
        counts = source_params({**given, name: VALUES.get(name, "777")}) != plain
    except JobError:
        counts = True
    assert counts == (name in rules.DIRECT_KEYS)


LOGIN = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";'
)
# The modules that a stream of a group gives its settings to.
READERS = [
    ROOT / "kafka08" / "spark" / "receiver.py",
    ROOT / "kafka08" / "spark" / "driver" / "member.py",
    ROOT / "kafka08" / "consumer" / "group.py",
    ROOT / "kafka08" / "consumer" / "offset_store.py",
]


def attributes(trees: Iterable[ast.AST]) -> set[str]:
    """The attributes of all that is named config."""
    return {
        node.attr
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and ast.unparse(node.value).rpartition(".")[2] in ("config", "_config")
    }


def test_which_settings_a_stream_of_a_group_uses() -> None:
    """The others are in the list of those without effect. The client id of an id, and what is
    secured, are read elsewhere."""
    trees: list[ast.AST] = [ast.parse(path.read_text()) for path in READERS]
    connector = ast.parse((ROOT / "kafka08" / "consumer" / "connector.py").read_text())
    trees += [
        node
        for node in ast.walk(connector)
        if isinstance(node, ast.FunctionDef) and node.name == "generate_consumer_id"
    ]
    used = {name.replace("_", ".") for name in attributes(trees)}
    known = ConsumerConfig.keys()
    indirect = {name for name in known if name.startswith(("ssl.", "sasl.", "zookeeper."))}
    given_by_the_call = {"group.id", "zookeeper.connect", "zookeeper.connection.timeout.ms"}
    assert {*rules.GROUP_KEYS} == (used | indirect) & known - given_by_the_call
    assert rules.UNUSED.keys() <= known


@pytest.mark.slow
def test_nothing_in_spark_reads_the_settings_without_effect() -> None:
    """Those of streams are read by receivers alone."""
    wanted = [key for key in rules.CONFS if not key.startswith("spark.streaming.")]
    found = {
        f"{key} in {member}"
        for jar in JARS.glob("spark-*.jar")
        for member, data in classes(jar)
        for key in wanted
        if key.encode() in data
    }
    assert found == set()


def classes(jar: Path) -> Iterable[tuple[str, bytes]]:
    with zipfile.ZipFile(jar) as archive:
        for member in archive.namelist():
            if member.endswith(".class"):
                yield member, archive.read(member)

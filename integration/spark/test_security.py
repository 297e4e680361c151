"""Spark's sink, source and direct stream of a port with TLS and logins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.closed import WAIT_S, Place
from integration.harness import Broker, Tools, ZooKeeper, free_port
from integration.sasl import PLAIN_MODULE, USERS, jaas
from integration.spark.scene import SPARK_WARNINGS
from integration.spark.support import missing, spark_conf

if missing():
    pytest.skip(missing(), allow_module_level=True)
pytest.importorskip("pyarrow")

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from kafka08.spark.datasource import register
from kafka08.spark.dstream import KafkaUtils, OffsetRange

pytestmark = SPARK_WARNINGS
TLS = Path(__file__).parents[2] / "tests" / "golden" / "tls"
SECURITY = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": jaas("alice", USERS["alice"]),
    "ssl.truststore.location": str(TLS / "ca.pem"),
}


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = SparkSession.builder.config(conf=spark_conf()).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    register(session)
    yield session
    session.stop()


def test_sink_source_and_rdd_over_tls_with_a_login(
    spark: SparkSession, zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    port, secure = free_port(), free_port()
    broker = Broker(
        "ours",
        tmp_path / "broker",
        f"{zookeeper.connect}/spark-tls",
        port=port,
        props={
            "listeners": f"PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{secure}",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.jaas.config": f'{PLAIN_MODULE} required user_alice="{USERS["alice"]}";',
            "ssl.keystore.location": TLS / "server.pem",
            "num.partitions": 1,
        },
    )
    with_prefix = {f"kafka.{key}": value for key, value in SECURITY.items()}
    options = {"kafka.bootstrap.servers": f"127.0.0.1:{secure}", **with_prefix}
    try:
        broker.start()
        broker.create_topic("t")
        frame = spark.range(20).selectExpr("CAST(id AS STRING) AS value")
        frame.write.format("kafka08").options(**options).option("topic", "t").mode("append").save()
        read = spark.read.format("kafka08").options(**options).option("subscribe", "t").load()
        assert sorted(int(bytes(row["value"])) for row in read.collect()) == list(range(20))
        params = {"metadata.broker.list": f"127.0.0.1:{secure}", **SECURITY}
        rdd = KafkaUtils.createRDD(spark.sparkContext, params, [OffsetRange("t", 0, 0, 20)])
        assert sorted(int(value) for _, value in rdd.collect()) == list(range(20))
    finally:
        broker.kill()


def test_a_stream_of_a_cluster_that_is_closed_to_others(
    spark: SparkSession, zookeeper: ZooKeeper, our_tools: Tools, tmp_path: Path
) -> None:
    """From topic to topic; then to a topic that alice must not write to."""
    place = Place(tmp_path, f"{zookeeper.connect}/spark-closed", our_tools)
    login = {f"kafka.{key}": value for key, value in place.login.items()}

    def copy(target: str) -> None:
        """Everything that is there."""
        read = spark.readStream.format("kafka08").options(**options)
        read = read.option("subscribe", "alice-in").option("startingOffsets", "earliest")
        write = read.load().select("key", "value").writeStream.format("kafka08").options(**options)
        write = write.option("topic", target).trigger(availableNow=True)
        query = write.option("checkpointLocation", str(tmp_path / f"to-{target}")).start()
        try:
            assert query.awaitTermination(WAIT_S)
        finally:
            query.stop()

    try:
        place.start()
        broker = place.brokers[0]
        options = {"kafka.bootstrap.servers": broker.address, **login}
        place.create("alice-in", "alice-out", "secret")
        place.send("alice-in", *(b"%d" % number for number in range(50)))
        copy("alice-out")
        assert place.has(broker, "alice-out", 50, tmp_path)
        with pytest.raises(StreamingQueryException, match="secret"):
            copy("secret")
    finally:
        place.kill()

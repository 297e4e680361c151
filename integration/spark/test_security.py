"""Spark's sink, source and direct stream of a port with TLS and logins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.harness import Broker, ZooKeeper, free_port
from integration.sasl import PLAIN_MODULE, USERS, jaas
from integration.spark.scene import SPARK_WARNINGS
from integration.spark.support import missing, spark_conf

if missing():
    pytest.skip(missing(), allow_module_level=True)
pytest.importorskip("pyarrow")

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

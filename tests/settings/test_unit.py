"""The settings that the brokers of a unit derive from one file, and the files that are refused."""

from __future__ import annotations

import pytest

from kafka08.errors import ConfigError
from kafka08.settings.unit import unit_of

FILE = {"broker.id": "4", "zookeeper.connect": "z:1"}


def made(**changes: str) -> list[dict[str, str]]:
    found = FILE | {key.replace("__", "."): value for key, value in changes.items()}
    return [each.properties for each in unit_of(found, "box").members]


def column(key: str, **changes: str) -> list[str | None]:
    return [each.get(key) for each in made(broker__processes="3", **changes)]


def test_one_process_has_the_file_as_it_is() -> None:
    (alone,) = unit_of(FILE, "box").members
    assert alone.properties == FILE
    assert alone.config.broker_id == 4
    (said,) = unit_of(FILE | {"broker.processes": "1"}, "box").members
    assert said.properties == FILE | {"broker.processes": "1"}


def test_what_is_not_derived_is_the_same_for_all() -> None:
    for each in made(broker__processes="2", num__partitions="7", unknown="x"):
        assert each["num.partitions"] == "7"
        assert each["unknown"] == "x"
        assert each["zookeeper.connect"] == "z:1"


def test_broker_ids_count_up() -> None:
    assert column("broker.id") == ["4", "5", "6"]


def test_the_port_is_the_next_one() -> None:
    assert column("port") == ["9092", "9093", "9094"]
    assert column("port", port="700") == ["700", "701", "702"]
    assert column("advertised.port", port="700", advertised__port="80") == ["80", "81", "82"]
    assert column("advertised.port") == [None, None, None]


def test_port_0_stays() -> None:
    assert column("port", port="0") == ["0", "0", "0"]
    given = {"listeners": "PLAINTEXT://:0", "advertised__listeners": "PLAINTEXT://h:0"}
    assert column("listeners", **given) == ["PLAINTEXT://:0"] * 3
    assert column("advertised.listeners", **given) == ["PLAINTEXT://h:0"] * 3


def test_ports_of_listeners_move_by_their_span() -> None:
    given = {
        "listeners": "PLAINTEXT://:9092, SSL://[::1]:9094",
        "advertised__listeners": "PLAINTEXT://a9:9092,SSL://b:19000",
    }
    assert column("listeners", **given) == [
        "PLAINTEXT://:9092, SSL://[::1]:9094",
        "PLAINTEXT://:9095, SSL://[::1]:9097",
        "PLAINTEXT://:9098, SSL://[::1]:9100",
    ]
    assert column("advertised.listeners", **given) == [
        "PLAINTEXT://a9:9092,SSL://b:19000",
        "PLAINTEXT://a9:9095,SSL://b:19003",
        "PLAINTEXT://a9:9098,SSL://b:19006",
    ]
    assert column("port", **given) == [None, None, None]


def test_the_first_process_keeps_the_directories() -> None:
    assert column("log.dirs", log__dirs="/a/, /b") == ["/a/, /b", "/a-1,/b-1", "/a-2,/b-2"]
    assert column("log.dir", log__dir="/a") == ["/a", "/a-1", "/a-2"]
    assert column("log.dirs", log__dir="/a") == [None, None, None]
    assert column("log.dirs") == [None, "/tmp/kafka-logs-1", "/tmp/kafka-logs-2"]


def test_directories_of_csv_files() -> None:
    assert column("kafka.csv.metrics.dir", kafka__csv__metrics__dir="m") == ["m", "m-1", "m-2"]
    reporting = {
        "kafka.csv.metrics.reporter.enabled": "true",
        "kafka.metrics.reporters": "kafka.metrics.KafkaCSVMetricsReporter",
    }
    found = unit_of(FILE | reporting | {"broker.processes": "2"}, "box").members
    assert [each.config.kafka_csv_metrics_dir for each in found] == [
        "kafka_metrics",
        "kafka_metrics-1",
    ]


def test_pages_are_above_the_port_of_the_unit() -> None:
    assert column("http.port", http__port="8000") == ["8001", "8002", "8003"]
    given = FILE | {"http.port": "8000", "broker.processes": "2"}
    assert unit_of(given, "box").base.http_port == 8000
    assert column("http.port") == [None, None, None]
    assert column("http.port", http__port="-1") == ["-1", "-1", "-1"]


def test_a_unit_is_in_one_place() -> None:
    assert column("broker.unit") == column("broker.rack") == ["box:4"] * 3
    assert column("broker.rack", broker__unit="u") == ["u"] * 3
    assert column("broker.rack", broker__rack="r") == ["r"] * 3
    assert column("broker.unit", broker__rack="r") == ["box:4"] * 3


def test_a_setting_of_one_process_comes_last() -> None:
    given = {"log__dirs": "/a", "process__1__log__dirs": "/mnt/b", "process__2__broker__id": "90"}
    assert column("log.dirs", **given) == ["/a", "/mnt/b", "/a-2"]
    assert column("broker.id", **given) == ["4", "5", "90"]
    assert column("process.1.log.dirs", **given) == [None, None, None]
    (alone,) = made(process__0__num__partitions="3")
    assert alone == FILE | {"num.partitions": "3"}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"broker.processes": "0"}, "broker.processes has value 0 which is not in the range"),
        ({"broker.processes": "two"}, "broker.processes has value two which is not an integer"),
        ({"broker.id": "-1"}, "broker.id has value -1 which is not in the range"),
        ({"broker.id": "2147483647"}, "Process 1 of broker.processes: broker.id has value 21474"),
        ({"port": "x"}, "port has value x which is not an integer"),
        ({"process.2.port": "1"}, "process.2.port is a setting of process 2, and broker.processes "
         "has value 2: its processes have the numbers from 0 to 1."),
        ({"process.one.port": "1"}, "process.one.port is a setting of process one, and"),
        ({"process.01.port": "1"}, "process.01.port is a setting of process 01, and"),
        ({"process.1.port": "x"}, "Process 1 of broker.processes: port has value x which"),
        ({"process.1.port": "9092"}, "Process 0 and process 1 of broker.processes both "
         "advertise port 9092."),
        ({"process.1.port": "9092", "process.1.advertised.port": "1"}, "the listener PLAINTEXT of "
         "process 0 and the listener PLAINTEXT of process 1 would both listen on port 9092."),
        ({"process.1.broker.processes": "1"}, "process.1.broker.processes cannot be a setting"),
        ({"process.1.broker.rack": "r"}, "process.1.broker.rack cannot be a setting of one"),
        ({"process.1.broker.unit": "u"}, "process.1.broker.unit cannot be a setting of one"),
        ({"process.1.process.0.port": "1"}, "process.1.process.0.port cannot be a setting"),
        ({"process.1.broker.id": "4"}, "Process 0 and process 1 of broker.processes both have "
         "broker.id 4."),
        ({"listeners": "PLAINTEXT://:65535"}, "Process 1 of broker.processes: listeners has "
         "PLAINTEXT://:65536, which is not NAME://host:port."),
        ({"http.port": "9091"}, "With broker.processes=2 the listener PLAINTEXT of process 0 "
         "and the pages of process 0 would both listen on port 9092."),
        ({"http.port": "9092"}, "the unit's pages and the listener PLAINTEXT of process 0 would"),
        ({"http.port": "0"}, "http.port has value 0, and broker.processes has value 2"),
        ({"http.port": "8000", "process.1.http.port": "-1"}, "Process 1 of broker.processes has "
         "http.port=-1, and the unit's pages at port 8000 need a port of each process."),
        ({"log.dirs": "/a,/a-1"}, "both have the data directory /a-1."),
        ({"process.1.log.dirs": "/tmp/../tmp/kafka-logs/"}, "both have the data directory"),
        ({"listeners": "A://:1,B://:2", "listener.security.protocol.map":
          "A:PLAINTEXT,B:PLAINTEXT", "inter.broker.listener.name": "A",
          "advertised.listeners": "A://h:10,B://h:12"}, "both advertise port 12."),
    ],
)  # fmt: skip
def test_a_file_that_is_refused(changes: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        unit_of({**FILE, "broker.processes": "2", **changes}, "box")
    assert told in str(caught.value)


def test_addresses_that_do_not_meet_may_have_one_port() -> None:
    given = {
        "host.name": "127.0.0.1",
        "advertised.host.name": "a",
        "process.1.host.name": "127.0.0.2",
        "process.1.port": "9092",
        "process.1.advertised.host.name": "b",
    }
    assert len(unit_of(FILE | {"broker.processes": "2"} | given, "box").members) == 2

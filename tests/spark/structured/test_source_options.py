"""Options of the source: what they mean, and errors that name option and value."""

from __future__ import annotations

import pickle

import pytest

from kafka08.client.security import PLAIN
from kafka08.common import INTERNAL_TOPICS, TopicPartition
from kafka08.errors import ConfigError
from kafka08.security.jaas import PLAIN_MODULE
from kafka08.spark.structured.source_options import source_options

BASE = {"kafka.bootstrap.servers": "one:9092, two:9093"}
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def of(streaming: bool = True, **options: str):
    named = {key.replace("_", "."): value for key, value in options.items()}
    return source_options({**BASE, "subscribe": "t", **named}, streaming=streaming)


def test_defaults() -> None:
    stream, batch = of(), of(False)
    assert stream.params.endpoints == (("one", 9092), ("two", 9093))
    assert (stream.topics, stream.starting) == (("t",), "latest")
    assert (batch.starting, batch.ending) == ("earliest", "latest")
    settings = stream.settings
    assert (settings.max_offsets, settings.min_offsets, settings.max_delay_ms) == (0, 0, 900_000)
    assert settings.fail_on_data_loss


def test_a_login_goes_with_the_options_to_executors_and_is_not_shown() -> None:
    login = PLAIN_MODULE + ' required username="alice" password="wonderland";'
    found = of(kafka_security_protocol="SASL_PLAINTEXT", kafka_sasl_jaas_config=login)
    again = pickle.loads(pickle.dumps(found))
    assert again == found
    assert again.params.security.security_protocol == "SASL_PLAINTEXT"
    assert again.params.security.sasl_jaas_config == login
    assert "wonderland" not in repr(again)
    assert of().params.security == PLAIN


def test_names_in_any_case() -> None:
    options = {
        "KAFKA.BOOTSTRAP.SERVERS": "h:1",
        "SUBSCRIBEPATTERN": "t.*",
        "FAILONDATALOSS": "False",
    }
    found = source_options(options, streaming=True)
    assert found.pattern == "t.*"
    assert not found.settings.fail_on_data_loss
    assert found.matching(["t", "xt", "tx", "__consumer_offsets"]) == ["t", "tx"]


def test_pattern_never_takes_an_internal_topic() -> None:
    found = source_options({**BASE, "subscribePattern": ".*"}, streaming=True)
    assert found.matching(["a", *INTERNAL_TOPICS]) == ["a"]


def test_offsets_and_assignments() -> None:
    found = of(startingOffsets='{"t":{"0":23,"1":-2}}')
    assert found.starting == {T0: 23, T1: -2}
    assert of(startingOffsets="EARLIEST").starting == "earliest"
    assigned = source_options({**BASE, "assign": '{"t":[1,0]}'}, streaming=True)
    assert assigned.assigned == (T0, T1)


def test_numbers_and_durations() -> None:
    found = of(
        maxOffsetsPerTrigger="10",
        minOffsetsPerTrigger="5",
        maxTriggerDelay="2m",
        kafka_fetch_message_max_bytes="77",
    )
    settings = found.settings
    assert (settings.max_offsets, settings.min_offsets, settings.max_delay_ms) == (10, 5, 120_000)
    assert found.params.fetch_bytes == 77


TIMED = {"kafka_api_versions_request": "true"}
WRONG = [
    ({"startingOffsets": "{x"}, "startingOffsets has value {x, which is not JSON"),
    ({"startingOffsets": "[1]"}, r"startingOffsets has value \[1\]"),
    ({"startingOffsets": '{"t":{"x":1}}'}, "startingOffsets has value"),
    ({"startingOffsets": '{"t":{"0":-3}}'}, "startingOffsets has value"),
    ({"startingOffsets": '{"t":{"0":true}}'}, "startingOffsets has value"),
    ({"endingOffsets": "latest"}, "endingOffsets has value latest: a stream has no end"),
    ({"maxOffsetsPerTrigger": "many"}, "maxOffsetsPerTrigger has value many"),
    ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger has value 0"),
    (
        {"maxOffsetsPerTrigger": "5", "minOffsetsPerTrigger": "6"},
        r"minOffsetsPerTrigger has value 6 which is above maxOffsetsPerTrigger \(5\)",
    ),
    ({"maxTriggerDelay": "soon"}, "maxTriggerDelay has value soon"),
    ({"failOnDataLoss": "maybe"}, "failOnDataLoss has value maybe"),
    (
        {"includeHeaders": "true", "kafka.api.versions.request": "false"},
        "includeHeaders has value true, which needs kafka.api.versions.request",
    ),
    ({"startingTimestamp": "1"}, "startingTimestamp has value 1, which needs kafka.api.versions"),
    ({**TIMED, "startingTimestamp": "soon"}, "startingTimestamp has value soon"),
    ({**TIMED, "startingTimestamp": "-2"}, "startingTimestamp has value -2"),
    ({**TIMED, "startingTimestamp": str(1 << 63)}, "startingTimestamp has value 92233"),
    ({**TIMED, "startingOffsetsByTimestamp": '{"t":{"0":-1}}'}, "ByTimestamp has value"),
    ({**TIMED, "startingOffsetsByTimestamp": '{"t":[1]}'}, "ByTimestamp has value"),
    ({**TIMED, "endingTimestamp": "1"}, "endingTimestamp has value 1: a stream has no end"),
    ({"endingOffsetsByTimestamp": "{}"}, "endingOffsetsByTimestamp has value {}: a stream has"),
    ({"startingOffsetsByTimestampStrategy": "x"}, "Strategy has value x, .*not error or latest"),
    ({"kafka_group_id": "g"}, "kafka.group.id has value g, .*GroupOffsetsListener"),
    ({"groupIdPrefix": "g"}, "groupIdPrefix has value g"),
    ({"group.id": "g"}, "group.id has value g, .*GroupOffsetsListener"),
    ({"auto.offset.reset": "earliest"}, "auto.offset.reset has value earliest, .*startingOffsets"),
    ({"maxRatePerPartition": "9"}, "maxRatePerPartition has value 9, .*maxOffsetsPerTrigger"),
    ({"maxOffsetPerTrigger": "9"}, "did you mean maxOffsetsPerTrigger"),
    ({"checkpointLocation": "/x"}, "checkpointLocation has value /x, .*writeStream"),
    ({"unknownOptions": "ignore"}, "unknownOptions has value ignore"),
    ({"kafka_auto_offset_reset": "x"}, "kafka.auto.offset.reset has value x.*startingOffsets"),
    ({"kafka_security_protocol": "TLS"}, "kafka.security.protocol TLS is not one of PLAINTEXT"),
    ({"kafka_security_protocol": "SASL_SSL"}, "kafka.sasl.jaas.config has no value"),
    (
        {"kafka_security_protocol": "SSL", "kafka_ssl_truststore_location": "/none"},
        "kafka.ssl.truststore.location: cannot read /none",
    ),
    ({"startingOfsets": "x"}, "startingofsets .x. is unknown; did you mean startingOffsets"),
    ({"assign": "{}"}, "Exactly one of .* set: subscribe, assign"),
    ({"subscribe": " , "}, "subscribe has value ' , ', which names no topic"),
    ({"kafka_bootstrap_servers": "nowhere"}, "kafka.bootstrap.servers has value nowhere"),
    ({"kafka_bootstrap_servers": ""}, "kafka.bootstrap.servers must be set"),
]


@pytest.mark.scenario("spark-input-2", "spark-input-7")
@pytest.mark.parametrize(("options", "text"), WRONG)
def test_wrong_options_are_named(options: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        of(**options)


def test_a_query_may_run_without_options_that_have_no_effect(
    caplog: pytest.LogCaptureFixture,
) -> None:
    without = {"maxratepartition": "9", "kafka.group.id": "g", "auto.offset.reset": "latest"}
    with pytest.raises(ConfigError, match="with unknownOptions warn the query runs without it"):
        of(**without)
    assert of(unknownOptions="warn", **without) == of(unknownOptions="warn")
    assert len(caplog.records) == len(without)
    assert "kafka.group.id has value g" in caplog.text
    with pytest.raises(ConfigError, match="maxOffsetsPerTrigger has value x"):
        of(unknownOptions="warn", maxOffsetsPerTrigger="x")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"startingOffsets": "latest"}, "startingOffsets has value latest, which a batch"),
        ({"endingOffsets": "earliest"}, "endingOffsets has value earliest, which a batch"),
        ({"endingOffsets": '{"t":{"0":-2}}'}, r"-2 \(earliest\) for t-0"),
        ({"startingOffsets": '{"t":{"0":-1}}'}, r"-1 \(latest\) for t-0"),
    ],
)
def test_a_batch_has_limits_of_its_own(options: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        of(False, **options)


@pytest.mark.scenario("spark-input-7")
@pytest.mark.parametrize(
    ("option", "value"),
    [("assign", "{"), ("assign", '{"t":0}'), ("assign", '{"t":["0"]}'), ("subscribePattern", "(")],
)
def test_wrong_subscriptions_are_named(option: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"{option} has value"):
        source_options({**BASE, option: value}, streaming=True)


def test_times_come_before_offsets() -> None:
    times = '{"t":{"0":7,"1":8}}'
    given = {**TIMED, "startingOffsets": "latest", "startingOffsetsByTimestamp": times}
    assert of(False, **given).starting == ("startingOffsetsByTimestamp", {T0: 7, T1: 8}, False)
    given["startingTimestamp"] = "5"
    for streaming in (False, True):
        found = of(streaming, **given, startingOffsetsByTimestampStrategy="LATEST")
        assert found.starting == ("startingTimestamp", 5, True)
        assert found.ending == "latest"
    # A batch that ends at a time ends with the log where no message is that late.
    found = of(False, includeHeaders="true", endingTimestamp="5")
    assert (found.starting, found.ending) == ("earliest", ("endingTimestamp", 5, True))


def test_headers_switch_later_versions_on() -> None:
    found = of()
    assert (found.params.api_versions, found.settings.include_headers) == (False, False)
    found = of(includeHeaders="TRUE")
    assert (found.params.api_versions, found.settings.include_headers) == (True, True)
    found = of(kafka_api_versions_request="true")
    assert (found.params.api_versions, found.settings.include_headers) == (True, False)


def test_reading_committed_transactions_switches_later_versions_on() -> None:
    assert not of().params.committed
    found = of(**{"KAFKA.Isolation.LEVEL": "read_committed"})
    assert (found.params.committed, found.params.api_versions) == (True, True)
    assert not of(kafka_isolation_level="read_uncommitted").params.api_versions
    with pytest.raises(ConfigError, match=r"read_committed, which needs kafka\.api\.versions"):
        of(kafka_isolation_level="read_committed", kafka_api_versions_request="false")
    with pytest.raises(ConfigError, match=r"kafka\.isolation\.level has value committed"):
        of(kafka_isolation_level="committed")

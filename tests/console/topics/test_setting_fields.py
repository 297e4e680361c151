"""kafka08.console.topics.setting_fields."""

from __future__ import annotations

import pytest
from werkzeug.datastructures import MultiDict

from kafka08.console.forms import FieldError
from kafka08.console.topics.setting_fields import Default, SettingRow, own_settings, setting_rows
from kafka08.settings.later_topics import LaterTopicSettings
from kafka08.settings.topic import LogConfig


def rows(**own: str) -> dict[str, SettingRow]:
    return {row.name: row for row in setting_rows(own)}


def sent(own: dict[str, str], default: tuple[str, ...] = (), **fields: str) -> dict[str, str]:
    """The own settings after a form with these fields; names have _ for dots."""
    form = MultiDict([(f"own.{key.replace('_', '.')}", text) for key, text in fields.items()])
    form.setlist("default", list(default))
    return own_settings(form, own)


def test_every_setting_has_a_row() -> None:
    assert rows().keys() == LogConfig.keys()
    own = dict.fromkeys(LaterTopicSettings.keys(), "1")
    assert rows(**own).keys() == LogConfig.keys() | LaterTopicSettings.keys()


def test_types_of_settings() -> None:
    types = {name: (row.type, row.unit, row.choices) for name, row in rows(odd="1").items()}
    assert types["retention.ms"] == ("number", "ms", ())
    assert types["segment.bytes"] == ("number", "bytes", ())
    assert types["flush.messages"] == ("number", "", ())
    assert types["min.cleanable.dirty.ratio"] == ("number", "", ())
    assert types["unclean.leader.election.enable"] == ("yes/no", "", ("true", "false"))
    assert types["message.timestamp.type"] == ("choice", "", ("CreateTime", "LogAppendTime"))
    assert types["cleanup.policy"] == ("choice", "", ("delete", "compact", "compact,delete"))
    assert types["leader.replication.throttled.replicas"] == ("list", "", ())
    assert types["message.format.version"] == ("text", "", ())
    assert types["odd"] == ("unknown", "", ())


def test_numbers_have_plain_units_and_anything_else_has_none() -> None:
    found = rows(**{"retention.ms": "-1", "segment.bytes": "many", "flush.messages": "7"})
    row = found["retention.ms"]
    assert (row.value, row.plain) == ("-1", "no limit")
    assert (row.default, row.default_plain) == ("604800000", "7 days")
    assert (found["segment.bytes"].value, found["segment.bytes"].plain) == ("many", "")
    assert (found["flush.messages"].plain, found["flush.messages"].default_plain) == ("", "never")


def test_the_default_that_a_broker_has_goes_before_the_built_in_one() -> None:
    told = {"retention.ms": Default("3600000", "broker 1")}
    found = {row.name: row for row in setting_rows({}, told)}
    row = found["retention.ms"]
    assert (row.default, row.default_plain, row.default_source) == ("3600000", "1 h", "broker 1")
    row = found["segment.bytes"]
    assert (row.default, row.default_plain, row.default_source) == (
        "1073741824",
        "1 GiB",
        "built-in",
    )


def test_a_value_that_another_tool_wrote_is_a_choice_too() -> None:
    row = rows(**{"cleanup.policy": "delete, compact"})["cleanup.policy"]
    assert row.options == ("delete", "compact", "compact,delete", "delete, compact")


def test_only_what_has_changed_is_changed() -> None:
    own = {"retention.ms": "5", "cleanup.policy": "delete, compact", "flush.ms": ""}
    assert sent(own) == own
    fields = {"retention_ms": " 5 ", "cleanup_policy": "delete, compact", "segment_ms": ""}
    assert sent(own, **fields) == own
    assert sent({"retention.ms": "604800000"}, retention_ms="7 days") == {
        "retention.ms": "604800000"
    }


def test_values_are_written_in_plain_units() -> None:
    fields = {"retention_ms": "12 h", "segment_bytes": "1 MiB", "flush_ms": "never"}
    assert sent({}, **fields) == {
        "retention.ms": "43200000",
        "segment.bytes": "1048576",
        "flush.ms": "9223372036854775807",
    }


def test_an_own_value_is_removed() -> None:
    own = {"retention.ms": "5", "segment.ms": "6", "odd": "1"}
    after = sent(own, ("retention.ms", "odd"), retention_ms="5", segment_ms="")
    assert after == {}


@pytest.mark.parametrize(
    ("key", "text", "told"),
    [
        ("retention.ms", "a week", "'a week' is not like 7 days"),
        ("retention.ms", "9223372036854775808", "is not between"),
        ("segment.bytes", "2 GiB", "2147483648 is not between -2147483648 and 2147483647"),
        ("flush.messages", "5 ms", "'5 ms' is not like 10000"),
        ("min.cleanable.dirty.ratio", "half", "'half' is not a number"),
        ("unclean.leader.election.enable", "perhaps", "'perhaps' is not one of true, false"),
        ("cleanup.policy", "keep", "'keep' is not one of delete, compact, compact,delete"),
        ("message.format.version", "newest", "'newest' is not a release like 2.8"),
        ("min.insync.replicas", "0", "at least 1"),
        ("leader.replication.throttled.replicas", "all", "partition:broker"),
        ("max.compaction.lag.ms", "0", "is not between 1 and"),
    ],
)
def test_a_wrong_value_is_refused_beside_its_field(key: str, text: str, told: str) -> None:
    form = MultiDict([(f"own.{key}", text)])
    with pytest.raises(FieldError) as caught:
        own_settings(form, {})
    assert caught.value.field == f"own.{key}"
    assert told in caught.value.text
    assert "For input string" not in caught.value.text


def test_values_that_contradict_each_other_are_refused_beside_the_changed_one() -> None:
    with pytest.raises(FieldError, match=r"min\.compaction\.lag\.ms") as caught:
        sent({"max.compaction.lag.ms": "1000"}, min_compaction_lag_ms="2 s")
    assert caught.value.field == "own.min.compaction.lag.ms"


def test_a_value_and_the_default_at_once_are_refused() -> None:
    with pytest.raises(FieldError, match="not both"):
        sent({"retention.ms": "5"}, ("retention.ms",), retention_ms="6")


@pytest.mark.parametrize(("key", "value"), [("odd", "1"), ("retention.ms", "x")])
def test_what_another_tool_wrote_wrongly_is_named_when_something_is_changed(
    key: str, value: str
) -> None:
    own = {key: value}
    assert sent(own) == own
    with pytest.raises(FieldError) as caught:
        sent(own, segment_ms="5")
    assert caught.value.field == f"own.{key}"
    assert sent(own, (key,), segment_ms="5") == {"segment.ms": "5"}

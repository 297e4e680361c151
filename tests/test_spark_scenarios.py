"""The required behaviour of Spark in 28 situations and with bad input, and the tests that show it.

``SCENARIOS``: number -> what is given and what must follow, and the tests, as ``file::function``.
``BAD_INPUT``: what is wrong -> the tests in which an error names it, of both APIs where it can
happen in both. Those below integration/ run against brokers; ``BOTH_KINDS`` are the scenarios in
which it matters what a broker sends, and each has a test that runs against both kinds.
"""

from __future__ import annotations

import pytest

from tests.scenarios import Scenario, all_in, assert_they_exist, functions, named


def dstream(*names: str) -> tuple[str, ...]:
    return named("integration/spark/test_dstream", *names)


def dstream_faults(*names: str) -> tuple[str, ...]:
    return named("integration/spark/test_dstream_faults", *names)


def source(*names: str) -> tuple[str, ...]:
    return named("integration/spark/test_datasource", *names)


def query_faults(*names: str) -> tuple[str, ...]:
    return named("integration/spark/test_query_faults", *names)


def exactly_once(*names: str) -> tuple[str, ...]:
    return named("integration/spark/test_exactly_once", *names)


def unit(module: str, *names: str) -> tuple[str, ...]:
    return named(f"tests/spark/test_{module}", *names)


SCENARIOS = {
    1: Scenario(
        "direct stream, smallest, 3 topics of 2 partitions: all, sizes equal to the ranges",
        dstream("several_topics_are_read_from_the_smallest_offset"),
    ),
    2: Scenario(
        "direct stream without auto.offset.reset: later messages only",
        (*dstream("without_a_reset_only_later_messages"), *unit("params", "parameters")),
    ),
    3: Scenario(
        "fromOffsets: begins there; for another topic: an error with both sets of topics",
        dstream("given_offsets"),
    ),
    4: Scenario(
        "two outputs and a transform: one plan, equal ranges and data",
        (*dstream("outputs_see_one_plan"), *unit("direct", "batches_follow_each_other")),
    ),
    5: Scenario(
        "messageHandler, decoders, null keys: their results, None stays None",
        (
            *dstream("handlers_and_decoders"),
            *unit("values", "messages_decode_at_each_access_and_forget_decoders_when_pickled"),
        ),
    ),
    6: Scenario(
        "createRDD, right leaders, stale ones, beyond the end: same rows, one retry, no job",
        (
            *dstream("ranges_as_an_rdd"),
            *unit("reader", "the_hinted_leader_is_asked_first_and_left_after_a_failure"),
            *unit("rdd", "the_known_leader_is_for_first_attempts"),
        ),
    ),
    7: Scenario(
        "maxRatePerPartition: no batch has more of a partition, all is delivered",
        (*dstream("a_rate_limit"), *unit("planner", "rates"), *unit("direct", "rates")),
    ),
    8: Scenario(
        "backpressure: batches shrink, the delay is bounded, a lagging partition gets something",
        (
            *dstream("batches_shrink_for_a_slow_output"),
            *unit("backpressure", "a_backlog_slows_down_to_the_least_rate"),
            *unit("planner", "any_total_moves_every_lagging_partition_and_none_past_its_end"),
        ),
    ),
    9: Scenario(
        "driver killed in a batch: same ranges for it, the running sum is exact",
        (
            *dstream_faults("a_driver_killed_in_a_batch"),
            *unit("direct", "a_checkpoint_holds_offsets_and_ranges_and_nothing_that_runs"),
        ),
    ),
    10: Scenario(
        "driver killed between offset log and checkpoint: the logged ranges",
        (
            *dstream_faults("a_driver_killed_between_offset_log_and_checkpoint"),
            *unit("direct", "a_batch_that_was_logged_is_planned_the_same"),
        ),
    ),
    11: Scenario(
        "driver down for 30 intervals: all data, no batch above the rate limit",
        dstream_faults("a_driver_that_was_down_for_thirty_intervals"),
    ),
    12: Scenario(
        "executor killed under a task: the task is retried, nothing lost, nothing put out twice",
        (
            *dstream_faults("an_executor_killed_in_a_batch"),
            *exactly_once("each_message_counts_once_after_three_kills"),
        ),
    ),
    13: Scenario(
        "leader of three brokers killed in a batch: a retry finds the new one, no gap",
        (
            *dstream_faults("a_leader_killed_in_a_batch"),
            *exactly_once("each_message_counts_once_after_three_kills"),
            *unit("reader", "a_new_leader_may_take_time_to_know_what_is_committed"),
        ),
    ),
    14: Scenario(
        "leader away for longer than maxRetries: batches fail, offsets stay, the next covers it",
        (
            *dstream_faults("a_leader_that_is_away_fails_batches_and_loses_nothing"),
            *dstream_faults("brokers_that_are_away_fail_batches_and_lose_nothing"),
            *unit("direct", "what_fails_moves_nothing"),
        ),
    ),
    15: Scenario(
        "direct stream behind the start of the log: out of range with what there is, no reset",
        (
            *dstream("what_retention_took_is_an_error_not_a_reset"),
            *unit("reader", "what_is_gone_is_an_error_that_says_what_there_is"),
        ),
    ),
    16: Scenario(
        "kafka08 behind the start of the log: fails; without failOnDataLoss warns and goes on",
        (
            *source("lost_messages_fail_the_query_or_are_left_out"),
            *unit("source_read", "what_retention_removed"),
        ),
    ),
    17: Scenario(
        "2 -> 4 partitions: kafka08 reads them from 0, the direct stream when it discovers",
        (
            *source("new_partitions_are_read_from_their_beginning"),
            *dstream("partitions_added_later"),
            *unit("source", "new_partitions_are_read_from_their_beginning"),
            *unit("direct", "new_partitions_when_asked_for"),
        ),
    ),
    18: Scenario(
        "createStream, two drivers, one dies: 2 + 2, then 4; only uncommitted batches again",
        (
            *dstream_faults("two_drivers_share_a_group"),
            *unit("member", "a_second_member_gets_its_share_after_a_drain"),
        ),
    ),
    19: Scenario(
        "createStream, output of batch N fails: stays committed at its start, read again",
        (
            *dstream("a_failed_batch_is_not_committed"),
            *unit("progress", "nothing_past_a_failure"),
        ),
    ),
    20: Scenario(
        "createStream stopped gracefully: lag 0, nothing twice after a restart",
        (
            *dstream("a_group_stream_goes_on_where_it_stopped"),
            *unit("member", "leaving_when_the_batches_end"),
        ),
    ),
    21: Scenario(
        "offsets as JSON with -1 and -2, batch and stream; a missing partition is an error",
        (
            *source("json_offsets_and_patterns", "a_stream_starts_at_json_offsets"),
            *source("bad_input_of_a_batch_is_named", "bad_input_ends_a_stream"),
            *unit("source_plan", "where_a_query_starts"),
        ),
    ),
    22: Scenario(
        "AvailableNow by 600 while messages come: several batches, the offsets of its start",
        (
            *source("available_now_ends_at_the_offsets_of_its_start"),
            *unit("source", "available_now_ends_where_it_began_to_end"),
        ),
    ),
    23: Scenario(
        "kafka08 killed in batch 1: replayed with equal offsets, batch ids go on",
        (
            *query_faults("a_driver_killed_in_batch_1"),
            *source("a_restart_replays_the_batch_that_was_under_way"),
        ),
    ),
    24: Scenario(
        "idle kafka08 for 20 triggers: no batch, no new offset files",
        (
            *source("latest_is_the_default_and_idle_means_idle"),
            *unit("source_plan", "json_has_one_order"),
        ),
    ),
    25: Scenario(
        "3 MiB message, smaller fetch size, both APIs: delivered",
        (
            *source("a_message_larger_than_the_fetch"),
            *dstream("a_message_larger_than_the_fetch_size"),
            *unit("reader", "a_message_that_does_not_fit_is_asked_for_with_more"),
        ),
    ),
    26: Scenario(
        "gzip and snappy, ranges that begin inside a wrapper, both APIs: exactly those offsets",
        (
            *source("compressed_sets_from_the_middle"),
            *dstream("ranges_may_begin_inside_a_wrapper"),
            *unit("reader", "a_range_inside_wrappers"),
        ),
    ),
    27: Scenario(
        "sink, topic by column and by option, null topic: routed, overridden, an error",
        (
            *source("sink_routes_by_column_and_by_option", "bad_input_of_a_sink_is_named"),
            *unit("sink", "a_row_without_a_topic"),
        ),
    ),
    28: Scenario(
        "sales and shipments with late rows, killed: as a batch, less what was counted dropped",
        (
            *named(
                "integration/spark/test_late_data",
                "a_killed_join_with_windows_equals_a_batch_less_what_was_dropped",
            ),
            *named(
                "integration/spark/test_examples",
                "reorders_with_late_data_and_reprocessing",
                "reorders_killed_and_restarted_equal_a_batch_over_the_log",
            ),
        ),
    ),
}
BOTH_KINDS = {1, 2, 3, 5, 6, 13, 14, 15, 16, 17, 18, 19, 20, 22, 23, 25, 26, 27}

BAD_INPUT = {
    "unknown topic": (
        *source("bad_input_of_a_batch_is_named", "bad_input_ends_a_stream"),
        *source("bad_input_of_a_sink_is_named"),
        *dstream("errors_at_creation"),
    ),
    "offsets that are not JSON, or not of these partitions": (
        *source("bad_input_of_a_batch_is_named", "bad_input_ends_a_stream"),
        *unit("source_options", "wrong_options_are_named"),
    ),
    "offsets out of range": (
        *source("bad_input_of_a_batch_is_named", "bad_input_ends_a_stream"),
        *dstream("ranges_as_an_rdd", "offsets_beyond_the_log_fail_its_batches"),
        *dstream("what_retention_took_is_an_error_not_a_reset"),
    ),
    "brokers that are not there": (
        *source("bad_input_of_a_batch_is_named", "bad_input_ends_a_stream"),
        *source("bad_input_of_a_sink_is_named"),
        *dstream("errors_at_creation", "a_group_without_its_zookeeper"),
    ),
    "brokers that die and stay away": (
        *query_faults(
            "brokers_that_die_under_a_stream_and_stay_away",
            "brokers_that_die_before_a_batch_and_stay_away",
            "brokers_that_die_under_a_sink_and_stay_away",
        ),
        *dstream_faults("brokers_that_die_before_a_job_and_stay_away"),
        *dstream_faults("a_group_whose_brokers_are_away_goes_on_with_them"),
        *dstream_faults("brokers_that_are_away_fail_batches_and_lose_nothing"),
    ),
    "message larger than any fetch allowed": (
        *unit("reader", "a_message_that_does_not_fit_is_asked_for_with_more"),
        *unit("source_read", "a_message_larger_than_any_fetch_is_an_error"),
    ),
    "wrong option": (
        *source("bad_input_of_a_batch_is_named", "bad_input_ends_a_stream"),
        *source("bad_input_of_a_sink_is_named"),
        *dstream("errors_at_creation"),
        *unit("source_options", "wrong_options_are_named", "wrong_subscriptions_are_named"),
        *unit("params", "bad_parameters"),
    ),
    "workers without pyarrow": (
        *query_faults("workers_without_pyarrow_are_refused"),
        *unit("datasource", "without_pyarrow"),
    ),
}


def test_no_number_is_left_out() -> None:
    assert list(SCENARIOS) == list(range(1, 29))


@pytest.mark.parametrize("number", SCENARIOS)
def test_its_tests_exist(number: int) -> None:
    assert_they_exist(SCENARIOS[number].tests)


@pytest.mark.parametrize("what", BAD_INPUT)
def test_tests_of_bad_input_exist(what: str) -> None:
    assert_they_exist(BAD_INPUT[what])


@pytest.mark.parametrize("number", SCENARIOS)
def test_one_of_them_is_among_real_brokers(number: int) -> None:
    assert any(test.startswith("integration/") for test in SCENARIOS[number].tests)


@pytest.mark.parametrize("number", sorted(BOTH_KINDS))
def test_one_of_them_runs_against_both_kinds(number: int) -> None:
    arguments = [
        functions(path)[name]
        for path, _, name in (test.partition("::") for test in SCENARIOS[number].tests)
        if path.startswith("integration/")
    ]
    assert any(each & {"either", "kind"} for each in arguments)


def test_the_tests_of_faults_are_in_the_table() -> None:
    listed = {test for scenario in SCENARIOS.values() for test in scenario.tests}
    listed |= {test for tests in BAD_INPUT.values() for test in tests}
    for module in ("test_dstream_faults", "test_query_faults", "test_late_data"):
        path = f"integration/spark/{module}.py"
        assert all_in(path) <= listed

"""The required behaviour of clients in 39 situations, and the tests that show it.

``SCENARIOS``: number -> what is given and what must follow, and the tests, as ``file::function``.
Those below integration/ run against brokers of both kinds, some with original clients too.
"""

from __future__ import annotations

import pytest

from tests.scenarios import Scenario, all_in, assert_they_exist


def real(number: int, *names: str) -> tuple[str, ...]:
    module = "test_client_scenarios" if number < 28 else "test_producer_scenarios"
    return tuple(f"integration/{module}.py::test_{number:02}_{name}" for name in names)


CONNECTOR = "tests/consumer/test_connector.py::test_"
ASSIGNORS = "tests/consumer/test_assignors.py::test_"
STREAM = "tests/consumer/test_stream.py::test_"
FETCHER = "tests/consumer/test_fetcher.py::test_"
OFFSETS = "tests/client/test_offsets.py::test_"
HANDLER = "tests/producer/test_event_handler.py::test_"
PRODUCER = "tests/producer/test_producer.py::test_"
NEW_PRODUCER = "tests/producer/test_kafka_producer.py::test_"
PARTITIONERS = "tests/producer/test_partitioners.py::test_"
MIXED = "integration/test_mixed_groups.py::test_"
ORIGINAL_KEYS = "integration/test_producer_scenarios.py::test_keys_go_where_the_originals_put_them"

SCENARIOS = {
    1: Scenario(
        "one member, 2 partitions: it owns both",
        (*real(1, "one_member_owns_all"), CONNECTOR + "one_member_owns_all"),
    ),
    2: Scenario(
        "a second member joins: one each, nothing lost",
        (
            *real(2, "a_second_member_joins"),
            CONNECTOR + "second_member_takes_its_share_from_the_commit_on",
            MIXED + "members_come_and_go",
        ),
    ),
    3: Scenario(
        "Python and Scala, range, 8 partitions, 2 and 1 streams: runs of 3, 3, 2",
        (
            *real(3, "range_beside_an_original_member"),
            ASSIGNORS + "range_gives_low_threads_the_remainder",
            MIXED + "threads_of_a_static_subscription_of_the_original",
        ),
    ),
    4: Scenario(
        "roundrobin, 12 partitions: dealt in the order 10, 11, 0..9",
        (
            *real(4, "roundrobin_beside_an_original_member"),
            ASSIGNORS + "roundrobin_order_is_not_numeric",
        ),
    ),
    5: Scenario(
        "12 streams, 12 partitions, range: thread 10 owns partition 2",
        (*real(5, "twelve_streams"), ASSIGNORS + "range_of_twelve_streams_puts_thread_10_third"),
    ),
    6: Scenario(
        "more streams than partitions: the surplus is idle, no error",
        (*real(6, "more_streams_than_partitions"), CONNECTOR + "surplus_streams_are_idle"),
    ),
    7: Scenario(
        "a member is killed or closed: takeover after the session or at once, from the last commit",
        (
            *real(7, "a_member_is_killed", "a_member_leaves"),
            CONNECTOR + "member_that_leaves_is_replaced",
        ),
    ),
    8: Scenario(
        "the session is forcibly expired: registered again, owners rebuilt",
        (
            *real(8, "a_session_expires"),
            CONNECTOR + "expired_session_registers_and_claims_anew",
            CONNECTOR + "session_lost_during_a_rebalance_ends_it",
        ),
    ),
    9: Scenario(
        "a foreign owner node is stuck: 4 tries, own claims removed, error; the worker recovers",
        (
            *real(9, "a_foreign_owner_is_in_the_way", "a_foreign_owner_goes_while_we_run"),
            CONNECTOR + "stuck_owner_fails_all_tries_and_leaves_nothing_claimed",
            CONNECTOR + "worker_recovers_with_the_next_event",
        ),
    ),
    10: Scenario(
        "a malformed foreign registration: fails, recovers once it is removed",
        (
            *real(10, "a_malformed_registration_of_another", "a_malformed_topic_of_another"),
            CONNECTOR + "malformed_foreign_registration_fails_clearly",
            "integration/test_consumer_bad_input.py::test_garbage_of_others_in_the_group",
        ),
    ),
    11: Scenario(
        "partitions added, a static topic created late: owned after a rebalance",
        (
            *real(11, "partitions_added_and_a_topic_created_late"),
            CONNECTOR + "partitions_added_and_topics_created_late",
        ),
    ),
    12: Scenario(
        "whitelist, a matching topic is created: consumed, registration unchanged",
        (
            *real(12, "a_whitelist_takes_in_a_topic_that_comes"),
            CONNECTOR + "filter_takes_new_topics_without_registering_anew",
        ),
    ),
    13: Scenario(
        "blacklist: the complement, no internal topic",
        (
            *real(13, "a_blacklist"),
            CONNECTOR + "blacklist_takes_the_rest_but_nothing_internal",
        ),
    ),
    14: Scenario(
        'filter "a, b" in quotes: regex of a or b, whole match',
        (
            *real(14, "a_filter_of_words_in_quotes"),
            "tests/consumer/test_filters.py::test_normalisation",
        ),
    ),
    15: Scenario(
        "no brokers, one starts: later rebalance",
        (
            *real(15, "no_broker_then_one"),
            CONNECTOR + "without_brokers_the_rebalance_comes_with_the_first",
        ),
    ),
    16: Scenario(
        "consumer timeout 200 ms, idle: raises twice, then data is readable",
        (
            *real(16, "a_stream_that_waits_in_vain"),
            STREAM + "timeout_leaves_the_stream_usable",
        ),
    ),
    17: Scenario(
        "streams created twice: error",
        (*real(17, "streams_are_made_once"), CONNECTOR + "streams_are_made_once"),
    ),
    18: Scenario(
        "message above the fetch size: size error, iterator failed",
        (
            *real(18, "a_message_above_the_fetch_size"),
            STREAM + "message_above_the_fetch_size_fails_the_stream",
        ),
    ),
    19: Scenario(
        "position inside a compressed set: only entries from there on",
        (
            *real(19, "a_position_inside_a_compressed_set"),
            STREAM + "a_compressed_set_is_entered_in_its_middle",
        ),
    ),
    20: Scenario(
        "a failing decoder: raises on access, offsets advance",
        (*real(20, "a_decoder_that_fails"), STREAM + "decoders_are_lazy_and_null_stays_null"),
    ),
    21: Scenario(
        "out of range, smallest or largest: earliest or latest",
        (*real(21, "out_of_range"), FETCHER + "reset"),
    ),
    22: Scenario(
        "commit before the first fetch: nothing negative is stored",
        (
            *real(22, "a_commit_before_the_first_fetch"),
            CONNECTOR + "nothing_negative_is_committed",
            FETCHER + "nothing_is_committable_before_the_first_reset",
        ),
    ),
    23: Scenario(
        "commit 16, fetch 14: reconnects, waits, then succeeds",
        (
            *real(23, "a_coordinator_that_moved_and_one_that_loads"),
            OFFSETS + "fetch_waits_for_loading_and_follows_the_coordinator",
            OFFSETS + "failed_commit_reconnects",
        ),
    ),
    24: Scenario(
        "dual commit, ZooKeeper ahead: starts at the maximum",
        (
            *real(24, "dual_commit_starts_at_the_maximum"),
            CONNECTOR + "dual_commit_starts_at_the_maximum_and_writes_both",
        ),
    ),
    25: Scenario(
        "commits to Kafka fail at close or while running: 6 tries or 1",
        (
            *real(25, "commits_to_kafka_that_fail"),
            CONNECTOR + "failing_kafka_commit_is_tried_once_and_six_times_at_close",
        ),
    ),
    26: Scenario(
        "rebalance, auto-commit off: redelivery from the last commit",
        (
            *real(26, "a_rebalance_without_auto_commit"),
            CONNECTOR + "rebalance_without_auto_commit_rewinds",
        ),
    ),
    27: Scenario(
        "leader change: no gap, no duplicate",
        (
            *real(27, "the_leader_changes"),
            FETCHER + "leader_change_leaves_no_gap_and_no_duplicate",
        ),
    ),
    28: Scenario(
        "unkeyed sends: one partition until a refresh or an error",
        (
            *real(28, "unkeyed_messages_stay_together"),
            HANDLER + "unkeyed_messages_stick_until_the_refresh",
        ),
    ),
    29: Scenario(
        "bytes and string keys: the originals' partitions, a hash of -2^31 too",
        (
            *real(29, "bytes_and_text_as_keys"),
            ORIGINAL_KEYS,
            PARTITIONERS + "java_hash",
            PARTITIONERS + "scala_partitioners",
        ),
    ),
    30: Scenario(
        "new producer keyed, unkeyed, explicit: murmur2, rotation, as given",
        (
            *real(30, "the_new_producer"),
            ORIGINAL_KEYS,
            PARTITIONERS + "murmur2",
            NEW_PRODUCER + "records_without_a_key_take_turns_among_partitions_with_a_leader",
        ),
    ),
    31: Scenario(
        "one partition leaderless: others are delivered, it is retried",
        (
            *real(
                31,
                "one_partition_without_a_leader",
                "one_partition_without_a_leader_new",
            ),
            HANDLER + "only_what_failed_is_retried",
            NEW_PRODUCER + "a_partition_without_a_leader_waits_while_others_go",
        ),
    ),
    32: Scenario(
        "a partitioner returns -1: the batch fails to be sent",
        (
            *real(32, "a_partitioner_that_is_wrong"),
            HANDLER + "partition_outside_the_range_fails_the_batch",
        ),
    ),
    33: Scenario(
        "queue full, timeout 0, above 0, below 0: raises now, later, blocks",
        (
            *real(33, "a_full_queue", "a_full_queue_blocks"),
            PRODUCER + "full_queue",
            PRODUCER + "full_queue_blocks_without_timeout",
        ),
    ),
    34: Scenario(
        "async, 10 messages in batches of 5, 2 messages in 200 ms: 2 batches, 1 after 200 ms",
        (
            *real(34, "ten_messages_make_two_batches", "two_messages_leave_after_200_ms"),
            PRODUCER + "async_sends_full_batches_and_the_rest_at_close",
            PRODUCER + "async_sends_what_it_has_when_the_time_is_up",
        ),
    ),
    35: Scenario(
        "compressed.topics lists one topic: that is wrapped, the other plain",
        (
            *real(35, "only_some_topics_are_compressed"),
            HANDLER + "compression_of_chosen_topics",
            NEW_PRODUCER + "compression_of_the_topics_listed",
        ),
    ),
    36: Scenario(
        "acks 0, too large a message: no error, the socket is closed, a later send reconnects",
        (
            *real(36, "too_large_without_acks"),
            HANDLER + "without_acks_errors_are_not_seen",
            "integration/test_producer.py::test_acks_0_learns_of_no_error_and_goes_on",
        ),
    ),
    37: Scenario(
        "buffer full, blocking off or on: raises, waits",
        (
            *real(37, "a_full_buffer"),
            NEW_PRODUCER + "full_buffer_without_blocking",
            NEW_PRODUCER + "full_buffer_with_blocking",
        ),
    ),
    38: Scenario(
        "retries above 0, code 6 once: one copy, one callback",
        (
            *real(38, "a_retry_delivers_once"),
            NEW_PRODUCER + "a_retry_after_the_backoff_delivers_once",
        ),
    ),
    39: Scenario(
        "mirror, keyed: the order of each key is kept",
        real(39, "a_mirror_keeps_the_order_of_each_key"),
    ),
}


def test_no_number_is_left_out() -> None:
    assert list(SCENARIOS) == list(range(1, 40))


@pytest.mark.parametrize("number", SCENARIOS)
def test_its_tests_exist(number: int) -> None:
    assert_they_exist(SCENARIOS[number].tests)


@pytest.mark.parametrize("number", SCENARIOS)
def test_one_of_them_is_among_real_brokers(number: int) -> None:
    assert any(test.startswith("integration/") for test in SCENARIOS[number].tests)


def test_the_numbered_tests_are_in_the_table() -> None:
    listed = {test for scenario in SCENARIOS.values() for test in scenario.tests}
    for module in ("test_client_scenarios", "test_producer_scenarios"):
        path = f"integration/{module}.py"
        assert all_in(path) <= listed

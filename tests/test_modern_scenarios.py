"""The required behaviour towards today's clients in 58 situations, and the tests that show it.

``SCENARIOS``: number -> what is given and what must follow, the tests, as ``file::name``, and what
of it no test shows yet, with the reason. Those below integration/ run real processes.
"""

from __future__ import annotations

import pytest

from tests.scenarios import Scenario, all_in, assert_they_exist, named


def api(module: str, *names: str) -> tuple[str, ...]:
    return named(f"tests/server/apis/test_{module}", *names)


def server(module: str, *names: str) -> tuple[str, ...]:
    return named(f"tests/server/test_{module}", *names)


def coordinator(*names: str) -> tuple[str, ...]:
    return named("tests/server/coordinator/test_coordinator", *names)


def stored_groups(*names: str) -> tuple[str, ...]:
    return named("tests/server/coordinator/test_requests", *names)


def log(module: str, *names: str) -> tuple[str, ...]:
    return named(f"tests/log/test_{module}", *names)


def message(module: str, *names: str) -> tuple[str, ...]:
    return named(f"tests/message/test_{module}", *names)


def protocol(module: str, *names: str) -> tuple[str, ...]:
    return named(f"tests/protocol/test_{module}", *names)


def idempotent(*names: str) -> tuple[str, ...]:
    return named("integration/test_idempotent_producers", *names)


def clients(*names: str) -> tuple[str, ...]:
    return named("integration/test_modern_clients", *names)


def groups(*names: str) -> tuple[str, ...]:
    return named("integration/test_modern_groups", *names)


def tools(*names: str) -> tuple[str, ...]:
    return named("integration/test_modern_tools", *names)


def bad_input(*names: str) -> tuple[str, ...]:
    return named("tests/live/test_later_bad_input", *names)


def times(*names: str) -> tuple[str, ...]:
    return named("integration/test_modern_times", *names)


def sets(*names: str) -> tuple[str, ...]:
    return named("integration/test_modern_sets", *names)


def later_clients(*names: str) -> tuple[str, ...]:
    return named("integration/cluster/test_later_clients", *names)


SINCE = times("the_first_message_since_a_time")
OLD_READERS = clients("clients_of_0_8_read_what_it_wrote")
READERS = clients("it_reads_what_they_wrote")
CONSOLE = clients("it_reads_what_the_console_producer_wrote")
TIMES = clients("it_finds_offsets_by_time")
ADMIN = clients("it_administers_topics")
SHARE = groups("members_share_partitions_and_offsets")

SCENARIOS = {
    # Connecting
    1: Scenario(
        "each client lists topics; with the setting off, key 18 closes as 0.8.2.2 does",
        (*ADMIN, *api("versions", "it_is_unknown_when_the_setting_is_off")),
    ),
    2: Scenario(
        "ApiVersions 4 and 5: error 35 in the layout of version 0, and on with version 3",
        (
            *ADMIN,
            *api("versions", "later_versions_are_answered_in_version_0_with_ours"),
            *bad_input("any_version_of_api_versions_is_answered"),
        ),
    ),
    3: Scenario(
        "ApiVersions 0, 2 and 3: each answer parses",
        (*ADMIN, *api("versions", "what_has_a_handler_is_listed")),
    ),
    4: Scenario(
        "key 999, Produce 99: the connection closes, others live on",
        (
            *protocol(
                "requests", "unknown_keys_close_in_the_modern_table_too", "unknown_versions_close"
            ),
            *bad_input("unknown_keys_close", "unknown_versions_close"),
        ),
    ),
    5: Scenario(
        "0.8 clients beside modern ones: their frames are those of today",
        (
            *protocol("golden", "requests", "responses"),
            *server("conversion", "followers_get_what_is_stored"),
        ),
    ),
    # Produce and read, both ways
    6: Scenario(
        "the console producer of 0.8.2.2 wrote all codecs: all clients read all of it",
        (*CONSOLE, *message("convert", "format_0_for_later_clients")),
    ),
    7: Scenario(
        "Java wrote all codecs with headers: consumers of 0.8.2.2 read all, none twice",
        (*OLD_READERS, *server("conversion", "batches_reach_consumers_of_0_8")),
    ),
    8: Scenario(
        "timestamps to the millisecond, headers in order, empty and null ones",
        (
            *READERS,
            *message("timed_sets", "recorded_sets"),
            *message("timed_messages", "what_3_9_1_sent"),
            *named(
                "integration/test_timestamps_and_headers",
                "every_consumer_of_ours_sees_what_the_producer_sent",
            ),
            *named("integration/test_later_directories", "ours_takes_over_from_3_9"),
        ),
    ),
    9: Scenario(
        "a batch is stored as it was sent, from byte 16 on",
        log("formats", "everything_is_stored_as_sent", "a_follower_stores_the_same_bytes"),
    ),
    10: Scenario(
        "1,000 alternating sets of formats 0, 1, 2: offsets without a hole",
        (
            *server("conversion", "batches_reach_consumers_of_0_8"),
            *message("scan", "a_file_with_all_formats"),
            *sets("10_a_thousand_sets_of_three_formats"),
        ),
    ),
    11: Scenario(
        "a batch of max.message.bytes is taken, a byte more is 10 and the connection stays",
        (
            *message("timed_sets", "batches_that_are_refused"),
            *sets("11_the_largest_batch"),
        ),
    ),
    12: Scenario(
        "a wrong crc32c is 2, nothing stored; count 4 with 3 records: 2 or 87",
        (
            *message("timed_sets", "recorded_refusals", "batches_that_are_refused"),
            *bad_input(
                "a_bit_that_the_crc_covers",
                "headers_that_do_not_agree_with_their_records",
                "lengths_that_are_absurd",
            ),
            *server("conversion", "refusals_that_0_8_clients_understand"),
        ),
    ),
    13: Scenario(
        "Produce 3 with two batches, format 1 or nothing: 87; with zstd: 76",
        server("format_versions", "what_each_version_of_produce_takes"),
    ),
    14: Scenario(
        "Produce 3 with acks 0, 1, -1 while the leader dies: the rules of 0.8 hold",
        (
            *api("produce", "lost_leadership_ends_the_wait_with_6", "acks_0_is_silent"),
            *later_clients("14_the_leader_dies_under_a_producer_without_ids"),
        ),
    ),
    15: Scenario(
        "a compacted topic and a null key: 87, to an 0.8.2.2 producer today's code",
        (
            *log("formats", "a_compacted_topic_refuses_records_without_a_key"),
            *api("produce", "a_compacted_topic_takes_no_message_without_a_key"),
            *message("timed_sets", "keys_that_a_compacted_topic_asks_for"),
        ),
    ),
    # Down-conversion
    16: Scenario(
        "0.8.2.2 starts inside a gzip batch of 500: the first message is that offset",
        (
            *server("conversion", "an_offset_inside_a_batch_begins_there"),
            *sets("16_an_offset_inside_a_batch"),
        ),
    ),
    17: Scenario(
        "fetch size below the batch, above a message: 0.8.2.2 advances",
        (
            *server("conversion", "a_size_below_the_first_batch_gives_all_of_it"),
            *sets("17_a_fetch_smaller_than_the_batch"),
        ),
    ),
    18: Scenario(
        "markers and aborted data: every data message once",
        (
            *server("conversion", "markers_are_passed_over"),
            *named("integration/test_later_directories", "ours_takes_over_from_3_9"),
        ),
    ),
    19: Scenario(
        "a marker is last: the long poll waits, a new message comes at once",
        (
            *server("conversion", "nothing_but_markers_counts_as_nothing"),
            *sets("19_a_marker_is_last"),
        ),
    ),
    20: Scenario(
        "a batch 4..7 compacted to 4 and 6, fetch at 7: 8 or later, or a wait",
        server("conversion", "the_removed_end_of_a_batch"),
    ),
    21: Scenario(
        "zstd batches: 0.8.2.2 gets the messages",
        (*OLD_READERS, *message("convert", "codecs_stay_but_for_zstd")),
    ),
    22: Scenario(
        "LogAppendTime, fetch 2: bit 3 and the broker's time",
        (
            *message("convert", "the_recorded_broker_s_time"),
            *server("message_times", "log_append_time"),
            *sets("22_the_broker_s_time_in_format_1"),
        ),
    ),
    23: Scenario(
        "64 MiB inflate from a batch of 64 KiB: bounded memory, others are served",
        (
            *server("conversion", "a_batch_that_inflates_too_far_is_refused"),
            *bad_input("what_inflates_too_far", "what_inflates_far_is_read_in_bounded_memory"),
        ),
    ),
    24: Scenario(
        "10 consumers of 0.8 on the tail: each batch is converted once",
        (
            *server("rebuild", "of_those_who_want_the_same_one_makes_it"),
            *server("conversion", "ten_consumers_on_the_tail_and_each_batch_is_converted_once"),
        ),
    ),
    # Time
    25: Scenario(
        "timestamps 10, 20, 15, 30: 15 gives the offset of 20, 31 nothing",
        (*TIMES, *SINCE, *server("offsets_by_time", "the_first_message_since_a_time")),
    ),
    26: Scenario(
        "format 0 alone by time: nothing, no exception; -1 and -2 are right",
        (
            *tools("kafka_get_offsets"),
            *times("a_topic_of_0_8_clients_has_no_times_and_no_time_index"),
            *server(
                "offsets_by_time", "a_topic_of_format_0_alone", "latest_and_earliest_read_no_file"
            ),
        ),
    ),
    27: Scenario(
        "a time inside a gzip batch: the record's offset",
        (*TIMES, *SINCE, *server("offsets_by_time", "inside_a_compressed_batch")),
    ),
    28: Scenario(
        "the time index is deleted: it is made again; 0.8.2.2 keeps such files",
        (
            *SINCE,
            *log(
                "time_index",
                "a_missing_or_torn_file_is_made_again",
                "nothing_is_written_for_format_0",
                "a_restart",
            ),
            *named("integration/test_later_directories", "an_original_keeps_the_files_of_3_9"),
        ),
    ),
    29: Scenario(
        "retention of back-dated records by their own time; format 0 by file time",
        (
            *times("old_messages_are_deleted_by_their_own_time"),
            *log(
                "time_index",
                "retention_by_the_newest_message",
                "messages_of_format_0_are_as_old_as_their_file",
            ),
        ),
    ),
    30: Scenario(
        "records older than message.timestamp.before.max.ms: 32",
        (
            *times("old_messages_can_be_refused"),
            *server("message_times", "timestamps_out_of_range_are_refused"),
            *message("timed_sets", "times_out_of_bounds"),
            *times("sarama_learns_that_a_message_is_too_old"),
        ),
    ),
    # Groups
    31: Scenario(
        "Java and kafka-python in one group: one owner each; kill -9 one: reassigned in time",
        (
            *groups("31_members_of_different_clients_of_which_one_is_killed"),
            *coordinator("a_silent_member_is_removed"),
        ),
    ),
    32: Scenario(
        "members close: the group is empty at once",
        (
            *SHARE,
            *groups("closing_empties_the_group_at_once"),
            *coordinator("a_group_is_empty_once_all_have_left"),
        ),
    ),
    33: Scenario(
        "a static member restarts: no rebalance; a second process: the first is fenced",
        (
            *groups("33_static_members"),
            *coordinator(
                "a_static_member_comes_back_without_a_rebalance", "two_processes_of_one_instance"
            ),
        ),
    ),
    34: Scenario(
        "cooperative-sticky: two generations, unaffected partitions never stop",
        (
            *groups("34_cooperative_members_keep_what_they_can"),
            *coordinator("the_leader_of_a_stable_group_asks_for_a_rebalance_by_joining"),
        ),
    ),
    35: Scenario(
        "a join of version 4 without id: 79 and an id, freed after the session timeout",
        coordinator(
            "a_member_that_needs_an_id_gets_one_first", "ids_that_are_not_used_leave_no_group"
        ),
    ),
    36: Scenario(
        "a leader that never syncs: a rebalance after the timeout",
        (
            *coordinator("a_leader_that_never_syncs_loses_its_place"),
            *bad_input("a_leader_that_never_syncs"),
        ),
    ),
    37: Scenario(
        "the coordinator is killed: no committed offset is lost, on within 10 s",
        (
            *stored_groups("the_next_coordinator_goes_on_with_the_group"),
            *coordinator("a_group_goes_on_where_it_was_stored"),
            *groups("37_the_coordinator_is_killed"),
        ),
    ),
    38: Scenario(
        "metadata that is not of the consumer protocol: answered",
        (
            *named("tests/server/coordinator/test_subscriptions", "one_that_cannot_be_understood"),
            *bad_input("metadata_that_is_not_of_consumers_is_answered"),
        ),
    ),
    39: Scenario(
        "offsets of an 0.8 consumer are shown; beside a live member its commit is an error",
        (
            *tools("39_offsets_of_a_consumer_of_0_8_are_shown"),
            *coordinator("a_commit_needs_a_member_if_there_is_one"),
            *api("coordinated_groups", "a_commit_of_0_8_counts_while_there_is_no_member"),
        ),
    ),
    40: Scenario(
        "offsets in ZooKeeper: a Java consumer starts at auto.offset.reset, the node stays",
        (
            *api("groups", "v0_goes_to_zookeeper_whoever_coordinates"),
            *groups("40_offsets_in_zookeeper_are_of_another_group"),
        ),
    ),
    41: Scenario(
        "an original leads an offsets partition after ours: it loads all offsets",
        (
            *stored_groups("groups_are_not_stored_while_an_original_broker_might_read_them"),
            *named("integration/test_mixed_formats", "java_beside_an_original"),
        ),
    ),
    42: Scenario(
        "kafka-consumer-groups resets and deletes, and refuses for live groups",
        (
            *tools("42_groups_are_reset_and_deleted"),
            *coordinator("only_empty_groups_are_deleted"),
            *api(
                "coordinated_groups",
                "groups_with_members_are_not_deleted",
                "offsets_of_subscribed_topics_are_kept",
            ),
            *named(
                "tests/tools/groups/test_coordinated",
                "a_group_with_coordinated_members_is_neither_reset_nor_deleted",
                "a_group_without_members_is_deleted_by_its_coordinator",
                "offsets_are_deleted_by_the_coordinator_if_it_can",
            ),
        ),
    ),
    # Idempotence
    43: Scenario(
        "every 7th produce answer is dropped: exactly 10,000 messages",
        (
            *server("idempotent_producers", "a_repeated_set_is_answered_with_its_offset"),
            *idempotent("every_seventh_answer_is_lost"),
            *clients("it_is_idempotent_where_it_can_be"),
        ),
    ),
    44: Scenario(
        "the same with kill -9 of the leader: exactly 10,000, in order",
        (
            *server("idempotent_producers", "a_new_leader_knows_what_it_copied"),
            *idempotent("the_leader_is_killed"),
        ),
    ),
    45: Scenario(
        "a batch is sent again after a restart: success with its old offset",
        (
            *log("producer_state", "after_a_snapshot_the_last_batch_is_known"),
            *log("producers", "after_a_crash_the_log_is_read"),
            *server("idempotent_producers", "the_last_set_comes_again_after_a_restart"),
            *idempotent("the_last_batch_comes_again_after_a_restart"),
        ),
    ),
    46: Scenario(
        "the table of sequences: the codes of Kafka 3.9.1",
        (
            *log(
                "producer_state",
                "an_unknown_producer_may_begin_anywhere",
                "the_next_sequence_wraps_to_0",
                "the_last_five_batches_are_recognised",
                "gaps_and_overlaps_are_errors",
                "epochs",
            ),
            *server("idempotent_producers", "the_answers_are_those_of_kafka_3_9"),
        ),
    ),
    47: Scenario(
        "200,000 producer ids, a day passes: memory is back",
        (
            *log("producer_state", "producers_are_forgotten_when_they_are_silent"),
            *server("idempotent_producers", "silent_producers_are_forgotten_after_a_day"),
        ),
    ),
    48: Scenario(
        "Java initTransactions(): fails within 1 s, no retries",
        (
            *groups("48_transactions_are_refused_at_once"),
            *api("coordinated_groups", "coordinators_are_for_groups_alone"),
            *api("producer_ids", "transactions_are_not_served"),
        ),
    ),
    # Admin
    49: Scenario(
        "each client's admin creates, describes, alters, grows, lists, deletes; tools work",
        (
            *ADMIN,
            *tools("kafka_topics", "kafka_configs", "kafka_cluster_and_leader_election"),
            *server(
                "later_versions",
                "topics_in_every_version",
                "settings_and_where_they_come_from",
                "settings_change_one_by_one",
            ),
            *api("elections", "the_preferred_replica_leads_again"),
            *api("admin", "settings_of_the_broker"),
            *api("log_dirs", "every_replica_is_in_its_directory"),
        ),
    ),
    50: Scenario(
        "deleteTopicRecords: records are gone, or the error names the API",
        (
            *tools("kafka_delete_records"),
            *named(
                "integration/test_delete_records",
                "in_a_cluster",
                "an_original_opens_the_directory",
                "kafkajs_deletes_records",
            ),
            *api("delete_records", "the_log_begins_there_at_once"),
        ),
    ),
    51: Scenario(
        "Spark 4's own connector, batch and stream, both ways: all rows once",
        named("integration/spark/test_later_messages", "sparks_own_connector"),
    ),
    # Replicas and mixed clusters
    52: Scenario(
        "three brokers, mixed formats, leaders killed in turn: nothing acknowledged is lost",
        (
            *log("formats", "a_follower_stores_the_same_bytes"),
            *later_clients("52_leaders_die_in_turn_under_all_formats"),
        ),
    ),
    53: Scenario(
        "an original registers: its topics keep format 0, ApiVersions closes",
        (
            *api("versions", "the_connection_closes_while_an_original_is_registered"),
            *server(
                "format_versions",
                "a_partition_with_an_original_replica_stores_format_0",
                "headers_are_refused_where_they_would_be_lost",
                "only_partitions_with_a_replica_there_are_concerned",
            ),
            *named(
                "integration/test_mixed_formats", "an_original_joins", "java_beside_an_original"
            ),
        ),
    ),
    54: Scenario(
        "a reassignment of format 2 to an original is refused",
        (
            *named(
                "tests/controller/test_reassignment", "an_original_gets_no_log_that_it_cannot_read"
            ),
            *named("integration/test_mixed_formats", "an_original_joins"),
        ),
    ),
    55: Scenario(
        "the conversion tool ran: 0.8.2.2 cuts nothing, lost headers are counted",
        (
            *named("integration/test_exchange_storage", "converted_for_the_original_and_back"),
            *named("tests/tools/logs/test_log_convert", "later_formats_and_groups"),
            *named("tests/tools/logs/test_lowering", "batches", "messages_of_format_1"),
        ),
    ),
    56: Scenario(
        "a data directory of 3.9.1: all clients read it",
        (
            *stored_groups("records_of_other_versions_and_other_layouts_are_skipped"),
            *named("integration/test_later_directories", "ours_takes_over_from_3_9"),
        ),
    ),
    57: Scenario(
        "compaction of mixed formats: last values per key, tombstones go in time",
        (
            *log(
                "formats",
                "compaction_takes_records_out_of_batches",
                "compaction_of_format_1",
                "compaction_keeps_control_batches",
                "replicas_that_were_cleaned_differently_agree",
            ),
            *message("retained", "a_batch_against_a_plain_reading"),
            *sets("57_compaction_of_mixed_formats"),
        ),
    ),
    58: Scenario(
        "mutated produce and join frames: no crash, all answered, memory level",
        (
            *named("tests/live/test_fuzz_later", "damaged_requests_of_later_versions_harm_nobody"),
            *server("later_versions", "every_request_that_can_be_read_is_answered"),
        ),
    ),
}


def test_no_number_is_left_out() -> None:
    assert list(SCENARIOS) == list(range(1, 59))


@pytest.mark.parametrize("number", SCENARIOS)
def test_its_tests_exist(number: int) -> None:
    scenario = SCENARIOS[number]
    assert scenario.tests or scenario.not_yet
    assert_they_exist(scenario.tests)


def test_tests_with_today_s_clients_are_in_the_table() -> None:
    listed = {test for scenario in SCENARIOS.values() for test in scenario.tests}
    for module in ("clients", "groups", "tools"):
        path = f"integration/test_modern_{module}.py"
        assert all_in(path) <= listed

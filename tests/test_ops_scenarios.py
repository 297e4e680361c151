"""The required behaviour of metrics, health, the lag of groups, REST and the console, and the tests
that show it.

``SCENARIOS``: number -> what is given and what must follow, the tests, as ``file::name``, and what
of it no test shows yet, with the reason. Those below integration/ run real processes.
"""

from __future__ import annotations

import pytest

from tests.scenarios import Scenario, assert_they_exist, named


def metrics(module: str, *names: str) -> tuple[str, ...]:
    return named(f"tests/metrics/test_{module}", *names)


def server(module: str, *names: str) -> tuple[str, ...]:
    return named(f"tests/server/test_{module}", *names)


def real(*names: str) -> tuple[str, ...]:
    return named("integration/test_metrics", *names)


def http(*names: str) -> tuple[str, ...]:
    return named("tests/network/test_http", *names)


def collector(*names: str) -> tuple[str, ...]:
    return named("tests/lag/test_collector", *names)


def rest(module: str, *names: str) -> tuple[str, ...]:
    return named(f"tests/rest/test_{module}", *names)


def with_proxy(*names: str) -> tuple[str, ...]:
    return named("integration/test_rest", *names)


def beside(*names: str) -> tuple[str, ...]:
    return named("integration/test_rest_scenarios", *names)


def console(module: str, *names: str) -> tuple[str, ...]:
    return named(f"tests/console/test_{module}", *names)


def pages(module: str, *names: str) -> tuple[str, ...]:
    return named(f"tests/console/pages/test_{module}", *names)


def cluster(*names: str) -> tuple[str, ...]:
    return pages("cluster", *names)


def live(*names: str) -> tuple[str, ...]:
    return named("integration/test_console_web", *names)


def scenes(*names: str) -> tuple[str, ...]:
    return named("integration/test_console_scenes", *names)


def moving(*names: str) -> tuple[str, ...]:
    return named("integration/test_moves", *names)


def listeners(*names: str) -> tuple[str, ...]:
    return named("integration/test_web_listeners", *names)


def in_browser(*names: str) -> tuple[str, ...]:
    return named("integration/test_console_browser", *names)


SCENARIOS = {
    # Metrics and health
    1: Scenario(
        "1,000 messages: the text parses, no series twice; messages and bytes rose with and "
        "without topic",
        (
            *metrics("exposition", "every_kind"),
            *server("broker_metrics", "produced_messages_and_their_bytes"),
            *real("what_was_produced_is_counted", "the_text_passes_promtool"),
        ),
    ),
    2: Scenario(
        "the same load on the original, read over JMX: equal counts",
        (
            *named(
                "integration/test_metrics_beside_original",
                "every_counter_agrees",
                "a_fetch_that_waits_is_counted_once",
            ),
            *server("broker_metrics", "commits_count_as_messages_of_the_offsets_topic"),
        ),
    ),
    3: Scenario(
        "every row of the beans has its series, with name, type and labels",
        (
            *metrics(
                "names", "every_bean_has_its_series", "nothing_else_is_declared_under_its_names"
            ),
            *real("every_declared_series_appears"),
        ),
    ),
    4: Scenario(
        "a gzip set of 50: 50 messages, the bytes of the wire",
        server("broker_metrics", "messages_inside_others_count_and_bytes_are_those_of_the_wire"),
    ),
    5: Scenario(
        "a deleted topic leaves no series",
        (
            *server("broker_metrics", "series_end_with_their_topic"),
            *metrics("topics", "a_topic_that_is_gone_has_no_series_and_stays_in_the_total"),
            *real("a_deleted_topic_leaves_no_series"),
        ),
    ),
    6: Scenario(
        "a broker dies and comes back: under-replicated partitions, one controller, isrs expand",
        (
            *server("broker_metrics", "partitions_by_role", "the_controller_s_view"),
            *real("a_broker_that_dies_and_comes_back"),
        ),
    ),
    7: Scenario(
        "a silent follower: isrs shrink; a produce that timed out counts, also by partition",
        (
            *server("broker_metrics", "produces_that_are_not_acknowledged_in_time"),
            *server("isr", "changes_are_counted"),
            *real(
                "a_silent_follower_and_a_produce_that_waits_for_it",
                "a_produce_that_a_silent_follower_lets_time_out",
            ),
        ),
    ),
    8: Scenario(
        "unclean elections are counted on the controller",
        (
            *named("tests/controller/test_active_controller", "unclean_elections_are_counted"),
            *named("tests/controller/test_stats", "terms_share_the_counts"),
            *server("broker_metrics", "the_controller_s_view"),
            *real("unclean_elections_are_counted"),
        ),
    ),
    9: Scenario(
        "idle shares are near 1 on an idle broker and never leave 0..1",
        (
            *metrics(
                "meters",
                "a_thread_that_works_is_not_idle",
                "a_thread_that_waits_for_a_processor_is_not_idle",
                "an_idle_thread_is_near_1",
                "an_idle_share_never_leaves_0_to_1",
            ),
            *real("idle_shares_of_an_idle_broker_and_under_load"),
        ),
    ),
    10: Scenario(
        "produces that wait 200 ms: quantile, count, and parts that add up",
        (
            *metrics("requests", "the_parts_add_up"),
            *metrics("meters", "values_are_shown_in_their_unit"),
            *server("broker_metrics", "produces_that_wait_for_followers"),
            *real("what_was_produced_is_counted"),
        ),
    ),
    11: Scenario(
        "a long poll of 500 ms; followers count apart",
        (
            *server("broker_metrics", "a_long_poll_without_data"),
            *metrics("requests", "fetches_count_in_their_sum"),
        ),
    ),
    12: Scenario(
        "1,000 partitions, two scrapers: pauses below 50 ms, the throughput within 5 %",
        (
            *metrics("exposition", "a_family_in_pieces_has_one_head"),
            *server(
                "broker_metrics",
                "others_run_after_each_piece_of_a_scrape",
                "no_piece_of_a_scrape_holds_the_loop",
            ),
            *real("two_scrapers_of_1000_partitions_under_load"),
        ),
    ),
    13: Scenario(
        "slow readers and half requests: others are served, connections end by the deadline",
        http(
            "a_request_that_does_not_end_is_closed",
            "bytes_now_and_then_do_not_move_the_deadline",
            "who_does_not_read_is_closed_and_others_are_served",
        ),
    ),
    14: Scenario(
        "http.port is busy or not set; JMX_PORT alone",
        (
            *server("monitoring", "it_is_off_unless_a_port_is_set"),
            *server("metric_outputs", "a_taken_port_is_an_error_and_the_broker_goes_on"),
        ),
    ),
    15: Scenario(
        "OpenMetrics, gzip, HEAD, unknown paths, POST",
        (
            *server(
                "http_endpoints",
                "metrics_in_both_formats",
                "gzip_if_it_is_asked_for",
                "nothing_else_is_there_and_nothing_can_be_changed",
            ),
            *metrics("exposition", "open_metrics_end_once"),
            *http("head_has_no_body"),
        ),
    ),
    16: Scenario(
        "names with quotes, backslashes, line ends and braces come back from the text",
        metrics("exposition", "any_text_comes_back_as_a_label"),
    ),
    17: Scenario(
        "the CSV reporter of a broker: a file for every series, the original's columns",
        (
            *metrics(
                "csv_reporter",
                "each_series_has_a_file_with_the_columns_of_its_kind",
                "it_reports_each_interval",
                "a_directory_that_cannot_be_written_is_named",
            ),
            *server("monitoring", "the_csv_reporter_needs_its_class_and_its_switch"),
        ),
    ),
    18: Scenario(
        "/jmx: beans under the original's names and attributes, by patterns",
        (
            *metrics("jmx", "beans_have_the_attributes_of_their_kind", "patterns"),
            *server("http_endpoints", "beans_under_their_names"),
        ),
    ),
    19: Scenario(
        "collectors of consumers and producers",
        (
            *metrics(
                "clients",
                "clients_share_a_family_and_come_and_go",
                "a_distribution_appears_with_its_first_value",
            ),
            *metrics("client_names", "every_bean_has_its_series"),
            *named("tests/consumer/test_connector", "series_for_prometheus"),
            *named("tests/consumer/test_simple", "fetches_are_timed_and_sized"),
            *named("tests/producer/test_producer", "metrics"),
            *named("tests/producer/test_metrics", "a_round_is_counted_by_the_task_that_writes"),
            *named("tests/producer/test_kafka_producer", "series_of_topics_and_nodes"),
            *named(
                "tests/tools/mirror/test_channel",
                "sizes_and_the_waits_of_producers",
                "the_waits_of_streams_are_shared_out_among_them",
            ),
            *named(
                "tests/tools/mirror/test_pipeline",
                "the_channel_is_told_what_is_under_way_and_who_waits",
            ),
            *named("integration/test_data_movers", "the_metrics_of_a_mirror"),
        ),
    ),
    20: Scenario(
        "live and ready while a broker starts, recovers, runs, stops, and without ZooKeeper or a "
        "disk",
        (
            *server(
                "health",
                "the_states_of_a_broker",
                "a_broker_that_runs_is_ready_unless_a_check_says_no",
            ),
            *server("http_endpoints", "health", "a_loop_that_comes_round_late_is_not_live"),
            *server("metric_outputs", "a_broker_that_starts_serves_already"),
            *server("broker_metrics", "without_zookeeper_or_a_disk_a_broker_is_not_ready"),
            *named(
                "integration/test_health",
                "a_broker_that_recovers_is_alive_and_not_ready",
                "a_broker_that_hands_its_leaderships_over_is_not_ready",
                "a_broker_with_a_failed_disk_is_alive_and_not_ready",
                "a_broker_without_zookeeper_is_alive_and_not_ready",
            ),
        ),
    ),
    # The lag of groups
    21: Scenario(
        "a group in ZooKeeper that stopped at 40 of 100: lag 60",
        (
            *collector("a_group_that_stopped_in_zookeeper"),
            *live("lag_of_groups_as_the_tools_show_it"),
            *named(
                "integration/test_lag_beside_kafka_exporter",
                "a_group_in_zookeeper_that_stopped_at_40_of_100",
            ),
        ),
    ),
    22: Scenario(
        "a group stored in brokers, and dual commits",
        (
            *collector(
                "a_group_that_stopped_in_kafka", "dual_commit_counts_with_the_larger_offset"
            ),
            *named("integration/test_lag", "a_scala_consumer_that_stopped_at_40_of_100"),
        ),
    ),
    23: Scenario(
        "without a commit no lag; never below 0",
        (
            *collector(
                "a_partition_without_a_commit_has_no_lag",
                "an_offset_beyond_the_end_is_flagged_and_never_negative",
            ),
        ),
    ),
    24: Scenario(
        "the lag in seconds of a stopped consumer",
        (
            *collector("lag_in_seconds_is_the_time_since_the_consumer_stopped"),
            *named("tests/lag/test_log_ends", "an_offset_was_appended_between_two_looks"),
            *collector("a_lag_that_is_older_is_known_where_messages_have_times"),
        ),
    ),
    25: Scenario(
        "OK, WARN, STALL, STOP and REWIND as Burrow judges",
        (
            *named(
                "tests/lag/test_judgement",
                "the_judgement_of_a_full_window",
                "a_consumer_of_a_log_that_was_quiet_has_not_stopped",
            ),
            *named("integration/test_lag_beside_burrow", "both_judge_alike"),
        ),
    ),
    26: Scenario(
        "500 groups: one Offsets request a leader, no overlap",
        (
            *collector("one_offsets_request_for_each_leader"),
            *console("observer", "both_loops_look_again_and_again"),
            *named(
                "tests/lag/test_offsets_topic",
                "one_fetch_reads_all_partitions_of_a_leader_and_none_without_news",
            ),
            *named("tests/lag/test_zookeeper_groups", "many_groups_take_as_many_calls_as_one"),
            *named("tests/zk/test_client", "many_nodes_are_read_together"),
            *named("integration/test_lag", "500_groups_take_one_request_for_the_ends_of_all_logs"),
        ),
    ),
    # REST
    27: Scenario(
        "the calls of the first quick start, on both kinds of clusters",
        (*with_proxy("the_quick_start", "json_records"), *beside("the_quick_start_by_curl")),
    ),
    28: Scenario(
        "media types by Accept and Content-Type: 406, 415",
        (
            *rest("media", "the_type_of_metadata", "request_types_that_are_not_taken"),
            *rest("application", "types_of_answers", "types_that_are_not_acceptable"),
            *rest("application", "bodies_of_other_types"),
        ),
    ),
    29: Scenario(
        "records with key, partition, neither, null",
        (
            *rest("topics", "offsets_come_in_the_order_asked"),
            *with_proxy("keys_are_where_the_console_producer_of_java_puts_them"),
        ),
    ),
    30: Scenario(
        "bad bodies: 422 and 400, nothing is produced",
        rest("topics", "wrong_bodies_write_nothing"),
    ),
    31: Scenario(
        "one record of three is too large",
        (
            *rest("topics", "a_record_that_is_too_large_fails_alone"),
            *with_proxy("large_records_alone"),
        ),
    ),
    32: Scenario(
        "unknown topics and partitions, partitions without a leader",
        (
            *rest("topics", "unknown_topics_and_partitions", "writing_to_what_does_not_exist"),
            *with_proxy("what_does_not_exist"),
        ),
    ),
    33: Scenario(
        "reading by offset inside a compressed set, over gaps, at the end",
        (
            *rest("topics", "messages_of_a_compressed_set_from_the_offset_on"),
            *rest("topics", "the_next_message_after_a_gap", "the_end_of_the_log_and_beyond_it"),
            *with_proxy("a_compressed_set_is_read_from_its_middle"),
        ),
    ),
    34: Scenario(
        "a REST instance and a Scala consumer in one group",
        (
            *rest("consumers", "a_group_is_shared_with_a_consumer_of_another_program"),
            *with_proxy("a_group_is_shared_with_another_consumer"),
            *beside("a_group_is_shared_with_a_scala_consumer"),
        ),
    ),
    35: Scenario(
        "commits through REST and their nodes",
        (
            *rest("consumers", "messages_that_were_not_committed_come_again"),
            *rest("consumers", "create_read_commit_delete"),
            *with_proxy("messages_come_again_until_they_are_committed"),
        ),
    ),
    36: Scenario(
        "40901, 40902, 40403, 40601, 42204",
        rest("consumers", "conflicts", "wrong_settings_make_no_instance"),
    ),
    37: Scenario(
        "a message larger than max_bytes, and than the server's limit",
        (
            *rest(
                "consumers",
                "reads_are_limited_by_bytes_and_have_one_message_at_least",
                "a_message_that_is_larger_than_the_limit_is_named_on_every_try",
            ),
            *beside("messages_larger_than_max_bytes_and_than_the_limit"),
        ),
    ),
    38: Scenario(
        "idle instances end, those that read live",
        (
            *rest("consumers", "idle_instances_leave_their_groups"),
            *rest("consumers", "a_read_in_progress_is_not_ended_as_idle"),
            *with_proxy("idle_instances_and_the_end"),
        ),
    ),
    39: Scenario(
        "200 long reads and produces beside; the limit of instances",
        (
            *rest("consumers", "the_number_of_instances_is_limited"),
            *with_proxy("long_reads_do_not_hold_up_others"),
            *beside("produces_do_not_wait_for_long_reads"),
        ),
    ),
    40: Scenario(
        "SIGTERM: reads end, instances leave their groups, exit 143",
        with_proxy("idle_instances_and_the_end"),
    ),
    41: Scenario(
        "unmodified clients of npm and PyPI; kafka-rest of PyPI sends Avro alone, which is refused "
        "with the reason",
        (
            *with_proxy("the_client_of_node"),
            *named(
                "integration/test_rest_pypi",
                "kafka_rest_client",
                "kafka_rest_is_told_that_there_is_no_avro",
            ),
            *rest("media", "avro_is_refused_with_the_reason"),
            *named("tests/test_pages", "deviations_are_told_where_users_look"),
        ),
    ),
    42: Scenario(
        "v2: assignments, offsets + 1, positions",
        (
            *rest("consumers_v2", "the_offset_posted_is_that_of_the_last_message", "positions"),
            *with_proxy("v2_with_an_assignment"),
        ),
    ),
    43: Scenario(
        "v2: subscriptions by pattern, 40903, trailing slashes",
        (
            *rest("consumers_v2", "a_pattern_takes_topics_that_come_later"),
            *rest("consumers_v2", "what_excludes_each_other", "wrong_bodies"),
            *rest("consumers_v2", "positions_of_what_is_not_assigned"),
            *rest("application", "every_path_may_end_with_a_slash"),
            *with_proxy("v2_with_a_pattern"),
        ),
    ),
    44: Scenario(
        "v3: topics, settings, reassignments beside the tools",
        (
            *rest("admin_v3", "reassignments"),
            *with_proxy("topics_by_v3"),
            *beside("a_reassignment_is_shown_by_v3_as_by_the_tool"),
        ),
    ),
    # Console
    45: Scenario(
        "three brokers, one original: overview, a killed one turns red",
        (
            *live("an_original_broker_beside_ours_and_its_end"),
            *in_browser("a_page_changes_without_a_reload"),
            *cluster("brokers_of_both_kinds", "a_killed_broker_turns_the_overview_red"),
            *scenes("a_killed_broker_of_three"),
        ),
    ),
    46: Scenario(
        "a topic's row: preferred, under-replicated, as the tools say",
        (
            *cluster("a_partition_whose_leader_is_not_preferred"),
            *scenes("a_killed_broker_of_three"),
        ),
    ),
    47: Scenario(
        "a reassignment: plan, progress, rollback, a second one refused",
        (
            *pages(
                "moves",
                "a_move_from_the_proposal_to_the_way_back",
                "moves_of_the_tool_are_shown",
                "wrong_moves_are_refused",
            ),
            *moving(
                "a_move_of_the_console_and_the_way_back",
                "a_move_of_the_tool_is_shown_until_its_end",
            ),
        ),
    ),
    48: Scenario(
        "payloads of all kinds; no script runs",
        (
            *pages(
                "messages",
                "a_script_is_text",
                "empty_and_null_values_and_keys",
                "a_codec_is_named",
                "the_exact_bytes_are_downloaded",
            ),
            *console("decoders", "each_decoder", "large_values_are_cut_and_their_size_is_true"),
            *in_browser("no_script_of_a_message_runs_and_no_page_breaks_its_policy"),
            *live("a_topic_from_its_creation_to_its_end"),
            *scenes("payloads_of_all_kinds"),
        ),
    ),
    49: Scenario(
        "100,000 messages: newest first, older, jump, search",
        (
            *pages(
                "messages",
                "newest_first_and_older_ones_without_gaps_or_repeats",
                "a_jump_to_an_offset_and_on",
                "a_search_tells_how_much_it_read_and_goes_on",
                "reading_commits_nothing",
            ),
            *console(
                "browser",
                "the_bytes_of_a_look_are_bounded",
                "backward_over_the_gaps_of_a_compacted_log",
            ),
            *scenes("a_hundred_thousand_messages"),
        ),
    ),
    50: Scenario(
        "a live tail and a burst",
        (
            *pages("messages", "a_tail_shows_what_came_and_counts_the_rest"),
            *console("browser", "connections_end_with_the_look"),
            *scenes("a_live_tail_shows_a_burst"),
        ),
    ),
    51: Scenario(
        "a group's reset, refused while it lives",
        (
            *pages(
                "group_changes",
                "a_group_with_a_live_member_is_left_alone",
                "the_plan_shows_old_and_new_offsets",
                "confirming_sets_the_offsets",
                "offsets_in_both_storages_are_set",
                "a_plan_for_another_state_is_refused",
            ),
            *live(
                "lag_of_groups_as_the_tools_show_it",
                "offsets_in_both_storages_are_reset_once_the_member_is_gone",
            ),
        ),
    ),
    52: Scenario(
        "a graph of lag, kept over a restart",
        (
            *pages("groups", "the_graph_grows_with_the_lag"),
            *console("history", "a_file_keeps_points_over_a_restart"),
        ),
    ),
    53: Scenario(
        "without JavaScript",
        (
            *live("a_topic_from_its_creation_to_its_end"),
            *console("app", "pages_have_no_script_and_no_style_of_their_own"),
            *scenes("without_javascript"),
        ),
    ),
    54: Scenario(
        "without ZooKeeper",
        (
            *live("without_zookeeper_the_last_state_is_shown"),
            *cluster(
                "without_zookeeper_the_last_state_is_shown_with_its_age",
                "no_page_waits_for_zookeeper_for_longer_than_five_seconds",
            ),
        ),
    ),
    # Safety
    55: Scenario(
        "listeners on the loopback interface only; other names in Host are refused",
        (
            *http("only_known_hosts_are_served"),
            *server(
                "metric_outputs",
                "a_broker_that_starts_serves_already",
                "an_address_for_all_gets_a_warning",
            ),
            *live("only_loopback_and_known_names"),
            *with_proxy("only_loopback_and_known_hosts"),
        ),
    ),
    56: Scenario(
        "read-only: no change by any route, no button",
        (
            *console(
                "app",
                "a_read_only_console_refuses_every_change",
                "a_read_only_console_has_no_form_for_a_change",
                "the_badge_tells_of_a_read_only_console",
            ),
            *rest("access", "a_read_only_proxy_refuses_every_change"),
        ),
    ),
    57: Scenario(
        "tokens and origins; no change by GET",
        (
            *console("app", "a_change_needs_the_token_of_a_page", "no_page_changes_anything"),
            *live("a_form_of_another_site_is_refused"),
            *rest("access", "pages_of_other_sites_may_not_call"),
            *rest("access", "reading_routes_change_nothing_in_zookeeper"),
        ),
    ),
    58: Scenario(
        "basic authentication with roles, TLS",
        (
            *console(
                "app",
                "with_users_everybody_logs_in",
                "users_make_the_changes_of_their_role",
                "failed_logins_are_slow_and_told",
            ),
            *console("config", "changes_from_other_machines_need_users_and_tls"),
            *named("tests/security/test_users", "a_user_has_a_role_if_the_password_is_right"),
            *rest("access", "users_and_their_roles"),
            *rest("server", "passwords_are_not_sent_in_clear_unless_told_to"),
            *listeners("tls_and_logins_by_curl"),
        ),
    ),
    59: Scenario(
        "deletion needs the name; the audit log; nothing is marked where the controller does not "
        "delete; one of 0.8.2.2 does not tell whether it does: there the user has to confirm it",
        (
            *pages(
                "topic_changes",
                "deletion_needs_the_typed_name",
                "a_stale_form_changes_nothing",
                "where_the_controller_does_not_delete_the_page_says_so_and_nothing_is_marked",
                "a_topic_is_marked_where_the_controller_deletes",
                "where_the_controller_does_not_tell_whether_it_deletes_the_user_has_to",
            ),
            *console("audit", "a_change_is_one_line"),
            *live(
                "a_topic_from_its_creation_to_its_end",
                "deletion_under_an_original_controller_has_to_be_confirmed",
            ),
            *in_browser("a_cluster_that_does_not_delete_topics"),
            *named("tests/test_pages", "deviations_are_told_where_users_look"),
        ),
    ),
    60: Scenario(
        "malformed requests to each listener",
        (
            *http("a_bad_request_is_refused", "connections_are_bounded"),
            *listeners("malformed_requests"),
        ),
    ),
}


def test_no_number_is_left_out() -> None:
    assert list(SCENARIOS) == list(range(1, 61))


@pytest.mark.parametrize("number", SCENARIOS)
def test_its_tests_exist(number: int) -> None:
    scenario = SCENARIOS[number]
    assert scenario.tests or scenario.not_yet
    assert_they_exist(scenario.tests)

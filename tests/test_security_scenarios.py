"""The required behaviour of listeners, logins, access rules and quotas, and the tests that show it.

``SCENARIOS``: number -> what is given and what must follow, the tests, as ``file::name``, and what
of it no test shows yet, with the reason. Those below integration/ run real processes.
"""

from __future__ import annotations

import pytest

from tests.scenarios import Scenario, assert_they_exist, named


def security(module: str, *names: str) -> tuple[str, ...]:
    return named(f"tests/security/test_{module}", *names)


def rules(*names: str) -> tuple[str, ...]:
    return named("tests/server/authorization/test_rules", *names)


def acl_changes(*names: str) -> tuple[str, ...]:
    return named("tests/server/test_acl_changes", *names)


def sasl(*names: str) -> tuple[str, ...]:
    return named("integration/test_sasl", *names)


def login(*names: str) -> tuple[str, ...]:
    return named("tests/network/test_login", *names)


def server(module: str, *names: str) -> tuple[str, ...]:
    return named(f"tests/server/test_{module}", *names)


def acls(*names: str) -> tuple[str, ...]:
    return named("integration/test_acls", *names)


def tls(*names: str) -> tuple[str, ...]:
    return named("tests/network/test_tls", *names)


def with_clients(*names: str) -> tuple[str, ...]:
    return named("integration/test_tls", *names)


def throttle(*names: str) -> tuple[str, ...]:
    return named("tests/server/quotas/test_throttle", *names)


def network(*names: str) -> tuple[str, ...]:
    return named("tests/network/test_server", *names)


def with_quotas(*names: str) -> tuple[str, ...]:
    return named("integration/test_quotas", *names)


def tls_clients(*names: str) -> tuple[str, ...]:
    return named("integration/test_tls_clients", *names)


def hostile(*names: str) -> tuple[str, ...]:
    return named("integration/test_hostile_clients", *names)


def tls_cluster(*names: str) -> tuple[str, ...]:
    return named("integration/test_tls_cluster", *names)


SCENARIOS = {
    # Listeners and mixed clusters
    1: Scenario(
        "only the port of 0.8: the registration is byte for byte that of 0.8.2.2",
        named("tests/zk/test_endpoints", "one_plain_listener_is_written_as_by_0_8_2_2"),
    ),
    2: Scenario(
        "PLAINTEXT and SSL: version 2, both ports answer, Metadata by listener, code 5",
        (
            *named("tests/zk/test_endpoints", "listeners_named_as_their_protocols_are_version_2"),
            *server("registrations", "brokers_of_a_listener"),
            *named(
                "tests/server/apis/test_metadata",
                "a_leader_that_the_senders_listener_does_not_lead_to",
            ),
            *with_clients("brokers_replicate_over_tls_and_clients_use_it"),
        ),
    ),
    3: Scenario(
        "an original broker joins; leader killed on either side",
        (
            *with_clients("an_original_broker_beside_listeners"),
            *tls_cluster("3_leaders_are_killed_on_either_side"),
        ),
    ),
    4: Scenario(
        "only SSL listeners: a loud warning names the null host",
        server("server_listeners", "a_broker_that_0_8_cannot_reach_says_so"),
    ),
    5: Scenario(
        "wrong listeners end the start with one line that names the setting",
        (
            *named("tests/test_listeners", "a_wrong_setting_is_named"),
            *server("server_listeners", "a_start_with_wrong_listeners"),
        ),
    ),
    6: Scenario(
        "registrations of versions 2 to 5, and garbage there",
        (
            *named(
                "tests/zk/test_endpoints",
                "version_5_of_another_broker",
                "what_makes_no_sense_is_passed_over",
            ),
            *server("registrations", "garbage_is_passed_over", "endpoints_for_brokers"),
        ),
    ),
    7: Scenario(
        "an expired certificate between brokers: only that broker falls out, until it is renewed",
        (
            *tls(
                "a_client_refuses_wrong_servers",
                "changed_files_are_taken_into_use_if_they_are_good",
            ),
            *tls_cluster("7_a_certificate_that_ends_takes_one_broker_out"),
            *named(
                "tests/test_zookeeper",
                "a_certificate_that_was_replaced_is_used_for_the_next_connection",
            ),
        ),
    ),
    # TLS
    8: Scenario(
        "client certificates: without one a failed handshake and one INFO line; with one its name",
        (
            *tls(
                "the_certificate_of_a_client_says_who_it_is",
                "clients_with_no_or_a_wrong_certificate_are_not_served",
                "a_revoked_client_is_not_served",
            ),
            *security("names", "subjects_are_written_as_by_java", "rules"),
            *with_clients("clients_without_a_certificate_are_refused"),
        ),
    ),
    9: Scenario(
        "librdkafka (fallback 0.8.2.2), kafka-python and kcat: produce, consume, groups over TLS",
        (
            *with_clients(
                "brokers_replicate_over_tls_and_clients_use_it",
                "an_original_broker_beside_listeners",
            ),
            *tls_clients("9_kcat", "9_java"),
        ),
    ),
    10: Scenario(
        "original producer and console consumer behind stunnel",
        tls_clients("10_the_originals_console_tools_behind_stunnel"),
    ),
    11: Scenario(
        "large fetches over TLS: right bytes, level memory, CPU",
        (*tls("slow_readers_get_files_whole"), *tls_clients("11_large_fetches")),
    ),
    12: Scenario(
        "records over many TLS records, many requests in one",
        tls("bytes_of_many_records_and_many_requests_in_one"),
    ),
    13: Scenario(
        "plain bytes and HTTP on the TLS port, a TLS hello on the plain port",
        tls(
            "bytes_that_are_not_tls_end_the_connection",
            "a_hello_on_the_plain_port_ends_the_connection",
        ),
    ),
    14: Scenario(
        "500 handshakes begun and left: all closed after 10 s, others served meanwhile",
        (
            *named("tests/network/test_half_open", "the_late_are_shut_down"),
            *tls("half_open_handshakes_end_and_others_are_served"),
            *with_clients("half_open_handshakes_do_not_hold_others_up"),
            *hostile("ten_thousand_half_open_handshakes"),
        ),
    ),
    15: Scenario(
        "certificates replaced on disk, good and bad ones",
        tls("changed_files_are_taken_into_use_if_they_are_good"),
    ),
    16: Scenario(
        "TLS 1.0, null ciphers and renegotiation are refused",
        (
            *tls("old_versions_and_null_ciphers_are_refused", "renegotiation_is_off"),
            *hostile("16_renegotiation_is_refused"),
        ),
    ),
    # Logins
    17: Scenario(
        "raw tokens: right, wrong, empty name, foreign authzid, no NUL, 600 kB",
        (
            *sasl("raw_token", "wrong_raw_tokens", "a_token_of_600_kb"),
            *login("the_right_raw_token", "other_raw_tokens_close_without_a_byte"),
        ),
    ),
    18: Scenario(
        "SaslAuthenticate with a wrong password: 58 with the text, for unknown names too",
        (
            *sasl("a_wrong_password_in_sasl_authenticate"),
            *login("a_wrong_password_and_an_unknown_user_are_the_same", "a_wrong_proof"),
        ),
    ),
    19: Scenario(
        "SCRAM users of our and of Kafka's kafka-configs, with confluent-kafka and kafka-python",
        (
            *sasl("confluent_kafka", "kafka_python", "java", "scram"),
            *sasl("users_are_changed_through_a_broker"),
            *named("integration/test_configs_tool", "users"),
        ),
    ),
    20: Scenario(
        "a wrong server key: the client refuses",
        (
            *named(
                "tests/network/test_client_login",
                "a_server_that_does_not_know_the_password_is_refused",
            ),
            *security("scram", "bad_last_answers"),
        ),
    ),
    21: Scenario(
        "a replayed final message, a foreign nonce, few iterations, another proof: closed",
        security("scram", "a_replayed_final_message", "bad_final_messages", "bad_first_answers"),
    ),
    22: Scenario(
        "users are altered and deleted: the next login within 1 s, who is in stays in",
        (
            *sasl("changes_count_within_a_second_on_every_broker"),
            *server("scram_credentials", "an_altered_user_counts"),
        ),
    ),
    23: Scenario(
        "any other API before the login: closed, nothing is executed",
        (
            *sasl("nothing_is_executed_before_the_login", "the_plain_port_knows_no_login"),
            *login("other_requests_at_the_beginning", "no_api_is_served_while_a_token_is_due"),
        ),
    ),
    24: Scenario(
        "ApiVersions 0, 3, 99 before and after the login",
        (
            *login(
                "versions_before_the_login",
                "versions_in_version_3",
                "an_unknown_version_of_versions_may_be_followed_by_a_known_one",
                "versions_after_the_login",
            ),
            *named(
                "tests/server/apis/test_versions",
                "listeners_with_logins_name_versions_even_beside_an_original",
            ),
        ),
    ),
    25: Scenario(
        "a flood of wrong logins: others get in within 1 s, the log is bounded",
        (
            *sasl("a_flood_of_wrong_logins"),
            *server("logins", "a_line_per_address_and_minute"),
            *named("tests/network/test_failures", "ever_new_addresses_do_not_take_memory"),
            *sasl("25_ten_thousand_wrong_logins_as_fast_as_two_processes_send_them"),
        ),
    ),
    26: Scenario(
        "unknown names and wrong passwords over 1,000 tries: the same bytes and time",
        (
            *login("plain_tells_nothing_of_names", "scram_tells_nothing_of_names"),
            *server(
                "scram_credentials",
                "unknown_users_have_the_same_salt_on_every_broker_and_after_a_restart",
            ),
        ),
    ),
    27: Scenario(
        "a login that never ends: closed after 10 s",
        (
            *sasl("a_login_that_never_ends", "many_half_open_connections_with_large_tokens"),
            *named("tests/network/test_server", "a_login_has_a_deadline"),
        ),
    ),
    # Access rules
    28: Scenario(
        "no rules: every API is refused with the code and the layout of later releases",
        (
            *rules(
                "28_a_refusal_has_the_bytes_of_later_releases",
                "28_later_requests_are_refused",
                "every_api_has_a_rule",
                "settings_of_topics_and_brokers",
            ),
            *acls("librdkafka_is_refused_by_name", "kafka_python_is_refused_by_name"),
        ),
    ),
    29: Scenario(
        "allow.everyone.if.no.acl.found: all are allowed; a rule for bob refuses alice that topic",
        (
            *rules("29_everybody_may_while_there_are_no_rules"),
            *security("authorizer", "without_rules_everyone_may_be_allowed"),
        ),
    ),
    30: Scenario(
        "produce to an allowed and a refused topic: one is stored, the other is 29",
        rules("30_a_request_is_served_in_part"),
    ),
    31: Scenario(
        "Deny wins over Allow, by name, by * and by prefix; Deny of Describe over Allow of Read",
        security("acls", "deny_wins", "deny_implies_nothing", "it_decides_as_the_model"),
    ),
    32: Scenario(
        "Read from one address: the same user from another one is refused",
        (*rules("32_hosts_count"), *security("acls", "hosts_are_addresses")),
    ),
    33: Scenario(
        "acks 0 to a refused topic: the connection is closed, allowed partitions are stored",
        (
            *rules("33_without_acks_the_connection_is_closed"),
            *acls("33_a_refusal_without_acks_closes_the_connection"),
        ),
    ),
    34: Scenario(
        "Read is withdrawn while a fetch waits: what comes then is not sent",
        rules("34_a_right_that_goes_while_a_fetch_waits_is_gone"),
    ),
    35: Scenario(
        "metadata of all topics and of named ones; creation needs Create",
        rules(
            "35_a_list_of_all_topics_has_the_senders_own",
            "35_a_topic_is_created_by_those_who_may",
            "35_create_on_the_cluster_is_for_all_topics",
            "35_without_creation_a_missing_topic_is_missing",
        ),
    ),
    36: Scenario(
        "requests between brokers from others: 31, and nothing happens",
        (
            *rules(
                "28_a_refusal_has_the_bytes_of_later_releases",
                "36_nobody_but_brokers_shuts_a_broker_down",
                "36_brokers_need_cluster_action_alone",
            ),
        ),
    ),
    37: Scenario(
        "an original broker is allowed by its address; a client elsewhere is refused",
        acls("37_an_original_broker_replicates_by_its_address"),
    ),
    38: Scenario(
        "kafka-acls of Kafka adds, ours lists, and the reverse; brokers follow within a second",
        (
            *named(
                "tests/tools/admin/test_acls",
                "a_producer_is_added_and_listed",
                "the_nodes_are_those_of_kafka",
            ),
            *acl_changes("changes_are_followed", "rules_from_before_the_start_hold"),
            *acls(
                "38_both_tools_show_and_change_the_same_rules",
                "38_a_change_by_kafkas_tool_is_followed",
            ),
        ),
    ),
    39: Scenario(
        "garbage as rules: that resource is refused to all but super users, with one ERROR",
        (
            *acl_changes("what_cannot_be_read_is_refused", "unknown_types_are_passed_over"),
            *security("acl_nodes", "what_is_not_understood_is_an_error"),
        ),
    ),
    40: Scenario(
        "ZooKeeper is away: the last known rules hold",
        (
            *acl_changes("without_zookeeper_the_last_rules_hold"),
            *acls("40_without_zookeeper_the_last_rules_hold"),
        ),
    ),
    41: Scenario(
        "an old consumer of a refused topic registers, gets no data, and fills no log",
        acls("41_the_originals_tools_are_refused_and_stay_quiet"),
    ),
    42: Scenario(
        "offsets of another group: 30",
        (
            *rules("42_offsets_need_the_group_and_the_topic"),
            *acls(
                "42_offsets_of_another_group_are_refused",
                "42_kafka_consumer_groups_is_refused_another_group",
            ),
        ),
    ),
    43: Scenario(
        "super users whose names hold commas and blanks are compared as a whole",
        security("authorizer", "super_users_are_separated_by_semicolons"),
    ),
    # Quotas and limits
    44: Scenario(
        "a producer of 0.8 keeps its rate; answers come at once, the next request is read later",
        (
            *throttle(
                "44_a_producer_of_0_8_keeps_its_rate",
                "44_no_pause_is_longer_than_clients_wait_and_the_rest_is_owed",
                "44_a_producer_that_waits_for_long_keeps_its_rate_with_large_requests",
                "44_later_versions_are_told_the_pause",
            ),
            *network("a_muted_connection_is_answered_and_read_from_later"),
            *with_quotas(
                "44_a_producer_of_0_8_keeps_its_rate",
                "the_originals_tools_are_held_and_send_nothing_twice",
                "clients_of_today_are_told",
            ),
        ),
        "requests of more than five seconds' worth, such as 20 kB at 1000 B/s, pass the rate of a "
        "producer that waits for less than two minutes: it would send them again",
    ),
    45: Scenario(
        "a producer with acks 0: TCP holds it, and the memory is level",
        (
            *throttle("45_a_producer_without_answers_is_muted"),
            *with_quotas("45_a_producer_without_answers_is_held_by_tcp"),
        ),
    ),
    46: Scenario(
        "a consumer gets its rate and one answer more; others are not held",
        (
            *throttle("46_a_consumer_gets_its_rate_and_one_answer_more", "46_others_are_not_held"),
            *with_quotas("46_a_consumer_of_0_8_keeps_its_rate"),
        ),
    ),
    47: Scenario(
        "any number of client ids: sensors are bounded, a named one is exact",
        security(
            "sensors",
            "47_many_ids_share_a_sensor_and_named_ones_do_not",
            "sensors_that_are_not_used_are_dropped",
        ),
    ),
    48: Scenario(
        "quotas set, changed and deleted at run time, in all nine levels",
        (
            *with_quotas("kafkas_tool_writes_the_same_nodes"),
            *security("limits", "48_all_nine_levels_in_order"),
            *named("tests/server/quotas/test_quota_nodes", "48_changes_count"),
            *throttle(
                "48_a_quota_counts_from_the_next_request_on",
                "a_share_of_the_loops_time_holds_in_the_mean",
            ),
            *with_quotas("44_a_producer_of_0_8_keeps_its_rate", "a_share_of_the_loops_time"),
        ),
    ),
    49: Scenario(
        "a muted connection ends as any other: stop, closing client, idle limit",
        (
            *network(
                "49_a_muted_connection_ends_when_its_peer_has_closed",
                "49_a_muted_connection_idles_out",
                "49_a_stop_does_not_wait_for_a_mute",
            ),
            *with_quotas("49_a_stop_does_not_wait_for_a_mute"),
        ),
    ),
    50: Scenario(
        "connections of an address: the eleventh is closed, IPv4-mapped and by name",
        (
            *named("tests/network/test_connection_limits", "50_an_address_has_so_many"),
            *network(
                "connections_beyond_an_addresss_limit_are_closed_without_a_byte",
                "an_override_stands_for_its_host",
                "limits_go_by_address_on_a_socket_for_both_families",
            ),
        ),
    ),
    51: Scenario(
        "large unfinished requests: memory is bounded, finished ones are answered",
        (
            *named(
                "tests/network/test_memory",
                "unfinished_requests_are_read_only_so_far",
                "others_are_served_meanwhile",
                "a_served_request_gives_its_room_back",
                "where_all_wait_one_of_them_goes",
                "where_all_wait_the_one_that_needs_the_most_goes",
                "room_goes_to_the_request_that_needs_the_least",
            ),
            *named("tests/live/test_unfinished", "memory_is_bounded_and_others_are_served"),
            *hostile(
                "51_large_requests_take_the_memory_that_is_set",
                "51_twenty_large_requests_at_once_are_all_answered",
            ),
        ),
    ),
    52: Scenario(
        "fetches of replicas and requests of controllers are not held",
        throttle("52_replicas_and_controllers_are_not_held", "time_of_brokers_is_not_counted"),
    ),
    # Log lines
    53: Scenario(
        "names with line breaks and of 32 kB: a refusal is one line, escaped and cut",
        (
            *security("audit", "a_name_cannot_write_lines_of_its_own"),
            *named(
                "tests/test_log4j",
                "long_names_of_clients_are_cut",
                "long_lines_of_tracebacks_are_cut",
            ),
            *hostile("names_of_any_length_make_short_lines"),
        ),
    ),
    54: Scenario(
        "passwords in settings, logs, DescribeConfigs and tools are shown nowhere",
        (
            *named("tests/security/test_jaas", "it_does_not_show_passwords", "bad_texts"),
            *named("tests/tools/admin/test_config_values", "secrets_are_not_shown"),
            *named("tests/client/test_security", "producers_take_them_and_show_no_password"),
            *sasl("brokers_log_in_at_each_other"),
            *tls("key_files_that_others_can_read_draw_a_warning"),
            *named("tests/test_secret_files", "files_of_passwords"),
            *server("broker", "a_file_with_passwords_that_others_can_read_is_warned_of"),
            *named("tests/test_zookeeper", "a_login_of_kafkas_file", "wrong_settings"),
            *named("tests/zk/test_client", "nodes_of_a_login_are_for_others_to_read"),
            *named(
                "integration/test_zookeeper_security",
                "a_cluster_over_tls_with_acls",
                "a_cluster_is_closed_and_opened_again",
            ),
        ),
    ),
}


def test_the_numbers_are_in_order() -> None:
    assert list(SCENARIOS) == sorted(SCENARIOS)


@pytest.mark.parametrize("number", SCENARIOS)
def test_its_tests_exist(number: int) -> None:
    scenario = SCENARIOS[number]
    assert scenario.tests or scenario.not_yet
    assert_they_exist(scenario.tests)

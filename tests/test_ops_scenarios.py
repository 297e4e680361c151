"""The required behaviour of metrics, health, the lag of groups, REST and the console, and the tests
that show it.

``SCENARIOS``: number -> what is given and what must follow, the tests, as ``file::name``, and what
of it no test shows yet, with the reason. Those below integration/ run real processes.
"""

from __future__ import annotations

import pytest

from tests.scenarios import Scenario, assert_they_exist, named

NOT_BEGUN = "not begun"


def metrics(module: str, *names: str) -> tuple[str, ...]:
    return named(f"tests/metrics/test_{module}", *names)


def server(module: str, *names: str) -> tuple[str, ...]:
    return named(f"tests/server/test_{module}", *names)


def http(*names: str) -> tuple[str, ...]:
    return named("tests/network/test_http", *names)


SCENARIOS = {
    # Metrics and health
    1: Scenario(
        "1,000 messages: the text parses, no series twice; messages and bytes rose with and "
        "without topic",
        (
            *metrics("exposition", "every_kind"),
            *server("broker_metrics", "produced_messages_and_their_bytes"),
        ),
        "no real broker is scraped, and promtool does not run",
    ),
    2: Scenario("the same load on the original, read over JMX: equal counts", (), "not run"),
    3: Scenario(
        "every row of the beans has its series, with name, type and labels",
        metrics("names", "every_bean_has_its_series", "nothing_else_is_declared_under_its_names"),
        "the declarations are compared; no cluster shows that every series appears",
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
        ),
        "not on a cluster, while it is scraped",
    ),
    6: Scenario(
        "a broker dies and comes back: under-replicated partitions, one controller, isrs expand",
        server("broker_metrics", "partitions_by_role", "the_controller_s_view"),
        "no broker is killed",
    ),
    7: Scenario(
        "a silent follower: isrs shrink; a produce that timed out counts, also by partition",
        (
            *server("broker_metrics", "produces_that_are_not_acknowledged_in_time"),
            *server("isr", "changes_are_counted"),
        ),
        "no process is stopped",
    ),
    8: Scenario("unclean elections are counted on the controller", (), "counted, but not tested"),
    9: Scenario(
        "idle shares are near 1 on an idle broker and never leave 0..1",
        metrics("meters", "a_thread_that_works_is_not_idle"),
        "the clock of a thread is tested, no broker under load",
    ),
    10: Scenario(
        "produces that wait 200 ms: quantile, count, and parts that add up",
        (
            *metrics("requests", "the_parts_add_up"),
            *metrics("meters", "values_are_shown_in_their_unit"),
        ),
        "no real follower is waited for",
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
        metrics("exposition", "a_family_in_pieces_has_one_head"),
        "no throughput is measured by a test",
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
        server(
            "monitoring",
            "it_is_off_unless_a_port_is_set",
            "a_taken_port_is_an_error_and_the_broker_goes_on",
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
    19: Scenario("collectors of consumers and producers", (), NOT_BEGUN),
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
            *server("monitoring", "a_broker_that_starts_serves_already"),
            *server("broker_metrics", "without_zookeeper_or_a_disk_a_broker_is_not_ready"),
        ),
        "no real broker goes through these states",
    ),
    # The lag of groups
    21: Scenario("a group in ZooKeeper that stopped at 40 of 100: lag 60", (), NOT_BEGUN),
    22: Scenario("a group stored in brokers, and dual commits", (), NOT_BEGUN),
    23: Scenario("without a commit no lag; never below 0", (), NOT_BEGUN),
    24: Scenario("the lag in seconds of a stopped consumer", (), NOT_BEGUN),
    25: Scenario("OK, WARN, STALL, STOP and REWIND as Burrow judges", (), NOT_BEGUN),
    26: Scenario("500 groups: one Offsets request a leader, no overlap", (), NOT_BEGUN),
    # REST
    27: Scenario("the calls of the first quick start, on both kinds of clusters", (), NOT_BEGUN),
    28: Scenario("media types by Accept and Content-Type: 406, 415", (), NOT_BEGUN),
    29: Scenario("records with key, partition, neither, null", (), NOT_BEGUN),
    30: Scenario("bad bodies: 422 and 400, nothing is produced", (), NOT_BEGUN),
    31: Scenario("one record of three is too large", (), NOT_BEGUN),
    32: Scenario("unknown topics and partitions, partitions without a leader", (), NOT_BEGUN),
    33: Scenario("reading by offset inside a compressed set, over gaps, at the end", (), NOT_BEGUN),
    34: Scenario("a REST instance and a Scala consumer in one group", (), NOT_BEGUN),
    35: Scenario("commits through REST and their nodes", (), NOT_BEGUN),
    36: Scenario("40901, 40902, 40403, 40601, 42204", (), NOT_BEGUN),
    37: Scenario("a message larger than max_bytes, and than the server's limit", (), NOT_BEGUN),
    38: Scenario("idle instances end, those that read live", (), NOT_BEGUN),
    39: Scenario("200 long reads and produces beside; the limit of instances", (), NOT_BEGUN),
    40: Scenario("SIGTERM: reads end, instances leave their groups, exit 143", (), NOT_BEGUN),
    41: Scenario("unmodified clients of npm and PyPI", (), NOT_BEGUN),
    42: Scenario("v2: assignments, offsets + 1, positions", (), NOT_BEGUN),
    43: Scenario("v2: subscriptions by pattern, 40903, trailing slashes", (), NOT_BEGUN),
    44: Scenario("v3: topics, settings, reassignments beside the tools", (), NOT_BEGUN),
    # Console
    45: Scenario("three brokers, one original: overview, a killed one turns red", (), NOT_BEGUN),
    46: Scenario("a topic's row: preferred, under-replicated, as the tools say", (), NOT_BEGUN),
    47: Scenario("a reassignment: plan, progress, rollback, a second one refused", (), NOT_BEGUN),
    48: Scenario("payloads of all kinds; no script runs", (), NOT_BEGUN),
    49: Scenario("100,000 messages: newest first, older, jump, search", (), NOT_BEGUN),
    50: Scenario("a live tail and a burst", (), NOT_BEGUN),
    51: Scenario("a group's reset, refused while it lives", (), NOT_BEGUN),
    52: Scenario("a graph of lag, kept over a restart", (), NOT_BEGUN),
    53: Scenario("without JavaScript", (), NOT_BEGUN),
    54: Scenario("without ZooKeeper", (), NOT_BEGUN),
    # Safety
    55: Scenario(
        "listeners on the loopback interface only; other names in Host are refused",
        (
            *http("only_known_hosts_are_served"),
            *server(
                "monitoring",
                "a_broker_that_starts_serves_already",
                "an_address_for_all_gets_a_warning",
            ),
        ),
        "the broker's listener only",
    ),
    56: Scenario("read-only: no change by any route, no button", (), NOT_BEGUN),
    57: Scenario("tokens and origins; no change by GET", (), NOT_BEGUN),
    58: Scenario("basic authentication with roles, TLS", (), NOT_BEGUN),
    59: Scenario("deletion needs the name; the audit log", (), NOT_BEGUN),
    60: Scenario(
        "malformed requests to each listener",
        http("a_bad_request_is_refused", "connections_are_bounded"),
        "the parts of all listeners; no soak of 10,000",
    ),
}


def test_no_number_is_left_out() -> None:
    assert list(SCENARIOS) == list(range(1, 61))


@pytest.mark.parametrize("number", SCENARIOS)
def test_its_tests_exist(number: int) -> None:
    scenario = SCENARIOS[number]
    assert scenario.tests or scenario.not_yet
    assert_they_exist(scenario.tests)

"""Session fixtures: one ZooKeeper, at most one shared broker of each kind, the tools of both."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from integration import original
from integration.clients import CODECS, READERS, WRITERS
from integration.harness import (
    SHARED,
    SHORT_LIVED,
    Broker,
    Process,
    Tools,
    ZooKeeper,
    kill_everything,
)

# Child processes get Ctrl-C also where the parent of the tests ignores it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Ids in the reports; the original's cases skip with the reason when it cannot run.
BOTH = [pytest.param("ours"), pytest.param("original", marks=pytest.mark.original)]


@pytest.fixture(autouse=True)
def _original_or_skip(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("original") and not original.available():
        pytest.skip(original.missing())


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    yield ZooKeeper(tmp_path_factory.mktemp("zookeeper")).start()
    kill_everything()


@pytest.fixture(scope="session")
def brokers(
    zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Broker]]:
    """Shared brokers by kind, each started by the first test that needs it."""
    started: dict[str, Broker] = {}
    yield started
    for broker in started.values():
        broker.kill()


@pytest.fixture(params=BOTH, scope="session")
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == "original" and not original.available():
        pytest.skip(original.missing())
    return str(request.param)


@pytest.fixture(scope="session")
def broker(
    kind: str,
    zookeeper: ZooKeeper,
    brokers: dict[str, Broker],
    tmp_path_factory: pytest.TempPathFactory,
) -> Broker:
    """The shared broker of this kind; tests use topics of their own and leave it running."""
    if kind not in brokers:
        chroot = f"{zookeeper.connect}/{kind}"
        props = SHARED | {"num.partitions": 1, "offsets.topic.num.partitions": 3}
        directory = tmp_path_factory.mktemp(f"broker-{kind}")
        brokers[kind] = Broker(kind, directory, chroot, props=props).start()
    return brokers[kind]


@pytest.fixture(params=BOTH, scope="session")
def tools(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tools:
    if request.param == "original" and not original.available():
        pytest.skip(original.missing())
    return Tools(request.param, tmp_path_factory.mktemp(f"tools-{request.param}"))


@pytest.fixture(scope="session")
def modern_broker(
    zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """One of our brokers, shared, that serves later versions."""
    props = {
        "api.versions.enable": "true",
        "delete.topic.enable": "true",
        "group.initial.rebalance.delay.ms": 500,
        "offsets.topic.num.partitions": 2,
    }
    directory = tmp_path_factory.mktemp("modern")
    broker = Broker("ours", directory, f"{zookeeper.connect}/modern", props=props)
    yield broker.start()
    broker.kill()
    assert " ERROR " not in broker.log


@pytest.fixture(scope="session")
def our_tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return Tools("ours", tmp_path_factory.mktemp("our-tools"))


@pytest.fixture
def launch() -> Iterator[Callable[[Process], None]]:
    """Hand over a process that must not outlive the test."""
    launched: list[Process] = []
    yield launched.append
    for process in launched:
        process.kill()


# The cluster scenarios that `--quick` keeps.
QUICK_MODULES = {"test_acks", "test_elections", "test_failover"}
# And of modules that take long, Spark's above all.
QUICK_TESTS = {
    "test_acks": {
        "test_24_isr_below_minimum",
        "test_26_two_acks",
    },
    "test_elections": {
        "test_20_and_22_clean_election",
        "test_33_rolling_restart",
        "test_34_controlled_shutdown_of_the_controller",
        "test_36_preferred_election",
    },
    "test_bulk": {"test_bad_input"},
    "test_datasource": {
        "test_columns_of_a_batch",
        "test_compressed_sets_from_the_middle",
        "test_bad_input_of_a_batch_is_named",
        "test_a_stream_takes_all_of_three_topics",
        "test_available_now_ends_at_the_offsets_of_its_start",
        "test_sink_routes_by_column_and_by_option",
    },
    "test_dstream": {
        "test_ranges_as_an_rdd",
        "test_ranges_may_begin_inside_a_wrapper",
        "test_given_offsets",
        "test_handlers_and_decoders",
        "test_errors_at_creation",
        "test_a_group_stream_goes_on_where_it_stopped",
        "test_a_failed_batch_is_not_committed",
    },
    "test_dstream_faults": set(),
    "test_exactly_once": set(),
    "test_examples": set(),
    "test_jdbc": {"test_values_of_all_types"},
    "test_late_data": set(),
    "test_packaging": {"test_what_is_in_the_zip"},
    "test_patterns": {"test_a_window_with_an_inverse_function", "test_two_topics_by_their_keys"},
    "test_query_faults": set(),
    "test_submit": {
        "test_the_import_may_be_anywhere",
        "test_how_a_job_fails",
        "test_a_notebook",
    },
    "test_recipes": {"test_parquet_by_the_hour_of_the_messages"},
}
# Of the other modules, what takes long and has a quicker relative, as "module::name".
NOT_QUICK = (
    "test_clients::test_perf_tools?ours-ours?",
    "test_committed_readers::test_a_mirror?*--new.consumer-None?",
    "test_committed_readers::test_a_mirror?*--new.consumer-read_uncommitted?",
    "test_committed_readers::test_a_mirror?3.9.1-None?",
    "test_committed_readers::test_a_mirror?3.9.1-read_uncommitted?",
    "test_committed_readers::test_converted_*?gzip-ended?",
    "test_committed_readers::test_converted_*?zstd-drop?",
    "test_committed_readers::test_converted_*?zstd-keep?",
    "test_compaction_soak::*",
    "test_configs_tool::test_users?*-SCRAM-SHA-256?",
    "test_connect::test_bad_input_is_named*no such topic*",
    "test_connect::test_many_topics_*",
    "test_console_design::*?dark?",
    "test_console_design::*?telephone?",
    "test_console_scenes::test_a_killed_broker_*?original?",
    "test_delete_records::*kafkajs*",
    "test_elections::test_20_and_22_clean_election?broker-*",
    "test_exchange::*-original-then-original?",
    "test_exchange::*plain-stop-*",
    "test_exchange_storage::*?kill?",
    "test_failover::test_09_*",
    "test_fault_scenarios::*?leader-dies-twice?",
    "test_fault_scenarios::*?moves-under-load?",
    "test_fault_scenarios::*?paused-controller?",
    "test_fault_scenarios::*?zookeeper-away?",
    "test_faults::test_some_faults?20?",
    "test_flink::*",
    "test_full_disks::test_a_follower_has_no_room?original?",
    "test_full_disks::test_a_topic_made_*",
    "test_group_tools::test_every_scenario?*bootstrap-server-*",
    "test_idempotent_producers::*?by_confluent?",
    "test_later_messages::test_sparks_own_*",
    "test_later_settings::test_a_move_with_a_throttle_*",
    "test_later_settings::test_what_is_refused*",
    "test_mixed_groups::test_members_come_and_go*",
    "test_modern_*::*aiokafka*",
    "test_modern_*::*franz-go*",
    "test_modern_*::*java-*",
    "test_modern_*::*kafkajs*",
    "test_modern_*::*original*",
    "test_modern_*::*sarama*",
    "test_modern_clients::test_it_administers_*",
    "test_modern_groups::test_3*",
    "test_modern_groups::test_48_*",
    "test_modern_sets::test_22_*",
    "test_modern_tools::*",
    "test_packages::test_both_ways_make_*",
    "test_producer::test_kill_9_under_load_loses_nothing?False?",
    "test_producer_scenarios::test_39_*",
    "test_python_streams::*",
    "test_rest_limits::test_a_thousand_*",
    "test_signals::test_a_consumer_ends_soon_*killed long ago*",
    "test_signals::test_a_member_*?consumer-perf*",
    "test_signals::test_a_member_*?mirror*",
    "test_signals::test_a_termination_*",
    "test_signals::test_two_interrupts_*?console-consumer-brokers?",
    "test_signals::test_two_interrupts_*?console-producer-new?",
    "test_signals::test_two_interrupts_*?consumer-perf-test?",
    "test_signals::test_two_interrupts_*?end-to-end-latency?",
    "test_signals::test_two_interrupts_*?log-cleaning?",
    "test_signals::test_two_interrupts_*?new-producer-performance?",
    "test_signals::test_two_interrupts_*?replay-log-producer?",
    "test_signals::test_two_interrupts_*?replica-verification?",
    "test_signals::test_two_interrupts_*?simple-consumer-*",
    "test_streams::*",
    "test_submit::test_the_import_*?local-bare?",
    "test_submit::test_the_import_*?local?",
    "test_time_of_reading::*_after_two_kills",
    "test_tls_clients::test_9_java*",
    "test_transaction_*::*modern*",
    "test_transaction_readers::*original-*",
    "test_transactions::*modern*",
    "test_transactions::test_sparks_own_*",
    "test_transactions::test_the_source*zstd*",
)


# Modules of a quarter of an hour begin first: other workers have enough to do meanwhile.
LONGEST = ("test_faults", "test_network_faults", "test_storage_model")
# Their JVMs compute more than they wait: several at a time leave each other no processor.
BUSY_DIRECTORIES = ("programs", "spark")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick",
        action="store_true",
        help="minutes instead of an hour: our own brokers as the servers, half a Latin square of "
        "writers, codecs and readers, some of the cluster scenarios, nothing slow",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--quick"):
        kept = [item for item in items if _is_quick(item)]
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept
    turns = _turns(items)
    items.sort(key=lambda item: (item.path.stem not in LONGEST, turns[item.path]))


def _turns(items: list[pytest.Item]) -> dict[Path, float]:
    """Where each module has its turn: those of busy directories are spread among the others."""
    modules = dict.fromkeys(item.path for item in items)
    busy = [module for module in modules if module.parent.name in BUSY_DIRECTORIES]
    others = [module for module in modules if module not in busy]
    return {
        module: number / len(each) for each in (busy, others) for number, module in enumerate(each)
    }


def _is_quick(item: pytest.Item) -> bool:
    if item.get_closest_marker("slow"):
        return False
    module = item.path.stem
    if item.path.parent.name == "cluster" and module not in QUICK_MODULES:
        return False
    name = getattr(item, "originalname", item.name)
    if name not in QUICK_TESTS.get(module, {name}):
        return False
    if any(fnmatchcase(f"{module}::{item.name}", pattern) for pattern in NOT_QUICK):
        return False
    params: dict[str, object] = item.callspec.params if hasattr(item, "callspec") else {}
    if item.path.parent.name == "spark" and "original" in params.values():
        return False
    if params.get("kind", "ours") not in ("ours", "process"):
        return False
    if {"written", "codec", "reader"} <= params.keys():
        writer, codec, reader = (
            sorted(known).index(str(params[name]))
            for name, known in (("written", WRITERS), ("codec", CODECS), ("reader", READERS))
        )
        # Half a Latin square: every writer, codec and reader, but not every pair.
        turn, place = divmod(writer + reader, len(CODECS))
        return place == codec and turn % 2 == 0
    return True


def pytest_configure(config: pytest.Config) -> None:
    os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join(("-XX:+UseSerialGC", *SHORT_LIVED)))
    config.addinivalue_line("markers", "slow: takes minutes; leave out with -m 'not slow'")

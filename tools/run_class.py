"""Runs a tool or server by the name of the original's class.

Mirrors kafka-run-class.sh, which starts a JVM. Knows the module of each ``main(argv) -> status``,
and nothing of what it does. A module is imported only when its class is asked for.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
from collections.abc import Mapping
from types import ModuleType

from kafka08 import log4j
from tools.options import run_main, run_tool

MODULES = {
    "io.confluent.kafkarest.KafkaRestMain": "kafka08.rest.server",
    "kafka.Kafka": "kafka08.server.main",
    "kafka.admin.AclCommand": "tools.admin.acls",
    "kafka.admin.ConfigCommand": "tools.admin.configs",
    "kafka.admin.ConsumerGroupCommand": "tools.groups.consumer_groups",
    "kafka.admin.PreferredReplicaLeaderElectionCommand": "tools.topics.preferred_replica_election",
    "kafka.admin.ReassignPartitionsCommand": "tools.topics.reassign_partitions",
    "kafka.admin.TopicCommand": "tools.topics.topics",
    "kafka.admin.ZkSecurityMigrator": "tools.admin.zookeeper_security_migration",
    "kafka.console.ConsolePassword": "kafka08.console.password",
    "kafka.console.KafkaConsole": "kafka08.console.main",
    "kafka.server.UnitMember": "kafka08.server.unit.member",
    "kafka.tools.ConsoleConsumer": "tools.console.console_consumer",
    "kafka.tools.ConsoleProducer": "tools.console.console_producer",
    "kafka.tools.ConsumerOffsetChecker": "tools.groups.consumer_offset_checker",
    "kafka.tools.ConsumerPerformance": "tools.perf.consumer_performance",
    "kafka.tools.DumpLogSegments": "tools.logs.dump_log_segments",
    "kafka.tools.ExportZkOffsets": "tools.groups.export_zk_offsets",
    "kafka.tools.GetOffsetShell": "tools.topics.get_offset_shell",
    "kafka.tools.ImportZkOffsets": "tools.groups.import_zk_offsets",
    "kafka.tools.LogConvert": "tools.logs.log_convert",
    "kafka.tools.LogScrub": "tools.logs.log_scrub",
    "kafka.tools.MirrorMaker": "tools.mirror.mirror_maker",
    "kafka.tools.ProducerPerformance": "tools.perf.producer_performance",
    "kafka.tools.ReplayLogProducer": "tools.mirror.replay_log_producer",
    "kafka.tools.ReplicaVerificationTool": "tools.topics.replica_verification",
    "kafka.tools.SimpleConsumerPerformance": "tools.perf.simple_consumer_performance",
    "kafka.tools.SimpleConsumerShell": "tools.console.simple_consumer_shell",
    "kafka.tools.StateChangeLogMerger": "tools.admin.state_change_log_merger",
    "kafka.tools.TestLogCleaning": "tools.logs.test_log_cleaning",
    "kafka.tools.TestEndToEndLatency": "tools.perf.end_to_end_latency",
    "kafka.tools.UpdateOffsetsInZK": "tools.groups.update_offsets_in_zk",
    "kafka.tools.VerifyConsumerRebalance": "tools.groups.verify_consumer_rebalance",
    "kafka.tools.ZooKeeperMainWrapper": "tools.admin.zookeeper_shell",
    "org.apache.kafka.clients.tools.ProducerPerformance": "tools.perf.new_producer_performance",
    "org.apache.kafka.connect.cli.ConnectStandalone": "tools.admin.connect_standalone",
    "org.apache.kafka.tools.TransactionsCommand": "tools.admin.transactions",
    "org.apache.zookeeper.ZooKeeperMain": "tools.admin.zookeeper_shell",
    "org.apache.zookeeper.server.quorum.QuorumPeerMain": "tools.admin.zookeeper_server",
}

# They handle signals themselves.
SERVERS = {
    "io.confluent.kafkarest.KafkaRestMain",
    "kafka.Kafka",
    "kafka.console.KafkaConsole",
    "kafka.server.UnitMember",
    "org.apache.zookeeper.server.quorum.QuorumPeerMain",
}


def class_path(environ: Mapping[str, str]) -> list[str]:
    """The directories, zip files and wheels of CLASSPATH, absolute: the user's classes may be
    there. They come last in sys.path, so that they hide no module of the project. Entries that
    only a JVM can use are left out."""
    paths = map(os.path.abspath, filter(None, environ.get("CLASSPATH", "").split(os.pathsep)))
    return [path for path in paths if os.path.isdir(path) or path.endswith((".zip", ".whl"))]


def module_of(class_name: str) -> ModuleType:
    """The imported module. Those of this package are found by its name, which is ``kafka08.tools``
    in a wheel."""
    name = MODULES[class_name]
    inside = name.removeprefix("tools.")
    return importlib.import_module(name if inside == name else f".{inside}", __package__)


def takes_no_options(module: ModuleType) -> bool:
    """Whether its arguments have no names. It prints how it is used when it gets none."""
    return not hasattr(module, "PARSER")


def main(argv: list[str]) -> int:
    """``argv`` is a class and its arguments; the exit status comes back."""
    class_name, *words = argv or [""]
    if class_name not in MODULES:
        print(f"Error: Could not find or load main class {class_name}", file=sys.stderr)
        return 1
    log4j.configure(tool=True)
    sys.path += class_path(os.environ)
    module = module_of(class_name)
    # Imported modules stay, so collections need not look at their objects.
    gc.freeze()
    gc.enable()
    if "--help" in words[:1] and takes_no_options(module):
        with contextlib.redirect_stderr(sys.stdout):
            run_tool(module.main, [])
        return 0
    return (run_main if class_name in SERVERS else run_tool)(module.main, words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

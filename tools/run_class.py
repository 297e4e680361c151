"""Runs a tool or server by the name of the original's class.

What kafka-run-class.sh does with a JVM. Knows where each ``main(argv) -> status`` is and nothing
of what it does; a module is imported only when its class is asked for.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from kafka08 import log4j
from tools.options import run_main, run_tool

MODULES = {
    "kafka.Kafka": "kafka08.server.broker",
    "kafka.admin.ConsumerGroupCommand": "tools.consumer_groups",
    "kafka.admin.PreferredReplicaLeaderElectionCommand": "tools.preferred_replica_election",
    "kafka.admin.ReassignPartitionsCommand": "tools.reassign_partitions",
    "kafka.admin.TopicCommand": "tools.topics",
    "kafka.tools.ConsoleConsumer": "tools.console_consumer",
    "kafka.tools.ConsoleProducer": "tools.console_producer",
    "kafka.tools.ConsumerOffsetChecker": "tools.consumer_offset_checker",
    "kafka.tools.ConsumerPerformance": "tools.consumer_performance",
    "kafka.tools.DumpLogSegments": "tools.dump_log_segments",
    "kafka.tools.ExportZkOffsets": "tools.export_zk_offsets",
    "kafka.tools.GetOffsetShell": "tools.get_offset_shell",
    "kafka.tools.ImportZkOffsets": "tools.import_zk_offsets",
    "kafka.tools.LogConvert": "tools.log_convert",
    "kafka.tools.LogScrub": "tools.log_scrub",
    "kafka.tools.MirrorMaker": "tools.mirror_maker",
    "kafka.tools.ProducerPerformance": "tools.producer_performance",
    "kafka.tools.ReplayLogProducer": "tools.replay_log_producer",
    "kafka.tools.ReplicaVerificationTool": "tools.replica_verification",
    "kafka.tools.SimpleConsumerPerformance": "tools.simple_consumer_performance",
    "kafka.tools.SimpleConsumerShell": "tools.simple_consumer_shell",
    "kafka.tools.StateChangeLogMerger": "tools.state_change_log_merger",
    "kafka.tools.TestLogCleaning": "tools.test_log_cleaning",
    "kafka.tools.TestEndToEndLatency": "tools.end_to_end_latency",
    "kafka.tools.UpdateOffsetsInZK": "tools.update_offsets_in_zk",
    "kafka.tools.VerifyConsumerRebalance": "tools.verify_consumer_rebalance",
    "kafka.tools.ZooKeeperMainWrapper": "tools.zookeeper_shell",
    "org.apache.kafka.clients.tools.ProducerPerformance": "tools.new_producer_performance",
    "org.apache.kafka.connect.cli.ConnectStandalone": "tools.connect_standalone",
    "org.apache.zookeeper.ZooKeeperMain": "tools.zookeeper_shell",
    "org.apache.zookeeper.server.quorum.QuorumPeerMain": "tools.zookeeper_server",
}

# Their arguments have no names: they print how they are used when they get none.
POSITIONAL = {
    "kafka.Kafka",
    "kafka.tools.TestEndToEndLatency",
    "kafka.tools.UpdateOffsetsInZK",
    "kafka.tools.ZooKeeperMainWrapper",
    "org.apache.kafka.clients.tools.ProducerPerformance",
    "org.apache.kafka.connect.cli.ConnectStandalone",
    "org.apache.zookeeper.ZooKeeperMain",
    "org.apache.zookeeper.server.quorum.QuorumPeerMain",
}
# They look after signals themselves.
SERVERS = {"kafka.Kafka", "org.apache.zookeeper.server.quorum.QuorumPeerMain"}


def class_path(environ: Mapping[str, str]) -> list[str]:
    """The directories, zip files and wheels of CLASSPATH, absolute: where classes of the user's may
    be. They come last, so that they hide nothing of ours. What only a JVM can use is left out."""
    paths = [
        Path(word).absolute() for word in environ.get("CLASSPATH", "").split(os.pathsep) if word
    ]
    return [str(path) for path in paths if path.is_dir() or path.suffix in (".zip", ".whl")]


def main(argv: list[str]) -> int:
    """``argv`` is a class and its arguments; the exit status comes back."""
    class_name, *words = argv or [""]
    if class_name not in MODULES:
        print(f"Error: Could not find or load main class {class_name}", file=sys.stderr)
        return 1
    log4j.configure(tool=True)
    sys.path += class_path(os.environ)
    module = importlib.import_module(MODULES[class_name])
    # What was imported stays, so that no collection need ever look at it.
    gc.freeze()
    gc.enable()
    if class_name in POSITIONAL and "--help" in words[:1]:
        with contextlib.redirect_stderr(sys.stdout):
            run_tool(module.main, [])
        return 0
    return (run_main if class_name in SERVERS else run_tool)(module.main, words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

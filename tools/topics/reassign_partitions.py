"""kafka-reassign-partitions: plan, start and check moves of partitions between brokers.

Mirrors kafka.admin.ReassignPartitionsCommand. The tool only asks; the controller moves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from kafka08 import admin
from kafka08.admin import AdminCommandFailedError
from kafka08.common import TopicPartition
from kafka08.progress import Progress, monotonic_ms
from kafka08.topics.moves import (
    check_moves,
    parse_moves,
    parse_topics,
    proposal,
    refuse_duplicates,
    scala_list,
    start,
)
from tools import admin_command
from tools.options import Arguments, OptionParser
from tools.shutdown import at_end
from zk import znodes
from zk.client import ZkClient

_POLL_SECONDS = 1.0

PARSER = OptionParser(
    "This command moves topic partitions between replicas.",
    """
--zookeeper <urls>  REQUIRED: Where ZooKeeper is: host:port, several separated by commas, a chroot
    at the end.
--generate  Print a proposal of where partitions could go; nothing is moved by it.
--execute  Start the moves that --reassignment-json-file lists.
--verify  Print how far the moves are that --reassignment-json-file lists.
--reassignment-json-file <manual assignment json file path>  A file of partitions and the replicas
    they are to have, in this form:
    |{"partitions":
    |\t[{"topic": "foo",
    |\t  "partition": 1,
    |\t  "replicas": [1,2,3] }],
    |"version":1
    |}
--topics-to-move-json-file <topics to reassign json file path>  A file of topics to spread over the
    brokers of --broker-list, in this form:
    |{"topics":
    |\t[{"topic": "foo"},{"topic": "foo1"}],
    |"version":1
    |}
--broker-list <brokerlist>  The ids of the brokers to use, as "0,1,2". Needed with
    --topics-to-move-json-file.
""",
    later=f"""
--wait  With --verify: first wait for the moves to end. Shows how many have ended, on a terminal as
    a bar, elsewhere once a minute.
{admin_command.ZK_TLS_CONFIG_FILE.lstrip()}""",
)


def main(argv: list[str]) -> int:
    args = PARSER.parse_command(argv)
    if sum(args.has(action) for action in ("generate", "execute", "verify")) != 1:
        PARSER.usage_and_exit(
            "Command must include exactly one action: --generate, --execute or --verify"
        )
    PARSER.check_required(args, "zookeeper")
    _check_files(args)
    with admin_command.session(args) as client:
        return admin_command.run(
            lambda: _run(client, args), "Partitions reassignment failed due to {error}"
        )


def _run(client: ZkClient, args: Arguments) -> int:
    if args.has("verify"):
        if args.has("wait"):
            wait(client, args.value("reassignment-json-file"))
        verify(client, args.value("reassignment-json-file"))
    elif args.has("generate"):
        generate(client, args.value("topics-to-move-json-file"), args.value("broker-list"))
    elif not execute(client, args.value("reassignment-json-file")):
        return admin_command.failure_status()
    return 0


def _check_files(args: Arguments) -> None:
    wanted = "If --%s option is used, command must include --reassignment-json-file that was %s"
    if args.has("wait") and not args.has("verify"):
        PARSER.usage_and_exit('Option "[wait]" can only be used with option "[verify]"')
    if args.has("verify") and not args.has("reassignment-json-file"):
        PARSER.usage_and_exit(wanted % ("verify", "used during the --execute option"))
    if args.has("execute") and not args.has("reassignment-json-file"):
        PARSER.usage_and_exit(wanted % ("execute", "output during the --generate option"))
    if args.has("generate") and not (
        args.has("topics-to-move-json-file") and args.has("broker-list")
    ):
        PARSER.usage_and_exit(
            "If --generate option is used, command must include both --topics-to-move-json-file "
            "and --broker-list options"
        )


# --- the three actions


def generate(client: ZkClient, topics_file: str, broker_list: str) -> None:
    """Print the assignment there is and one over ``broker_list``, placed at random."""
    brokers = [admin.parse_broker_id(word) for word in broker_list.rstrip(",").split(",")]
    refuse_duplicates("Broker list contains duplicate entries: %s", brokers)
    topics = parse_topics(topics_file, admin_command.read_file(topics_file))
    refuse_duplicates("List of topics to reassign contains duplicate entries: %s", topics)
    proposed = proposal(client, topics, brokers)
    print(f"Current partition replica assignment\n\n{_current(client, proposed)}")
    print(f"Proposed partition reassignment configuration\n\n{_as_json(proposed)}")


def execute(client: ZkClient, moves_file: str) -> bool:
    """Hand the moves to the controller; False if none was left. Raises AdminCommandFailedError."""
    moves = parse_moves(moves_file, admin_command.read_file(moves_file))
    if not moves:
        raise AdminCommandFailedError(f"Partition reassignment data file {moves_file} is empty")
    check_moves(moves)
    print(
        f"Current partition replica assignment\n\n{_current(client, dict(moves))}\n\n"
        "Save this to use as the --reassignment-json-file option during rollback"
    )
    if start(client, moves):
        print(f"Successfully started reassignment of partitions {_as_json(dict(moves))}")
        return True
    listed = ", ".join(f"({tp},{scala_list(replicas)})" for tp, replicas in moves)
    print(f"Failed to reassign partitions List({listed})")
    return False


def wait(
    client: ZkClient,
    moves_file: str,
    *,
    sleep: Callable[[float], object] = time.sleep,
    millis: Callable[[], int] = monotonic_ms,
) -> None:
    """Return when the controller works on none of the moves any more."""
    moves = dict(parse_moves(moves_file, admin_command.read_file(moves_file)))
    progress = Progress(len(moves), "Reassignment", unit="partitions", millis=millis)
    with at_end(progress.close):
        while left := moves.keys() & admin.fetch_reassignments(client).keys():
            progress.show(len(moves) - len(left))
            sleep(_POLL_SECONDS)
        progress.show(len(moves))


def verify(client: ZkClient, moves_file: str) -> None:
    """Print how far each move is."""
    moves = dict(parse_moves(moves_file, admin_command.read_file(moves_file)))
    print("Status of partition reassignment:")
    in_progress = admin.fetch_reassignments(client)
    states = {}
    for tp, wanted in moves.items():
        if tp in in_progress:
            states[tp] = "is still in progress"
            continue
        assigned = (admin.fetch_assignment(client, tp.topic) or {}).get(tp.partition, ())
        states[tp] = "completed successfully" if assigned == wanted else "failed"
        if assigned != wanted:
            print(
                f"ERROR: Assigned replicas ({','.join(map(str, assigned))}) don't match the list "
                f"of replicas for reassignment ({','.join(map(str, wanted))}) for partition {tp}"
            )
    for tp, state in states.items():
        print(f"Reassignment of partition {tp} {state}")


# --- what is printed


def _current(client: ZkClient, partitions: Iterable[TopicPartition]) -> str:
    """All partitions of the topics named, as a file that would move them back."""
    topics = sorted({tp.topic for tp in partitions})
    return _as_json(admin.fetch_assignments(client, topics))


def _as_json(partitions: Mapping[TopicPartition, Sequence[int]]) -> str:
    return znodes.encode_reassignment(partitions).decode()

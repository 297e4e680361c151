"""kafka-consumer-groups: see how far groups are, and put them elsewhere.

A tool of later releases, with the output of Kafka 4 and the --zookeeper of 1.1. It shows groups of
0.8, whose members are in ZooKeeper and whose offsets are there or in Kafka, like those that a
broker coordinates. Failures are printed to stdout and exit 0, see admin_command.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from kafka08.admin import InvalidArgumentError
from kafka08.client.security import ClientSecurity
from kafka08.common import TopicPartition
from kafka08.errors import AdminOperationError, KafkaError
from kafka08.groups import reset
from kafka08.groups.admin import GroupAdmin
from kafka08.groups.consumer_protocol import DEAD, EMPTY, REBALANCING
from kafka08.groups.members import GroupMembers
from kafka08.groups.reset import Offsets, Plan
from kafka08.groups.storage import CommittedOffsets
from kafka08.settings.settings import INT
from tools import admin_command
from tools.brokers import broker_list
from tools.groups import tables
from tools.options import Arguments, OptionError, OptionParser, UsageError

logger = logging.getLogger("kafka.admin.ConsumerGroupCommand$")

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
VIEWS = ("members", "offsets", "state")
SCENARIOS = (
    "to-offset",
    "shift-by",
    "to-datetime",
    "by-duration",
    "to-earliest",
    "to-latest",
    "to-current",
    "from-file",
)
CLIENT_ID = "ConsumerGroupCommand"
_REQUEST_TIMEOUT_MS = 30000

PARSER = OptionParser(
    "List all consumer groups, describe a consumer group, delete consumer group info, or reset "
    "consumer group offsets.",
    later="""
--zookeeper <urls>  Where ZooKeeper is: host:port, several separated by commas, a chroot at the end.
    Either this or --bootstrap-server is required.
--bootstrap-server <server to connect to>  The brokers to ask in place of ZooKeeper. They know
    offsets, but not who the members are.
--list  List all groups.
--describe  Show the offsets and the lag of a group.
--delete  Delete groups without live members: --group, repeatable; with --topic only what they have
    of that topic; --topic alone means all such groups. --topic needs --zookeeper.
--reset-offsets  Put groups without live members elsewhere: one scenario (--to-earliest,
    --to-latest, --to-current, --to-offset, --shift-by, --to-datetime, --by-duration, --from-file),
    one scope (--topic, --all-topics; --from-file has its own), and --dry-run or --execute.
--delete-offsets  Delete the offsets a group has of the topics given.
--group <consumer group>  The group to act on.
--all-groups  Act on every group.
--topic <topic>  A topic to reset or delete; topic:0,1,2 means these partitions. Repeatable.
--all-topics  Reset every partition the group has an offset for.
--members  Describe the members. Needs --zookeeper.
--offsets  Describe the offsets, as --describe alone does.
--state  Describe the group as a whole. Needs --zookeeper.
--verbose  With --members: which partitions each one owns.
--dry-run  Only show what a reset would set.
--execute  Do reset.
--export  Print a reset as lines for --from-file.
--to-earliest  Reset to where the logs begin.
--to-latest  Reset to where the logs end.
--to-current  Reset to the present offsets; to the end where there is none.
--to-offset <Long: offset>  Reset to an offset.
--shift-by <Long: number-of-offsets>  Move offsets by this many; a negative number moves back.
--to-datetime <datetime>  Reset to the first message since a time: yyyy-MM-ddTHH:mm:ss.SSS, UTC
    or with a zone. Messages of 0.8 have no time: there the age of whole segments counts.
--by-duration <duration>  Reset to this long ago, as --to-datetime does: PnDTnHnMnS.
--from-file <path to CSV file>  Reset to what a file from --export says.
--timeout <Long: timeout (ms)>  How long to wait for a coordinator. (default: 5000)
--command-config <command config property file>  Properties: client.id, request.timeout.ms and those
    of security.
--new-consumer  Accepted, without effect.
"""
    + admin_command.ZK_TLS_CONFIG_FILE.lstrip(),
)


def main(argv: list[str]) -> int:
    args = PARSER.parse_command(argv)
    if sum(args.has(action) for action in ACTIONS) != 1:
        PARSER.usage_and_exit(
            "Command must include exactly one action: --list, --describe, --delete, "
            "--reset-offsets, --delete-offsets"
        )
    _check(args)
    config = args.properties("command-config")
    try:
        with ExitStack() as stack:
            return _run(_connect(args, config, stack), args)
    except (BrokenPipeError, UsageError, OptionError):
        raise
    except (OSError, KafkaError) as error:
        print(f"Error: Executing consumer group command failed due to {error}")
        logger.debug("Exception in consumer group command", exc_info=True)
        return admin_command.failure_status()


def _connect(args: Arguments, config: Mapping[str, str], stack: ExitStack) -> GroupAdmin:
    """Connections are closed by ``stack``."""
    request_timeout_ms = INT.parse(config.get("request.timeout.ms", str(_REQUEST_TIMEOUT_MS)))
    security = ClientSecurity.from_properties(config)
    zk, brokers = None, []
    if args.has("bootstrap-server"):
        brokers = broker_list(PARSER, args.value("bootstrap-server"))
    else:
        zk = stack.enter_context(admin_command.session(args, given=config))
    groups = GroupAdmin(
        zk,
        brokers,
        timeout_ms=args.value("timeout"),
        request_timeout_ms=request_timeout_ms,
        client_id=config.get("client.id", CLIENT_ID),
        security=security,
    )
    return stack.enter_context(groups)


# --- which options may go together


def _check(args: Arguments) -> None:
    if args.has("zookeeper"):
        if args.has("bootstrap-server"):
            PARSER.usage_and_exit("Option [bootstrap-server] is not valid with [zookeeper].")
    else:
        PARSER.check_required(args, "bootstrap-server")
    if args.has("new-consumer"):
        print("The [new-consumer] option is deprecated.", file=sys.stderr)
    PARSER.check_invalid(args, "all-groups", "group", "list", "delete-offsets")
    PARSER.check_invalid(args, "group", "list")
    PARSER.check_invalid(args, "topic", "list", "describe")
    for view in (*VIEWS, "verbose"):
        PARSER.check_invalid(args, view, *(a for a in ACTIONS if a != "describe"))
    PARSER.check_exclusive(args, VIEWS)
    if args.has("describe") and not args.has("all-groups"):
        PARSER.check_required(args, "group")
    if args.has("delete"):
        _check_delete(args)
    if args.has("reset-offsets"):
        _check_reset(args)
    if args.has("delete-offsets"):
        PARSER.check_required(args, "group", "topic")


def _check_delete(args: Arguments) -> None:
    if args.has("topic") and args.has("bootstrap-server"):
        PARSER.usage_and_exit(
            "When deleting a consumer group the option [topic] is only valid with [zookeeper]. "
            "Use --delete-offsets instead."
        )
    if not any(args.has(name) for name in ("group", "topic", "all-groups")):
        PARSER.usage_and_exit("Option [delete] either takes [group], [topic], or both")


def _check_reset(args: Arguments) -> None:
    if not args.has("dry-run") and not args.has("execute"):
        print(
            "WARN: Nothing will be changed, as with --dry-run: use --execute to reset.",
            file=sys.stderr,
        )
    if args.has("dry-run") and args.has("execute"):
        PARSER.usage_and_exit("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not args.has("all-groups"):
        PARSER.check_required(args, "group")
    PARSER.check_exclusive(args, SCENARIOS)
    if not any(map(args.has, SCENARIOS)):
        PARSER.usage_and_exit(
            "Option [reset-offsets] requires one of the following scenarios: "
            f"{', '.join(f'[{name}]' for name in SCENARIOS)}"
        )
    PARSER.check_invalid(args, "all-topics", "topic")
    if not args.has("from-file") and not args.has("topic") and not args.has("all-topics"):
        PARSER.usage_and_exit("One of the reset scopes should be defined: --all-topics, --topic.")


# --- actions


def _run(admin: GroupAdmin, args: Arguments) -> int:
    if args.has("list"):
        for group in admin.groups():
            print(group)
    elif args.has("describe"):
        _describe(admin, args)
    elif args.has("reset-offsets"):
        _reset(admin, args)
    elif args.has("delete-offsets"):
        return _delete_offsets(admin, args)
    elif args.has("zookeeper"):
        return _delete_by_zookeeper(admin, args)
    else:
        return _delete_by_brokers(admin, args)
    return 0


def _groups(admin: GroupAdmin, args: Arguments) -> list[str]:
    return admin.groups() if args.has("all-groups") else list(dict.fromkeys(args.values("group")))


def _describe(admin: GroupAdmin, args: Arguments) -> None:
    for group in _groups(admin, args):
        if args.has("members"):
            _describe_members(admin, group, verbose=args.has("verbose"))
        elif args.has("state"):
            _describe_state(admin, group)
        else:
            _describe_offsets(admin, group)


def _describe_offsets(admin: GroupAdmin, group: str) -> None:
    members, committed = admin.members(group), admin.committed(group)
    if _exists(group, members, committed):
        tables.print_progress(group, admin.progress(group, members, committed))


def _describe_members(admin: GroupAdmin, group: str, *, verbose: bool) -> None:
    members = admin.seen_members(group)
    if _exists(group, members, {} if members.members else admin.committed(group)):
        shares = members.owned()
        rows = [(members.row_of(group, each), shares[each]) for each in members.members]
        if rows:
            tables.print_members(group, rows, verbose=verbose)


def _describe_state(admin: GroupAdmin, group: str) -> None:
    members = admin.seen_members(group)
    if _exists(group, members, {} if members.exists else admin.committed(group)):
        coordinator = admin.storage.coordinator(group)
        state = EMPTY if members.state == DEAD else members.state
        tables.print_state(group, coordinator, members.strategy, state, len(members.members))


def _exists(
    group: str, members: GroupMembers | None, committed: Mapping[TopicPartition, CommittedOffsets]
) -> bool:
    """Print warnings; False if the group does not exist."""
    if not committed and (members is None or not members.exists):
        print(f"Error: Consumer group '{group}' does not exist.")
        return False
    if members is not None and members.state in (EMPTY, DEAD):
        print(f"Consumer group '{group}' has no active members.", file=sys.stderr)
    elif members is not None and members.state == REBALANCING:
        print(f"Warning: Consumer group '{group}' is rebalancing.", file=sys.stderr)
    return True


# --- resets


def _reset(admin: GroupAdmin, args: Arguments) -> None:
    groups = _groups(admin, args)
    with_group = args.has("all-groups") or len(groups) > 1
    plan = _plan(admin, groups, args)
    if args.has("execute"):
        for group, offsets in plan.items():
            _execute(admin, group, offsets)
    if args.has("export"):
        tables.print_export(plan, with_group=with_group)
    else:
        tables.print_new_offsets(plan)


def _plan(admin: GroupAdmin, groups: Sequence[str], args: Arguments) -> Plan:
    """The new offsets of each group; groups with live members are refused by name.

    Raises InvalidArgumentError for a scope or scenario that makes no sense.
    """
    if not args.has("from-file"):
        return {
            group: _new_offsets(admin, group, args)
            for group in groups
            if _may_be_reset(group, admin.members(group))
        }
    text = admin_command.read_file(args.value("from-file")).decode(errors="replace")
    listed = reset.parse_plan(text, groups)
    plan: Plan = {}
    for group in groups:
        if group in listed and _may_be_reset(group, admin.members(group)):
            _check_exist(admin, listed[group])
            plan[group] = reset.clamp(admin.storage, listed[group])
    return plan


def _may_be_reset(group: str, members: GroupMembers | None) -> bool:
    if members is None or not members.members:
        return True
    print(
        f"Error: Assignments can only be reset if the group '{group}' is inactive, "
        f"but the current state is {members.state}."
    )
    return False


def _check_exist(admin: GroupAdmin, offsets: Offsets) -> None:
    existing = set(admin.storage.partitions({tp.topic for tp in offsets}))
    for tp in offsets:
        if tp not in existing:
            raise InvalidArgumentError(f"Partition {tp} doesn't exist")


def _new_offsets(admin: GroupAdmin, group: str, args: Arguments) -> Offsets:
    """Where the scenario puts the partitions of the scope. Raises InvalidArgumentError."""
    storage = admin.storage
    if args.has("all-topics"):
        partitions = sorted(admin.committed(group))
    else:
        partitions = reset.parse_partitions(args.values("topic"), storage.partitions)
    if args.has("to-earliest"):
        return reset.starts(storage, partitions)
    if args.has("to-latest"):
        return reset.ends(storage, partitions)
    if args.has("to-offset"):
        return reset.clamp(storage, dict.fromkeys(partitions, args.value("to-offset")))
    if args.has("shift-by"):
        return reset.shifted(storage, group, partitions, args.value("shift-by"))
    if args.has("to-current"):
        return reset.current(storage, group, partitions)
    if args.has("to-datetime"):
        return reset.at(storage, partitions, reset.parse_datetime(args.value("to-datetime")))
    duration_ms = reset.parse_duration(args.value("by-duration"))
    return reset.at(storage, partitions, admin.clock.millis() - duration_ms)


def _execute(admin: GroupAdmin, group: str, offsets: Offsets) -> None:
    members = admin.members(group)
    if not _may_be_reset(group, members):
        return
    if members is None:
        print(
            f"WARN: Whether group '{group}' has members was not checked: brokers of "
            "0.8.2.2 do not report them. Use --zookeeper.",
            file=sys.stderr,
        )
    admin.commit(group, offsets)


# --- deletions


def _delete_offsets(admin: GroupAdmin, args: Arguments) -> int:
    words = args.values("topic")
    partitions = reset.parse_partitions(words, admin.storage.partitions)
    failed = False
    for group in _groups(admin, args):
        results = admin.delete_offsets(group, partitions)
        if all(result == "Successful" for result in results.values()):
            print(
                f"Request succeed for deleting offsets with topic {', '.join(words)} group {group}"
            )
        else:
            failed = True
            print("Error: Encounter some partition level error, see the follow-up details:")
        tables.print_deleted_offsets(results)
    return admin_command.failure_status() if failed else 0


_WHY = {
    "NON_EMPTY_GROUP": "its consumers are still active.",
    "GROUP_ID_NOT_FOUND": "group does not exist.",
}


def _delete_by_zookeeper(admin: GroupAdmin, args: Arguments) -> int:
    """The forms and words of --zookeeper in Kafka 1.1."""
    topic = args.value("topic")
    all_groups = not args.has("group")
    failed = False
    for group in admin.groups() if all_groups else _groups(admin, args):
        of_topic = "" if topic is None else f" topic '{topic}'"
        try:
            if topic is None:
                admin.delete(group)
            else:
                admin.delete_topic(group, topic)
        except AdminOperationError as error:
            if not all_groups or topic is None:
                failed = True
                why = _WHY.get(str(error), f"{error}.")
                print(f"Error: Delete for group '{group}'{of_topic} failed because {why}")
            continue
        if not all_groups or topic is None:
            scope = " all" if topic is None else ""
            print(
                f"Deleted{scope} consumer group information for group '{group}'{of_topic} in "
                "zookeeper."
            )
    if all_groups and topic is not None:
        print(
            "Deleted consumer group information for all inactive consumer groups for topic "
            f"'{topic}' in zookeeper."
        )
    return admin_command.failure_status() if failed else 0


def _delete_by_brokers(admin: GroupAdmin, args: Arguments) -> int:
    """The words of --bootstrap-server in later releases."""
    deleted, failures = [], {}
    for group in _groups(admin, args):
        try:
            admin.delete(group)
            deleted.append(group)
        except AdminOperationError as error:
            failures[group] = str(error)
    names = ", ".join(f"'{group}'" for group in deleted)
    if not failures:
        print(f"Deletion of requested consumer groups ({names}) was successful.")
        return 0
    print("Error: Deletion of some consumer groups failed:")
    for group, why in failures.items():
        print(f"* Group '{group}' could not be deleted due to: {why}")
    if deleted:
        print(f"\nThese consumer groups were deleted successfully: {names}")
    return admin_command.failure_status()

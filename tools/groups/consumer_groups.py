"""kafka-consumer-groups: see how far groups are, and put them elsewhere.

A tool of later releases, with the output of Kafka 4 and the --zookeeper of 1.1. It shows groups of
0.8, whose members are in ZooKeeper and whose offsets are there or in Kafka, like those that a
broker coordinates. Failures are told on stdout and exit 0, see admin_command.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping

from kafka08.client.security import ClientSecurity
from kafka08.errors import AdminOperationError, KafkaError
from kafka08.settings import INT
from tools import admin_command
from tools.broker_list import broker_list
from tools.groups import reset, tables
from tools.groups.reset import SCENARIOS
from tools.groups.service import CLIENT_ID, GroupService
from tools.options import Arguments, OptionError, OptionParser, UsageError, run_tool

logger = logging.getLogger("kafka.admin.ConsumerGroupCommand$")

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
VIEWS = ("members", "offsets", "state")
_REQUEST_TIMEOUT_MS = 30000

PARSER = OptionParser(
    "List all consumer groups, describe a consumer group, delete consumer group info, or reset "
    "consumer group offsets.",
    later="""
--zookeeper <urls>  Where ZooKeeper is: host:port, several separated by commas, a chroot at the end.
    Either this or --bootstrap-server is required.
--bootstrap-server <server to connect to>  The brokers to ask in place of ZooKeeper. They tell
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
--shift-by <Long: number-of-offsets>  Reset by so many, negative for back.
--to-datetime <datetime>  Reset to the first message since a time: yyyy-MM-ddTHH:mm:ss.SSS, UTC
    or with a zone. Messages of 0.8 have no time: there the age of whole segments counts.
--by-duration <duration>  Reset to so long ago, as --to-datetime does: PnDTnHnMnS.
--from-file <path to CSV file>  Reset to what a file from --export says.
--timeout <Long: timeout (ms)>  How long to wait for a coordinator. (default: 5000)
--command-config <command config property file>  Properties: client.id, request.timeout.ms and those
    of security.
--new-consumer  Accepted, without effect.
"""
    + admin_command.ZK_TLS_CONFIG_FILE.lstrip(),
)


def main(argv: list[str]) -> int:
    """Exit status; raises UsageError and OptionError for run_tool to print."""
    args = PARSER.parse_command(argv)
    if sum(args.has(action) for action in ACTIONS) != 1:
        PARSER.usage_and_exit(
            "Command must include exactly one action: --list, --describe, --delete, "
            "--reset-offsets, --delete-offsets"
        )
    _check(args)
    config = admin_command.command_config(args)
    try:
        with _connect(args, config) as service:
            return _run(service, args)
    except (BrokenPipeError, UsageError, OptionError):
        raise
    except (OSError, KafkaError) as error:
        print(f"Error: Executing consumer group command failed due to {error}")
        logger.debug("Exception in consumer group command", exc_info=True)
        return admin_command.failure_status()


def _connect(args: Arguments, config: Mapping[str, str]) -> GroupService:
    over_the_wire = args.has("bootstrap-server")
    return GroupService(
        None if over_the_wire else args.value("zookeeper"),
        broker_list(PARSER, args.value("bootstrap-server")) if over_the_wire else (),
        timeout_ms=args.value("timeout"),
        request_timeout_ms=INT.parse(config.get("request.timeout.ms", str(_REQUEST_TIMEOUT_MS))),
        client_id=config.get("client.id", CLIENT_ID),
        security=ClientSecurity.from_properties(config),
        zookeeper_security=admin_command.zookeeper_config(args, config),
    )


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
    for other in ("list",):
        PARSER.check_invalid(args, "group", other)
    PARSER.check_invalid(args, "topic", "list", "describe")
    for view in (*VIEWS, "verbose"):
        PARSER.check_invalid(args, view, *(a for a in ACTIONS if a != "describe"))
    for view in VIEWS:
        PARSER.check_invalid(args, view, *(other for other in VIEWS if other != view))
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
            "WARN: Nothing will be changed, as with --dry-run: say --execute to reset.",
            file=sys.stderr,
        )
    if args.has("dry-run") and args.has("execute"):
        PARSER.usage_and_exit("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not args.has("all-groups"):
        PARSER.check_required(args, "group")
    given = [name for name in SCENARIOS if args.has(name)]
    for name in given:
        PARSER.check_invalid(args, name, *(other for other in SCENARIOS if other != name))
    if not given:
        PARSER.usage_and_exit(
            "Option [reset-offsets] requires one of the following scenarios: "
            f"{', '.join(f'[{name}]' for name in SCENARIOS)}"
        )
    PARSER.check_invalid(args, "all-topics", "topic")
    if not args.has("from-file") and not args.has("topic") and not args.has("all-topics"):
        PARSER.usage_and_exit("One of the reset scopes should be defined: --all-topics, --topic.")


# --- actions


def _run(service: GroupService, args: Arguments) -> int:
    if args.has("list"):
        for group in service.groups():
            print(group)
    elif args.has("describe"):
        _describe(service, args)
    elif args.has("reset-offsets"):
        _reset(service, args)
    elif args.has("delete-offsets"):
        return _delete_offsets(service, args)
    elif args.has("zookeeper"):
        return _delete_by_zookeeper(service, args)
    else:
        return _delete_by_brokers(service, args)
    return 0


def _groups(service: GroupService, args: Arguments) -> list[str]:
    return service.groups() if args.has("all-groups") else list(dict.fromkeys(args.values("group")))


def _describe(service: GroupService, args: Arguments) -> None:
    for group in _groups(service, args):
        if args.has("members"):
            service.describe_members(group, verbose=args.has("verbose"))
        elif args.has("state"):
            service.describe_state(group)
        else:
            service.describe_offsets(group)


def _reset(service: GroupService, args: Arguments) -> None:
    groups = _groups(service, args)
    with_group = args.has("all-groups") or len(groups) > 1
    plan = service.plan_reset(groups, args)
    if args.has("execute"):
        service.execute(plan)
    if args.has("export"):
        tables.print_export(plan, with_group=with_group)
    else:
        tables.print_new_offsets(plan)


def _delete_offsets(service: GroupService, args: Arguments) -> int:
    words = args.values("topic")
    partitions = reset.parse_partitions(words, service.storage.partitions)
    failed = False
    for group in _groups(service, args):
        results = service.delete_offsets(group, partitions)
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


def _delete_by_zookeeper(service: GroupService, args: Arguments) -> int:
    """The forms and words of --zookeeper in Kafka 1.1."""
    topic = args.value("topic")
    all_groups = not args.has("group")
    failed = False
    for group in service.groups() if all_groups else _groups(service, args):
        of_topic = "" if topic is None else f" topic '{topic}'"
        try:
            if topic is None:
                service.delete(group)
            else:
                service.delete_topic(group, topic)
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


def _delete_by_brokers(service: GroupService, args: Arguments) -> int:
    """The words of --bootstrap-server in later releases."""
    deleted, failures = [], {}
    for group in _groups(service, args):
        try:
            service.delete(group)
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


if __name__ == "__main__":
    sys.exit(run_tool(main))

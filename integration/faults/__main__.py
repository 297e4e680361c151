"""``python -m integration.faults``: run faults against a cluster and print the verdict."""

from __future__ import annotations

import argparse
import logging
import secrets
import shutil
import sys
import tempfile
import time
from pathlib import Path

from integration.cluster import hosts as places
from integration.faults import checker
from integration.faults.history import load
from integration.faults.run import Options, Run
from integration.faults.stalls import longest
from integration.faults.transactions import checker as transactions
from integration.faults.transactions.load import ORDERS


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser("integration.faults", description=__doc__)
    parser.add_argument("--faults", type=int, default=20)
    parser.add_argument("--seed", type=int, help="of the faults; default: a random one")
    parser.add_argument("--hosts", choices=("process", "netns"), default="process")
    parser.add_argument("--brokers", type=int, default=5)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument(
        "--idempotent",
        action="store_true",
        help="producers of librdkafka and Java: nothing comes twice",
    )
    parser.add_argument(
        "--transactions",
        type=int,
        default=1,
        help="writers and converters of each of these clients; 0: brokers as of 0.8",
    )
    parser.add_argument(
        "--modern",
        action="store_true",
        help="brokers of Kafka 3.9.1: shows that load and checker are right",
    )
    parser.add_argument("--broken", action="store_true", help="run the broken launcher")
    parser.add_argument("--keep", type=Path, help="keep history and data in this new directory")
    parser.add_argument("--check", type=Path, help="judge a history file, run nothing")
    args = parser.parse_args(argv)
    for each in ("kazoo", "kafka"):  # our readers go on after whatever they report
        logging.getLogger(each).setLevel(logging.CRITICAL)
    if args.check:
        verdict = checker.check(load(args.check))
        of_transactions = transactions.check(load(args.check), [ORDERS])
        print("\n".join([*verdict.lines, str(verdict._replace(lines=[]))]))
        print("\n".join([*of_transactions.lines, str(of_transactions)]))
        print(longest(load(args.check)))
        return 0 if verdict.sound and of_transactions.sound else 1
    seed = secrets.randbelow(1 << 31) if args.seed is None else args.seed
    directory = args.keep or Path(tempfile.mkdtemp(prefix="faults-"))
    begin = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - begin:6.0f} s] {text}", flush=True)

    say(f"seed {seed}, {args.faults} faults, in {directory}")
    hosts = places.Namespaces() if args.hosts == "netns" else places.Loopback()
    options = Options(
        args.faults,
        seed,
        directory,
        args.brokers,
        args.partitions,
        broken=args.broken,
        idempotent=args.idempotent,
        transactions=args.transactions,
        kind="modern" if args.modern else "ours",
    )
    try:
        outcome = Run(options, hosts, say).go()
    finally:
        hosts.close()
    print(outcome.report())
    if not outcome.sound:
        print(f"seed {seed}; history and logs are kept in {directory}")
    elif args.keep is None:
        shutil.rmtree(directory)
    return 0 if outcome.sound else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

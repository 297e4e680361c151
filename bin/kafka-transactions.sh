#!/usr/bin/env bash
IFS= read -rd '' script < <(readlink -f "$0")
exec "${script%/*}/kafka-run-class.sh" org.apache.kafka.tools.TransactionsCommand "$@"

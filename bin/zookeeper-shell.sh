#!/usr/bin/env bash

if [ $# -lt 1 ] || [ "$1" = --help ]; then
  echo "USAGE: $0 zookeeper_host:port[/path] [args...]"
  exit $(($# < 1))
fi

IFS= read -rd '' script < <(readlink -f "$0")
exec "${script%/*}/kafka-run-class.sh" \
  org.apache.zookeeper.ZooKeeperMain -server "$@"

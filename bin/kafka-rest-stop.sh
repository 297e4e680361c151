#!/usr/bin/env bash
# Asks every REST proxy on this machine to stop, and does not wait.

if [ "$1" = --help ]; then
  echo "USAGE: $0"
  exit
fi

. "$(dirname "$(readlink -f "$0")")/java-processes.bash"
pids=$(java_processes kafkarest.kafkarestmain)

if [ -z "$pids" ]; then
  echo "No REST proxy to stop"
  exit 1
fi

kill -s TERM $pids

#!/usr/bin/env bash
# Asks every REST proxy on this machine to stop, and does not wait.

if [ "$1" = --help ]; then
  echo "USAGE: $0"
  exit
fi

. "$(dirname "$(readlink -f "$0")")/java-processes.bash"
stop_java_processes kafkarest.kafkarestmain "REST proxy"

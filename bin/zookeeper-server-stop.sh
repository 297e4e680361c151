#!/usr/bin/env bash
# Asks every ZooKeeper server on this machine to stop, and does not wait.

if [ "$1" = --help ]; then
  echo "USAGE: $0"
  exit
fi

. "$(dirname "$(readlink -f "$0")")/java-processes.bash"
pids=$(java_processes org.apache.zookeeper.server)

if [ -z "$pids" ]; then
  echo "No zookeeper server to stop"
  exit 1
fi

# A server that a script started in the background ignores INT; TERM then does it.
kill -s INT $pids
kill -s TERM $pids 2> /dev/null
exit 0

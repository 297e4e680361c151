#!/usr/bin/env bash
# Asks every ZooKeeper server on this machine to stop, and does not wait.

pids=$(ps ax | grep -i 'org\.apache\.zookeeper\.server' | grep java | grep -v grep | awk '{print $1}')

if [ -z "$pids" ]; then
  echo "No zookeeper server to stop"
  exit 1
fi

# A server that a script started in the background ignores INT; TERM then does it.
kill -s INT $pids
kill -s TERM $pids 2> /dev/null
exit 0

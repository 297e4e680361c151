#!/usr/bin/env bash
# Asks every broker on this machine to stop, and does not wait.

pids=$(ps ax | grep -i 'kafka\.Kafka' | grep java | grep -v grep | awk '{print $1}')

if [ -z "$pids" ]; then
  echo "No kafka server to stop"
  exit 1
fi

kill -s TERM $pids

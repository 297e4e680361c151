#!/usr/bin/env bash

if [ $# -lt 1 ] || [ "$1" = --help ]; then
  echo "USAGE: $0 [-daemon] server.properties"
  exit $(($# < 1))
fi

IFS= read -rd '' script < <(readlink -f "$0")
bin_dir=${script%/*}

export KAFKA_LOG4J_OPTS=${KAFKA_LOG4J_OPTS:--Dlog4j.configuration=file:$bin_dir/../config/log4j.properties}
# Each thread would otherwise keep a heap of its own, filled once and never given back.
export MALLOC_ARENA_MAX=${MALLOC_ARENA_MAX:-1}
# Buffers of some MB come and go with each fetch that is converted. The kernel would take them back
# and clear them for the next fetch, which takes a quarter of the fetch's processor time.
export MALLOC_MMAP_THRESHOLD_=${MALLOC_MMAP_THRESHOLD_:-4194304}
export MALLOC_TRIM_THRESHOLD_=${MALLOC_TRIM_THRESHOLD_:-16777216}

daemon=()
if [ "$1" = -daemon ]; then
  daemon=(-daemon)
  shift
fi

exec "$bin_dir/kafka-run-class.sh" "${daemon[@]}" -name kafkaServer -loggc kafka.Kafka "$@"
